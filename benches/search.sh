#!/usr/bin/env bash
# Search benchmark: the rate of the import, the build time and the size of the index, and the latency of queries with 8
# clients.
#
#   benches/search.sh                     on 100,000 and 1,000,000 messages in a SQLite file
#   benches/search.sh 100000              on this many messages
#   --seconds 10                          how long each of the nine cases of queries is measured
#   --postgres postgres://…               in databases that are created on this server and dropped, instead of SQLite files
#
# Needs wrk and python3. The data is in TMPDIR, which must be on a disk, not in memory.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
sizes=() seconds=10 postgres=""
while [ $# -gt 0 ]; do
    case $1 in
    --seconds) seconds=${2:?"$1 needs a number"}; shift ;;
    --postgres) postgres=${2:?"$1 needs the address of a server"}; shift ;;
    [0-9]*) sizes+=("$1") ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done
[ ${#sizes[@]} -gt 0 ] || sizes=(100000 1000000)
command -v wrk >/dev/null || { echo "wrk is missing: install wrk" >&2; exit 1; }

. "$root/tests/temporary_folder.sh"
. "$root/benches/server.sh"
at_the_end() { clear_away; }
# User and system time of the server so far, in hundredths of a second.
spent() { awk '{print $14 + $15}' "/proc/$server/stat"; }
encoded() { python3 -c 'import sys, urllib.parse as u; print(u.quote(sys.argv[1]))' "$1"; }

for size in "${sizes[@]}"; do
    mkdir "$scratch/$size"
    export DATABASE_URL="sqlite://$scratch/$size/counterpart.db" COUNTERPART_INDEX_DIR="$scratch/$size/index"
    if [ -n "$postgres" ]; then
        make_database "$postgres" "counterpart_search_$$"
    fi
    echo "$size messages"
    "$counterpart" store create --id bench --name Bench >/dev/null
    python3 "$root/benches/search_data.py" "$size" >"$scratch/lines"
    python3 "$root/benches/timed_import.py" "$counterpart" "$scratch/lines" | sed 's/^/  /'
    "$counterpart" reindex | sed 's/^/  /'
    echo "  index: $(du -sm "$COUNTERPART_INDEX_DIR" | cut -f1) MB"
    key=$("$counterpart" key create --store bench --name bench --scopes messages:read)
    start_server
    # This request is repeated until the index is open and up to date. It is also a warm-up: it reads the index before the measurement.
    curl -sf --retry 100 --retry-delay 1 -H "x-api-key: $key" "$address/v1/messages/search?query=zyxquark" >/dev/null
    while read -r name queries; do
        arguments=()
        for query in $queries; do arguments+=("$(encoded "${query//_/ }")"); done
        hits=$(curl -s -H "x-api-key: $key" "$address/v1/messages/search?query=${arguments[0]}" | { grep -o "\"score\"" || true; } | wc -l)
        ((hits > 0)) || { echo "$name: nothing was found" >&2; exit 1; }
        before=$(spent)
        result=$(wrk -t1 -c8 -d"${seconds}s" --latency -s "$root/benches/search.lua" "$address" -- "$key" "${arguments[@]}" | sed -n 's/^RESULT //p')
        read -r requests rate p50 p99 errors <<<"$result"
        ((requests > 0 && errors == 0)) || { echo "$name: $errors of $requests answers were no 200" >&2; exit 1; }
        each=$(awk -v ticks=$(($(spent) - before)) -v requests="$requests" 'BEGIN { printf "%.2f", ticks * 10 / requests }')
        printf '  %-20s %6s/s  p50 %7s ms  p99 %7s ms  CPU %6s ms  (first page: %s)\n' "$name" "$rate" "$p50" "$p99" "$each" "$hits"
    done <<'CASES'
rare zyxquark
common-word order
common-Thai สินค้า
common-Thai-phrase สินค้าชำรุด
common-Chinese 发货
both-common order_refund
one-character ค
short-beginning re
beginning ret
CASES
    grep VmRSS "/proc/$server/status" | sed 's/^/  /'
    clear_away
done
