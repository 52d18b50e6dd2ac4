#!/usr/bin/env python3
"""Benchmark of reads, filters and sends by the size of the data. It is run by `speed_by_shop_size.sh`, whose header describes the usage."""
import argparse, http.client, itertools, json, os, pathlib, random, re, shutil, signal, statistics, subprocess, sys, tempfile, time
from urllib.parse import urlsplit
from timed_import import load

HERE = pathlib.Path(__file__).resolve().parent
TICK = 1000 / os.sysconf("SC_CLK_TCK")
LIST = "/v1/tickets/list?pageSize=20"


def shop(tickets, write):
    """Writes import lines of a shop with this number of tickets, the same on every run. Each ticket has a message, and a fifth of the
    tickets are open. Each field filter of `FILTERS`, and the label filter, matches a fifth of the tickets."""
    r = random.Random(7).random
    conversations = max(1, tickets * 8 // 10)

    def put(kind, /, **record): write('{"kind":"%s","record":%s}\n' % (kind, json.dumps(record)))
    def at(second): return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_735_689_600 + second))

    put("role", id="owner", name="Owner", kind="owner")
    put("user", id="seat", userId="0a000000-0000-4000-8000-000000000001", name="Owner", roleId="owner")
    put("account", id="widget", channel="widget", name="Chat", status="healthy")
    for n in range(5):
        put("label", id="label-%d" % n, label="Label %d" % n, color="#336699", createdAt=at(0), updatedAt=at(0))
    for name, kind, data in (("region", "text", "string"), ("score", "integer", "number"), ("tier", "text", "string")):
        put("ticketField", id=name, name=name, displayType=kind, dataType=data, sortOrder=1, isRequired=False, active=True, createdAt=at(0), updatedAt=at(0))
    for n in range(conversations):
        put("contact", id="k%d" % n, fullName="Contact %d" % n, firstName="Contact", phone="+668%08d" % n, createdAt=at(n), updatedAt=at(n))
        put("conversation", id="c%d" % n, channel="widget", accountId="widget", contactId="k%d" % n, displayName="Contact %d" % n, referenceId="r%d" % n,
            labelIds=["label-%d" % int(r() * 5)], isSpam=False, createdAt=at(n), updatedAt=at(n))
    for n in range(tickets):
        # Only the last ticket of a conversation may be open.
        opened, is_open = n * 25, n >= tickets - conversations and r() < 0.25
        fields = {"region": "%s-%d" % ("north south east west centre".split()[int(r() * 5)], n % 1000), "score": int(r() * 100),
                  "tier": "gold silver bronze iron tin".split()[n % 5]}
        ended = {} if is_open else {"closedAt": at(opened + 20)}
        put("ticket", id="t%d" % n, conversationId="c%d" % (n % conversations), contactId="k%d" % (n % conversations), accountId="widget", channel="widget",
            isOpen=is_open, isSpam=False, isFollowUp=False, openedAt=at(opened), createdAt=at(opened), updatedAt=at(opened), ticketFields=fields, **ended)
        put("message", id="m%d" % n, conversationId="c%d" % (n % conversations), direction="inbound", sentAt=at(opened + 1), text="Where is my order %d?" % n)


def field(name, operator, **operand): return {"ticketFieldId": name, "operator": operator, **operand}


# Each entry of FILTERS is a case: two filters of ticket fields, which are combined with the label filter. Each filter matches a fifth of
# the tickets. Together, the cases use every kind of operator that can use an index: prefixes, substrings, ranges and single values.
LABEL = {"operator": "contains_any", "labelIds": ["label-3"]}
NORTH, LOW = field("region", "starts_with", value="north"), field("score", "between", min=0, max=19)
FILTERS = {
    "prefix and range": [NORTH, LOW],
    "contains and below": [field("region", "text_contains", value="orth"), field("score", "less_than", value=20)],
    "prefix and equality": [NORTH, field("tier", "equal", value="gold")],
    "prefix and one of": [NORTH, field("score", "is_one_of", value=list(range(20)))],
}


