# Functions for benchmarks: a build with whole-program optimisation, a server process and a PostgreSQL database. A script sources this file
# after tests/temporary_folder.sh, with `root` set to the project's folder, and calls `clear_away` at its end. This file sets `counterpart`
# to the path of the binary.

(cd "$root" && cargo build --profile dist --quiet)
target=$(cd "$root" && cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
counterpart=$target/dist/counterpart
server="" made=""

# make_database SERVER NAME: creates a database on this server; sets DATABASE_URL.
make_database() {
    psql --no-psqlrc --quiet --command "create database $2" "$1"
    made_on=$1 made=$2
    DATABASE_URL=$(python3 -c 'import sys, urllib.parse as u; print(u.urlunsplit(u.urlsplit(sys.argv[1])._replace(path="/" + sys.argv[2])))' "$1" "$2")
    export DATABASE_URL
}

# Starts the server; sets `server` to its process id and `address` to its URL.
start_server() {
    "$counterpart" serve --listen 127.0.0.1:0 >"$scratch/address" 2>"$scratch/server.log" &
    server=$!
    address=""
    while [ -z "$address" ]; do
        kill -0 "$server" 2>/dev/null || { cat "$scratch/server.log" >&2; exit 1; }
        sleep 0.05
        address=$(sed -n 's/^listening on //p' "$scratch/address")
    done
}

stop_server() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    server=""
}

clear_away() {
    stop_server
    [ -z "$made" ] || psql --no-psqlrc --quiet --command "drop database if exists $made with (force)" "$made_on" || true
    made=""
}
