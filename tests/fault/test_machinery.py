"""Can the fault suite see what it looks for? Its AOF cutter on a real Redis, its checks on stores
that are wrong: of runs, money, pools, queues and files. Of the other applications:
test_checks_apps.py."""
import copy
import os
import shutil
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "server"))
import aof
import checks
import files
import schedule
from checks import Answer, Job, Movement, Pool, Queue, Run
from harness import environment, equal, folder, ok, redis_link, run_tests, test, wait_for

# The same one, in Debian's redis-tools.
PROGRAM = shutil.which("redis-server") or shutil.which("redis-check-rdb")
PAIR = ("redis.call('INCR', 'a') redis.call('SET', 'at:' .. ARGV[1], '1')"
        " return redis.call('INCR', 'b')")


class Redis:
    """A server of its own, in the form that redis_link wants."""

    def __init__(self):
        self.data = folder()
        for name in ("run", "secret", "redis"):
            os.makedirs(f"{self.data}/{name}")
        with open(f"{self.data}/secret/redis", "w") as f:
            f.write("secret")
        with open(f"{self.data}/secret/redis.conf", "w") as f:
            f.write(f"port 0\nunixsocket {self.data}/run/redis.sock\nrequirepass secret\n"
                    f"dir {self.data}/redis\n"
                    # A write would wait for an fsync under way, and be lost by a kill.
                    "save \"\"\nappendonly yes\nappendfsync no\naof-timestamp-enabled yes\n")
        self.folder = f"{self.data}/redis/appendonlydir"

    def start(self):
        self.process = subprocess.Popen(["redis-server", f"{self.data}/secret/redis.conf"],
                                        executable=PROGRAM, env=environment(),
                                        stdout=subprocess.DEVNULL)
        return wait_for(self.link)

    def link(self):
        try:
            link = redis_link(self)
            link("PING")
            return link
        except (OSError, AssertionError):
            return None

    def kill(self):
        self.process.kill()
        self.process.wait()


def write_for(link, seconds):
    """Scripts, and single commands between them, until then; when each was written."""
    times, end = [], time.time() + seconds
    while time.time() < end:
        link("EVAL", PAIR, 0, len(times))
        link("INCR", "c")
        times.append(time.time())
        time.sleep(0.002)
    return times


def counters(link):
    return [int(n or 0) for n in link("MGET", "a", "b", "c")]


@test("an AOF is cut at the wanted second, between steps")
def _():
    r = Redis()
    times = write_for(r.start(), 3.5)
    r.kill()
    aof.cut(r.folder, time.time(), 0)
    link = r.start()
    equal(counters(link), [len(times)] * 3, "cut by nothing, nothing is lost")
    r.kill()
    lost_steps, lost_bytes = aof.cut(r.folder, times[-1], 1.5)
    link = r.start()
    a, b, c = counters(link)
    late = times[-1] - times[a - 1]
    ok(a == b and a - c in (0, 1), "scripts are there as a whole, and in order", a, b, c)
    ok(1.2 < late < 1.8 and lost_steps and lost_bytes, "1.5 seconds are gone", late, lost_steps,
       lost_bytes)
    more = write_for(link, 0.3)
    equal(counters(link)[0], a + len(more), "it goes on from there")
    r.kill()
    with open(aof.last_file(r.folder), "ab") as f:
        f.write(b"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n")
    aof.cut(r.folder, time.time(), 0)
    equal(counters(r.start())[0], a + len(more), "a step that is torn off goes as a whole")
    r.kill()
    aof.cut(r.folder, time.time(), 1000)
    equal(counters(r.start()), [0, 0, 0], "cut by more than there is, all is gone")
    r.kill()
    aof.lose(r.folder)
    equal(counters(r.start()), [0, 0, 0], "without a file it starts empty")
    r.kill()


# --- the checks: content with what is right, and each sees what it is for ---

