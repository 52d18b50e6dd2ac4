#!/usr/bin/env bash
# The whole check before a change is merged, for both revisions of the API (A and B) and both databases (SQLite and PostgreSQL). It runs:
# format and lints; the test suite, and how much of the OpenAPI documents the suite covers; two processes that read from a standby
# (tests/two_processes_and_standby.sh); PostgreSQL over TLS (tests/postgres_tls.sh); fault injection (tests/faults.sh); responses before the
# end of a request (tests/early_responses.sh); the assistant tools (tests/mcp.sh); pagination while rows move (tests/pagination_walks.sh);
# alert rules and dashboard (tests/alerts.sh); packages (tests/packages.sh); dependencies (tests/dependencies.sh); the same requests to both
# revisions (tests/contract_replay); and the published documents in other tools (tests/contract.sh). Stops at the first failure. The
# contract tests run beside other parts, so their failure is reported at the end.
#
# Needs a Rust toolchain, git, PostgreSQL's server programs, openssl, curl, Chromium with its chromedriver, an SMTP server
# (python3-aiosmtpd), and what tests/contract.sh needs. Needs no running server.
#
#   tests/all.sh             everything
#   CARGO_TARGET_DIR=…       one target folder for all of it (default: target)
#   COUNTERPART_TEST_POSTGRES=postgres://…   an existing PostgreSQL server instead of a temporary one
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

. tests/postgres_servers.sh
. tests/script_steps.sh

. tests/temporary_folder.sh
# The id of the process session in which the contract tests run, or empty while they do not run. The session includes the programs that the
# contract tests start, so that `at_the_end` can end all of them.
documents=
cluster="$scratch/postgres"
at_the_end() {
    [ -z "$documents" ] || { pkill -TERM -s "$documents"; wait "$documents"; } 2>/dev/null || true
    stop_postgres "$cluster"
    rm -rf -- "$cluster"
}

# `cargo nextest` is not used: it would start a process for each test, each with a separate server. The tests of one process share a server.
runner=(cargo test --no-fail-fast --quiet)
# Runs more tests at a time than there are processors, since most tests wait for a server process or for a time-out.
export RUST_TEST_THREADS=$(($(nproc) * 2))
totals='^test result:'
coverage='valid requests [0-9]+$'

# suite WHAT ARGUMENT…: runs `cargo test` with the arguments. Prints the totals of the test runner, or its whole output on a failure.
suite() {
    local what=$1 log="$scratch/suite.log"
    shift
    printf '%s\n' "== tests, $what, after $SECONDS s"
    if "${bounded[@]}" "${runner[@]}" "$@" >"$log" 2>&1; then
        grep -E "$totals" "$log" | tee -a "$scratch/totals" || fail "the output of the test runner has no totals"
    else
        cat "$log"
        fail "tests, $what"
    fi
}

quietly "format" cargo fmt --all --check
for features in "" "rev-a"; do
    revision=$([ "$features" = rev-a ] && echo "revision A" || echo "revision B")
    quietly "lint, $revision" cargo clippy --quiet --workspace --all-targets --features "$features" -- -D warnings
done

quietly "dependencies" tests/dependencies.sh
grep -E '^(skipped:|advisories of)' "$scratch/step.log" || fail "the output of tests/dependencies.sh does not mention advisories"

# Puts the databases in memory if there is room, since a suite on PostgreSQL takes longer on disk.
memory=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1 || true)
if [ "${memory:-0}" -gt 4000000 ] && [ -w /dev/shm ]; then
    export TMPDIR=/dev/shm
    cluster=$(mktemp -d)
fi
mkdir -p "$cluster"

# The test targets that run with both databases. The other targets run only with SQLite, since they do not depend on the database. The tests
# of the crate openapi-diff run only once, since they do not depend on the revision either.
with_database=(--lib --test api --test crash --test import_export_and_keys --test settings_page --test inbound_messages)
packages=(--workspace)

postgres="${COUNTERPART_TEST_POSTGRES:-}"
# Durability is switched off: the databases of this PostgreSQL server are temporary.
[ -n "$postgres" ] || quietly "start PostgreSQL" start_postgres "$cluster" fsync=off synchronous_commit=off full_page_writes=off
for features in "" "rev-a"; do
    revision=$([ "$features" = rev-a ] && echo "revision A" || echo "revision B")
    export COUNTERPART_SEEN="$scratch/seen/${features:-rev-b}"
    (unset COUNTERPART_TEST_POSTGRES && suite "$revision on SQLite" "${packages[@]}" --features "$features")
    packages=(--workspace --exclude openapi-diff)
    # Copies the binary, since the build of the other revision overwrites it.
    cp "${CARGO_TARGET_DIR:-target}/debug/counterpart" "$scratch/${features:-rev-b}"
    (export COUNTERPART_TEST_POSTGRES="$postgres" && suite "$revision on PostgreSQL" --features "$features" "${with_database[@]}")
    quietly "coverage of the documents, $revision" "${runner[@]}" --features "$features" --test api -- \
        --ignored --exact coverage::the_test_run_covers_the_api_documents --nocapture
    grep -E "$coverage" "$scratch/step.log" || fail "the output of the coverage has no table"
