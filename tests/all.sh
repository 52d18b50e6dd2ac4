#!/usr/bin/env bash
# Everything that has to hold before a change goes in: form, lints, the whole suite for both revisions on both databases
# and how much of the documents it came by, two processes that read from a standby (tests/standby.sh), a server that speaks
# TLS alone (tests/tls.sh), faults of storage, log and database (tests/faults.sh), answers before the body of their request
# (tests/early_answers.sh), dependencies (tests/dependencies.sh), one corpus of requests to both revisions, and the published
# documents in the hands of others' tools (tests/contract.sh). Stops at the first failure. Needs a Rust toolchain, git, PostgreSQL's
# server programs, openssl, curl, Chromium with its chromedriver, and what tests/contract.sh needs, nothing that runs.
#
#   tests/all.sh             everything
#   CARGO_TARGET_DIR=…       one target folder for all of it (default: target)
#   COUNTERPART_TEST_POSTGRES=postgres://…   an existing PostgreSQL server instead of one of its own
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

. tests/postgres.sh
. tests/steps.sh

. tests/scratch.sh
at_the_end() {
    stop_postgres "$scratch"
}

# Not nextest: it starts a process a test, and with each a server of its own, where the tests of one process share one.
runner=(cargo test --no-fail-fast --quiet)
totals='^test result:'
coverage='valid requests [0-9]+$'

# Runs the suite on one database; prints the runner's totals, and all it said when it fails.
suite() {
    local what=$1 log="$scratch/suite.log"
    shift
    printf '%s\n' "== tests, $what"
    if "${runner[@]}" "$@" >"$log" 2>&1; then
        grep -E "$totals" "$log" | tee -a "$scratch/totals" || fail "no totals in what the runner said"
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
grep -E '^(skipped:|advisories of)' "$scratch/step.log" || fail "no word on the advisories in what the check of dependencies said"

postgres="${COUNTERPART_TEST_POSTGRES:-}"
# What a crash would lose is not worth waiting for.
[ -n "$postgres" ] || quietly "start PostgreSQL" start_postgres "$scratch" fsync=off synchronous_commit=off full_page_writes=off
for features in "" "rev-a"; do
    revision=$([ "$features" = rev-a ] && echo "revision A" || echo "revision B")
    export COUNTERPART_SEEN="$scratch/seen/${features:-rev-b}"
    (unset COUNTERPART_TEST_POSTGRES && suite "$revision on SQLite" --workspace --features "$features")
    # The other revision's build overwrites it.
    cp "${CARGO_TARGET_DIR:-target}/debug/counterpart" "$scratch/${features:-rev-b}"
    (export COUNTERPART_TEST_POSTGRES="$postgres" && suite "$revision on PostgreSQL" --workspace --features "$features")
    quietly "coverage of the documents, $revision" "${runner[@]}" --features "$features" --test api -- \
        --ignored --exact coverage::the_documents_are_covered --nocapture
    grep -E "$coverage" "$scratch/step.log" || fail "no table in what the coverage said"
done

# Two processes on one database and a standby that lags: whoever wrote reads what it wrote.
COUNTERPART_TEST_REPLAY_DELAY=300ms quietly "two processes and a standby" tests/standby.sh \
    tickets:: contacts:: conversations:: labels:: standby:: writes::ticket_fields writes::contact_fields writes::labels writes::comments writes::races search
grep -E '^statements on the standby' "$scratch/step.log"

# A server that takes no connection but over TLS.
COUNTERPART_BIN="$scratch/rev-b" quietly "PostgreSQL over TLS" tests/tls.sh
grep -E '^connections over TLS' "$scratch/step.log"

# Answers before the body of their request, also behind proxies that keep connections.
COUNTERPART_BIN="$scratch/rev-b" quietly "answers before the body of their request" tests/early_answers.sh
grep -E '^== (skipped|.*early answers:)' "$scratch/step.log"

# Faults of storage, log, process and PostgreSQL under load.
COUNTERPART_REV_A="$scratch/rev-a" COUNTERPART_REV_B="$scratch/rev-b" quietly "fault experiments" tests/faults.sh
grep -E '^fault experiments|skipped:' "$scratch/step.log" || fail "no totals in what the fault experiments said"

# The same requests to both revisions: what differs is told, and what is told differs.
export COUNTERPART_REV_A="$scratch/rev-a" COUNTERPART_REV_B="$scratch/rev-b"
quietly "replay on both revisions" cargo test --quiet --workspace --features rev-a --test replay -- --ignored --nocapture
grep -E 'requests to both revisions' "$scratch/step.log"

tests/contract.sh

echo "== all passed: revisions A and B, SQLite and PostgreSQL"
cat "$scratch/totals"
