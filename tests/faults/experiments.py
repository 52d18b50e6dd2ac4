#!/usr/bin/env python3
"""Fault experiments: what a server does while its storage, its log or its database fails, and how soon it works again afterwards.

Each experiment runs a server under load, causes a fault, ends the fault, waits for the next acknowledged write, kills the server with
SIGKILL, and looks for every acknowledged message in the database. Called by tests/faults.sh, which sets the variables FAULTS_… in
the environment.

usage: experiments.py [--long] [NAME ...]
Runs the experiments whose name or database contains a NAME (default: all). With --long, "kill -9" kills the server 100 times, not 5."""
import contextlib, os, resource, shutil, signal, sqlite3, subprocess, sys, tempfile, threading, time, traceback

from server_and_load import Load, STORE, Server, Sink

BINARY, REVISION = os.environ["FAULTS_BINARY"], os.environ.get("FAULTS_REVISION", "?")
POSTGRES, SHIM = os.environ.get("FAULTS_POSTGRES"), os.environ.get("FAULTS_SHIM")
PG_FOLDER, PG_BIN = os.environ.get("FAULTS_POSTGRES_FOLDER"), os.environ.get("FAULTS_POSTGRES_PROGRAMS")
LONG = "--long" in sys.argv
IS_ROOT = os.geteuid() == 0
# The longest permitted times, in seconds, from the end of the fault until writes are acknowledged again: without a restart of the server,
# and with a restart by the experiment.
PROMPT, RESTART = 2.0, 10.0

EXPERIMENTS, RESULTS, SKIPPED = [], [], []


def experiment(name, database="sqlite", needs=lambda: None):
    """Registers an experiment. `needs` returns the reason why the experiment cannot run here, or None."""
    def register(function):
        EXPERIMENTS.append((name, database, needs, function))
        return function
    return register


def needs_root(): return None if IS_ROOT else "needs root"
def needs_shim(): return None if SHIM else "needs gcc, for the library that injects errors"


class Bench:
    def __init__(self, database):
        self.folder = tempfile.mkdtemp(prefix="faults-")
        os.chmod(self.folder, 0o755)
        self.database = database
        self.servers = []
        self.name = None
        if database == "postgres":
            self.name = f"faults_{os.getpid()}_{len(RESULTS) + len(SKIPPED)}"
            sql(f"CREATE DATABASE {self.name}")
            self.url = POSTGRES.rsplit("/", 1)[0] + "/" + self.name
        else:
            self.url = f"sqlite://{self.folder}/shop.db"

    def server(self, folder=None, url=None, start=True, **options):
        server = Server(BINARY, url or self.url, folder or self.folder, **options)
        server.fill()
        self.servers.append(server)
        return server.start() if start else server

    @property
    def file(self): return self.url.removeprefix("sqlite://")

    def close(self):
        for server in self.servers: server.kill()
        if self.name:
            with contextlib.suppress(Exception): sql(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
        shutil.rmtree(self.folder, ignore_errors=True)


def sql(statement, database="postgres", url=None):
    url = (url or POSTGRES).rsplit("/", 1)[0] + "/" + database
    command = ["psql", "--no-psqlrc", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode: raise RuntimeError(done.stderr)
    return done.stdout.strip()


def postmaster():
    """Returns the process id of PostgreSQL's first process."""
    with open(os.path.join(PG_FOLDER, "data", "postmaster.pid")) as file: return int(file.readline())


def check(condition, what):
    if not condition: raise AssertionError(what)


def verdict(server, load, seconds, stopped_at=None):
    """Stops the load, kills the server, and compares the acknowledged messages with the stored ones. A message that was acknowledged after
    `stopped_at` counts as lost, even if it is stored: the server had to refuse it."""
    load.stop()
    check(server.alive(), f"the server ended by itself: {server.process.returncode}; {server.tail()}")
    server.kill()
    kept = set(server.exported().values())
    lost = [text for text in load.acknowledged if text not in kept]
    late = [text for text, at in load.acknowledged.items() if stopped_at is not None and at > stopped_at]
    return {"acknowledged": len(load.acknowledged), "lost": len(lost) + len(late), "wrong": load.wrong, "seconds": seconds,
            "refused": load.refused, "unanswered": load.unanswered, "excepted": stopped_at is not None}


def through(server, cause, end, during=1.0, rounds=1, unready=503):
    """Runs the usual experiment: under load, causes the fault, and ends it after `during` seconds. Does this `rounds` times. `unready` is
    the status that /readyz must have before the fault ends: 503, or 0 for no answer. With None, /readyz is not requested, since the fault
    is shorter than the time for which the server caches its readiness, or since writes may succeed during the fault."""
    load, slowest = Load(server), 0.0
    check(load.writes_again(time.monotonic()) is not None, "no write before the fault")
    for _ in range(rounds):
        # The fault is ended even if the experiment fails: a process that stays stopped would block the next experiment.
        try:
            cause()
            time.sleep(during)
            if unready is not None:
                status, body = server.get("/readyz")
                check(status == unready, f"/readyz says {status} {body} while writes fail")
        finally:
            end()
        seconds = load.writes_again(time.monotonic())
        check(seconds is not None, f"no write within 30 s of the end of the fault; {server.tail()}")
        slowest = max(slowest, seconds)
    until = time.monotonic() + PROMPT + 1
    while server.get("/readyz")[0] != 200:
        check(time.monotonic() < until, f"/readyz does not say 200 after the fault: {server.get('/readyz')}")
        time.sleep(0.1)
    return verdict(server, load, slowest)


# Experiments on SQLite: faults of the storage

@experiment("file size limit")
def size_limit(bench):
    server = bench.server()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = lambda bytes: resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (bytes, hard))
    return through(server, lambda: limit(4096), lambda: limit(hard), during=0.3, rounds=4, unready=None)


@experiment("file size limit, seconds")
def size_limit_long(bench):
    server = bench.server()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = lambda bytes: resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (bytes, hard))
    return through(server, lambda: limit(4096), lambda: limit(hard), during=2.5)


