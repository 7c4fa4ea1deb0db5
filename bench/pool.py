"""Measures pools: items that are handed out once each, over HTTP, beside three ways one would do
that on Fastify, in turns. bench/peers/pool/pool.mjs tells what they do.

pop     64 clients, one item a request: pops per second and their p99
marks   pops with pauses of 1 ms, some 25,000 a second: how long after its pop an item is marked
        as used in MariaDB; the pace that was reached is told with it
refill  lists filled in blocks of 5,000 items: each is claimed in a transaction of MariaDB, then
        pushed to Redis; items per second

All use the same MariaDB and the same Redis, as millrace runs them. millrace authenticates each
request, refills its list meanwhile, and marks what was handed out; the lists of the others are full
from the start. After each round as many items must be used as were handed out. Answers of a peer
without an item are no pops: told, and not counted; more than 5 % of them, or one of millrace, end
the round. Prints a line of JSON.
"""
import argparse
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from statistics import median

from figures import figure
from resp import Redis
from screen_world import (
    Http, PASSWORD, Server, Trouble, cpu_seconds, process, read, wait_for)

HERE = os.path.dirname(os.path.abspath(__file__))
DIR = os.environ["PEERS_DIR"]
NODE = f"{DIR}/node_modules/.bin/node"
CLIENTS = 64
PACED_MS = 1  # between two pops of a client
MARK_EACH_S = 0.02
BLOCK, BLOCKS = 5000, 40
TEXT = "What the %d-th study of heart failure found: 心力衰竭治疗的系统评价"
# Items provided for a second: more than any machine has handed out. A list that runs out answers
# with errors, which are quicker than items.
PER_S = 80000
# Processes, connections of each to MariaDB, and items provided for a second. Two processes as there
# are two cores; other numbers of either have not been tried.
PEERS = {
    "seed": {"processes": 2, "connections": 1, "per_s": 60000},
    "redis": {"processes": 2, "connections": 1, "per_s": PER_S},
    "locked": {"processes": 2, "connections": 16, "per_s": 6000}}
FAILED_MAX = 0.05  # of a peer's answers; none of millrace's


def say(text):
    print(text, file=sys.stderr, flush=True)


class Place:
    def __init__(self, folder):
        self.dir = folder


# --- load ---

def milliseconds(text):
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    if not found:
        raise Trouble(f"wrk says {text}")
    number, unit = found.groups()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4}[unit]


def own_cpu():
    """Of wrk, when it has ended."""
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


class Cpu:
    """Of processes by kind, from its making on; microseconds for each of so many pops."""

    def __init__(self, pids):
        self.pids, self.before = pids, self.now(pids)

    @staticmethod
    def now(pids):
        return {"wrk": own_cpu()} | {kind: sum(map(cpu_seconds, p)) for kind, p in pids.items()}

    def of_each(self, count):
        now = self.now(self.pids)
        return {kind: 1e6 * (now[kind] - s) / count for kind, s in self.before.items()}


def load(url, path, token, seconds, pause_ms=0, pids=None, failed_max=0):
    """Pops per second, p99, how many there were, and the CPU of each by all processes. Answers
    without an item are no pops; failed_max: their share that is taken."""
    cpu = Cpu(pids or {})
    done = subprocess.run([
        "wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--timeout", "20s", "--latency", "-s",
        f"{HERE}/pool_load.lua", url, "--", path, token, str(pause_ms)], capture_output=True,
                          text=True, timeout=seconds + 60)
    out = done.stdout
    answers = int((re.search(r"(\d+) requests in", out) or [0, 0])[1])
    failed = int((re.search(r"Non-2xx or 3xx responses: (\d+)", out) or [0, 0])[1])
    if done.returncode or "Socket errors" in out or not answers or failed > failed_max * answers:
        raise Trouble(f"pops at {url} failed: {out[-1500:]}{done.stderr[-500:]}")
    count = answers - failed
    spent = cpu.of_each(count)
    say("    CPU of a pop, us: " + ", ".join(f"{k} {v:.1f}" for k, v in spent.items()) +
        (f"; {failed} of {answers} answers had no item" if failed else ""))
    return {"per_s": float(re.search(r"Requests/sec:\s*([\d.]+)", out)[1]) * count / answers,
            "p99_ms": milliseconds(re.search(r"\n\s+99%\s+(\S+)", out)[1]),
            "count": count, "cpu_us": sum(spent.values()), "failed": failed}


