#!/usr/bin/env bash
# Interoperability test: verifies real deliveries with the public libraries of Standard Webhooks, the specification of how deliveries are
# signed. The libraries, `standardwebhooks` of Python and of JavaScript, are installed into a temporary folder. While a new secret replaces
# an old one, each delivery must verify with either secret, and with no other secret. A changed delivery must not verify. Conversely, the
# libraries sign messages with the secret of a bridge, an endpoint that connects an account to its channel. The server must accept each such
# message once, and refuse a repeated or a changed one.
#
#   tests/standardwebhooks.sh [BINARY]      (default: target/debug/counterpart)
#
# Needs python3 with pip and venv, node with npm, and access to their registries; therefore not part of tests/all.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=$(realpath "${1:-target/debug/counterpart}")
. tests/temporary_folder.sh
processes=()
at_the_end() {
    for process in "${processes[@]}"; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
}

fail() {
    printf 'FAILED: %s\n' "$1" >&2
    exit 1
}

# until_lines FILE COUNT: waits until a file has this many lines.
until_lines() {
    local n
    for n in $(seq 300); do
        [ "$(cat "$1" 2>/dev/null | wc -l)" -ge "$2" ] && return
        sleep 0.1
    done
    fail "$1 never had $2 lines"
}

echo "== install the libraries"
python3 -m venv "$scratch/python"
"$scratch/python/bin/pip" --quiet --disable-pip-version-check install standardwebhooks
npm --silent --prefix "$scratch/javascript" install --no-audit --no-fund standardwebhooks

cat >"$scratch/endpoint.py" <<'END'
"""Writes each delivery as one line of JSON: its headers, and its body as hexadecimal digits."""
import http.server, json, sys