@contextlib.contextmanager
def small_disk(bench, size="24m"):
    folder = os.path.join(bench.folder, "disk")
    os.mkdir(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "faults", folder], check=True)
    try: yield folder
    finally:
        for server in bench.servers: server.kill()
        subprocess.run(["umount", folder], check=True)


@experiment("disk full", needs=needs_root)
def disk_full(bench):
    with small_disk(bench) as disk:
        bench.url = f"sqlite://{disk}/shop.db"
        server = bench.server()
        filler = os.path.join(disk, "filler")
        def fill():
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
                for size in (65536, 512):
                    with contextlib.suppress(OSError):
                        while file.write(bytes(size)) == size: pass
        return through(server, fill, lambda: os.remove(filler), during=1.5, rounds=2)


def injected(bench, words, **options):
    control = os.path.join(bench.folder, "control")
    server = bench.server(env={"LD_PRELOAD": SHIM, "FAULTS_CONTROL": control})
    def cause():
        with open(control + ".new", "w") as file: file.write(words)
        os.rename(control + ".new", control)
    return through(server, cause, lambda: os.remove(control), **options)


@experiment("writes fail (EIO)", needs=needs_shim)
def writes_fail(bench): return injected(bench, "write", rounds=2)


@experiment("syncs fail (EIO)", needs=needs_shim)
def syncs_fail(bench): return injected(bench, "sync", rounds=2)


@experiment("writes fail (EROFS)", needs=needs_shim)
def became_read_only(bench): return injected(bench, "write EROFS", rounds=2)


@experiment("reads and writes fail (EIO)", needs=needs_shim)
def reads_fail(bench): return injected(bench, "read write sync", rounds=2)


