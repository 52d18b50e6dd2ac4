#!/usr/bin/env bash
# install.sh TOOLS [LISTS]: installs the tools of tests/contract.sh into the folder TOOLS, unless they are installed. The versions are
# listed beside this file. With LISTS, installs the tools that are listed in the folder LISTS instead.
set -euo pipefail
here=$(cd "${2:-$(dirname "$0")}" && pwd)
tools=$1

# The list is copied last, so that an interrupted installation is repeated.
if ! cmp -s "$here/requirements.txt" "$tools/python/installed.txt"; then
    rm -rf -- "$tools/python"
    python3 -m venv "$tools/python"
    "$tools/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$here/requirements.txt"
    cp "$here/requirements.txt" "$tools/python/installed.txt"
fi
if ! cmp -s "$here/package-lock.json" "$tools/node/installed.json"; then
    mkdir -p "$tools/node"
    cp "$here/package.json" "$here/package-lock.json" "$tools/node"
    PATH="$tools/python/bin:$PATH" npm ci --prefix "$tools/node" --ignore-scripts --no-audit --no-fund
    cp "$here/package-lock.json" "$tools/node/installed.json"
fi
