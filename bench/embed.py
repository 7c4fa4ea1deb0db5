"""Measures embedding: posts and papers become vectors, by the simulated service.

create   POST /api/posts one after another while 10,000 posts wait, and the service hangs: until the
         answer is there
zero     a service without latency: posts per second, and CPU time of a post, beside BullMQ, in
         turns. Both cut the text, ask for all its chunks at once, and write the same rows and
         vectors into the same MariaDB
papers   100,000 papers, a service that takes 100 ms for a batch of 64: share of what it allows,
         that is calls in flight x 64 / 100 ms, from the command to its end; the same from the first
         call to the last answer; and calls beside those that full batches would be
seen     PUT of a post that is hidden no more: until a search on every node finds it

millrace also writes the words of each text into a full-text index, and each vector into its own
index, which answers searches; BullMQ has neither. "load" is how many processes wanted a core
meanwhile: on a machine that is shared, only figures of the same round compare. Prints a line of
JSON.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from statistics import median

from figures import figure
from growth import Place
from screen_peers import NODE, redis_server, simulator, tree_cpu
from screen_world import (BIN, Http, Server, Trouble, World, cpu_seconds, process, read, wait_for)

DIR = os.environ["PEERS_DIR"]
NODES = 2
TRIALS, POLL_S = 40, 0.002 # of seen
CONCURRENCY = 50 # of the peer; of all nodes of millrace together
LIMIT_S = 600
WAITING = 10_000
BATCH, LATENCY_MS = 64, 100
WORDS = ("Patients with heart failure were assigned at random to one of two groups, and seen every "
         "four weeks by a physician who did not know which group they were in. ") * 14
FREE = ("POST_MINUTE", "POST_DAY", "POST_MONTH", "EMBED_MINUTE", "EMBED_DAY", "EMBED_MONTH")


def say(text):
    print(text, file=sys.stderr, flush=True)


def text_of(n):
    return f"# Trial {n}\n\n{WORDS}\n\n## Dose\n\nThe dose was {n % 97}.5 mg of drug {n}.\n"


def load():
    return os.getloadavg()[0]


@contextlib.contextmanager
def millrace(latency_ms, **settings):
    """A server of its own with an embedding service, and a user."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-bench.", dir="/tmp"))
        os.mkdir(f"{folder}/stores")
        sim = stack.enter_context(simulator(folder, latency_ms))
        url = f"http://{sim.address}/v1"
        server = Server(Place(folder), f"{folder}/stores", nodes=NODES, ai=url)
        server.env |= embedding(url) | {f"MILLRACE_{k}": str(v) for k, v in settings.items()}
        stack.enter_context(server)
        server.sim = sim
        add_keys(server)
        yield server


def embedding(url):
    return {"MILLRACE_AI_EMBEDDING_URL": url, "MILLRACE_AI_EMBEDDING_BATCH_MAX": str(BATCH),
            "MILLRACE_AI_EMBEDDING_DIMENSIONS": "256"} | {
                f"MILLRACE_LIMIT_{k}": "0" for k in FREE}


def add_keys(server):
    server.add_key(2_000_000_000, 1_000_000_000_000) # it removes all others
    server.sql("INSERT INTO api_list (api_key, service, rpm_limit, tpm_limit) VALUES"
               " ('sk-bench-embedding', 'embedding', 2000000000, 1000000000000)")


def add_posts(server, user, count):
    """By several connections."""
    def some(numbers):
        http = Http(server.url, user.http.token)
        for n in numbers:
            http.ask("POST", "/api/posts", {"title": f"Trial {n}", "content": text_of(n)})

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(some, range(i, count, 8)) for i in range(8)]:
            done.result()


# --- parts: each returns what one round has found ---

