# Progress output of scripts with several steps; to be sourced. `scratch` is the script's temporary folder.

fail() {
    printf 'FAILED: %s\n' "$1" >&2
    exit 1
}

# quietly WHAT COMMAND…: runs a step; its output, in $scratch/step.log, is printed only if it fails.
quietly() {
    local what=$1 log="$scratch/step.log"
    shift
    printf '%s\n' "== $what"
    if ! "$@" >"$log" 2>&1; then
        cat "$log"
        fail "$what"
    fi
}
