#!/usr/bin/env bash
# run.sh REVISION TOOLS SCRATCH: generates TypeScript types from the OpenAPI document, compiles the scripts that use them (common_calls.ts
# and, for revision B, revision_b_calls.ts), and runs the scripts. COUNTERPART_URL and COUNTERPART_KEY are the URL of a live server of that
# revision and an API key. REVISION is rev-a or rev-b, TOOLS is the folder of the installed tools, and SCRATCH is a folder for generated
# files.
set -euo pipefail
revision=$1 tools=$2 scratch=$3/typescript-$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$scratch"
cp "$here/common_calls.ts" "$here/tsconfig.json" "$scratch"
calls=(common_calls)
[ "$revision" = rev-a ] || { cp "$here/revision_b_calls.ts" "$scratch" && calls+=(revision_b_calls); }
echo '{"type":"module"}' >"$scratch/package.json"
ln -sfn "$tools/node/node_modules" "$scratch/node_modules"
cd "$scratch"
export PATH="$tools/node/node_modules/.bin:$tools/python/bin:$PATH"
openapi-typescript "$here/../../../openapi/$revision.json" --output document.d.ts
tsc
for file in "${calls[@]}"; do COUNTERPART_REVISION=$revision node "$file.js"; done
