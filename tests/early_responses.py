"""Early responses: requests that are answered before their body arrives, each followed by another request on the same connection.

Usage: early_responses.py ADDRESS KEY COUNT      ADDRESS is HOST:PORT, KEY an API key, COUNT the number of requests with an early response

Each of 32 clients has a persistent connection. It sends the head of a request that will be refused, its body up to 50 ms later, reads the
response, and sends a request that must succeed. If the response says `connection: close`, the client opens another connection, as
HTTP requires. Prints one line of figures. The exit code is 1 if an early response was lost, or if a following request did not succeed.
"""

import json
import random
import socket
import sys
import threading
import time
from collections import Counter

CALLERS = 32
MOST_BEHIND = 0.050
PATIENCE = 20
BODY = json.dumps({"statuses": ["open"]}).encode()
LARGE = b" " * (1024 * 1024 + 1)


def early(key, random_source):
    """Returns a request that the server must refuse: its incomplete head, its body, and the permitted statuses."""
    head, body, statuses = random_source.choice(
        [
            ("POST /v1/tickets/list", BODY, {401}),
            ("POST /v1/contacts", BODY * 500, {401}),
            ("POST /v1/nothing", BODY, {404}),
            ("PUT /v1/tickets", BODY, {405}),
            ("POST /settings/v1/keys", BODY, {401}),
        ]
        * 10
        + [("POST /v1/contacts/list", LARGE, {413})]
    )
    proof = key if 413 in statuses else "nobody's"
    return f"{head} HTTP/1.1\r\nhost: x\r\nx-api-key: {proof}\r\ncontent-type: application/json\r\n", body, statuses


class Connection:
    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.left = b""

    def answer(self):
        """Reads a response. Returns its status, and whether the server will close the connection."""
        while b"\r\n\r\n" not in self.left:
            self.receive()
        head, self.left = self.left.split(b"\r\n\r\n", 1)
        lines = head.decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:])
        length = int(headers["content-length"])
        while len(self.left) < length:
            self.receive()
        self.left = self.left[length:]
        return int(lines[0].split(" ")[1]), headers.get("connection") == "close"

    def receive(self):
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionError("the connection ended")
        self.left += received


def call(address, key, count, found):
    random_source = random.Random()
    following = f"GET /v1/labels HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n".encode()
    connection = None
    for _ in range(count):
        head, body, statuses = early(key, random_source)
        try:
            connection = connection or Connection(address)
            in_chunks = random_source.random() < 0.2
            length = "transfer-encoding: chunked" if in_chunks else f"content-length: {len(body)}"
            connection.socket.sendall(f"{head}{length}\r\n\r\n".encode())
            time.sleep(random_source.uniform(0, MOST_BEHIND))
            framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if in_chunks else body
            connection.socket.sendall(framed)
            status, closes = connection.answer()
        except OSError as error:
            found[f"early answer lost: {error}"] += 1
            connection = None
            continue
        if status not in statuses:
            found[f"early answer {status} instead of {min(statuses)}"] += 1
        else:
            found["early"] += 1
        if closes:
            found["said close"] += 1
            connection = None
        try:
            connection = connection or Connection(address)
            connection.socket.sendall(following)
            status, closes = connection.answer()
            found["followed" if status == 200 else f"following request {status}"] += 1
            if closes:
                connection = None
        except OSError as error:
            found[f"following request lost: {error}"] += 1
            connection = None


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    key, count = sys.argv[2], int(sys.argv[3])
    tallies = [Counter() for _ in range(CALLERS)]
    shares = [count // CALLERS + (caller < count % CALLERS) for caller in range(CALLERS)]
    callers = [
        threading.Thread(target=call, args=((host, int(port)), key, share, tally)) for share, tally in zip(shares, tallies)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    found = sum(tallies, Counter())
    figures = ", ".join(f"{name} {number}" for name, number in sorted(found.items()))
    print(f"early answers: {figures}")
    sys.exit(0 if found["early"] == found["followed"] == count else 1)


if __name__ == "__main__":
    main()
