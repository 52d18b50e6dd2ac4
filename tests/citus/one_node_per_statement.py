"""Drill on a Citus cluster: sends many requests, and checks that each of their statements runs on one node.

Citus counts the statements that it runs. The drill explains each counted statement (SQL: EXPLAIN), with the id of a store as the value of
each text parameter. The plan must have one task. The exceptions are the statements that src/store/SCALING.md lists. Called by drill.py."""
import http.client, json, re, subprocess, threading, time
from server_and_load import AT

REQUESTS = 10_000
CLIENTS = 4

# The statements that need several nodes, as regular expressions for the beginning of their texts. Only the first of them is part of a
# request. The others are background work of the server.
LISTED = [
    # The new changes of all stores, which are read before a search and by the worker of the search index.
    r'SELECT "changes"."position", "changes"."store_id", "changes"."kind", "changes"."record_ids" FROM "changes" WHERE "transaction_id" > ',
    # The time of the last use of each key, which is stored once a minute in a table that each node has.
    r'UPDATE "api_keys" SET "last_used_at"',
    r'SELECT "changes"."position", "changes"."changed_at" FROM "changes"',
    r'SELECT "(outbound|deliveries)"\."due_at" FROM ',
    r'SELECT "position", "store_id", "account_id" FROM "outbound" (?!.* AND "outbound"\."store_id" = \$)',
    r'SELECT "webhooks"\."store_id", "webhooks"\."id" FROM "webhooks" INNER JOIN LATERAL (?!.* AND "deliveries"\."store_id" = \$)',
    r'SELECT "webhooks"\."id" FROM "webhooks" WHERE "webhooks"\."enabled" = ',
    r'SELECT "store_id" FROM "(events|record_changes)" ',
    r"SELECT store_id, name FROM totals ",
    r'SELECT .* FROM "change_feeds" ORDER BY "change_feeds"."store_id"',
    r"SELECT \(SELECT COUNT\(\*\) FROM messages\) ",
    r'SELECT .* FROM "accepted_signatures" WHERE "accepted_signatures"."expires_at" <= ',
]

READS = [
    ("POST", "/v1/tickets/list", {}), ("POST", "/v1/contacts/list", {}), ("POST", "/v1/contacts/list", {"search": "C 1"}),
    ("GET", "/v1/messages?conversationId=c{n}&pageSize=5", None), ("GET", "/v1/contacts?contactId=k{n}", None),
    ("GET", "/v1/conversations?contactId=k{n}&pageSize=5", None), ("GET", "/v1/conversations?conversationId=c{n}", None),
    ("GET", "/v1/tickets?ticketId=t{n}", None),
    ("GET", "/v1/messages/internal-comments?conversationId=c{n}", None), ("GET", "/v1/labels", None), ("GET", "/v1/users", None),
    ("GET", "/v1/teams", None), ("GET", "/v1/tickets/fields", None), ("GET", "/v1/contacts/fields", None),
]
WRITES = [
    ("POST", "/v1/messages", {"conversationId": "c{n}", "text": "text {i}"}),
    ("POST", "/v1/messages/internal-comments", {"conversationId": "c{n}", "text": "comment {i}"}),
    ("PATCH", "/v1/conversations/labels", {"conversationId": "c{n}", "addLabels": ["l0"]}),
    ("PATCH", "/v1/conversations/labels", {"conversationId": "c{n}", "addLabels": ["l1"], "removeLabels": ["l0"]}),
    ("POST", "/v1/conversations/mark-read", {"conversationId": "c{n}"}),
    ("POST", "/v1/contacts", {"firstName": "New {i}"}),
]
# The records that the requests ask for. drill.py imports them into each store, together with the records of `server.records`.
RECORDS = [{"kind": "label", "record": {"id": f"l{n}", "label": f"Label {n}", "color": "#000000"}} for n in range(2)] + [
    {"kind": "ticket", "record": {
        "id": f"t{n}", "conversationId": f"c{n}", "contactId": f"k{n}", "accountId": "a1", "channel": "widget", "isOpen": True,
        "isSpam": False, "isFollowUp": False, "openedAt": AT, "createdAt": AT, "updatedAt": AT}}
    for n in range(8)]
SCOPES = ",".join(f"{noun}:read" for noun in ("messages", "tickets", "contacts", "conversations", "labels", "users", "teams"))
SCOPES += ",messages:write,contacts:write,conversations:write,tickets:write"


# A value for each type of parameter; NULL for the others.
VALUES = {"text": "'shop1'", "bigint": "1", "integer": "1", "boolean": "true", "double precision": "1", "bytea": "'x'"}


