#!/usr/bin/env bash
# Two processes and a read replica: runs the end-to-end suite (tests/api) against two server processes on the same PostgreSQL database. A
# proxy passes the connections to the two processes in turn, and both processes read from a standby of the database.
#
#   tests/two_processes_and_standby.sh [FILTER…]   tests whose names contain FILTER
#   COUNTERPART_TEST_REPLAY_DELAY=300ms            delays the standby; a client then sees its own writes only if they are read
#                                                  from the primary
#
# Needs what the suite needs, and pg_basebackup, which comes with PostgreSQL.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/postgres_servers.sh

. tests/temporary_folder.sh
at_the_end() {
    stop_postgres "$scratch/standby"
    stop_postgres "$scratch"
}

mkdir "$scratch/standby"
chmod 755 "$scratch"
start_postgres "$scratch" fsync=off max_wal_senders=4 >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
primary=$postgres
start_standby "$scratch/standby" "$primary" log_statement=all "recovery_min_apply_delay=${COUNTERPART_TEST_REPLAY_DELAY:-0}" \
    >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }

# Skips the tests that fail with two processes. For example, each process counts its own metrics, applies its own limits, and updates its
# own search index.
COUNTERPART_TEST_POSTGRES=$primary COUNTERPART_TEST_STANDBY=$postgres cargo test --quiet --test api -- "$@" \
    --skip statement_counts:: --skip an_import_that_replaces_records --skip a_secret_is_shown_once --skip after_a_kill \
    --skip slow_sends_of_one_account --skip each_new_e_mail_starts --skip one_thread_on_an_account

reads=$(grep -cE 'execute .*FROM (tickets|contacts|conversations|messages|labels|accounts|users)' "$scratch/standby/postgres.log" || true)
echo "statements on the standby: $reads"
[ "$reads" -gt 0 ] || { echo "no process read from the standby" >&2; exit 1; }
