#!/usr/bin/env python3
"""Runs every example of docs/guides against a demo store. The versions of an example in Python, TypeScript and Rust must print the same.

usage: guide_examples.py TOOLS BINARY        TOOLS is the folder that tests/contract/tools/install.sh fills.
"""
import http.client, http.server, json, os, pathlib, queue, re, signal, subprocess, sys, tempfile, threading, time
from urllib.parse import urlsplit

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOOLS, BINARY = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))

# PRINTED has a pattern for the whole output of each guide's programs. IN_CURLS has a pattern for a part of the output of each guide's curl
# lines, which print whole responses.
PRINTED = {
    "authentication": r"(\S+ \S.*\n)+",
    "paging": r"(\S+\n){5,}",
    "errors": r"404 .+\n",
    "idempotency": r"1 OK false\n2 OK true\n",
    "expand": r"(\S+: .+, .+\n){1,5}",
    "rate-limits": r"20 requests succeeded\n",
    "webhooks": r"webhook\.test\n",
    "moving-from-a-to-b": r"((in: |out:) .+\n){1,3}",
}
IN_CURLS = {
    "authentication": r'"label":"', "paging": r'(?s)"ticketNumber".*"ticketNumber"', "errors": r'"statusCode":404.*\n404\n',
    "idempotency": r"(?is)HTTP/1.1 200.*HTTP/1.1 200.*idempotency-replayed: true", "expand": r'"account":\{', "rate-limits": r"^(200\n){20}$",
    "webhooks": r"^webhook\.test\n$", "moving-from-a-to-b": r'"conversationId":"',
}


def fail(text): sys.exit(f"FAILED: {text}")


def examples(guide):
    return dict(re.findall(r"^```(\w+)\n(.*?)^```$", guide.read_text(), re.S | re.M))


