#!/usr/bin/env python3
"""Imports a file into the store `bench`, and reports the rate and the peak memory of the import. Called by `speed_by_shop_size.py` and
`search.sh`.

  benches/timed_import.py BINARY FILE   BINARY is the program counterpart; FILE contains a record in each line"""
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
