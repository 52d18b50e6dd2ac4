# To be sourced: functions that start and stop a server on a separate database, which has the store of tests/contract/store.ndjson.

# until_served ADDRESS_FILE PID: waits until the server PID has printed its address to ADDRESS_FILE. Returns 1 if the server ends first, or
# after 30 seconds.
until_served() {
    local n
    for n in $(seq 300); do
        grep -q '^listening on ' "$1" && return
        kill -0 "$2" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}

# start_server BINARY FOLDER: creates and fills a SQLite database in FOLDER, and starts a server on it. Exports DATABASE_URL. Sets `base`
# (URL without a path), `key` (all scopes), `token` (for the settings API) and `server` (process id).
start_server() {
    local binary=$1 folder=$2
    mkdir -p "$folder"
    export DATABASE_URL="sqlite://$folder/counterpart.db"
    "$binary" store create --id shop --name "Test shop" >/dev/null || return
    "$binary" import --store shop tests/contract/store.ndjson >/dev/null || return
    key=$("$binary" key create --store shop --name contract --scopes "$scopes") || return
    token=$("$binary" settings token --store shop --user 5eed0000-0000-4000-8000-000000000001) || return
    "$binary" serve --listen 127.0.0.1:0 --simulate-channels >"$folder/address" 2>"$folder/log" &
    server=$!
    until_served "$folder/address" "$server" || {
        cat "$folder/log"
        return 1
    }
    base=$(sed -n 's/^listening on //p' "$folder/address")
}

stop_server() {
    [ -n "${server:-}" ] || return 0
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}

server=
scopes=tickets:read,tickets:write,conversations:read,conversations:write,contacts:read,contacts:write,messages:read
scopes+=,messages:write,accounts:read,users:read,labels:read,teams:read
