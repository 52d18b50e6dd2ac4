# Runs the steps of a script, with progress output; to be sourced. `scratch` is the script's temporary folder.

fail() {
    printf 'FAILED: %s\n' "$1" >&2
    exit 1
}

# The command prefix that limits the time of programs that may hang: `timeout` ends the program and its children, so that the script can
# print their output before the time limit of the caller ends the script. Empty at a terminal, where Ctrl-C has to reach the program.
bounded=()
[ -t 0 ] || bounded=(timeout --kill-after=30 1500)

# quietly WHAT COMMAND…: runs a step. Its output goes to $scratch/step.log, and is printed only if the step fails.
quietly() {
    local what=$1 log="$scratch/step.log" bound=()
    shift
    printf '%s\n' "== $what, after $SECONDS s"
    # A function runs without the limit, in this shell, since it may set variables of the script.
    [ "$(type -t "$1")" = function ] || bound=("${bounded[@]}")
    if ! "${bound[@]}" "$@" >"$log" 2>&1; then
        cat "$log"
        fail "$what"
    fi
}
