"""Programs that take items out of pools by API tokens, whatever goes on around them; and what they
were given. Items are put in meanwhile."""
import json
import os
import threading
import time

from caller import Caller
from checks import Answer, Pool
from harness import folder, redis_link, run, sql

COUNT_MAX = 20  # of one pop
GIVE_UP = 0.05  # a repeat is not tried any more, so often
# name: (items at the start, share of pops). The first lasts for the whole time, the second runs out
# again and again, the third rests between two pops so long that its list is settled.
GROUPS = {"titles/7": (20000, 0.55), "titles/8": (1500, 0.4), "contents/7": (4000, 0.05)}
COLUMNS = {"titles": "title", "contents": "content"}
IMPORT = {"titles/8": 700, "titles/7": 300}  # items of a file
IMPORT_S = 6  # between two


def parts(name):
    kind, _, group = name.partition("/")
    return kind, COLUMNS[kind], int(group)


def text(name, batch, number):
    return f"{name} of batch {batch}, {number}"


def put(stores):
    """As another program would: by SQL."""
    for name, (count, _) in GROUPS.items():
        table, column, group = parts(name)
        sql(stores, f"INSERT INTO {table} (group_id, batch_id, {column}) SELECT {group}, 1,"
                    f" CONCAT('{name} of batch 1, ', seq) FROM seq_1_to_{count}")


class Program(Caller):
    """answers: of pops, in their order; cut: {group: items that pops asked for that had no answer,
    or none that is sure}."""

    def __init__(self, name, world, seed, events, pause_s):
        super().__init__(name, world, seed, events)
        self.pause_s = pause_s
        self.answers, self.cut = [], dict.fromkeys(GROUPS, 0)
        self.unanswered = None  # (group, body, when it was first sent, items that may be lost)
        self.known = []  # answers of requests that have an id

    def get_tokens(self, person):
        """One for each group, of this user."""
        self.tokens = {}
        for name in GROUPS:
            r = person.ask("POST", "/api/tokens", {"name": f"{self.name} {name}",
                                                   "scopes": [f"pool:{name}"]})
            assert r and r.status == 201, r and r.body
            self.tokens[name] = r.body["token"]

    def pop(self, group, body, since=None):
        """since: when the same request was first sent. Returns the status, or None; the answer is
        noted."""
        began = time.monotonic()
        self.token = self.tokens[group]
        r = self.ask("POST", f"/api/pools/{group}/pop", body)
        if r and r.status == 200:
            ids = [item["id"] for item in r.body["items"]]
            self.answers.append(Answer(group, ids, since or began, time.monotonic(),
                                       body["count"], body.get("request_id"), self.name))
            if not 1 <= len(ids) <= body["count"]:
                self.problem(f"{len(ids)} items of {group} for {body}")
        return r.status if r else None

    def run(self):
        while not self.stopped.wait(self.random.expovariate(1 / self.pause_s)):
            self.step()

    def step(self):
        if self.unanswered:
            self.again()
        elif self.known and self.random.random() < 0.1:
            a = self.random.choice(self.known[-20:])
            self.pop(a.group, {"count": a.asked, "request_id": a.request}, a.sent)
        else:
            self.new()

    def new(self):
        group = self.random.choices(list(GROUPS), [share for _, share in GROUPS.values()])[0]
        body = {"count": self.random.randint(1, COUNT_MAX)}
        if self.random.random() < 0.4:
            body["request_id"] = f"{self.random.getrandbits(64):016x}"
        self.unanswered = group, body, time.monotonic(), 0
        self.again()

    def again(self):
        """A request without an answer is repeated if it has an id; what it may have taken is lost
        if Redis, which knew of it, was in trouble meanwhile."""
        group, body, since, lost = self.unanswered
        status = self.pop(group, body, since)
        if status is None or status in (502, 504):
            lost += body["count"]
        repeats = "request_id" in body and self.random.random() > GIVE_UP
        if repeats and (status is None or status >= 500):
            self.unanswered = group, body, since, lost
            return
        self.unanswered = None
        if status != 200 or self.world.redis_troubled(since, time.monotonic()):
            self.cut[group] += lost
        if status == 200 and "request_id" in body:
            self.known.append(self.answers[-1])

    def finish(self):
        """The request that has no answer yet is given up."""
        if self.unanswered:
            group, _, _, lost = self.unanswered
            self.cut[group] += lost
            self.unanswered = None


class Stock(threading.Thread):
    """Puts further items in by `millrace pool import`: a file again and again until it is done.
    texts: {group: those that surely are there}."""

    def __init__(self, world, events):
        super().__init__(name="stock")
        self.world, self.events = world, events
        self.stopped, self.batch = threading.Event(), 1
        self.texts = {name: [] for name in GROUPS}
        self.tries = 0

    def run(self):
        while not self.stopped.wait(IMPORT_S):
            self.batch += 1
            for name, count in IMPORT.items():
                self.bring(name, [text(name, self.batch, i) for i in range(count)])

    def bring(self, name, texts):
        path = os.path.join(folder(), "items.jsonl")
        with open(path, "w") as f:
            f.writelines(json.dumps({"text": t}) + "\n" for t in texts)
        kind, _, group = parts(name)
        while True:
            done = run("pool", "import", kind, str(group), path, env=self.world.stores.settings(),
                       timeout=60)
            self.tries += 1
            said = (done.stdout + done.stderr).strip()
            self.events(self.name, f"{name} {self.batch}: {done.returncode} {said[:200]}")
            if done.returncode == 0:
                self.texts[name] += texts
                return
            if self.stopped.wait(0.5):
                return


# --- the end ---

def rest(program):
    """What is left of all groups; every request is made twice, now that nothing goes wrong."""
    for number, name in enumerate(GROUPS):
        for i in range(100000):
            body = {"count": 100, "request_id": f"rest-{number}-{i}"}
            since = time.monotonic()
            status = program.pop(name, body)
            if status == 200 and i < 20:
                program.pop(name, body, since)
            if status == 409:
                break
            if status != 200:
                program.cut[name] += body["count"] if status in (None, 502, 504) else 0
                time.sleep(0.1)
        else:
            program.problem(f"{name} has no end")


def look(stores):
    """As both stores have them: [Pool]"""
    link, found = redis_link(stores), []
    for name in GROUPS:
        table, column, group = parts(name)
        rows = sql(stores, f"SELECT id, status, number % (1 << 62), {column} FROM {table}"
                           f" WHERE group_id = {group}")  # 0: handed out without one
        (unseen,), = sql(stores, "SELECT COALESCE(MAX(unseen), 0) FROM pool_group"
                                 f" WHERE type = '{table}' AND group_id = {group}")
        listed = [json.loads(item)["id"] for item in
                  reversed(link("LRANGE", f"{table}:pool:{group}", 0, -1))]
        found.append(Pool(name, {int(i): (int(s), int(n), t) for i, s, n, t in rows}, listed,
                          int(unseen)))
    return found


def settled(stores):
    """All that was handed out is marked: what is numbered is in the lists."""
    return all(sum(s == 2 for s, _, _ in p.items.values()) == len(p.listed) for p in look(stores))
