"""Measures how cost grows, and prints a line of JSON for each size:

papers   10,000, 100,000 and 1,000,000 papers: db init and db warm, time and CPU time per paper,
         memory; bytes of Redis per paper
runs     1, 100 and 1,000 runs that wait, while another runs without AI latency: papers per second,
         CPU time per paper; CPU time per second while nothing runs
workers  10, 1,000 and 10,000 workers, AI at 200 ms, one node: share of the ideal, CPU time per
         paper, memory
"""
import argparse
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from statistics import median

import screen
from figures import figure
from screen_world import BIN, JOURNAL_PAPERS, Server, Trouble, World, cpu_seconds, read

SIZES = {
    "papers": (10_000, 100_000, 1_000_000), "runs": (1, 100, 1000), "workers": (10, 1000, 10_000)}
UNIT_PAPERS = 100
RUN_PAPERS = 150_000    # of the run beside those that wait
WORLD_PAPERS = 204_000  # two units for each of a thousand workers
UNITS = {"us": "µs", "mb": "MB", "bytes": "B", "ms": "ms", "per_s": "papers/s", "share": "%"}


def tell(kind, size, rounds):
    """The unit is what a name ends with."""
    for name in rounds[0]:
        unit = next(u for end, u in UNITS.items() if name.endswith(end))
        figure(f"growth/{kind}/{name}/{size}", unit, [round(r[name], 3) for r in rounds])
    middle = {k: round(median(r[k] for r in rounds), 2) for k in rounds[0]}
    print(json.dumps({"bench": f"growth {kind}", kind: size, **middle}), flush=True)


# --- papers ---

def measured(server, stores, *words):
    """Time, CPU time of the tool and of the stores, and the most memory that the tool ever had."""
    before = [cpu_seconds(p) for p in stores]
    began = time.monotonic()
    with open(os.devnull, "w", encoding="utf-8") as null:
        pid = subprocess.Popen([BIN, *words], env=server.env, stdout=null, stderr=null,
                               cwd=server.world.dir).pid
        _, status, used = os.wait4(pid, 0)
    if status:
        raise Trouble(f"millrace {' '.join(words)} has failed")
    took = time.monotonic() - began
    return took, used.ru_utime + used.ru_stime, [
        cpu_seconds(p) - b for p, b in zip(stores, before)], used.ru_maxrss / 1024


class Place:
    """What Server needs of a world."""

    def __init__(self, folder):
        self.dir = folder


def load(count):
    folder = tempfile.mkdtemp(prefix="millrace-bench.", dir="/tmp")
    try:
        subprocess.run([BIN, "sample", "--papers", str(count), f"{folder}/papers"], check=True,
                       stdout=subprocess.DEVNULL)
        os.mkdir(f"{folder}/stores")
        with Server(Place(folder), f"{folder}/stores", nodes=1, ai="http://127.0.0.1:1/v1") as s:
            pid = lambda name: int(read(f"{s.data}/run/{name}.pid"))
            stores = [pid("redis"), pid("mariadb")]
            used = lambda: int(s.redis("INFO", "memory").split("used_memory:")[1].split()[0])
            init = measured(s, stores, "db", "init", "--data", f"{folder}/papers")
            before = used()
            warm = measured(s, stores, "db", "warm")
            size = used() - before
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    by_paper = lambda seconds: seconds / count * 1e6
    return {
        "init_us": by_paper(init[0]), "init_cpu_us": by_paper(init[1]),
        "init_mariadb_us": by_paper(init[2][1]), "init_mb": init[3], "warm_us": by_paper(warm[0]),
        "warm_cpu_us": by_paper(warm[1]), "warm_redis_us": by_paper(warm[2][0]), "warm_mb": warm[3],
        "redis_bytes": size / count}



def papers(options, _):
    for size in options.sizes["papers"]:
        screen.say(f"papers: {size}")
        tell("papers", size, [load(size) for _ in range(options.rounds)])


# --- runs that wait ---

def waiting(server, people, count, user, run_papers):
    """One round of a run beside `count` others that wait."""
    crowd = people[:min(count, len(people))]
    runs = screen.fill_queue(server, crowd, count // len(crowd))
    idle = screen.idle_ms(server)
    beside = screen.one_round(server, user, run_papers)
    screen.empty_queue(runs)
    screen.settle(server)
    return {"per_s": beside["per_s"], "node_us": beside["node_us"], "redis_us": beside["redis_us"],
            "mariadb_us": beside["mariadb_us"], "idle_node_ms": max(0, idle[0]),
            "idle_redis_ms": max(0, idle[1])}


def runs(options, world):
    found = {}
    with world.run() as s:
        user = s.user("bench", 100)
        people = [s.user(f"waiting{i}", 1) for i in range(screen.WAITING_USERS)]
        run_papers = min(RUN_PAPERS, world.papers)
        screen.one_round(s, user, run_papers)
        for _ in range(options.rounds):
            for size in options.sizes["runs"]:
                screen.say(f"runs: {size}")
                found.setdefault(size, []).append(waiting(s, people, size, user, run_papers))
    for size, rounds in found.items():
        tell("runs", size, rounds)


# --- workers ---

def workers(options, world):
    found = {}
    for _ in range(options.rounds):
        for size in options.sizes["workers"]:
            screen.say(f"workers: {size}")
            users = max(1, size // 1000)
            each = size // users
            # Whole units for everybody, and more where that does not take long: else some have
            # nothing to do.
            units = 3 if size < 1000 else 2 if users == 1 else 1
            count = min(world.papers, each * UNIT_PAPERS * units * 51 // 50)
            r = screen.measure_latency(world, users=users, nodes=1, latency_ms=200, papers=count,
                                       each=each)
            found.setdefault(size, []).append({
                "share": r["share"] * 100, "per_s": r["steady_per_s"], "node_us": r["node_us"],
                "redis_us": r["redis_us"], "mariadb_us": r["mariadb_us"], "rss_mb": r["rss_mb"]})
    for size, rounds in found.items():
        tell("workers", size, rounds)


BENCHES = {"papers": papers, "runs": runs, "workers": workers}


def main():
    p = argparse.ArgumentParser(prog="bench/growth", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("benches", nargs="*", metavar="NAME", help="papers, runs, workers; default: all")
    p.add_argument("--rounds", type=int, default=3, help="(default 3)")
    p.add_argument("--papers", type=int, default=WORLD_PAPERS,
                   help=f"of runs and workers (default {WORLD_PAPERS})")
    p.add_argument("--quick", action="store_true",
                   help="one round, without the largest number of papers")
    options = p.parse_args()
    unknown = [b for b in options.benches if b not in BENCHES]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    options.sizes = dict(SIZES)
    if options.quick:
        options.rounds, options.sizes["papers"] = 1, SIZES["papers"][:-1]
    names = options.benches or list(BENCHES)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed = 0
    if "papers" in names:
        papers(options, None)
        names = [n for n in names if n != "papers"]
    if names:
        with World(options.papers // JOURNAL_PAPERS * JOURNAL_PAPERS) as world:
            for name in names:
                try:
                    BENCHES[name](options, world)
                except (Trouble, OSError, http.client.HTTPException) as e:
                    failed = 1
                    screen.say(f"error: {name}: {e or type(e).__name__}")
    sys.exit(failed)


if __name__ == "__main__":
    try:
        main()
    except Trouble as e:
        screen.say(f"error: {e}")
        sys.exit(1)