# --- millrace ---

class Program:
    """A program with a token that takes items."""

    def __init__(self, server):
        self.server = server
        who = Http(server.url)
        who.ask("POST", "/api/register", {"username": "bench", "password": PASSWORD})
        who.token = who.ask("POST", "/api/login",
                            {"username": "bench", "password": PASSWORD})["token"]
        self.token = who.ask("POST", "/api/tokens",
                             {"name": "bench", "scopes": ["pool"]})["token"]
        self.http = Http(server.url, self.token)

    def pop(self, group, count):
        return self.http.ask("POST", f"/api/pools/titles/{group}/pop", {"count": count})["items"]


def add_items(server, table, group, count):
    server.sql(f"INSERT INTO {table} (group_id, batch_id, title) SELECT {group}, seq DIV 1000,"
               f" REPLACE('{TEXT}', '%d', seq) FROM seq_1_to_{count}")


def number(server, statement):
    return int(server.sql(statement).split()[0])


def settled(server, group):
    """Until all that was handed out is marked: how many are used."""
    used = lambda: number(server, "SELECT COUNT(*) FROM titles"
                          f" WHERE group_id = {group} AND status = 0")
    before = -1
    while (now := used()) != before:
        before = now
        time.sleep(1)
    return now


class Pops:
    def __init__(self, options, server, program):
        self.options, self.server, self.program = options, server, program
        self.group = 100

    def fresh_group(self, items):
        """With its list in Redis filled."""
        self.group += 1
        add_items(self.server, "titles", self.group, items)
        self.program.pop(self.group, 1)
        wait_for(lambda: int(self.server.redis("LLEN", f"titles:pool:{self.group}")) >= 4000, 20,
                 "a list is filled")
        return self.group

    def millrace(self):
        seconds = self.options.seconds
        group = self.fresh_group(PER_S * seconds)
        found = load(self.server.url, f"/api/pools/titles/{group}/pop", self.program.token, seconds,
                     pids={"node": self.server.node_pids(), **self.stores()})
        used = settled(self.server, group)
        # wrk does not wait for the last answers.
        if not 1 <= used - found["count"] <= CLIENTS + 1:
            raise Trouble(f"{found['count']} items were handed out, {used} are used")
        return found

    def peer(self, mode):
        seconds, how = self.options.seconds, PEERS[mode]
        count = how["per_s"] * (seconds + 1)  # one more, in which they warm up
        self.server.sql("CREATE OR REPLACE TABLE bench_titles LIKE titles;"
                        " ALTER TABLE bench_titles DROP KEY in_order,"
                        " ADD KEY by_status (group_id, status, batch_id DESC, id)")
        if mode != "redis":
            add_items(self.server, "bench_titles", 1, count)
        key = "bench:titles:pool:1"
        with self.redis() as redis:
            redis("UNLINK", key)
            for first in range(1, count if mode != "locked" else 0, 1000):
                redis("LPUSH", key, *(json.dumps({"id": n, "text": TEXT % n}, ensure_ascii=False)
                                      for n in range(first, first + 1000)))
            found = self.ask_peer(mode, how, seconds)
            redis("UNLINK", key)
        return found

    def stores(self):
        return {name: [int(read(f"{self.server.data}/run/{name}.pid"))]
                for name in ("redis", "mariadb")}

    def redis(self):
        data = self.server.data
        return Redis(f"{data}/run/redis.sock", read(f"{data}/secret/redis").strip())

    def ask_peer(self, mode, how, seconds):
        data, port = self.server.data, free_port()
        env = {**os.environ, "NODE_ENV": "production", "MODE": mode, "PORT": str(port),
               "PROCESSES": str(how["processes"]), "CONNECTIONS": str(how["connections"]),
               "REDIS_SOCKET": f"{data}/run/redis.sock", "MYSQL_SOCKET": f"{data}/run/mariadb.sock",
               "REDISCLI_AUTH": read(f"{data}/secret/redis").strip(),
               "MYSQL_PWD": read(f"{data}/secret/mariadb").strip()}
        log = f"{self.server.world.dir}/{mode}.log"
        open(log, "w", encoding="utf-8").close()
        with process(log, NODE, f"{DIR}/pool.mjs", env=env) as p:
            wait_for(lambda: read(log).count("ready") == how["processes"] or p.poll() is not None,
                     30, f"{mode}: {read(log)}")
            url, path = f"http://127.0.0.1:{port}", "/api/pools/titles/1/pop"
            load(url, path, "none", 1, failed_max=FAILED_MAX)
            before = self.marked()
            found = load(url, path, "none", seconds,
                         pids={"node": [p.pid, *children(p.pid)], **self.stores()},
                         failed_max=FAILED_MAX)
            if mode == "seed":
                found["marks_per_s"] = (self.marked() - before) / seconds
            return found

    def marked(self):
        return number(self.server, "SELECT COUNT(*) FROM bench_titles WHERE status = 0")

    def round(self):
        found = {f"pop/{k}/millrace": v for k, v in self.millrace().items()
                 if k not in ("count", "failed")}
        for mode in PEERS:
            for k, v in self.peer(mode).items():
                if k != "count":
                    found[f"pop/{k}/{mode}"] = v
        return found


