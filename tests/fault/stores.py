"""Two stores, two supervisors with a node each, a simulated AI; each of them can be killed by
itself.

The stores are made by a server that keeps its own, with a sample and users, and then run by the
test with the same commands: a supervisor waits longer and longer for a store that dies again and
again, which is right, and would leave little time for anything else here."""
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import threading
import time

import aof
import disk
from harness import (BIN, Millrace, environment, folder, http, link, read, redis_link, run, sql,
                     wait_for)

PASSWORD = "correct horse"
# A node that stands still sees that Redis has not answered it in time.
REDIS_TROUBLES = ("redis", "older", "empty", "stall_redis", "disk_redis", "cut_redis", "freeze")
REDIS_TROUBLE_S = 3  # until nodes are connected again
PDF_CHILD_S = 3  # so long one is waited for
KEYS = 50  # of the AI: one that answered 429 rests for a second


class Stores:
    """data, sql_socket, database: as harness.sql and harness.redis_link want them. small_disks:
    each has one of its own."""

    def __init__(self, papers, users, small_disks=False):
        first = Millrace(data=folder("first"),
                         env={"MILLRACE_NODES": "1", "MILLRACE_SAMPLE_PAPERS": str(papers)})
        self.data, self.commands, self.processes = first.data, {}, {}
        self.sql_socket, self.database = first.sql_socket, first.database
        self.locks = {"redis": threading.Lock(), "mariadb": threading.Lock()}
        with first:
            for name, (balance, permission) in users.items():
                done = run("user", "add", name, "--balance", balance, "--permission",
                           str(permission), env={"MILLRACE_DATA_DIR": self.data},
                           stdin=PASSWORD + "\n")
                assert done.returncode == 0, done.stderr
            self.new_keys("sk", KEYS)
            for name in self.locks:
                self.commands[name] = self._command(first.pid_of(name), name)
        self.disks = ({name: disk.Disk(f"{self.data}/{name}") for name in self.locks}
                      if small_disks else {})

    def new_keys(self, prefix, count):
        """In place of those that are there. They have no minute behind them (permits.h). Nodes keep
        deleted ones for an hour, and have room for 100."""
        sql(self,
            "DELETE FROM api_list; INSERT INTO api_list (api_key, rpm_limit, tpm_limit) VALUES "
            + ", ".join(f"('{prefix}-{i}', 60000, 100000000)" for i in range(count)) +
            "; INSERT INTO api_list (api_key, service, rpm_limit, tpm_limit)"
            f" VALUES ('{prefix}-e', 'embedding', 60000, 100000000)")

    def _command(self, pid, name):
        argv = read(f"/proc/{pid}/cmdline").decode().split("\0")[:-1]
        if name == "redis":  # it writes something else there; serve would mend half a command
            argv = ["redis-server", f"{self.data}/secret/redis.conf", "--aof-load-truncated", "yes"]
        return argv, link(f"/proc/{pid}/exe"), link(f"/proc/{pid}/cwd")

    def secret(self, name):
        with open(f"{self.data}/secret/{name}") as f:
            return f.read().strip()

    def settings(self):
        return {"MILLRACE_REDIS_URL": f"unix:{self.data}/run/redis.sock",
                "MILLRACE_REDIS_PASSWORD": self.secret("redis"),
                "MILLRACE_MYSQL_URL":
                    f"unix:{self.data}/run/mariadb.sock?user=millrace&database=millrace",
                "MILLRACE_MYSQL_PASSWORD": self.secret("mariadb")}

    def start(self, name):
        argv, program, folder_ = self.commands[name]
        with open(f"{self.data}/log/{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(argv, executable=program, cwd=folder_,
                                                    env=environment(), stdout=log, stderr=log,
                                                    start_new_session=True)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def answers(self, name):
        try:
            return redis_link(self)("PING") if name == "redis" else sql(self, "SELECT 1")
        except (OSError, AssertionError, ValueError, subprocess.TimeoutExpired):
            return None

    def wait_up(self, name, seconds=30):
        if not wait_for(lambda: self.answers(name), seconds):
            raise AssertionError(f"{name} does not come up")

    def __enter__(self):
        for name in self.commands:
            self.start(name)
            self.wait_up(name)
        return self

    def __exit__(self, *exc):
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        for d in self.disks.values():
            d.unmount()


