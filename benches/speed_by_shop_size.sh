#!/usr/bin/env bash
# Benchmark of reads, filters and sends on shops of several sizes. It runs in rounds, and each round measures every shop.
#
#   benches/speed_by_shop_size.sh                           20,000 and 100,000 tickets in SQLite files, revision B
#   benches/speed_by_shop_size.sh --sizes 20000,1000000     other numbers of tickets
#   benches/speed_by_shop_size.sh --rev-a                   revision A, whose first pages have the total
#   --postgres postgres://…                                 in databases created on this server; its processes are included in the CPU
#                                                           time, so it must run on this machine with a readable data folder
#   --against BINARY                                        also measures another build in the same rounds, with the ratio of the CPU time
#   --only filters                                          only the cases whose names contain this text, and the case `list` for comparison
#   --rounds 3  --seconds 3  --connections 16               the defaults; --seconds is for each case and round; sends always have 32
#                                                           connections
# Needs wrk and python3. The data is in TMPDIR, which must be on a disk, not in memory.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
features=() rest=()
for argument in "$@"; do
    case $argument in
    --rev-a) features=(--features rev-a) ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit ;;
    *) rest+=("$argument") ;;
    esac
done
command -v wrk >/dev/null || { echo "wrk is missing: install wrk" >&2; exit 1; }
(cd "$root" && cargo build --profile dist --quiet "${features[@]}")
target=$(cd "$root" && cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
exec python3 "$root/benches/speed_by_shop_size.py" --binary "$target/dist/counterpart" "${rest[@]}"
