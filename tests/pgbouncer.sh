#!/usr/bin/env bash
# Runs the end-to-end suite (tests/api) through PgBouncer, a connection pooler for PostgreSQL, in its transaction mode. In this mode,
# version 1.18 of PgBouncer, which Debian 12 has, does not support prepared statements. So counterpart has to work without them.
#
#   tests/pgbouncer.sh [FILTER…]      tests whose names contain FILTER
#   COUNTERPART_FEATURES=rev-a        revision A of the API (default: revision B)
#
# Needs what the suite needs, and pgbouncer; without it the script is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/postgres_servers.sh

pgbouncer=$(PATH=$PATH:/usr/sbin command -v pgbouncer) || { echo "skipped: PgBouncer (pgbouncer is missing)" && exit 0; }
. tests/temporary_folder.sh
at_the_end() {
    [ ! -s "$scratch/pgbouncer.pid" ] || kill "$(cat "$scratch/pgbouncer.pid")" 2>/dev/null || true
    stop_postgres "$scratch"
}

chmod 755 "$scratch"
start_postgres "$scratch" fsync=off synchronous_commit=off full_page_writes=off >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
server_port=${postgres##*:} server_port=${server_port%%/*} port=$(free_port)
# `options`, `server_login_retry` and `connect_query` are what docs/operating.md tells operators to set.
cat >"$scratch/pgbouncer.ini" <<CONF
[databases]
* = host=127.0.0.1 port=$server_port user=postgres connect_query='SET lock_timeout = ''10s''; SET jit = ''off''; SET default_transaction_isolation = ''read committed'''
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = transaction
ignore_startup_parameters = options
server_login_retry = 1
default_pool_size = 30
max_client_conn = 2000
server_idle_timeout = 5
pidfile = $scratch/pgbouncer.pid
logfile = $scratch/pgbouncer.log
CONF
as_postgres "$pgbouncer" -q -d "$scratch/pgbouncer.ini"
for _ in $(seq 50); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break || sleep 0.1; done
psql -qAtX -c 'SELECT 1' "postgres://postgres@127.0.0.1:$port/postgres" >/dev/null || { cat "$scratch/pgbouncer.log" >&2; exit 1; }

COUNTERPART_TEST_POSTGRES=$postgres COUNTERPART_TEST_POOLER=postgres://postgres@127.0.0.1:$port/postgres \
    cargo test --quiet --features "${COUNTERPART_FEATURES:-}" --test api -- "$@"
echo "PgBouncer: $("$pgbouncer" --version | head -n 1), transaction mode"