class Sim:
    """The AI, with what goes wrong there."""

    host = reached_at = "127.0.0.1"

    def __init__(self, seed, latency_ms, fail, extract_fault=0, embed_fault=0):
        self.args = ["sim", "--latency-ms",
                     str(latency_ms), "--jitter-ms",
                     str(latency_ms // 5), "--stall-ms", "3000", "--extract-fault",
                     str(extract_fault), "--seed", str(seed)]
        self.wrong = ("--embed-fault", str(embed_fault)) if embed_fault else ()
        self.fail, self.port, self.lock = str(fail), 0, threading.Lock()
        self.calls = self.wasted = 0  # of those before; of these, while it was of no use

    def start(self, *args):
        self.out = open(os.path.join(folder(), "out"), "wb")
        self.process = subprocess.Popen(
            [BIN, *self.args, "--listen", f"{self.host}:{self.port}",
             *(args or ("--fail", self.fail, *self.wrong))],
            env=environment(), stdout=self.out, stderr=self.out, start_new_session=True)
        found = wait_for(lambda: re.search(rb"http://[^\s/]*:(\d+)", read(self.out.name)))
        assert found, read(self.out.name)
        self.port = int(found[1])

    def stop(self):
        """How many calls it has had."""
        calls = self.stats()["requests"]
        self.calls += calls
        self.process.kill()
        self.process.wait()
        return calls

    def stats(self):
        return json.loads(http(self.port, "/stats").body)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()


class Server(Millrace):
    """A supervisor with one node. It can be killed and started again under the same port."""

    def __init__(self, stores, sim, **settings):
        super().__init__(
            data=folder(), env={
                "MILLRACE_NODES": "1", "MILLRACE_AI_URL": f"http://{sim.reached_at}:{sim.port}/v1",
                "MILLRACE_AI_TIMEOUT_MS": "1500", **settings, **stores.settings()})
        self.lock = threading.Lock()
        self.old_ports = []

    def start_again(self):
        """After its supervisor was killed. The port is taken until the old nodes are gone."""
        self.args = [
            f"127.0.0.1:{self.port}" if a.startswith("127.0.0.1:") else a for a in self.args]
        wait_for(lambda: not self.nodes(), 30)
        said = self.output().count("millrace is ready")
        for _ in range(20):
            self.launch()
            wait_for(
                lambda: self.output().count("millrace is ready") > said or self.process.poll() is
                not None, 60)
            if self.process.poll() is None:
                return
            time.sleep(0.5)
        raise AssertionError(f"the server does not start again\n{self.log()}")


# --- what can happen to them ---

class World:
    """stores, servers, sim, hook, embedder (a service for embeddings); do(kind, a, b, say) with a
    and b from 0 to 1."""

    def __init__(self, stores, servers, sim, hook=None, embedder=None):
        self.stores, self.servers, self.sim, self.hook = stores, servers, sim, hook
        self.embedder = embedder
        self.pdf_children = 0  # that were killed
        self.redis_losses = 0  # changes before and after each time that it may have lost something
        self.troubles = []  # [kind, begin, end; None: it goes on] of each fault

    def do(self, fault, say):
        trouble = [fault.kind, time.monotonic(), None]
        self.troubles.append(trouble)
        try:
            getattr(self, fault.kind)(fault.a, fault.b, say)
        finally:
            trouble[2] = time.monotonic()

    def troubled(self, begin, end, kinds=None, after_s=1.0):
        """Whether one of these faults, or any, went on between these times, or shortly before."""
        return any((not kinds or kind in kinds) and b <= end and (e is None or e + after_s >= begin)
                   for kind, b, e in self.troubles)

    def redis_troubled(self, begin, end):
        """Whether Redis may have forgotten something, or not have answered a node, in between."""
        return self.troubled(begin, end, REDIS_TROUBLES, REDIS_TROUBLE_S)

    def pick(self, a):
        return self.servers[int(a * len(self.servers))]

    def node(self, a, b, say):
        """A node is killed; its supervisor starts another."""
        for pid in self.pick(a).nodes():
            say(f"node {pid} of {self.pick(a).port}")
            kill(pid, signal.SIGKILL)

    def freeze(self, a, b, say):
        """A node stands still, so long that it may be given up, and comes back."""
        for pid in self.pick(a).nodes():
            say(f"node {pid} of {self.pick(a).port} for {8 * b:.1f} s")
            kill(pid, signal.SIGSTOP)
            time.sleep(8 * b)
            kill(pid, signal.SIGCONT)

    def pdf_child(self, a, b, say):
        """A program that reads a PDF is killed, if there is one soon."""
        end = time.monotonic() + PDF_CHILD_S
        while time.monotonic() < end:
            for node in (pid for s in self.servers for pid in s.nodes()):
                for pid in children(node):
                    kill(pid, signal.SIGKILL)
                    self.pdf_children += 1
                    say(f"{pid} of node {node}")
                    return
            time.sleep(0.005)
        say("there is none")

    def supervisor(self, a, b, say):
        server = self.pick(a)
        with server.lock:
            say(f"of {server.port}, pid {server.process.pid}")
            server.process.kill()
            server.process.wait()
            time.sleep(b)
            server.start_again()

    def redis(self, a, b, say):
        self._redis(a, say, lambda now: "as it was")

    def older(self, a, b, say):
        """It comes back without its last seconds."""
        def cut(now):
            steps, lost = aof.cut(f"{self.stores.data}/redis/appendonlydir", now, 3 * b)
            return f"{3 * b:.2f} s are lost: {steps} steps, {lost} bytes"
        self._redis(a, say, cut)

    def empty(self, a, b, say):
        self._redis(
            a, say,
            lambda now: aof.lose(f"{self.stores.data}/redis/appendonlydir") or "all is lost")

    def _redis(self, a, say, change):
        with self.stores.locks["redis"]:
            self.redis_losses += 1
            self.stores.kill("redis")
            what = change(time.time())
            time.sleep(a)
            self.stores.start("redis")
            self.stores.wait_up("redis")
            self.redis_losses += 1
            redis_link(self.stores)("CONFIG", "SET", "aof-timestamp-enabled", "yes")
            say(f"away for {a:.1f} s; {what}")

    def ai(self, a, b, say):
        """It answers nothing of use, so long that papers are given up."""
        with self.sim.lock:
            self.sim.stop()
            self.sim.start("--fail", "1", "--fail-kinds", "500,garbage,unreadable")
            time.sleep(4 + 3 * b)
            self.sim.wasted += self.sim.stop()
            self.sim.start()
            say(f"for {4 + 3 * b:.1f} s")

    def embedding(self, a, b, say):
        """The service for embeddings is away, or answers nothing of use."""
        with self.embedder.lock:
            self.embedder.stop()
            if a < 0.5:
                self.embedder.start("--fail", "1", "--fail-kinds", "500,garbage,cut")
            time.sleep(1 + 4 * b)
            if a < 0.5:
                self.embedder.stop()
            self.embedder.start()
            say(f"{'useless' if a < 0.5 else 'away'} for {1 + 4 * b:.1f} s")

    def index(self, a, b, say):
        """The file of an embedded index of one machine is cut, spoiled, emptied or deleted."""
        which = ("blog_posts", "papers")[int(8 * b) % 2]
        files = sorted(glob.glob(f"{self.pick(a).data}/vectors/{which}-*.index"))
        how = ("cut", "spoiled", "emptied", "deleted")[int(4 * b)]
        for path in files:
            with contextlib.suppress(OSError):
                damage(path, how, int(a * 1e6))
        say(f"{how}: {[os.path.basename(f) for f in files]}")

    def mariadb(self, a, b, say):
        with self.stores.locks["mariadb"]:
            self.stores.kill("mariadb")
            time.sleep(a)
            began = time.monotonic()
            self.stores.start("mariadb")
            self.stores.wait_up("mariadb", 60)
            say(f"away for {a:.1f} s, {time.monotonic() - began:.1f} s to come up")

    def stall_redis(self, a, b, say):
        self._stall("redis", b, say)

    def stall_mariadb(self, a, b, say):
        self._stall("mariadb", b, say)

    def _stall(self, name, b, say):
        """It stands still, and then does what nobody waits for any more."""
        with self.stores.locks[name]:
            say(f"for {6 * b:.1f} s")
            kill(self.stores.processes[name].pid, signal.SIGSTOP)
            time.sleep(6 * b)
            kill(self.stores.processes[name].pid, signal.SIGCONT)

    def disk_redis(self, a, b, say):
        self._disk("redis", b, say)

    def disk_mysql(self, a, b, say):
        self._disk("mariadb", b, say)

    def _disk(self, name, b, say):
        """Its disk is full for a while. If it dies of that, it is started again, as a supervisor
        does."""
        with self.stores.locks[name]:
            disk, process = self.stores.disks[name], self.stores.processes[name]
            with disk.full():
                time.sleep(1 + 2 * b)
            died = process.poll() is not None
            if died:
                self.redis_losses += name == "redis"
                self.stores.start(name)
                self.stores.wait_up(name, 60)
                self.redis_losses += name == "redis"
            say(f"full for {1 + 2 * b:.1f} s; {'it died' if died else 'it lives'}")

    def cut_redis(self, a, b, say):
        with self.stores.locks["redis"]:
            say(f"{redis_link(self.stores)('CLIENT', 'KILL', 'TYPE', 'normal')} connections")

    def cut_mysql(self, a, b, say):
        with self.stores.locks["mariadb"]:
            # A SELECT of information_schema would need room on a disk that may be full.
            ids = [row[0] for row in sql(self.stores, "SHOW PROCESSLIST") if row[1] == "millrace"]
            for i in ids:
                try:
                    sql(self.stores, f"KILL {i}")
                except AssertionError:
                    pass  # it has gone by itself
            say(f"{len(ids)} connections")


def damage(path, how, at):
    if how == "deleted":
        os.unlink(path)
        return
    with open(path, "r+b") as f:
        size = os.fstat(f.fileno()).st_size
        if how == "spoiled":
            for n in range(65536 + at % 4096, size, 40961):
                f.seek(n)
                f.write(b"\xa5" * 7)
        else:
            f.truncate(size // 2 if how == "cut" else 0)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(child) for child in f.read().split()]
    except OSError:
        return []  # it is gone


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
