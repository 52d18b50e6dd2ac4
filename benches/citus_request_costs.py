#!/usr/bin/env python3
"""Measures what requests cost on each node of a Citus cluster. Called by benches/citus_request_costs.sh.

usage: citus_request_costs.py BINARY FOLDER NODES REQUESTS DATABASE DATA=URL…
DATA is the folder of a node, and URL the address of its server. The first node is the coordinator. For each kind of request, the script
prints what one request costs on each node: the number of statements, the rows that they read or wrote, and the CPU time in milliseconds.
The requests are sent one after the other, to 24 stores in turn. The script first measures the background work of the server, without
requests, and subtracts it."""
import http.client, json, os, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "faults"))
from server_and_load import CONVERSATIONS, Server, records

BINARY, FOLDER, NODES, REQUESTS, DATABASE = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
SERVERS = dict(pair.split("=", 1) for pair in sys.argv[6:6 + NODES])
STORES = [f"shop{number}" for number in range(24)]
# How long the background work of the server is measured, in seconds.
IDLE = 20.0

KINDS = {
    "contact by its id": lambda n: ("GET", f"/v1/contacts?contactId=k{n % CONVERSATIONS}", None),
    "page of 20 messages": lambda n: ("GET", f"/v1/messages?conversationId=c{n % CONVERSATIONS}&pageSize=20", None),
    "list of tickets": lambda n: ("POST", "/v1/tickets/list", {}),
    "send a text": lambda n: ("POST", "/v1/messages", {"conversationId": f"c{n % CONVERSATIONS}", "text": f"text {n}"}),
    "search of contacts": lambda n: ("POST", "/v1/contacts/list", {"search": "C 1"}),
}


def on(url, query):
    address = f"{url.rsplit('/', 1)[0]}/{DATABASE}"
    return subprocess.run(["psql", "-qXAt", "-F", " ", address, "-c", query], capture_output=True, text=True, check=True).stdout.split()


def cpu(folder):
    """Returns the CPU time of a node's processes in seconds, including those that have ended."""
    with open(os.path.join(folder, "data", "postmaster.pid")) as file: postmaster = int(file.readline())
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file: fields = file.read().rpartition(")")[2].split()
        except OSError: continue
        if int(pid) == postmaster: ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster: ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def used():
    """Returns the statements, rows and CPU seconds of each node so far."""
    counted = []
    for folder, url in SERVERS.items():
        statements, rows = map(int, on(url, "SELECT SUM(calls)::bigint, SUM(rows)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid "
                                            "WHERE d.datname = current_database() AND query NOT LIKE '%pg_stat_statements%'"))
        counted.append((statements, rows, cpu(folder)))
    return counted


def difference(before, after): return [tuple(b - a for a, b in zip(*pair)) for pair in zip(before, after)]


def main():
    server = Server(BINARY, f"{next(iter(SERVERS.values())).rsplit('/', 1)[0]}/{DATABASE}", FOLDER)
    server.run("migrate", "up")
    keys = []
    for store in STORES:
        server.run("store", "create", "--id", store, "--name", store)
        server.run("import", "--store", store, "-", input="\n".join(records()) + "\n")
        scopes = "messages:read,messages:write,tickets:read,contacts:read,conversations:read"
        keys.append(server.run("key", "create", "--store", store, "--name", "k", "--scopes", scopes).strip())
    server.run("scale", "distribute")
    server.start()
    time.sleep(3)
    began, before = time.monotonic(), used()
    time.sleep(IDLE)
    idle = [[part / (time.monotonic() - began) for part in node] for node in difference(before, used())]
    print(f"{NODES} nodes, the server's own work, a second on each node: " + "; ".join(f"{s:.1f} statements, {c * 1000:.1f} ms of CPU" for s, _, c in idle))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=40)
    for kind, request in KINDS.items():
        began, before = time.monotonic(), used()
        for number in range(REQUESTS):
            method, path, body = request(number)
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"x-api-key": keys[number % len(STORES)], "content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200: raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]}")
        seconds = time.monotonic() - began
        cost = [[max(0.0, (part - own * seconds) / REQUESTS) for part, own in zip(*pair)] for pair in zip(difference(before, used()), idle)]
        print(f"{NODES} nodes, {kind}: " + "; ".join(f"{s:.1f} statements, {r:.1f} rows, {c * 1000:.2f} ms of CPU" for s, r, c in cost))
    sessions = [on(url, "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()")[0]
                for url in SERVERS.values()]
    print(f"{NODES} nodes, connections of one process of counterpart, on each node: {', '.join(sessions)}", flush=True)
    server.kill()


if __name__ == "__main__": main()
