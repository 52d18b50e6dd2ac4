# Starts and stops private PostgreSQL servers; to be sourced. Needs PostgreSQL's server programs, but no running server.

# Runs a command as the user postgres if this script runs as root, since PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" -ne 0 ]; then
        "$@"
    else
        setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
    fi
}

free_port() {
    local port
    for port in $(shuf -i 20000-32000 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    echo "no free port" >&2
    return 1
}

# start_postgres FOLDER [SETTING=VALUE…]: starts a server with its data in FOLDER, on a free port. Sets `postgres` to its
# address. Its log goes to standard output and to FOLDER/postgres.log.
start_postgres() {
    local folder=$1 initdb
    shift
    initdb=$(find /usr/lib/postgresql /usr/local/pgsql /opt/homebrew/opt -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1 || true)
    [ -n "$initdb" ] || initdb=$(command -v initdb || true)
    if [ -z "$initdb" ]; then
        echo "PostgreSQL's initdb is missing: install postgresql, or name a running server" >&2
        return 1
    fi
    postgres_programs=$(dirname "$initdb")
    export PATH="$PATH:$postgres_programs"
    lent_to_postgres "$folder" || return
    as_postgres "$initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C --no-sync || return
    run_postgres "$folder" max_connections=400 "$@"
}

# start_standby FOLDER PRIMARY [SETTING=VALUE…]: starts a standby with its data in FOLDER. PRIMARY is the address of a server that
# start_postgres started. Sets `postgres` to the address of the standby.
start_standby() {
    local folder=$1 primary=$2
    shift 2
    lent_to_postgres "$folder" || return
    as_postgres "$postgres_programs/pg_basebackup" -D "$folder/data" -d "$primary" -R -X stream -c fast --no-sync || return
    run_postgres "$folder" max_connections=400 "$@"
}

lent_to_postgres() {
    [ "$(id -u)" -eq 0 ] || return 0
    id postgres >/dev/null 2>&1 || { echo "PostgreSQL does not run as root, and there is no user postgres" >&2; return 1; }
    chown postgres "$1"
    chmod 755 "$1"
}

run_postgres() {
    local folder=$1 port options=() setting
    shift
    port=$(free_port) || return
    for setting in "port=$port" listen_addresses=127.0.0.1 "unix_socket_directories=$folder" "$@"; do
        options+=("-c $setting")
    done
    as_postgres "$postgres_programs/pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/postgres.log" -o "${options[*]}" start || return
    postgres="postgres://postgres@127.0.0.1:$port/postgres"
}

# stop_postgres FOLDER: stops the server with its data in FOLDER, if it is running.
stop_postgres() {
    local postmaster
    postmaster=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) || return 0
    as_postgres "$postgres_programs/pg_ctl" -D "$1/data" -m immediate stop >/dev/null 2>&1 || kill -QUIT "$postmaster" 2>/dev/null || true
}
