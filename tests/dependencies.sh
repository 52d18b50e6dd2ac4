#!/usr/bin/env bash
# Dependency audit by deny.toml: licences, duplicates, sources (`cargo deny`) and known vulnerabilities (`cargo deny`, `cargo audit`). The
# vulnerabilities come from RustSec's advisory database. If this database cannot be reached, the script does not check for vulnerabilities,
# and says so in its output. If COUNTERPART_ADVISORIES names a copy and the copy cannot be reached, the script fails.
#
#   COUNTERPART_ADVISORIES=…   a copy of the advisory database: a git URL or a folder (default: RustSec's own repository)
#   COUNTERPART_TOOLS=…        the folder of the tools (default: counterpart-tools in the user's cache)
#
# Needs git, and python3 with venv and access to PyPI for tools that are not in the cache.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"

. tests/script_steps.sh
. tests/temporary_folder.sh

# The URL that `cargo deny` uses by default.
original=https://github.com/RustSec/advisory-db
advisories=${COUNTERPART_ADVISORIES:-$original}
tools=${COUNTERPART_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/counterpart-tools}/dependencies

# Installs prebuilt tools, since compiling them takes long. The list of tools is copied last, so that an interrupted installation is
# repeated.
install() {
    if ! cmp -s tests/dependency_audit_tools.txt "$tools/installed.txt"; then
        rm -rf -- "$tools"
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement tests/dependency_audit_tools.txt
        cp tests/dependency_audit_tools.txt "$tools/installed.txt"
    fi
}

# Clones the advisory database, with a time limit, since git would wait long for a name server that does not answer.
copy() {
    GIT_TERMINAL_PROMPT=0 timeout 60 git clone --quiet --depth 1 "$advisories" "$scratch/advisories"
}

deny() {
    cargo deny --workspace check --deny unmatched-skip --deny license-not-encountered --deny advisory-not-detected "$@"
}

# Both tools use the same clone: `cargo deny` fetches the database by git, which is redirected to the clone.
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