def world():
    """One user, two runs: what a check is given if all is well."""
    papers = {"d1": 300, "d2": 300, "d3": 500}
    done = Run(
        1, "q1", "DONE", dict(papers), {"d1": True, "d2": None, "d3": False},
        {"state": "DONE", "papers": 3, "finished": 3, "relevant": 1, "failed": 1, "cost": "8.00"})
    cancelled = Run(1, "q2", "CANCELLED", dict(papers), {"d1": False}, {
        "state": "CANCELLED", "papers": 3, "finished": 1, "relevant": 0, "failed": 0,
        "cost": "3.00"})
    moves = [Movement(1, "opening", 1, 1000),
             Movement(1, "recharge", 2, 500),
             Movement(1, "charge", 1, 300, "q1", "d1", True),
             Movement(1, "reversal", 3, 300, "q1", "d1"),
             Movement(1, "charge", 2, 300, "q1", "d1"),
             Movement(1, "charge", 3, 500, "q1", "d3"),
             Movement(1, "charge", 4, 300, "q2", "d1")]
    return ([done, cancelled], moves + [Movement(1, "deduction", 5, 50)], {1: (350, 350)},
            {1: {"recharge": 500, "deduct": 50}})


def found(change=lambda runs, moves, balances, moved: None):
    """Names of the checks that have something to say after a change."""
    runs, moves, balances, moved = copy.deepcopy(world())
    change(runs, moves, balances, moved)
    said = {
        "ended": checks.ended(runs), "not_failed": checks.not_failed(runs),
        "complete": checks.complete(runs), "charged_once": checks.charged_once(runs, moves),
        "reversals": checks.reversals(moves), "balances": checks.balances(balances, moves, moved),
        "counts": checks.counts(runs)}
    return sorted(name for name, lines in said.items() if list(lines))


WRONG = [
    ("a result is missing", ["charged_once", "complete", "counts"],
     lambda r, m, b, c: r[0].results.pop("d1")),
    ("a failure is missing", ["complete", "counts"], lambda r, m, b, c: r[0].results.pop("d2")),
    ("a paper is charged twice", ["balances", "charged_once"],
     lambda r, m, b, c: m.append(Movement(1, "charge", 5, 300, "q1", "d1"))),
    ("a paper of a terminated run is charged twice", ["balances", "charged_once"],
     lambda r, m, b, c: m.append(Movement(1, "charge", 5, 300, "q2", "d1"))),
    ("a verdict is not charged", ["balances", "charged_once"], lambda r, m, b, c: m.pop(5)),
    ("a verdict is charged at another price", ["balances", "charged_once"],
     lambda r, m, b, c: m.__setitem__(5, Movement(1, "charge", 3, 400, "q1", "d3"))),
    ("a failure is charged", ["balances", "charged_once"],
     lambda r, m, b, c: m.append(Movement(1, "charge", 5, 300, "q1", "d2"))),
    ("a paper without a result is charged", ["balances", "charged_once"],
     lambda r, m, b, c: m.append(Movement(1, "charge", 5, 500, "q2", "d3"))),
    ("a run that does not exist is charged", ["balances", "charged_once"],
     lambda r, m, b, c: m.append(Movement(1, "charge", 5, 300, "q9", "d1"))),
    ("a charge is marked as reversed, and the money is not back", ["charged_once", "reversals"],
     lambda r, m, b, c: setattr(m[4], "reversed", True)),
    ("a charge is reversed twice", ["balances", "reversals"],
     lambda r, m, b, c: m.append(Movement(1, "reversal", 5, 300, "q1", "d1"))),
    ("the balance in Redis is another", ["balances"], lambda r, m, b, c: b.update({1: (350, 700)})),
    ("the balance in MySQL is another", ["balances"], lambda r, m, b, c: b.update({1: (700, 700)})),
    ("a recharge is lost", ["balances"], lambda r, m, b, c: c[1].update(recharge=1000)),
    ("a deduction was made twice", ["balances"],
     lambda r, m, b, c: m.append(Movement(1, "deduction", 6, 50))),
    ("a run has not ended", ["counts", "ended"],
     lambda r, m, b, c: setattr(r[0], "state", "RUNNING")),
    ("a run FAILED", ["counts", "not_failed"], lambda r, m, b, c: setattr(r[0], "state", "FAILED")),
    ("a result is of a paper that is not in the run", ["charged_once", "complete", "counts"],
     lambda r, m, b, c: r[0].results.update(d9=True)),
    ("a run counts wrong", ["counts"], lambda r, m, b, c: r[0].shown.update(finished=2)),
]


