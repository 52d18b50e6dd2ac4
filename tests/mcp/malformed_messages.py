"""Sends malformed protocol messages to the assistant tools: 10,000 over HTTP with a valid key, and 500 lines over standard input in each of
two protocol revisions.

    malformed_messages.py BINARY [--seed N] [--count N] [--verbose]      --count: messages over HTTP; --verbose: prints the outcomes by kind

Message number i depends on the seed and i alone. The server must respond to each with a status below 500 or close the connection. It must
not end or panic. After the second half of the messages it may have at most 8 MB more memory than after the first half. A process of the
command `mcp`, which reads standard input, must still respond to valid calls: between the malformed lines, and after each of the lines in
EARLY. Python standard library only.
"""

import argparse
import collections
import contextlib
import json
import os
import queue
import random
import re
import socket
import subprocess
import threading
import time
import urllib.parse

from start_servers import demo, environment

CONNECTIONS = 8
GROWTH = 8 * 1024 * 1024
LARGEST = 4 * 1024 * 1024  # the maximum size of a body, in bytes
VERSIONS = ["2026-07-28", "2025-11-25", "2025-06-18"]
METHODS = [
    "initialize", "server/discover", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list",
    "prompts/list", "prompts/get", "notifications/initialized", "notifications/cancelled", "notifications/progress",
]
ABSENT = ["logging/setLevel", "completion/complete", "resources/subscribe", "subscriptions/listen", "tasks/get", "sampling/createMessage",
          "elicitation/create", "rpc.discover", "", "tools/call ", "TOOLS/LIST", "tools\u0000list", "../../v1/tickets", "💥"]
# Only tools that read. Tools that write would add records, for which the server needs memory, and the test limits how much the server's
# memory may grow.
TOOLS = {
    "get_inbox_guide": {}, "list_tickets": {"pageSize": 2}, "get_ticket": {"ticketId": "ticket-080-0"}, "get_contact": {"contactId": "contact-001"},
    "list_conversations": {"contactId": "contact-001"}, "read_thread": {"conversationId": "conv-080"}, "find_contacts": {"query": "James"},
    "list_contacts": {"pageSize": 2}, "search_messages": {"query": "giao"}, "list_fields": {"kind": "ticket"}, "list_labels": {},
    "list_people": {"kind": "users"},
}


def odd_text(rng):
    return rng.choice([
        "", " ", "\u0000", "\ud83d", "‮evil", "\U000e0041", "a" * rng.choice([100, 10_000]), "' OR 1=1 --", "{{7*7}}", "%00", "\r\nx-api-key: x",
        "../../etc/passwd", "null", "-1", "1e999", "".join(chr(rng.randrange(1, 0xD7FF)) for _ in range(rng.randrange(40))),
    ])


def odd_value(rng, depth=0):
    """Returns a random value of any type."""
    return rng.choice([
        lambda: None, lambda: True, lambda: False, lambda: 0, lambda: -1, lambda: 1.5, lambda: 2**63, lambda: -(2**63) - 1, lambda: 2**200,
        lambda: 1e308, lambda: odd_text(rng), lambda: [], lambda: {}, lambda: [odd_value(rng, depth + 1)] if depth < 4 else [],
        lambda: {odd_text(rng): odd_value(rng, depth + 1)} if depth < 4 else {}, lambda: [None] * 200, lambda: {"$ref": "#"},
    ])()


def proper(rng, number):
    """Returns a valid message and its headers, in one of the protocol's revisions."""
    version = rng.choice(VERSIONS)
    method = rng.choice(METHODS)
    params = {}
    if method == "initialize":
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "hostile", "version": "1"}}
    elif method == "tools/call":
        name = rng.choice(list(TOOLS))
        params = {"name": name, "arguments": dict(TOOLS[name])}
    elif method == "resources/read":
        params = {"uri": "counterpart://changes.md"}
    elif method == "prompts/get":
        params = {"name": "answer_ticket", "arguments": {"ticketId": "ticket-080-0"}}
    elif method == "notifications/cancelled":
        params = {"requestId": rng.choice([number, 0, "x"]), "reason": "hostile"}
    elif method == "notifications/progress":
        params = {"progressToken": 1, "progress": 1}
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if method != "initialize":
        headers["mcp-protocol-version"] = version
    if version == VERSIONS[0]:
        headers["mcp-method"] = method
        if name := params.get("name") or params.get("uri"):
            headers["mcp-name"] = name
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "hostile", "version": "1"},
        }
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if not method.startswith("notifications/"):
        message["id"] = number
    return message, headers