done
unset TMPDIR
both=(env COUNTERPART_REV_A="$scratch/rev-a" COUNTERPART_REV_B="$scratch/rev-b")

# The contract tests use one processor, and the steps below mostly wait. So they run at the same time.
printf '%s\n' "== contract tests begin, after $SECONDS s"
setsid "${both[@]}" tests/contract.sh >"$scratch/contract.log" 2>&1 &
documents=$!

# Read-your-writes with two processes on one database and a lagging standby.
COUNTERPART_TEST_REPLAY_DELAY=300ms quietly "two processes and a standby" tests/two_processes_and_standby.sh \
    tickets:: contacts:: conversations:: labels:: unusable_read_replica:: writes::ticket_fields writes::contact_fields writes::contact_creation writes::labels writes::comments writes::concurrent_writes search
grep -E '^statements on the standby' "$scratch/step.log"

# PostgreSQL that accepts only TLS connections.
COUNTERPART_BIN="$scratch/rev-b" quietly "PostgreSQL over TLS" tests/postgres_tls.sh
grep -E '^connections over TLS' "$scratch/step.log"

# Responses that the server sends before it has read the whole request body, also behind proxies with connection pools.
COUNTERPART_BIN="$scratch/rev-b" quietly "answers before the body of their request" tests/early_responses.sh
grep -E '^== (skipped|.*early answers:)' "$scratch/step.log"

# The assistant tools of each revision: the protocol's conformance suite, two other clients, and malformed messages.
for revision in rev-a rev-b; do
    quietly "assistant tools, $revision" tests/mcp.sh "$scratch/$revision"
    grep -E '^== (conformance|Python|inspector|hostile)' "$scratch/step.log" || fail "the output of tests/mcp.sh has no totals"
done

# Pagination while rows move: each revision on each database.
for revision in rev-a rev-b; do
    for database in sqlite postgres; do
        where=()
        if [ "$database" = postgres ]; then
            quietly "create a database" psql -q "$postgres" -c "DROP DATABASE IF EXISTS walks_${revision/-/_}" -c "CREATE DATABASE walks_${revision/-/_}"
            where=(--database "${postgres%/*}/walks_${revision/-/_}")
        fi
        quietly "walks, $revision, $database" tests/pagination_walks.sh "$scratch/$revision" "${where[@]}"
        grep -E '^walks:' "$scratch/step.log" || fail "the output of tests/pagination_walks.sh has no total"
    done
done

# Alert rules, and the metrics page that they read.
COUNTERPART_BIN="$scratch/rev-b" quietly "alert rules" tests/alerts.sh
grep -E '^(skipped|alert rules):' "$scratch/step.log" || fail "the output of tests/alerts.sh does not mention alert rules"

# The Debian package, installed and purged in a separate root file system. tests/packages.sh builds the container image only with --long, or
# if COUNTERPART_STATIC_BIN names a static binary.
COUNTERPART_BIN="$scratch/rev-b" quietly "packages" tests/packages.sh
grep -E '^(skipped: packages|packages):' "$scratch/step.log" || fail "the output of tests/packages.sh does not mention packages"

# Faults of storage, log, process and PostgreSQL under load. The tested code is the same in both revisions, so one revision is enough.
COUNTERPART_REV_B="$scratch/rev-b" quietly "fault experiments" tests/faults.sh
grep -E '^fault experiments|skipped:' "$scratch/step.log" || fail "the output of tests/faults.sh has no totals"

# The differences between the revisions must be exactly the documented ones.
quietly "replay on both revisions" "${both[@]}" cargo test --quiet --workspace --features rev-a --test contract_replay -- --ignored --nocapture
grep -E 'requests to both revisions' "$scratch/step.log"

printf '%s\n' "== wait for the contract tests, after $SECONDS s"
if wait "$documents"; then outcome=0; else outcome=$?; fi
documents=
cat "$scratch/contract.log"
[ "$outcome" -eq 0 ] || fail "contract tests"

echo "== all passed: revisions A and B, SQLite and PostgreSQL"
cat "$scratch/totals"
