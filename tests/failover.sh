#!/usr/bin/env bash
# Failover drill: counterpart uses PostgreSQL with a primary and a standby. The drill kills the primary while counterpart writes. The
# failover manager pg_auto_failover (Debian's packages) replicates synchronously, and promotes the standby. Every acknowledged message must
# survive, and a write must be acknowledged within 10 seconds of each kill.
#
#   tests/failover.sh BINARY [--long]   --long kills the primary 20 times (default: 2)
#
# Needs python3, psql, and the packages pg-auto-failover-cli and postgresql-15-auto-failover; without them the drill is skipped.
set -euo pipefail
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: $0 BINARY [--long]" >&2 && exit 2; }
binary=$(realpath "$1")
kills=2
[ "${2:-}" = --long ] && kills=20
cd "$(dirname "$0")/.."
. tests/postgres_servers.sh
. tests/script_steps.sh
command -v pg_autoctl >/dev/null || { echo "skipped: failover (pg_autoctl is missing; install pg-auto-failover-cli and postgresql-15-auto-failover)" && exit 0; }

programs=$(dirname "$(find /usr/lib/postgresql -path '*/bin/initdb' | sort -V | tail -n 1)")
extension=$(dirname "$programs" | sed 's#/lib/#/share/#')/extension/pgautofailover.control
[ -e "$extension" ] || { echo "skipped: failover ($extension is missing; install postgresql-15-auto-failover)" && exit 0; }

. tests/temporary_folder.sh
at_the_end() {
    # Kills the processes that the drill started. The variable HOME in their environment identifies those of pg_autoctl, which changes
    # their titles. The working directory identifies those of PostgreSQL, which overwrites its environment. Repeats the kill until no
    # process is left, since a process that is ending may still write to the scratch folder.
    local started
    for _ in $(seq 50); do
        started=$( (grep -lsz -- "^HOME=$scratch\$" /proc/[0-9]*/environ; find /proc/[0-9]*/cwd -lname "$scratch/*") 2>/dev/null | cut -d/ -f3) || true
        [ -n "$started" ] || break
        kill -KILL $started 2>/dev/null || true
        sleep 0.1
    done
}

lent_to_postgres "$scratch"
export PATH="$programs:$PATH" LC_ALL=C.UTF-8 HOME="$scratch" XDG_DATA_HOME="$scratch/data" XDG_CONFIG_HOME="$scratch/config" XDG_RUNTIME_DIR="$scratch/run"
mkdir "$XDG_DATA_HOME" "$XDG_CONFIG_HOME" "$XDG_RUNTIME_DIR"
[ "$(id -u)" -ne 0 ] || chown postgres "$XDG_DATA_HOME" "$XDG_CONFIG_HOME" "$XDG_RUNTIME_DIR"

# Starts, in the background, the pg_auto_failover process that runs one PostgreSQL host.
run() {
    (cd / && as_postgres pg_autoctl run --pgdata "$scratch/$1" >>"$scratch/$1.log" 2>&1 </dev/null &)
}

monitor=$(free_port)
quietly "create the monitor" as_postgres pg_autoctl create monitor --pgdata "$scratch/monitor" --pgport "$monitor" --hostname 127.0.0.1 \
    --auth trust --no-ssl
# Short times, so that a host that does not respond is replaced within seconds.
cat >>"$scratch/monitor/postgresql.conf" <<'CONF'
pgautofailover.health_check_period = '500ms'
pgautofailover.health_check_timeout = '1s'
pgautofailover.health_check_max_retries = 1
pgautofailover.health_check_retry_delay = '250ms'
pgautofailover.node_considered_unhealthy_timeout = '2s'
pgautofailover.primary_demote_timeout = '2s'
pgautofailover.startup_grace_period = '1s'
CONF
run monitor
address="postgres://autoctl_node@127.0.0.1:$monitor/pg_auto_failover"
for _ in $(seq 100); do psql -qAtX -c 'SELECT 1' "$address" >/dev/null 2>&1 && break || sleep 0.2; done
nodes=()
for node in one two; do
    port=$(free_port)
    quietly "create host $node" as_postgres pg_autoctl create postgres --pgdata "$scratch/$node" --pgport "$port" --hostname 127.0.0.1 --name "$node" \
        --monitor "$address" --auth trust --no-ssl
    run "$node"
    nodes+=("$node=$port")
done
python3 tests/failover/drill.py "$binary" "$scratch" "$kills" "$monitor" "${nodes[@]}"
