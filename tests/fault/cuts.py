"""Under load Redis dies, and comes back without its last seconds, or empty (BIL-4, BIL-7).

    cuts.py [--cuts N] [--empty N] [--longest SECONDS] [--seed N]

Nothing that MySQL has is asked about again, and nothing of it is reversed: asked again is at most
what was in flight or not synced when Redis died. Both are counted by the AI itself and by MySQL.
Each loss has a run of its own, so that all calls of the run but one per paper are repeated ones."""
import argparse
import contextlib
import math
import os
import random
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "server")]

from client import Api
from harness import equal, note, ok, redis_link, run, run_tests, sql, test, wait_for
from schedule import Fault
from screening import QUESTION, reaches, view
from stores import Server, Sim, Stores, World

WORKERS, AI_MS = 100, 50
FASTEST = WORKERS * 1000 // AI_MS  # papers/s
MARGIN_S = 1.5  # of work before the first second that is lost


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--cuts", type=int, default=int(os.environ.get("MILLRACE_CUTS", "2")))
    p.add_argument("--empty", type=int, default=int(os.environ.get("MILLRACE_EMPTY", "1")))
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    p.add_argument("--longest", type=float,
                   default=float(os.environ.get("MILLRACE_CUT_LONGEST", "1")), help="cut, s")
    opts = p.parse_args()
    sys.argv[1:] = []
    return opts


def plan(opts):
    """Seconds to lose, 0.2 and up, in any order; None: all."""
    rng = random.Random(opts.seed)
    steps = max(1, opts.cuts - 1)
    losses = [opts.longest * math.exp(math.log(0.2 / opts.longest) * i / steps)
              for i in range(opts.cuts)]
    losses += [None] * opts.empty
    rng.shuffle(losses)
    return losses


class Scene:
    """One user's runs over the whole corpus, one after the other."""

    def __init__(self, world):
        self.world, self.stores, self.sim = world, world.stores, world.sim
        self.api = Api(world.servers[0])
        assert self.api.login("ada").status == 200
        self.journals = [j["name"] for j in self.api("GET", "/api/journals").body["journals"]]
        self.qid, self.calls_before = None, 0

    def work(self, seconds):
        """A run begins, and works for so long."""
        self.calls_before = self.sim.stats()["requests"]
        r = self.api("POST", "/api/queries", {**QUESTION, "journals": self.journals})
        assert r.status == 202, r
        self.qid = r.body["query_id"]
        assert wait_for(lambda: view(self.api, self.qid)["finished"] > WORKERS, 60)
        time.sleep(seconds)

    def asked(self):
        return self.sim.stats()["requests"] - self.calls_before

    def synced(self):
        """Papers of the run whose charges MySQL has."""
        return int(sql(
            self.stores, "SELECT judged_papers FROM query_log"
            f" WHERE query_id = '{self.qid}'")[0][0])

    def reversals(self):
        return int(sql(self.stores,
                       "SELECT COUNT(*) FROM billing_log WHERE kind = 'reversal'")[0][0])

    def lose(self, seconds):
        """Redis dies. Returns what was in flight then, and what MySQL did not have of the rest."""
        seen = {}

        def change(kind):
            seen["flight"] = self.sim.stats()["in_flight"]
            time.sleep(0.3)  # a transaction under way ends, and workers that are one paper ahead
            seen["unsynced"] = self.asked() - seen["flight"] - self.synced()
        fault = Fault(0, "older" if seconds else "empty", 0.2, (seconds or 0) / 3)
        kill = self.stores.kill
        self.stores.kill = lambda name: (kill(name), change(name))
        said = []
        self.world.do(fault, said.append)
        self.stores.kill = kill
        return seen["flight"], seen["unsynced"], said[0]

    def finish(self):
        """The run ends with every paper. Returns how many of them were asked about again."""
        ok(reaches(self.api, self.qid, "DONE", 300), "the run ends", view(self.api, self.qid))
        v = view(self.api, self.qid)
        equal((v["finished"], v["failed"]), (v["papers"], 0), "with every paper")
        return self.asked() - v["papers"]


def one(scene, number, seconds, totals):
    scene.work((seconds or 2) + MARGIN_S)
    flight, unsynced, said = scene.lose(seconds)
    if seconds is None:  # after that all keys rest for a minute, which is not looked at here
        assert wait_for(lambda: all(s.ready() for s in scene.world.servers), 30)
        scene.stores.new_keys(f"sk-{number}", 8)
    again = scene.finish()
    name = f"loss {number}, {'all' if seconds is None else f'{seconds:.1f} s'}"
    counted = f"{again} asked again, {flight} in flight, {unsynced} not synced"
    ok(again <= flight + unsynced, f"{name}: asked again is what was in flight or not synced",
       counted)
    note(f"{name}: {counted}; {said}")
    for key, value in (("again", again), ("flight", flight), ("unsynced", unsynced)):
        totals[key] = totals.get(key, 0) + value


def rewrite(stores):
    """The file that is cut has this run alone. With all runs it would take ever longer to cut, and
    to load."""
    ask = redis_link(stores)
    ask("BGREWRITEAOF")
    busy = (b"aof_rewrite_in_progress:1", b"aof_rewrite_scheduled:1")
    assert wait_for(lambda: not any(x in ask("INFO", "persistence") for x in busy), 120)


def suite(opts):
    papers = int(FASTEST * (max(opts.longest, 2) + MARGIN_S + 1))
    note(f"seed {opts.seed}, {papers} papers")
    with contextlib.ExitStack() as stack:
        stores = stack.enter_context(Stores(papers, {"ada": ("9000000.00", WORKERS)}))
        sim = stack.enter_context(Sim(opts.seed, AI_MS, 0))
        servers = [stack.enter_context(Server(stores, sim)) for _ in range(2)]
        assert wait_for(lambda: all(s.ready() for s in servers), 60), "the servers are not ready"
        scene, totals = Scene(World(stores, servers, sim)), {}
        for i, seconds in enumerate(plan(opts)):
            for name, value in (("aof-timestamp-enabled", "yes"),
                                ("auto-aof-rewrite-percentage", "0")):
                redis_link(stores)("CONFIG", "SET", name, value)
            rewrite(stores)
            one(scene, i + 1, seconds, totals)
        equal(scene.reversals(), 0, "no charge was reversed: MySQL had every verdict")
        note(f"all: {totals}")
        done = run("audit", env=stores.settings(), timeout=120)
        ok(done.returncode == 0, "millrace audit finds nothing", done.stdout, done.stderr)


OPTIONS = options()


@test("Redis comes back older, or empty, again and again")
def _():
    suite(OPTIONS)


run_tests()
