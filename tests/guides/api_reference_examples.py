#!/usr/bin/env python3
"""Runs every curl line of /docs and /settings/docs on a demo store. The examples were recorded in another store. So an operation must
respond with 200, or with an error that comes from a difference between the two stores, for example that a record does not exist.

    api_reference_examples.py BINARY
"""
import collections, html, json, os, pathlib, re, subprocess, sys, tempfile

BINARY = pathlib.Path(sys.argv[1]).resolve()
# The error messages that an example may get here. The examples were recorded in another store, where they succeeded.
ELSEWHERE = re.compile(r"in this store|of the store|does not exist|it changed since|was changed|not kept|sends no e-mail|no sandbox|already|used up|is disabled")
# The operations that must be refused, with the status: the link in the example of `openSession` is not valid, and the snooze in the
# example of `snoozeTicket` ends before today.
REFUSED = {"openSession": "401", "snoozeTicket": "400"}
# The operation that comes last, because it makes the credential of the other requests invalid.
LAST = ["endSession"]


def lines(page):
    """Returns the curl lines of a page, by operation."""
    found = {}
    for operation, section in re.findall(r'<section[^>]* id="(\w+)"[^>]*>(.*?)</section>', page, re.S):
        line = re.search(r'<pre[^>]*aria-label="Request:[^"]*"[^>]*><code>(.*?)</code>', section, re.S)
        if line: found[operation] = html.unescape(line[1])
    return found


def main(folder):
    demo = subprocess.Popen([BINARY, "demo", "--listen", "127.0.0.1:0", "--keep", f"{folder}/demo.db"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        text = ""
        while not re.search(r"^Settings ", text, re.M):
            line = demo.stdout.readline()
            if not line: sys.exit(f"the demo ended:\n{text}")
            text += line
        url = re.search(r"^Base URL +(\S+)/v1$", text, re.M)[1]
        env = {**os.environ, "DATABASE_URL": f"sqlite://{folder}/demo.db", "COUNTERPART_URL": url, "COUNTERPART_KEY": re.search(r"cp_\w+", text)[0]}
        owner = "5eed0000-0000-4000-8000-000000000001"
        token = subprocess.run([BINARY, "settings", "token", "--store", "demo", "--user", owner], env=env, capture_output=True, text=True, check=True)
        env["COUNTERPART_TOKEN"] = token.stdout.strip()
        faults, statuses = [], collections.Counter()
        for page, least in [("/docs", 20), ("/settings/docs", 45)]:
            of_page = lines(subprocess.run(["curl", "-sS", url + page], capture_output=True, text=True, check=True).stdout)
            if len(of_page) < least: faults.append(f"{page} has only {len(of_page)} requests")
            # Reads come first, since a write may remove records that they read.
            for operation, line in sorted(of_page.items(), key=lambda one: (one[0] in LAST, not re.match("list|get", one[0]))):
                done = subprocess.run(["bash", "-u", "-c", f"{line} -sS -o {folder}/answer -w '%{{http_code}}'"], env=env, capture_output=True, text=True)
                answer = pathlib.Path(folder, "answer").read_text()
                statuses[done.stdout] += 1
                message = "" if done.stdout == "200" else json.loads(answer)["error"]["message"]
                if operation in REFUSED:
                    if done.stdout != REFUSED[operation]: faults.append(f"{page}#{operation} is no longer refused")
                elif done.stdout != "200" and not (done.stdout in ("404", "409", "410") and ELSEWHERE.search(message)):
                    faults.append(f"{page}#{operation}: {done.stdout} {done.stderr}{message}\n  {line}")
    finally:
        demo.terminate()
        demo.wait(30)
    if faults: sys.exit("\n".join(faults))
    told = ", ".join(f"{count} times {status}" for status, count in sorted(statuses.items()))
    print(f"{statuses.total()} requests of the reference pages, run with curl: {told}")


with tempfile.TemporaryDirectory() as folder: main(folder)
