"""A server under test, a load generator that records the acknowledged writes and the wrong answers, and an endpoint for webhooks."""
import http.client, http.server, json, os, signal, subprocess, threading, time

STORE = "shop"
CONVERSATIONS = 8
AT = "2026-01-01T00:00:00.000Z"


def records():
    """Yields the import lines: a widget account, which accepts messages immediately, and some conversations."""
    def line(sort, **record): return json.dumps({"kind": sort, "record": record})
    yield line("role", id="r1", name="Owner", kind="owner")
    yield line("user", id="u1", userId="0199a000-0000-7000-8000-000000000001", name="Ann", roleId="r1")
    yield line("account", id="a1", channel="widget", name="Chat", status="healthy")
    for i in range(CONVERSATIONS):
        yield line("contact", id=f"k{i}", fullName=f"C {i}", firstName=f"C {i}", createdAt=AT, updatedAt=AT)
        yield line("conversation", id=f"c{i}", contactId=f"k{i}", accountId="a1", channel="widget", referenceId=f"w{i}",
                   displayName=f"C {i}", createdAt=AT, updatedAt=AT, isSpam=False, labelIds=[])


class Server:
    """One server process on one database. `env` can preload a library that injects faults."""

    def __init__(self, binary, url, folder, env=None, stderr=None, arguments=()):
        self.binary, self.url, self.folder, self.arguments = binary, url, folder, arguments
        self.env = {**os.environ, "DATABASE_URL": url, "COUNTERPART_INDEX_DIR": os.path.join(folder, "index"), **(env or {})}
        self.log = os.path.join(folder, "server.log")
        self.stderr = stderr
        self.process = None

    def run(self, *arguments, **options):
        # Removes the variables that inject faults. Only the server is under test, not the commands that run at the same time.
        env = {name: value for name, value in self.env.items() if name not in ("LD_PRELOAD", "FAULTS_CONTROL")}
        done = subprocess.run([self.binary, *arguments], env=env, capture_output=True, text=True, timeout=120, **options)
        if done.returncode: raise RuntimeError(f"{arguments}: {done.stderr.strip()}")
        return done.stdout

    def fill(self):
        self.run("migrate", "up")
        self.run("store", "create", "--id", STORE, "--name", "Shop")
        self.run("import", "--store", STORE, "-", input="\n".join(records()) + "\n")
        scopes = "messages:read,messages:write,tickets:read,contacts:read,conversations:read"
        self.key = self.run("key", "create", "--store", STORE, "--name", "k", "--scopes", scopes).strip()

    def start(self, port=0):
        stderr = self.stderr if self.stderr is not None else open(self.log, "ab")
        command = [self.binary, "serve", "--listen", f"127.0.0.1:{port}", *self.arguments]
        self.process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                                        cwd=self.folder)
        line = self.process.stdout.readline().decode()
        if not line.startswith("listening on"):
            self.process.wait()
            raise RuntimeError(f"the server did not start: exit {self.process.returncode}; {self.tail()}")
        self.port = int(line.rsplit(":", 1)[1])
        return self

    def logged(self):
        if not os.path.exists(self.log): return ""
        with open(self.log, errors="replace") as log: return log.read()

    def tail(self): return "".join(self.logged().splitlines(keepends=True)[-5:])

    def alive(self): return self.process is not None and self.process.poll() is None

    def kill(self, how=signal.SIGKILL):
        if self.alive():
            self.process.send_signal(how)
            self.process.wait(30)

    def stop(self):
        self.kill(signal.SIGTERM)

    def get(self, path, timeout=5):
        """Sends a GET. Returns the status and the body of the response; status 0 if there is no response."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
            connection.request("GET", path, headers={"x-api-key": self.key})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def exported(self):
        """Returns the texts of all messages in the database, by id."""
        lines = self.run("export", "--store", STORE).splitlines()
        return {line["record"]["id"]: line["record"].get("text") for line in map(json.loads, lines) if line["kind"] == "message"}


class Load:
    """Writers and readers that continue until they are stopped."""

    def __init__(self, server, writers=4, readers=2):
        self.server, self.lock = server, threading.Lock()
        self.acknowledged, self.wrong, self.refused, self.unanswered = {}, [], 0, 0
        # For each request that was answered with 200: when the answer came, and the seconds that it took.
        self.times = []
        self.slowest = 0.0
        self.writers, self.readers = writers, readers
        self.go_on()

    def go_on(self):
        """Starts, or starts again after a stop."""
        self.going = True
        self.threads = [threading.Thread(target=self.write, args=(n,), daemon=True) for n in range(self.writers)]
        self.threads += [threading.Thread(target=self.read, args=(n,), daemon=True) for n in range(self.readers)]
        for thread in self.threads: thread.start()

    def call(self, connection, method, path, body=None):
        headers = {"x-api-key": self.server.key, "content-type": "application/json"}
        connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("retry-after"), answer.read()

    def ask(self, method, path, body, text=None):
        """Sends one request on a separate connection, so that a broken connection affects one request only."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=40)
        began = time.monotonic()
        try:
            status, retry, answer = self.call(connection, method, path, body)
        except (OSError, http.client.HTTPException):
            with self.lock: self.unanswered += 1
            time.sleep(0.02)
            return
        finally:
            connection.close()
        with self.lock:
            self.slowest = max(self.slowest, time.monotonic() - began)
            if status == 200:
                self.times.append((time.monotonic(), time.monotonic() - began))
                if text is not None:
                    self.acknowledged[text] = time.monotonic()
            elif status == 503 and retry is not None:
                self.refused += 1
            else:
                self.wrong.append(f"{method} {path}: {status} {answer[:160].decode(errors='replace')}")
        if status != 200: time.sleep(0.02)

    def write(self, n):
        i = 0
        while self.going:
            i += 1
            text = f"w{n}-{i}-{time.monotonic_ns()}"
            self.ask("POST", "/v1/messages", {"conversationId": f"c{(n + i) % CONVERSATIONS}", "text": text}, text)

    def read(self, n):
        i = 0
        while self.going:
            i += 1
            path = [f"/v1/messages?conversationId=c{i % CONVERSATIONS}&pageSize=5", f"/v1/contacts?contactId=k{i % CONVERSATIONS}",
                    f"/v1/conversations?contactId=k{i % CONVERSATIONS}&pageSize=5"][i % 3]
            self.ask("GET", path, None)
            time.sleep(0.005)

    def writes_again(self, since, patience=30):
        """Returns the seconds from `since` until the next write was acknowledged; None if there was none within `patience` seconds."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            with self.lock:
                after = [at for at in self.acknowledged.values() if at > since]
            if after: return min(after) - since
            time.sleep(0.01)
        return None

    def stop(self):
        self.going = False
        for thread in self.threads: thread.join(45)


class Sink:
    """A webhook endpoint that counts the events it receives."""

    def __init__(self):
        self.seen, lock = set(), threading.Lock()
        sink = self
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                with lock: sink.seen.add(self.headers["webhook-id"])
                self.send_response(204)
                self.end_headers()
            def log_message(self, *_): pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
