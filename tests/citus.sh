#!/usr/bin/env bash
# Runs the end-to-end suite (tests/api) and three drills (tests/citus/drill.py) on a cluster of Citus, the PostgreSQL extension that spreads
# tables over several servers. The script starts the cluster, a coordinator and two workers, on loopback, and stops it at the end.
#
#   tests/citus.sh [--long] [FILTER…]   tests whose names contain FILTER. With --long, a drill moves 100,000 messages (default: 2,000)
#   COUNTERPART_FEATURES=rev-a          revision A (default: revision B)
#   CITUS_PG_CONFIG=PATH                the pg_config of a PostgreSQL that has the extension (default: pg_config)
#   CITUS_COORDINATOR=postgres://…      a database of a running cluster, as a superuser. Then the script starts no cluster: the suite
#                                       creates its databases on each node of the running one. The drills, which kill a worker, are skipped
#
# Debian has no package of Citus. src/store/SCALING.md tells how to build it. Without it the script is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/postgres_servers.sh
. tests/citus_cluster.sh

messages=2000 seconds=5
[ "${1:-}" != --long ] || { messages=100000 seconds=20; shift; }
if [ -n "${CITUS_COORDINATOR:-}" ]; then
    [[ $CITUS_COORDINATOR == postgres*://*@*/* ]] || { echo "CITUS_COORDINATOR must be postgres://USER@HOST:PORT/DATABASE" >&2 && exit 2; }
    # The workers have the same users and parameters as the coordinator.
    credentials=${CITUS_COORDINATOR%@*} parameters=${CITUS_COORDINATOR##*@*/}
    workers=$(psql -qXAt "$CITUS_COORDINATOR" -v before="$credentials@" -v after="/$parameters" \
        <<<"SELECT string_agg(:'before' || node_name || ':' || node_port || :'after', ',') FROM citus_get_active_worker_nodes()")
    [ -n "$workers" ] || { echo "CITUS_COORDINATOR names no coordinator with workers" >&2 && exit 2; }
    COUNTERPART_TEST_POSTGRES=$CITUS_COORDINATOR COUNTERPART_TEST_CITUS_WORKERS=$workers \
        cargo test --quiet --features "${COUNTERPART_FEATURES:-}" --test api -- "$@"
    echo "skipped: the drills, which kill a worker (CITUS_COORDINATOR is set)"
    exit
fi
has_citus || { echo "skipped: Citus (the extension is missing in ${CITUS_PG_CONFIG:-pg_config}; see src/store/SCALING.md)" && exit 0; }
. tests/temporary_folder.sh
at_the_end() { stop_cluster "$scratch"; }

chmod 755 "$scratch"
start_cluster "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
COUNTERPART_TEST_POSTGRES=$coordinator COUNTERPART_TEST_CITUS_WORKERS=$worker1,$worker2 \
    cargo test --quiet --features "${COUNTERPART_FEATURES:-}" --test api -- "$@"
cargo build --quiet --features "${COUNTERPART_FEATURES:-}"
make_cluster_database drill
mkdir "$scratch/drill"
# The binary is copied, since another build may replace it meanwhile.
cp "${CARGO_TARGET_DIR:-target}/debug/counterpart" "$scratch/counterpart"
python3 tests/citus/drill.py "$scratch/counterpart" "$scratch/drill" "${coordinator%/*}/drill" "$scratch/worker1" "$messages" "$seconds"
echo "Citus: $(psql -qXAt "${coordinator%/*}/drill" -c 'SELECT citus_version()' | cut -d' ' -f1-2), a coordinator and two workers"
