#!/usr/bin/env python3
"""Noisy-neighbour benchmark. It is run by `noisy_neighbours.sh`, whose header describes the usage."""
import argparse, collections, http.client, json, multiprocessing, os, pathlib, re, selectors, shutil, signal, socket, subprocess, sys, tempfile, threading, time
from urllib.parse import urlsplit, urlunsplit

CONNECTIONS, UNTAKEN, PAUSE = 64, 12, 0.01
LONG, MAIL, MANY = 64 * 1024, 1000 * 1000, 20_000
SCOPES = "tickets:read,tickets:write,conversations:read,contacts:read,contacts:write,messages:read,messages:write"


def lines(write, noisy):
    """Writes import lines: some tickets for the quiet store; for the noisy store also texts of the maximum length, and many records to
    scan."""
    def put(kind, /, **record): write(json.dumps({"kind": kind, "record": record}) + "\n")
    def at(second): return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_735_689_600 + second))
    put("role", id="owner", name="Owner", kind="owner")
    put("user", id="seat", userId="0a000000-0000-4000-8000-000000000001", name="Owner", roleId="owner")
    put("account", id="widget", channel="widget", name="Chat", status="healthy")
    put("account", id="mail", channel="gmail", name="Mail", status="healthy")
    for name in ("one", "two", "three", "four"):
        put("ticketField", id=name, name=name, displayType="text", dataType="string", sortOrder=1, isRequired=False, active=True, createdAt=at(0), updatedAt=at(0))
    for n in range(MANY if noisy else 100):
        account = "mail" if n == 1 else "widget"
        channel = "gmail" if n == 1 else "widget"
        put("contact", id=f"k{n}", fullName=f"Contact number {n}", firstName="Contact", email=f"contact{n}@example.com", createdAt=at(n), updatedAt=at(n))
        put("conversation", id=f"c{n}", channel=channel, accountId=account, contactId=f"k{n}", displayName=f"Contact {n}", referenceId=f"r{n}", labelIds=[],
            isSpam=False, createdAt=at(n), updatedAt=at(n))
        fields = {"one": f"a value of ticket {n}"}
        if noisy and n >= MANY - 200: fields = {name: "long value " * (LONG // 11) for name in ("one", "two", "three", "four")}
        put("ticket", id=f"t{n}", conversationId=f"c{n}", contactId=f"k{n}", accountId=account, channel=channel, isOpen=True, isSpam=False, isFollowUp=False,
            openedAt=at(n), createdAt=at(n), updatedAt=at(n), ticketFields=fields)
        put("message", id=f"m{n}", conversationId=f"c{n}", direction="inbound", sentAt=at(n + 1), text=f"Where is my order {n}?")
    for n in range(100 if noisy else 0):
        put("comment", id=f"x{n}", conversationId="c0", text="long comment " * (LONG // 13), createdBy="0a000000-0000-4000-8000-000000000001", sentAt=at(n))
        put("message", id=f"e{n}", conversationId="c1", direction="inbound", sentAt=at(n), text="a long mail " * (MAIL // 12))


ALL = json.dumps({"statuses": ["open", "closed"]}).encode()


def cases(revision):
    """Returns the heaviest requests of a revision (A or B) of the API: its longest pages, its searches, and two writes."""
    old = revision == "A"
    page, mails = ("pageSize=50", "pageSize=15") if old else ("pageSize=100", "pageSize=100")
    found = {
        "a page of comments": ("GET", f"/v1/messages/internal-comments?conversationId=c0&{page}", None),
        "a page of e-mails": ("GET", f"/v1/messages?conversationId=c1&{mails}", None),
        "a page of tickets with long values": ("POST", f"/v1/tickets/list?{page}", ALL),
        "a filter that looks through every ticket": ("POST", f"/v1/tickets/list?{page}", json.dumps({"statuses": ["open", "closed"], "advancedFilters": {"ticketFields": [
            {"ticketFieldId": "one", "operator": "text_contains", "value": "of nothing"}]}}).encode()),
        "a search for contacts in the list": ("POST", f"/v1/contacts/list?{page}", json.dumps({"search": "contact"}).encode()),
        "a page of contacts with its total": ("POST", f"/v1/contacts/list?{page}&page=1", b"{}"),
        "a search for messages": ("GET", "/v1/messages/search?query=order", None),
        "a search for contacts": ("GET", "/v1/contacts/search?query=contact", None),
        "comments of 64 KiB": ("POST", "/v1/messages/internal-comments", json.dumps({"conversationId": "c2", "text": "y" * LONG}).encode()),
        "creation of contacts": ("POST", "/v1/contacts", json.dumps({"firstName": "New"}).encode()),
    }
    return {name: case for name, case in found.items() if not (old and "/search?" in case[1])}


def request(method, path, body, key):
    head = f"{method} {path} HTTP/1.1\r\nhost: bench\r\nx-api-key: {key}\r\n"
    if body is not None: head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + (body or b"")


class Caller:
    """A client connection that sends its next request as soon as it has a response."""

    def __init__(self, address, ask):
        self.address, self.ask, self.statuses, self.received = address, ask, collections.Counter(), 0
        self.connect()

    def connect(self):
        self.socket = socket.create_connection(self.address)
        self.left, self.head = None, b""
        self.socket.sendall(self.ask)

    def take(self, buffer):
        try: length = self.socket.recv_into(buffer)
        except OSError: length = 0
        if length == 0:
            self.statuses["closed"] += 1
            self.socket.close()
            return False
        self.received += length
        if self.left is None:
            self.head += bytes(buffer[:length])
            end = self.head.find(b"\r\n\r\n")
            if end < 0: return True
            self.statuses[self.head[9:12].decode()] += 1
            whole = re.search(rb"content-length: (\d+)", self.head, re.I)
            self.left = (int(whole[1]) if whole else 0) + end + 4 - len(self.head)
        else: self.left -= length
        if self.left <= 0:
            self.left, self.head = None, b""
            self.socket.sendall(self.ask)
        return True


def load(address, ask, stop, result):
    """Sends the request `ask` over 64 connections. The process has a low priority, so that it takes little CPU time from the server: the
    clients of a real server run on other machines. After `stop`, puts the number of responses by status, and the number of received bytes,
    into the queue `result`."""
    os.nice(10)
    buffer, chosen, callers = memoryview(bytearray(1 << 20)), selectors.DefaultSelector(), []
    for _ in range(CONNECTIONS):
        callers.append(Caller(address, ask))
        chosen.register(callers[-1].socket, selectors.EVENT_READ, callers[-1])
    while not stop.is_set():
        for key, _ in chosen.select(0.1):
            caller, was = key.data, key.fileobj
            if not caller.take(buffer):
                chosen.unregister(was)
                caller.connect()
                chosen.register(caller.socket, selectors.EVENT_READ, caller)
    result.put((sum((caller.statuses for caller in callers), collections.Counter()), sum(caller.received for caller in callers)))


def untaken(address, ask, stop, result):
    """Opens 12 connections that request a large page and read none of the response. The arguments are those of `load`."""
    sockets = []
    while not stop.is_set():
        while len(sockets) < UNTAKEN:
            sockets.append(socket.create_connection(address))
            sockets[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sockets[-1].sendall(ask)
        time.sleep(0.2)
    result.put((collections.Counter({"untaken": len(sockets)}), 0))


class Server:
    def __init__(self, args, folder):
        self.postgres, self.name = args.postgres, f"counterpart_neighbours_{os.getpid()}"
        url = f"sqlite://{folder}/counterpart.db"
        if self.postgres:
            self.psql(f"create database {self.name}")
            url = urlunsplit(urlsplit(self.postgres)._replace(path="/" + self.name))
        self.env, self.binary = dict(os.environ, DATABASE_URL=url, COUNTERPART_INDEX_DIR=str(folder / "index")), args.binary
        self.keys = {}
        for store in ("quiet", "noisy"):
            self.run("store", "create", "--id", store, "--name", store)
            with open(folder / "lines", "w") as file: lines(file.write, store == "noisy")
            self.run("import", "--store", store, str(folder / "lines"))
            self.keys[store] = self.run("key", "create", "--store", store, "--name", "bench", "--scopes", SCOPES).strip()
        (folder / "lines").unlink()
        if self.postgres: subprocess.run(["psql", url, "-Xqc", "vacuum analyze"], check=True)
        self.run("reindex")
        self.log = folder / "out"
        self.process = subprocess.Popen([self.binary, "serve", "--listen", "127.0.0.1:0"], env=self.env, stdin=subprocess.DEVNULL, stdout=open(self.log, "w"), stderr=subprocess.STDOUT)
        while not (found := re.search(r"listening on http://(\S+):(\d+)", self.log.read_text())):
            if self.process.poll() is not None: sys.exit(self.log.read_text())
            time.sleep(0.05)
        self.address = found[1], int(found[2])
        while self.get("/readyz")[0] != 200: time.sleep(0.1)
        while self.get("/v1/messages/search?query=order", "noisy")[0] == 503: time.sleep(0.1)
        self.revision = self.get("/healthz")[1]["revision"]

    def psql(self, statement): subprocess.run(["psql", self.postgres, "-Xqc", statement], check=True)

    def run(self, *arguments):
        done = subprocess.run([self.binary, *arguments], env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode: sys.exit(f"counterpart {' '.join(arguments)}: {done.stderr[-2000:]}")
        return done.stdout

    def get(self, path, store=None):
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        connection.request("GET", path, headers={"x-api-key": self.keys[store]} if store else {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if path == "/healthz" else None

    def memory(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1024

    def close(self):
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
        if self.postgres: self.psql(f"drop database if exists {self.name} with (force)")


def tickets(server, seconds):
    """Requests one ticket of the quiet store at a time, with pauses of 10 ms. Returns the p50, p99 and maximum latency in milliseconds, and
    the peak memory in MB."""
    took, most, until = [], 0, time.monotonic() + seconds
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    headers = {"x-api-key": server.keys["quiet"]}
    number = 0
    while time.monotonic() < until:
        begun = time.perf_counter()
        connection.request("GET", f"/v1/tickets?ticketId=t{number % 100}", headers=headers)
        answer = connection.getresponse()
        answer.read()
        took.append((time.perf_counter() - begun) * 1000)
        if answer.status != 200: sys.exit(f"the quiet store's ticket was answered with {answer.status}")
        if number % 10 == 0: most = max(most, server.memory())
        number += 1
        time.sleep(PAUSE)
    connection.close()
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100], took[-1], most


def measure(server, seconds, work, ask):
    stop, result = multiprocessing.Event(), multiprocessing.Queue()
    process = multiprocessing.Process(target=work, args=(server.address, ask, stop, result))
    process.start()
    time.sleep(0.5)
    found = tickets(server, seconds)
    stop.set()
    statuses, received = result.get(timeout=60)
    process.join()
    return found, statuses, received


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--postgres")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--only")
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    server = None
    try:
        server = Server(args, folder)
        missed = []
        tickets(server, 1)
        time.sleep(3)
        p50, before, _, rest = tickets(server, args.seconds)
        bound = max(3 * before, 25)
        print(f"alone: p50 {p50:.1f} ms, p99 {before:.1f} ms, {rest:.0f} MB; targets: p99 {bound:.1f} ms, {rest + 256:.0f} MB\n", flush=True)
        print("| One store's key | p50 ms | p99 ms | longest ms | memory above MB | answers a second | MB a second |\n|---|---|---|---|---|---|---|", flush=True)
        asked = {name: request(*case, server.keys["noisy"]) for name, case in cases(server.revision).items()}
        work = [(name, load, ask) for name, ask in asked.items()]
        work.append((f"{UNTAKEN} connections that read no comments", untaken, asked["a page of comments"]))
        work.append((f"{UNTAKEN} connections that read no e-mails", untaken, asked["a page of e-mails"]))
        for name, work, ask in work:
            if args.only and args.only not in name: continue
            (p50, p99, longest, most), statuses, received = measure(server, args.seconds, work, ask)
            rates = ", ".join(f"{status} {count / args.seconds:.0f}" for status, count in sorted(statuses.items()))
            print(f"| {name} | {p50:.1f} | {p99:.1f} | {longest:.0f} | {most - rest:.0f} | {rates} | {received / args.seconds / 1e6:.0f} |", flush=True)
            if refused := set(statuses) - {"200", "429", "untaken", "closed"}: missed.append(f"{name}: answered with {', '.join(sorted(refused))}")
            if p99 > bound: missed.append(f"{name}: a p99 of {p99:.1f} ms")
            if most > rest + 256: missed.append(f"{name}: {most - rest:.0f} MB")
            time.sleep(3)
        if missed: sys.exit("missed: " + "; ".join(missed))
    finally:
        if server: server.close()
        shutil.rmtree(folder)


if __name__ == "__main__": main()
