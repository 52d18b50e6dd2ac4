# Creates a temporary folder; to be sourced. Sets `scratch` to its path. When the script ends, also after a failure or a signal, the
# function `at_the_end` is called if the script defines it, and the folder is removed.
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
