"""owasp_baseline.py FINDINGS BASELINE [--write]: compares violations of the OWASP security rules with the committed baseline, one by one.
FINDINGS is a file of the linter Spectral in its JSON format. With --write, replaces the baseline by the findings instead.

A line of the baseline is RULE PLACE DOCUMENT WHERE…: RULE has a finding at PLACE in each WHERE. A WHERE is an operation, a schema or
another part of the document. PLACE is a path inside of WHERE; the path has the names of parameters instead of their indexes. The script
fails if a finding is new, and also if a finding of the baseline is gone: the WHERE must then be removed from the line, so that the baseline
stays exact.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

findings, baseline = Path(sys.argv[1]), Path(sys.argv[2])
documents = {}


def finding(one):
    """Returns the rule of a finding, its place, its document, and the operation, schema or part of the document that contains the place."""
    source, path = Path(one["source"]), one["path"]
    node = documents.setdefault(source.stem, json.loads(source.read_text()))
    steps = []
    for step in path:
        node = node[int(step)] if isinstance(node, list) else node.get(step, {})
        steps.append(node["name"] if isinstance(node, dict) and steps[-1:] == ["parameters"] else str(step))
    if steps[0] == "paths" and len(steps) > 2:
        method = documents[source.stem]["paths"][steps[1]][steps[2]]
        where, within = method.get("operationId", " ".join(steps[1:3])), steps[3:]
    elif steps[0] == "components":
        where, within = ".".join(steps[1:3]), steps[3:]
    else:
        where, within = steps[0], steps[1:]
    return one["code"], ".".join(within) or "-", source.stem, where


def lines(found):
    grouped = defaultdict(set)
    for *group, where in found:
        grouped[tuple(group)].add(where)
    return "".join(f"{' '.join(group)} {' '.join(sorted(all))}\n" for group, all in sorted(grouped.items()))


found = {finding(one) for one in json.loads(findings.read_text())}
assert found, "Spectral reported no findings, so it probably read no document"
assert not any(" " in word for one in found for word in one), "a name contains a space, which separates the columns of the baseline"
if "--write" in sys.argv:
    baseline.write_text(lines(found))
    sys.exit()
known = set()
for line in baseline.read_text().splitlines():
    rule, place, document, *wheres = line.split(" ")
    known.update((rule, place, document, where) for where in wheres)
for title, wrong in [("new", found - known), ("gone, remove it from the baseline", known - found)]:
    for one in sorted(wrong):
        print(f"{title}: {' '.join(one)}")
if found == known:
    print(f"{len(found)} findings of the OWASP rules, all of them in the baseline")
sys.exit(found != known)
