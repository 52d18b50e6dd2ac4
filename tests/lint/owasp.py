"""owasp.py FINDINGS BASELINE [--write]: holds Spectral's findings against the committed counts.

A line of the baseline is COUNT DOCUMENT RULE PLACE; the place is an operation, a schema, or a part of the document. A count
that grew fails, and so does one that shrank: the line is then to be changed, so that it stays true.
"""

import json
import sys
from collections import Counter
from pathlib import Path

findings, baseline = Path(sys.argv[1]), Path(sys.argv[2])


def place(path):
    """`paths./tickets.get`, `components.schemas.Ticket`, `servers`."""
    return ".".join(map(str, path[: 3 if path[0] in ("paths", "components") else 1]))


found = Counter(
    f"{Path(one['source']).stem} {one['code']} {place(one['path'])}" for one in json.loads(findings.read_text())
)
assert found, "no findings at all: was anything linted?"
if "--write" in sys.argv:
    baseline.write_text("".join(f"{count} {line}\n" for line, count in sorted(found.items())))
    sys.exit()
known = Counter()
for text in baseline.read_text().splitlines():
    count, line = text.split(" ", 1)
    known[line] = int(count)
wrong = []
for line in sorted(found.keys() | known.keys()):
    if found[line] > known[line]:
        wrong.append(f"new: {found[line]} {line} (known: {known[line]})")
    elif found[line] == 0:
        wrong.append(f"gone, remove this line: {known[line]} {line}")
    elif found[line] < known[line]:
        wrong.append(f"fewer, write {found[line]} in this line: {known[line]} {line}")
print(f"{found.total()} findings of the OWASP rules, all of them known" if not wrong else "\n".join(wrong))
sys.exit(bool(wrong))
