"""Starts servers for the tests of the assistant tools: a demo, and a server that permits sends, on the demo's database. Python standard
library only."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time


def environment(**more):
    """Returns the environment without settings of the program, with the variables of `more`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERPART_") and name != "DATABASE_URL"}
    return inherited | more


class Demo:
    """A demo server: its address, its key, and the environment variables with which the command `mcp` uses the demo's database."""

    def __init__(self, binary, folder):
        self.database, self.log = f"{folder}/demo.db", f"{folder}/demo.log"
        printed = f"{folder}/demo.out"
        with open(printed, "w") as out, open(self.log, "w") as log:
            command = [binary, "demo", "--listen", "127.0.0.1:0", "--keep", self.database]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment(), cwd=folder)
        ends = time.monotonic() + 30
        while True:
            text = open(printed).read()
            address, key = re.search(r"^Tools +(http://\S+)", text, re.M), re.search(r"^API key +(cp_\S+)", text, re.M)
            if address and key:
                break
            if self.process.poll() is not None or time.monotonic() > ends:
                self.stop()
                raise SystemExit(f"the demo server did not start:\n{text}{open(self.log).read()}")
            time.sleep(0.05)
        self.url, self.key = address[1], key[1]
        self.of_mcp = {"COUNTERPART_API_KEY": self.key, "DATABASE_URL": f"sqlite://{self.database}"}

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def sending(binary, demo):
    """Runs a server that permits sends, on the database of a demo; yields its address."""
    command = [os.path.abspath(binary), "serve", "--mcp", "--mcp-allow-send", "--simulate-channels", "--listen", "127.0.0.1:0"]
    with open(demo.log, "a") as log:
        place = environment(DATABASE_URL=demo.of_mcp["DATABASE_URL"])
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=place, text=True)
    try:
        yield process.stdout.readline().removeprefix("listening on ").strip() + "/mcp"
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def demo(binary):
    # Stops the server also when a signal ends this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as folder:
        server = Demo(os.path.abspath(binary), folder)
        try:
            yield server
        finally:
            server.stop()