def processes(roots):
    """Returns these processes and all their descendants."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try: children.setdefault(int(pathlib.Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[1]), []).append(int(pid))
        except OSError: pass
    found, todo = [], list(roots)
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def cpu(roots):
    """Returns the user and system time of the processes in milliseconds, including that of ended children."""
    ticks = 0
    for pid in processes(roots):
        try: ticks += sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError: pass
    return ticks * TICK


def rest(roots):
    """Waits until the processes are idle, so that deferred work is measured in the round that caused it."""
    last = cpu(roots)
    for _ in range(100):
        time.sleep(0.2)
        now = cpu(roots)
        if now - last < 2 * TICK: return
        last = now


def memory(pid):
    """Waits 5 seconds, in which an idle process releases temporary memory, such as that of its start. Returns the memory of the process."""
    time.sleep(5)
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    anonymous, whole = (int(re.search(name + r":\s+(\d+)", status)[1]) / 1024 for name in ("RssAnon", "VmRSS"))
    return f"{anonymous:.0f} MB anonymous, {whole:.0f} MB in all"


class Shop:
    """A server of one build on a database with this number of tickets."""

    def __init__(self, args, binary, tickets, scratch):
        self.tickets, self.notes = tickets, []
        self.folder = scratch / f"{tickets}_{'current' if binary == args.binary else 'other'}"
        self.folder.mkdir()
        self.database = None
        url = f"sqlite://{self.folder}/counterpart.db"
        if args.postgres:
            self.database, self.server = f"counterpart_cases_{self.folder.name}", args.postgres
            self.sql(f"drop database if exists {self.database}", f"create database {self.database}")
            url = args.postgres.rsplit("/", 1)[0] + "/" + self.database
        self.env = dict(os.environ, DATABASE_URL=url, COUNTERPART_INDEX_DIR=str(self.folder / "index"))
        self.binary = binary
        self.run("store", "create", "--id", "bench", "--name", "Bench")
        lines = self.folder / "shop.ndjson"
        with open(lines, "w") as file: shop(tickets, file.write)
        self.notes.append(load(self.binary, lines, self.env))
        lines.unlink()
        if args.postgres: self.sql("vacuum analyze", database=url)
        self.key = self.run("key", "create", "--store", "bench", "--name", "bench", "--scopes", "tickets:read,messages:read,messages:write").strip()
        self.run("reindex")
        self.start(args, url)

    def start(self, args, url):
        out = open(self.folder / "out", "w+")
        begun = time.perf_counter()
        self.process = subprocess.Popen([self.binary, "serve", "--listen", "127.0.0.1:0"], env=self.env, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        while True:
            if self.process.poll() is not None: sys.exit((self.folder / "out").read_text())
            if found := re.search(r"listening on (\S+)", (self.folder / "out").read_text()): break
            time.sleep(0.002)
        self.url = found[1]
        while self.call("GET", "/readyz")[0] != 200: time.sleep(0.002)
        ready = (time.perf_counter() - begun) * 1000
        rest([self.process.pid])
        self.notes.append(f"ready after {ready:.0f} ms; idle {memory(self.process.pid)}")
        self.roots = [self.process.pid]
        if args.postgres:
            postmaster = self.sql("select setting from pg_settings where name = 'data_directory'").strip()
            self.roots.append(int(pathlib.Path(postmaster, "postmaster.pid").read_text().split()[0]))

    def sql(self, *statements, database=None):
        commands = [part for statement in statements for part in ("-c", statement)]
        return subprocess.run(["psql", database or self.server, "-XAtq", *commands], check=True, capture_output=True, text=True).stdout

    def run(self, *arguments):
        done = subprocess.run([self.binary, *arguments], env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode: sys.exit(f"counterpart {' '.join(arguments)}: {done.stderr[-2000:]}")
        return done.stdout

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request(method, path, body and json.dumps(body), {"x-api-key": self.key, **({"content-type": "application/json"} if body is not None else {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally: connection.close()

    def deep(self):
        """Returns the cursor after 50,000 closed tickets, or after seven tenths of the number of tickets, whichever is less."""
        cursor, seen = "", 0
        depth = min(50_000, self.tickets * 7 // 10)
        while seen < depth:
            code, headers, body = self.call("POST", "/v1/tickets/list?pageSize=50" + (cursor and "&cursor=" + cursor), {"statuses": ["closed"]})
            if code != 200: sys.exit(f"{code} {body[:300]}")
            seen += len(json.loads(body)["data"])
            cursor = headers["x-pagination-next-cursor"]
        return cursor

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        if self.database: self.sql(f"drop database {self.database} with (force)")


def wrk(shop, case, seconds, connections, seed):
    rest(shop.roots)
    before = cpu(shop.roots)
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s", "-s", str(HERE / "speed_by_shop_size.lua"), shop.url, "--", shop.key, str(seed), str(shop.tickets), *case],
                          capture_output=True, text=True)
    rest(shop.roots)
    result = re.search(r"^RESULT (.*)", done.stdout, re.M)
    if not result: sys.exit(done.stdout + done.stderr)
    requests, took, p50, p99, bad = map(float, result[1].split())
    if bad or not requests: sys.exit(f"{case}: {bad:.0f} of {requests:.0f} answers were no 200")
    return {"cpu": (cpu(shop.roots) - before) / requests, "rate": requests / took, "p50": p50, "p99": p99}


def answers(shop, case, rows):
    """Checks that the response is complete, since an incomplete response must not be measured."""
    method, path, *body = (part.replace("%d", "0").replace("%u", "0") for part in case)
    code, _, answer = shop.call(method, path, json.loads(body[0]) if body else None)
    data = json.loads(answer).get("data") if code == 200 else None
    if code != 200 or rows != (len(data) if isinstance(data, list) else 1): sys.exit(f"{case}: {rows} rows were expected, {code} {answer[:300]} is the answer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--sizes", default="20000,100000")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--postgres")
    parser.add_argument("--against", help="another build, for which the ratio of the CPU time is printed")
    parser.add_argument("--only", default="", help="only cases whose names contain one of these texts, separated by commas, and the list for comparison")
    args = parser.parse_args()
    revision = subprocess.run([args.binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{revision}, {'PostgreSQL' if args.postgres else 'SQLite'}, {os.cpu_count()} cores, {args.rounds} rounds of {args.seconds} s\n", flush=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="counterpart-cases-"))
    shops = []
    try:
        for size in args.sizes.split(","):
            for binary in filter(None, [args.binary, args.against]):
                shops.append(Shop(args, binary, int(size), scratch))
                print(f"{int(size):,} tickets: " + "; ".join(shops[-1].notes), flush=True)
        others = {shop.tickets: number for number, shop in enumerate(shops) if shop.binary == args.against}
        if others: print("\nFor each number of tickets: this build, then the other; in brackets the medians of the CPU time as a multiple of the other's.")
        print("\n| Case | " + " | ".join(f"{shop.tickets:,}: CPU ms, p50 / p99 ms, a second" for shop in shops) + " | grows by | of the list |\n|---|" + "---|" * (len(shops) + 2), flush=True)
        cases = {"get": lambda _: ("GET", "/v1/tickets?ticketId=t%d"), "list": lambda _: ("POST", LIST, "{}")}
        cases["deep page"] = lambda shop: ("POST", "/v1/tickets/list?pageSize=50&cursor=" + shop.deep(), '{"statuses":["closed"]}')
        cases["its first page"] = lambda _: ("POST", "/v1/tickets/list?pageSize=50", '{"statuses":["closed"]}')
        for name, filters in FILTERS.items():
            body = json.dumps({"advancedFilters": {"ticketFields": filters, "labels": LABEL}})
            cases[f"filters: label, {name}"] = lambda _, body=body: ("POST", LIST, body)
            # In revision A, the first page has the total. To find the cheapest index, the server first counts the tickets that fulfil each
            # condition of the filter, up to a limit. If a condition exceeds the limit, the server remembers that for a minute, and does not
            # count its tickets again. `%u` makes the range differ in each request, so that its tickets are counted every time.
            if "revision A" in revision and LOW in filters: cases["filters: the same, counted anew"] = lambda _, body=body: ("POST", LIST, body.replace('"min": 0', '"min": -%u'))
        cases["insert"] = lambda _: ("POST", "/v1/messages", '{"conversationId":"c%d","text":"Where is my package? It is late, please help"}')
        wanted = {name: [of(shop) for shop in shops] for name, of in cases.items() if name == "list" or any(part in name for part in args.only.split(","))}
        # Each round measures all reads, so that compared figures are from the same minute. The sends follow after the last round of reads,
        # since they change what reads return.
        groups = [[name for name in wanted if name != "insert"], [name for name in wanted if name == "insert"]]
        measured = {name: [[] for _ in shops] for name in wanted}
        for names in groups:
            for name in names:
                for shop, request in zip(shops, wanted[name]): answers(shop, request, 1 if name in ("get", "insert") else 50 if name.endswith("page") else 20)
            for number, name in itertools.product(range(-1, args.rounds), names):
                # Every second round measures the servers in reverse order. So work that a measurement leaves behind, such as a checkpoint,
                # slows down each of the two builds equally often.
                for shop, request, rounds in list(zip(shops, wanted[name], measured[name]))[::1 if number % 2 else -1]:
                    # Round -1 is a warm-up of `warm` seconds. Sends need a longer one: at 1,000,000 tickets, the first 20,000 sends split
                    # the index pages that the import filled.
                    warm = 4 if name == "insert" else 1
                    one = wrk(shop, request, warm if number < 0 else args.seconds, 32 if name == "insert" else args.connections, number + 2)
                    if number >= 0: rounds.append(one)
        def ratio(ones, others): return f"{statistics.median(one['cpu'] / other['cpu'] for one, other in zip(ones, others)):.2f}"
        def against(rounds, number):
            other = others.get(shops[number].tickets, number)
            return "" if other == number else f" ({ratio(rounds[number], rounds[other])})"
        own = [number for number, shop in enumerate(shops) if shop.binary == args.binary]
        for name, shops_rounds in measured.items():
            def middle(one, key): return statistics.median(round[key] for round in one)
            cells = [f"{middle(one, 'cpu'):.3f}, {middle(one, 'p50'):.1f} / {middle(one, 'p99'):.1f}, {middle(one, 'rate'):,.0f}{against(shops_rounds, number)}" for number, one in enumerate(shops_rounds)]
            beside = " / ".join(map(ratio, shops_rounds, measured["list"])) if name != "insert" else "–"
            print(f"| {name} | " + " | ".join(cells) + f" | {ratio(shops_rounds[own[-1]], shops_rounds[own[0]])} | {beside} |", flush=True)
        for shop in shops:
            print(f"\n{shop.tickets:,} tickets, afterwards: {memory(shop.process.pid)}")
    finally:
        for shop in shops: shop.stop()
        shutil.rmtree(scratch, ignore_errors=True)


main()