def stops(bench, cause, end=None, is_paused=False):
    """Runs an experiment with a fault that removes, replaces or damages a file of the database. The server still has the file open, so its
    writes would succeed, even to a deleted file. But it must refuse writes, and report the reason. With `is_paused`, the load pauses during
    the fault. Without an `end`, the files stay as the fault left them. Then only messages that are acknowledged after the fault count as
    lost."""
    server = bench.server()
    load = Load(server)
    check(load.writes_again(time.monotonic()) is not None, "no write before the fault")
    time.sleep(0.5)
    if is_paused: load.stop()
    before = len(server.logged())
    cause()
    if is_paused: load.go_on()
    # A write that began before the fault may be acknowledged until this instant. A later acknowledgement means that the server wrote to a
    # file that is no longer the database.
    stopped_at = time.monotonic() + 0.1
    time.sleep(2)
    status, body = server.get("/readyz")
    check(status == 503 and ("replaced" in body or "not ready" in body), f"/readyz says {status} {body}")
    # All lines since the fault are searched: the requests that are answered meanwhile may have written the last lines.
    reported = any(f"was {what}" in server.logged()[before:] for what in ("removed", "replaced", "cut short", "written over"))
    check(reported, f"the log does not report the fault: {server.tail()}")
    seconds = None
    load.going = False
    if end is None:
        load.stop()
        late = [text for text, at in load.acknowledged.items() if at > stopped_at]
        check(server.alive(), f"the server ended by itself: {server.process.returncode}")
        return {"acknowledged": len(load.acknowledged), "lost": len(late), "wrong": load.wrong, "seconds": None, "refused": load.refused,
                "unanswered": load.unanswered, "excepted": True}
    load.stop()
    end()
    return verdict(server, load, seconds, stopped_at)


@experiment("write lock held by another process")
def lock_held(bench):
    """/readyz returns 200 while the first write waits for the lock, and then 503 until the lock is released. No request waits for longer
    than 11 s."""
    server = bench.server()
    load = Load(server)
    check(load.writes_again(time.monotonic()) is not None, "no write before the fault")
    with contextlib.closing(sqlite3.connect(bench.file, isolation_level=None, timeout=10)) as other:
        other.execute("BEGIN IMMEDIATE")
        began, answers = time.monotonic(), []
        while time.monotonic() < began + 25:
            answers.append(server.get("/readyz", timeout=15)[0])
            time.sleep(0.25)
        other.execute("ROLLBACK")
    seconds = load.writes_again(time.monotonic())
    check(answers[0] == 200 and answers[-1] == 503, f"/readyz says {answers[0]} at first and {answers[-1]} at last")
    check(200 not in answers[answers.index(503):], f"/readyz goes back to 200: {answers}")
    check(load.slowest < 11, f"a request waited for {load.slowest:.1f} s")
    check(seconds is not None, "no write after the lock was released")
    time.sleep(1.5)
    check(server.get("/readyz")[0] == 200, f"/readyz does not say 200 after the fault: {server.get('/readyz')}")
    return verdict(server, load, seconds)


def aside(path): return lambda: os.rename(path, path + ".aside")
def back(path): return lambda: os.rename(path + ".aside", path)


@experiment("database file removed")
def file_removed(bench): return stops(bench, aside(bench.file), back(bench.file))


@experiment("database file replaced")
def file_replaced(bench):
    def cause():
        shutil.copy(bench.file, bench.file + ".copy")
        os.rename(bench.file, bench.file + ".aside")
        os.rename(bench.file + ".copy", bench.file)
    return stops(bench, cause, back(bench.file))


@experiment("log removed")
def log_removed(bench): return stops(bench, aside(bench.file + "-wal"), back(bench.file + "-wal"))


@experiment("log's index removed")
def index_removed(bench): return stops(bench, aside(bench.file + "-shm"), back(bench.file + "-shm"))


