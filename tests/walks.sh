#!/usr/bin/env bash
# Walks over the pages of lists while their rows move and come: each walk must show every row that was there when it began once. Prints how
# many walks and pages each list had.
#
#   tests/walks.sh BINARY [--long] [--database postgres://…]
#   --long   1,000 walks of 10,000 rows beside 500 writes a second (default: 24 walks of 1,000 rows beside 100)
#
# Needs python3. The database must be empty; by default it is a SQLite file that the script makes.
set -euo pipefail
[ $# -ge 1 ] && [ -x "$1" ] || { echo "usage: $0 BINARY [--long] [--database postgres://…]" >&2 && exit 2; }
binary=$(realpath "$1")
shift
load=(--rows 1000 --walks 24 --rate 100 --page-size 20)
if [ "${1:-}" = --long ]; then
    load=()
    shift
fi
cd "$(dirname "$0")/.."
exec python3 tests/walks/walks.py "$binary" "${load[@]}" "$@"
