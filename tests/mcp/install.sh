#!/usr/bin/env bash
# install.sh TOOLS: installs the clients and the suite of tests/mcp.sh, in the versions listed beside this file, unless they are installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tools=$1

# The lists are copied last, so that an interrupted installation is repeated.
if ! cmp -s "$here/requirements.txt" "$tools/python/installed.txt"; then
    rm -rf -- "$tools/python"
    python3 -m venv "$tools/python"
    "$tools/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$here/requirements.txt"
    cp "$here/requirements.txt" "$tools/python/installed.txt"
fi
# package.json holds back vite, which the inspector's web page needs, not its command line: vite 8.4.0 names an optional package that the
# registry does not have, which `npm ci` refuses.
if ! cmp -s "$here/package-lock.json" "$tools/node/installed.json"; then
    mkdir -p "$tools/node"
    cp "$here/package.json" "$here/package-lock.json" "$tools/node"
    PATH="$tools/python/bin:$PATH" npm ci --prefix "$tools/node" --ignore-scripts --no-audit --no-fund
    cp "$here/package-lock.json" "$tools/node/installed.json"
fi