class Server:
    """A demo that keeps its database, or a server on that database."""
    running = []

    def __init__(self, scratch, *arguments):
        self.out = open(scratch / "server.out", "w+")
        self.process = subprocess.Popen([BINARY, *arguments], stdout=self.out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=ENV)
        self.running.append(self)
        for _ in range(600):
            text = (scratch / "server.out").read_text()
            if found := re.search(r"listening on (\S+)|^Base URL +(\S+)/v1$", text, re.M): break
            if self.process.poll() is not None: fail(f"no server: {text}")
            time.sleep(0.1)
        else: fail(f"no server after a minute: {text}")
        self.text, self.url = text, found[1] or found[2]

    def call(self, method, path, key, body=None):
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        connection.request(method, path, body and json.dumps(body), {"x-api-key": key, "content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Receives deliveries of a webhook."""
    deliveries = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.deliveries.put((dict(self.headers.items()), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_): pass


def counterpart(*arguments):
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ENV)
    if done.returncode: fail(f"counterpart {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def delivery(store):
    """Creates a webhook and receives one test delivery. Returns the environment variables of the examples (the secret, and the headers of
    the delivery) and the standard input of the examples (the body of the delivery)."""
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{receiver.server_address[1]}/"
    secret = counterpart("webhook", "create", "--store", store, "--url", url, "--allow-private-targets").strip()
    hook = json.loads(counterpart("webhook", "list", "--store", store))["id"]
    counterpart("webhook", "test", "--store", store, "--id", hook)
    headers, body = Endpoint.deliveries.get(timeout=30)
    headers = {name.upper().replace("-", "_"): value for name, value in headers.items() if name.lower().startswith("webhook-")}
    receiver.shutdown()
    return {"WEBHOOK_SECRET": secret, **headers}, body


def compile_all(scratch):
    """Builds the Rust examples, and the TypeScript examples under the strict checks of the compiler. Returns a command for each version."""
    rust, script = scratch / "rust/src/bin", scratch / "script"
    for folder in (rust, script): folder.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock"): (scratch / "rust" / name).write_text((HERE / "rust" / name).read_text())
    (script / "package.json").write_text('{"type":"module"}')
    (script / "node_modules").symlink_to(TOOLS / "node/node_modules")
    commands = {}
    for guide in GUIDES:
        versions, name = examples(guide), guide.stem
        if set(versions) != {"sh", "python", "typescript", "rust"}: fail(f"{guide.name} has examples in {sorted(versions)}")
        (rust / f"{name}.rs").write_text(versions["rust"])
        (script / f"{name}.ts").write_text(versions["typescript"] + "\nexport {};\n")
        (script / f"{name}.py").write_text(versions["python"])
        (script / f"{name}.sh").write_text(versions["sh"])
        commands[name] = {
            "sh": ["bash", "-u", script / f"{name}.sh"], "python": [TOOLS / "python/bin/python", script / f"{name}.py"],
            "typescript": [NODE, script / f"{name}.js"], "rust": [TOOLS / "target/debug" / name],
        }
    options = "--strict --target es2022 --module nodenext --lib es2023,dom,dom.iterable --types node --skipLibCheck".split()
    run([NODE, TOOLS / "node/node_modules/typescript/bin/tsc", *options, *sorted(script.glob("*.ts"))], script)
    # Other test runs may use the same target folder in TOOLS. Cargo's lock lets only one of them build there at a time.
    run(["cargo", "build", "--quiet", "--locked"], scratch / "rust", {"CARGO_TARGET_DIR": str(TOOLS / "target"), "CARGO_INCREMENTAL": "0"})
    return commands


def run(command, folder, more={}, given=b""):
    done = subprocess.run(command, cwd=folder, env={**ENV, **more}, input=given, capture_output=True, timeout=600)
    if done.returncode: fail(f"{' '.join(map(str, command))}\n{done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout.decode()


def main(scratch):
    commands = compile_all(scratch)
    demo = Server(scratch, "demo", "--listen", "127.0.0.1:0", "--keep", str(DATABASE))
    key = re.search(r"cp_\w+", demo.text)[0]
    contacts = demo.call("GET", "/v1/conversations?contactId=contact-001&pageSize=10", key)[1]["data"]
    sent = [c["id"] for c in contacts if demo.call("POST", "/v1/messages", key, {"conversationId": c["id"], "text": "Hello"})[0] == 200]
    if not sent: fail("no conversation of the demo takes a text")
    more = {"COUNTERPART_URL": demo.url, "COUNTERPART_KEY": key, "CONVERSATION_ID": sent[0]}
    store = json.loads(counterpart("store", "list"))["id"]
    signed, body = delivery(store)
    # The guide of rate limits comes last, since it needs a server with a limit.
    for name in sorted(commands, key=lambda name: name == "rate-limits"):
        if name == "rate-limits":
            demo.stop()
            more["COUNTERPART_URL"] = Server(scratch, "serve", "--listen", "127.0.0.1:0", "--rate-limit", "8/s").url
        printed = {}
        for language, command in commands[name].items():
            begun = time.monotonic()
            printed[language] = run(command, scratch, {**more, **signed}, body)
            if name == "rate-limits" and time.monotonic() - begun < 1: fail(f"{language} was not limited: 20 requests in less than a second")
        if not re.search(IN_CURLS[name], printed.pop("sh")): fail(f"{name}: curl prints something else")
        one, *others = printed.values()
        if any(other != one for other in others): fail(f"{name}: the languages print different texts: {printed}")
        if not re.fullmatch(PRINTED[name], one): fail(f"{name} prints {one!r}")
    print(f"{4 * len(commands)} examples of {len(commands)} guides in 4 languages, run")


with tempfile.TemporaryDirectory() as folder:
    DATABASE = pathlib.Path(folder) / "demo.db"
    ENV = {**os.environ, "DATABASE_URL": f"sqlite://{DATABASE}"}
    NODE = next(iter(sorted((TOOLS / "python/bin").glob("node"))), "node")
    try: main(pathlib.Path(folder))
    finally:
        for server in Server.running: server.stop()
