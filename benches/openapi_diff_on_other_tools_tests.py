#!/usr/bin/env python3
"""Benchmark of the OpenAPI comparison: pairs of public documents, and the file-based tests of other tools.

  benches/openapi_diff_on_other_tools_tests.py oasdiff FOLDER BINARY...        tests of a clone of github.com/oasdiff/oasdiff
  benches/openapi_diff_on_other_tools_tests.py openapi-diff FOLDER BINARY...   tests of a clone of github.com/OpenAPITools/openapi-diff
  benches/openapi_diff_on_other_tools_tests.py pairs FILE BINARY...            pairs of documents, one pair a line: OLD NEW

BINARY is built by `cargo build --profile dist -p openapi-diff --example compare`; binaries of older commits may precede it. Only the last
binary decides whether the script fails. With `pairs`, it fails if that binary cannot compare a pair, or takes more than 10 s for a pair.
With tests, it fails if that binary disagrees with a test for which benches/openapi_diff_disagreement_reasons.json gives no reason, or if
that file gives a reason for a test with which the binary agrees.
"""
import collections, glob, json, os, re, resource, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))


def compared(binary, old, new):
    run = subprocess.run([binary, old, new], capture_output=True, timeout=120)
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr.decode(errors="replace").strip()


def class_of(report):
    return next((kind for kind in ("breaking", "unknown", "compatible") if report["summary"][kind]), "none")


def oasdiff(folder):
    """Yields the tests of oasdiff that compare two files as they are and expect a severity level (ERR, WARN or INFO): the name, both files,
    and the classes that agree with the expected level."""
    os.chdir(os.path.join(folder, "checker"))
    sources = [open(name).read() for name in sorted(glob.glob("*.go"))]
    ids = dict(pair for source in sources for pair in re.findall(r'(\w+Id)\s*=\s*"([^"]+)"', source))
    levels = dict(re.findall(r"new\w*Rule\((\w+Id),\s*(\w+),", open("rules.go").read()))
    by_text = {text: levels.get(name, "INFO") for name, text in ids.items()}
    for name in sorted(glob.glob("*_test.go")):
        for test, body in re.findall(r"func (Test\w+)\(t \*testing\.T\) \{(.*?)\n\}\n", open(name).read(), re.S):
            opened = re.findall(r's([12]), err :?= open\("(\.\./data/[^"]+)"', body)
            files = dict(opened)
            changes = r"s[12]\.Spec\.|\.Paths\.|delete\(|Spec\.Components|\bset\w+\(t, s[12]|NotPanics|t\.Run\("
            if set(files) != {"1", "2"} or len(opened) > 2 or re.search(changes, body):
                continue
            positive = "\n".join(line for line in body.split("\n") if not re.search(r"NotEqual|NotContains|require\.False|require\.Empty", line))
            found = [levels.get(one, "INFO") for one in re.findall(r"checker\.(\w+Id)\b", positive)]
            found += [by_text[text] for text in re.findall(r'"([a-z0-9-]+)", \w+\[\d\]\.GetId', positive) if text in by_text]
            found += re.findall(r"require\.Equal\(t, checker\.(ERR|WARN|INFO), \w+\[\d\]\.GetLevel", positive)
            none = re.search(r"require\.Empty\(t, errs\)|require\.Len\(t, errs, 0\)|verifyNonBreaking", body)
            one_check = "singleCheckConfig" in body
            if files["1"] == files["2"]:
                agree = {"none"}
            elif "ERR" in found:
                agree = {"breaking"}
            elif "WARN" in found or not found and not none and "UntilLevel" not in body:
                agree = {"breaking", "unknown"}
            elif one_check:
                # The test runs only one check of oasdiff. The other checks could report changes of any class, so every change that this
                # crate reports agrees with the test.
                agree = {"breaking", "unknown", "compatible"} | ({"none"} if none else set())
            else:
                agree = {"unknown", "compatible"} | ({"none"} if none else set())
            yield test, files["1"], files["2"], agree


def openapi_diff(folder):
    """Yields the tests of openapi-diff that assert one result for two files, in the same form as `oasdiff` does."""
    root = os.path.join(folder, "core/src/test")
    os.chdir(os.path.join(root, "resources"))
    agree = {
        "assertOpenApiAreEquals": {"none", "compatible"},
        "assertOpenApiBackwardCompatible": {"none", "compatible", "unknown"},
        "assertOpenApiBackwardIncompatible": {"breaking", "unknown"},
        "assertOpenApiChangedEndpoints": {"breaking", "unknown", "compatible"},
    }
    for name in sorted(glob.glob(root + "/java/**/*Test.java", recursive=True)):
        source = open(name).read()
        constants = dict(re.findall(r'String (\w+)\s*=\s*"([^"]+)"', source))
        for kind, arguments in re.findall(r"(assertOpenApi\w+)\(\s*([^;]*?)\);", source, re.S):
            files = [constants.get(one.strip(), one.strip().strip('"')) for one in arguments.split(",")[:2]]
            if kind in agree and len(files) == 2 and all(os.path.isfile(one) for one in files):
                yield f"{kind} {files[0]} {files[1]}", *files, agree[kind]


def suite(name, tests, binaries):
    reasons = json.load(open(os.path.join(HERE, "openapi_diff_disagreement_reasons.json")))[name]
    tests, failed = list(tests), []
    for binary in binaries:
        count, failed = collections.Counter(), []
        for test, old, new, agree in tests:
            report = compared(binary, old, new)
            if isinstance(report, str):
                count["unreadable"] += 1
                found = "unreadable: " + report
            else:
                found = class_of(report)
                count["agree" if found in agree else "disagree"] += 1
            if found not in agree:
                failed.append((test, f"{found}, expected {' or '.join(sorted(agree))}"))
        print(f"{binary}: {len(tests)} tests, {dict(count)}")
    for test, what in failed:
        print(f"  {test}: {what}: {reasons.get(test, 'NO REASON')}")
    unused = set(reasons) - {test for test, _ in failed}
    print("".join(f"  {test}: its reason is not needed\n" for test in sorted(unused)), end="")
    return not unused and all(test in reasons for test, _ in failed)


def pairs(file, binaries):
    good = True
    for binary in binaries:
        summary, witnesses, slowest, faults = collections.Counter(), 0, (0, 0, ""), []
        lines = open(file).read().splitlines()
        for line in lines:
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
            report = compared(binary, *line.split())
            after, taken = resource.getrusage(resource.RUSAGE_CHILDREN), time.time() - start
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            slowest = max(slowest, (taken, used, line))
            if isinstance(report, str):
                faults.append(f"{line}: {report}")
                continue
            summary.update(report["summary"])
            witnesses += sum("witness" in change for change in report["changes"] if change["class"] == "breaking")
        print(f"{binary}: {len(lines)} pairs, {dict(summary)}, {witnesses} breaking changes with a witness")
        print(f"  slowest: {slowest[0]:.1f} s, {slowest[1]:.1f} s of processor time: {slowest[2]}")
        print("".join(f"  {fault}\n" for fault in faults), end="")
        good = not faults and slowest[0] <= 10
    return good


def main():
    kind, source, *binaries = sys.argv[1:] if len(sys.argv) > 3 else sys.exit(__doc__)
    binaries = [os.path.abspath(binary) for binary in binaries]
    kinds = {"oasdiff": oasdiff, "openapi-diff": openapi_diff}
    good = pairs(source, binaries) if kind == "pairs" else suite(kind, kinds[kind](os.path.abspath(source)), binaries)
    sys.exit(0 if good else 1)


main()