@experiment("database file shortened")
def file_shortened(bench): return stops(bench, lambda: os.truncate(bench.file, os.path.getsize(bench.file) // 2))


@experiment("something else written over the database file")
def file_written_over(bench):
    def cause():
        with open(bench.file, "r+b") as file: file.write(b"something else" * 1000)
    return stops(bench, cause)


@experiment("log shortened")
def log_shortened(bench):
    # The WAL is truncated between writes. If it were truncated during a write, that write would restore the length of the WAL before the
    # server checks it.
    def cause():
        log = bench.file + "-wal"
        os.truncate(log, os.path.getsize(log) // 2)
    return stops(bench, cause, is_paused=True)


@experiment("log's index shortened")
def index_shortened(bench):
    """The index of the WAL (the -shm file) is memory that processes share. If the server reads the part that was cut off, the operating
    system ends it with SIGBUS. No acknowledged message may be lost."""
    server = bench.server()
    load = Load(server)
    time.sleep(0.5)
    os.truncate(bench.file + "-shm", 0)
    time.sleep(1)
    load.stop()
    ended = not server.alive()
    check(not ended or server.process.returncode == -signal.SIGBUS, f"the server ended with {server.process.returncode}; {server.tail()}")
    server.kill()
    began = time.monotonic()
    again = Load(server.start())
    seconds = again.writes_again(began)
    check(seconds is not None, "no write after a restart")
    result = verdict(server, again, seconds)
    kept = set(server.exported().values())
    result["lost"] += sum(text not in kept for text in load.acknowledged)
    return {**result, "acknowledged": result["acknowledged"] + len(load.acknowledged), "wrong": result["wrong"] + load.wrong, "limit": RESTART}


@experiment("start on a file without the right to write", needs=needs_root)
def unwritable_start(bench):
    bench.server(start=False)
    os.chmod(bench.folder, 0o777)
    for name in os.listdir(bench.folder): os.chmod(os.path.join(bench.folder, name), 0o444)
    binary = shutil.copy(BINARY, os.path.join(bench.folder, "program"))
    os.chmod(binary, 0o755)
    env = {**os.environ, "DATABASE_URL": bench.url, "COUNTERPART_INDEX_DIR": os.path.join(bench.folder, "index")}
    command = ["setpriv", "--reuid=nobody", "--clear-groups", "--", binary, "serve", "--listen", "127.0.0.1:0"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30)
    check(done.returncode == 1, f"exit {done.returncode}: {done.stderr}")
    check("panicked" not in done.stderr and "error: " in done.stderr, f"the error names no reason: {done.stderr}")
    return {"acknowledged": 0, "lost": 0, "wrong": [], "seconds": None, "refused": 0, "unanswered": 0, "excepted": True}


@experiment("start on a read-only file", needs=needs_root)
def read_only_start(bench):
    server = bench.server(start=False)
    folder = os.path.join(bench.folder, "mounted")
    os.mkdir(folder)
    subprocess.run(["mount", "--bind", bench.folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        env = {**os.environ, "DATABASE_URL": f"sqlite://{folder}/shop.db", "COUNTERPART_INDEX_DIR": os.path.join(bench.folder, "index")}
        done = subprocess.run([BINARY, "serve", "--listen", "127.0.0.1:0"], env=env, capture_output=True, text=True, timeout=30)
    finally:
        subprocess.run(["umount", folder], check=True)
    check(done.returncode == 1, f"exit {done.returncode}: {done.stderr}")
    check("read" in done.stderr.lower() and "panicked" not in done.stderr, f"the error names no reason: {done.stderr}")
    return {"acknowledged": 0, "lost": 0, "wrong": [], "seconds": None, "refused": 0, "unanswered": 0, "excepted": True}


# Experiments on SQLite: faults of standard error, to which the server writes its log

def log_fails(bench, stderr, after_start=lambda: None, is_queued=False):
    """Checks that every message is delivered to a webhook while no log line can be written. A second webhook, whose endpoint does not
    exist, causes log lines."""
    sink = Sink()
    server = bench.server(start=False, env={"COUNTERPART_LOG": "debug"}, stderr=stderr, arguments=["--allow-private-targets"])
    for url in [sink.url, "http://127.0.0.1:9/"]: server.run("webhook", "create", "--allow-private-targets", "--store", STORE, "--url", url, "--events", "message.sent")
    server.start()
    after_start()
    load = Load(server)
    began = time.monotonic()
    time.sleep(3)
    seconds = load.writes_again(time.monotonic())
    load.going = False
    load.stop()
    until = time.monotonic() + 30
    while len(sink.seen) < len(load.acknowledged) and time.monotonic() < until: time.sleep(0.1)
    check(len(sink.seen) >= len(load.acknowledged), f"{len(sink.seen)} of {len(load.acknowledged)} messages were delivered")
    status, body = server.get("/readyz")
    check(status == 200, f"/readyz says {status} {body}")
    page = server.get("/metrics")[1]
    lost = [line for line in page.splitlines() if line.startswith("counterpart_log_lines_lost_total")]
    # If nothing reads standard error, log lines first wait in the queue and are not lost yet.
    check(lost and (float(lost[0].split()[1]) > 0 or is_queued), f"no lost line is counted: {lost}")
    return verdict(server, load, seconds)


@experiment("standard error closed")
def stderr_closed(bench):
    reader, writer = os.pipe()
    def close(): os.close(reader); os.close(writer)
    return log_fails(bench, writer, close)


@experiment("standard error on a full disk")
def stderr_full(bench):
    with open("/dev/full", "wb") as full: return log_fails(bench, full)


@experiment("standard error that nothing reads")
def stderr_stalled(bench):
    reader, writer = os.pipe()
    try: return log_fails(bench, writer, is_queued=True)
    finally: os.close(reader); os.close(writer)


@experiment("start with standard error closed")
def start_without_stderr(bench):
    # 192.0.2.1 is no address of this machine, so the server cannot listen there. It cannot report this error, since standard error is
    # closed. It must still end with exit code 1.
    reader, writer = os.pipe()
    os.close(reader)
    env = {**os.environ, "DATABASE_URL": bench.url, "COUNTERPART_INDEX_DIR": os.path.join(bench.folder, "index"), "COUNTERPART_LOG": "trace"}
    done = subprocess.run([BINARY, "serve", "--listen", "192.0.2.1:1"], env=env, stdout=subprocess.DEVNULL, stderr=writer, timeout=60)
    os.close(writer)
    check(done.returncode == 1, f"exit {done.returncode}")
    return {"acknowledged": 0, "lost": 0, "wrong": [], "seconds": None, "refused": 0, "unanswered": 0, "excepted": True}


# Experiments on both databases: faults of the server's process

def stopped_and_continued(bench):
    server = bench.server()
    pid = server.process.pid
    return through(server, lambda: os.kill(pid, signal.SIGSTOP), lambda: os.kill(pid, signal.SIGCONT), during=3, unready=0)


def descriptors(bench):
    server = bench.server()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = lambda number: resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (number, hard))
    return through(server, lambda: limit(8), lambda: limit(1024), during=1, unready=0)


def killed(bench):
    cycles, acknowledged, wrong, slowest = 100 if LONG else 5, {}, [], 0.0
    server = bench.server()
    for _ in range(cycles):
        load = Load(server)
        time.sleep(0.15 + 0.25 * (os.urandom(1)[0] / 255))
        server.kill()
        load.going = False
        load.stop()
        acknowledged |= load.acknowledged
        wrong += load.wrong
        began = time.monotonic()
        server.start()
        load = Load(server, writers=1, readers=0)
        seconds = load.writes_again(began)
        load.stop()
        acknowledged |= load.acknowledged
        check(seconds is not None, "no write after a restart")
        slowest = max(slowest, seconds)
    server.kill()
    kept = set(server.exported().values())
    lost = [text for text in acknowledged if text not in kept]
    return {"acknowledged": len(acknowledged), "lost": len(lost), "wrong": wrong, "seconds": slowest, "refused": 0, "unanswered": cycles,
            "excepted": False, "limit": RESTART}


for database in ["sqlite", "postgres"]:
    for name, function in [("stopped and continued", stopped_and_continued), ("no file descriptors left", descriptors), ("kill -9", killed)]:
        experiment(name, database)(function)


# Experiments on PostgreSQL

@experiment("connections terminated", "postgres")
def terminated(bench):
    server = bench.server()
    def cause():
        for _ in range(10):
            sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{bench.name}'")
            time.sleep(0.05)
    return through(server, cause, lambda: None, during=0, rounds=2, unready=None)


def pg_ctl(*arguments):
    command = [os.path.join(PG_BIN, "pg_ctl"), "-D", os.path.join(PG_FOLDER, "data"), *arguments]
    if IS_ROOT: command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--", *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=90)


def restarted(how):
    def run(bench):
        server = bench.server()
        port = POSTGRES.rsplit(":", 1)[1].split("/")[0]
        options = f"-c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={PG_FOLDER} -c max_connections=400"
        start = lambda: pg_ctl("-w", "-t", "60", "-l", os.path.join(PG_FOLDER, "postgres.log"), "-o", options, "start")
        return through(server, lambda: pg_ctl("-m", how, "stop"), start, during=1.5)
    return run


experiment("restarted (fast)", "postgres")(restarted("fast"))
experiment("restarted (immediate)", "postgres")(restarted("immediate"))


def altered(setting, value, **options):
    """Returns an experiment that changes a setting of the database. PostgreSQL applies the setting to new connections, so the experiment
    terminates the existing ones."""
    def run(bench):
        server = bench.server()
        end_all = lambda: sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{bench.name}'")
        def cause():
            sql(f"ALTER DATABASE {bench.name} SET {setting} = '{value}'")
            end_all()
        def end():
            sql(f"ALTER DATABASE {bench.name} RESET {setting}")
            end_all()
        return through(server, cause, end, during=1.5, **options)
    return run


experiment("read-only", "postgres")(altered("default_transaction_read_only", "on"))
experiment("statement time-out", "postgres")(altered("statement_timeout", "1ms", unready=None))
experiment("idle session time-out", "postgres")(altered("idle_session_timeout", "20ms", unready=None))
experiment("idle transaction time-out", "postgres")(altered("idle_in_transaction_session_timeout", "1ms", unready=None))


@experiment("no connections left", "postgres")
def no_connections(bench):
    sql(f"DROP ROLE IF EXISTS {bench.name}_role")
    sql(f"CREATE ROLE {bench.name}_role LOGIN")
    sql(f"ALTER DATABASE {bench.name} OWNER TO {bench.name}_role")
    url = bench.url.replace("postgres@", f"{bench.name}_role@")
    server = bench.server(url=url)
    def limit(number):
        sql(f"ALTER ROLE {bench.name}_role CONNECTION LIMIT {number}")
        if number == 0: sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{bench.name}'")
    return through(server, lambda: limit(0), lambda: limit(-1), during=1.5)


@experiment("column type changed", "postgres")
def type_changed(bench):
    server = bench.server()
    def change(kind):
        # Only some columns can change their type: those that no trigger names and no generated column needs. The three columns below are of
        # this kind. Each change is a separate transaction. A transaction over several tables could lock them in another order than the
        # server does, which would cause a deadlock.
        for column in ("messages ALTER COLUMN failure", "conversations ALTER COLUMN display_name", "contacts ALTER COLUMN first_name"):
            sql("SET lock_timeout = '10s'; ALTER TABLE " + column + f" TYPE {kind}", bench.name)
    result = through(server, lambda: change("varchar(1000)"), lambda: change("text"), during=0.5, rounds=2, unready=None)
    check(result["refused"] <= 40, f"{result['refused']} requests were refused")
    return result


@experiment("processes stopped and continued", "postgres", needs_root)
def pg_stopped(bench):
    server = bench.server()
    stopped = []
    def stop(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
    def cause():
        # The postmaster is stopped first: otherwise it would start processes for new connections, which could then execute the writes.
        stop(postmaster())
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline") as line: title = line.read()
                if title.startswith("postgres: ") and f" {bench.name} " in title: stop(pid)
    def end():
        for pid in reversed(stopped):
            with contextlib.suppress(ProcessLookupError): os.kill(pid, signal.SIGCONT)
    return through(server, cause, end, during=3)


@experiment("out of memory", "postgres")
def out_of_memory(bench):
    """A trigger raises PostgreSQL's out-of-memory error in each send and in each write probe of /readyz."""
    server = bench.server()
    raises = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''out of memory'' USING ERRCODE = ''53200''; END'"
    sql(raises, bench.name)
    triggers = [("messages", "INSERT"), ("write_probes", "INSERT OR UPDATE")]
    def cause():
        for table, when in triggers: sql(f"CREATE TRIGGER refuse BEFORE {when} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()", bench.name)
    def end():
        for table, _ in triggers: sql(f"DROP TRIGGER refuse ON {table}", bench.name)
    return through(server, cause, end, during=1.5, rounds=2)


@experiment("disk full", "postgres", needs_root)
def pg_disk_full(bench):
    """The database moves to a tablespace on a small disk."""
    with small_disk(bench, "64m") as disk:
        space = os.path.join(disk, "space")
        os.mkdir(space)
        shutil.chown(space, "postgres")
        os.chmod(disk, 0o777)
        sql(f"CREATE TABLESPACE {bench.name} LOCATION '{space}'")
        server = bench.server(start=False)
        sql(f"ALTER DATABASE {bench.name} SET TABLESPACE {bench.name}")
        server.start()
        filler = os.path.join(disk, "filler")
        def fill():
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
                while file.write(bytes(65536)) == 65536: pass
            with contextlib.suppress(OSError), open(filler, "ab", buffering=0) as file:
                while file.write(bytes(512)) == 512: pass
        try: return through(server, fill, lambda: os.remove(filler), during=3)
        finally:
            server.kill()
            sql(f"DROP DATABASE {bench.name} WITH (FORCE)")
            sql(f"DROP TABLESPACE {bench.name}")
            bench.name = None


@experiment("failed over to an empty server", "postgres")
def empty_server(bench):
    # Starting another server would take long. So this only simulates one: it moves the database aside, and creates an empty database of the
    # same name.
    server = bench.server()
    end_all = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ('{bench.name}', '{bench.name}_aside')"
    def swap(one, other):
        for _ in range(100):
            try:
                sql(f"ALTER DATABASE {one} ALLOW_CONNECTIONS false")
                sql(end_all)
                sql(f"ALTER DATABASE {one} RENAME TO {other}")
                return sql(f"ALTER DATABASE {other} ALLOW_CONNECTIONS true")
            except RuntimeError: time.sleep(0.02)
        raise AssertionError("the databases could not be exchanged")
    def cause():
        swap(bench.name, f"{bench.name}_aside")
        sql(f"CREATE DATABASE {bench.name}")
    def end():
        swap(bench.name, f"{bench.name}_empty")
        swap(f"{bench.name}_aside", bench.name)
        sql(f"DROP DATABASE {bench.name}_empty WITH (FORCE)")
    return through(server, cause, end, during=1.5)


class Overdue(BaseException):
    """The time limit of an experiment is over. Not a subclass of Exception, so that code which ignores the errors of requests, such as
    OSError, does not ignore it."""


@contextlib.contextmanager
def deadline(seconds):
    """Raises Overdue in the main thread if the block takes longer, also while it waits for a process or a thread."""
    def ring(_signal, frame):
        raise Overdue(f"not done after {seconds} s, in {frame.f_code.co_name}, {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try: yield
    finally: signal.alarm(0)


def main():
    chosen = [name for name in sys.argv[1:] if not name.startswith("--")]
    failures = []
    print(f"{'experiment':38} {'acknowledged':>12} {'lost':>5} {'wrong':>6} {'refused':>8} {'unanswered':>10} {'again after':>12}")
    for name, database, needs, function in EXPERIMENTS:
        title = f"{name}, {database}"
        if chosen and not any(part in title for part in chosen): continue
        reason = needs() or (None if database == "sqlite" or POSTGRES else "needs PostgreSQL")
        if reason:
            SKIPPED.append(title)
            print(f"{title:38} skipped: {reason}")
            continue
        bench = Bench(database)
        try:
            with deadline(1200 if LONG else 180): result = function(bench)
        except (Exception, Overdue) as error:
            places = [f"{place.name}:{place.lineno}" for place in traceback.extract_tb(error.__traceback__)]
            log = ["    " + server.tail().replace("\n", "\n    ") for server in bench.servers]
            failures.append("\n".join([f"{title:38} FAILED: {error} ({' > '.join(places)})", *log]))
            print(failures[-1], flush=True)
            RESULTS.append((title, None))
            continue
        finally:
            with deadline(60): bench.close()
        RESULTS.append((title, result))
        seconds = result["seconds"]
        again = "not expected" if result["excepted"] and seconds is None else f"{seconds:.2f} s"
        row = (f"{title:38} {result['acknowledged']:12} {result['lost']:5} {len(result['wrong']):6} {result['refused']:8} "
               f"{result['unanswered']:10} {again:>12}")
        if result["lost"] or result["wrong"] or (not result["excepted"] and seconds > result.get("limit", PROMPT)):
            row = "\n".join([row + " FAILED", *(f"    wrong: {line}" for line in result["wrong"][:3])])
            failures.append(row)
        print(row, flush=True)
    done = [result for _, result in RESULTS if result]
    print(f"fault experiments, revision {REVISION}: {len(RESULTS)} run, {len(SKIPPED)} skipped; "
          f"{sum(result['acknowledged'] for result in done)} acknowledged, {sum(result['lost'] for result in done)} lost, "
          f"{sum(len(result['wrong']) for result in done)} wrong answers")
    # Again at the end, since the output of CI is often shortened to its last lines.
    for failure in failures: print(failure)
    return 1 if failures else 0


if __name__ == "__main__": sys.exit(main())
