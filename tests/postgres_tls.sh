#!/usr/bin/env bash
# Tests of TLS to PostgreSQL. The PostgreSQL server accepts only TLS, so every connection of counterpart must use TLS. counterpart must
# refuse a PostgreSQL server that it does not trust.
#
#   COUNTERPART_BIN=…   the binary (default: the debug build)
#
# Needs cargo, PostgreSQL's programs, openssl and curl.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/postgres_servers.sh
. tests/script_steps.sh
. tests/contract/server.sh

. tests/temporary_folder.sh
at_the_end() {
    stop_server
    stop_postgres "$scratch"
}

counterpart=${COUNTERPART_BIN:-${CARGO_TARGET_DIR:-target}/debug/counterpart}
certificates=$scratch/certificates
mkdir "$certificates"

# authority NAME: creates a certificate authority. signed NAME AUTHORITY SUBJECT EXTENSION: creates a certificate of this authority.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
        -keyout "$certificates/$1.key" -out "$certificates/$1.pem" 2>/dev/null
}
signed() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$3" \
        -keyout "$certificates/$1.key" -out "$certificates/$1.csr" 2>/dev/null
    openssl x509 -req -in "$certificates/$1.csr" -CA "$certificates/$2.pem" -CAkey "$certificates/$2.key" -CAcreateserial -days 2 \
        -extfile <(echo "$4") -out "$certificates/$1.pem" 2>/dev/null
}
authority ours
authority others
signed server ours localhost subjectAltName=DNS:localhost
signed client ours shop extendedKeyUsage=clientAuth

chmod 755 "$scratch"
start_postgres "$scratch" fsync=off >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
port=${postgres##*:}
port=${port%/*}
as_server() { psql -h "$scratch" -p "$port" -U postgres -d postgres -XAtqc "$1"; }
as_server "CREATE ROLE shop LOGIN"
cp "$certificates/server.key" "$certificates/server.pem" "$certificates/ours.pem" "$scratch/data/"
chmod 600 "$scratch/data/server.key"
[ "$(id -u)" -ne 0 ] || chown postgres "$scratch"/data/server.key "$scratch"/data/*.pem
cat >"$scratch/data/pg_hba.conf" <<END
local all all trust
hostssl all shop all cert
hostssl all all all trust
END
cat >>"$scratch/data/postgresql.conf" <<END
ssl = on
ssl_cert_file = 'server.pem'
ssl_key_file = 'server.key'
ssl_ca_file = 'ours.pem'
END
as_postgres "$postgres_programs/pg_ctl" -D "$scratch/data" -w -t 60 restart >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }

COUNTERPART_TEST_TLS_PORT=$port COUNTERPART_TEST_TLS_CERTIFICATES=$certificates \
    cargo test --quiet --lib -- --ignored --exact store::postgres::connect_to_primary::tests::a_connection_is_made_only_if_the_tls_mode_accepts_the_server |
    tee "$scratch/tests"
# `cargo test` also succeeds if the name matches no test, so the number of passed tests is checked.
grep -q '1 passed' "$scratch/tests"

# The connections of a running server use TLS, too.
export DATABASE_URL="postgres://postgres@localhost:$port/postgres?sslmode=verify-full&sslrootcert=$certificates/ours.pem"
"$counterpart" store create --id shop --name Shop >/dev/null
key=$("$counterpart" key create --store shop --name tls --scopes tickets:read)
"$counterpart" --index-dir "$scratch/index" serve --listen 127.0.0.1:0 >"$scratch/address" 2>"$scratch/log" &
server=$!
until_served "$scratch/address" "$server" || { cat "$scratch/log" >&2; exit 1; }
base=$(sed -n 's/^listening on //p' "$scratch/address")
curl --silent --show-error --fail -H "x-api-key: $key" -H 'content-type: application/json' -d '{}' "$base/v1/tickets/list" >/dev/null
counted=$(as_server "SELECT COUNT(*) FILTER (WHERE ssl) || ' of ' || COUNT(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
    WHERE client_addr IS NOT NULL")
echo "connections over TLS: $counted"
[ "${counted% of *}" = "${counted#* of }" ] && [ "${counted% of *}" -ge 2 ]

# Uses a server certificate of X.509 version 1, which Debian's OpenSSL creates for a request without extensions. The mode `require` must
# accept it, and `verify-full` must refuse it.
stop_server
openssl x509 -req -in "$certificates/server.csr" -CA "$certificates/ours.pem" -CAkey "$certificates/ours.key" -CAcreateserial -days 2 \
    -out "$certificates/old.pem" 2>/dev/null
openssl x509 -in "$certificates/old.pem" -noout -text | grep -q 'Version: 1 ' || fail "this OpenSSL creates no certificate of version 1"
cp "$certificates/old.pem" "$scratch/data/server.pem"
as_postgres "$postgres_programs/pg_ctl" -D "$scratch/data" reload >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
COUNTERPART_TEST_TLS_PORT=$port COUNTERPART_TEST_TLS_CERTIFICATES=$certificates \
    cargo test --quiet --lib -- --ignored --exact store::postgres::connect_to_primary::tests::a_certificate_of_version_1_encrypts_but_fails_verification |
    tee "$scratch/tests"
grep -q '1 passed' "$scratch/tests"
DATABASE_URL="postgres://postgres@localhost:$port/postgres?sslmode=require" "$counterpart" export --store shop >/dev/null
old="postgres://postgres@localhost:$port/postgres?sslmode=verify-full&sslrootcert=$certificates/ours.pem"
if DATABASE_URL=$old "$counterpart" export --store shop >/dev/null 2>"$scratch/log"; then
    fail "a certificate of X.509 version 1 was accepted with verify-full"
fi
grep -q 'X.509 version 1' "$scratch/log" || fail "the error does not name the reason: $(cat "$scratch/log")"
echo "a certificate of X.509 version 1: used with require, refused with verify-full"
