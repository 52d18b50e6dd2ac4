#!/usr/bin/env bash
# Checks the alert rules (docs/prometheus) and the Grafana dashboard (docs/grafana) with Prometheus's promtool: the syntax of the rules and
# of the dashboard's queries, the unit tests of the rules, the names of the metrics that both use, and the metrics page of a running server.
# Where promtool is not installed, the script downloads it from Debian's package; if the download fails, the check is skipped. Also needs
# python3.
#
#   COUNTERPART_BIN=…     the binary (default: the debug build)
#   COUNTERPART_TOOLS=…   the folder of the tools (default: counterpart-tools in the user's cache)
set -euo pipefail
cd "$(dirname "$0")/.."

. tests/script_steps.sh
. tests/temporary_folder.sh
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
# Writes the queries of the dashboard as recording rules, which promtool can check. JSON is valid YAML.
python3 - docs/grafana/counterpart.json >"$scratch/queries.yaml" <<'END' || fail "docs/grafana/counterpart.json is not a valid dashboard"
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
# The second page counts the request for the first page.
for _ in 1 2; do curl -sf "$base/metrics" >"$scratch/page"; done
stop_server
# Each metric that a rule or a panel uses must be registered in the source. The metrics page is not enough for this check: some metrics are
# on the page only after they were counted once.
for file in docs/prometheus/alerts.yaml docs/grafana/counterpart.json; do
    for name in $(grep -oE '\b(counterpart|process)_[a-z_]+' "$file" | sort -u); do
        source=src/telemetry/metrics.rs
        case $name in process_*) source=src/telemetry/process.rs ;; esac
        # Counters and histograms are registered without the suffixes that queries use.
        registered=$(sed -E 's/^counterpart_//; s/_(total|bucket|sum|count)$//' <<<"$name")
        grep -qE "(^ *|[a-z]\()\"$registered\"," "$source" || fail "$file uses the metric $name, which $source does not register"
        ! grep -qE "^# TYPE $name (counter|histogram)$" "$scratch/page" || fail "$file uses $name without the suffix of a counter or histogram, such as _total or _bucket"
    done
done
# promtool reads the older text format. In this format, the name of a counter ends in _total also in the comment lines (HELP, TYPE).
sed -E 's/^# (HELP|TYPE) (([a-z_]+)) (.*)$/# \1 \2 \4/; /^# EOF/d' "$scratch/page" |
    awk '/^# (HELP|TYPE) /{held = held $0 "\n"; if ($2 == "TYPE") {if ($4 == "counter") gsub($3, $3 "_total", held); printf "%s", held; held = ""} next} {print}' |
    "$promtool" check metrics
echo "alert rules: valid and tested; the queries of the dashboard are valid; the metrics of both are registered"
