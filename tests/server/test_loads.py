"""Papers come, change, move and leave while runs wait, work, pause, are tried again and distilled:
a run is over the papers that there were when it was submitted, and never costs more than that.

Fifty schedules at once on one server, each with journals of its own. MILLRACE_LOADS_SEED repeats
what was chosen; what happens between the processes is new each time."""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import threading
import time

from admins import admin
from client import cli
from harness import (BIN, Millrace, environment, equal, folder, note, ok, redis_link, run_tests,
                     sql, test, wait_for)
from screening import act, audited, person, reaches, results, view
from sim import Sim

SCHEDULES, ROUNDS, USERS = 50, 10, 5
YEARS = (2001, 2002, 2003)
RUNS_MAX = 4  # of a schedule, distillations apart
RETRIES_MAX = 2  # of a run
THREADS = 5
BREATH = 0.03  # seconds between two steps of a thread: the server shares its cores with the loads
PRICE = 3
SEED = int(os.environ.get("MILLRACE_LOADS_SEED") or random.randrange(10 ** 6))
QUESTION = "Which catalysts split water?"


class Corpus:
    """The folder of all schedules, and what MySQL had at the end of each load."""

    def __init__(self, server):
        self.server, self.env = server, server.stores
        self.top, self.at, self.wrong = pathlib.Path(folder()), {}, []
        self.before = {}  # the same at the beginning: a load that was cut off has changed some
        (self.top / "APIKey").mkdir()
        (self.top / "APIKey/k.txt").write_text("sk-of-a-test\n")
        (self.top / "PaperAndTagInfo").mkdir()
        names = "".join(f"S{i}{half},,,,{PRICE}\n" for i in range(SCHEDULES) for half in "AB")
        (self.top / "PaperAndTagInfo/InfoList.Paper.csv").write_text(
            "Name,FullName,DataRange,UpdateDate,Price\n" + names)

    def write(self, schedule):
        files = collections.defaultdict(str)
        for doi, (journal, year, text) in schedule.papers.items():
            files[f"{journal}/{len(doi) % 2}.bib"] += (
                f"@article{{k{doi[-6:]}, doi = {{{doi}}}, year = {{{year}}},\n"
                f" title = {{{text} catalysts}}, abstract = {{They split {text}.}}}}\n")
        for journal in schedule.journals:
            for half in (0, 1):
                path = self.top / "Data" / journal / f"{half}.bib"
                text = files.get(f"{journal}/{half}.bib", "")
                if not text:
                    path.unlink(missing_ok=True)
                elif not path.exists() or path.read_text() != text:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text)

    def load(self, prune=True, kill_after=None):
        """db init, or as much of it as there is time for."""
        if self.at:
            self.before[max(self.at) + 1] = self.papers()
        args = [BIN, "db", "init", "--data", str(self.top)] + ["--prune"] * prune
        p = subprocess.Popen(args, env=environment(self.env), cwd=folder(), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = p.communicate(timeout=kill_after or 60)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            said = None
        if said is not None and p.returncode:
            self.wrong.append(said)
        (load,), = sql(self.server,
                       "SELECT MAX(load_no) FROM corpus_load WHERE ended_at IS NOT NULL")
        if said is not None or int(load) not in self.at:  # else it was killed before its end
            self.at[int(load)] = self.papers()

    def papers(self):
        return {d: (j, int(y)) for d, j, y in
                sql(self.server, "SELECT DOI, journal, year FROM paperinfo")}

    def warm(self):
        done = cli(self.server, "db", "warm")
        if done.returncode:
            self.wrong.append(done.stderr)

    def warm_catalog(self, link):
        """db warm that is killed before it comes to the blocks, or soon after."""
        newest = str(max(self.at)).encode()
        p = subprocess.Popen([BIN, "db", "warm"], env=environment(self.env), cwd=folder(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while p.poll() is None and link("HGET", "sys:catalog", "load") != newest:
            time.sleep(0.001)
        p.kill()
        p.wait()


class Schedule:
    """The papers of two journals, and the runs over them."""

    def __init__(self, number, api):
        self.number, self.api = number, api
        self.chance = random.Random(SEED * 1000 + number)
        self.journals = [f"S{number}A", f"S{number}B"]
        self.papers, self.gone, self.made = {}, {}, 0
        self.runs, self.distilled, self.did = [], [], collections.Counter()
        self.runs_max, self.tried = 1, collections.Counter()
        self.busy = threading.Lock()
        for _ in range(self.chance.randrange(15, 45)):
            self.add()
        if number % 10 == 0:  # a block of several slices
            for _ in range(150):
                self.add(self.journals[0], 2001)

    def add(self, journal=None, year=None):
        self.made += 1
        c = self.chance
        self.papers[f"10.5555/{self.number}." + "x" * (self.made % 2) + f"{self.made:06}"] = (
            journal or c.choice(self.journals), year or c.choice(YEARS),
            c.choice(("water", "stone", "light")))

    def change(self):
        """What happens to the folder before the next load."""
        c = self.chance
        for _ in range(c.randrange(0, 12)):
            what = c.choice(
                ("add", "add", "text", "move", "move", "leave", "leave", "back", "year"))
            doi = c.choice(sorted(self.papers)) if self.papers else None
            if what == "add" or not doi:
                self.add()
            elif what == "text":
                self.papers[doi] = (*self.papers[doi][:2], c.choice(("air", "water")))
            elif what == "move":
                self.papers[doi] = (c.choice(self.journals), c.choice(YEARS), self.papers[doi][2])
            elif what == "leave":
                self.gone[doi] = self.papers.pop(doi)
            elif what == "back" and self.gone:
                doi = c.choice(sorted(self.gone))
                self.papers[doi] = self.gone.pop(doi)
            elif what == "year" and c.random() < 0.3:  # a block is emptied
                block = c.choice(self.journals), c.choice(YEARS)
                for doi in [d for d, p in self.papers.items() if p[:2] == block]:
                    self.gone[doi] = self.papers.pop(doi)

    # --- what their user does ---

    def submit(self):
        first = self.chance.choice(YEARS)
        wish = {"question": QUESTION, "year_from": first,
                "year_to": self.chance.choice([y for y in YEARS if y >= first]),
                "journals": self.chance.choice(([self.journals[0]], self.journals))}
        r = self.api("POST", "/api/queries", wish)
        if r.status == 202:
            self.runs.append(r.body["query_id"])
        return r.status == 202

    def distil(self, qid):
        r = self.api("POST", "/api/distill", {"original_query_id": qid, "question": QUESTION})
        if r.status == 202:
            self.distilled.append(r.body["query_id"])
        return r.status == 202

    def step(self):
        c = self.chance
        if len(self.runs) < self.runs_max and c.random() < 0.3:
            self.did["submitted"] += self.submit()
        if not self.runs:
            return
        qid = c.choice(self.runs + self.distilled)
        state = view(self.api, qid)["state"]
        if state in ("QUEUED", "RUNNING") and c.random() < 0.4:
            self.did["paused"] += act(self.api, qid, "pause").status == 200
        elif state == "PAUSED":
            self.did["resumed"] += act(self.api, qid, "resume").status == 200
        elif state == "DONE" and len(self.distilled) < 2 and c.random() < 0.5:
            self.did["distilled"] += self.distil(qid)
        elif state == "DONE" and self.tried[qid] < RETRIES_MAX:
            self.tried[qid] += act(self.api, qid, "retry_failed").status == 200

    def ended(self):
        """Resumes what is paused."""
        states = {q: view(self.api, q)["state"] for q in self.runs + self.distilled}
        for qid, state in states.items():
            if state == "PAUSED":
                act(self.api, qid, "resume")
        return all(state == "DONE" for state in states.values())


# --- what became of it ---

def frozen_of(m):
    """What all runs keep: {qid: search_params}, {qid: DOIs that it distils}."""
    params = {q: json.loads(text.replace("\\\\", "\\"))
              for q, text in sql(m, "SELECT query_id, search_params FROM query_log")}
    dois = collections.defaultdict(list)
    for qid, doi in sql(m, "SELECT query_id, doi FROM distill_paper"):
        dois[qid].append(doi)
    return params, dois


def outcomes(found):
    kinds = collections.Counter()
    for r in found.values():
        v = r["ai_result"]
        kinds["judged" if "relevant" in v else "withdrawn" if "withdrawn" in v else "failed"] += 1
    return kinds


def problems_of(run, found, papers, cents):
    """What is wrong with any run. papers: those that it is over; cents: for each of them."""
    kinds = outcomes(found)
    cost = round(float(run["cost"]) * 100)
    checks = {
        "finished is papers": run["finished"] == run["papers"] == len(papers),
        "none is missing": set(papers) <= set(found),
        "none is too many": set(found) <= set(papers),
        "costs what was judged": cost == kinds["judged"] * cents,
        "costs no more than estimated": cost <= len(papers) * cents,
        "counts are right": (run["withdrawn"], run["failed"]) ==
                            (kinds["withdrawn"], kinds["failed"]),
    }
    return [name for name, held in checks.items() if not held]


def problems_of_screening(corpus, params, run, found):
    then = corpus.at[params["load"]]
    names = {j["name"] for j in params["journals"]}
    papers = [d for d, (j, y) in then.items()
              if j in names and params["year_from"] <= y <= params["year_to"]]
    wrong = problems_of(run, found, papers, PRICE * 100)
    for doi, r in found.items():
        later = [*corpus.at.items(), *corpus.before.items()]
        left = any(doi not in held for load, held in later if load > params["load"])
        if "withdrawn" in r["ai_result"] and not left:
            wrong.append(f"{doi} is withdrawn, but was always there")
    return [(params["load"], w, run) for w in wrong]


def look_at_all(m, corpus, schedules):
    """What is wrong, and how many papers had which outcome."""
    wrong, kinds = [], collections.Counter()
    params, dois = frozen_of(m)
    for s in schedules:
        for qid in s.runs:
            found = results(m, s.api, qid)
            kinds += outcomes(found)
            wrong += problems_of_screening(corpus, params[qid], view(s.api, qid), found)
        for qid in s.distilled:
            run = view(s.api, qid)
            wrong += [("distilled", w, run) for w in
                      problems_of(run, results(m, s.api, qid), dois[qid], PRICE * 10)]
    return wrong, kinds


def load_in_rounds(corpus, schedules, chance, link):
    for i in range(ROUNDS):
        for s in schedules:
            with s.busy:
                s.change()
                s.runs_max = 1 + RUNS_MAX * i // ROUNDS
            corpus.write(s)
        cut_off = i % 4 == 1
        corpus.load(prune=i % 3 != 2, kill_after=chance.uniform(0.2, 0.7) if cut_off else None)
        for key in link("KEYS", "meta:*"):
            if chance.random() < 0.1:
                link("DEL", key)
        if i % 3 != 1:
            time.sleep(chance.random())
            corpus.warm() if i % 3 == 0 else corpus.warm_catalog(link)


def act_until(over, schedules):
    while not over.is_set():
        for s in schedules:
            with s.busy:
                s.step()
            if over.wait(BREATH):
                return


@test("fifty schedules of loads")
def _():
    note(f"MILLRACE_LOADS_SEED={SEED}")
    with Sim("--latency-ms", "150", "--jitter-ms", "100", "--http1") as sim, Millrace(
            env={"MILLRACE_AI_URL": sim.url, "MILLRACE_AI_TIMEOUT_MS": "5000"}) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        people = [person(m, f"user{i}", permission=12 + 8 * i) for i in range(USERS)]
        schedules = [Schedule(i, people[i % USERS]) for i in range(SCHEDULES)]
        corpus, chance, link = Corpus(m), random.Random(SEED), redis_link(m)
        for s in schedules:
            corpus.write(s)
        corpus.load()
        sql(m, "UPDATE api_list SET rpm_limit = 1000000, tpm_limit = 1000000000")
        corpus.warm()
        over = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            users = [pool.submit(act_until, over, schedules[i::THREADS]) for i in range(THREADS)]
            try:
                load_in_rounds(corpus, schedules, chance, link)
            finally:
                over.set()
            for u in users:
                u.result()
        equal(corpus.wrong, [], "every load and every warm-up succeeds")
        corpus.warm()
        left = wait_for(lambda: not [s for s in schedules if not s.ended()], 60)
        ok(left, "all runs come to their end", [s.number for s in schedules if not s.ended()])
        did = sum((s.did for s in schedules), collections.Counter())
        did["tried again"] = sum(s.tried.total() for s in schedules)
        note(f"{len(corpus.at)} loads ended; {dict(did)}")
        kinds = ("submitted", "paused", "resumed", "tried again", "distilled")
        ok(all(did[k] > 0 for k in kinds), "everything was done at some time", did)
        wrong, found = look_at_all(m, corpus, schedules)
        note(dict(found))
        ok(not wrong, "each run is over the papers of its load, at what they cost then",
           *wrong[:10])
        ok(found["withdrawn"] > 0, "some papers left before their turn came", found)
        audited(m)


def unnumber(m, link):
    """The database as migration 0014 leaves one that has papers, and a Redis without blocks."""
    sql(m, "UPDATE corpus_block SET load_no = 0, since = 0; DELETE FROM corpus_change;"
           " DELETE FROM corpus_load")
    for key in link("KEYS", "meta:*"):
        link("DEL", key)


def forget_load(m, link, api, qid):
    """The run as it would have been submitted before loads were numbered."""
    sql(m, "UPDATE query_log SET search_params = JSON_REMOVE(search_params, '$.load')")
    key = f"query:{api.uid}:{qid}:info"
    params = json.loads(link("HGET", key, "search_params"))
    equal(params.pop("load"), 0, "papers that were there before are load 0")
    link("HSET", key, "search_params", json.dumps(params))


@test("a run that was submitted before loads were numbered")
def _():
    with Sim("--http1") as sim, Millrace(env={"MILLRACE_AI_URL": sim.url}) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        api, corpus, link = person(m, "early"), Corpus(m), redis_link(m)
        s = Schedule(0, api)
        corpus.write(s)
        corpus.load()
        sql(m, "UPDATE api_list SET rpm_limit = 1000000, tpm_limit = 1000000000")
        unnumber(m, link)
        corpus.warm()
        root = admin(m, "root")
        root("POST", "/api/admin/switches", {"name": "new_runs", "on": False})
        then = sorted(s.papers)
        r = api("POST", "/api/queries", {"question": QUESTION, "year_from": 1900,
                                         "year_to": 2100, "journals": s.journals})
        qid = r.body["query_id"]
        forget_load(m, link, api, qid)
        for _ in range(20):
            s.add()
        s.add(year=2009)  # which makes a block
        del s.papers[then[0]]
        corpus.write(s)
        corpus.load()
        corpus.warm()
        equal(corpus.wrong, [], "papers come, and one leaves")
        root("POST", "/api/admin/switches", {"name": "new_runs", "on": True})
        ok(reaches(api, qid, "DONE"), "the run is done")
        run = view(api, qid)
        equal(problems_of(run, results(m, api, qid), then, PRICE * 100), [],
              "it is over the papers that there were", run)
        equal(run["withdrawn"], 1, "the one that left is withdrawn")


def screened(m, corpus, s, api, load, what):
    """A run over all of s, submitted now: frozen at this load, whatever MySQL has by now."""
    r = api("POST", "/api/queries", {"question": QUESTION, "year_from": 1900, "year_to": 2100,
                                     "journals": s.journals})
    qid, papers = r.body["query_id"], corpus.at[load]
    ok(reaches(api, qid, "DONE"), f"{what}: the run is done")
    run, params = view(api, qid), frozen_of(m)[0][qid]
    equal((params["load"], run["estimate"]), (load, f"{len(papers) * PRICE}.00"),
          f"{what}: by the load that the catalog shows")
    equal(problems_of(run, results(m, api, qid), list(papers), PRICE * 100), [],
          f"{what}: over its papers", run)
    return run


@test("a catalog that is older than MySQL, and one that is newer than the blocks")
def _():
    with Sim("--http1") as sim, Millrace(env={"MILLRACE_AI_URL": sim.url}) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        api, corpus, link = person(m, "late"), Corpus(m), redis_link(m)
        s = Schedule(0, api)
        corpus.write(s)
        corpus.load()
        sql(m, "UPDATE api_list SET rpm_limit = 1000000, tpm_limit = 1000000000")
        corpus.warm()
        blocks = {key: link("DUMP", key) for key in link("KEYS", "meta:*")}
        for _ in range(20):
            s.add()
        s.add(year=2009)  # which makes a block
        del s.papers[sorted(s.papers)[0]]
        corpus.write(s)
        corpus.load()
        equal(link("HGET", "sys:catalog", "load"), b"1", "papers come and go, Redis is not warmed")
        for key in blocks:
            link("DEL", key)
        run = screened(m, corpus, s, api, 1, "an older catalog")
        equal(run["withdrawn"], 1, "the paper that left is withdrawn")
        corpus.warm()
        for key, dump in blocks.items():  # as a warm-up leaves them that died after the catalog
            link("RESTORE", key, 0, dump, "REPLACE")
        run = screened(m, corpus, s, api, 2, "older blocks")
        equal(run["withdrawn"], 0, "nothing has left since")
        equal(corpus.wrong, [], "every load and every warm-up succeeds")
        audited(m)


if __name__ == "__main__":
    run_tests()
