"""Pagination test: walks lists (reads all their pages) while writes move rows to other places in the lists and add new rows. Each walk must
show every row that existed at its start exactly once, and no row that was added later. Called by tests/pagination_walks.sh; prints a line
for each list."""
import argparse, http.client, json, os, random, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "faults"))
from server_and_load import AT, STORE, Server

MANY = "k-many"
FIELD = "cf1"


def records(rows):
    def line(sort, **record): return json.dumps({"kind": sort, "record": record})
    yield line("role", id="r1", name="Owner", kind="owner")
    yield line("user", id="u1", userId="0199a000-0000-7000-8000-000000000001", name="Ann", roleId="r1")
    for account in ("a1", "a2"): yield line("account", id=account, channel="widget", name="Chat", status="healthy")
    yield line("contactField", id=FIELD, name="Note", displayType="text", dataType="string", sortOrder=1, active=True)
    yield line("contact", id=MANY, fullName="Many", firstName="Many", createdAt=AT, updatedAt=AT)
    for i in range(rows):
        at = f"2026-01-{1 + i % 28:02}T{i % 24:02}:{i // 24 % 60:02}:00.000Z"
        yield line("contact", id=f"k{i}", fullName=f"C {i}", firstName=f"C {i}", createdAt=at, updatedAt=at)
        # The first 300 conversations belong to the contact `Many`, so that the conversation list of one contact has many pages.
        yield line("conversation", id=f"c{i}", contactId=MANY if i < 300 else f"k{i}", accountId=f"a{1 + i % 2}", channel="widget",
                   referenceId=f"w{i}", displayName=f"C {i}", createdAt=at, updatedAt=at, isSpam=False, labelIds=[])
        yield line("ticket", id=f"t{i}", ticketNumber=str(i + 1), conversationId=f"c{i}", isOpen=True, isSpam=False, isFollowUp=False,
                   openedAt=at, createdAt=at, updatedAt=at, ticketFields={})


class Client:
    def __init__(self, server):
        self.key, self.connection = server.key, http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def call(self, method, path, body=None):
        headers = {"x-api-key": self.key, "content-type": "application/json"}
        self.connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        answer = self.connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())


class Movers:
    """Threads that send messages, and change and create contacts, at `rate` writes a second in total."""

    def __init__(self, server, rows, rate, threads=6):
        self.server, self.rows, self.rate, self.pause = server, rows, rate, threads / rate
        self.began = time.monotonic()
        self.going, self.done, self.wrong = True, 0, []
        # For each created contact, by id: when its request was sent, and when the response arrived.
        self.made = {}
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(threads)]
        for thread in self.threads: thread.start()

    def run(self, n):
        random_, client, due = random.Random(n), Client(self.server), time.monotonic()
        while self.going:
            due = max(due + self.pause, time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))
            try: self.move(random_, client)
            except Exception as error:
                self.wrong.append(repr(error))
                return
            self.done += 1

    def move(self, random_, client):
        what = random_.random()
        # Half of the writes go to a few hundred rows, so these rows move often and the others rarely.
        i = random_.randrange(self.rows) if random_.random() < 0.5 else random_.randrange(min(self.rows, 500))
        if what < 0.7:
            status, _, answer = client.call("POST", "/v1/messages", {"conversationId": f"c{i}", "text": "x"})
        elif what < 0.98:
            status, _, answer = client.call("GET", f"/v1/contacts?contactId=k{i}")
            contact = answer["data"]
            stamp = contact.get("customFieldsUpdatedAt", contact["updatedAt"])
            body = {"contactId": f"k{i}", "contactFieldId": FIELD, "value": str(random_.random()), "updatedAt": stamp}
            status, _, answer = client.call("PATCH", "/v1/contacts/field-values", body)
            if status == 409: return
        else:
            asked = time.monotonic()
            body = {"firstName": f"New {random_.random()}"}
            status, _, answer = client.call("POST", "/v1/contacts", body)
            if status == 200: self.made[answer["data"]["id"]] = (asked, time.monotonic())
        if status != 200: self.wrong.append(f"{status} {json.dumps(answer)[:300]}")

    def let_catch_up(self):
        """Waits, at most half a second, while the writers are behind their rate: the walks use processor time that the writers need."""
        waits = 0
        while waits < 100 and self.done < self.rate * (time.monotonic() - self.began - 0.2):
            time.sleep(0.005)
            waits += 1

    def stop(self):
        self.going = False
        for thread in self.threads: thread.join()