@test("the checks see what is wrong")
def _():
    equal(found(), [], "nothing is wrong")
    for name, want, change in WRONG:
        equal(found(change), want, name)
    runs = world()[0]
    fine = ({"1:q1": 0}, {}, {"1:q3"}, {"1:q3"})
    equal(list(checks.nothing_left(runs, *fine)), [], "nothing is left")
    for name, left in (("a unit in flight", ({"1:q3": 1}, {}, set(), set())),
                       ("a unit that waits", ({}, {"1:q1": 2}, set(), set())),
                       ("a run that has ended in sys:running", ({}, {}, {"1:q2"}, set())),
                       ("a run that has ended in sys:queue", ({}, {}, set(), {"1:q1"}))):
        equal(len(list(checks.nothing_left(runs, *left))), 1, name)
    equal(list(checks.never_negative({("Redis", 1): 0, ("MySQL", 1): 5})), [],
          "balances of zero are fine")
    equal(len(list(checks.never_negative({("Redis", 1): -1, ("MySQL", 1): 5}))), 1,
          "one below zero is not")
    charges = [Movement(1, "charge", i, 300, "q1", "d1") for i in range(10000)]
    equal(list(checks.calls_bounded(11000, charges, runs, ["node"])), [],
          "AI calls for each verdict, and some more")
    equal(len(list(checks.calls_bounded(20000, charges, runs, ["node"]))), 1,
          "but not two for each")
    equal(len(list(checks.retried(runs))), 1, "a paper that has failed")
    equal(list(checks.retried(runs[1:])), [], "or none")
    pages = {r.qid: list(r.results.items()) for r in runs}
    equal(list(checks.handed_out(runs, pages)), [], "results are handed out as they are")
    pages["q1"].append(pages["q1"][0])
    equal(len(list(checks.handed_out(runs, pages))), 1, "but none twice")
    equal(len(list(checks.handed_out(runs, {"q1": [], "q2": []}))), 2, "and none is left out")
    equal(list(checks.promises(runs, {"q1", "q2"}, {"q2"})), [], "promises are kept")
    equal(len(list(checks.promises(runs, {"q1", "q3"}, {"q1"}))), 2, "or not")


@test("distillations that have other papers than they should")
def _():
    done = Run(1, "q1", "DONE", {"d1": 300, "d2": 300, "d3": 500},
               {"d1": True, "d2": False, "d3": True})
    again = lambda **change: Run(
        **{"uid": 1, "qid": "q2", "state": "DONE", "papers": {"d1": 30, "d3": 50},
           "original": "q1", **change})
    frozen = lambda r, changed=(), original=done: len(
        list(checks.frozen([original, r], set(changed))))
    equal(frozen(again()), 0, "those that are relevant")
    equal(frozen(again(papers={"d1": 30})), 1, "one is missing")
    equal(frozen(again(papers={"d1": 30}), ["q1"]), 0, "which may have become relevant since")
    equal(frozen(again(papers={"d1": 30, "d2": 30, "d3": 50}), ["q1"]), 1,
          "one that is not relevant")
    equal(frozen(again(original="q9")), 1, "of a run that is not there")
    equal(frozen(again(uid=2)), 1, "of another user's")
    equal(frozen(again(), (), Run(1, "q1", "RUNNING", done.papers, done.results)), 1,
          "of one that has not ended")
    equal(len(
              list(checks.charged_once([again(results={"d1": True})],
                                       [Movement(1, "charge", 1, 300, "q2", "d1")]))), 1,
          "and cost too much")


# --- pools ---

def pool_world():
    """A group of nine: a Redis was lost with one item, MySQL handed out one itself, an answer was
    cut off, a request was repeated, two wait in the list."""
    items = {1: (0, 1, "a"), 2: (0, 2, "b"), 3: (0, 3, "c"), 4: (0, 4, "d"), 5: (0, 0, "e"),
             6: (0, 5, "f"), 7: (2, 6, "g"), 8: (2, 7, "h"), 9: (1, 0, "i")}
    answers = [Answer("titles/7", [1, 2], 1.0, 1.5, 2, "r", "p"),
               Answer("titles/7", [1, 2], 1.0, 3.0, 2, "r", "p"),
               Answer("titles/7", [5], 2.0, 4.5, 1, None, "q"),
               Answer("titles/7", [6], 4.0, 4.5, 1, None, "p")]
    return Pool("titles/7", items, [7, 8], 1), answers, {"titles/7": 1}, {"titles/7": ["a", "i"]}


