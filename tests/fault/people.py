"""Users who submit, distil, download, pause, resume, terminate and pay, whatever goes on around
them; and what they were told.

Each is a thread with random numbers of its own, and alone with its runs: so it knows what they may
be."""
import json
import random
import re
import threading
import time
from collections import Counter

import files
from checks import FINAL
from harness import Client, http, run
from stores import PASSWORD

OPEN = {"QUEUED", "RUNNING", "PAUSED", "DONE"}  # what becomes of a run by itself
GONE = (OSError, ConnectionError)  # timeouts are OSError
# The simulated AI finds a paper relevant that has a word of the question.
WORDS = ("water", "energy", "cells", "learning", "health", "growth", "model", "policy", "light",
         "carbon", "risk", "network")


class Reply:
    def __init__(self, raw):
        self.status, self.body = raw.status, json.loads(raw.body) if raw.body else {}

    @property
    def code(self):
        return self.body.get("error", {}).get("code", "")


class Person(threading.Thread):
    def __init__(self, name, plan, world, seed, events):
        super().__init__(name=name)
        self.plan, self.world, self.events = plan, world, events
        self.random = random.Random(f"{seed} {name}")
        self.stopped = threading.Event()
        self.runs = {}  # qid: states that it may be in
        self.ended = set()  # of these, those that were seen to have ended,
        self.failed = set()  # and those with papers that failed
        self.accepted, self.terminated = set(), set()
        self.screened = set()  # no distillations
        self.papers = 0  # of all that was submitted
        self.unanswered = None  # what was submitted last, until it is known what became of it
        self.moved = {"recharge": 0, "deduct": 0}  # cents that surely were
        self.requests = {}  # request id: (kind, cents) that may have been; cents 0: it is clear
        self.archived = set()  # surely, and not tried again since
        self.originals = set()  # that were, or may have been, distilled
        self.changed = set()  # of these, those that may have gone on after that
        self.downloads = files.Downloads(self)
        self.told = Counter()
        self.problems = []

    # --- HTTP ---

    def send(self, method, path, body, timeout):
        """The raw reply, or None when there was none."""
        server = self.random.choice(self.world.servers)
        headers = [f"Authorization: Bearer {self.token}", "Connection: close"]
        if body is not None:
            headers.append("Content-Type: application/json")
        what = f"{method} {re.sub('/[0-9a-f]{32}', '/<id>', path).partition('?')[0]}"
        try:
            c = Client(server.port, timeout=timeout)
            try:
                r = c.request(path, method=method,
                              body=json.dumps(body).encode() if body is not None else b"",
                              headers=headers)
            finally:
                c.close()
        except GONE as e:
            self.told[what, type(e).__name__] += 1
            return None
        code = Reply(r).code if r.status >= 400 else ""
        self.told[what, f"{r.status} {code}".strip()] += 1
        return r

    def judge(self, r, method, path, may_be_gone):
        if r and (r.status in (401, 403, 500) or (r.status == 404 and not may_be_gone)):
            self.problem(f"{method} {path}: {r.status} {r.body}")
        return r

    def ask(self, method, path, body=None, timeout=5, may_be_gone=False):
        """The reply, or None when there was none."""
        r = self.send(method, path, body, timeout)
        return self.judge(Reply(r) if r else None, method, path, may_be_gone)

    def fetch(self, path):
        """A file, whose body is bytes; or None."""
        return self.judge(self.send("GET", path, None, timeout=20), "GET", path, may_be_gone=True)

    def problem(self, text):
        self.events(self.name, "PROBLEM " + text)
        self.problems.append(f"{self.name}: {text}")

    def log_in(self):
        r = Reply(http(self.world.servers[0].port, "/api/login", method="POST",
                       headers=["Content-Type: application/json"],
                       body=json.dumps({"username": self.name, "password": PASSWORD}).encode()))
        assert r.status == 200, r.body
        self.token, self.uid = r.body["token"], r.body["uid"]

    # --- runs ---

    def open_runs(self):
        return [q for q in self.runs if q not in self.ended]

    def submit(self, most=2000):
        """A request that has no answer yet is repeated: it makes one run, whatever was lost."""
        if not self.unanswered:
            choice, count = self.plan.choose(self.random, most)
            choice["request_id"] = f"{self.random.getrandbits(64):016x}"
            self.unanswered = choice, count
        choice, count = self.unanswered
        r = self.ask("POST", "/api/queries", choice)
        if r and r.status < 500:
            self.unanswered = None
        if r and r.status == 202:
            qid = r.body["query_id"]
            self.runs[qid] = OPEN
            self.accepted.add(qid)
            self.screened.add(qid)
            self.papers += count
            self.events(self.name, f"submitted {qid}, {count} papers")
        elif r and r.status == 402:
            self.pay(r, self.random.choice((0, 500, 2000)))

    def distil(self, qid):
        self.originals.add(qid)
        r = self.ask("POST", "/api/distill",
                     {"original_query_id": qid, "question": question(self.random)})
        if r and r.status == 202:
            self.archived.add(qid)
            self.runs[r.body["query_id"]] = OPEN
            self.accepted.add(r.body["query_id"])
            self.events(self.name, f"distils {qid} as {r.body['query_id']}")
        elif r and r.status == 402:
            self.pay(r, 0)

    def is_archived(self, qid):
        if qid not in self.archived and qid in self.ended:
            r = self.ask("POST", "/api/distill/estimate", {"original_query_id": qid})
            if r and r.status == 200:
                self.archived.add(qid)
        return qid in self.archived

    def download(self):
        """Asks for a file of any run, however far it is."""
        qid = self.random.choice(sorted(self.archived if self.random.random() < 0.5 else self.runs))
        kind, scope = self.random.choice(files.KINDS), self.random.choice(files.SCOPES)
        ask = (self.downloads.at_once if kind != "ris" and self.random.random() < 0.2 else
               self.downloads.ask)
        ask(qid, kind, scope, self.is_archived(qid))

    def show(self, qid):
        """Its state, or None."""
        r = self.ask("GET", f"/api/queries/{qid}")
        if not r or r.status != 200:
            return None
        state, degraded = r.body["state"], r.body.get("degraded")  # from one store: it may be old
        if state not in self.runs[qid] and not degraded:
            self.problem(f"run {qid} is {state}, expected is one of {sorted(self.runs[qid])}")
        if not 0 <= r.body["finished"] <= r.body["papers"]:
            self.problem(f"run {qid}: {r.body}")
        if state in FINAL and not degraded:
            self.ended.add(qid)
            (self.failed.add if state == "DONE" and r.body["failed"] else self.failed.discard)(qid)
        return r.body

    def results(self, qid):
        """All of them, page by page: (DOI, relevant; None if it failed)."""
        found, cursor = [], ""
        while cursor is not None:
            r = self.ask("GET",
                         f"/api/queries/{qid}/results?limit=500{cursor and '&cursor=' + cursor}",
                         timeout=20)
            if not r or r.status != 200:
                return found
            found += [(p["doi"], None if p["error"] is not None else p["relevant"])
                      for p in r.body["results"]]
            cursor = r.body["next"]
        return found

    CONTROL = {"pause": {"PAUSED", "DONE"}, "resume": OPEN, "terminate": {"CANCELLED"},
               "retry_failed": OPEN}

    def control(self, qid, what):
        if what == "retry_failed":
            self.archived.discard(qid)
            self.changed.update(self.originals & {qid})
            self.downloads.changes(qid)
        r = self.ask("POST", f"/api/queries/{qid}/{what}")
        before = self.runs[qid]
        if r and r.status == 200:
            # A degraded one may be forgotten by a Redis that is lost before MySQL has it (BIL-8).
            sure = not r.body.get("degraded")
            self.runs[qid] = self.CONTROL[what] | (set() if sure else before | OPEN)
            self.ended.discard(qid)
            if what == "terminate" and r.body["state"] == "CANCELLED" and sure:
                self.terminated.add(qid)
            if r.body["state"] not in self.CONTROL[what]:
                self.problem(f"run {qid} {what}: {r.body}")
        elif r is None or r.status >= 500:
            self.runs[qid] = before | self.CONTROL[what] | {"RUNNING", "QUEUED"}  # nobody knows
        self.events(
            self.name,
            f"{what} {qid}: {r.status if r else None} {r.body.get('state') or r.code if r else ''}")
        return r

    # --- money ---

    def move(self, kind, amount):
        """recharge or deduct, as an operator does it."""
        request = f"{self.name}-{len(self.requests)}-{self.random.getrandbits(32):x}"
        self.requests[request] = kind, amount * 100
        self.move_again(request)

    def pay(self, refusal, more):
        """What is missing for a run that was refused, and some more."""
        amounts = re.findall(r"\d+\.\d\d", refusal.body["error"]["message"])
        self.move("recharge", int(float(amounts[0]) - float(amounts[-1])) + 1 + more)

    def move_again(self, request):
        """The same request until it is clear: it counts once."""
        kind, cents = self.requests[request]
        done = run("user", kind, "--request", request, self.name,
                   f"{cents // 100}.{cents % 100:02}", env=self.world.stores.settings(), timeout=60)
        said = (done.stdout + done.stderr).strip()
        self.events(self.name, f"{kind} {request} {cents}: {done.returncode} {said[-200:]}")
        refused = "the user has less than that" in said
        self.told[kind, "refused" if refused else str(done.returncode)] += 1
        if done.returncode == 0:
            self.moved[kind] += cents
        if done.returncode == 0 or refused:
            self.requests[request] = kind, 0

    def unclear(self):
        return [request for request, (_, cents) in self.requests.items() if cents]

    # --- before ---

    def prepare(self):
        """A small run and a distillation of it, to be distilled, and downloaded for good, from the
        start. True: they are archived."""
        for qid in self.open_runs():
            self.show(qid)
        there = {qid for qid in self.runs if self.is_archived(qid)}
        distilled = self.runs.keys() - self.screened
        if not distilled and (new := sorted(there - self.originals)):
            self.distil(new[0])  # in vain if nothing is relevant: then there is another run
        elif not distilled and not self.open_runs() and there == self.ended:
            self.submit(most=300)
        return bool(there & self.screened and there & distilled)

    # --- all the time ---

    def run(self):
        self.began = time.monotonic()
        while not self.stopped.wait(self.random.expovariate(1 / self.plan.pause_s)):
            self.step()

    def step(self):
        dice = self.random.random()
        if dice < 0.15 and self.ended:
            chains = sorted(self.ended - self.screened)
            self.distil(
                self.random.choice(chains if chains and dice < 0.05 else sorted(self.ended)))
            return
        if dice < 0.40 and self.archived:
            self.download()
            return
        if dice < 0.6 and self.downloads.open():
            self.downloads.look(self.random.choice(self.downloads.open()))
            return
        if self.plan.wants_more(self, time.monotonic() - self.began):
            self.submit()
            return
        if self.failed and self.random.random() < 0.2:
            qid = self.random.choice(sorted(self.failed))
            r = self.control(qid, "retry_failed")
            if r and r.status < 500:  # else a store is away: it is tried again at the end
                self.failed.discard(qid)
            return
        qids = self.open_runs()
        if not qids:
            return
        qid, dice = self.random.choice(qids), self.random.random()
        if dice < 0.25:
            self.show(qid)
        elif dice < 0.50:
            self.control(qid, "pause")
        elif dice < 0.87:
            paused = [q for q in qids if self.runs[q] == self.CONTROL["pause"]]
            self.control(self.random.choice(paused or qids), "resume")
        elif dice < 0.90:
            self.control(qid, "terminate")
        elif self.unclear():
            self.move_again(self.random.choice(self.unclear()))
        elif dice > 0.96:
            # A deduction may take what is reserved: then a run is out of money part-way.
            self.move(*self.random.choice((("recharge", 100), ("recharge", 2000), ("deduct", 50),
                                           ("deduct", 700), ("deduct", 3000), ("deduct", 8000))))

    # --- the end ---

    def settle(self):
        """What a user does who wants to see all runs end, and all papers judged. True: they
        have."""
        for request in self.unclear():
            self.move_again(request)
        for qid in self.open_runs():
            shown = self.show(qid)
            if shown and shown["state"] == "PAUSED":
                self.control(qid, "resume")
        for qid in sorted(self.failed & self.ended):
            if (r := self.control(qid, "retry_failed")) and r.status == 200:
                self.failed.discard(qid)
        for f in self.downloads.open():
            self.downloads.look(f)
        return (not self.open_runs() and not self.unclear() and not self.failed and
                not self.downloads.open())


def question(rng):
    return f"Is it about {' or '.join(rng.sample(WORDS, 4))}? {rng.getrandbits(32):x}"


class Plan:
    """What is submitted: so many papers in so many seconds, by all people together."""

    def __init__(self, corpus, papers, seconds, people, pause_s):
        self.corpus = corpus
        self.share, self.seconds, self.pause_s = papers / people, seconds, pause_s

    def choose(self, rng, most):
        """A body for /api/queries, and how many papers that is."""
        names = sorted(self.corpus)
        while True:
            journals = rng.sample(names, rng.randint(1, 4))
            year_from = rng.randint(2011, 2025)
            year_to = rng.randint(year_from, 2025)
            count = sum(len(dois) for j in journals for year, dois in self.corpus[j].items()
                        if year_from <= year <= year_to)
            if 50 <= count <= most:
                return {"question": question(rng), "journals": journals, "year_from": year_from,
                        "year_to": year_to}, count

    def wants_more(self, person, elapsed_s):
        due = self.share * min(1, (elapsed_s + 3) / (self.seconds * 0.8))
        return person.papers < due or (person.papers < 3 * self.share and
                                       len(person.open_runs()) < 2)
