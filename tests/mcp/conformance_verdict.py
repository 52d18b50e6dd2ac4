"""Compares the results of the conformance suite with the expected results.

    conformance_verdict.py EXPECTED REPORT RUN…

EXPECTED has lines `era scenario  reason`: the scenario must fail. The era is the protocol revision. With `scenario/check`, only that check
of the scenario must fail. REPORT is a file for the verdict of every check. A RUN is a folder with the `era`, the `log` and the `checks` of
one run of the suite.
"""

import collections
import json
import pathlib
import re
import sys


def expectations(path):
    """Returns the expected failures. Maps each (era, scenario) to its failing checks, or to an empty set if the whole scenario fails."""
    found = collections.defaultdict(set)
    for number, line in enumerate(open(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split(None, 2)
        if len(parts) != 3:
            raise SystemExit(f"{path}:{number}: a line is `era scenario  reason`")
        scenario, _, check = parts[1].partition("/")
        checks = found[parts[0], scenario]
        if check in checks or not check and (parts[0], scenario) in found and checks:
            raise SystemExit(f"{path}:{number}: this is listed twice")
        checks.add(check)
    return {scenario: checks - {""} for scenario, checks in found.items()}


def checks_of(run):
    """Returns the checks of each scenario that ran."""
    found = {}
    for file in sorted(run.glob("checks/*/checks.json")):
        scenario = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", file.parent.name)[1]
        found[scenario] = json.loads(file.read_text())
    return found


expected_path, report_path, *runs = sys.argv[1:]
expected = expectations(expected_path)
surprises, totals, met = [], collections.Counter(), set()
report = open(report_path, "w")

for run in map(pathlib.Path, runs):
    era, log = (run / "era").read_text().strip(), (run / "log").read_text()
    summary = {name: mark for mark, name in re.findall(r"^([✓✗]) (\S+): \d+ passed", log.partition("=== SUMMARY ===")[2], re.M)}
    started = re.findall(r"^=== Running scenario: (\S+) ===$", log, re.M)
    checks = checks_of(run)
    if not started or set(started) != set(summary):
        raise SystemExit(f"{run.name}: the suite did not run to its end:\n{log[-3000:]}")
    for scenario in started:
        found = checks.get(scenario, [])
        failed = {check["id"]: check.get("errorMessage") or "" for check in found if check["status"] == "FAILURE"}
        # A scenario can fail although none of its checks failed, for example when it exceeds its time limit. Such a failure gets the key ""
        # in place of the id of a check.
        if summary[scenario] == "✗" and not failed:
            failed[""] = "failed without a check"
        for check in found:
            totals[check["status"]] += 1
            print(run.name, scenario, check["id"], check["status"], check.get("errorMessage") or "", sep="\t", file=report)
        listed = expected.get((era, scenario))
        met.add((era, scenario))
        if listed is None:
            totals["passed"] += not failed
            surprises += [f"{run.name} {scenario}/{check}: {reason}" for check, reason in failed.items()]
        elif not failed:
            surprises.append(f"{run.name} {scenario}: passes, but is listed")
        elif listed and (wrong := listed ^ set(failed)):
            surprises += [f"{run.name} {scenario}/{check}: {failed.get(check, 'passes, but is listed')}" for check in sorted(wrong)]
        else:
            totals["failed as expected"] += 1

surprises += [f"{era} {scenario}: listed, but not run" for era, scenario in sorted(set(expected) - met)]
for surprise in surprises:
    print(f"unexpected: {surprise}")
print(
    f"conformance: {totals['passed']} scenarios passed, {totals['failed as expected']} failed as expected, {len(surprises)} unexpected "
    f"(checks: {totals['SUCCESS']} held, {totals['WARNING']} warnings)"
)
sys.exit(bool(surprises))
