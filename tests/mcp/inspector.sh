#!/usr/bin/env bash
# Runs the command line of the MCP inspector (Model Context Protocol) against the assistant tools: over HTTP with the key in a header, and
# over standard input and output, in each era of the protocol (legacy: before revision 2026-07-28; modern: from this revision on). Lists the
# tools, calls five of them, reads two pages of the ticket list, and provokes an error.
#
#   tests/mcp/inspector.sh BINARY
#   COUNTERPART_TOOLS=…        the folder of the tools (default: counterpart-tools in the user's cache)
set -euo pipefail
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: $0 BINARY" >&2 && exit 2; }
binary=$(realpath "$1")
cd "$(dirname "$0")/../.."

. tests/script_steps.sh
. tests/temporary_folder.sh
. tests/mcp/install_tools.sh
. tests/mcp/server.sh
at_the_end() { stop_servers; }

# The inspector stores files in the home folder, so it gets a temporary one.
export HOME="$scratch/home"
mkdir "$HOME"

# ask NAME STATUS OPTION…: runs the inspector; its output is $answers/NAME. Its exit status must be STATUS; 5 is an error of a tool.
ask() {
    local name=$1 wanted=$2 status=0
    shift 2
    "${bounded[@]}" mcp-inspector --cli "${target[@]}" --protocol-era "$era" --format json --quiet "$@" "${command[@]}" \
        </dev/null >"$answers/$name" 2>"$answers/$name.log" || status=$?
    [ "$status" = "$wanted" ] || { cat "$answers/$name" "$answers/$name.log" >&2 && fail "$way, $era, $name: status $status"; }
}

# call NAME STATUS TOOL ARGUMENTS: calls a tool with the inspector.
call() {
    ask "$1" "$2" --method tools/call --tool-name "$3" --tool-args-json "$4"
}

# of NAME PATH: prints a property of the structured content of response NAME.
of() {
    python3 -c '
import functools, json, sys
content = json.load(open(sys.argv[1]))["result"]["structuredContent"]
print(functools.reduce(lambda value, key: value[int(key) if key.isdigit() else key], sys.argv[2].split("."), content))' "$answers/$1" "$2"
}

conversation() {
    answers=$scratch/$way-$era
    mkdir "$answers"
    ask tools 0 --method tools/list
    call guide 0 get_inbox_guide '{}'
    call first 0 list_tickets '{"pageSize":3}'
    call second 0 list_tickets "{\"pageSize\":3,\"cursor\":\"$(of first nextCursor)\"}"
    call ticket 0 get_ticket "{\"ticketId\":\"$(of first items.0.id)\"}"
    call thread 0 read_thread "{\"conversationId\":\"$(of first items.0.conversationId)\"}"
    call contacts 0 find_contacts '{"query":"James"}'
    call error 5 get_ticket '{"ticketId":"no-such-ticket"}'
    printf '%s, %s: ' "$way" "$era"
    python tests/mcp/inspector_checks.py "$answers"
}

start_demo "$binary" "$scratch/store"
for era in legacy modern; do
    way=http command=() target=(--transport http --server-url "$base/mcp" --header "x-api-key: $key")
    conversation
    way=stdio command=(-- "$binary" mcp) target=(-e "COUNTERPART_API_KEY=$key" -e "DATABASE_URL=sqlite://$scratch/store/demo.db")
    conversation
done
if grep -H panicked "$scratch/store/"*.log; then fail "no panic"; fi
echo "inspector: 4 connections, 32 requests"
