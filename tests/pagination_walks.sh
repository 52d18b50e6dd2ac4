#!/usr/bin/env bash
# Pagination test: clients read lists page by page while writes move rows to other places in the lists and add new rows. Each walk (one pass
# over all pages of a list) must show every row that existed at its start exactly once. Prints how many walks and pages each list had.
#
#   tests/pagination_walks.sh BINARY [--long] [--database postgres://…]
#   --long   1,000 walks of 10,000 rows at 500 writes a second (default: 24 walks of 1,000 rows at 100 writes a second)
#
# Needs python3. The database must be empty; by default it is a SQLite file that the script creates.
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
exec python3 tests/pagination_walks/walks.py "$binary" "${load[@]}" "$@"
