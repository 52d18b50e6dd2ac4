#!/usr/bin/env bash
# run.sh TOOLS [--write] [DOCUMENT…]: lints the published OpenAPI documents. Also lints the files DOCUMENT, but without the OWASP rules.
# TOOLS is the folder of the installed tools. Redocly's strict rules and Spectral's rules apply without exception. Known violations of the
# OWASP rules are listed in owasp.baseline; --write replaces this list by the violations that are found.
set -euo pipefail
tools=$1
here=$(cd "$(dirname "$0")" && pwd)
documents=("$here"/../../openapi/{rev-a,rev-b,settings}.json)
# The OWASP rules concern requests. So they are not checked for these documents, which describe only events.
events=("$here"/../../openapi/events-rev-{a,b}.json)
write=()
for argument in "${@:2}"; do
    if [ "$argument" = --write ]; then write=("$argument"); else events+=("$argument"); fi
done
export PATH="$tools/node/node_modules/.bin:$tools/python/bin:$PATH" REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
redocly lint --config "$here/redocly.yaml" --max-problems 1000 "${documents[@]}" "${events[@]}"
spectral lint --ruleset "$here/spectral.yaml" --fail-severity hint "${documents[@]}" "${events[@]}"
findings=$(mktemp)
trap 'rm -f -- "$findings"' EXIT
# Spectral looks for rule sets beside the configuration file, so the file is copied to the folder where they are installed. With findings,
# Spectral exits with 1; owasp_baseline.py below compares them with the baseline.
cp "$here/owasp.yaml" "$tools/node/owasp.yaml"
spectral lint --ruleset "$tools/node/owasp.yaml" --format json --output "$findings" "${documents[@]}" || [ $? -eq 1 ]
"$tools/python/bin/python" "$here/owasp_baseline.py" "$findings" "$here/owasp.baseline" ${write[@]+"${write[@]}"}
