#!/usr/bin/env bash
# run.sh TOOLS: lints the published documents. Redocly's strict rules and Spectral's hold without exception; violations of the OWASP
# rules are listed in owasp.baseline.
set -euo pipefail
tools=$1
here=$(cd "$(dirname "$0")" && pwd)
documents=("$here"/../../openapi/{rev-a,rev-b,settings}.json)
# These documents describe events and no requests, which are the subject of the OWASP rules.
events=("$here"/../../openapi/events-rev-{a,b}.json)
export PATH="$tools/node/node_modules/.bin:$tools/python/bin:$PATH" REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
redocly lint --config "$here/redocly.yaml" --max-problems 1000 "${documents[@]}" "${events[@]}"
spectral lint --ruleset "$here/spectral.yaml" --fail-severity hint "${documents[@]}" "${events[@]}"
findings=$(mktemp)
trap 'rm -f -- "$findings"' EXIT
# Rule sets are resolved beside the configuration file. Findings make Spectral fail; they are judged below.
cp "$here/owasp.yaml" "$tools/node/owasp.yaml"
spectral lint --ruleset "$tools/node/owasp.yaml" --format json --output "$findings" "${documents[@]}" || [ $? -eq 1 ]
"$tools/python/bin/python" "$here/owasp.py" "$findings" "$here/owasp.baseline" "${@:2}"
