#!/usr/bin/env python3
"""Checks that the statements of requests run on one node of a Citus cluster each, except for the listed ones.

Citus counts, for each statement, the stores whose node it ran on (`citus_stat_statements`). A statement without a store ran on several nodes.
src/store/SCALING.md lists those that may. Called by tests/citus.sh, after the tests and the drills.

usage: one_node.py COORDINATOR_URL REQUESTS"""
import subprocess, sys

# A part of the text of each statement that may run on several nodes, and where it is.
LISTED = {}


def ask(url, query):
    return subprocess.run(["psql", "-qXAt", "-F", "\t", url, "-c", query], capture_output=True, text=True, check=True).stdout
