#!/usr/bin/env bash
# run.sh REVISION TOOLS SCRATCH: generates a Python client from the OpenAPI document, type-checks the scripts that use the client
# (common_calls.py and, for revision B, revision_b_calls.py) with mypy, and runs them. COUNTERPART_URL and COUNTERPART_KEY are the URL of a
# live server of that revision and an API key. REVISION is rev-a or rev-b, TOOLS is the folder of the installed tools, and SCRATCH is a
# folder for generated files.
set -euo pipefail
revision=$1 tools=$2 scratch=$3/python-$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$scratch"
cp "$here/common_calls.py" "$scratch"
calls=(common_calls.py)
[ "$revision" = rev-a ] || { cp "$here/revision_b_calls.py" "$scratch" && calls+=(revision_b_calls.py); }
cd "$scratch"
export PATH="$tools/python/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
openapi-python-client generate --path "$here/../../../openapi/$revision.json" --config "$here/config.yaml" --meta none \
    --output-path contract_client --overwrite --fail-on-warning
mypy --strict --cache-dir "$tools/mypy-$revision" "${calls[@]}" contract_client
for file in "${calls[@]}"; do COUNTERPART_REVISION=$revision python "$file"; done
