#!/usr/bin/env bash
# build.sh TOOLS: generates the Rust clients of both revisions and builds the calls as TOOLS/target/debug/calls. Unchanged parts are
# not rebuilt.
set -euo pipefail
tools=$1
here=$(cd "$(dirname "$0")" && pwd)
openapi=$(cd "$here/../../../openapi" && pwd)
workspace=$tools/rust
export PATH="$tools/python/bin:$PATH"

# An unchanged file keeps its modification time, which Cargo compares.
refresh() {
    cmp -s "$1" "$2" || { mkdir -p "$(dirname "$2")" && cp "$1" "$2"; }
}
(cd "$here" && find . -type f ! -name '*.sh') | while read -r file; do refresh "$here/$file" "$workspace/$file"; done

for revision in rev-a rev-b; do
    generated=$workspace/generated/$revision made=$workspace/generated/$revision.made
    refresh "$openapi/$revision.json" "$workspace/openapi/$revision.json"
    what=$(cat "$here/build.sh" "$here/../../contract/tools/requirements.txt" "$openapi/$revision.json" | sha256sum)
    [ "$(cat "$made" 2>/dev/null)" = "$what" ] && continue
    rm -rf -- "$generated" "$made"
    # The generated calls return no headers. The middleware option gives access to them, since the cursor is in a header.
    openapi-generator-cli generate --generator-name rust --library reqwest --input-spec "$openapi/$revision.json" \
        --output "$generated" \
        --additional-properties="packageName=$revision,supportMiddleware=true,reqwestDefaultFeatures="
    echo "$what" >"$made"
done
cd "$workspace"
OPENAPI=$workspace/openapi CARGO_TARGET_DIR=$tools/target CARGO_INCREMENTAL=0 cargo build --quiet --locked --package calls