def create(options):
    took = []
    with millrace(600_000) as server:
        user = server.user("bench", 1000)
        add_posts(server, user, WAITING // options.less)
        for n in range(1000 // options.less):
            body = {"title": f"Trial {n}", "content": text_of(n)}
            began = time.perf_counter()
            user.http.ask("POST", "/api/posts", body)
            took.append((time.perf_counter() - began) * 1e3)
        waiting = int(server.redis_link("ZCARD", "jobs:embedding"))
        if waiting < (WAITING + 1000) // options.less - 10:
            raise Trouble(f"only {waiting} posts wait")
    took.sort()
    return {"create/p50_ms/millrace": took[len(took) // 2],
            "create/p99_ms/millrace": took[int(len(took) * 0.99)], "create/load/machine": load()}


def own(server, posts):
    user = server.user("bench", 1000)
    ended = lambda: int(server.sql(
        "SELECT COUNT(*) FROM tb_post WHERE rag_status = 'completed'").strip())
    add_posts(server, user, 200)
    wait_for(lambda: ended() == 200, 60, "the first posts are completed", 0.1)
    done = lambda: int(server.redis_link("HGET", "jobs:embedding:state", "done") or 0)
    # The service is asked for what waits, all at once: it stood still while posts were made.
    os.kill(server.sim.pid, 19)
    try:
        add_posts(server, user, posts)
    finally:
        os.kill(server.sim.pid, 18)
    before, pids = done(), server.pids()
    left = posts - (before - 200)
    used = {k: sum(map(cpu_seconds, p)) for k, p in pids.items()}
    began = time.monotonic()
    wait_for(lambda: done() - before >= left, LIMIT_S, "posts are completed", 0.01)
    seconds = time.monotonic() - began
    used = {k: (sum(map(cpu_seconds, p)) - used[k]) / left * 1e6 for k, p in pids.items()}
    vectors = int(server.sql("SELECT COUNT(*) FROM point_vector").strip())
    if vectors < (posts + 200) * 2:
        raise Trouble(f"{posts + 200} posts have {vectors} vectors")
    return {"zero/per_s/millrace": left / seconds, "zero/own_us/millrace": used["node"],
            "zero/all_us/millrace": used["node"] + used["redis"] + used["mariadb"],
            "zero/mariadb_us/millrace": used["mariadb"], "zero/load/machine": load()}


def bullmq(server, posts, folder):
    """In the MariaDB of millrace, whose nodes have nothing to do; Redis of its own."""
    server.sql(
        "DROP TABLE IF EXISTS bench_post, bench_vector;"
        "CREATE TABLE bench_post (id BIGINT PRIMARY KEY, title VARCHAR(500) NOT NULL,"
        " content MEDIUMTEXT NOT NULL, rag_status VARCHAR(16) NOT NULL, rag_error VARCHAR(1000),"
        " changed_at DATETIME(3) NOT NULL, KEY in_line (rag_status, id),"
        " KEY changes (rag_status, changed_at));"
        "CREATE TABLE bench_vector (space BIGINT NOT NULL, owner BIGINT NOT NULL,"
        " part INT NOT NULL, version BIGINT NOT NULL, vector MEDIUMBLOB NOT NULL,"
        " PRIMARY KEY (space, owner, part), KEY counted (space, version))")
    with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as f:
        for first in range(1, posts + 1, 500):
            rows = ",".join(f"({n}, 'Trial {n}', '{text_of(n)}', 'pending', UTC_TIMESTAMP(3))"
                            for n in range(first, min(first + 500, posts + 1)))
            f.write(f"INSERT INTO bench_post (id, title, content, rag_status, changed_at)"
                    f" VALUES {rows};\n")
        f.flush()
        server.sql(f"SOURCE {f.name}")
    with redis_server(folder) as (pid, path, _):
        env = {**os.environ, "NODE_ENV": "production", "REDIS_SOCKET": path,
               "AI_URL": "http://" + server.sim.address, "CONCURRENCY": str(CONCURRENCY),
               "MYSQL_SOCKET": f"{server.data}/run/mariadb.sock",
               "MYSQL_PWD": read(f"{server.data}/secret/mariadb").strip()}

        def run(*words):
            done = subprocess.run(NODE + ["bullmq.mjs", *map(str, words)], env=env, cwd=DIR,
                                  capture_output=True, text=True, timeout=LIMIT_S)
            if done.returncode:
                raise Trouble(f"bullmq has failed: {(done.stdout + done.stderr)[-1500:]}")
            return done.stdout

        run("push", posts)
        stores = [pid, *server.pids()["mariadb"]]
        before = tree_cpu(stores)
        found = json.loads(run("work", posts).splitlines()[-1])
        stores_us = (tree_cpu(stores) - before) / posts * 1e6
    ended = server.sql("SELECT COUNT(*) FROM bench_post WHERE rag_status = 'completed'").strip()
    if ended != str(posts):
        raise Trouble(f"bullmq has completed {ended} of {posts} posts")
    own_us = found["cpu_us"] / posts
    return {"zero/per_s/bullmq": posts / found["seconds"], "zero/own_us/bullmq": own_us,
            "zero/all_us/bullmq": own_us + stores_us}


def zero(options):
    posts = options.posts // options.less
    folder = tempfile.mkdtemp(prefix="millrace-bench.", dir="/tmp")
    try:
        with millrace(0, EMBEDDING_CONCURRENCY=CONCURRENCY) as server:
            return own(server, posts) | bullmq(server, posts, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def like(http, post):
    return [h["id"] for h in http.ask("GET", f"/api/search/like?kind=post&id={post}")["hits"]]


def on_each_node(server, user):
    """A connection to each node: the others stand still meanwhile, and take none."""
    pids, links = server.pids()["node"], []
    for pid in pids:
        others = [p for p in pids if p != pid]
        for other in others:
            os.kill(other, 19)
        try:
            links.append(Http(server.url, user.http.token))
            links[-1].ask("GET", "/api/me")
        finally:
            for other in others:
                os.kill(other, 18)
    return links


def until_seen(link, post, twin, out):
    end = time.monotonic() + 10
    while twin not in like(link, post):
        if time.monotonic() > end:
            return
        time.sleep(POLL_S)
    out.append(time.monotonic())


def seen(options):
    """A user for each trial, since users may search only so often."""
    took, trials = [], TRIALS // options.less
    with millrace(0) as server:
        user = server.user("bench", 1000)
        add = lambda n: user.http.ask("POST", "/api/posts", {
            "title": f"Trial {n}", "content": text_of(n)})["post"]["id"]
        post, twin = add(1), add(2)
        wait_for(lambda: server.sql("SELECT COUNT(*) FROM tb_post WHERE"
                                    " rag_status = 'completed'").strip() == "2", 60, "two posts")
        for n in range(trials):
            links = on_each_node(server, server.user(f"reader{n}", 1))
            user.http.ask("PUT", f"/api/posts/{twin}", {"hide": True})
            wait_for(lambda: server.sql("SELECT SUM(tags_due) FROM tb_post").strip() == "0", 10,
                     "the post is hidden")
            at = []
            readers = [threading.Thread(target=until_seen, args=(x, post, twin, at))
                       for x in links]
            began = time.monotonic()
            user.http.ask("PUT", f"/api/posts/{twin}", {"hide": False})
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            if len(at) < len(links):
                raise Trouble("a node has not seen a change for 10 s")
            took.append((max(at) - began) * 1e3)
    took.sort()
    return {"seen/p50_ms/millrace": took[len(took) // 2],
            "seen/p99_ms/millrace": took[int(len(took) * 0.99)], "seen/load/machine": load()}


class Calls:
    """When the service was busy, and how often it was asked."""

    def __init__(self, http):
        self.http, self.ended = http, False
        self.before = self.http.ask("GET", "/stats")["requests"]
        self.first = self.last = None
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.ended:
            stats, now = self.http.ask("GET", "/stats"), time.monotonic()
            if self.first is None and stats["requests"] > self.before:
                self.first = now
            if stats["in_flight"]:
                self.last = now
            time.sleep(0.02)

    def end(self):
        self.ended = True
        self.thread.join()
        return self.http.ask("GET", "/stats")["requests"] - self.before, self.last - self.first


def papers(options, world):
    found = {}
    for jobs in options.jobs:
        data, log = world.folder(), f"{world.dir}/sim{world.count}.log"
        subprocess.run(["cp", "-a", "--sparse=always", f"{world.loaded}/.", data], check=True)
        with process(log, BIN, "sim", "--listen", "127.0.0.1:0", "--latency-ms",
                     str(LATENCY_MS)) as p:
            url = wait_for(lambda: read(log).partition("listens at ")[2].split("\n")[0].strip(),
                           10, "the simulator").rstrip("/")
            server = Server(world, data, nodes=NODES, ai=url + "/v1")
            server.env |= embedding(url + "/v1") | {
                "MILLRACE_EMBEDDING_PAPERS_CALLS": str(jobs // NODES)} # of each node
            with server:
                server.sim = Http(url)
                server.sim.pid = p.pid
                add_keys(server)
                pids = server.pids()
                used = {k: sum(map(cpu_seconds, v)) for k, v in pids.items()}
                calls = Calls(Http(url))
                began = time.monotonic()
                try:
                    server.tool("embed", "--all", "--wait")
                    seconds = time.monotonic() - began
                finally:
                    asked, busy = calls.end()
                used = {k: (sum(map(cpu_seconds, v)) - used[k]) / world.papers * 1e6
                        for k, v in pids.items()}
                count = int(server.sql("SELECT COUNT(*) FROM point_vector").strip())
                if count < world.papers:
                    raise Trouble(f"{world.papers} papers have {count} vectors")
        ideal = world.papers / BATCH * LATENCY_MS / 1000 / jobs
        what = f"papers/calls_{jobs}"
        found |= {f"{what}_share/millrace": ideal / seconds,
                  f"{what}_busy_share/millrace": ideal / busy,
                  f"{what}_calls_to_full/millrace": asked / (count / BATCH),
                  f"{what}_per_s/millrace": world.papers / seconds,
                  f"{what}_node_us/millrace": used["node"],
                  f"{what}_mariadb_us/millrace": used["mariadb"]}
        shutil.rmtree(data, ignore_errors=True)
    return found | {"papers/load/machine": load()}


# --- all ---

UNITS = {"per_s": "/s", "us": "µs", "ms": "ms", "share": "", "to_full": "", "load": ""}
GOALS = {"create/p99_ms": "<= 5", "seen/p99_ms": "<= 50", "zero/per_s": ">= 2x"}


def tell(found):
    line = {"bench": "embed"}
    for name, values in found.items():
        what, _, who = name.rpartition("/")
        unit = next(u for end, u in UNITS.items() if what.endswith(end))
        goal = ">= 0.95" if what.endswith("_share") else GOALS.get(what, "")
        figure("embed/" + name, unit, [round(v, 3) for v in values],
               goal if who == "millrace" else "")
        line[name.removesuffix("/millrace")] = round(median(values), 3)
    if {"zero/per_s/millrace", "zero/per_s/bullmq"} <= set(found):
        line["ratio"] = round(median(found["zero/per_s/millrace"]) /
                              median(found["zero/per_s/bullmq"]), 2)
    print(json.dumps(line), flush=True)


def main():
    p = argparse.ArgumentParser(prog="bench/embed", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", metavar="PART",
                   help="create, zero, papers, seen; default: all")
    p.add_argument("--rounds", type=int, help="(default 3; 1 with --quick)")
    p.add_argument("--posts", type=int, default=10_000, help="of zero (default 10,000)")
    p.add_argument("--papers", type=int, default=100_000, help="of papers (default 100,000)")
    p.add_argument("--jobs", type=int, nargs="+", default=[4, 8],
                   help="calls in flight, of papers (default 4 and 8)")
    p.add_argument("--quick", action="store_true", help="a tenth of it, once")
    options = p.parse_args()
    options.less = 10 if options.quick else 1
    parts = options.parts or ["create", "zero", "papers", "seen"]
    if set(parts) - {"create", "zero", "papers", "seen"}:
        p.error("unknown part")
    found = {}
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(options.papers // options.less)) \
            if "papers" in parts else None
        for i in range(options.rounds or (1 if options.quick else 3)):
            for part in parts:
                say(f"round {i + 1}: {part}")
                values = papers(options, world) if part == "papers" else {
                    "create": create, "zero": zero, "seen": seen}[part](options)
                say("  " + ", ".join(f"{k} {v:.3g}" for k, v in values.items()))
                for k, v in values.items():
                    found.setdefault(k, []).append(v)
    tell(found)


if __name__ == "__main__":
    try:
        main()
    except Trouble as e:
        sys.exit(f"error: {e}")
