"""MySQL away while runs are under way (BIL-8): stopped, killed, and a node killed meanwhile.

MILLRACE_AWAY_SECONDS: how long it is stopped, 8 if not said."""
import contextlib
import json
import os
import signal
import threading
import time

from admins import admin
from client import PASSWORD
from harness import (SCALE, Client, crowd, equal, freeze, note, ok, redis_link, run_tests, sql,
                     wait_for)
from screening import (
    QUESTION, act, audited, journals, person, reaches, submit, view, with_screening)

AWAY_S = float(os.environ.get("MILLRACE_AWAY_SECONDS", "8"))
LATENCY_S = 0.3
WORKERS = 6
READ_S, HALT_S = 2 * SCALE, 1 * SCALE
SENTENCE = "the database does not answer at the moment"
ADMINS = "what admins do must be in its audit log, so nothing was changed"


# --- MySQL goes and comes back ---

@contextlib.contextmanager
def stopped(m, *others):
    pids = [*others, m.pid_of("mariadb")]
    for pid in pids:
        freeze(pid)
    try:
        yield
    finally:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def down(m):
    """Killed, again and again."""
    over = threading.Event()

    def kill():
        while not over.wait(0.05):
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(m.pid_of("mariadb"), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


# --- what is asked meanwhile ---

def timed(api, method, path, body=None):
    """(seconds, status, body) of one request, on a connection of its own."""
    data = json.dumps(body).encode() if body is not None else b""
    headers = [f"Authorization: Bearer {api.token}"]
    if data:
        headers.append("Content-Type: application/json")
    began = time.monotonic()
    c = Client(api.server.port)
    try:
        r = c.request(path, method=method, body=data, headers=headers)
    finally:
        c.close()
    return time.monotonic() - began, r.status, json.loads(r.body)


class Readers:
    """Threads that ask for the same things again and again, as pages do."""

    def __init__(self, asked):
        self.over = threading.Event()
        self.away = threading.Event()  # from now on MySQL surely does not answer
        self.worst, self.count, self.marked, self.wrong = (0, ""), 0, 0, []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.read, args=a) for a in asked]

    def read(self, api, path):
        while not self.over.is_set():
            away = self.away.is_set()
            seconds, status, body = timed(api, "GET", path)
            with self.lock:
                self.count += 1
                self.worst = max(self.worst, (seconds, path))
                self.marked += body.get("degraded") is True
                if status != 200 or (away and body.get("degraded") is not True
                                     and self.away.is_set()):
                    self.wrong.append((path, status, str(body)[:200]))
            time.sleep(0.1)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        for t in self.threads:
            t.join()


class Papers:
    """When each paper of a run was charged, by what Redis says every few milliseconds."""

    def __init__(self, m, api, qid):
        self.link, self.key = redis_link(m), f"query:{api.uid}:{qid}:status"
        self.over, self.seen = threading.Event(), [(time.monotonic(), self.now())]
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def now(self):
        return int(self.link("HGET", self.key, "finished") or 0)

    def look(self):
        while not self.over.wait(0.005):
            n = self.now()
            if n != self.seen[-1][1]:
                self.seen.append((time.monotonic(), n))

    def since(self, moment):
        """How many papers came after it, and how long after it the last one."""
        self.over.set()
        self.thread.join()
        before = max(n for at, n in self.seen if at <= moment)
        later = [(at, n) for at, n in self.seen if at > moment]
        return (later[-1][1] - before, later[-1][0] - moment) if later else (0, 0.0)


def halt(api, qid, what, state):
    seconds, status, body = timed(api, "POST", f"/api/queries/{qid}/{what}", {})
    ok(status == 200 and body["state"] == state and body.get("degraded") is True,
       f"{what} takes effect, and says that it is degraded", status, body)
    ok(seconds < HALT_S, f"{what} is answered in {seconds:.2f} s")
    return time.monotonic()


# --- what must hold when it is back ---

def row(m, qid):
    return sql(m, f"SELECT status FROM query_log WHERE query_id = '{qid}'")[0][0]


def answers(m):
    try:
        return sql(m, "SELECT 1")
    except AssertionError:
        return False


def row_follows(m, api, qid, state):
    assert wait_for(lambda: answers(m), 30)
    ok(wait_for(lambda: row(m, qid) == state, 15), f"its row becomes {state} by itself",
       row(m, qid))
    link = redis_link(m)
    # A keeper that was killed before it dropped the note keeps its lock for ten seconds.
    ok(wait_for(lambda: link("HGET", f"query:{api.uid}:{qid}:status", "owed") is None, 15),
       "and is owed nothing any more")


def ends_whole(m, api, qid, papers):
    ok(reaches(api, qid, "DONE", 60), "the paused run is resumed, and done")
    v = view(api, qid)
    equal((v["finished"], v["failed"]), (papers, 0), "with all its papers")
    wait_for(lambda: redis_link(m)("LLEN", f"billing_queue:{api.uid}") == 0, 10)
    charges, papers_charged = sql(
        m, "SELECT COUNT(*), COUNT(DISTINCT doi) FROM billing_log WHERE kind = 'charge'"
        f" AND qid = '{qid}'")[0]
    equal((int(charges), int(papers_charged)), (papers, papers), "each of them charged once")


