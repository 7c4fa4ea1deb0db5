"""Everything dies, again and again, while runs go on; then every paper has its result, and every
cent its place.

    fault.py [--seconds N] [--seed N] [--kinds node,redis,...] [--pace X] [--keep FOLDER] [--logs]

The same seed gives the same faults at the same times and the same wishes of the same people; what
the machine makes of it differs a little. On a failure logs and events are kept, and it is said
where."""
import argparse
import contextlib
import json
import os
import random
import shutil
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import checks
import disk
import files
import harness
import schedule
import snapshot
from harness import equal, note, ok, redis_link, run, run_tests, sql, test, wait_for
from people import Person, Plan, Reply
from stores import Server, Sim, Stores, World
from watcher import Permits, Watcher

SAMPLE = 30000
PAPERS_MINUTE = 20000  # submitted in a minute of faults, at least
PEOPLE = {"ada": ("20000.00", 40), "ben": ("3000.00", 30), "cai": ("8000.00", 30),
          "dora": ("5000.00", 30), "eva": ("12000.00", 20)}
AI_MS, AI_FAIL = 50, 0.05
FIRST_S = 120  # until everybody has runs that are archived, before anything dies
SETTLE_S = 120  # until all runs have ended, once nothing dies any more
QUIET_S = 20  # until all money is in MySQL after that
ARCHIVE_S = 45  # until all runs are: whoever held the lock may be dead


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument(
        "--seed", type=int, default=int(
            os.environ.get("MILLRACE_FAULT_SEED") or random.SystemRandom().randrange(10**6)))
    p.add_argument(
        "--kinds",
        help="only these faults, by commas: " + ", ".join([*schedule.FAULTS, *schedule.ONCE]))
    p.add_argument("--pace", type=float, default=1, help="so many times as often")
    p.add_argument("--papers", type=int, help="to submit at least")
    p.add_argument("--keep", default="build-test/fault", help="folder for the logs of a failed run")
    p.add_argument("--logs", action="store_true", help="keep them also if all is well")
    return p.parse_args()


def none(problems, name, most=20):
    found = list(problems)
    more = [f"... and {len(found) - most} more"] if len(found) > most else []
    return ok(not found, name, *found[:most], *more)


def settle(people, events):
    """Nothing dies any more; from here on there are only users, who want their runs to end."""
    events("test", "the faults are over")
    began = time.monotonic()
    for p in people:
        p.move("recharge", 100000)
    while not all([p.settle()
                   for p in people]) and time.monotonic() - began < SETTLE_S * harness.SCALE:
        time.sleep(0.5)  # people look again
    note(f"runs have ended {time.monotonic() - began:.1f} s after the last fault")


def quiet(stores):
    """Whatever Redis has of money is in MySQL, and of runs that have ended, too."""
    began = time.monotonic()
    waiting = lambda: [uid for (uid,) in sql(stores, "SELECT uid FROM user_info")
                       if redis_link(stores)("LLEN", f"billing_queue:{uid}")]
    outbox = lambda: sql(stores, "SELECT uid FROM ledger_outbox")
    wait_for(lambda: not waiting() and not outbox(), QUIET_S)
    none([f"user {uid} has records that wait" for uid in waiting()] +
         [f"the outbox has {row}" for row in outbox()], "all money is in MySQL")
    note(f"money is in MySQL after {time.monotonic() - began:.1f} s")
    waits = lambda: sql(stores, "SELECT query_id, status FROM query_log WHERE archived = 0")
    wait_for(lambda: not waits(), ARCHIVE_S)
    note(f"runs are archived after {time.monotonic() - began:.1f} s")
    none([f"run {qid}, {state}, is not archived" for qid, state in waits()],
         "all runs are archived")


