#!/usr/bin/env bash
# Fuzzes a live server with schemathesis: sends random requests to the API that one of the published OpenAPI documents describes.
#
#   run.sh TOOLS DOCUMENT [MORE…]      DOCUMENT is rev-a, rev-b or settings; MORE are further arguments for schemathesis
#
# TOOLS is the folder of the installed tools. COUNTERPART_URL is the URL of the API on the server, and COUNTERPART_KEY and COUNTERPART_TOKEN
# are the credentials.
set -euo pipefail
cd "$(dirname "$0")"
tools=$1 document=$2
shift 2
export COUNTERPART_DOCUMENT=$document PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
# Some checks of schemathesis have exemptions. `--exclude-checks` excludes these checks, since exemptions.py runs them and applies the
# exemptions.
judged=$(sed -n 's/^check = "\(.*\)"$/\1/p' exemptions.toml | sort -u | paste -sd, -)
# The operation `endSession` would end the token that all requests of this run use. tests/api/settings tests this operation.
[ "$document" != settings ] || set -- --exclude-operation-id endSession "$@"
exec "$tools/python/bin/schemathesis" --config-file schemathesis.toml run "../../openapi/$document.json" \
    --url "$COUNTERPART_URL" --exclude-checks "$judged" "$@"