def post(port, key, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=40)
    connection.request("POST", path, json.dumps(body), {"x-api-key": key, "content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def await_index(port, key, seconds=120):
    """Waits until the search index is built."""
    end = time.monotonic() + seconds
    while post(port, key, "/v1/contacts/list", {"search": "C 1"})[0] != 200:
        if time.monotonic() > end: raise RuntimeError(f"the search index was not built within {seconds} seconds")
        time.sleep(0.5)


def ask(url, *commands):
    """Runs SQL commands in one session. Returns the output and the error."""
    done = subprocess.run(["psql", "-qXAt0", "-v", "ON_ERROR_STOP=1", url, *(part for one in commands for part in ("-c", one))],
                          capture_output=True, text=True)
    return done.stdout.rstrip("\0\n"), done.stderr


def send(port, keys, client, failed, answered):
    """Sends one client's part of the requests, to the stores in turn. One in four is a write."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=40)
    requests = [WRITES[i // 4 % len(WRITES)] if i % 4 == 0 else READS[i % len(READS)] for i in range(REQUESTS // CLIENTS)]
    for i, (method, path, body) in enumerate(requests):
        fill = lambda text: text.replace("{n}", str(i % 8)).replace("{i}", f"{client} {i}")
        headers = {"x-api-key": keys[(i + client) % len(keys)], "content-type": "application/json"}
        if path == "/v1/messages" and method == "POST": headers["idempotency-key"] = f"{client}-{i}"
        connection.request(method, fill(path), None if body is None else fill(json.dumps(body)), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200: failed.append(f"{method} {path}: {answer.status} {text[:200]}")
        answered.append(path)


def tasks(url, statement):
    """Returns the number of tasks in the plan of a statement, with the id of a store or a snapshot as the value of each text parameter: 0 if
    the statement reads only tables that the coordinator has. None if the statement cannot be explained."""
    while True:
        types, error = ask(url, f"PREPARE q AS {statement}", "SELECT array_to_string(parameter_types, ',') FROM pg_prepared_statements")
        untyped = re.search(r"could not determine data type of parameter (\$\d+)", error)
        if not untyped: break
        statement = re.sub(rf"{re.escape(untyped[1])}(?!\d|::)", f"{untyped[1]}::text", statement)
    if error: return None
    # Citus cannot explain an `INSERT … SELECT` with parameters, so the values are written into the statement.
    for number, kind in reversed(list(enumerate(filter(None, types.split(",")), 1))):
        value = "'10:10:'" if f"${number}::text::pg_snapshot" in statement else VALUES.get(kind, "NULL")
        statement = statement.replace(f"${number}", f"({value}::{kind})")
    plan, error = ask(url, f"EXPLAIN (COSTS OFF) {statement}")
    if error: return None
    counts = list(map(int, re.findall(r"Task Count: (\d+)", plan)))
    # A task count of 0 means that the parameters' values contradict each other, so the plan does not show where the statement runs.
    return sum(counts) if all(counts) else None


def check(server, keys, url):
    """Sends the requests and checks the statements. Returns whether all is as it should be."""
    await_index(server.port, keys[0])
    ask(url, "SELECT citus_stat_statements_reset()", "SELECT pg_stat_statements_reset()")
    failed, answered = [], []
    clients = [threading.Thread(target=send, args=(server.port, keys, client, failed, answered)) for client in range(CLIENTS)]
    for client in clients: client.start()
    for client in clients: client.join()
    for key in keys:
        for n in range(8):
            status, text = post(server.port, key, "/v1/tickets/close", {"ticketId": f"t{n}"})
            if status != 200: failed.append(f"close: {status} {text[:200]}")
            # The conversation has no open ticket now, so this send runs other statements than the sends before.
            post(server.port, key, "/v1/messages", {"conversationId": f"c{n}", "text": f"after the close {n}"})
    rows, _ = ask(url, "SELECT SUM(calls), query "
                       "FROM citus_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database() "
                       "AND query !~ '^(BEGIN|COMMIT|ROLLBACK|SET|PREPARE|EXPLAIN)' GROUP BY 2")
    one, several, wrong = 0, {}, {}
    for row in filter(None, rows.split("\0")):
        calls, text = row.split("|", 1)
        text, calls = " ".join(text.split()), int(calls)
        if any(re.match(listed, text) for listed in LISTED): several[text] = calls
        elif tasks(url, text) in (0, 1): one += calls
        else: wrong[text] = calls
    for text, calls in wrong.items(): print(f"on several nodes, but not listed: {calls} times {text}")
    for line in failed[:5]: print(f"wrong: {line}")
    print(f"one node: {REQUESTS} requests, {len(failed)} failed; {one} statements on one node, {sum(several.values())} listed ones on "
          f"several ({len(several)} texts), {sum(wrong.values())} others", flush=True)
    return len(answered) == REQUESTS and one > REQUESTS and not wrong and not failed