def check_stores(world, corpus, people, watcher):
    stores, by_uid = world.stores, {p.uid: p for p in people}

    def show(uid, qid):
        r = by_uid[uid].ask("GET", f"/api/queries/{qid}")
        return r.body if r else {}
    runs, moves = snapshot.runs(stores, corpus, show), snapshot.movements(stores)
    none(checks.ended(runs), "every run has ended")
    none(checks.not_failed(runs), "no run FAILED")
    none(checks.complete(runs), "every paper of a run that is DONE has one result or one failure")
    none(checks.frozen(runs,
                       set().union(*(p.changed for p in people))),
         "distillations have the papers that were relevant")
    none(checks.retried(runs), "papers that failed were judged when they were tried again")
    none(checks.charged_once(runs, moves), "every verdict was paid for once, and nothing else was")
    none(checks.reversals(moves), "every reversal gives back one charge")
    none(checks.balances(snapshot.balances(stores), moves, {p.uid: p.moved for p in people}),
         "balances are what was moved")
    none(checks.never_negative(watcher.lowest), "no balance was ever below zero")
    none(checks.counts(runs), "runs say of themselves what is there")
    pages = {r.qid: by_uid[r.uid].results(r.qid) for r in runs}
    none(checks.handed_out(runs, pages), "users get the results that are there")
    check_files(people, pages, files.Corpus(stores))
    none(
        checks.promises(runs,
                        set().union(*(p.accepted for p in people)),
                        set().union(*(p.terminated for p in people))), "what users were told is so")
    none(checks.nothing_left(runs, *snapshot.units(stores)),
         "no unit, and no run that has ended, is left behind")
    return runs, moves


def ask_again(people):
    """The same files, now that nothing goes wrong any more: {(qid, kind, scope): bytes}."""
    again, asked = {}, set()
    for p in people:
        mine = [f for f in p.downloads.files if f.sure and f.body is not None]
        for f in mine:
            if (key := (f.qid, f.kind, f.scope)) in asked:
                continue
            asked.add(key)
            if later := p.downloads.ask(*key, sure=True):
                wait_for(lambda: p.downloads.look(later) or later.ended, 20)
                again[key] = later.body
    return again


def check_files(people, pages, corpus):
    during = [f for p in people for f in p.downloads.files]
    again = ask_again(people)
    every = [f for p in people for f in p.downloads.files]
    none(files.problems(every, pages, corpus),
         "files that were asked for have an end, and are right")
    none(files.differing(during, again),
         "files of archived runs are the same, byte for byte, later on")
    states = {s: sum(f.state == s for f in during) for s in sorted({f.state for f in during})}
    note(f"{len(during)} files {states}, {sum(f.sure for f in during)} of archived runs, "
         f"{sum(f.task is None for f in during)} at once; "
         f"{sum(len(f.body or b'') for f in during)} bytes")


def audit(stores):
    done = run("audit", "--json", env=stores.settings(), timeout=60)
    drift = None
    with contextlib.suppress(ValueError):
        drift = json.loads(done.stdout)["drift_cents"]
    ok(done.returncode == 0 and drift == 0, "millrace audit finds nothing", done.returncode,
       done.stdout[:3000], done.stderr)


def tell(world, runs, moves, people, watcher, chaos):
    kinds = [f.kind for f in chaos.schedule]
    states = {s: sum(r.state == s for r in runs) for s in sorted({r.state for r in runs})}
    papers, judged = sum(len(r.papers) for r in runs), sum(len(r.results) for r in runs)
    failed = sum(v is None for r in runs for v in r.results.values())
    calls = world.sim.calls + world.sim.stats()["requests"]
    none(checks.calls_bounded(calls - world.sim.wasted, moves, runs, kinds),
         "papers that have a result are not judged again")
    note(f"{len(runs)} runs {states} of {papers} papers; {judged} judged, {failed} of them failed")
    by_qid = {r.qid: r for r in runs}
    distilled = [r for r in runs if r.original]
    note(f"{len(distilled)} of them distillations, "
         f"{sum(by_qid[r.original].original is not None for r in distilled)} of those of "
         f"distillations; {sum(len(r.papers) for r in distilled)} papers")
    note(f"{calls} AI calls, {calls / max(1, judged):.2f} for each paper that was judged")
    note("faults: " + ", ".join(f"{k} {kinds.count(k)}" for k in sorted(set(kinds))))
    note(f"{sum(m.kind == 'charge' for m in moves)} charges, "
         f"{sum(m.kind == 'reversal' for m in moves)} reversals; "
         f"balances were looked at {watcher.looks}")
    for (what, answer), count in sorted(
            sum((p.told for p in people), start=type(people[0].told)()).items()):
        note(f"  {what}: {answer}: {count}")