def places(value, path=()):
    """Yields the paths of all properties of a message."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in inner:
        yield (*path, key)
        yield from places(member, (*path, key))


def at(message, path):
    for key in path[:-1]:
        message = message[key]
    return message, path[-1]


# The kinds of malformed messages. Each function takes a message and its headers, and may change both. It returns the bytes of the body, or
# None if the body is the message itself.

def random_bytes(rng, message, headers):
    return rng.randbytes(rng.randrange(2000))


def broken_json(rng, message, headers):
    text = json.dumps(message).encode()
    cut, way = rng.randrange(len(text)), rng.randrange(6)
    if way == 0:
        return text[:cut]
    if way == 1:
        return text[:cut] + rng.randbytes(rng.randrange(1, 5)) + text[cut:]
    if way == 2:
        return text[:cut] + text[cut + 1:]
    if way == 3:
        return text + rng.choice([b"}", b"]", b"\x00", b"{}", text])
    if way == 4:
        return text.replace(b'"', b"'")
    return rng.choice([b"", b"\xff\xfe" + text.decode().encode("utf-16-le"), b"\xef\xbb\xbf" + text, b"NaN", b"[", b"{\"", b"// " + text])


def wrong_type(rng, message, headers):
    holder, key = at(message, rng.choice(list(places(message))))
    holder[key] = odd_value(rng)


def missing_member(rng, message, headers):
    holder, key = at(message, rng.choice([path for path in places(message) if not isinstance(path[-1], int)]))
    del holder[key]


def additional_member(rng, message, headers):
    paths = [()] + [path for path in places(message) if isinstance(at(message, path)[0][path[-1]], dict)]
    path = rng.choice(paths)
    holder, key = at(message, path) if path else ({"": message}, "")
    holder[key][rng.choice([odd_text(rng), "result", "error", "id", "__proto__", "$ref"])] = odd_value(rng)


def duplicate_member(rng, message, headers):
    text = json.dumps(message)
    return ('{"%s":%s,' % (rng.choice(list(message)), json.dumps(odd_value(rng))) + text[1:]).encode()


def deep_nesting(rng, message, headers):
    depth = rng.choice([50, 127, 128, 129, 1_000, 20_000])
    opened, closed = rng.choice([("[", "]"), ('{"a":', "}")])
    inner = opened * depth + "1" + closed * depth
    if rng.random() < 0.3:
        return inner.encode()
    holder, key = at(message, rng.choice(list(places(message))))
    holder[key] = "HERE"
    return json.dumps(message).replace('"HERE"', inner, 1).encode()


def huge_number(rng, message, headers):
    number = rng.choice([
        "9" * 400, "-" + "9" * 5_000, "1e999999", "1E-999999", "0." + "3" * 5_000, "18446744073709551616", "-0", "00", "+1",
        "0x10", "Infinity",
    ])
    holder, key = at(message, rng.choice(list(places(message))))
    holder[key] = "HERE"
    return json.dumps(message).replace('"HERE"', number, 1).encode()


def wrong_header(rng, message, headers):
    name = rng.choice([
        *headers, "mcp-session-id", "last-event-id", "x-mcp-readonly", "x-mcp-tools", "x-mcp-drafts", "mcp-method", "mcp-name",
        "mcp-protocol-version",
    ])
    headers[name] = rng.choice([
        "", " ", "x", "a" * 5_000, "\x80\xff", "1999-01-01", "2026-07-28, 2025-11-25", "=?base64?!!?=", "true", "tools/list", "../..",
    ])


def missing_header(rng, message, headers):
    del headers[rng.choice(list(headers))]


def duplicate_header(rng, message, headers):
    name = rng.choice(list(headers))
    headers[name.title()] = rng.choice([headers[name], "x", "2025-06-18", "application/json"])


def batch(rng, message, headers):
    return json.dumps(rng.choice([
        [], [message], [message] * rng.choice([2, 500]), [1, 2], [message, odd_value(rng)], [[message]], [[]] * 1000, {"0": message},
    ])).encode()


def unknown_method(rng, message, headers):
    message["method"] = rng.choice([*ABSENT, odd_text(rng)])
    if "mcp-method" in headers and rng.random() < 0.5:
        headers["mcp-method"] = re.sub(r"[^!-~]", "", message["method"])


def wrong_id(rng, message, headers):
    message["id"] = rng.choice([None, -1, 1.5, 2**64, 2**200, "", "a" * 10_000, [], {}, True, odd_text(rng), 1e300])


def wrong_version(rng, message, headers):
    way = rng.randrange(4)
    if way == 0:
        message["jsonrpc"] = rng.choice(["1.0", "2", 2, 2.0, None, "", "3.0", ["2.0"]])
    elif way == 1:
        headers["mcp-protocol-version"] = rng.choice(["2024-11-05", "2025-03-26", "2099-01-01", "x", "2026-07-28"])
    elif way == 2:
        message["params"]["_meta"] = odd_value(rng)
    else:
        message["params"]["protocolVersion"] = odd_value(rng)


def stray_response(rng, message, headers):
    """Returns a response to a request that the server never sent, or a cancellation of a request that never ran."""
    return json.dumps(rng.choice([
        {"jsonrpc": "2.0", "id": rng.randrange(10), "result": odd_value(rng)},
        {"jsonrpc": "2.0", "id": odd_value(rng), "error": {"code": odd_value(rng), "message": odd_text(rng)}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": odd_value(rng), "reason": odd_text(rng)}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "notifications/" + odd_text(rng), "params": odd_value(rng)},
        {"jsonrpc": "2.0", "id": 1, "method": "notifications/initialized", "result": {}, "error": {}},
    ])).encode()


def wrong_arguments(rng, message, headers):
    name = rng.choice([*TOOLS, *TOOLS, odd_text(rng), "drop_tables"])
    arguments = dict(TOOLS.get(name, {}))
    arguments[rng.choice([*arguments, "pageSize", "cursor", "statuses", "fieldFilters", "openedAfter", odd_text(rng)])] = odd_value(rng)
    meta = message["params"].get("_meta")
    params = {"name": name, "arguments": rng.choice([arguments, arguments, odd_value(rng)])}
    message.update(method="tools/call", params=params, id=rng.randrange(1000))
    if meta:
        message["params"]["_meta"] = meta
        headers.update({"mcp-method": "tools/call", "mcp-name": re.sub(r"[^!-~]", "", name)})


def forged_state(rng, message, headers):
    wrong_arguments(rng, message, headers)
    message["params"]["requestState"] = odd_value(rng)
    message["params"]["inputResponses"] = odd_value(rng)


def foreign(rng, message, headers):
    headers[rng.choice(["host", "origin"])] = rng.choice([
        "evil.example", "http://evil.example", "null", "", "127.0.0.1.evil.example", "file://", "http://127.0.0.1:1", "a@127.0.0.1", "[::1",
        "x" * 3_000,
    ])


def content_type(rng, message, headers):
    headers[rng.choice(["content-type", "accept", "content-encoding", "expect"])] = rng.choice([
        "text/plain", "application/xml", "application/json; charset=utf-16", "multipart/form-data; boundary=x", "*/*", "", "text/event-stream",
        "gzip", "br", "application/json;q=0", "application/x-www-form-urlencoded", "100-continue",
    ])


def other_http_method(rng, message, headers):
    headers[":method"] = rng.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW", "post"])
    headers["mcp-session-id"] = rng.choice(["x", "", "00000000-0000-0000-0000-000000000000"])


def broken_framing(rng, message, headers):
    headers[":framing"] = rng.choice(["longer", "shorter", "chunked", "both", "negative", "twice", "broken chunk"])


def oversized(rng, message, headers):
    message["params"]["padding"] = "x" * (LARGEST + rng.choice([-200_000, 0, 1_000_000]))


# The weight of each kind in the random choice. A function may leave a message valid, and `oversized` may keep the body within the limit.
KINDS = {
    random_bytes: 60, broken_json: 100, wrong_type: 200, missing_member: 80, additional_member: 60, duplicate_member: 40, deep_nesting: 40,
    huge_number: 50, wrong_header: 90, missing_header: 50, duplicate_header: 40, batch: 30, unknown_method: 50, wrong_id: 50,
    wrong_version: 50, stray_response: 60, wrong_arguments: 150, forged_state: 30, foreign: 40, content_type: 40, other_http_method: 30,
    broken_framing: 20, oversized: 1,
}


def malformed(seed, number):
    """Returns message `number`: its kind, its headers, and its body."""
    rng = random.Random(f"{seed}/{number}")
    message, headers = proper(rng, number)
    kind = rng.choices(list(KINDS), KINDS.values())[0]
    body = kind(rng, message, headers)
    return kind.__name__, headers, json.dumps(message).encode() if body is None else body


class Closed(Exception):
    """The server closed the connection without a response."""


class Connection:
    """A connection to the server, which is opened again after it was closed."""

    def __init__(self, url, key):
        self.url, self.key, self.socket = urllib.parse.urlsplit(url), key, None

    def ask(self, headers, body):
        """Sends a request. Returns the status and the body of the response."""
        if self.socket is None:
            self.socket = socket.create_connection((self.url.hostname, self.url.port), timeout=30)
            self.file = self.socket.makefile("rb")
        headers = {"host": self.url.netloc, "x-api-key": self.key, **headers}
        method, framing = headers.pop(":method", "POST"), headers.pop(":framing", "")
        lengths = {
            "longer": [("content-length", len(body) + 10)], "shorter": [("content-length", max(len(body) - 10, 0))],
            "negative": [("content-length", -1)],
            "twice": [("content-length", len(body)), ("content-length", 1)], "chunked": [("transfer-encoding", "chunked")],
            "both": [("transfer-encoding", "chunked"), ("content-length", len(body))], "broken chunk": [("transfer-encoding", "chunked")],
        }.get(framing, [("content-length", len(body))])
        if framing in ("chunked", "both"):
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        lines = [f"{method} {self.url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in [*headers.items(), *lengths])]
        request = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body
        try:
            # Ignores errors while sending: after an early response the server leaves the rest of the body unread.
            try:
                self.socket.sendall(request)
                if framing:
                    self.socket.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            answer = self.answer(method)
        except (ConnectionResetError, BrokenPipeError) as error:
            self.close()
            raise Closed from error
        except BaseException:
            self.close()
            raise
        if framing or answer[2]:
            self.close()
        return answer[:2]

    def answer(self, method):
        while True:
            first = self.file.readline()
            if not first:
                raise Closed
            status, length, chunked, closes = int(first.split()[1]), 0, False, False
            while (line := self.file.readline()) not in (b"\r\n", b""):
                name, _, value = line.decode("latin-1").partition(":")
                name, value = name.lower(), value.strip().lower()
                length = int(value) if name == "content-length" else length
                chunked |= name == "transfer-encoding" and "chunked" in value
                closes |= name == "connection" and "close" in value
            if status >= 200:
                break
        if method == "HEAD" or status == 204:
            return status, b"", closes
        if not chunked:
            return status, self.file.read(length), closes
        body = b""
        while size := int(self.file.readline() or b"0", 16):
            body += self.file.read(size)
            self.file.readline()
        self.file.readline()
        return status, body, closes

    def close(self):
        if self.socket:
            self.file.close()
            self.socket.close()
            self.socket = None


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{pid}/status").read())[1]) * 1024


def outcome(status, body):
    """Returns the kind of a response, as a short text."""
    if status != 200:
        return str(status)
    text = body.decode()
    if text.startswith(("event:", "data:", "id:", ":", "retry:")):
        data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        text = next((line for line in reversed(data) if line), "{}")
    answer = json.loads(text) if text else {}
    if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0" or ("result" in answer) == ("error" in answer):
        return f"not an answer of the protocol: {text[:200]}"
    if "error" in answer:
        if not isinstance(answer["error"].get("code"), int) or not isinstance(answer["error"].get("message"), str):
            return f"not an error of the protocol: {text[:200]}"
        return f"error {answer['error']['code']}"
    return "error of a tool" if answer["result"].get("isError") else "result"


def same_id(body, answer):
    """Whether a response has the id of its request. Also true if the request has no valid id."""
    with contextlib.suppress(ValueError, TypeError, KeyError, UnicodeDecodeError):
        request, answer = json.loads(body), json.loads(answer)
        if isinstance(request["id"], str) or type(request["id"]) is int:
            return answer["id"] == request["id"]
    return True


def asked_properly(connection):
    """Whether the server responds correctly to a valid call."""
    _, headers = proper(random.Random(0), 0)
    for name in ("mcp-method", "mcp-name"):
        headers.pop(name, None)
    headers["mcp-protocol-version"] = "2025-11-25"
    call = {"jsonrpc": "2.0", "id": "proper", "method": "tools/call", "params": {"name": "get_ticket", "arguments": TOOLS["get_ticket"]}}
    status, body = connection.ask(headers, json.dumps(call).encode())
    answer = json.loads(body)
    return status == 200 and answer["id"] == "proper" and answer["result"]["structuredContent"]["id"] == "ticket-080-0"


def over_http(server, seed, count, verbose):
    outcomes, wrong, lock, numbers = collections.Counter(), [], threading.Lock(), queue.SimpleQueue()

    def work():
        connection = Connection(server.url, server.key)
        while (number := numbers.get()) is not None:
            kind, headers, body = malformed(seed, number)
            try:
                status, text = connection.ask(headers, body)
                found = outcome(status, text)
                if status == 200 and not same_id(body, text):
                    found = "not the id of the request"
                fault = status >= 500 or found.startswith("not ") or found == "error -32603"
            except Closed:
                # The server may close the connection only if the request is not valid HTTP, or if the server stops reading the request
                # before its end.
                found = "closed"
                fault = ":framing" not in headers and kind not in ("wrong_header", "duplicate_header", "content_type", "foreign", "oversized")
            except Exception as error:
                found, text, fault = f"{type(error).__name__}", str(error).encode(), True
            with lock:
                outcomes[kind, found] += 1
                if fault:
                    wrong.append(f"message {number}, {kind}: {found}\n  headers {headers}\n  body {body[:400]!r}\n  answer {text[:400]!r}")
        connection.close()

    def send(first, last):
        threads = [threading.Thread(target=work, daemon=True) for _ in range(CONNECTIONS)]
        for number in [*range(first, last), *[None] * CONNECTIONS]:
            numbers.put(number)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    begin = resident(server.process.pid)
    measured = []
    for first, last in [(0, count // 2), (count // 2, count)]:
        send(first, last)
        time.sleep(1)
        measured.append(resident(server.process.pid))
    if verbose:
        for (kind, found), times in sorted(outcomes.items()):
            print(f"  {kind}: {found}: {times}")
    totals = collections.Counter()
    for (_, found), times in outcomes.items():
        totals[found] += times
    assert not wrong, "\n".join([*wrong[:20], f"{len(wrong)} of {count} messages were answered wrongly"])
    assert sum(totals.values()) == count
    assert server.process.poll() is None, "the server ended"
    connection = Connection(server.url, server.key)
    assert asked_properly(connection), "the server does not answer any more"
    connection.close()
    log = open(server.log).read()
    assert "panicked" not in log, f"the server panicked:\n{log[-3000:]}"
    growth = measured[1] - measured[0]
    megabytes = [f"{size / 1024 / 1024:.1f}" for size in [begin, *measured]]
    print(f"HTTP: {count} messages over {CONNECTIONS} connections; " + ", ".join(f"{found}: {times}" for found, times in totals.most_common()))
    print(f"memory: {megabytes[0]} MB before, {megabytes[1]} MB after the first half, {megabytes[2]} MB after the second")
    assert growth <= GROWTH, f"the server grew by {growth} bytes in the second half"


def over_stdio(server, binary, seed, count, era):
    """Sends malformed lines to a process of the command `mcp`, and a valid call after every 25 lines."""
    process = subprocess.Popen(
        [binary, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**server.of_mcp), bufsize=0)
    lines, log = queue.SimpleQueue(), []
    readers = [
        threading.Thread(target=drain, args=(process.stdout, lines.put)),
        threading.Thread(target=drain, args=(process.stderr, log.append)),
    ]
    for reader in readers:
        reader.start()

    def write(data):
        view = memoryview(data)
        while view:
            view = view[process.stdin.write(view):]

    answered = 0

    def ask(method, params, name):
        nonlocal answered
        if era == VERSIONS[0]:
            params = {**params, "_meta": {
                "io.modelcontextprotocol/protocolVersion": era, "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "hostile", "version": "1"}}}
        write(json.dumps({"jsonrpc": "2.0", "id": name, "method": method, "params": params}).encode() + b"\n")
        while True:
            line = lines.get(timeout=30)
            assert line, f"the process ended with {process.wait()}: {b''.join(log)[-2000:].decode()}"
            answer = json.loads(line)
            assert answer.get("jsonrpc") == "2.0", f"not a message of the protocol: {line[:300]}"
            assert (answer.get("error") or {}).get("code") != -32603, f"an internal error: {line[:300]}"
            answered += 1
            if answer.get("id") == name:
                assert "result" in answer, answer
                return answer["result"]

    try:
        if era == VERSIONS[0]:
            ask("server/discover", {}, "begin")
            ask("tools/call", {"name": "list_labels", "arguments": {}}, "first")
        else:
            ask("initialize", {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "hostile", "version": "1"}}, "begin")
            write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        for number in range(count):
            body = malformed(seed, 1_000_000 + number)[2]
            write(body.replace(b"\n", b" ") + b"\n")
            if number % 25 == 24:
                result = ask("tools/call", {"name": "get_ticket", "arguments": TOOLS["get_ticket"]}, f"proper-{number}")
                assert result["structuredContent"]["id"] == "ticket-080-0", result
        process.stdin.close()
        assert process.wait(20) == 0, f"the process ended with {process.returncode} at the end of its input"
    finally:
        process.kill()
        process.wait()
        for reader in readers:
            reader.join()
    assert b"panicked" not in b"".join(log), b"".join(log)[-3000:].decode()
    print(f"stdio, {era}: {count} lines, {count // 25} proper calls among them; {answered} answers, exit status 0")


def drain(stream, put):
    for line in iter(stream.readline, b""):
        put(line)
    put(b"")


# Lines that a client may send before its first request, or after `server/discover`, the request by which it finds out the protocol
# revision. For example, a client that stopped waiting for the response to `server/discover` cancels that request.
EARLY = {
    "no JSON": "hello",
    "an empty line": "",
    "a batch": "[]",
    "a cancellation": '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"begin"}}',
    "`notifications/initialized`": '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    "an unknown notification": '{"jsonrpc":"2.0","method":"notifications/unheard-of"}',
    "a response": '{"jsonrpc":"2.0","id":5,"result":{}}',
    "an error": '{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"no"}}',
    "an unknown method": '{"jsonrpc":"2.0","id":5,"method":"unheard-of"}',
    "an incomplete `initialize`": '{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}}',
}


def early_lines(server, binary):
    """Sends each line of EARLY to a separate process, as the first line and after `server/discover`. A valid call must then succeed."""
    ended = []
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSIONS[0], "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "hostile", "version": "1"}}
    discover = json.dumps({"jsonrpc": "2.0", "id": "begin", "method": "server/discover", "params": {"_meta": meta}})
    proper_call = json.dumps({
        "jsonrpc": "2.0", "id": "proper", "method": "tools/call", "params": {"name": "get_ticket", "arguments": TOOLS["get_ticket"], "_meta": meta}})
    for before in ([], [discover]):
        for what, line in EARLY.items():
            process = subprocess.Popen(
                [binary, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**server.of_mcp))
            timer = threading.Timer(20, process.kill)
            timer.start()
            answered = False
            try:
                process.stdin.write("\n".join([*before, line, proper_call, ""]).encode())
                process.stdin.flush()
            except BrokenPipeError:
                pass
            for answer in iter(process.stdout.readline, b""):
                if json.loads(answer).get("id") == "proper":
                    answered = "structuredContent" in json.loads(answer)["result"]
                    break
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            log, status = process.stderr.read().decode(), process.wait()
            process.stdout.close()
            process.stderr.close()
            timer.cancel()
            if not answered or status:
                place = "after server/discover" if before else "as the first line"
                ended.append(f"{what} {place}: {line}\n  no answer to a proper call afterwards; exit status {status}; {log.strip()[:250]}")
    assert not ended, "\n".join([*ended, f"stdio: {len(ended)} of {2 * len(EARLY)} early lines ended the process"])
    print(f"stdio, early: {2 * len(EARLY)} lines before the first request; each process answered")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    with demo(binary) as server:
        over_http(server, options.seed, options.count, options.verbose)
        for era in ("2025-11-25", "2026-07-28"):
            over_stdio(server, binary, options.seed, 500, era)
        early_lines(server, binary)
    print(f"hostile: {options.count} messages over HTTP and {1000 + 2 * len(EARLY)} lines over stdio, seed {options.seed}; nothing broke")


main()