def walk(client, path, body, page_size, movers):
    """Reads all pages of a list. Returns the ids in order, when the first page was requested and arrived, and the number of pages."""
    ids, cursor, began, came, pages = [], "", time.monotonic(), None, 0
    while True:
        query = f"{path}{'&' if '?' in path else '?'}pageSize={page_size}" + (f"&cursor={cursor}" if cursor else "")
        status, headers, answer = client.call("POST" if body is not None else "GET", f"/v1{query}", body)
        if status != 200: raise AssertionError(f"{status} {answer}")
        came = came or time.monotonic()
        ids.extend(row["id"] for row in answer["data"])
        pages += 1
        cursor = headers.get("x-pagination-next-cursor")
        if not cursor: return ids, began, came, pages
        movers.let_catch_up()


def check(name, ids, there, made, began, came):
    if len(ids) != len(set(ids)):
        twice = sorted({one for one in ids if ids.count(one) > 1})[:5]
        raise AssertionError(f"{name}: shown twice: {twice}")
    shown = set(ids)
    missing = [one for one in there if one not in shown]
    if missing: raise AssertionError(f"{name}: not shown: {len(missing)}, such as {missing[:5]}")
    for one, (asked, was_there) in list(made.items()):
        if was_there < began and one not in shown: raise AssertionError(f"{name}: made before, not shown: {one}")
        if asked > came and one in shown: raise AssertionError(f"{name}: made later, shown: {one}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("binary")
    options.add_argument("--database", default="sqlite")
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--walks", type=int, default=1000)
    options.add_argument("--rate", type=int, default=500)
    options.add_argument("--page-size", type=int, default=50)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite://{folder}/walks.db" if given.database == "sqlite" else given.database
        server = Server(given.binary, url, folder)
        server.run("migrate", "up")
        server.run("store", "create", "--id", STORE, "--name", "Shop")
        server.run("import", "--store", STORE, "-", input="\n".join(records(given.rows)) + "\n")
        scopes = "messages:write,tickets:read,contacts:write,conversations:read"
        server.key = server.run("key", "create", "--store", STORE, "--name", "k", "--scopes", scopes).strip()
        server.start()
        try: run(server, given)
        finally: server.stop()


def run(server, given):
    rows = range(given.rows)
    lists = [
        ("tickets", "/tickets/list", {}, [f"t{i}" for i in rows], False),
        ("tickets of an account", "/tickets/list", {"accountIds": ["a1"]}, [f"t{i}" for i in rows if i % 2 == 0], False),
        ("contacts", "/contacts/list", {}, [f"k{i}" for i in rows] + [MANY], True),
        ("conversations", f"/conversations?contactId={MANY}", None, [f"c{i}" for i in range(min(300, given.rows))], False),
    ]
    movers = Movers(server, given.rows, given.rate)
    try:
        began = time.monotonic()
        totals, lock, failures = {}, threading.Lock(), []
        turns = iter([lists[n % len(lists)] for n in range(given.walks)])

        def walker():
            client = Client(server)
            while not failures:
                with lock: one = next(turns, None)
                if one is None: return
                name, path, body, there, grows = one
                try:
                    # The conversation list of one contact is short. With small pages, reading it takes longer, so more rows move meanwhile.
                    ids, asked, came, pages = walk(client, path, body, 10 if body is None else given.page_size, movers)
                    check(name, ids, there, movers.made if grows else {}, asked, came)
                except Exception as error:
                    failures.append(error)
                    return
                with lock:
                    walks, all_pages = totals.get(name, (0, 0))
                    totals[name] = walks + 1, all_pages + pages
                    done = sum(walks for walks, _ in totals.values())
                    if sys.stderr.isatty() and done % 20 == 0: print(f"{done} of {given.walks} walks", file=sys.stderr)

        walkers = [threading.Thread(target=walker) for _ in range(3)]
        for thread in walkers: thread.start()
        for thread in walkers: thread.join()
        took = time.monotonic() - began
    finally:
        movers.stop()
    if failures: raise failures[0]
    if movers.wrong: sys.exit(f"{len(movers.wrong)} writes failed, such as {movers.wrong[0]}")
    for name, (walks, pages) in totals.items(): print(f"{name}: {walks} walks, {pages} pages")
    walks = sum(walks for walks, _ in totals.values())
    print(f"walks: {walks} walks of up to {given.rows:,} rows, {movers.done / took:.0f} writes a second, none wrong")


main()
