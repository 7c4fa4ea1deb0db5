"""Measures screening end to end, and prints a line of JSON for each measurement:

zero     no AI latency, one node, 1,000 workers: papers per second from the first to the last
         charge, and the CPU time of every process per paper, then (…_after) until the run is
         archived; archived_s is all of it, from the submission on; the same with an AI that speaks
         HTTP/1.1 only, and with other numbers of workers
latency  200 ms, 1,000 workers, one node: share of 5,000 papers/s between 20 % and 80 % of the run,
         and the node's memory
tls      the same over TLS, with HTTP/2 and then with HTTP/1.1 (tls1), each in turn with plain
         HTTP/2: ratio is the node's CPU time per paper to that of plain HTTP/2
brisk    100 ms, 1,000 workers, one node: share of 10,000 papers/s likewise, and lag_s
crowd    200 ms, ten users with 1,000 workers each, one node: papers per second likewise, ideal
         50,000; archived_s until all that was charged is in MySQL and the runs are archived, which
         are terminated at 80 %
many     1 s, ten users with 1,000 workers each, two nodes: share of 10,000 papers/s likewise, and
         the memory of the nodes
rate     one key with 600 requests a minute, two nodes: refusals, the most in any 60 s, share of the
         limit that was used
pause    1,000 workers at 200 ms, paused 20 times: from the request until no worker is left, and no
         call
queued   papers per second of a run with and without 1,000 others that wait; and what those cost in
         CPU time while nothing runs

lag_s is the age of the oldest charge that MySQL does not have, at its worst in the whole run: what
a Redis that is lost would take with it.

Times are what the server tells over HTTP: "finished" of GET /api/queries/<id>, asked 20 times a
second. CPU time is that of /proc/<pid>/stat: it hardly depends on what else the machine does. Rates
do: node_waits is the share of the time in which the node could have run and had no core.
"""
import argparse
import http.client
import json
import signal
import sys
import time
from statistics import median

from figures import figure
from screen_world import (JOURNAL_PAPERS, Trouble, World, cpu_seconds, memory_mb, wait_for,
                          waited_seconds)

EVERY_S = 0.05
STEADY = (0.2, 0.8)  # of a run: before, workers start; after, some have nothing left to do
ZERO_WORKERS = 1000
SLOWEST = 1000  # papers/s: a run that is slower is given up


def say(text):
    print(text, file=sys.stderr, flush=True)


def tell(bench, **figures):
    rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in figures.items()}
    print(json.dumps({"bench": "screen " + bench, **rounded}), flush=True)


def keep(bench, rounds, units, goals):
    """Figures for bench/run, of the rounds of one measurement."""
    for name, unit in units.items():
        figure(f"screen/{bench}/{name}/millrace", unit, [round(r[name], 4) for r in rounds],
               goals.get(name, ""))


# --- what is looked at ---

def oldest_charge_s(server, uid):
    """Its age, if MySQL does not have it yet."""
    record = server.redis_link("LINDEX", f"billing_queue:{uid}", "0")
    return time.time() - json.loads(record)["timestamp"] / 1000 if record else 0.0


def cpu(server):
    used = {name: sum(cpu_seconds(p) for p in pids) for name, pids in server.all_pids.items()}
    return used | {"waits": sum(waited_seconds(p) for p in server.all_pids["node"])}


def by_paper(used, papers, seconds, nodes=1):
    """CPU time of each process in microseconds, and how long the nodes had none."""
    figures = {f"{k}_us": v / papers * 1e6 for k, v in used.items() if k != "waits"}
    return figures | {"node_waits": used["waits"] / seconds / nodes}


