#!/usr/bin/env bash
# Tests the assistant tools, which the server offers over the Model Context Protocol (MCP). Runs four steps: the protocol's conformance
# suite, the official Python SDK, the protocol's inspector, and a client that sends malformed messages. Runs all steps even if one fails.
# Prints the output of the steps that fail.
#
#   tests/mcp.sh BINARY
#   COUNTERPART_TOOLS=…   the folder of the tools (default: counterpart-tools in the user's cache)
#
# Needs python3 with venv, and access to PyPI and npm for what is not in the cache.
set -euo pipefail
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: $0 BINARY" >&2 && exit 2; }
given=$(realpath "$1")
cd "$(dirname "$0")/.."

. tests/script_steps.sh
. tests/temporary_folder.sh
. tests/mcp/install_tools.sh

# Copies the binary, since a build at the same time could overwrite it.
binary=$scratch/counterpart
cp "$given" "$binary"

# Passes the signal that ends this script to the running step, which then ends its own servers.
running=
at_the_end() {
    [ -z "$running" ] || { kill "$running" 2>/dev/null && wait "$running" || true; }
}

failed=()
# step WHAT COMMAND…: runs a step and prints the last line of its output, which has the totals. If the step fails, prints the whole output.
step() {
    local what=$1
    shift
    "${bounded[@]}" "$@" </dev/null >"$scratch/step.log" 2>&1 &
    running=$!
    if wait "$running"; then
        printf '== %s\n' "$(tail -n 1 "$scratch/step.log")"
    else
        cat "$scratch/step.log"
        printf '== %s: FAILED\n' "$what"
        failed+=("$what")
    fi
    running=
}

step conformance tests/mcp/conformance.sh "$binary"
step "Python SDK" python tests/mcp/python_client.py "$binary"
step inspector tests/mcp/inspector.sh "$binary"
step "hostile messages" python tests/mcp/malformed_messages.py "$binary"

[ ${#failed[@]} -eq 0 ] || fail "$(printf '%s; ' "${failed[@]}" | sed 's/; $//')"
echo "== the assistant tools hold"
