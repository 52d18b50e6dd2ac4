#!/usr/bin/env bash
# run.sh REVISION TOOLS SCRATCH: generates the Python client of openapi-generator, whose models are pydantic's, and runs the calls.
# COUNTERPART_URL and COUNTERPART_KEY name a live server of that revision.
set -euo pipefail
revision=$1 tools=$2 scratch=$3/pydantic-$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$scratch"
cp "$here/calls.py" "$scratch"
cd "$scratch"
export PATH="$tools/python/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
openapi-generator-cli generate --generator-name python --input-spec "$here/../../../openapi/$revision.json" --output client \
    --additional-properties=packageName=contract_client
PYTHONPATH=client python calls.py
