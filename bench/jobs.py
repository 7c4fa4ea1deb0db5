"""Measures queues of jobs whose work is nothing, beside BullMQ and pg-boss, in turns:

alone    jobs without rows, 100 at a time: jobs per second from a full queue, pushes per second, CPU
         time of a job from its push to its end (its own process and Redis, or PostgreSQL), bytes of
         Redis for a job that waits
rows     jobs with rows in MariaDB, whose states are written: jobs per second
submit   rows of 100 jobs, and of 10,000, written in one transaction, and the jobs pushed
start    from the push of a job to its begin when there is nothing else to do: on the same node, and
         on another one
kill     100 jobs in work on a node that is killed: until another node has taken all of them; and
         how many it has taken before, while the leases were kept
growth   time of a push and of a job's work, beside 1,000, 100,000 and 1,000,000 jobs that wait

All have a Redis of their own for each round, with an append-only file every second. PostgreSQL
commits likewise (synchronous_commit off), MariaDB as millrace runs it. Prints a line of JSON.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from statistics import median

from figures import figure
from growth import Place
from screen_peers import NODE, postgres, redis_server, say, tree_cpu
from screen_world import Server, Trouble, read

BENCH, DIR = os.path.abspath(os.environ["BENCH_JOBS"]), os.environ["PEERS_DIR"]
PEERS = {"bullmq": NODE + ["bullmq.mjs"], "pgboss": NODE + ["pgboss.mjs"]}
LIMIT_S = 300
HELD_JOBS, HELD_S, KEPT_S = 100, 60, 9  # leases are of six seconds
GROWTH_JOBS = 20000
SIZES = (1_000, 100_000, 1_000_000)


class World:
    """MariaDB, and where each round's Redis is."""

    def __init__(self, options, folder, server):
        self.options, self.folder, self.server = options, folder, server
        self.rounds = 0

    @contextlib.contextmanager
    def redis(self):
        self.rounds += 1
        folder = f"{self.folder}/redis{self.rounds}"
        os.mkdir(folder)
        with redis_server(folder) as (pid, path, redis):
            yield Stores(self, [pid], redis, {"MILLRACE_REDIS_URL": "unix:" + path,
                                              "REDIS_SOCKET": path})
        shutil.rmtree(folder)

    @contextlib.contextmanager
    def postgres(self):
        with postgres(self.folder) as (pid, path):
            yield Stores(self, [pid], None, {"PGHOST": path})


