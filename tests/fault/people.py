"""Users who submit, distil, download, pause, resume, terminate, have plans made and values
extracted, write posts, and pay, whatever goes on around them; and what they were told.

Each is a thread with random numbers of its own, and alone with its runs: so it knows what they may
be."""
import json
import re
import time

import extracts
import files
import plans
import posters
from caller import Caller, Reply
from checks import FINAL
from harness import http, run
from stores import PASSWORD

PLANS = 0.2  # of all that a person does
PLANNER_PAUSE_S = EXTRACTOR_PAUSE_S = 0.15
POSTER_PAUSE_S = 0.05
OPEN = {"QUEUED", "RUNNING", "PAUSED", "DONE"}  # what becomes of a run by itself
# The simulated AI finds a paper relevant that has a word of the question.
WORDS = ("water", "energy", "cells", "learning", "health", "growth", "model", "policy", "light",
         "carbon", "risk", "network")


class Person(Caller):
    def __init__(self, name, plan, world, seed, events):
        super().__init__(name, world, seed, events)
        self.plan = plan
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
        self.plans = plans.Plans(self)
        self.extracts = extracts.Extracts(self)
        self.posts = posters.Posts(self)

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
        if self.random.random() < PLANS:
            self.plans.step()
            return
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
        others = [x.settle() for x in (self.plans, self.extracts, self.posts)]
        return (all(others) and not self.open_runs() and not self.unclear() and
                not self.failed and not self.downloads.open())


class Planner(Person):
    """Has plans made and nothing else, and often has no money for them: then their tasks are
    held."""

    def prepare(self):
        return True

    def run(self):
        while not self.stopped.wait(self.random.expovariate(1 / PLANNER_PAUSE_S)):
            self.step()

    def step(self):
        if self.unclear():
            self.move_again(self.random.choice(self.unclear()))
        elif self.random.random() > 0.02:
            self.plans.step()
        elif r := self.ask("GET", "/api/me"):
            balance = int(float(r.body["balance"])) if r.status == 200 else 0
            self.move("deduct", balance) if balance > 2 else self.move("recharge", 30)


class Extractor(Person):
    """Has values extracted, out of documents and of the papers of one run; now and then without
    money for it."""

    def prepare(self):
        for qid in self.open_runs():
            self.show(qid)
        if not self.open_runs() and all(self.is_archived(qid) for qid in self.ended):
            if any(self.extracts.prepare(qid) for qid in sorted(self.ended)):
                return True
            if not self.extracts.tasks:
                self.submit(most=600)  # in vain if little is relevant: then there is another run
        return False

    def run(self):
        while not self.stopped.wait(self.random.expovariate(1 / EXTRACTOR_PAUSE_S)):
            self.step()

    def step(self):
        if self.unclear():
            self.move_again(self.random.choice(self.unclear()))
        elif self.random.random() > 0.01:
            self.extracts.step()
        elif r := self.ask("GET", "/api/me"):
            balance = int(float(r.body["balance"])) if r.status == 200 else 0
            self.move("deduct", balance) if balance > 2 else self.move("recharge", 50)


class Poster(Person):
    """Writes posts; now and then without money for what they cost."""

    def prepare(self):
        return True

    def run(self):
        while not self.stopped.wait(self.random.expovariate(1 / POSTER_PAUSE_S)):
            self.step()

    def step(self):
        if self.unclear():
            self.move_again(self.random.choice(self.unclear()))
        elif self.random.random() > 0.01:
            self.posts.step()
        elif r := self.ask("GET", "/api/me"):
            balance = int(float(r.body["balance"])) if r.status == 200 else 0
            self.move("deduct", balance) if balance > 2 else self.move("recharge", 50)


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