class Watch:
    """How runs of a server go on: (seconds, papers finished, CPU seconds by process) again and
    again."""

    def __init__(self, server, runs):
        server.all_pids = server.pids()
        self.server, self.runs, self.seen = server, runs, []
        self.total, self.lag_s = 0, 0.0

    def look(self):
        views = [r.show() for r in self.runs]
        self.total = sum(v["papers"] for v in views)
        self.failed = sum(v["failed"] for v in views)
        self.lag_s = max(self.lag_s, *(oldest_charge_s(self.server, r.user.uid) for r in self.runs))
        self.seen.append((time.monotonic(), sum(v["finished"] for v in views), cpu(self.server)))
        return views

    def until(self, share, seconds):
        end = time.monotonic() + seconds
        while True:
            self.look()
            if self.seen[-1][1] >= share * self.total:
                return self
            if time.monotonic() > end:
                raise Trouble(f"{self.seen[-1][1]} of {self.total} papers after {seconds:.0f} s")
            time.sleep(EVERY_S)

    def between(self, low, high):
        """From when more than a share `low` was done until `high` was: papers, seconds, CPU
        seconds."""
        first = next(s for s in self.seen if s[1] > low * self.total)
        last = next(s for s in self.seen if s[1] >= high * self.total)
        used = {k: last[2][k] - first[2][k] for k in last[2]}
        return last[1] - first[1], last[0] - first[0], used


def rate(watch, low, high):
    papers, seconds, _ = watch.between(low, high)
    return papers / seconds


def limit_s(papers):
    return 60 + papers / SLOWEST


# --- the measurements ---

def charges_waiting(server):
    """That MySQL does not have yet."""
    queues = server.redis("--scan", "--pattern", "billing_queue:*").split()
    return sum(int(server.redis("LLEN", q)) for q in queues)


def settle(server):
    """Until all charges are in MySQL, and the runs that have ended are archived: no work is left
    for the next round."""
    waiting = ("SELECT COUNT(*) FROM query_log WHERE archived = 0"
               " AND status IN ('DONE', 'CANCELLED', 'FAILED')")
    wait_for(lambda: charges_waiting(server) == 0, 120, "all charges are in MySQL", 0.1)
    wait_for(lambda: server.sql(waiting).strip() == "0", 180, "runs are archived", 0.2)


def one_round(server, user, papers):
    began = time.monotonic()
    run = user.submit(papers)
    watch = Watch(server, [run]).until(1, limit_s(papers))
    if watch.failed:
        raise Trouble(f"{watch.failed} papers have failed")
    behind = charges_waiting(server)
    papers, seconds, used = watch.between(0, 1)
    before = cpu(server)
    settle(server)
    archived_s = time.monotonic() - began
    after = cpu(server)
    figures = {"per_s": papers / seconds, "steady_per_s": rate(watch, *STEADY),
               **by_paper(used, papers, seconds)}
    figures |= {"behind_s": behind * seconds / papers, "lag_s": watch.lag_s,
                "archived_s": archived_s}
    figures |= {f"{k}_us_after": (after[k] - before[k]) / papers * 1e6
                for k in ("node", "redis", "mariadb")}
    say("  " + ", ".join(f"{k} {v:.4g}" for k, v in figures.items()))
    return figures


ZERO_UNITS = {
    "per_s": "papers/s", "node_us": "µs", "redis_us": "µs", "mariadb_us": "µs", "sim_us": "µs",
    "behind_s": "s", "lag_s": "s", "archived_s": "s"}


def zero(world, options):
    with world.run() as s:
        sweep = {}
        for workers in (10, 100, 1000):
            user = s.user(f"sweep{workers}", workers)
            sweep[workers] = one_round(s, user, min(options.papers, 100000))["per_s"]
        user = s.user("bench", ZERO_WORKERS)
        rounds = [one_round(s, user, options.papers) for _ in range(options.rounds)]
        memory = memory_mb(s.node_pids()[0])
    with world.run(sim=["--http1"]) as s:
        user = s.user("bench", ZERO_WORKERS)
        one_round(s, user, min(options.papers, 60000))
        plain = [one_round(s, user, options.papers) for _ in range(options.rounds)]
    middle = {k: median(r[k] for r in rounds) for k in rounds[0]}
    keep("zero", rounds, ZERO_UNITS, {"node_us": "<= 20", "lag_s": "<= 5"})
    keep("http1", plain, ZERO_UNITS, {})
    figure("screen/zero/rss_mb/millrace", "MB", [round(memory[0], 1)])
    tell("zero", papers=options.papers, workers=ZERO_WORKERS, **middle, rss_mb=memory[0],
         rss_mb_peak=memory[1], runs=" ".join(f"{r['per_s']:.0f}" for r in rounds),
         http1=" ".join(f"{r['per_s']:.0f}" for r in plain),
         sweep=" ".join(f"{w}:{v:.0f}" for w, v in sweep.items()))


