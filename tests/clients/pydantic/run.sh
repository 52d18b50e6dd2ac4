#!/usr/bin/env bash
# run.sh REVISION TOOLS SCRATCH: generates a Python client with pydantic models from the OpenAPI document, using openapi-generator. Then
# runs common_calls.py, which uses the client. REVISION is rev-a or rev-b, TOOLS is the folder of the installed tools, and SCRATCH is a
# folder for generated files. COUNTERPART_URL and COUNTERPART_KEY are the URL of a live server of that revision and an API key.
set -euo pipefail
revision=$1 tools=$2 scratch=$3/pydantic-$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$scratch"
cp "$here/common_calls.py" "$scratch"
cd "$scratch"
export PATH="$tools/python/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
openapi-generator-cli generate --generator-name python --input-spec "$here/../../../openapi/$revision.json" --output client \
    --additional-properties=packageName=contract_client
PYTHONPATH=client python common_calls.py