def children(pid):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(read(f"/proc/{name}/stat").rpartition(")")[2].split()[1]) == pid:
                found.append(int(name))
    return found


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# --- marks ---

class Follower(threading.Thread):
    """Notes what was handed out, by Redis, and what is marked, by MariaDB, again and again."""

    def __init__(self, server, group):
        super().__init__()
        self.server, self.group, self.stop = server, group, threading.Event()
        self.handed, self.marked = [], []

    def run(self):
        data, key = self.server.data, f"sys:pool:{{titles:pool:{self.group}}}"
        env = {**os.environ, "MYSQL_PWD": read(f"{data}/secret/mariadb").strip()}
        ask = f"SELECT handed FROM pool_group WHERE type = 'titles' AND group_id = {self.group};\n"
        with Redis(f"{data}/run/redis.sock", read(f"{data}/secret/redis").strip()) as redis, \
             subprocess.Popen(["mariadb", "--no-defaults", "-u", "millrace", "-S",
                               f"{data}/run/mariadb.sock", "-N", "-B", "-n", "millrace"], env=env,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sql:
            first = int(redis("HGET", key, "first"))
            while not self.stop.is_set():
                sql.stdin.write(ask)
                sql.stdin.flush()
                self.marked.append((time.monotonic(), int(sql.stdout.readline())))
                self.handed.append((time.monotonic(), int(redis("HGET", key, "first")) - first))
                time.sleep(MARK_EACH_S)
            sql.stdin.close()

    def behind(self):
        """The longest that anything handed out was not marked: s."""
        base, most, at = self.marked[0][1], 0, 0
        for now, count in self.marked:
            while at + 1 < len(self.handed) and self.handed[at][1] <= count - base:
                at += 1
            if self.handed[at][0] < now and self.handed[at][1] > count - base:
                most = max(most, now - self.handed[at][0])
        return most


def marks(pops):
    seconds = pops.options.seconds
    group = pops.fresh_group(30000 * (seconds + 1))
    follower = Follower(pops.server, group)
    follower.start()
    try:
        found = load(pops.server.url, f"/api/pools/titles/{group}/pop", pops.program.token, seconds,
                     PACED_MS)
    finally:
        time.sleep(1)
        follower.stop.set()
        follower.join()
    return {"marks/behind_s/millrace": follower.behind(), "marks/per_s/millrace": found["per_s"]}


# --- refilling ---

def metric(server, name):
    with urllib.request.urlopen(server.url + "/metrics", timeout=10) as f:
        text = f.read().decode()
    return sum(float(line.split()[1]) for line in text.splitlines()
               if re.match(rf"{name}(\{{| )", line))


def refill(pops):
    """Lists that were emptied get new items: the role that fills finds them all at once, and knows
    by then how large items are."""
    server, groups = pops.server, range(pops.group + 1, pops.group + 1 + BLOCKS)
    pops.group += BLOCKS
    filled = lambda: metric(server, "millrace_pool_numbered_total")
    taken = lambda: metric(server, "millrace_pool_fill_seconds_sum")

    def fill(each, wanted):
        items, seconds = filled(), taken()
        server.sql(f"INSERT INTO titles (group_id, batch_id, title) SELECT g.seq, i.seq DIV 1000,"
                   f" REPLACE('{TEXT}', '%d', i.seq) FROM seq_{groups[0]}_to_{groups[-1]} g"
                   f" JOIN seq_1_to_{each} i")
        wait_for(lambda: filled() - items >= wanted * BLOCKS, 60, "lists are filled", 0.2)
        time.sleep(0.5)
        return (filled() - items) / (taken() - seconds)

    fill(100, 100)
    for g in groups:
        pops.program.pop(g, 100)
    time.sleep(3)  # marks, and groups at rest
    return {"refill/per_s/millrace": fill(2 * BLOCK, BLOCK)}


# --- all ---

PARTS = {"pop": Pops.round, "marks": marks, "refill": refill}
UNITS = {"per_s": "/s", "ms": "ms", "_s": "s", "us": "us", "failed": "answers"}
GOALS = {"pop/per_s": ">= 2x seed, >= 1.5x redis, >= 20x locked",
         "pop/p99_ms": ">= 2x seed, >= 2x redis, >= 2x locked", "marks/behind_s": "<= 1",
         "refill/per_s": ">= 70000"}


def tell(found):
    line = {"bench": "pool"}
    for name, values in found.items():
        what, _, who = name.rpartition("/")
        unit = next(u for end, u in UNITS.items() if what.endswith(end))
        figure("pool/" + name, unit, [round(v, 3) for v in values],
               GOALS.get(what, "") if who == "millrace" else "")
        line[name.removesuffix("/millrace")] = round(median(values), 2)
    for mode in PEERS:
        if f"pop/per_s/{mode}" in found:
            ours, theirs = found["pop/per_s/millrace"], found[f"pop/per_s/{mode}"]
            line["ratio_" + mode] = round(median(ours) / median(theirs), 2)
    print(json.dumps(line), flush=True)


def main():
    p = argparse.ArgumentParser(prog="bench/pool", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS) + "; default: all")
    p.add_argument("--rounds", type=int, default=3, help="(default 3)")
    p.add_argument("--seconds", type=int, default=4, help="of each measurement (default 4)")
    p.add_argument("--nodes", type=int, default=2, help="of millrace (default 2)")
    options = p.parse_args()
    unknown = [x for x in options.parts if x not in PARTS]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found, failed = {}, False
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-bench.", dir="/tmp"))
        os.mkdir(f"{folder}/stores")
        server = stack.enter_context(
            Server(Place(folder), f"{folder}/stores", nodes=options.nodes,
                   ai="http://127.0.0.1:1/v1"))
        pops = Pops(options, server, Program(server))
        for i in range(options.rounds):
            for name in options.parts or PARTS:
                say(f"round {i + 1}, {name}")
                try:
                    r = PARTS[name](pops)
                except (Trouble, OSError, subprocess.SubprocessError) as e:
                    say(f"error: {name}: {e}")
                    failed = True
                    continue
                say("    " + ", ".join(f"{k} {v:.4g}" for k, v in r.items()))
                for k, v in r.items():
                    found.setdefault(k, []).append(v)
    tell(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    try:
        main()
    except Trouble as e:
        say(f"error: {e}")
        sys.exit(1)