def measure_latency(world, users, nodes, latency_ms, papers, each=1000, tls=False, sim=()):
    """So many users with so many workers each, all at work on the same papers."""
    workers = each * users
    ideal = workers * 1000 / latency_ms
    with world.run(nodes=nodes, sim=["--latency-ms", str(latency_ms), *sim], tls=tls) as s:
        people = [s.user(f"bench{i}", each) for i in range(users)]
        began = time.monotonic()
        runs = [p.submit(papers) for p in people]
        watch = Watch(s, runs).until(STEADY[1], 60 + 3 * papers * users / ideal)
        memory = [memory_mb(p) for p in s.node_pids()]
        peak = s.sim.stats()["in_flight_peak"]
        behind = charges_waiting(s)
        for run in runs:
            run.end()
        settle(s)
        archived_s = time.monotonic() - began
    papers, seconds, used = watch.between(*STEADY)
    steady = rate(watch, *STEADY)
    return {"papers": watch.total, "nodes": nodes, "workers": workers, "latency_ms": latency_ms,
            "ideal_per_s": ideal, "steady_per_s": steady, "share": steady / ideal,
            "in_flight_peak": peak, "failed": watch.failed, "behind": behind,
            "lag_s": watch.lag_s, "archived_s": archived_s,
            **by_paper(used, papers, seconds, nodes), "rss_mb": max(m[0] for m in memory),
            "rss_mb_peak": max(m[1] for m in memory)}


def with_latency(world, name, rounds, goals, **what):
    rounds = [measure_latency(world, **what) for _ in range(rounds)]
    for r in rounds:
        say("  " + ", ".join(f"{k} {v:.4g}" for k, v in r.items()))
    keep(name, rounds, {
        "steady_per_s": "papers/s", "share": "", "node_us": "µs", "redis_us": "µs", "rss_mb": "MB",
        "lag_s": "s", "archived_s": "s"},
         goals)
    tell(name, **{k: median(r[k] for r in rounds) for k in rounds[0]})


def latency(world, options):
    with_latency(world, "latency", options.rounds,
                 {"share": ">= 0.98", "node_us": "<= 25", "rss_mb": "<= 40"}, users=1, nodes=1,
                 latency_ms=200, papers=min(options.papers, 200000))


def tls(world, options):
    what = {"users": 1, "nodes": 1, "latency_ms": 200, "papers": min(options.papers, 200000)}
    secure, http1 = [], []
    for _ in range(options.rounds):
        plain = measure_latency(world, **what)
        say(f"  plain HTTP/2: node_us {plain['node_us']:.4g}")
        for rounds, sim in ((secure, []), (http1, ["--http1"])):
            r = measure_latency(world, **what, tls=True, sim=sim)
            r["ratio"] = r["node_us"] / plain["node_us"]
            say("  " + ", ".join(f"{k} {v:.4g}" for k, v in r.items()))
            rounds.append(r)
    units = {"share": "", "node_us": "µs", "ratio": "", "sim_us": "µs", "rss_mb": "MB"}
    for name, rounds, goals in (
            ("tls", secure, {"share": ">= 0.98", "node_us": "<= 25", "ratio": "<= 1.5"}),
            ("tls1", http1, {"share": ">= 0.98", "node_us": "<= 60"})):
        keep(name, rounds, units, goals)
        tell(name, **{k: median(r[k] for r in rounds) for k in rounds[0]})


def brisk(world, options):
    with_latency(world, "brisk", options.rounds, {"share": ">= 0.95", "lag_s": "<= 1"}, users=1,
                 nodes=1, latency_ms=100, papers=min(options.papers, 200000))


def crowd(world, options):
    with_latency(world, "crowd", options.rounds, {"lag_s": "<= 5"},
                 users=10, nodes=1, latency_ms=200, papers=min(options.papers, 102000))


