#!/usr/bin/env bash
# MCP conformance: runs the server scenarios of the conformance suite of the Model Context Protocol against a demo server, in each revision
# of the protocol. The revisions before 2026-07-28 have sessions, but the server uses sessions only if it lets assistants send messages. So
# the scenarios of these revisions also run against a server that lets assistants send messages. Each scenario must fail or pass as
# tests/mcp/conformance-expected.txt says.
#
#   tests/mcp/conformance.sh BINARY [REPORT]      REPORT: a file for the verdict of every check
#   COUNTERPART_TOOLS=…                           the folder of the tools (default: counterpart-tools in the user's cache)
set -euo pipefail
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: $0 BINARY [REPORT]" >&2 && exit 2; }
binary=$(realpath "$1")
report=${2:+$(realpath "$2")}
cd "$(dirname "$0")/../.."

. tests/script_steps.sh
. tests/temporary_folder.sh
. tests/mcp/install_tools.sh
. tests/mcp/server.sh
at_the_end() { stop_servers; }

# suite NAME ERA OPTION…: runs scenarios of the protocol revision ERA. Writes the results of their checks to $scratch/NAME/checks, and the
# output of the suite to $scratch/NAME/log.
suite() {
    local name=$1 era=$2
    shift 2
    mkdir -p "$scratch/$name"
    echo "$era" >"$scratch/$name/era"
    # The suite exits with 1 if any scenario fails, so the exit code is ignored here. conformance_verdict.py reads in the log whether the
    # suite ran to its end.
    "${bounded[@]}" conformance server --url "$through/mcp" --output-dir "$scratch/$name/checks" "$@" </dev/null >"$scratch/$name/log" 2>&1 || true
}

start_demo "$binary" "$scratch/store"
start_proxy "$scratch/store"
suite stateless-2025-06-18 2025-06-18 --suite all --spec-version 2025-06-18
suite stateless-2025-11-25 2025-11-25 --requirements 2025-11-25
suite stateless-2026-07-28 2026-07-28 --requirements 2026-07-28
stop_servers
start_sender "$binary" "$scratch/store"
start_proxy "$scratch/store"
suite sessions-2025-06-18 2025-06-18 --suite all --spec-version 2025-06-18
suite sessions-2025-11-25 2025-11-25 --requirements 2025-11-25
stop_servers
if grep -H panicked "$scratch/store/"*.log; then fail "no panic"; fi

python3 tests/mcp/conformance_verdict.py tests/mcp/conformance-expected.txt "${report:-/dev/null}" \
    "$scratch"/{stateless-2025-06-18,stateless-2025-11-25,stateless-2026-07-28,sessions-2025-06-18,sessions-2025-11-25}
