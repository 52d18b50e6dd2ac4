# Starts servers for the tests of the assistant tools, on free local ports; to be sourced after tests/temporary_folder.sh and
# tests/script_steps.sh.

# Removes the caller's settings from the environment, so that they do not apply to these servers.
for variable in $(compgen -e | grep -E '^(COUNTERPART_|DATABASE_URL$)' | grep -vx COUNTERPART_TOOLS || true); do unset "$variable"; done

processes=()
stop_servers() {
    local process
    for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
    for process in "${processes[@]}"; do wait "$process" 2>/dev/null || true; done
    processes=()
}

# printed FILE PATTERN: waits until FILE, the output of the newest server, has a line that matches the extended regular expression PATTERN.
# Prints the first group of the match. Returns 1 if the server ends first, or after 30 seconds.
printed() {
    local n found
    for n in $(seq 300); do
        found=$(sed -nE "s/$2/\1/p" "$1" 2>/dev/null | head -n 1)
        [ -z "$found" ] || { printf '%s\n' "$found" && return; }
        kill -0 "${processes[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    cat "$1"* >&2
    return 1
}

# start_demo BINARY FOLDER: starts a demo server on FOLDER/demo.db. Sets `base` (URL without a path) and `key` (all scopes).
start_demo() {
    mkdir -p "$2"
    "$1" demo --listen 127.0.0.1:0 --keep "$2/demo.db" </dev/null >"$2/demo" 2>"$2/demo.log" &
    processes+=($!)
    base=$(printed "$2/demo" '^Tools +(http:\/\/[^ ]*)\/mcp.*') || fail "start the demo server"
    key=$(printed "$2/demo" '^API key +(cp_.*)') || fail "start the demo server"
}

# start_sender BINARY FOLDER: starts a server on the demo's database that lets assistants send messages. Such a server uses MCP sessions.
# Sets `base`.
start_sender() {
    DATABASE_URL=sqlite://$2/demo.db "$1" serve --mcp --mcp-allow-send --simulate-channels --listen 127.0.0.1:0 </dev/null \
        >"$2/sender" 2>"$2/sender.log" &
    processes+=($!)
    base=$(printed "$2/sender" '^listening on (.*)') || fail "start the server with sessions"
}

# start_proxy FOLDER: starts a proxy that adds the API key `key` to each request and passes the request to `base`. Sets `through`, the URL
# of the proxy without a path.
start_proxy() {
    COUNTERPART_API_KEY=$key python3 tests/mcp/key_proxy.py "$base" </dev/null >"$1/proxy" 2>"$1/proxy.log" &
    processes+=($!)
    through=$(printed "$1/proxy" '^(http:.*)') || fail "start the proxy"
}

