# A scratch folder of a script's own, to be sourced: sets `scratch`. Whatever way the script ends, what it defines as `at_the_end` is
# run, and the folder goes.
scratch=$(mktemp -d)
at_the_end() { :; }
ended() {
    status=$?
    trap - EXIT
    at_the_end
    rm -rf -- "$scratch"
    exit "$status"
}
trap ended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
