#!/usr/bin/env bash
# Fuzzes one published document against a live server.
#
#   run.sh TOOLS DOCUMENT [MORE…]      DOCUMENT: rev-a, rev-b or settings; MORE goes to schemathesis
#
# COUNTERPART_URL, COUNTERPART_KEY and COUNTERPART_TOKEN name the server and say who is asking.
set -euo pipefail
cd "$(dirname "$0")"
tools=$1 document=$2
shift 2
export COUNTERPART_DOCUMENT=$document PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
# A check with exemptions runs as checks.py judges it, and not as it comes.
judged=$(sed -n 's/^check = "\(.*\)"$/\1/p' exemptions.toml | sort -u | paste -sd, -)
# Ends the token that the run proves itself with. tests/api/settings covers it.
[ "$document" != settings ] || set -- --exclude-operation-id endSession "$@"
exec "$tools/python/bin/schemathesis" --config-file schemathesis.toml run "../../openapi/$document.json" \
    --url "$COUNTERPART_URL" --exclude-checks "$judged" "$@"