def pool_found(change=lambda p, a, cut, texts: None):
    """Names of the checks that have something to say after a change."""
    p, a, cut, texts = copy.deepcopy(pool_world())
    change(p, a, cut, texts)
    said = {"handed_once": checks.handed_once(a),
            "repeats_alike": checks.repeats_alike(a, lambda begin, end: begin < 0),
            "items_accounted": checks.items_accounted([p], a), "in_order": checks.in_order([p], a),
            "unseen_bounded": checks.unseen_bounded([p], a, cut, 1),
            "imported": checks.imported([p], texts)}
    return sorted(name for name, lines in said.items() if list(lines))


def another(**change):
    return Answer(**{"group": "titles/7", "ids": [6], "sent": 5.0, "got": 6.0, "asked": 1,
                     "program": "p", **change})


WRONG_POOLS = [
    ("an item is given twice", ["handed_once"], lambda p, a, c, t: a.append(another(ids=[5]))),
    ("an item of a request is given without one", ["handed_once", "in_order"],
     lambda p, a, c, t: a.append(another(ids=[1, 2]))),
    ("another program's request of the same id is given the same", ["handed_once", "in_order"],
     lambda p, a, c, t: a.append(another(ids=[1, 2], request="r", program="q"))),
    ("an answer has an item twice", ["handed_once"],
     lambda p, a, c, t: setattr(a[2], "ids", [5, 5])),
    ("a repeat gets other items", ["repeats_alike"],
     lambda p, a, c, t: setattr(a[1], "ids", [3, 4])),
    ("an item that was given is usable", ["items_accounted"],
     lambda p, a, c, t: p.items.update({6: (1, 0, "f")})),
    ("an item that was given is in the list", ["items_accounted"],
     lambda p, a, c, t: (p.items.update({6: (2, 5, "f")}), p.listed.insert(0, 6))),
    ("an item that was given is gone", ["items_accounted"], lambda p, a, c, t: p.items.pop(6)),
    ("an item is numbered, and in no list", ["items_accounted"], lambda p, a, c, t: p.listed.pop()),
    ("an item is usable, and in a list", ["items_accounted"],
     lambda p, a, c, t: p.listed.append(9)),
    ("a used one is in a list", ["items_accounted"], lambda p, a, c, t: p.listed.insert(0, 4)),
    ("the list has another order", ["items_accounted"], lambda p, a, c, t: p.listed.reverse()),
    ("a status that is none", ["items_accounted"],
     lambda p, a, c, t: p.items.update({9: (3, 0, "i")})),
    ("items of an answer do not follow each other", ["in_order"],
     lambda p, a, c, t: [setattr(x, "ids", [2, 1]) for x in a[:2]]),
    ("a lower number after a higher one", ["in_order"],
     lambda p, a, c, t: a.append(another(ids=[3], sent=4.6))),
    ("more are lost than were cut off", ["unseen_bounded"],
     lambda p, a, c, t: c.update({p.name: 0})),
    ("an answer is forgotten", ["unseen_bounded"], lambda p, a, c, t: a.pop()),
    ("more are lost with Redis than may be", ["unseen_bounded"],
     lambda p, a, c, t: setattr(p, "unseen", 1001)),
    ("an item that was put in is not there", ["imported"],
     lambda p, a, c, t: t[p.name].append("z")),
    ("an item is there twice", ["imported"], lambda p, a, c, t: p.items.update({10: (1, 0, "a")})),
]


@test("pools that have handed out what they should not")
def _():
    equal(pool_found(), [], "nothing is wrong")
    for name, want, change in WRONG_POOLS:
        equal(pool_found(change), want, name)
    _, a, _, _ = pool_world()
    a[1].ids = [3, 4]
    equal(list(checks.repeats_alike(a, lambda begin, end: True)), [],
          "a repeat may get others when Redis was in trouble")
    p, a, _, _ = pool_world()
    a.append(another(ids=[3], sent=4.4))
    equal(list(checks.in_order([p], a)), [], "answers that overlap have any order")


