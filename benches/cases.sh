#!/usr/bin/env bash
# Measures reads, filters and writes on shops of growing size, each case in interleaved rounds.
#
#   benches/cases.sh                                   20,000 and 100,000 tickets in SQLite files, revision B
#   benches/cases.sh --sizes 20000,1000000             others
#   benches/cases.sh --rev-a                           revision A, whose first pages tell the total
#   benches/cases.sh --postgres postgres://…           in databases made on this server, whose processes are counted in;
#                                                      it has to run on this machine, and its data folder be readable
#   --only filters (and the list)  --rounds 3  --seconds 3  --connections 16
#
# Needs wrk and python3. TMPDIR is where the data goes: a disk, not memory.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
features=() rest=()
for argument in "$@"; do
    case $argument in
    --rev-a) features=(--features rev-a) ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit ;;
    *) rest+=("$argument") ;;
    esac
done
command -v wrk >/dev/null || { echo "wrk is missing: install wrk" >&2; exit 1; }
(cd "$root" && cargo build --release --quiet "${features[@]}")
target=$(cd "$root" && cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
exec python3 "$root/benches/cases.py" --binary "$target/release/counterpart" "${rest[@]}"
