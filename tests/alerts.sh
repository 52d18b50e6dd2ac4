#!/usr/bin/env bash
# Alert rules (docs/prometheus) and the Grafana dashboard (docs/grafana): the syntax of the rules and of the dashboard's queries, the unit
# tests of the rules, the metrics that both ask for, and the metrics page of a running server, by Prometheus's promtool. It is taken from
# Debian's package where it is not installed, or else the check is skipped. Needs python3, too.
#
#   COUNTERPART_BIN=…     the binary (default: the debug build)
#   COUNTERPART_TOOLS=…   the folder of the tools (default: counterpart-tools in the user's cache)
set -euo pipefail
cd "$(dirname "$0")/.."

. tests/steps.sh
. tests/scratch.sh
. tests/contract/server.sh
at_the_end() {
    stop_server
}

tools=${COUNTERPART_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/counterpart-tools}
promtool=$(command -v promtool || true)
if [ -z "$promtool" ]; then
    promtool=$tools/promtool
    mkdir -p "$tools"
    [ -x "$promtool" ] || (cd "$scratch" && apt-get download prometheus && dpkg -x prometheus_*.deb . && cp usr/bin/promtool "$promtool") >"$scratch/log" 2>&1 || {
        echo "skipped: alert rules: no promtool: $(tail -1 "$scratch/log")"
        exit 0
    }
fi

"$promtool" check rules docs/prometheus/alerts.yaml
"$promtool" test rules docs/prometheus/alerts_test.yaml
# The queries of the dashboard as rules, for promtool to read. JSON is YAML as well.
python3 - docs/grafana/counterpart.json >"$scratch/queries.yaml" <<'END' || fail "the dashboard is not as it should be"
import json, sys

rows = json.load(open(sys.argv[1], encoding="utf-8"))["panels"]
panels = [panel for row in rows for panel in (row, *row.get("panels", []))]
ids = [panel["id"] for panel in panels]
if len(ids) != len(set(ids)):
    sys.exit(f"panels share an id: {sorted(ids)}")
rules = []
for panel in panels:
    for target in panel.get("targets", []):
        query = target["expr"].replace("$__rate_interval", "5m").replace("$instance", "a")
        rules.append({"record": f"panel_{panel['id']}:{target['refId']}", "expr": query})
json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, sys.stdout)
END
"$promtool" check rules "$scratch/queries.yaml"
start_server "${COUNTERPART_BIN:-${CARGO_TARGET_DIR:-target}/debug/counterpart}" "$scratch/server" || fail "no server"
# The second page has the request for the first.
for _ in 1 2; do curl -sf "$base/metrics" >"$scratch/page"; done
stop_server
# Each name that a rule or a panel asks for is one that is registered; the page has some only once they were counted.
for file in docs/prometheus/alerts.yaml docs/grafana/counterpart.json; do
    for name in $(grep -oE '\b(counterpart|process)_[a-z_]+' "$file" | sort -u); do
        source=src/telemetry/metrics.rs
        case $name in process_*) source=src/telemetry/process.rs ;; esac
        # Counters and histograms are registered without the suffixes that they are asked for with.
        registered=$(sed -E 's/^counterpart_//; s/_(total|bucket|sum|count)$//' <<<"$name")
        grep -qE "(^ *|[a-z]\()\"$registered\"," "$source" || fail "$file asks for $name, which nothing registers"
        ! grep -qE "^# TYPE $name (counter|histogram)$" "$scratch/page" || fail "$file asks for $name, which lacks its suffix"
    done
done
# promtool reads the older text format, in which the name of a counter in its comments ends in _total too.
sed -E 's/^# (HELP|TYPE) (([a-z_]+)) (.*)$/# \1 \2 \4/; /^# EOF/d' "$scratch/page" |
    awk '/^# (HELP|TYPE) /{held = held $0 "\n"; if ($2 == "TYPE") {if ($4 == "counter") gsub($3, $3 "_total", held); printf "%s", held; held = ""} next} {print}' |
    "$promtool" check metrics
echo "alert rules: checked and tested, the queries of the dashboard are read, and the metrics of both are there"