def resumed(api, qid):
    r = wait_for(lambda: (lambda r: r if r.status == 200 else None)(act(api, qid, "resume")), 15)
    return ok(r and r.body["state"] in ("RUNNING", "QUEUED"), "it can be resumed", r)


# --- the tests ---

def refusals(api, other, root, qid, old, chosen):
    """Everything that would change something, and cannot."""
    return [
        (api, "POST", f"/api/queries/{qid}/resume", {}),
        (other, "POST", f"/api/queries/{old}/retry_failed", {}),
        (api, "POST", "/api/queries", {**QUESTION, "journals": chosen}),
        (other, "POST", "/api/distill", {"original_query_id": old, "question": "Is it wet?"}),
        (other, "POST", "/api/download/create", {"query_id": old, "type": "csv"}),
        (api, "POST", "/api/login", {"username": "anna", "password": PASSWORD}),
        (api, "POST", "/api/register", {"username": "newcomer", "password": PASSWORD}),
        (api, "DELETE", "/api/sessions", None),
        (api, "GET", "/api/sessions", None),
        (api, "GET", "/api/ledger", None),
        (root, "POST", f"/api/admin/runs/{qid}/terminate", {"reason": "too dear"}),
        (root, "POST", f"/api/admin/users/{api.uid}/recharge",
         {"amount": "5.00", "request_id": "away-1"}),
        (root, "POST", f"/api/admin/users/{api.uid}/deduct",
         {"amount": "5.00", "request_id": "away-2"}),
    ]


@with_screening("MySQL stopped during runs", "--latency-ms", str(int(LATENCY_S * 1000)),
                papers=700)
def _(m, sim):
    root = admin(m, "root", "super")
    anna, bert, carl = (person(m, name, permission=WORKERS) for name in ("anna", "bert", "carl"))
    old, _ = submit(carl, 40)
    assert reaches(carl, old, "DONE", 30)
    (paused, papers), (ended, _), (going, _) = (submit(p, 160) for p in (anna, bert, carl))
    waiting, _ = submit(anna, 40)
    chosen, _ = journals(anna, 40)
    for api, qid in ((anna, paused), (bert, ended), (carl, going)):
        assert wait_for(lambda: view(api, qid)["finished"] >= 2 * WORKERS, 30)
        assert api("GET", "/api/queries").status == 200
    assert wait_for(lambda: row(m, old) == "DONE" and sql(
        m, f"SELECT archived FROM query_log WHERE query_id = '{old}'") == [["1"]], 30)
    doi = carl("GET", f"/api/queries/{going}/results").body["results"][0]["doi"]
    before = sql(m, "SELECT COUNT(*) FROM billing_log WHERE kind IN ('recharge', 'deduction')")

    asked = [(carl, "/api/queries"), (carl, f"/api/queries/{going}"),
             (carl, f"/api/queries/{going}/results"), (carl, f"/api/queries/{old}"),
             (carl, f"/api/queries/{old}/results"), (carl, f"/api/queries/{going}/paper?doi={doi}"),
             (anna, f"/api/queries/{paused}"), (anna, f"/api/queries/{paused}/results"),
             (bert, "/api/queries"), (bert, f"/api/queries/{ended}/results")]
    of_paused, of_ended = Papers(m, anna, paused), Papers(m, bert, ended)
    with Readers(asked) as readers:
        with stopped(m, m.process.pid):  # the supervisor would kill a MariaDB that hangs for 20 s
            began = time.monotonic()
            paused_at = halt(anna, paused, "pause", "PAUSED")
            ended_at = halt(bert, ended, "terminate", "CANCELLED")
            time.sleep(2)
            readers.away.set()
            halt(anna, waiting, "pause", "PAUSED")
            halt(anna, waiting, "pause", "PAUSED")
            slowest = (0, "")
            for who, method, path, body in refusals(anna, carl, root, paused, old, chosen):
                seconds, status, reply = timed(who, method, path, body)
                slowest = max(slowest, (seconds, path))
                said = reply.get("error", {}).get("message", "")
                ok(status == 503 and SENTENCE in said and (ADMINS in said) == (who is root),
                   f"{method} {path.replace(paused, '…').replace(old, '…')} is refused, and why",
                   status, reply)
            ok(slowest[0] < READ_S, f"the slowest refusal took {slowest[0]:.2f} s", slowest)
            equal(timed(bert, "POST", f"/api/queries/{ended}/pause", {})[1], 409,
                  "a terminated run stays so")
            equal(timed(carl, "GET", f"/api/queries/{paused}")[1], 404, "other users see no runs")
            seconds, status, health = timed(carl, "GET", "/readyz")
            ok(status == 503 and "MySQL" in health["error"]["message"], "/readyz says so", health)
            equal(m.get("/healthz").status, 200, "/healthz")
            ok(b'millrace_sql_up{node="0"} 0' in m.get("/metrics").body, "/metrics says so")
            time.sleep(max(0, AWAY_S - (time.monotonic() - began)))
            equal(view(anna, paused)["state"], "PAUSED", "still paused")
            equal(view(bert, ended)["state"], "CANCELLED", "still terminated")
            readers.away.clear()
        back = time.monotonic()
        row_follows(m, anna, paused, "PAUSED")
        row_follows(m, bert, ended, "CANCELLED")
        row_follows(m, anna, waiting, "PAUSED")
        note(f"the rows have followed after {time.monotonic() - back:.1f} s")

    count, seconds = of_paused.since(paused_at)
    ok(count <= WORKERS and seconds <= (LATENCY_S + 0.5) * crowd(),
       f"after the pause was answered {count} papers in hand were charged, the last"
       f" {seconds:.2f} s later", of_paused.seen[-20:])
    count, seconds = of_ended.since(ended_at)
    ok(count == 0, f"after the end was answered {count} papers were charged", of_ended.seen[-20:])
    ok(not readers.wrong, f"{readers.count} reads were answered, {readers.marked} of them degraded",
       *readers.wrong[:5])
    ok(readers.worst[0] < READ_S, f"the slowest read took {readers.worst[0]:.2f} s", readers.worst)
    equal(sql(m, "SELECT COUNT(*) FROM billing_log WHERE kind IN ('recharge', 'deduction')"),
          before, "no refused change was made")

    resumed(anna, paused)
    resumed(anna, waiting)
    ends_whole(m, anna, paused, papers)
    ok(reaches(carl, going, "DONE", 60), "the run that nobody touched is done, too")
    equal((row(m, ended), view(bert, ended)["state"]), ("CANCELLED", "CANCELLED"), "the end holds")
    audited(m)