def many(world, options):
    # A worker has a block of 100 papers, 100 s: one round.
    with_latency(world, "many", 1, {"share": ">= 0.95", "rss_mb": "<= 300"},
                 users=10, nodes=2, latency_ms=1000, papers=min(options.papers, 102000))


def key_stats(stats):
    return stats["keys"][0] if stats["keys"] else {
        "requests": 0, "limited": 0, "requests_60s_max": 0}


def rate_limit(world, options):
    """Half of the limit may go at once; what comes after the first minute is the steady state."""
    limit = 600
    with world.run(nodes=2, limits=(limit, 10**12),
                   sim=["--rate-limit", str(limit), "--latency-ms", "200"]) as s:
        run = s.user("bench", 1000).submit(options.papers)
        wait_for(lambda: s.sim.stats()["requests"] > 0, 60, "the first call")
        seen = []
        end = time.monotonic() + options.rate_minutes * 60 + 60
        while time.monotonic() < end:
            seen.append((time.monotonic(), s.sim.stats()["requests"]))
            time.sleep(0.1)
        stats = s.sim.stats()
        run.do("terminate")
    key = key_stats(stats)
    first = next(x for x in seen if x[0] >= seen[0][0] + 60)
    per_minute = (seen[-1][1] - first[1]) / (seen[-1][0] - first[0]) * 60
    worst = min((seen[j][1] - x[1]) / (seen[j][0] - x[0]) * 60 for i, x in enumerate(seen)
                if x[0] >= first[0]
                for j in [next((j for j in range(i, len(seen)) if seen[j][0] >= x[0] + 60), None)]
                if j)
    keep("rate", [{"share": per_minute / limit, "refused": stats["outcomes"]["limited"],
                   "most": key["requests_60s_max"]}], {"share": "", "refused": "", "most": ""},
                    {"share": ">= 0.97", "refused": "<= 0", "most": f"<= {limit}"})
    tell("rate", nodes=2, limit=limit, minutes=options.rate_minutes, requests=key["requests"],
         refused_429=stats["outcomes"]["limited"], most_in_60s=key["requests_60s_max"],
         per_minute=per_minute, share=per_minute / limit, share_worst_minute=worst / limit)


def pause(world, options):
    took, calls, answers = [], [], []
    with world.run(sim=["--latency-ms", "200"]) as s:
        run = s.user("bench", 1000).submit(options.papers)
        for i in range(options.pauses):
            wait_for(lambda: run.show()["workers"] >= 1000 and s.sim.stats()["in_flight"] >= 900,
                     60, "1,000 workers")
            time.sleep(0.5 + i % 7 * 0.029)  # not always at the same time of a call
            began = time.monotonic()
            if run.do("pause") != "PAUSED":
                raise Trouble("the run does not pause")
            answers.append((time.monotonic() - began) * 1e3)
            at = {}
            while len(at) < 2:
                if "calls" not in at and s.sim.stats()["in_flight"] == 0:
                    at["calls"] = time.monotonic() - began
                if "workers" not in at and run.show()["workers"] == 0:
                    at["workers"] = time.monotonic() - began
                if time.monotonic() > began + 30:
                    raise Trouble(f"workers are left 30 s after a pause: {at}")
                time.sleep(0.002)
            took.append(at["workers"] * 1e3)
            calls.append(at["calls"] * 1e3)
            run.do("resume")
        run.do("terminate")
    figure("screen/pause/gone_ms/millrace", "ms", [round(t, 1) for t in took], "<= 300")
    tell("pause", pauses=len(took), workers=1000, latency_ms=200, gone_ms=median(took),
         gone_ms_worst=max(took), last_call_ms=median(calls), last_call_ms_worst=max(calls),
         answer_ms_worst=max(answers), runs=" ".join(f"{t:.0f}" for t in took))


WAITING_USERS, WAITING_EACH = 10, 100  # as many as a user may have waiting


def set_permission(server, people, permission):
    uids = ",".join(str(p.uid) for p in people)
    server.sql(f"UPDATE user_info SET permission = {permission}, version = version + 1"
               f" WHERE uid IN ({uids})")
    server.redis("DEL", *(f"user:{p.uid}:info" for p in people))


