#!/usr/bin/env bash
# Benchmark of durable writes: each write is on disk before its response. Afterwards the script checks that no write is lost.
#
#   benches/durable_writes.sh                    on a SQLite file, with default settings
#   benches/durable_writes.sh --postgres         on a PostgreSQL server that the script starts, with default settings
#   benches/durable_writes.sh --postgres URL     in a database created on this server
#
#   --path /messages/internal-comments   another operation with `conversationId` and `text` (default: /messages)
#   --rounds 3  --seconds 10  --connections 32  --conversations 2000
#
# Needs wrk and python3. The data is in TMPDIR, which must be on a disk, not in memory.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/postgres_servers.sh"

path=/messages rounds=3 seconds=10 connections=32 conversations=2000 database=sqlite postgres=""
while [ $# -gt 0 ]; do
    case $1 in
    --postgres)
        database=postgres
        if [[ ${2:-} == postgres* ]]; then
            postgres=$2
            shift
        fi
        ;;
    --path) path=${2:?"$1 needs a path"}; shift ;;
    --rounds | --seconds | --connections | --conversations)
        printf -v "${1#--}" '%d' "${2:?"$1 needs a number"}"
        shift
        ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done
# The kind of record that a write adds, as an export names it.
case $path in
*/internal-comments) kind=comment ;;
*) kind=message ;;
esac
command -v wrk >/dev/null || { echo "wrk is missing: install wrk" >&2; exit 1; }

. "$root/tests/temporary_folder.sh"
. "$root/benches/server.sh"
at_the_end() {
    clear_away
    stop_postgres "$scratch"
}

# Sets the folder of the search index: on PostgreSQL, it would otherwise be created in the current folder.
export COUNTERPART_INDEX_DIR=$scratch/index

if [ "$database" = sqlite ]; then
    mkdir "$scratch/data"
    export DATABASE_URL="sqlite://$scratch/data/counterpart.db"
    where="SQLite on $(stat -f -c %T "$scratch")"
else
    [ -n "$postgres" ] || start_postgres "$scratch" >"$scratch/start.log" || { cat "$scratch/start.log" >&2; exit 1; }
    make_database "$postgres" "counterpart_writes_$$"
    ask() { psql --no-psqlrc --quiet --tuples-only --no-align --command "$1" "$postgres"; }
    where="PostgreSQL $(ask 'show server_version'), fsync=$(ask 'show fsync'), synchronous_commit=$(ask 'show synchronous_commit')"
fi

# Prints import lines: contacts, each with a conversation and an open ticket.
records() {
    cat <<'LINES'
{"kind":"role","record":{"id":"owner","name":"Owner","kind":"owner"}}
{"kind":"user","record":{"id":"seat","userId":"0a000000-0000-4000-8000-000000000001","name":"Owner","roleId":"owner"}}
{"kind":"account","record":{"id":"widget","channel":"widget","name":"Widget","status":"healthy"}}
LINES
    awk -v n="$conversations" 'BEGIN {
        at = "\"2026-01-01T00:00:00Z\""; made = "\"createdAt\":" at ",\"updatedAt\":" at
        for (i = 1; i <= n; i++) {
            printf "{\"kind\":\"contact\",\"record\":{\"id\":\"contact-%d\",\"fullName\":\"Contact %d\",\"firstName\":\"Contact\",%s}}\n", i, i, made
            printf "{\"kind\":\"conversation\",\"record\":{\"id\":\"talk-%d\",\"channel\":\"widget\",\"accountId\":\"widget\",\"contactId\":\"contact-%d\",\"displayName\":\"Contact %d\",\"referenceId\":\"thread-%d\",\"labelIds\":[],\"isSpam\":false,%s}}\n", i, i, i, i, made
            printf "{\"kind\":\"ticket\",\"record\":{\"id\":\"ticket-%d\",\"conversationId\":\"talk-%d\",\"contactId\":\"contact-%d\",\"accountId\":\"widget\",\"channel\":\"widget\",\"isOpen\":true,\"openedAt\":%s,\"isSpam\":false,\"isFollowUp\":false,%s}}\n", i, i, i, at, made
        }
    }'
}
"$counterpart" store create --id bench --name Bench >/dev/null
records | "$counterpart" import --store bench - 2>"$scratch/import.log" >&2 || { cat "$scratch/import.log" >&2; exit 1; }
key=$("$counterpart" key create --store bench --name bench --scopes messages:write)

start_server

echo "$("$counterpart" --version), $where; $(nproc) cores; POST /v1$path, $connections connections, $conversations conversations"
printf '%-7s %12s %10s %10s %9s %9s\n' round requests/s 'p50 ms' 'p99 ms' not-200 broken
answered=0 failed=0
for ((round = 1; round <= rounds; round++)); do
    wrk -t1 -c"$connections" -d"${seconds}s" --latency -s "$root/benches/durable_writes.lua" "$address/v1$path" -- \
        "$conversations" "round $round" "$key" "$round" >"$scratch/wrk.log"
    read -r _ rate p50 p99 ok refused broken < <(grep '^RESULT' "$scratch/wrk.log") || { cat "$scratch/wrk.log" >&2; exit 1; }
    printf '%-7s %12s %10s %10s %9s %9s\n' "$round" "$rate" "$p50" "$p99" "$refused" "$broken"
    answered=$((answered + ok)) failed=$((failed + refused + broken))
done

# When wrk stops, the last request of each connection may still be in progress, and wrk does not count it. If the server completes it, the
# export contains one more record: in each round, at most one for each connection.
stop_server
there=$("$counterpart" export --store bench | grep -c "^{\"kind\":\"$kind\"" || true)
unseen=$((rounds * connections))
echo "answered 200: $answered; in the database: $there"
if ((answered == 0)); then
    echo "FAILED: nothing was written" >&2
    exit 1
fi
if ((failed > 0)); then
    echo "FAILED: $failed requests were refused, or got no response" >&2
    exit 1
fi
if ((there < answered || there > answered + unseen)); then
    echo "FAILED: expected $answered, or up to $unseen more" >&2
    exit 1
fi
