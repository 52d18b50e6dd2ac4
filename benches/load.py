#!/usr/bin/env python3
"""Imports a file into the store `bench`, and reports the rate and the peak memory. Called by `cases.py` and `search.sh`."""
import os, subprocess, sys, time


def load(binary, lines, env=None):
    started = time.time()
    process = subprocess.Popen([binary, "import", "--store", "bench", str(lines)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode: sys.exit("the import failed")
    took = time.time() - started
    records = sum(1 for _ in open(lines))
    return f"import: {records:,} records in {took:.1f} s, {records / took:,.0f} a second, in at most {used.ru_maxrss / 1024:.0f} MB"


if __name__ == "__main__": print(load(*sys.argv[1:3]))
