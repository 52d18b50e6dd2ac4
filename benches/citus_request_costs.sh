#!/usr/bin/env bash
# What a request costs on each node of a Citus cluster of one, two and three nodes: statements, rows, connections and CPU time.
#
#   benches/citus_request_costs.sh BINARY [REQUESTS]   REQUESTS of each kind (default: 1000)
#
# Needs a PostgreSQL with the extension Citus, as tests/citus.sh does; without it the benchmark is skipped. Figures of src/store/SCALING.md
# come from this benchmark. It measures no latency, since all nodes share this machine, unlike the nodes of a real cluster.
set -euo pipefail
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: $0 BINARY [REQUESTS]" >&2 && exit 2; }
binary=$(realpath "$1")
cd "$(dirname "$0")/.."
. tests/postgres_servers.sh
. tests/citus_cluster.sh
has_citus || { echo "skipped: the extension Citus is missing in ${CITUS_PG_CONFIG:-pg_config}; see src/store/SCALING.md" && exit 0; }
. tests/temporary_folder.sh
at_the_end() { stop_cluster "$scratch"; }

chmod 755 "$scratch"
start_cluster "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
for nodes in 1 2 3; do
    make_cluster_database "scale$nodes" "$nodes"
    mkdir "$scratch/$nodes"
    python3 benches/citus_request_costs.py "$binary" "$scratch/$nodes" "$nodes" "${2:-1000}" "scale$nodes" \
        "$scratch/coordinator=$coordinator" "$scratch/worker1=$worker1" "$scratch/worker2=$worker2"
done
