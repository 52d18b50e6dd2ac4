#!/usr/bin/env bash
# Benchmark of a build with whole-program optimisation against peers: other servers with the same API, on the same records.
#
#   benches/peer_servers.sh KIT [DATA] [options of the kit's measure.py…]
#
# KIT is the folder of a measuring kit: it contains gen.py and measure.py, and its peers are installed as its README says. DATA is the
# folder of the 100,000 tickets and 200,000 messages, which the first run generates (default: KIT/data/100k).
set -euo pipefail
kit=$(realpath "${1:?usage: benches/peer_servers.sh KIT [DATA] [measure.py options]}")
shift
data=$kit/data/100k
if [[ ${1:-} && ${1:0:1} != - ]]; then
    data=$(realpath -m "$1")
    shift
fi
root=$(cd "$(dirname "$0")/.." && pwd)
(cd "$root" && cargo build --profile dist --quiet)
target=$(cd "$root" && cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')

# The import requires phone numbers as references of WhatsApp conversations, but the kit generates other texts.
use_phone_numbers() {
    python3 - "$1" <<'END'
import json, os, sys
path, number = sys.argv[1], 0
with open(path) as old, open(path + ".new", "w") as new:
    for line in old:
        if '"channel":"whatsapp"' in line and line.startswith('{"kind":"conversation"'):
            entry, number = json.loads(line), number + 1
            entry["record"]["referenceId"] = f"668{number:08}"
            line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"
        new.write(line)
os.replace(path + ".new", path)
END
}
if [[ ! -f $data/meta.json ]]; then
    python3 "$kit/gen.py" "$data" --tickets 100000 --messages 200000
    use_phone_numbers "$data/data.ndjson"
fi
measure() { python3 "$kit/measure.py" --data "$data" --counterpart-bin "$target/dist/counterpart" "$@"; }
case " $* " in
*" --cases"*) measure "$@" ;;
*)
    measure --cases get,list,deep,search-rare,search-common "$@"
    # The case `insert` sends messages. It uses 32 connections, as the runs in benches/RESULTS.md did.
    measure --cases insert --connections 32 "$@"
    ;;
esac
