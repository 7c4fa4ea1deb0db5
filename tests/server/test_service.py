"""The server as a service: what it tells the service manager, which is played by this test; a
listening socket that the manager passes, and one at a path."""
import json
import os
import re
import shutil
import signal
import socket
import stat
import threading
import time

from harness import (BIN, SCALE, Client, Millrace, alive, crowd, equal, folder, freeze, ok, read,
                     run_tests, test, wait_for)

WATCHDOG_S = 4  # it must be told twice as often


class Manager:
    """A datagram socket, and every message that came, with its time."""

    def __init__(self, abstract=False):
        self.path = f"{folder()}/notify"
        self.name = "@" + self.path if abstract else self.path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + self.path if abstract else self.path)
        self.socket.settimeout(0.2)
        self.messages, self.end = [], threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while not self.end.is_set():
            try:
                text = self.socket.recv(65536).decode()
            except TimeoutError:
                continue
            self.messages.append((time.monotonic(), dict(
                line.split("=", 1) for line in text.split("\n"))))

    def env(self):
        return {"NOTIFY_SOCKET": self.name, "WATCHDOG_USEC": str(WATCHDOG_S * 1000000)}

    def told(self, name, since=0):
        return [m for at, m in self.messages if name in m and at >= since]

    def phases(self, since=0):
        """The messages about the state, in order, without those that only ask for time."""
        states = [[k for k in m if k in ("READY", "RELOADING", "STOPPING")]
                  for at, m in self.messages if at >= since]
        return [s[0] for s in states if s]

    def silence(self):
        """The longest time between two WATCHDOG=1."""
        times = [at for at, m in self.messages if "WATCHDOG" in m]
        return max((b - a for a, b in zip(times, times[1:])), default=1000)

    def close(self):
        self.end.set()
        self.reader.join()
        self.socket.close()


def variables(pid):
    return {v.split(b"=")[0].decode() for v in read(f"/proc/{pid}/environ").split(b"\0")}


def reloads(manager, m):
    began = time.monotonic()
    m.send_signal(signal.SIGHUP)
    ok(wait_for(lambda: manager.told("READY", began), 60), "SIGHUP: READY=1 comes again", m.log())
    return began, manager.told("READY", began)


@test("the life of a service")
def _():
    manager = Manager()
    m = Millrace(env=manager.env())
    m.launch()
    ok(wait_for(lambda: manager.told("READY"), 60), "READY=1", m.log())
    m.wait_ready()
    equal(m.get("/readyz").status, 200, "and /readyz agrees at once")
    equal(manager.phases(), ["READY"], "once")
    ok(manager.told("EXTEND_TIMEOUT_USEC"), "it has asked for time to start")
    equal(manager.told("READY")[0]["STATUS"], f"2 nodes at http://127.0.0.1:{m.port}", "STATUS")
    for pid in m.nodes() + [m.pid_of("redis"), m.pid_of("mariadb")]:
        left = {v for v in variables(pid) if v.startswith(("NOTIFY", "WATCHDOG", "LISTEN_"))}
        equal(left, set(), f"{pid}: children do not see the variables")

    pid, nodes = m.process.pid, m.nodes()
    began, ready = reloads(manager, m)
    equal(manager.phases(began)[0], "RELOADING", "RELOADING=1 comes first")
    told = manager.told("RELOADING", began)[0]
    ok(abs(int(told["MONOTONIC_USEC"]) / 1e6 - began) < 5 * crowd(), "with the time of this system",
       told)
    equal(len(ready), 1, "READY=1 comes once")
    ok(wait_for(lambda: not set(nodes) & set(m.nodes())), "the old nodes end", m.log())
    ok(alive(pid) and len(m.nodes()) == 2, "the process is the same")
    since = time.monotonic()
    time.sleep(2 * WATCHDOG_S)
    beats = len(manager.told("WATCHDOG", since))
    ok(3 <= beats <= 6, f"WATCHDOG=1 goes on after the reload, twice in the time: {beats}")
    equal(manager.told("EXTEND_TIMEOUT_USEC", since), [], "and no time is asked for")

    m.write_config("{")
    began, ready = reloads(manager, m)
    equal(manager.phases(began), ["RELOADING", "READY"], "a refused reload ends, too")
    ok(ready[0]["STATUS"].startswith("not reloaded: config.json"), "and says why", ready)

    since = time.monotonic()
    equal(m.stop(), 0, "SIGTERM", m.log())
    equal(manager.phases(since), ["STOPPING"], "STOPPING=1")
    ok(manager.told("EXTEND_TIMEOUT_USEC", since), "it has asked for time to stop")
    ok(manager.silence() <= WATCHDOG_S * 0.75 * crowd(),
       f"WATCHDOG=1 at half of the time, all along: {manager.silence():.1f} s")
    manager.close()


