#!/usr/bin/env bash
# Noisy-neighbour benchmark: the latency of a request for a ticket of one store, and the memory of the server, while clients of another
# store send each of the heaviest requests over 64 connections, and while 12 connections read none of their responses.
#
#   benches/neighbours.sh                      on SQLite; takes about three minutes in addition to the build
#   benches/neighbours.sh --postgres URL       in a database created on this PostgreSQL server
#   benches/neighbours.sh --seconds 10 --only "a page of comments"
#                                              10 seconds for each case; only the cases whose names contain the text
#   COUNTERPART_BENCH_BINARY=…                 this program instead of a new build
#
# Fails if a request of the load gets a status other than 200 and 429, or if a case misses its target: a p99 of at most three times the p99
# without load or 25 ms, whichever is larger, and at most 256 MB more memory. Needs Python 3, and psql for --postgres.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${COUNTERPART_BENCH_BINARY:-}" ]; then
    (cd "$root" && cargo build --profile dist --quiet)
    target=$(cd "$root" && cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
    COUNTERPART_BENCH_BINARY=$target/dist/counterpart
fi
exec python3 "$root/benches/neighbours.py" --binary "$COUNTERPART_BENCH_BINARY" "$@"
