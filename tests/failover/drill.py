#!/usr/bin/env python3
"""Failover drill: kills the primary of a PostgreSQL server with two hosts again and again, under load.

pg_auto_failover replicates synchronously from the primary to the standby and promotes the standby. Before each kill both hosts are healthy.
After a kill the drill measures the seconds until the next acknowledged write, then starts the killed host, which becomes the standby. At the
end every acknowledged message must be in the database. Called by tests/failover.sh.

usage: drill.py BINARY FOLDER KILLS MONITOR_PORT NAME=PORT NAME=PORT
FOLDER/NAME has the data of the host NAME, whose PostgreSQL listens on PORT. MONITOR_PORT is the port of pg_auto_failover's monitor."""
import json, os, signal, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
from server_and_load import Load, Server

BINARY, FOLDER, KILLS, MONITOR = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
PORTS = dict(pair.split("=") for pair in sys.argv[5:])
# The longest permitted time from a kill until a write is acknowledged, in seconds.
LIMIT = 10.0


def as_postgres(*command):
    if os.geteuid() != 0: return list(command)
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--", *command]


def start(name):
    """Starts pg_auto_failover's keeper of a host, which starts PostgreSQL."""
    with open(os.path.join(FOLDER, f"{name}.log"), "ab") as log:
        command = as_postgres("pg_autoctl", "run", "--pgdata", os.path.join(FOLDER, name))
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def states():
    """Returns the state of each host by name, as the monitor has it. Leaves out a host that is not healthy, or that has not reached the
    state which the monitor assigned to it."""
    query = "SELECT nodename, reportedstate, goalstate, health FROM pgautofailover.node"
    done = subprocess.run(["psql", "-qAtX", "-F", ",", "-c", query, f"postgres://autoctl_node@127.0.0.1:{MONITOR}/pg_auto_failover"],
                          capture_output=True, text=True, timeout=30)
    rows = [line.split(",") for line in done.stdout.split()]
    return {name: reported for name, reported, goal, health in rows if reported == goal and health == "1"}


def healthy(patience=120):
    """Waits until there is a primary with a synchronous standby. Returns the primary's name."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        now = states()
        if sorted(now.values()) == ["primary", "secondary"]:
            return next(name for name, state in now.items() if state == "primary")
        time.sleep(0.2)
    logs = "".join(f"\n{name}.log ends:\n{tail(name)}" for name in PORTS)
    raise RuntimeError(f"the hosts did not become primary and standby within {patience} s: {states()}{logs}")


def tail(name, lines=25):
    with open(os.path.join(FOLDER, f"{name}.log"), errors="replace") as file: return "".join(file.readlines()[-lines:])


def processes(name):
    """Returns the process ids of a host: its keeper and PostgreSQL's first process, which the data folder identifies, and all their
    descendants. pg_autoctl changes the titles of its children, so these are known by their parents alone."""
    data = os.path.join(FOLDER, name)
    found, children = [], {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file: command = file.read().decode(errors="replace").split("\0")
            with open(f"/proc/{pid}/stat") as file: parent = int(file.read().rpartition(")")[2].split()[1])
            inside = os.readlink(f"/proc/{pid}/cwd") == data
        except OSError: continue
        children.setdefault(parent, []).append(int(pid))
        if inside or (data in command and "drill.py" not in " ".join(command)): found.append(int(pid))
    for pid in found: found.extend(child for child in children.get(pid, []) if child not in found)
    return found


def kill(name):
    """Kills the keeper and PostgreSQL of a host, as if its machine had stopped. First stops the processes with SIGSTOP, so that none of them
    starts another one meanwhile. Does this three times, to find children that had only just begun."""
    for _ in range(3):
        victims = processes(name)
        for action in (signal.SIGSTOP, signal.SIGKILL):
            for pid in victims:
                try: os.kill(pid, action)
                except ProcessLookupError: pass
        time.sleep(0.02)


def main():
    hosts = ",".join(f"127.0.0.1:{port}" for port in PORTS.values())
    primary = healthy()
    subprocess.run(["psql", "-qX", "-c", "CREATE DATABASE shop", f"postgres://postgres@127.0.0.1:{PORTS[primary]}/postgres"], check=True)
    server = Server(BINARY, f"postgres://postgres@{hosts}/shop", FOLDER)
    server.fill()
    load = Load(server.start())
    times = []
    try:
        for number in range(1, KILLS + 1):
            primary = healthy()
            if load.writes_again(time.monotonic()) is None: raise RuntimeError("no write was acknowledged before the kill")
            kill(primary)
            killed = time.monotonic()
            seconds = load.writes_again(killed, patience=60)
            if seconds is None: raise RuntimeError(f"kill {number}: no write was acknowledged within 60 s; {server.tail()}")
            times.append(seconds)
            print(f"kill {number} of {KILLS} ({primary}): a write was acknowledged after {seconds:.2f} s", flush=True)
            start(primary)
        healthy()
        load.stop()
        if not server.alive(): raise RuntimeError(f"the server ended by itself: {server.tail()}")
        texts = [text for text in server.exported().values() if text is not None]
        kept = set(texts)
    finally:
        load.going = False
        server.kill()
    lost = [text for text in load.acknowledged if text not in kept]
    twice = len(texts) - len(kept)
    for line in load.wrong[:5]: print(f"wrong: {line}")
    times.sort()
    print(f"failover: {KILLS} kills of the primary, {len(load.acknowledged)} acknowledged, {len(lost)} lost, {twice} stored twice, {len(load.wrong)} wrong answers, "
          f"{load.refused} refused; the next write was acknowledged after {times[0]:.1f} / {times[len(times) // 2]:.1f} / {times[-1]:.1f} s "
          "(minimum / median / maximum)")
    return 1 if lost or twice or load.wrong or times[-1] > LIMIT else 0


if __name__ == "__main__": sys.exit(main())