@test("READY=1 waits for the stores")
def _():
    manager = Manager(abstract=True)
    with Millrace(env={**manager.env(), "MILLRACE_MYSQL_URL": "mysql://u:p@127.0.0.1:1/d"}) as m:
        since = time.monotonic()
        ok(wait_for(lambda: manager.told("EXTEND_TIMEOUT_USEC", since)), "it asks for more time")
        ok(wait_for(lambda: any("is not ready: MySQL" in s["STATUS"]
                                for s in manager.told("STATUS"))),
           "STATUS says what is missing, on an abstract socket", manager.messages)
        equal(manager.told("READY"), [], "no READY=1: nothing could be submitted")
        ok(wait_for(lambda: manager.told("WATCHDOG", since)),
           "but WATCHDOG=1: a restart would not help")
    manager.close()


@test("no node can serve")
def _():
    manager = Manager()
    binary = f"{folder()}/millrace"
    shutil.copy(BIN, binary)
    with Millrace(env=manager.env(), binary=binary) as m:
        ok(wait_for(lambda: manager.told("READY")), "ready")
        with open(binary + ".new", "w") as f:
            f.write("#!/bin/sh\nexit 1\n")
        os.chmod(binary + ".new", 0o755)
        os.rename(binary + ".new", binary)
        for pid in m.nodes():
            os.kill(pid, signal.SIGKILL)
        ok(wait_for(lambda: not m.nodes()), "both nodes are dead")
        time.sleep(1)
        since = time.monotonic()
        time.sleep(WATCHDOG_S)
        equal(manager.told("WATCHDOG", since), [], "WATCHDOG=1 stops: the manager will restart it",
              m.log())
        shutil.copy(BIN, binary + ".new")
        os.rename(binary + ".new", binary)
        ok(wait_for(lambda: manager.told("WATCHDOG", since), 40), "and comes again with the nodes",
           m.log())
    manager.close()


@test("a node hangs")
def _():
    with Millrace() as m:
        ok(wait_for(lambda: m.log().count("node: serves") == 2), "two nodes serve", m.log())
        hung, other = m.nodes()
        began = time.monotonic()
        freeze(hung)
        ok(wait_for(lambda: not alive(hung), 60), "a node that stands still is killed", m.log())
        took = time.monotonic() - began
        ok(took > 20, f"not before it has been silent for long: {took:.0f} s")
        ok(wait_for(lambda: m.log().count("node: serves") == 3), "another one serves", m.log())
        ok(re.search(rf"pid {hung}, hangs", m.log()), "the log says so", m.log())
        ok(alive(other), "the other one lives on")


# --- a socket at a path ---

class Local(Client):
    """A connection to a path."""

    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(20 * SCALE)
        self.s.connect(path)
        self.buffer = b""


def ask(path, target, **kw):
    c = Local(path)
    try:
        return c.request(target, **kw)
    finally:
        c.close()


def serves(path):
    try:
        return ask(path, "/readyz").status == 200
    except OSError:
        return False


def register(path, name, address):
    return ask(path, "/api/register", method="POST", headers=[
        "Content-Type: application/json", f"X-Forwarded-For: {address}"],
        body=json.dumps({"username": name, "password": "correct horse battery"}).encode()).status


def unix_server(path, **env):
    m = Millrace(listen=f"unix:{path}", env=env)
    m.launch()
    ok(wait_for(lambda: serves(path), 60), "it serves at a path", m.log())
    return m