@with_screening("MySQL stopped before the first verdict", "--latency-ms", "2200", papers=100)
def _(m, sim):
    anna = person(m, "anna", permission=WORKERS)
    qid, papers = submit(anna, 60)
    assert wait_for(lambda: sim.stats()["requests"] >= WORKERS, 20)
    with stopped(m, m.process.pid):
        time.sleep(2.7 * SCALE)  # by then all are answered, and wait to be written down
        halt(anna, qid, "pause", "PAUSED")
        ok(wait_for(lambda: view(anna, qid)["workers"] == 0, 4), "its workers leave")
    row_follows(m, anna, qid, "PAUSED")
    time.sleep(1)
    v = view(anna, qid)
    equal((v["finished"], v["cost"]), (0, "0.00"), "nothing is charged when MySQL is back")
    resumed(anna, qid)
    ends_whole(m, anna, qid, papers)
    calls = sim.stats()["requests"]
    ok(calls <= papers + WORKERS, "only the papers in hand are asked about again", calls, papers)
    audited(m)


@with_screening("MySQL killed, and a node with it", "--latency-ms", "200", papers=500)
def _(m, sim):
    anna = person(m, "anna", permission=WORKERS)
    qid, papers = submit(anna, 200)
    other, _ = submit(anna, 100)
    assert wait_for(lambda: view(anna, qid)["finished"] >= 2 * WORKERS, 30)
    assert anna("GET", "/api/queries").status == 200
    with down(m):
        time.sleep(0.5)
        halt(anna, qid, "pause", "PAUSED")
        halt(anna, other, "terminate", "CANCELLED")
        equal(view(anna, qid)["state"], "PAUSED", "a run can be seen")
        equal(act(anna, qid, "resume").status, 503, "and is not resumed")
    row_follows(m, anna, qid, "PAUSED")
    row_follows(m, anna, other, "CANCELLED")
    resumed(anna, qid)
    assert wait_for(lambda: view(anna, qid)["workers"] > 0, 20), view(anna, qid)

    # Both nodes die after the pause was answered; others take their places.
    with stopped(m):
        halt(anna, qid, "pause", "PAUSED")
        nodes = m.nodes()
        for pid in nodes:
            os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: len(set(m.nodes()) - set(nodes)) == 2, 20)
        link = redis_link(m)
        equal(link("HGET", f"query:{anna.uid}:{qid}:status", "state"), b"PAUSED",
              "it stays paused without the nodes")
    assert wait_for(m.ready, 40), m.get("/readyz")
    row_follows(m, anna, qid, "PAUSED")

    # Resumed at once when MySQL is back: whichever comes first, the resume or the keeper.
    resumed(anna, qid)
    with stopped(m):
        halt(anna, qid, "pause", "PAUSED")
    resumed(anna, qid)
    time.sleep(3)
    ok(view(anna, qid)["state"] in ("RUNNING", "DONE"), "no keeper pauses it again",
       view(anna, qid))
    ends_whole(m, anna, qid, papers)
    audited(m)


run_tests()
