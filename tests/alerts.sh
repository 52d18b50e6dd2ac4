#!/usr/bin/env bash
# Alert rules (docs/prometheus): their syntax, their unit tests, and the metrics page of a running server, by Prometheus's promtool. It is
# taken from Debian's package where it is not installed, or else the check is skipped.
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
start_server "${COUNTERPART_BIN:-${CARGO_TARGET_DIR:-target}/debug/counterpart}" "$scratch/server" || fail "no server"
curl -sf "$base/metrics" >"$scratch/page"
stop_server
# Each name that a rule asks for is one that is registered; the page has some only once they were counted.
for name in $(grep -oE 'counterpart_[a-z_]+' docs/prometheus/alerts.yaml | sort -u); do
    registered=${name#counterpart_}
    grep -q "\"${registered%_total}\"" src/telemetry/metrics.rs || fail "an alert rule asks for $name, which nothing registers"
done
# promtool reads the older text format, in which the name of a counter in its comments ends in _total too.
sed -E 's/^# (HELP|TYPE) (([a-z_]+)) (.*)$/# \1 \2 \4/; /^# EOF/d' "$scratch/page" |
    awk '/^# (HELP|TYPE) /{held = held $0 "\n"; if ($2 == "TYPE") {if ($4 == "counter") gsub($3, $3 "_total", held); printf "%s", held; held = ""} next} {print}' |
    "$promtool" check metrics
echo "alert rules: checked, tested, and their metrics are there"