@test("a socket at a path")
def _():
    path, other = f"{folder()}/http.sock", f"{folder()}/other.sock"
    m = unix_server(path, MILLRACE_TRUSTED_PROXIES="unix", MILLRACE_NEW_USER_HOURLY_MAX="2")
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o660, "its rights")
    ok(wait_for(lambda: f"millrace is ready at unix:{path}\n" in m.output()), "it says where",
       m.output())
    ok("trusted_proxies" not in m.log(), "a trusted proxy is fine", m.log())
    equal([register(path, f"user{i}", "9.0.0.1") for i in range(3)], [201, 201, 429],
          "the client is whom the proxy names")
    equal(register(path, "user3", "9.0.0.2"), 201, "another client is counted by itself")

    second = Millrace(listen=f"unix:{path}").launch()
    equal(second.wait(), 1, "a second server at the same path is refused")
    ok(f"cannot listen at unix:{path}: Address already in use" in second.log(), "and says why",
       second.log())
    ok(serves(path), "the first one is not disturbed")

    kept = Local(path)
    m.process.kill()  # the file stays behind
    m.wait()
    kept.close()
    ok(os.path.exists(path), "a server that is killed leaves its socket")
    again = Millrace(data=m.data, listen=f"unix:{path}").launch()
    ok(wait_for(lambda: serves(path), 60), "which the next one replaces", again.log())
    ok('trusted_proxies does not name "unix"' in again.log(), "a proxy that is not trusted: warned",
       again.log())
    equal(again.stop(), 0, "stops", again.log())
    ok(not os.path.exists(path), "and removes it")


@test("a reload to another path")
def _():
    path, other = f"{folder()}/http.sock", f"{folder()}/other.sock"
    m = Millrace(listen=None)
    m.write_config(json.dumps({"listen": f"unix:{path}", "listen_mode": "0600"}))
    m.launch()
    ok(wait_for(lambda: serves(path), 60), "it serves at a path", m.log())
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "its rights are by setting")
    m.write_config(json.dumps({"listen": f"unix:{path}", "listen_mode": "0666"}))
    m.send_signal(signal.SIGHUP)
    ok(wait_for(lambda: "the old nodes have ended" in m.log()), "reloaded", m.log())
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o666, "other rights")
    m.write_config(json.dumps({"listen": f"unix:{other}"}))
    m.send_signal(signal.SIGHUP)
    ok(wait_for(lambda: serves(other)), "it serves at the other path", m.log())
    ok(wait_for(lambda: not os.path.exists(path)), "the first one is removed")
    equal(m.stop(), 0, "stops", m.log())
    ok(not os.path.exists(other), "so is the other")


# --- a socket that is passed ---

ACTIVATOR = """#!/usr/bin/env python3
import os, sys
for n, fd in enumerate(os.environ["PASS"].split(",")):
    os.dup2(int(fd), 3 + n)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(n + 1), LISTEN_FDNAMES="http")
os.execv(os.environ["PROGRAM"], ["millrace", *sys.argv[1:]])
"""


def activated(sockets, config=None):
    script = f"{folder()}/activate"
    with open(script, "w") as f:
        f.write(ACTIVATOR)
    os.chmod(script, 0o755)
    high = [os.dup(s.fileno()) for s in sockets]
    m = Millrace(binary=script, listen=None, config=config, env={
        "PASS": ",".join(map(str, high)), "PROGRAM": BIN})
    m.launch(pass_fds=high)
    for fd in high:
        os.close(fd)
    return m


@test("socket activation")
def _():
    s = socket.create_server(("127.0.0.1", 0))
    port = s.getsockname()[1]
    early = Client(port)  # before there is a server
    early.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    m = activated([s], '{"listen": "127.0.0.1:1"}')
    s.close()
    with m.wait_ready():
        equal(m.port, port, "it serves on the socket, not at the setting")
        equal(early.reply().status, 200, "a client that came before the server is answered")
        early.close()
        for pid in m.nodes() + [m.pid_of("mariadb")]:
            equal({v for v in variables(pid) if v.startswith("LISTEN_")}, set(),
                  f"{pid}: children do not see the variables")
        nodes = m.nodes()
        m.write_config('{"listen": "127.0.0.1:0"}')
        m.send_signal(signal.SIGHUP)
        ok(wait_for(lambda: m.nodes() and not set(nodes) & set(m.nodes())), "reloaded", m.log())
        ok(wait_for(m.ready), "it keeps the socket over a reload, whatever the setting", m.log())
        equal(m.stop(), 0, "stops", m.log())


@test("a socket at a path that is passed")
def _():
    path = f"{folder()}/http.sock"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
        m = activated([s])
        ok(wait_for(lambda: serves(path), 60), "it serves", m.log())
        equal(m.stop(), 0, "stops", m.log())
        ok(os.path.exists(path), "and leaves the socket to its owner")
        os.unlink(path)


@test("two sockets are passed")
def _():
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        m = activated([a, b])
        equal(m.wait(), 1, "refused")
        ok('LISTEN_FDS is "2"; expected is one socket' in m.log(), "and says why", m.log())


run_tests()
