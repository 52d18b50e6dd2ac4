#!/usr/bin/env python3
"""Drills on a Citus cluster: many requests, whose statements must run on one node each (one_node_per_statement.py); one worker is killed
under load and started again; a store is moved to the other worker under load.

The stores of the killed worker must be refused with 503 and `Retry-After`, and the others must go on as before. When the worker is back,
its stores must go on without a restart of the server. No acknowledged message may be lost or stored twice, and the numbers of the events
must have no gap. Called by tests/citus.sh.

usage: drill.py BINARY FOLDER COORDINATOR_URL WORKER_FOLDER MESSAGES SECONDS
WORKER_FOLDER has the data of the worker that is killed. MESSAGES is the size of the store that is moved. SECONDS is the length of each
phase of the load."""
import json, os, subprocess, sys, threading, time, types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
from server_and_load import AT, CONVERSATIONS, Load, Server, Sink, records
import one_node_per_statement

BINARY, FOLDER, COORDINATOR, WORKER, MESSAGES, SECONDS = *sys.argv[1:5], int(sys.argv[5]), float(sys.argv[6])
# While a worker is away, a store on another worker may be slower than before by this factor: in the 99th percentile of its response times,
# and in the number of events per second that its webhook receives.
SLOWER = 1.5
# The longest time in seconds until the stores of a worker that is back accept writes.
BACK = 30.0
# How many contacts are searched while the worker is away, each right after it was created.
SEARCHES = 20
# The longest time in seconds of such a search.
SLOWEST_SEARCH = 2.0
# The writes a second to the store that is moved.
RATE = 100
STORES = [f"shop{number}" for number in range(6)]


def messages(count):
    """Yields the import lines of that many messages."""
    for number in range(count):
        yield json.dumps({"kind": "message", "record": {
            "id": f"m{number}", "conversationId": f"c{number % CONVERSATIONS}", "direction": "inbound",
            "text": f"imported {number}", "sentAt": AT, "createdAt": AT, "updatedAt": AT}})


def fill(server):
    """Creates the stores and their keys, and distributes them. Returns the keys by store."""
    server.run("migrate", "up")
    keys = {}
    for store in STORES:
        server.run("store", "create", "--id", store, "--name", store)
        lines = [*records(), *map(json.dumps, one_node_per_statement.RECORDS), *(messages(MESSAGES) if store == STORES[0] else ())]
        server.run("import", "--store", store, "-", input="\n".join(lines) + "\n")
        keys[store] = server.run("key", "create", "--store", store, "--name", "k", "--scopes", one_node_per_statement.SCOPES).strip()
    server.run("scale", "distribute")
    return keys


def nodes(server):
    """Returns the node of each store."""
    return {one["store"]: one["node"] for one in map(json.loads, server.run("scale", "status").splitlines())}


def load_on(server, keys, store, writers=2, readers=1):
    return Load(types.SimpleNamespace(key=keys[store], port=server.port), writers, readers)


