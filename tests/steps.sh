# How a script of steps tells of them, to be sourced. `scratch` is the script's own folder.

fail() {
    printf 'FAILED: %s\n' "$1" >&2
    exit 1
}

# quietly WHAT COMMAND…: runs a step; its output, in $scratch/step.log, is shown only when it fails.
quietly() {
    local what=$1 log="$scratch/step.log"
    shift
    printf '%s\n' "== $what"
    if ! "$@" >"$log" 2>&1; then
        cat "$log"
        fail "$what"
    fi
}