# --- jobs ---

def queue(at=0.0):
    """Two wait, one is delayed, one in work, one held, one set aside."""
    job = lambda order, **more: Job(**{"version": 1, "tries": 0, "priority": 1, "order": order,
                                       "uid": 1, "since": 0, **more})
    jobs = {"a": job(1), "b": job(2), "c": job(3), "d": job(4, lease="x:1", tries=1),
            "e": job(5, uid=2), "f": job(6)}
    return Queue("plan", at, at + 0.1, "g", {"a": 2**45 + 1, "b": 2**45 + 2}, {"c"}, {"d"},
                 {"e": 2}, {2}, {"f"}, jobs, {1: 5, 2: 1}, {"run": "g"})


def take(q, i, lease="x:2"):
    """As a node does."""
    q.waiting.pop(i)
    q.leases.add(i)
    q.jobs[i].lease, q.jobs[i].tries = lease, q.jobs[i].tries + 1


WRONG_QUEUES = [
    ("a job is in no place", lambda q: q.waiting.pop("a")),
    ("a job is in two", lambda q: q.delays.add("a")),
    ("one that was set aside is lost", lambda q: q.aside.clear()),
    ("a job is unknown", lambda q: q.waiting.update({"z": 2**45 + 9})),
    ("a job without a holder is in work", lambda q: setattr(q.jobs["d"], "lease", "-")),
    ("a job that waits has a holder", lambda q: setattr(q.jobs["a"], "lease", "x:9")),
    ("a job has another place in the line", lambda q: q.waiting.update(a=2**45 + 7)),
    ("a user whose jobs are held is forgotten", lambda q: q.probes.clear()),
    ("a user's jobs are counted wrong", lambda q: q.users.update({1: 3})),
    ("a user without jobs is counted", lambda q: q.users.update({3: 1})),
]


@test("queues that are wrong")
def _():
    equal(list(checks.queue_sound(queue())), [], "one that is right")
    for name, change in WRONG_QUEUES:
        q = queue()
        change(q)
        ok(list(checks.queue_sound(q)), name)
    empty = lambda: Queue("plan", 0, 0, "g", {}, set(), set(), {}, set(), set(), {}, {},
                          {"run": "g"})
    equal(list(checks.queue_empty(empty())), [], "one that is empty")
    equal(len(list(checks.queue_empty(queue()))), 8, "or is not")
    for name, state in (("not filled", {"run": "f"}), ("paused", {"run": "g", "paused": "1"}),
                        ("a credit is left", {"run": "g", "c7": "1"})):
        q = empty()
        q.state = state
        equal(len(list(checks.queue_empty(q))), 1, name)


@test("jobs that are taken when they should not be")
def _():
    calm, wild = (lambda begin, end: False), (lambda begin, end: True)
    came = lambda ids, troubled=calm, **change: len(list(checks.first_come(
        [queue(), after(ids, **change)], troubled)))
    def after(ids, at=0.2, probes=(), **change):
        q = queue(at)
        for i in ids:
            take(q, i)
        q.probes.update(probes)
        for name, value in change.items():
            setattr(q, name, value)
        return q
    def overtake(priority, order):
        """One that was not there before is taken, or a later version of one that waited."""
        def taken(i):
            q = queue(0.2)
            q.jobs[i] = Job(2, 1, priority, order, 1, 0, "x:2")
            q.waiting.pop(i, None)
            q.leases.add(i)
            return len(list(checks.first_come([queue(), q], calm)))
        return taken("b"), taken("g")
    equal((came(""), came("a"), came("ab")), (0, 0, 0), "in their order")
    equal(came("b"), 1, "the second before the first")
    equal((came("b", wild), came("b", generation="h"), came("b", probes=[1])), (0, 0, 0),
          "which may be if the first was given back, Redis is another, or its user's are held")
    equal((came("b", given="7-1"), came("b", at=0.95)), (0, 0),
          "or if there was time to give it back")
    equal(overtake(1, 9), (1, 1), "or one that came later before the first")
    equal(overtake(0, 9), (0, 0), "which may be if it is more urgent")
    paused = lambda *spans, **change: len(list(checks.pauses_kept(
        [queue(), after("a", **change)], [["plan", *s] for s in spans])))
    equal(paused((-1, 5)), 1, "out of a queue that is paused")
    equal(paused((-1, None)), 1, "and still is")
    equal((paused((0.05, 5)), paused((-1, 0.25)), paused((-1, 5), generation="h"), paused()),
          (0, 0, 0, 0), "or may not have been")