def p99(times, since, until):
    """Returns the 99th percentile of the requests that were answered in an interval, in milliseconds, and their number."""
    seconds = sorted(took for at, took in times if since <= at < until)
    return (1000 * seconds[len(seconds) * 99 // 100] if seconds else float("inf")), len(seconds)


def as_postgres(*command):
    if os.geteuid() != 0: return list(command)
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--", *command]


def kill_worker():
    """Kills all processes of the worker. Returns the command line that starts it again."""
    with open(os.path.join(WORKER, "data", "postmaster.opts")) as file: command = file.read().strip()
    with open(os.path.join(WORKER, "data", "postmaster.pid")) as file: pid = int(file.readline())
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    subprocess.run(["kill", "-KILL", str(pid), *children], stderr=subprocess.DEVNULL)
    return command


def start_worker(command):
    log = open(os.path.join(WORKER, "postgres.log"), "ab")
    subprocess.Popen(as_postgres("sh", "-c", f"exec {command}"), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def losses(server, store, acknowledged):
    """Returns the numbers of acknowledged messages that are missing, of messages that are stored twice, and of gaps in the events."""
    lines = map(json.loads, server.run("export", "--store", store).splitlines())
    texts = [line["record"].get("text") for line in lines if line["kind"] == "message"]
    kept = set(texts)
    numbers = [json.loads(line)["sequence"] for line in server.run("events", "--store", store).splitlines()]
    gaps = len(set(range(1, len(numbers) + 1)) ^ set(numbers))
    return sum(text not in kept for text in acknowledged), len(texts) - len(kept), gaps


def searched(server, key, count):
    """Creates contacts, and searches for each. Returns how many searches found the contact, and the slowest in seconds."""
    found, slowest = 0, 0.0
    for number in range(count):
        name = f"Wanted{number}x{time.monotonic_ns()}"
        status, answer = one_node_per_statement.post(server.port, key, "/v1/contacts", {"firstName": name})
        if status != 200: raise RuntimeError(f"the contact was not created: {status} {answer[:200]}")
        began = time.monotonic()
        status, answer = one_node_per_statement.post(server.port, key, "/v1/contacts/list", {"search": name})
        slowest = max(slowest, time.monotonic() - began)
        found += status == 200 and name.encode() in answer
    return found, slowest


def worker_killed(server, keys, port, sinks):
    """Kills the worker and starts it again, under load on one of its stores and on one of another worker."""
    where = nodes(server)
    here = [store for store in STORES if where[store].endswith(f":{port}")]
    there = [store for store in STORES if store not in here]
    if not here or not there: raise RuntimeError(f"all stores are on one worker: {where}")
    sink = sinks[there[-1]]
    delivered = len(sink.seen)
    hit, other = load_on(server, keys, here[-1]), load_on(server, keys, there[-1])
    began = time.monotonic()
    time.sleep(SECONDS)
    killed = time.monotonic()
    delivered = len(sink.seen) - delivered
    command = kill_worker()
    # Requests that were in flight at the kill may still be answered.
    time.sleep(1)
    quiet = time.monotonic()
    before = (len(hit.acknowledged), hit.refused, len(sink.seen))
    found, slowest = searched(server, keys[there[-1]], SEARCHES)
    refused_search = one_node_per_statement.post(server.port, keys[here[-1]], "/v1/contacts/list", {"search": "C 1"})[0]
    time.sleep(SECONDS)
    refused, acknowledged = hit.refused - before[1], len(hit.acknowledged) - before[0]
    back = time.monotonic()
    rates = delivered / (killed - began), (len(sink.seen) - before[2]) / (back - quiet)
    start_worker(command)
    again = hit.writes_again(back, patience=2 * BACK)
    time.sleep(2)
    found_again = searched(server, keys[here[-1]], SEARCHES)[0] if again is not None else 0
    for load in (hit, other): load.stop()
    (calm, _), (rough, answers) = p99(other.times, began, killed), p99(other.times, quiet, back)
    lost = [sum(parts) for parts in zip(losses(server, here[-1], hit.acknowledged), losses(server, there[-1], other.acknowledged))]
    wrong = [*hit.wrong, *other.wrong]
    for line in wrong[:5]: print(f"wrong: {line}")
    print(f"worker killed: its store was refused {refused} times (503, Retry-After), {acknowledged} writes acknowledged meanwhile; the "
          f"next write after the start {again if again is None else round(again, 1)} s")
    print(f"  the other store: {answers} answers, {other.refused} refused, p99 {calm:.1f} ms before and {rough:.1f} ms while it was away")
    print(f"  the other store's webhook received {rates[0]:.0f} events a second before and {rates[1]:.0f} while the worker was away")
    print(f"  {len(hit.acknowledged) + len(other.acknowledged)} acknowledged, {lost[0]} lost, {lost[1]} twice, {lost[2]} gaps in the "
          f"events, {len(wrong)} wrong answers")
    print(f"  {found} of {SEARCHES} searches in the other store found what was just written, the slowest after {1000 * slowest:.0f} ms; a "
          f"search in its store: {refused_search}, and {found_again} of {SEARCHES} found it afterwards", flush=True)
    slower = rough > SLOWER * calm
    if slower: print(f"the other store was more than {SLOWER} times slower")
    searches = found == found_again == SEARCHES and refused_search == 503
    went_on = other.refused == other.unanswered == 0 and slowest < SLOWEST_SEARCH and not slower and again is not None and again < BACK
    return searches and went_on and rates[1] * SLOWER >= rates[0] > 0 and refused > 0 and acknowledged == 0 and not any(lost) and not wrong


class PacedLoad(Load):
    """A load whose writers together send RATE writes a second."""

    def write(self, n):
        began, i = time.monotonic(), 0
        while self.going:
            i += 1
            time.sleep(max(0.0, began + i * self.writers / RATE - time.monotonic()))
            text = f"w{n}-{i}-{time.monotonic_ns()}"
            self.ask("POST", "/v1/messages", {"conversationId": f"c{(n + i) % CONVERSATIONS}", "text": text}, text)


def store_moved(server, keys):
    """Moves the large store to the other worker while it is written to."""
    store = STORES[0]
    source = nodes(server)[store]
    load = PacedLoad(types.SimpleNamespace(key=keys[store], port=server.port), 8, 1)
    time.sleep(SECONDS / 2)
    began = time.monotonic()
    said = subprocess.run([BINARY, "scale", "move", "--store", store], env=server.env, capture_output=True, text=True)
    took = time.monotonic() - began
    if said.returncode: raise RuntimeError(f"the store was not moved: {said.stderr}")
    time.sleep(SECONDS / 2)
    load.stop()
    at = sorted(load.acknowledged.values())
    pause = max((after - before for before, after in zip(at, at[1:])), default=float("inf"))
    lost, twice, gaps = losses(server, store, load.acknowledged)
    target = nodes(server)[store]
    for line in load.wrong[:5]: print(f"wrong: {line}")
    print(f"store moved: {MESSAGES} messages from {source} to {target} in {took:.1f} s; {len(load.acknowledged)} writes acknowledged, "
          f"{len(load.acknowledged) / (at[-1] - at[0]):.0f} a second, {load.refused} refused, longest pause {pause:.2f} s; {lost} lost, "
          f"{twice} twice, {gaps} gaps in the events, {len(load.wrong)} wrong answers", flush=True)
    return source != target and not (lost or twice or gaps or load.wrong)


def main():
    with open(os.path.join(WORKER, "data", "postmaster.pid")) as file: port = file.read().split("\n")[3]
    server = Server(BINARY, COORDINATOR, FOLDER, env={"COUNTERPART_ALLOW_PRIVATE_TARGETS": "true"})
    keys = fill(server)
    server.key = keys[STORES[0]]
    sinks = {store: Sink() for store in STORES}
    for store, sink in sinks.items():
        server.run("webhook", "create", "--allow-private-targets", "--store", store, "--url", sink.url, "--events", "message.sent")
    server.start()
    try:
        outcomes = [one_node_per_statement.check(server, list(keys.values()), COORDINATOR), worker_killed(server, keys, port, sinks),
                    store_moved(server, keys)]
    finally:
        server.kill()
    return 0 if all(outcomes) else 1


if __name__ == "__main__": sys.exit(main())
