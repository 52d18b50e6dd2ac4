#!/usr/bin/env bash
# Everything that has to hold before a change goes in: form, lints, and the whole suite for both revisions on both
# databases. Stops at the first failure. Needs a Rust toolchain and PostgreSQL's server programs, nothing that runs.
#
#   tests/all.sh             everything
#   CARGO_TARGET_DIR=…       one target folder for all of it (default: target)
#   COUNTERPART_TEST_POSTGRES=postgres://…   an existing PostgreSQL server instead of one of its own
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

scratch=$(mktemp -d)
postmaster=""
cleanup() {
    status=$?
    trap - EXIT
    if [ -n "$postmaster" ]; then
        as_postgres "$bin/pg_ctl" -D "$scratch/data" -m immediate stop >/dev/null 2>&1 || kill -QUIT "$postmaster" 2>/dev/null || true
    fi
    rm -rf -- "$scratch"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'FAILED: %s\n' "$1" >&2
    exit 1
}

# Runs a step; its output is shown only when it fails.
quietly() {
    local what=$1 log="$scratch/step.log"
    shift
    printf '%s\n' "== $what"
    if ! "$@" >"$log" 2>&1; then
        cat "$log"
        fail "$what"
    fi
}

# PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" -ne 0 ]; then
        "$@"
    else
        setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
    fi
}

free_port() {
    local port
    for port in $(shuf -i 20000-32000 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    fail "no free port"
}

# A PostgreSQL server of our own, on a free port, gone when this script ends.
start_postgres() {
    local initdb port
    initdb=$(find /usr/lib/postgresql /usr/local/pgsql /opt/homebrew/opt -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1 || true)
    [ -n "$initdb" ] || initdb=$(command -v initdb || true)
    [ -n "$initdb" ] || fail "PostgreSQL's initdb is missing: install postgresql, or set COUNTERPART_TEST_POSTGRES"
    bin=$(dirname "$initdb")
    export PATH="$PATH:$bin"
    port=$(free_port)
    if [ "$(id -u)" -eq 0 ]; then
        id postgres >/dev/null 2>&1 || fail "PostgreSQL does not run as root, and there is no user postgres"
        chown postgres "$scratch"
        chmod 755 "$scratch"
    fi
    quietly "initdb" as_postgres "$initdb" -D "$scratch/data" -U postgres -A trust -E UTF8 --locale=C --no-sync
    # What a crash would lose is not worth waiting for.
    quietly "start PostgreSQL" as_postgres "$bin/pg_ctl" -D "$scratch/data" -w -t 60 -l "$scratch/postgres.log" -o "\
        -p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$scratch -c max_connections=400 \
        -c fsync=off -c synchronous_commit=off -c full_page_writes=off" start
    postmaster=$(head -n 1 "$scratch/data/postmaster.pid")
    postgres="postgres://postgres@127.0.0.1:$port/postgres"
}

# Not nextest: it starts a process a test, and with each a server of its own, where the tests of one process share one.
runner=(cargo test --no-fail-fast --quiet)
totals='^test result:'

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

postgres="${COUNTERPART_TEST_POSTGRES:-}"
[ -n "$postgres" ] || start_postgres
for features in "" "rev-a"; do
    revision=$([ "$features" = rev-a ] && echo "revision A" || echo "revision B")
    (unset COUNTERPART_TEST_POSTGRES && suite "$revision on SQLite" --workspace --features "$features")
    (export COUNTERPART_TEST_POSTGRES="$postgres" && suite "$revision on PostgreSQL" --workspace --features "$features")
done

echo "== all passed: revisions A and B, SQLite and PostgreSQL"
cat "$scratch/totals"
