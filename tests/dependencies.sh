#!/usr/bin/env bash
# Dependencies: licences, duplicates, sources (`cargo deny`) and known vulnerabilities (`cargo deny`, `cargo audit`), by deny.toml.
# Where the advisory database cannot be reached, that part is skipped, and the output says so.
#
#   COUNTERPART_ADVISORIES=…   a copy of the advisory database: a git URL or a folder (default: RustSec's own repository)
#   COUNTERPART_TOOLS=…        where the tools are kept (default: counterpart-tools in the user's cache)
#
# Needs git, and python3 with venv and a way to PyPI for tools that are not in the cache.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

. tests/steps.sh
. tests/scratch.sh

# As `cargo deny` calls it by itself.
original=https://github.com/RustSec/advisory-db
advisories=${COUNTERPART_ADVISORIES:-$original}
tools=${COUNTERPART_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/counterpart-tools}/dependencies

# Prebuilt: to compile both takes ten minutes. The list is copied last, so that an installation that broke off is made again.
install() {
    if ! cmp -s tests/dependencies.txt "$tools/installed.txt"; then
        rm -rf -- "$tools"
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement tests/dependencies.txt
        cp tests/dependencies.txt "$tools/installed.txt"
    fi
}

# A copy of the database, under a time limit: a name server that does not answer would be waited for.
copy() {
    GIT_TERMINAL_PROMPT=0 timeout 60 git clone --quiet --depth 1 "$advisories" "$scratch/advisories"
}

deny() {
    cargo deny --workspace check --deny unmatched-skip --deny license-not-encountered --deny advisory-not-detected "$@"
}

# Both tools on the same copy: `cargo deny` fetches by git, which is sent there.
vulnerabilities() {
    cargo audit --db "$scratch/advisories" --no-fetch
    CARGO_HOME=$scratch/home GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.$scratch/advisories.insteadOf GIT_CONFIG_VALUE_0=$original \
        deny advisories
}

quietly "tools for dependencies" install
PATH=$tools/bin:$PATH
quietly "licences, duplicates and sources of dependencies" deny licenses bans sources
if copy >"$scratch/copy.log" 2>&1; then
    quietly "known vulnerabilities of dependencies" vulnerabilities
    echo "advisories of $(git -C "$scratch/advisories" log -1 --format=%cs)"
elif [ -n "${COUNTERPART_ADVISORIES:-}" ]; then
    cat "$scratch/copy.log"
    fail "the advisory database that COUNTERPART_ADVISORIES names cannot be copied"
else
    echo "skipped: known vulnerabilities of dependencies: $(tail -n 1 "$scratch/copy.log")"
fi
