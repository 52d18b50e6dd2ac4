#!/usr/bin/env bash
# Fault experiments: the disk is full, I/O fails, standard error is closed, files are removed, replaced or cut short, processes are stopped
# and killed, and PostgreSQL is terminated, restarted, read-only, empty or out of connections. Prints a line for each experiment: how many
# writes were acknowledged, lost and wrongly answered, and the seconds from the end of the fault until writes are acknowledged again.
#
#   tests/faults.sh [--long] [NAME …]   all experiments, or those whose name contains NAME; --long kills 100 times instead of 5
#   COUNTERPART_REV_A=…, COUNTERPART_REV_B=…   the binaries of both revisions (default: the debug build, as revision B)
#   COUNTERPART_TEST_POSTGRES is not used: PostgreSQL is stopped and restarted here, so the script starts its own.
#
# Needs python3, PostgreSQL's server programs and psql, gcc for injected errors, and root for experiments that mount file systems or stop
# the processes of other users.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/postgres_servers.sh
. tests/script_steps.sh

. tests/temporary_folder.sh
at_the_end() {
    stop_postgres "$scratch"
}

chmod 755 "$scratch"
quietly "start PostgreSQL" start_postgres "$scratch"
export FAULTS_POSTGRES=$postgres FAULTS_POSTGRES_FOLDER=$scratch FAULTS_POSTGRES_PROGRAMS=$postgres_programs
if command -v gcc >/dev/null; then
    quietly "build the library that injects errors" gcc -shared -fPIC -O1 -o "$scratch/io_errors.so" tests/faults/io_errors.c -ldl
    export FAULTS_SHIM=$scratch/io_errors.so
fi

declare -A binaries=([A]="${COUNTERPART_REV_A:-}" [B]="${COUNTERPART_REV_B:-}")
[ -n "${binaries[A]}${binaries[B]}" ] || binaries[B]=${CARGO_TARGET_DIR:-target}/debug/counterpart
for revision in A B; do
    [ -n "${binaries[$revision]}" ] || continue
    echo "== fault experiments, revision $revision"
    FAULTS_BINARY=$(realpath "${binaries[$revision]}") FAULTS_REVISION=$revision python3 tests/faults/experiments.py "$@" || fail "fault experiments, revision $revision"
done