def fill_queue(server, people, each=WAITING_EACH):
    """Runs that wait for ever: their users have lost their permission. The first of each keeps the
    rest waiting until then."""
    set_permission(server, people, 1)
    first = [p.submit() for p in people]
    for run in first:
        wait_for(lambda run=run: run.show()["state"] == "RUNNING", 30, "a run starts")
    runs = [p.submit(JOURNAL_PAPERS) for p in people for _ in range(each)]
    set_permission(server, people, 0)
    for run in first:
        run.do("terminate")
    settle(server)
    return runs


def empty_queue(runs):
    for run in runs:
        if run.show()["state"] != "QUEUED":
            raise Trouble("a run that should have waited did not")
        run.do("terminate")


def idle_ms(server, seconds=3):
    """CPU time of node and Redis in a second while nothing runs."""
    before = cpu(server)
    time.sleep(seconds)
    after = cpu(server)
    return [(after[k] - before[k]) / seconds * 1e3 for k in ("node", "redis")]


def queued(world, options):
    alone, crowded, idle = [], [], []
    papers = min(options.papers, 150000)
    with world.run() as s:
        user = s.user("bench", 100)
        people = [s.user(f"waiting{i}", 1) for i in range(WAITING_USERS)]
        one_round(s, user, papers)
        for _ in range(options.rounds):
            alone.append(one_round(s, user, papers))
            before = idle_ms(s)
            runs = fill_queue(s, people)
            idle.append([x - y for x, y in zip(idle_ms(s), before)])
            crowded.append(one_round(s, user, papers))
            empty_queue(runs)
            settle(s)
    middle = lambda rounds, name: median(r[name] for r in rounds)
    keep("queued", [{"ratio": c["per_s"] / a["per_s"], "node_ms": i[0]}
                    for a, c, i in zip(alone, crowded, idle)], {"ratio": "", "node_ms": "ms"}, {})
    tell(
        "queued", waiting=WAITING_USERS * WAITING_EACH, per_s=middle(alone, "per_s"),
        per_s_queued=middle(crowded, "per_s"),
        ratio=middle(crowded, "per_s") / middle(alone, "per_s"), node_us=middle(alone, "node_us"),
        node_us_queued=middle(crowded, "node_us"), redis_us=middle(alone, "redis_us"),
        redis_us_queued=middle(crowded, "redis_us"), queue_node_ms_per_s=median(i[0] for i in idle),
        queue_redis_ms_per_s=median(i[1] for i in idle), runs=" / ".join(
            " ".join(f"{r['per_s']:.0f}" for r in rounds) for rounds in (alone, crowded)))


BENCHES = {"zero": zero, "latency": latency, "tls": tls, "brisk": brisk, "crowd": crowd,
           "many": many, "rate": rate_limit, "pause": pause, "queued": queued}


def main():
    p = argparse.ArgumentParser(prog="bench/screen", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("benches", nargs="*", metavar="NAME",
                   help="zero, latency, tls, brisk, crowd, many, rate, pause, queued; default: all")
    p.add_argument("--papers", type=int, default=300000, help="made up and loaded (default 300000)")
    p.add_argument("--rounds", type=int, default=3,
                   help="of zero, latency, tls, brisk, crowd, many and queued (default 3)")
    p.add_argument("--rate-minutes", type=float, default=3,
                   help="of rate, after the first one (default 3)")
    p.add_argument("--pauses", type=int, default=20, help="(default 20)")
    options = p.parse_args()
    unknown = [b for b in options.benches if b not in BENCHES]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.papers = max(1, options.papers // JOURNAL_PAPERS) * JOURNAL_PAPERS
    failed = 0
    say(f"making and loading {options.papers} papers")
    with World(options.papers) as world:
        for name in options.benches or BENCHES:
            say(name)
            try:
                BENCHES[name](world, options)
            except (Trouble, OSError, http.client.HTTPException) as e:
                failed = 1
                say(f"error: {name}: {e or type(e).__name__}")
    sys.exit(failed)


if __name__ == "__main__":
    try:
        main()
    except Trouble as e:
        say(f"error: {e}")
        sys.exit(1)
