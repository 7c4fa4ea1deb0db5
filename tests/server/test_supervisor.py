"""The supervisor: start, death of everything in turn, reload under load, stop."""
import fcntl
import json
import os
import pty
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import termios
import threading
import time

from harness import (BIN, ROOT, SCALE, Client, Millrace, alive, copy_of_template, crowd, equal,
                     folder, freeze, http, marked, note, ok, read, redis, run_tests, test, wait_for)
from load import Load


def half_a_request(m):
    """A client with a request that a node has begun to read, and cannot answer yet."""
    client = Client(m.port)
    client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    time.sleep(0.3)
    return client


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)


def tcp_sockets(pid):
    """Inodes of the TCP sockets a process has open."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in read(f"/proc/{pid}/net/{table}").decode().splitlines()[1:]:
            inodes.add(line.split()[9])
    mine = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            mine.add(target[8:-1])
    return inodes & mine


@test("first start")
def _():
    data = folder("fresh") + "/a/var"
    m = Millrace(data=data, env={"MILLRACE_WEB_DIR": "/nonexistent"})
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    m.launch(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, most)))
    with m.wait_ready():
        limits = [l.split() for l in read(f"/proc/{m.nodes()[0]}/limits").decode().splitlines()]
        files = next(l for l in limits if l[:3] == ["Max", "open", "files"])
        equal(files[3], files[4], "a node may open as many files as the system allows")
        r = m.get("/readyz")
        equal(r.status, 200, "ready with private stores and nothing configured", r)
        stores = json.loads(r.body)["stores"]
        ok(all(s["up"] and s["latency_us"] > 0 for s in stores.values()), "each with a latency", r)
        equal(m.get("/healthz").status, 200, "healthz")
        page = m.get("/")
        ok(page.status == 200 and b"millrace is running" in page.body, "a page without pages", page)
        r = m.get("/api/no/such/thing")
        equal((r.status, json.loads(r.body)["error"]["code"]), (404, "not_found"),
              "unknown API route")
        equal(m.get("/api/x", method="POST", body=b"{}").status, 404, "unknown API route, POST")
        equal(m.get("/nothing.html").status, 404, "unknown page")
        wait_for(lambda: m.log().count("node: serves") == 2)
        metrics = m.get("/metrics").body.decode()
        for name in ("resident_bytes", "cpu_seconds_total", "open_files", "tasks"):
            for node in "01":
                ok(f'millrace_node_{name}{{node="{node}"}} ' in metrics,
                   f"metric {name} of node {node}")
        ok("simulated" in m.output(), "it says that the AI is simulated", m.output())
        equal(len(m.nodes()), 2, "two nodes")
        equal(len(m.children("millrace sim")), 1, "one simulated AI")
        for store in ("redis", "mariadb"):
            equal(tcp_sockets(m.pid_of(store)), set(), f"{store} listens on no port")
            equal(stat.S_IMODE(os.stat(f"{data}/secret/{store}").st_mode), 0o600,
                  f"the password of {store} is readable by us only")
        equal(stat.S_IMODE(os.stat(data).st_mode), 0o700, "nobody else enters the data directory")
        conf = dict(l.split(" ", 1) for l in open(f"{data}/secret/redis.conf").read().splitlines())
        equal((conf["appendonly"], conf["appendfsync"], conf["maxmemory-policy"]),
              ("yes", "everysec", "volatile-lru"), "how Redis keeps and forgets")
        equal(redis(m, "SET", "kept", "1"), "+OK", "write something")
        equal(m.stop(), 0, "SIGTERM ends it with 0", m.log())
    ok(not os.path.exists(f"{data}/run/redis.sock"), "no socket is left")
    passwords = {s: open(f"{data}/secret/{s}").read() for s in ("redis", "mariadb")}
    ok(len(passwords["redis"].strip()) >= 32 and passwords["redis"] != passwords["mariadb"],
       "passwords are long and differ")
    with Millrace(data=data) as again:
        equal(again.get("/readyz").status, 200, "second start on the same data")
        equal(redis(again, "GET", "kept"), "1", "what was written is there")
        equal({s: open(f"{data}/secret/{s}").read() for s in passwords}, passwords,
              "with the same passwords")
        ok("making a new MariaDB" not in again.log(), "and the same database")


@test("a node dies")
def _():
    with Millrace() as m:
        ok(wait_for(lambda: m.log().count("node: serves") == 2), "two nodes serve", m.log())
        for pid in m.nodes():
            kill(pid)
            ok(wait_for(lambda: len(m.nodes()) == 2 and pid not in m.nodes()), "it is replaced")
        ok(wait_for(m.ready), "the server is ready again", m.log())
        ok("signal 9" in m.log(), "the log tells how it ended")
        ok(wait_for(lambda: m.log().count("node: serves") == 4), "both serve", m.log())
        kill(m.children("millrace sim")[0])
        ok(wait_for(lambda: len(m.children("millrace sim")) == 1),
           "the simulated AI is replaced too")
        equal(m.stop(), 0, "stops cleanly after that", m.log())


@test("a store dies")
def _():
    with Millrace() as m:
        nodes = m.nodes()
        equal(redis(m, "SET", "kept", "before"), "+OK", "write something")
        equal(redis(m, "CONFIG", "SET", "appendfsync", "always"), "+OK", "to disk at once")
        equal(redis(m, "SET", "kept", "here"), "+OK", "write once more")
        for store in ("redis", "mariadb"):
            pid = m.pid_of(store)
            kill(pid)
            ok(wait_for(lambda: m.pid_of(store) not in (None, pid) and m.ready(), 30),
               f"{store}: killed, replaced, ready", m.log())
            equal(m.get("/healthz").status, 200, f"{store}: nodes live on")
        equal(redis(m, "GET", "kept"), "here", "Redis has what it had")
        equal(m.nodes(), nodes, "the nodes are the same")


@test("a store falls silent; second instances meanwhile")
def _():
    with Millrace() as m:
        pid = m.pid_of("redis")
        freeze(pid)
        ok(wait_for(lambda: m.get("/readyz").status == 503, 10), "not ready meanwhile")
        r = json.loads(m.get("/readyz").body)
        equal((r["success"], r["stores"]["redis"]["up"], r["stores"]["mysql"]["up"]),
              (False, False, True), "and it says which store")

        second = Millrace(data=m.data).launch()
        equal(second.wait(), 1, "a second server on the same data is refused")
        ok(f"another millrace (pid {m.process.pid}) is running on {m.data}" in second.log(),
           "with the pid of the first", second.log())
        other = Millrace(listen=f"127.0.0.1:{m.port}").launch()
        equal(other.wait(), 1, "a server on the same port is refused")
        ok(f"cannot listen at 127.0.0.1:{m.port}: Address already in use" in other.log(),
           "with the address", other.log())
        equal(other.pid_of("redis"), None, "it has started nothing")
        equal(m.get("/healthz").status, 200, "the first does not mind")

        ok(wait_for(lambda: "does not answer (3 of 3)" in m.log(), 30), "silence is noticed",
           m.log())
        # SIGTERM reaches it now; without this it is killed a minute later.
        kill(pid, signal.SIGCONT)
        ok(wait_for(lambda: m.pid_of("redis") not in (None, pid) and m.ready(), 30),
           "stopped and replaced", m.log())


@test("the supervisor is killed")
def _():
    m = Millrace(env={"MILLRACE_DRAIN_MS": "6000"})
    m.start()
    nodes, stores = m.nodes(), (m.pid_of("redis"), m.pid_of("mariadb"))
    # A request that never ends must not keep the old nodes, and with them the port, for long.
    busy = Client(m.port)
    busy.send(b"GET /healthz HTTP/1.1\r\n")
    kill(m.process.pid)
    m.wait()
    after = Millrace(data=m.data, listen=f"127.0.0.1:{m.port}")
    with after:
        equal((after.pid_of("redis"), after.pid_of("mariadb")), stores, "its stores are adopted",
              after.log())
        equal(after.log().count("was running"), 2, "and the log says so", after.log())
        ok(wait_for(m.ready, 5), "the same port is served again")
        ok(wait_for(lambda: not any(alive(p) for p in nodes), 15), "its nodes have ended")
        busy.close()
        kill(after.pid_of("redis"))
        ok(wait_for(lambda: after.pid_of("redis") not in (None, stores[0]) and after.ready()),
           "an adopted store that dies is replaced", after.log())
        equal(after.stop(), 0, "stops cleanly", after.log())
    ok(not any(alive(p) for p in stores), "adopted stores are stopped")


@test("stores that were left but do not answer")
def _():
    m = Millrace()
    m.start()
    pid, nodes = m.pid_of("redis"), m.nodes()
    kill(m.process.pid)
    m.wait()
    # A Redis with another password stands for one that is broken.
    s = socket.socket(socket.AF_UNIX)
    s.connect(f"{m.data}/run/redis.sock")
    password = open(f"{m.data}/secret/redis").read().strip()
    s.sendall(f"AUTH {password}\r\nCONFIG SET requirepass other\r\n".encode())
    s.recv(100)
    began = time.monotonic()
    with Millrace(data=m.data) as after:
        took = time.monotonic() - began
        ok(took < 8 * crowd(), f"nobody waits for it to think better of it: {took:.1f} s")
        ok(after.pid_of("redis") != pid, "it is replaced")
        ok(not alive(pid), "and stopped", after.log())
        equal(after.get("/readyz").status, 200, "ready")
    ok(wait_for(lambda: not any(alive(p) for p in nodes), 20),
       "the nodes of the killed supervisor end by themselves", nodes)


@test("a pid file that names somebody else")
def _():
    data = copy_of_template()
    innocent = subprocess.Popen(["sleep", "60"], cwd=f"{data}/redis")
    with Millrace() as other:
        # A stranger in our folder; the right program in another folder; nonsense.
        for name in (str(innocent.pid), str(other.pid_of("redis")), "-1"):
            for store in ("redis", "mariadb"):
                with open(f"{data}/run/{store}.pid", "w") as f:
                    f.write(name + "\n")
            with Millrace(data=data) as m:
                ok(str(m.pid_of("redis")) != name, f"{name!r}: a store of our own is started",
                   m.log())
            equal(innocent.poll(), None, f"{name!r}: a stranger is left alone")
        ok(other.ready() and "has ended" not in other.log(), "so is somebody else's store",
           other.log())
    innocent.kill()
    innocent.wait()


class Terminal:
    """A terminal that a server is started from; what appears on it is kept."""

    def __init__(self, m):
        self.master, slave = pty.openpty()
        m.launch(stderr=slave, preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.seen, self.end = b"", threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while not self.end.is_set():
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.master, 4096)
                except OSError:
                    return

    def press(self, key):
        os.write(self.master, key)

    def text(self):
        return self.seen.decode("utf-8", "replace")

    def close(self):
        self.end.set()
        self.reader.join()
        os.close(self.master)


@test("Ctrl-C")
def _():
    m = Millrace()
    terminal = Terminal(m)
    m.wait_ready()
    stores = (m.pid_of("redis"), m.pid_of("mariadb"))
    half = half_a_request(m)
    began = time.monotonic()
    terminal.press(b"\x03")
    time.sleep(0.5)
    ok(all(alive(p) for p in stores), "the stores do not get it: nodes drain first")
    half.send(b"\r\n")
    equal(half.reply().status, 200, "a request under way is answered")
    half.close()
    equal(m.wait(), 0, "exit status 0", terminal.text())
    ok(time.monotonic() - began < 5 * crowd(), "at once when the request is done")
    ok("signal" not in terminal.text(), "nothing was killed", terminal.text())
    terminal.close()


@test("the terminal goes away")
def _():
    m = Millrace()
    terminal = Terminal(m)
    m.wait_ready()
    nodes = m.nodes()
    m.send_signal(signal.SIGHUP)
    ok(wait_for(lambda: len(m.nodes()) == 2 and not set(nodes) & set(m.nodes())),
       "while it is there, SIGHUP reloads", terminal.text())
    terminal.close()
    equal(m.wait(), 0, "when it is gone, SIGHUP stops")


@test("a second SIGINT hurries")
def _():
    m = Millrace(env={"MILLRACE_DRAIN_MS": "60000"})
    with m:
        half = half_a_request(m)
        began = time.monotonic()
        m.send_signal(signal.SIGINT)
        time.sleep(0.7)
        equal(m.process.poll(), None, "the first one waits for the request")
        m.send_signal(signal.SIGINT)
        equal(m.wait(), 0, "the second does not", m.log())
        ok(time.monotonic() - began < 8 * crowd(), "and stores stop cleanly", m.log())
        half.close()


@test("a drain has an end")
def _():
    m = Millrace(env={"MILLRACE_DRAIN_MS": "1500"})
    with m:
        half = half_a_request(m)
        began = time.monotonic()
        equal(m.stop(), 0, "SIGTERM", m.log())
        took = time.monotonic() - began
        ok(1.3 < took < 6 * crowd(), f"ends after drain_ms: {took:.1f} s", m.log())
        ok("cut off" in m.log(), "the log says that a request was cut off")
        half.close()


def reload(m):
    """SIGHUP, and wait until the new nodes have taken over and the old ones are gone."""
    before = m.nodes()
    done = m.log().count("the old nodes have ended")
    start = len(m.log())
    m.send_signal(signal.SIGHUP)
    ok(wait_for(lambda: m.log().count("the old nodes have ended") > done, 30), "reloaded", m.log())
    after = m.nodes()
    log = m.log()[start:]
    ok(0 < log.rfind("node: serves") < log.find("node: draining"),
       "the old nodes drain when all new ones serve", log)
    return before, after


@test("reload under load")
def _():
    with Millrace(env={"MILLRACE_WEB_DIR": "/nonexistent"}) as m:
        stores = (m.pid_of("redis"), m.pid_of("mariadb"), m.children("millrace sim"))
        load = Load(m.port)
        for _i in range(5):
            before, after = reload(m)
            ok(len(after) == 2 and not set(before) & set(after), "both nodes are new ones")
        count, failures = load.stop()
        equal(failures[:5], [], f"{count} requests over 5 reloads, {len(failures)} failed", m.log())
        ok(count > 100, f"{count} requests are a load")
        equal(m.process.poll(), None, "the supervisor has kept its process")
        equal((m.pid_of("redis"), m.pid_of("mariadb"), m.children("millrace sim")), stores,
              "stores and simulated AI were not touched")
        # The next one comes before the last has finished.
        load = Load(m.port)
        for _i in range(4):
            m.send_signal(signal.SIGHUP)
            time.sleep(0.15 * SCALE)
        ok(wait_for(lambda: len(m.nodes()) == 2 and m.ready(), 30), "reloads upon reloads settle",
           m.log())
        count, failures = load.stop()
        equal(failures[:5], [], f"{count} requests meanwhile, {len(failures)} failed", m.log())
        equal(m.stop(), 0, "stops cleanly", m.log())


@test("reload to another program and other settings")
def _():
    where = folder()
    binary = f"{where}/millrace"
    shutil.copy(BIN, binary)
    m = Millrace(binary=binary, env={"MILLRACE_WEB_DIR": "/nonexistent", "MILLRACE_NODES": None},
                 config='{"nodes": 1}')
    with m:
        ok(b"millrace is running" in m.get("/").body, "the first program serves")
        changed = read(BIN).replace(b"millrace is running", b"millrace has changed"[:19])
        ok(changed != read(BIN), "another program is made")
        with open(f"{where}/new", "wb") as f:
            f.write(changed)
        os.chmod(f"{where}/new", 0o755)
        os.rename(f"{where}/new", binary)
        m.write_config('{"nodes": 3}')
        load = Load(m.port)
        before, after = reload(m)
        count, failures = load.stop()
        equal(failures[:5], [], f"{count} requests, {len(failures)} failed", m.log())
        equal((len(before), len(after)), (1, 3), "from one node to three")
        ok(b"millrace has change" in m.get("/").body, "the other program serves", m.get("/"))
        pid = after[0]
        kill(pid)
        ok(wait_for(lambda: len(m.nodes()) == 3 and pid not in m.nodes()),
           "a new node that dies is replaced")


@test("reloads that must not be")
def _():
    where = folder()
    binary = f"{where}/millrace"
    shutil.copy(BIN, binary)
    m = Millrace(binary=binary, config="{}")
    with m:
        nodes = m.nodes()

        def refused(name, text):
            m.send_signal(signal.SIGHUP)
            ok(wait_for(lambda: text in m.log()), name, m.log())
            equal((m.nodes(), m.get("/readyz").status), (nodes, 200), f"{name}: all goes on")

        m.write_config('{"nodes": 1000}')
        refused("wrong settings", 'as before: config.json: "nodes" is 1000; allowed are 0 to 32')
        m.write_config('{"nodes": 3')
        refused("no JSON", "as before: config.json, line 1, column 12: ")
        m.write_config('{"user": "nobody"}')
        refused("another user", "as before: user cannot change without a restart")
        m.write_config("{}")
        os.rename(binary, f"{where}/good")
        refused("no program", f"as before: cannot start {binary}: No such file or directory")
        with open(binary, "w") as f:
            f.write("#!/bin/sh\nexit 3\n")
        os.chmod(binary, 0o755)
        refused("a program that fails", "config --check: exit status 3")
        with open(binary, "w") as f:
            f.write("#!/bin/sh\nexit 0\n")
        refused("a program that is another one", "is not millrace")
        os.rename(f"{where}/good", binary)
        # A node that dies now must come back from the settings that were accepted.
        m.write_config('{"nodes": 1000}')
        kill(nodes[0])
        ok(wait_for(lambda: len(m.nodes()) == 2 and nodes[0] not in m.nodes() and m.ready()),
           "a node that dies is replaced with the old settings", m.log())
        m.write_config("{}")
        before, after = reload(m)
        ok(not set(before) & set(after), "and a good reload works afterwards")


@test("reload to another address")
def _():
    m = Millrace(listen=None, env={"MILLRACE_LISTEN": None}, config='{"listen": "127.0.0.1:0"}')
    with m:
        free = socket.create_server(("127.0.0.1", 0))
        port = free.getsockname()[1]
        m.write_config('{"listen": "127.0.0.1:%d"}' % port)
        m.send_signal(signal.SIGHUP)
        ok(wait_for(lambda: "as before: cannot listen at" in m.log()), "taken: refused", m.log())
        equal(m.get("/readyz").status, 200, "the old one goes on")
        free.close()
        reload(m)
        equal(http(port, "/healthz").status, 200, "free: served")
        old = m.port
        ok(wait_for(lambda: refused_at(old)), "the old one is closed")


def refused_at(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return False
    except ConnectionRefusedError:
        return True


@test("stopped in the middle of starting")
def _():
    made = copy_of_template()
    # Some on new data, whose making is interrupted, some on old data, where mariadbd is.
    for i, delay in enumerate((0.0, 0.05, 0.2, 0.4, 0.7, 1.0, 0.06, 0.08, 0.1, 0.12, 0.15)):
        m = Millrace(data=folder() + "/v" if i < 6 else made).launch()
        time.sleep(delay * SCALE)
        m.send_signal((signal.SIGTERM, signal.SIGINT)[i % 2])
        status = m.wait()
        # Before its handlers are in place, a signal just ends it: nothing has been started then.
        ok(status == 0 or (status < 0 and m.pid_of("redis") is None),
           f"after {delay} s: status {status}", m.log())
        ok("killing it" not in m.log(), "nothing had to be killed", m.log())
        ok(wait_for(lambda: not marked(), 3), "nothing is left", marked())
        ok(not os.path.exists(f"{m.data}/mariadb/new"), "no half-made database is left")


@test("stopped in the middle of a reload")
def _():
    data = copy_of_template()
    for delay in (0.0, 0.01, 0.03, 0.06, 0.1, 0.2):
        m = Millrace(data=data)
        with m:
            m.send_signal(signal.SIGHUP)
            time.sleep(delay * SCALE)
            equal(m.stop(), 0, f"{delay} s after SIGHUP: exit status 0", m.log())
            ok(wait_for(lambda: not marked(), 1), "nothing is left", marked())


@test("stopped at the very moment of a reload")
def _():
    data = copy_of_template()
    for _ in range(4):
        m = Millrace(data=data)
        with m:
            m.send_signal(signal.SIGHUP)
            end = time.monotonic() + 10 * SCALE
            while "reloading: new nodes" not in m.log() and time.monotonic() < end:
                pass  # no pause: the new program is there within a millisecond
            equal(m.stop(), 0, "a signal that the old program had caught is not lost with it",
                  m.log())


@test("killed in the middle of starting")
def _():
    data = folder() + "/v"
    for delay in (0.05, 0.3, 0.6, 0.9):
        m = Millrace(data=data).launch()
        time.sleep(delay * SCALE)
        kill(m.process.pid)
        m.wait()
        left = sum("millrace" in c for c in marked().values())
        ok(wait_for(lambda: not any(c.startswith("millrace") for c in marked().values()), 10),
           f"after {delay} s: none of ours is left ({left} at first)", marked())
    with Millrace(data=data) as m:
        equal(m.get("/readyz").status, 200, "the next start makes it whole", m.log())
        equal(m.stop(), 0, "and stops cleanly", m.log())


@test("configured stores")
def _():
    with Millrace() as m:
        passwords = {s: open(f"{m.data}/secret/{s}").read().strip() for s in ("redis", "mariadb")}
        env = {
            "MILLRACE_REDIS_URL": f"unix:{m.data}/run/redis.sock",
            "MILLRACE_REDIS_PASSWORD": passwords["redis"],
            "MILLRACE_MYSQL_URL": f"unix:{m.data}/run/mariadb.sock?user=millrace&database=millrace",
            "MILLRACE_MYSQL_PASSWORD": passwords["mariadb"],
            "MILLRACE_AI_URL": "http://127.0.0.1:9/v1"}
        with Millrace(data=folder() + "/v", env=env) as other:
            equal(
                other.get("/readyz").status, 200, "a server on somebody else's stores", other.log())
            equal((other.pid_of("redis"), other.pid_of("mariadb")), (None, None), "has none itself")
            equal(other.children("millrace sim"), [], "nor a simulated AI")
            ok(all(p not in other.log() + other.output() for p in passwords.values()),
               "passwords are not printed")
            freeze(m.pid_of("redis"))
            equal(other.get("/readyz").status, 503, "not ready while one does not answer")
            equal(other.get("/healthz").status, 200, "but alive")
            kill(m.pid_of("redis"), signal.SIGCONT)
            ok(wait_for(other.ready), "and ready again")
            equal(other.stop(), 0, "stops cleanly")
        ok(m.ready(), "the stores were not its to stop")
        env["MILLRACE_REDIS_URL"] = "redis://127.0.0.1:9"
        down = Millrace(data=folder() + "/v", env=env)
        with down:
            ok("serves, but Redis does not answer" in down.log(),
               "a store that is down: it starts, "
               "and says so", down.log())
            equal(down.get("/readyz").status, 503, "not ready")


@test("from private stores to configured ones, by a reload")
def _():
    with Millrace() as other:
        password = open(f"{other.data}/secret/redis").read().strip()
        m = Millrace(config="{}")
        with m:
            pid = m.pid_of("redis")
            m.write_config(json.dumps({"redis": {"url": f"unix:{other.data}/run/redis.sock",
                                                 "password": password}}))
            reload(m)
            ok(wait_for(lambda: not alive(pid)), "the private Redis ends with the old nodes",
               m.log())
            ok(m.ready(), "the configured one is used")
            m.write_config("{}")
            reload(m)
            ok(m.ready() and alive(m.pid_of("redis")), "and back again", m.log())


@test("another user")
def _():
    if not ROOT:
        note("needs root")
        return
    data = folder() + "/v"
    m = Millrace(data=data, env={"MILLRACE_USER": "nobody", "MILLRACE_SAMPLE_PAPERS": "20"})
    with m:
        equal(m.get("/readyz").status, 200, "started by root, as nobody", m.log())
        ok("the sample is loaded" in m.log(), "with papers", m.log())
        uid = os.stat(data).st_uid
        ok(uid != 0, "the data belongs to it")
        everybody = [m.process.pid, *m.nodes(), m.pid_of("redis"), m.pid_of("mariadb")]
        owners = {
            p: read(f"/proc/{p}/status").decode().split("Uid:")[1].split()[:4] for p in everybody}
        ok(all(set(o) == {str(uid)} for o in owners.values()), "and so does every process", owners)
        ok("running as root" not in m.log(), "no warning")
        before, after = reload(m)
        ok(not set(before) & set(after), "it can reload")
        equal(m.stop(), 0, "stops cleanly", m.log())
    owned = copy_of_template()
    with Millrace(data=owned, env={"MILLRACE_USER": "nobody"}) as m:
        equal(m.get("/readyz").status, 200, "data that was root's is handed over", m.log())
    as_root = Millrace(data=owned)
    with as_root:
        equal(as_root.log().count("running as root"), 1, "as root: one warning")


run_tests()