def keep_logs(opts, world, events):
    where = os.path.join(os.path.abspath(opts.keep), str(opts.seed))
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, "events"), "w") as f:
        f.write("\n".join(events.lines) + "\n")
    for i, server in enumerate(world.servers):
        shutil.copy(os.path.join(server.cwd, "err"),
                    os.path.join(where, f"server-{i}-{server.port}.log"))
    for name in ("redis", "mariadb"):
        shutil.copy(f"{world.stores.data}/log/{name}.log", where)
    note(f"logs and events: {where}")


def chaos_and_people(opts, world, corpus, events):
    kinds = opts.kinds.split(",") if opts.kinds else [*schedule.FAULTS, *schedule.ONCE]
    if not world.stores.disks:
        kinds = [k for k in kinds if k not in schedule.DISK]
        note(f"no disk can be mounted here: without {', '.join(schedule.DISK)}")
    papers = opts.papers or int(PAPERS_MINUTE * opts.seconds / 60)
    plan = Plan(corpus, papers, opts.seconds, len(PEOPLE), pause_s=0.4)
    people = [Person(name, plan, world, opts.seed, events) for name in PEOPLE]
    began = time.monotonic()
    for p in people:
        p.log_in()
    while not all([p.prepare() for p in people]):
        assert time.monotonic() - began < FIRST_S * harness.SCALE, "the first runs are not archived"
        time.sleep(0.5)  # people look again
    note(f"everybody has runs that are archived after {time.monotonic() - began:.1f} s")
    watcher = Watcher(world.stores, [p.uid for p in people])
    chaos = schedule.Chaos(world, schedule.make(opts.seed, opts.seconds, kinds, opts.pace), events)
    permits = Permits(world.stores)
    redis_link(world.stores)("CONFIG", "SET", "aof-timestamp-enabled", "yes")
    for thread in (watcher, permits, chaos, *people):
        thread.start()
    time.sleep(opts.seconds)
    chaos.finish()
    for p in people:
        p.stopped.set()
        p.join()
    wait_for(permits.look, 10)
    permits.stopped.set()
    permits.join()
    return people, watcher, chaos


def suite(opts):
    events = schedule.Events()
    with contextlib.ExitStack() as stack:
        stores = stack.enter_context(Stores(SAMPLE, PEOPLE, small_disks=disk.separate()))
        sim = stack.enter_context(Sim(opts.seed, AI_MS, AI_FAIL))
        servers = [stack.enter_context(Server(stores, sim)) for _ in range(2)]
        world = World(stores, servers, sim)
        try:
            ready = wait_for(lambda: all(s.ready() for s in servers), 60)
            assert ready, "the servers are not ready"
            corpus = snapshot.corpus(stores)
            people, watcher, chaos = chaos_and_people(opts, world, corpus, events)
            none(chaos.problems, "all faults could be made")
            settle(people, events)
            quiet(stores)
            watcher.stopped.set()
            watcher.join()
            runs, moves = check_stores(world, corpus, people, watcher)
            audit(stores)
            none([line for p in people for line in p.problems],
                 "users were answered as they may be")
            tell(world, runs, moves, people, watcher, chaos)
        finally:
            if opts.logs or harness._failed or sys.exc_info()[0]:
                keep_logs(opts, world, events)


def main():
    opts = options()
    sys.argv[1:] = []
    note(f"seed {opts.seed}, {opts.seconds:.0f} s: "
         f"./test fault {opts.seconds:.0f} --seed {opts.seed}")
    test("faults")(lambda: suite(opts))
    run_tests()


if __name__ == "__main__":
    main()