class Stores:
    def __init__(self, world, pids, redis, env):
        self.pids, self.redis = pids, redis
        self.env = {**world.server.env, **env, "NODE_ENV": "production"}

    def run(self, who, *words):
        """What it prints, and with it the CPU time of the stores meanwhile."""
        before = tree_cpu(self.pids)
        done = subprocess.run(PEERS.get(who, [BENCH]) + [str(w) for w in words], env=self.env,
                              cwd=DIR, capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode or not done.stdout:
            raise Trouble(f"{who} {words} has failed: {(done.stdout + done.stderr)[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        return {**found, "store_us": (tree_cpu(self.pids) - before) * 1e6}

    def memory(self):
        return int(self.redis.info("memory")["used_memory"])


# --- parts: each returns what one round has found ---

def alone_of(world, who, count):
    with world.postgres() if who == "pgboss" else world.redis() as s:
        if s.redis:
            s.run(who, *(("push", 1, 0) if who == "millrace" else ("push", 1)))
            s.run(who, "work", 1)
        before = s.memory() if s.redis else 0
        first = [0] if who == "millrace" else []
        push = s.run(who, "push", count, *first)
        size = s.memory() - before if s.redis else 0
        work = s.run(who, "work", count)
    used = sum(x["cpu_us"] + x["store_us"] for x in (push, work))
    found = {"per_s": count / work["seconds"], "push_per_s": count / push["seconds"],
             "cpu_us": used / count, "own_us": (push["cpu_us"] + work["cpu_us"]) / count}
    return found | ({"bytes": size / count} if size else {})


def alone(world):
    counts = {"millrace": 200_000, "bullmq": 40_000, "pgboss": 40_000}
    found = {}
    for who, count in counts.items():
        for k, v in alone_of(world, who, count // world.options.less).items():
            found[f"alone/{k}/{who}"] = v
    return found


def rows(world):
    mariadb = int(read(f"{world.server.data}/run/mariadb.pid"))
    with world.redis() as s:
        before = tree_cpu([mariadb])
        r = s.run("millrace", "rows", 50_000 // world.options.less)
        mariadb_us = (tree_cpu([mariadb]) - before) * 1e6  # making the rows is in it
    return {"rows/mariadb_us/millrace": mariadb_us / r["jobs"],
            "rows/per_s/millrace": r["jobs"] / r["seconds"],
            "rows/own_us/millrace": r["cpu_us"] / r["jobs"],
            "rows/redis_us/millrace": r["store_us"] / r["jobs"]}


def submit(world):
    with world.redis() as s:
        few = s.run("millrace", "submit", 100, 300)
        many = s.run("millrace", "submit", 10_000, 5)
    return {"submit/few_p50_ms/millrace": few["p50_ms"],
            "submit/few_p99_ms/millrace": few["p99_ms"],
            "submit/many_ms/millrace": many["p50_ms"]}


def start(world):
    count = 300 // world.options.less
    with world.redis() as s:
        found = {"start/{}/millrace": s.run("millrace", "start", count),
                 "start/other_{}/millrace": s.run("millrace", "start-other", count)}
    with world.redis() as s:
        found["start/{}/bullmq"] = s.run("bullmq", "start", count)
    return {name.format(k): v[k] for name, v in found.items() for k in ("p50_ms", "p99_ms")}


def holder(stack, s):
    """A node on which jobs take a minute, and a function that reads its next line."""
    p = stack.enter_context(
        subprocess.Popen([BENCH, "hold", str(HELD_S)], env=s.env, stdout=subprocess.PIPE,
                         text=True))
    stack.callback(p.kill)
    line = p.stdout.readline()
    if line != "ready\n":
        raise Trouble(f"a node of jobs does not start: {line}")
    return p


def kill(world):
    with world.redis() as s, contextlib.ExitStack() as stack:
        first = holder(stack, s)
        s.run("millrace", "put", HELD_JOBS, 1)
        for _ in range(HELD_JOBS):
            first.stdout.readline()
        second = holder(stack, s)
        time.sleep(KEPT_S)
        os.kill(first.pid, signal.SIGKILL)
        killed = time.monotonic()
        taken = [int(second.stdout.readline().split()[2]) / 1e6 for _ in range(HELD_JOBS)]
    return {"kill/again_s/millrace": max(taken) - killed,
            "kill/early/millrace": sum(x < killed for x in taken)}


def growth(world):
    found = {}
    with world.redis() as s:
        have = 0
        for size in SIZES[:3 if world.options.less == 1 else 2]:
            s.run("millrace", "push", size - have, have)
            push = s.run("millrace", "push", GROWTH_JOBS, size)
            work = s.run("millrace", "work", GROWTH_JOBS)
            have = size
            for name, r in ("push", push), ("work", work):
                found[f"growth/{name}_us/{size}"] = r["seconds"] / GROWTH_JOBS * 1e6
                found[f"growth/{name}_redis_us/{size}"] = r["store_us"] / GROWTH_JOBS
    return found


PARTS = {"alone": alone, "rows": rows, "submit": submit, "start": start, "kill": kill,
         "growth": growth}
UNITS = {"per_s": "/s", "us": "µs", "bytes": "B", "ms": "ms", "s": "s", "early": ""}
GOALS = {"alone/per_s": ">= 4x bullmq", "alone/cpu_us": ">= 5x bullmq", "alone/bytes": "<= 350",
         "rows/per_s": ">= 10000", "submit/few_p50_ms": "<= 5", "submit/few_p99_ms": "<= 10",
         "submit/many_ms": "<= 250", "start/p50_ms": "<= 1", "start/p99_ms": "<= 3",
         "start/other_p50_ms": "<= 1", "start/other_p99_ms": "<= 3", "kill/again_s": "<= 7",
         "kill/early": "<= 0"}


def tell(found):
    line = {"bench": "jobs"}
    for name, values in found.items():
        what, _, who = name.rpartition("/")
        unit = next(u for end, u in UNITS.items() if what.endswith(end))
        figure("jobs/" + name, unit, [round(v, 3) for v in values],
               GOALS.get(what, "") if who == "millrace" else "")
        line[name.removesuffix("/millrace")] = round(median(values), 2)
    ratio = lambda a, b: round(median(found[a]) / median(found[b]), 2)
    if "alone/per_s/bullmq" in found:
        line["ratio"] = ratio("alone/per_s/millrace", "alone/per_s/bullmq")
        line["ratio_cpu"] = ratio("alone/cpu_us/millrace", "alone/cpu_us/bullmq")
        line["ratio_pgboss"] = ratio("alone/per_s/millrace", "alone/per_s/pgboss")
    print(json.dumps(line), flush=True)


def main():
    p = argparse.ArgumentParser(prog="bench/jobs", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", metavar="PART",
                   help=", ".join(PARTS) + "; default: all")
    p.add_argument("--rounds", type=int, help="(default 3; 1 with --quick)")
    p.add_argument("--quick", action="store_true", help="with a tenth of the jobs")
    options = p.parse_args()
    unknown = [x for x in options.parts if x not in PARTS]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    options.less = 10 if options.quick else 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found, failed = {}, False
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-bench.", dir="/tmp"))
        os.mkdir(f"{folder}/stores")
        server = stack.enter_context(
            Server(Place(folder), f"{folder}/stores", nodes=1, ai="http://127.0.0.1:1/v1"))
        world = World(options, folder, server)
        for i in range(options.rounds or (1 if options.quick else 3)):
            for name in options.parts or PARTS:
                say(f"round {i + 1}, {name}")
                try:
                    r = PARTS[name](world)
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
