#!/usr/bin/env bash
# build.sh TOOLS: generates Rust clients from the OpenAPI documents of both revisions of the API. Then builds the program `calls`, which
# uses the clients, as TOOLS/target/debug/calls. TOOLS is the folder of the installed tools. Unchanged parts are not rebuilt.
set -euo pipefail
tools=$1
here=$(cd "$(dirname "$0")" && pwd)
openapi=$(cd "$here/../../../openapi" && pwd)
workspace=$tools/rust
export PATH="$tools/python/bin:$PATH"

# refresh SOURCE TARGET: copies a file only if it changed. So an unchanged file keeps its modification time, and Cargo does not rebuild it.
refresh() {
    cmp -s "$1" "$2" || { mkdir -p "$(dirname "$2")" && cp "$1" "$2"; }
}
(cd "$here" && find . -type f ! -name '*.sh') | while read -r file; do refresh "$here/$file" "$workspace/$file"; done

# for_rust DOCUMENT [open]: prints an OpenAPI document in the form that the Rust generators need (docs/integrating.md). Some schemas have
# listed properties and also allow additional ones. For these, openapi-generator would leave out the additional properties. With `open`,
# such a schema no longer lists properties, so that the generated type accepts any property.
for_rust() {
    python3 - "$@" <<'END'
import json, sys
document = json.load(open(sys.argv[1]))
for schema in document["components"]["schemas"].values():
    if "x-extensible-enum" in schema:
        schema["oneOf"] = schema.pop("anyOf")
    elif "open" in sys.argv and schema.get("additionalProperties") == {}:
        del schema["properties"]
json.dump(document, sys.stdout)
END
}

for revision in rev-a rev-b; do
    generated=$workspace/generated/$revision made=$workspace/generated/$revision.made
    mkdir -p "$workspace/openapi"
    for_rust "$openapi/$revision.json" >"$workspace/openapi/new.json"
    refresh "$workspace/openapi/new.json" "$workspace/openapi/$revision.json"
    what=$(cat "$here/build.sh" "$here/../../contract/tools/requirements.txt" "$openapi/$revision.json" | sha256sum)
    [ "$(cat "$made" 2>/dev/null)" = "$what" ] && continue
    rm -rf -- "$generated" "$made"
    for_rust "$openapi/$revision.json" open >"$workspace/openapi/$revision.open.json"
    # The generated functions do not return the headers of a response, but the cursor of the next page is in a header. The option
    # `supportMiddleware` lets a middleware read the headers.
    openapi-generator-cli generate --generator-name rust --library reqwest --input-spec "$workspace/openapi/$revision.open.json" \
        --output "$generated" \
        --additional-properties="packageName=$revision,supportMiddleware=true,reqwestDefaultFeatures="
    echo "$what" >"$made"
done
cd "$workspace"
OPENAPI=$workspace/openapi CARGO_TARGET_DIR=$tools/target CARGO_INCREMENTAL=0 cargo build --quiet --locked --package calls