# --- files, and when what happens ---

class Entries:
    """Of files.Corpus: three papers."""
    bib = {f"d{i}": b"@article{k%d,\n title = {T, %d}\n}" % (i, i) for i in (1, 2, 3)}
    by_key = {b"@article{k%d" % i: [f"d{i}"] for i in (1, 2, 3)}


RESULTS = [("d1", True), ("d2", False), ("d3", None)]
HEAD = b"\xef\xbb\xbfdoi,title,authors,journal,year,verdict,reason,abstract,simulated\r\n"
ROWS = [b"d1,T,A,J,2020,relevant,r,x,yes\r\n", b"d2,T,A,J,2020,not relevant,r,x,yes\r\n",
        b"d3,T,A,J,2020,failed,r,x,\r\n"]
RIS = b"TY  - JOUR\r\nDO  - d1\r\nER  - \r\n"
BIB = Entries.bib["d1"] + b"\n\n"


def wrong(body, kind="csv", scope="all", sure=True):
    return bool(files.wrong(files.File(1, "q1", kind, scope, sure, body=body), RESULTS, Entries))


@test("files that are wrong")
def _():
    whole = HEAD + b"".join(ROWS)
    equal((wrong(whole), wrong(HEAD + ROWS[0], scope="relevant"), wrong(
        RIS, "ris", "relevant"), wrong(BIB, "bib", "relevant")), (False,) * 4,
          "those that are right")
    for name, body in (("torn", whole[:-9]), ("short by a row", HEAD + ROWS[0] + ROWS[1]),
                       ("another order", HEAD + ROWS[1] + ROWS[0] + ROWS[2]),
                       ("a row twice", whole + ROWS[0]),
                       ("empty", b""), ("another verdict", whole.replace(b"not ", b""))):
        ok(wrong(body), f"CSV: {name}")
    for name, body in (("torn", BIB[:-5]), ("a byte", BIB.replace(b"T,", b"t,")),
                       ("another entry", BIB + Entries.bib["d2"]), ("empty", b"")):
        ok(wrong(body, "bib", "relevant"), f"BibTeX: {name}")
    for name, body in (("torn", RIS[:-7]), ("twice", RIS + RIS), ("without a beginning", RIS[6:]),
                       ("empty", b"")):
        ok(wrong(body, "ris", "relevant"), f"RIS: {name}")
    ok(not wrong(HEAD + ROWS[1], sure=False), "a run that goes on may lack rows")
    ok(wrong(HEAD + ROWS[1] + ROWS[1], sure=False) and
       wrong(HEAD + ROWS[1].replace(b"not ", b""), sure=False) and wrong(
           (HEAD + ROWS[1])[:-3], sure=False) and
       wrong(HEAD + ROWS[1], scope="relevant", sure=False), "but not be wrong")
    waits = files.File(1, "q1", "csv", "all", True, task="t", state="PROCESSING")
    equal(len(list(files.problems([waits], {"q1": RESULTS}, Entries))), 1, "or wait for ever")
    equal(len(list(files.differing([files.File(1, "q1", "csv", "all", True, body=whole)], {}))), 1,
          "or be had only once")


@test("a schedule comes from its seed")
def _():
    equal(schedule.make(7, 60), schedule.make(7, 60), "the same seed, the same faults")
    ok(schedule.make(7, 60) != schedule.make(8, 60), "another seed, others")
    kinds = [f.kind for f in schedule.make(7, 60)]
    ok(set(kinds) == {*schedule.FAULTS, *schedule.ONCE} and kinds.count("empty") == 1,
       "every kind of them", kinds)
    equal({f.kind for f in schedule.make(7, 60, ["node"])}, {"node"}, "or one only")


if __name__ == "__main__":
    run_tests()
