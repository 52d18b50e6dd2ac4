# Progress output of scripts with several steps; to be sourced. `scratch` is the script's temporary folder.

fail() {
    printf 'FAILED: %s\n' "$1" >&2
    exit 1
}

# What bounds a program that may hang: it is ended with all it started, so that what it had said is seen before whatever runs the script
# gives up on all of it. Nothing at a terminal, where Ctrl-C has to reach the program.
bounded=()
[ -t 0 ] || bounded=(timeout --kill-after=30 1500)

# quietly WHAT COMMAND…: runs a step; its output, in $scratch/step.log, is printed only if it fails.
quietly() {
    local what=$1 log="$scratch/step.log" bound=()
    shift
    printf '%s\n' "== $what"
    # A function of the script sets its variables.
    [ "$(type -t "$1")" = function ] || bound=("${bounded[@]}")
    if ! "${bound[@]}" "$@" >"$log" 2>&1; then
        cat "$log"
        fail "$what"
    fi
}
