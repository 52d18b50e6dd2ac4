#!/usr/bin/env bash
# Contract tests: uses the published OpenAPI documents with the tools of integrators. Lints the documents. Calls a live server with
# generated clients, with the examples of the guides, and with a fuzzer. Checks the server's web pages in a browser. Stops at the first
# failure.
#
#   tests/contract.sh                  the checks that tests/all.sh runs
#   tests/contract.sh --long [SEED]    fuzzes ten times as much, with this seed (default: a random seed)
#   COUNTERPART_REV_A=…, COUNTERPART_REV_B=…   the binaries of both revisions of the API (default: built here)
#   COUNTERPART_TOOLS=…                the folder of the tools (default: counterpart-tools in the user's cache)
#
# Needs python3 with venv, jq and chromium, and access to PyPI, npm and crates.io for what is not in the cache.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

. tests/script_steps.sh
. tests/contract/server.sh

examples=(--max-examples 30)
[ "${1:-}" = --long ] && examples=(--max-examples 300 --seed "${2:-$RANDOM}")

. tests/temporary_folder.sh
at_the_end() {
    stop_server
}

tools=${COUNTERPART_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/counterpart-tools}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
# Locks the folder of the tools, since another clone may use the same folder.
exec 9>"$tools/lock"
flock 9

# binary NAME FEATURES: builds the program with these Cargo features, and copies it to $scratch/NAME, since the next build overwrites it.
binary() {
    cargo build --quiet --features "$2" && cp "${CARGO_TARGET_DIR:-target}/debug/counterpart" "$scratch/$1"
}

declare -A binaries=([rev-a]="${COUNTERPART_REV_A:-}" [rev-b]="${COUNTERPART_REV_B:-}")
for revision in rev-a rev-b; do
    if [ -z "${binaries[$revision]}" ]; then
        quietly "build, $revision" binary "$revision" "$revision"
        binaries[$revision]=$scratch/$revision
    fi
done

# served WHAT REVISION PLANE COMMAND…: runs COMMAND as a step against a fresh server of REVISION. WHAT is the title of the step. PLANE is
# the path of an API: v1 or settings/v1. COMMAND gets the URL of this API in COUNTERPART_URL, an API key in COUNTERPART_KEY, and a token for
# the settings API in COUNTERPART_TOKEN.
served() {
    local what=$1 revision=$2 plane=$3
    shift 3
    start_server "${binaries[$revision]}" "$scratch/server" || fail "$what: no server"
    COUNTERPART_URL=$base/$plane COUNTERPART_KEY=$key COUNTERPART_TOKEN=$token quietly "$what" "$@"
    stop_server
    rm -rf -- "$scratch/server"
}

# fuzz DOCUMENT REVISION PLANE: fuzzes the API that DOCUMENT describes, whose path is PLANE (v1 or settings/v1), on a fresh server.
fuzz() {
    served "fuzz $1 on $2" "$2" "$3" tests/fuzz/run.sh "$tools" "$1" "${examples[@]}"
    local met_404
    met_404=$(sed -nE 's/.*Missing test data: ([0-9]+) operations? repeatedly returned 404 responses$/\1/p' "$scratch/step.log")
    printf '%s on %s: %s; operations that mostly met 404: %s\n' "$1" "$2" \
        "$(grep -E '^ *[0-9]+ generated' "$scratch/step.log" | tr -s ' ')" "${met_404:-0}" >>"$scratch/totals"
}

quietly "tools" tests/contract/tools/install.sh "$tools"
for revision in rev-a rev-b; do "${binaries[$revision]}" openapi --3.1 --output "$scratch/$revision-3.1.json"; done
quietly "lint" tests/lint/run.sh "$tools" "$scratch"/rev-{a,b}-3.1.json
grep 'OWASP' "$scratch/step.log" >>"$scratch/totals"
quietly "build the Rust clients" tests/clients/rust/build.sh "$tools"
for revision in rev-a rev-b; do
    served "TypeScript client, $revision" "$revision" v1 tests/clients/typescript/run.sh "$revision" "$tools" "$scratch"
    served "Python client, $revision" "$revision" v1 tests/clients/python/run.sh "$revision" "$tools" "$scratch"
    served "Python client by openapi-generator, $revision" "$revision" v1 tests/clients/pydantic/run.sh "$revision" "$tools" "$scratch"
    for generator in progenitor openapi-generator; do
        served "Rust client by $generator, $revision" "$revision" v1 "$tools/target/debug/calls" "$generator" "$revision"
    done
done
echo "10 generated clients of 5 generators, called" >>"$scratch/totals"
for revision in rev-a rev-b; do
    quietly "examples of the guides, $revision" tests/guides/guide_examples.py "$tools" "${binaries[$revision]}"
    printf '%s on %s\n' "$(tail -n 1 "$scratch/step.log")" "$revision" >>"$scratch/totals"
    quietly "requests of the reference, $revision" tests/guides/api_reference_examples.py "${binaries[$revision]}"
    printf '%s, %s\n' "$(tail -n 1 "$scratch/step.log")" "$revision" >>"$scratch/totals"
done
# Node.js looks for modules next to the script that imports them, so the script is copied next to the modules.
mkdir -p "$scratch/pages"
cp tests/pages/check.mjs "$scratch/pages"
ln -s "$tools/node/node_modules" "$scratch/pages/node_modules"
for revision in rev-a rev-b; do
    quietly "pages in a browser, $revision" "$tools/python/bin/node" "$scratch/pages/check.mjs" "${binaries[$revision]}"
    printf '%s, %s\n' "$(tail -n 1 "$scratch/step.log")" "$revision" >>"$scratch/totals"
done
fuzz rev-a rev-a v1
fuzz rev-b rev-b v1
fuzz settings rev-b settings/v1

echo "== the documents hold: lint, generated clients, examples, pages, fuzzing"
cat "$scratch/totals"
