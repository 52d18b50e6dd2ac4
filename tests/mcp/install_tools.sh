# To be sourced by the scripts of tests/mcp.sh: installs missing tools, and puts their Node and Python first in PATH. Sets `tools` to the
# folder of the tools. package.json keeps vite, which only the web page of the inspector needs, at an older version: vite 8.4.0 names an
# optional package that the registry does not have, and `npm ci` fails because of it.
tools=${COUNTERPART_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/counterpart-tools}/mcp
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
# Locks the folder of the tools, since another clone may use the same folder.
(flock 9 && tests/contract/tools/install.sh "$tools" tests/mcp >"$scratch/install.log" 2>&1) 9>"$tools/lock" || { cat "$scratch/install.log" && fail "install the tools"; }
export PATH="$tools/python/bin:$tools/node/node_modules/.bin:$PATH" PYTHONDONTWRITEBYTECODE=1