class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with open(sys.argv[1], "a") as file:
            file.write(json.dumps({"headers": headers, "body": body.hex()}) + "\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
print(server.server_address[1], flush=True)
server.serve_forever()
END

cat >"$scratch/verify.py" <<'END'
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

def holds(secret, body, headers):
    try:
        return Webhook(secret).verify(body, headers) == json.loads(body)
    except WebhookVerificationError:
        return False

deliveries, expected, *secrets = sys.argv[1:]
count = 0
for line in open(deliveries):
    one = json.loads(line)
    body, headers = bytes.fromhex(one["body"]).decode(), one["headers"]
    found = "".join(str(int(holds(secret, body, headers))) for secret in secrets)
    assert found == expected, f"{found} instead of {expected}: {line}"
    for secret in secrets:
        assert not holds(secret, body.replace(":", ": ", 1), headers), "a changed body is verified"
        assert not holds(secret, body, {**headers, "webhook-id": "other"}), "another id is verified"
    count += 1
print(count)
END

cat >"$scratch/javascript/verify.mjs" <<'END'
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

function holds(secret, body, headers) {
  try {
    assert.deepStrictEqual(new Webhook(secret).verify(body, headers), JSON.parse(body));
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

const [deliveries, expected, ...secrets] = process.argv.slice(2);
const lines = readFileSync(deliveries, "utf8").trimEnd().split("\n");
for (const line of lines) {
  const { headers, body: hex } = JSON.parse(line);
  const body = Buffer.from(hex, "hex").toString();
  const found = secrets.map((secret) => Number(holds(secret, body, headers))).join("");
  assert.strictEqual(found, expected, line);
  for (const secret of secrets) {
    assert(!holds(secret, body.replace(":", ": "), headers), "a changed body is verified");
    assert(!holds(secret, body, { ...headers, "webhook-id": "other" }), "another id is verified");
  }
}
console.log(lines.length);
END

cat >"$scratch/bring.py" <<'END'
import json, sys, urllib.error, urllib.request
from datetime import datetime, timezone
from standardwebhooks.webhooks import Webhook

url, name, *secrets = sys.argv[1:]
message = {"storeId": "shop", "accountId": "acc-line", "referenceId": name, "externalId": name, "sender": {"id": "u"}, "text": "สวัสดี 😀"}
body, now = json.dumps(message, ensure_ascii=False), datetime.now(timezone.utc)

def bring(secret, body, sent=None):
    signature = Webhook(secret).sign(name, now, body)
    headers = {"content-type": "application/json", "webhook-id": name, "webhook-timestamp": str(int(now.timestamp()))}
    request = urllib.request.Request(url, (sent or body).encode(), {**headers, "webhook-signature": signature})
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code

own, stranger = secrets
print(bring(stranger, body), bring(own, body, body.replace("u", "v", 1)), bring(own, body), bring(own, body))
END

cat >"$scratch/javascript/bring.mjs" <<'END'
import { Webhook } from "standardwebhooks";

const [url, name, own, stranger] = process.argv.slice(2);
const message = { storeId: "shop", accountId: "acc-line", referenceId: name, externalId: name, sender: { id: "u" }, text: "สวัสดี 😀" };
const body = JSON.stringify(message);
const now = new Date();

async function bring(secret, sent = body) {
  const headers = {
    "content-type": "application/json",
    "webhook-id": name,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign(name, now, body),
  };
  return (await fetch(url, { method: "POST", headers, body: sent })).status;
}

console.log(await bring(stranger), await bring(own, body.replace("u", "v")), await bring(own), await bring(own));
END

# verifies WHAT DELIVERIES COUNT EXPECTED SECRET…: checks with both libraries which secrets verify the deliveries in the file DELIVERIES,
# and that there are COUNT deliveries. EXPECTED has one digit per secret: 1 if every delivery must verify with this secret, 0 if none may.
verifies() {
    local what=$1 deliveries=$2 count=$3 found
    shift 3
    found=$("$scratch/python/bin/python" "$scratch/verify.py" "$deliveries" "$@") || fail "$what, Python"
    [ "$found" = "$count" ] || fail "$what, Python: $found deliveries"
    found=$(node "$scratch/javascript/verify.mjs" "$deliveries" "$@") || fail "$what, JavaScript"
    [ "$found" = "$count" ] || fail "$what, JavaScript: $found deliveries"
    echo "== $what: $count deliveries, both libraries"
}

export DATABASE_URL="sqlite://$scratch/counterpart.db"
python3 "$scratch/endpoint.py" "$scratch/deliveries" >"$scratch/port" &
processes+=($!)
until_lines "$scratch/port" 1
url="http://127.0.0.1:$(cat "$scratch/port")/hooks"

"$binary" store create --id shop --name Shop
cat >"$scratch/import" <<'END'
{"kind":"account","record":{"id":"acc","channel":"widget","name":"Chat","status":"healthy"}}
{"kind":"account","record":{"id":"acc-line","channel":"line","name":"LINE","status":"healthy"}}
END
"$binary" import --store shop "$scratch/import" >/dev/null
first=$("$binary" webhook create --allow-private-targets --store shop --url "$url")
hook=$("$binary" webhook list --store shop | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])')
"$binary" serve --listen 127.0.0.1:0 --allow-private-targets >"$scratch/served" 2>"$scratch/log" &
processes+=($!)
until_lines "$scratch/served" 1

# receive NAME: the store receives a message in a new conversation NAME. The message causes two events: its receipt and the new ticket.
receive() {
    printf '{"accountId":"acc","referenceId":"%s","externalId":"%s","sender":{"id":"u","name":"มาลี"},"text":"สวัสดี %s"}\n' \
        "$1" "$1" '\"\\u0001 😀' | "$binary" message receive --store shop - >/dev/null
}

stranger="whsec_$(head -c 32 /dev/urandom | base64 -w 0)"
receive one
"$binary" webhook test --store shop --id "$hook" >/dev/null
until_lines "$scratch/deliveries" 3
verifies "one secret" "$scratch/deliveries" 3 10 "$first" "$stranger"

mv "$scratch/deliveries" "$scratch/before"
second=$("$binary" webhook rotate --store shop --id "$hook")
receive two
"$binary" webhook test --store shop --id "$hook" >/dev/null
until_lines "$scratch/deliveries" 3
verifies "during a rotation" "$scratch/deliveries" 3 110 "$first" "$second" "$stranger"
verifies "before the rotation" "$scratch/before" 3 100 "$first" "$second" "$stranger"

# Simulates the time at which the old secret expires.
mv "$scratch/deliveries" "$scratch/during"
python3 - "$scratch/counterpart.db" <<'END'
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
database.execute("UPDATE webhook_secrets SET ends_at = 1 WHERE ends_at IS NOT NULL")
database.commit()
END
"$binary" webhook replay --store shop --id "$hook" --all >/dev/null
until_lines "$scratch/deliveries" 4
verifies "after the rotation" "$scratch/deliveries" 4 010 "$first" "$second" "$stranger"

# Messages that the libraries sign with a bridge's secret: one signed with another secret, one with a changed body, a valid one, and the
# valid one again.
bridge=$("$binary" bridge set --store shop --account acc-line --url https://bridge.example.com/send)
messages=$(sed -n 's/^listening on //p' "$scratch/served")/settings/v1/messages
brought() {
    [ "$2" = "401 401 200 409" ] || fail "messages signed by the library of $1: $2"
    echo "== a message signed by the library of $1"
}
brought Python "$("$scratch/python/bin/python" "$scratch/bring.py" "$messages" python-1 "$bridge" "$stranger")"
brought JavaScript "$(node "$scratch/javascript/bring.mjs" "$messages" javascript-1 "$bridge" "$stranger")"
second=$("$binary" bridge rotate --store shop --account acc-line)
brought "Python, with the former secret" "$("$scratch/python/bin/python" "$scratch/bring.py" "$messages" python-2 "$bridge" "$stranger")"
brought "JavaScript, with the new secret" "$(node "$scratch/javascript/bring.mjs" "$messages" javascript-2 "$second" "$stranger")"
