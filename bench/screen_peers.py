"""Measures the screening job on what one would use instead of millrace, and on millrace, in turns:

zero     no AI latency: papers per second, CPU time per paper, and how fast papers are put into the
         queue
latency  200 ms, 1,000 workers (RQ: 150): share of 5,000 papers/s, CPU time per paper, memory
crowd    200 ms, 10,000 workers: papers per second (ideal 50,000)

All get the same papers, the same prompt, the same simulated AI, and charge each paper by the
project's own script, several in one call where several come at once. millrace also writes each
charge into MariaDB meanwhile, and each result after the run; the peers have no such thing. Redis
keeps its append-only file every second; PostgreSQL commits likewise (synchronous_commit off). A
queue's job is one paper, with its text; with "-blocks" it is a hundred. "own" is the CPU time of
the peer's processes; "all" has Redis, PostgreSQL and MariaDB in it, and not the simulator. Memory
is that of all its own processes, shared pages counted once. After each round every paper that was
charged must have its result, its cent and its AI call.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from statistics import median

import screen
from figures import figure
from resp import Redis
from screen_world import (BIN, BLOCK_PAPERS, HERTZ, JOURNAL_PAPERS, LAST_YEAR, FIRST_YEAR, Sim,
                          Trouble, World, pieces_of, process, read, wait_for)

HERE = os.path.dirname(os.path.abspath(__file__))
DIR, PG_BIN = os.environ["PEERS_DIR"], os.environ.get("PG_BIN", "")
NOBODY = 65534
QUESTION = "Which treatment of heart failure works?"
STATUS, RESULTS = "query:1:bench:status", "result:1:bench"
BALANCE = 10**13  # cents; a paper costs one
WARM_PAPERS = 30000
EVERY_S = 0.05
START_S = 120
MILLRACE_NODES = 2  # at no latency; as it has by default on two cores

NODE, BUN = [f"{DIR}/node_modules/.bin/node"], [f"{DIR}/node_modules/.bin/bun"]
PYTHON = ["/usr/bin/python3"]
CELERY_WORKER = PYTHON + [
    "-m", "celery", "-A", "celery_app", "worker", "--without-gossip", "--without-mingle",
    "--without-heartbeat", "-l", "error"]

SCENES = {"zero": {"latency_ms": 0, "warm_s": 1}, "latency": {"latency_ms": 200, "warm_s": 1.5},
          "crowd": {"latency_ms": 200, "warm_s": 3}}


class Peer:
    """How a peer is started; by scene: (workers, processes, papers per second to provide for,
    further words of its command)."""

    def __init__(self, work, add=None, postgres=False, workers_option=None, chunk=1, start_s=0,
                 **scenes):
        self.work, self.add, self.postgres = work, add, postgres
        self.workers_option, self.scenes = workers_option, scenes
        # Papers in a job; from the first worker at work to the last of a thousand.
        self.chunk, self.start_s = chunk, start_s


# What was tried: ratios of papers/s, more is better. In turns, but in one or two rounds of two or
# three seconds, while others used the machine, so that the same setting gave half as much a minute
# later: less than 1.2 means nothing, and more is no promise.
#   millrace two nodes to one 1.1, 1.1, 1.3 and 1.4 at no latency. With latency one: it is as fast,
#           and has less memory.
#   Node    undici's dispatch to its request 1.04; two processes to one 1.3 at no latency,
#           pipelining 0.9. At 10,000 workers two processes to one 1.6, three to two 1.1.
#           Connections of its own instead of a Pool: not in turns.
#   HTTP/2  two processes to one 1.15 at no latency, 1.9 at 10,000 workers; three to two 0.9 there.
#           One connection a process to four 1.02, 400 workers to 100 1.1.
#   Bun     60 workers to 100 1.2; two processes to one 1.1 with 100 workers, 0.9 with 60 each. At
#           10,000 workers node:http to fetch 1.8, and two processes of it to one 1.3; at 1,000
#           fetch to node:http 1.3.
#   BullMQ  two processes to one, a paper a job: 0.98 in two rounds, at more CPU time; 1.5 in one
#           before, when Redis still rewrote its file meanwhile. 1.4 with a hundred a job. 300
#           workers to 100 0.96. addBulk of 500, 1,000 or 3,000: no clear difference. At 10,000
#           workers one process and two were not measured in turns, and neither were those of
#           pg-boss.
#   pg-boss fetch() and complete() by hand, a thousand at a time and ends gathered, to work() 1.03,
#           which has simpler code: work() it is, with four workers; batches of 400 to 100 1.15, of
#           2,000 to 400 0.95. VACUUM ANALYZE after loading 1.2, a partition for the queue 1.5; two
#           processes to one 0.9. Three inserts at once to one 1.6.
#   Celery  at no latency, to gevent in two processes: prefork of four 2.0, threads 1.9, solo in two
#           processes 1.8, in four 2.4. At 200 ms threads in two processes to gevent in two 2.1, in
#           four 3.2; gevent in four was not tried. A hundred papers a task: gevent to threads 1.7.
#   RQ      2, 4, 8 and 16 SimpleWorkers at no latency: no clear difference. At 200 ms 150 workers
#           to 400 1.5; 1,000 were slower than 400 by 1.1, at another time.
BULLMQ = {"work": NODE + ["bullmq.mjs", "work"], "add": NODE + ["bullmq.mjs", "add"]}
CELERY = {"work": CELERY_WORKER, "add": PYTHON + ["celery_app.py"], "workers_option": "-c"}
GEVENT = ["-P", "gevent", "--prefetch-multiplier", "1"]
SOLO = ["-P", "solo", "--prefetch-multiplier", "64"]
THREADS = ["-P", "threads", "--prefetch-multiplier", "4"]
PEERS = {
    "node": Peer(NODE + ["loop.mjs"], zero=(100, 2, 32000), latency=(1000, 1, 5200),
                 crowd=(10000, 3, 22000)),
    "node-h2": Peer(NODE + ["loop.mjs", "h2"], zero=(400, 2, 36000), latency=(1000, 1, 5200),
                    crowd=(10000, 2, 28000)),
    "bun": Peer(BUN + ["loop.mjs"], zero=(60, 1, 40000), latency=(1000, 1, 5200),
                crowd=(10000, 2, 22000)),
    "bullmq": Peer(**BULLMQ, zero=(100, 1, 12000), latency=(1000, 1, 5200),
                   crowd=(10000, 1, 10000)),
    "bullmq-blocks": Peer(**BULLMQ, chunk=100, zero=(100, 2, 25000)),
    "pgboss": Peer(NODE + ["pgboss.mjs", "work"], NODE + ["pgboss.mjs", "add"], postgres=True,
                   zero=(1600, 1, 16000), latency=(1000, 1, 5200, ["16"]),
                   crowd=(10000, 2, 12000, ["16"])),
    "celery": Peer(**CELERY, zero=(4, 4, 1600, SOLO), latency=(1000, 4, 1600, THREADS)),
    "celery-blocks": Peer(**CELERY, chunk=100, zero=(100, 2, 12000, GEVENT)),
    "rq": Peer(PYTHON + ["rq_app.py", "work"], PYTHON + ["rq_app.py", "add"], start_s=4,
               zero=(8, 1, 1500), latency=(150, 1, 1000)),
}


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- processes: all below one, dead children included ---

def tree(pid):
    children = {}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit():
                children.setdefault(int(read(f"/proc/{name}/stat").rpartition(")")[2].split()[1]),
                                    []).append(int(name))
    found = [pid]
    for p in found:
        found += children.get(p, [])
    return found


def tree_cpu(pids):
    used = 0
    for pid in (p for root in pids for p in tree(root)):
        with contextlib.suppress(OSError):
            used += sum(int(x) for x in read(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:15])
    return used / HERTZ


def tree_mb(pids):
    kb = 0
    for pid in (p for root in pids for p in tree(root)):
        with contextlib.suppress(OSError):
            kb += int(re.search(r"^Pss:\s*(\d+)", read(f"/proc/{pid}/smaps_rollup"), re.M)[1])
    return kb / 1024


# --- what all peers share ---

def prompt_head():
    """The request as millrace writes it, up to the text about the paper."""
    source = read(f"{HERE}/../src/engine/judge/prompt.c")
    text = re.search(r"built_in\[\] =\n(.*?);\n", source,
                     re.S)[1].replace("PLACE", '"{{question}}"')
    text = "".join(json.loads(piece) for piece in re.findall(r'"(?:[^"\\]|\\.)*"', text))
    if text.count("{{question}}") != 1:
        raise Trouble("src/engine/judge/prompt.c has no prompt any more that this can read")
    said = text.replace("{{question}}", QUESTION)
    request = {"model": "default", "temperature": 0, "max_tokens": 200,
               "messages": [{"role": "system", "content": said}, {"role": "user", "content": ""}]}
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).removesuffix('""}]}')


def paper_texts(folder):
    """Title and abstract of made-up papers, in the order in which make_papers numbers them."""
    subprocess.run([BIN, "sample", "--papers", "10000", folder], check=True,
                   stdout=subprocess.DEVNULL)
    field = lambda text, name: re.sub(r"\\([%&_])", r"\1",
                                      re.search(rf'{name}="(.*?)"[,\n]', text, re.S)[1])
    texts = ["".join(p) for p in pieces_of(folder)]
    return [(field(t, "title"), field(t, "abstract")) for t in texts]


class Papers:
    """Blocks of plain JSON, as make_papers would have them in files."""

    def __init__(self, folder):
        self.texts = paper_texts(f"{folder}/sample")
        self.blocks = []

    def block(self, n):
        while len(self.blocks) <= n:
            i = len(self.blocks)
            years = LAST_YEAR - FIRST_YEAR + 1
            key = f"meta:BENCH {i // years + 1}:{FIRST_YEAR + i % years}"
            numbers = range(i * BLOCK_PAPERS + 1, (i + 1) * BLOCK_PAPERS + 1)
            papers = [(k, *self.texts[k * 7919 % len(self.texts)]) for k in numbers]
            papers = [{"doi": f"10.5555/bench.{k}", "block": key, "title": t, "abstract": a}
                      for k, t, a in papers]
            self.blocks.append(json.dumps(papers, ensure_ascii=False).encode())
        return self.blocks[n]

    def fill(self, redis, count):
        for first in range(0, count // BLOCK_PAPERS, 100):
            numbers = range(first, min(first + 100, count // BLOCK_PAPERS))
            for n in numbers:
                redis.send("SET", f"papers:{n}", self.block(n))
            redis.file.flush()
            for n in numbers:
                redis.read()
        wait_for(lambda: redis.info("persistence")["aof_pending_bio_fsync"] == "0", 60,
                 "Redis has written its file")


def open_account(redis):
    """What the script wants to see before it charges."""
    run = redis.info("server")["run_id"]
    redis("SET", "user:1:balance", BALANCE)
    redis("HSET", "user:1:ledger", "run", run, "seq", 0)
    redis("HSET", STATUS, "state", "RUNNING")


def finished(redis):
    return int(redis("HGET", STATUS, "finished") or 0)


@contextlib.contextmanager
def postgres(folder):
    """Refuses to run as root."""
    data = tempfile.mkdtemp(prefix="millrace-bench-pg.", dir="/tmp")
    user = []
    if os.geteuid() == 0:
        os.chown(data, NOBODY, NOBODY)
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    try:
        subprocess.run(
            user + [f"{PG_BIN}/initdb", "-D", f"{data}/db", "-U", "postgres", "-A", "trust", "-E",
                    "UTF8", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd=data)
        options = {
            "listen_addresses": "", "unix_socket_directories": data, "shared_buffers": "512MB",
            "synchronous_commit": "off", "max_wal_size": "8GB", "max_connections": "50",
            "jit": "off"}
        words = [w for k, v in options.items() for w in ("-c", f"{k}={v}")]
        with process(f"{folder}/postgres.log", *user, f"{PG_BIN}/postgres", "-D", f"{data}/db",
                     *words) as p:
            wait_for(lambda: os.path.exists(f"{data}/.s.PGSQL.5432"), 30, "PostgreSQL")
            yield p.pid, data
    finally:
        shutil.rmtree(data, ignore_errors=True)


def connected(path):
    """None: it does not listen yet."""
    with contextlib.suppress(OSError):
        return Redis(path)
    return None


@contextlib.contextmanager
def redis_server(folder):
    """As millrace has it, but it never rewrites its file: that takes a core, and would fall into
    one measurement and not into another."""
    os.symlink(shutil.which("redis-check-rdb"), f"{folder}/redis-server")
    path = f"{folder}/redis.sock"
    with process(f"{folder}/redis.log", f"{folder}/redis-server", "--port", "0", "--unixsocket",
                 path, "--dir", folder, "--appendonly", "yes", "--appendfsync", "everysec",
                 "--auto-aof-rewrite-percentage", "0", "--save", "") as p:
        with wait_for(lambda: connected(path), 30, "Redis") as redis:
            yield p.pid, path, redis


@contextlib.contextmanager
def simulator(folder, latency_ms):
    log = f"{folder}/sim.log"
    options = ["--latency-ms", str(latency_ms)] if latency_ms else []
    with process(log, BIN, "sim", "--listen", "127.0.0.1:0", *options) as p:
        yield Sim(p.pid,
                  wait_for(lambda: re.search(r"listens at (http://\S+?)/?\n", read(log)), 10,
                           "the simulator")[1])


# --- one round of one peer ---

class Round:
    def __init__(self, name, scene, options, papers):
        self.name, self.peer, self.scene = name, PEERS[name], SCENES[scene]
        self.options, self.papers = options, papers
        self.workers, self.processes, rate, *self.words = self.peer.scenes[scene]
        self.workers = options.workers or self.workers
        self.processes = options.processes or self.processes
        self.warm_s = self.scene["warm_s"] + (self.peer.start_s if scene != "zero" else 0)
        # It goes on after the window; a few more than it can take, and a job for everybody.
        count = max(rate * (self.warm_s + options.seconds + 1),
                    self.workers * self.peer.chunk * 1.3)
        self.count = options.check or max(1000, int(count) // 1000 * 1000)

    def run(self, folder):
        with contextlib.ExitStack() as stack:
            redis_pid, path, redis = stack.enter_context(redis_server(folder))
            self.ai = stack.enter_context(simulator(folder, self.scene["latency_ms"]))
            pg_pid, pg_path = stack.enter_context(
                postgres(folder)) if self.peer.postgres else (None, "")
            open_account(redis)
            self.papers.fill(redis, self.count)
            self.stores = [redis_pid] + [pg_pid] * (pg_pid is not None)
            self.env = {
                **os.environ, "REDIS_SOCKET": path, "PGHOST": pg_path,
                "AI_URL": "http://" + self.ai.address, "WORKERS": str(self.workers),
                "PROCESSES": str(self.processes), "PAPERS": str(self.count),
                "CHUNK": str(self.peer.chunk), "PROMPT_HEAD": f"{folder}/head",
                "CHARGE_SCRIPT": f"{HERE}/../src/engine/lua/charge.lua", "NODE_ENV": "production",
                "BUN_CONFIG_MAX_HTTP_REQUESTS": "65000"}
            with open(f"{folder}/head", "w", encoding="utf-8") as f:
                f.write(prompt_head())
            found = self.enqueue() if self.peer.add else {}
            with contextlib.ExitStack() as peer:
                found |= self.measure(folder, redis, self.start(folder, peer))
            self.check_books(redis)
            return found

    def enqueue(self):
        done = subprocess.run(self.peer.add, env=self.env, cwd=DIR, capture_output=True, text=True,
                              timeout=600)
        if done.returncode:
            raise Trouble(f"{self.name} cannot enqueue: {(done.stdout + done.stderr)[-2000:]}")
        return {"enqueue_per_s": self.count / json.loads(done.stdout.splitlines()[-1])["seconds"]}

    def start(self, folder, stack):
        started = []
        for rank in range(self.processes):
            words = self.peer.work + sum(self.words, [])
            if self.peer.workers_option:
                words += [self.peer.workers_option,
                          str(self.workers // self.processes), "-n", f"bench{rank}@here"]
            log = f"{folder}/peer{rank}.log"
            started.append(
                stack.enter_context(peer_process(log, words, self.env | {"RANK": str(rank)})))
        return started

    def measure(self, folder, redis, started):
        pids = [p.pid for p in started]
        alive = lambda: not any(p.poll() for p in started) or trouble(f"{self.name} has failed")
        look = lambda: (time.monotonic(), finished(redis), tree_cpu(pids), tree_cpu(self.stores))
        try:
            wait_for(lambda: finished(redis) > 0 or not alive(), START_S, f"{self.name} charges",
                     EVERY_S)
            if self.options.check:
                wait_for(lambda: finished(redis) >= self.count or not alive(), START_S,
                         f"{self.name} does all papers", EVERY_S)
                return {}
            time.sleep(self.warm_s)
            first = look()
            while time.monotonic() < first[0] + self.options.seconds and finished(
                    redis) < self.count * 0.97:
                time.sleep(EVERY_S)
            last = look()
            alive()
        except Trouble:
            say("".join(read(f"{folder}/peer{r}.log")[-1500:] for r in range(self.processes)))
            raise
        if last[0] < first[0] + min(2, self.options.seconds / 2):
            raise Trouble(f"{self.name} had too few papers to be measured: {self.count}")
        papers = last[1] - first[1]
        own, stores = (last[2] - first[2]) / papers * 1e6, (last[3] - first[3]) / papers * 1e6
        return {"per_s": papers / (last[0] - first[0]), "own_us": own, "all_us": own + stores,
                "rss_mb": tree_mb(pids)}

    def check_books(self, redis):
        """Each paper that counts has a result, cost its cent, and was asked about once; the peer
        has ended. A worker that was killed may have asked without charging."""
        books = {"finished": finished(redis), "results": redis("HLEN", RESULTS),
                 "cents": BALANCE - int(redis("GET", "user:1:balance")),
                 "records": redis("LLEN", "billing_queue:1"),
                 "seq": int(redis("HGET", "user:1:ledger", "seq"))}
        asked = self.ai.stats()["requests"]
        # Pg-boss' pollers have a batch each.
        parts = self.processes * (int(self.words[0][0]) if self.peer.postgres and self.words else 1)
        cut = 0 if self.options.check else -(-self.workers // parts) * parts
        if len(set(books.values())) > 1 or not 0 <= asked - books["results"] <= cut:
            raise Trouble(f"{self.name} has charged wrongly: {books}, AI calls: {asked}")
        if self.options.check and books["results"] != self.count:
            raise Trouble(f"{self.name} has {books['results']} results of {self.count} papers")


def trouble(text):
    raise Trouble(text)


@contextlib.contextmanager
def peer_process(log, words, env):
    """A session of its own: all of it ends with the block."""
    with open(log, "a", encoding="utf-8") as out:
        p = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env,
                             cwd=DIR, start_new_session=True)
    try:
        yield p
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, signal.SIGKILL)  # its session; nothing of it is needed any more
        p.wait()


# --- millrace in the same rounds ---

def millrace_zero(world, options):
    with world.run(nodes=MILLRACE_NODES) as s:
        user = s.user("bench", options.millrace_workers)
        screen.one_round(s, user, WARM_PAPERS)  # everything is in memory after that
        began = time.monotonic()
        run = user.submit(world.papers)
        wait_for(lambda: run.show()["finished"] > 0, 60, "the first charge", 0.001)
        enqueue_s = time.monotonic() - began
        watch = screen.Watch(s, [run]).until(1, screen.limit_s(world.papers))
        papers, seconds, used = watch.between(0, 1)
        figures = screen.by_paper(used, papers, seconds, MILLRACE_NODES)
        return {"per_s": papers / seconds, "enqueue_per_s": world.papers / enqueue_s,
                "own_us": figures["node_us"],
                "all_us": sum(figures[k] for k in ("node_us", "redis_us", "mariadb_us")),
                "rss_mb": sum(screen.memory_mb(p)[0] for p in s.node_pids())}


def millrace_latency(world, users):
    found = screen.measure_latency(world, users=users, nodes=1, latency_ms=200,
                                   papers=min(world.papers, 102000))
    return {"per_s": found["steady_per_s"], "own_us": found["node_us"], "rss_mb": found["rss_mb"],
            "all_us": sum(found[k] for k in ("node_us", "redis_us", "mariadb_us"))}


def one(name, scene, options, papers, world):
    say(f"  {scene} {name}")
    if name == "millrace":
        if scene == "zero":
            return millrace_zero(world, options)
        return millrace_latency(world, 1 if scene == "latency" else 10)
    folder = tempfile.mkdtemp(prefix="millrace-bench.", dir="/tmp")
    try:
        return Round(name, scene, options, papers).run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


UNITS = {"per_s": "papers/s", "enqueue_per_s": "papers/s", "own_us": "µs", "all_us": "µs",
         "rss_mb": "MB", "share": "%"}
GOALS = {"zero/per_s": ">= 50000, >= 7x queue, >= 1x", "latency/share": ">= 98, >= 1x",
         "latency/own_us": "<= 25, >= 1x", "latency/rss_mb": "<= 40, >= 1x",
         "crowd/per_s": ">= 40000, >= 1x", "zero/enqueue_per_s": ">= 200000, >= 1x",
         "zero/own_us": ">= 1x", "zero/all_us": ">= 1x"}
KEPT = {"zero": ("per_s", "own_us", "all_us", "enqueue_per_s"),
        "latency": ("share", "own_us", "all_us", "rss_mb"), "crowd": ("per_s", "own_us", "rss_mb")}
IDEAL = {"latency": 5000}


def tell(scene, name, rounds):
    if scene in IDEAL:
        for r in rounds:
            r["share"] = r["per_s"] / IDEAL[scene] * 100
    kept = {k: [r[k] for r in rounds if k in r] for k in KEPT[scene]}
    for k, values in kept.items():
        if values:
            figure(f"peers/{scene}/{k}/{name}", UNITS[k], [round(v, 2) for v in values],
                   GOALS.get(f"{scene}/{k}", ""))
    middle = {k: round(median(v), 1) for k, v in kept.items() if v}
    print(json.dumps({"bench": f"screen_peers {scene} {name}", **middle}), flush=True)


def main():
    p = argparse.ArgumentParser(prog="bench/screen_peers", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("peers", nargs="*", metavar="PEER",
                   help="millrace, " + ", ".join(PEERS) + "; default: all")
    p.add_argument("--scenes", default="zero,latency,crowd", help="(default zero,latency,crowd)")
    p.add_argument("--rounds", type=int, default=3, help="(default 3)")
    p.add_argument("--seconds", type=float, default=2,
                   help="of each measurement of a peer (default 2)")
    p.add_argument("--papers", type=int, default=150000, help="of millrace (default 150000)")
    p.add_argument("--millrace-workers", type=int, default=1000,
                   help="of millrace at no latency (default 1000)")
    p.add_argument(
        "--check", type=int, metavar="PAPERS", help=
        "measure nothing: a peer does so many papers to the end, and must have charged each once")
    p.add_argument("--workers", type=int, help="of a peer, instead of what was found best")
    p.add_argument("--processes", type=int, help="likewise")
    options = p.parse_args()
    names, scenes = options.peers or ["millrace", *PEERS], options.scenes.split(",")
    unknown = [x for x in names if x != "millrace" and x not in PEERS] + [
        x for x in scenes if x not in SCENES]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed = measure_all(options, names, scenes)
    sys.exit(1 if failed else 0)


def measure_all(options, names, scenes):
    """Round 1 of all, round 2 of all, round 3 of all."""
    found, failed = {}, set()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-bench.", dir="/tmp"))
        papers = Papers(folder)
        world = None
        if "millrace" in names:
            say(f"making and loading {options.papers} papers")
            world = stack.enter_context(World(options.papers // JOURNAL_PAPERS * JOURNAL_PAPERS))
        for i in range(options.rounds):
            for scene in scenes:
                say(f"round {i + 1}, {scene}")
                for name in names:
                    if name != "millrace" and scene not in PEERS[name].scenes:
                        continue
                    try:
                        r = one(name, scene, options, papers, world)
                        say("    " +
                            (", ".join(f"{k} {v:.4g}"
                                       for k, v in r.items()) if not options.check else "exact"))
                        found.setdefault((scene, name), []).append(r)
                    except (Trouble, OSError, subprocess.SubprocessError) as e:
                        failed.add(name)
                        say(f"error: {scene} {name}: {e}")
    for (scene, name), rounds in found.items() if not options.check else ():
        tell(scene, name, rounds)
    return failed


if __name__ == "__main__":
    try:
        main()
    except Trouble as e:
        say(f"error: {e}")
        sys.exit(1)
