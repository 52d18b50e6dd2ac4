#!/usr/bin/env bash
# Noisy-neighbour benchmark: clients of one store put load on the server, while the script measures the latency of requests for a ticket of
# another store, and the memory of the server. Each case is one load: one of the heaviest requests over 64 connections, or 12 connections
# that read none of their responses.
#
#   benches/noisy_neighbours.sh                      on SQLite; takes about three minutes in addition to the build
#   benches/noisy_neighbours.sh --postgres URL       in a database created on this PostgreSQL server
#   benches/noisy_neighbours.sh --seconds 10 --only "a page of comments"
#                                              10 seconds for each case; only the cases whose names contain the text
#   COUNTERPART_BENCH_BINARY=…                 this program instead of a new build
#
# Fails if a response to the load has a status other than 200 and 429, or if a case misses a target. The targets: the p99 is at most 25 ms
# or three times the p99 without load, whichever is larger, and the memory grows by at most 256 MB. Needs Python 3, and psql for --postgres.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${COUNTERPART_BENCH_BINARY:-}" ]; then
    (cd "$root" && cargo build --profile dist --quiet)
    target=$(cd "$root" && cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
    COUNTERPART_BENCH_BINARY=$target/dist/counterpart
fi
exec python3 "$root/benches/noisy_neighbours.py" --binary "$COUNTERPART_BENCH_BINARY" "$@"
