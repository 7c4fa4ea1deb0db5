"""Plans that users have made, change and activate, whatever goes on around them; and what the
stores have of them in the end."""
import base64
import datetime
import json

from checks import Day, MadePlan, PlanTask
from harness import redis_link, sql
from snapshot import scan

KINDS = ("training", "nutrition")
START = "2027-03-01"
LIMITS = {f"MILLRACE_LIMIT_{k.upper()}_PLAN_{span}": "0" for k in KINDS
          for span in ("MINUTE", "DAY", "MONTH")}  # have tests of their own
OPEN_MAX = 5  # that one user has made at a time


def marked(day, mark):
    """A day with words of ours in it."""
    day = json.loads(json.dumps(day))
    if "meals" in day:
        next(foods for foods in day["meals"].values() if foods)[0]["name"] = mark
    else:
        day["focus_area"] = mark
    return day


def mark_of(day):
    if "meals" in day:
        return next(foods for foods in day["meals"].values() if foods)[0]["name"]
    return day["focus_area"]


class Plans:
    """Those of a person, who is alone with them: so it knows what they may be."""

    def __init__(self, person):
        self.person, self.random = person, person.random
        self.tasks = {}  # id: last status that was surely seen
        self.plans = {}  # id: kind
        self.unanswered = None
        self.cancelled = set()  # surely
        self.days = {}  # (plan, date): {version: marks that it may have}
        self.active = {}  # kind: plans that may be it; None: any
        self.stale = 0  # late changes that were tried

    def open(self):
        return [i for i, status in self.tasks.items() if status == "generating"]

    def submit(self):
        """A request that has no answer yet is repeated: it makes one plan, whatever was lost."""
        if not self.unanswered:
            self.unanswered = {
                "kind": self.random.choice(KINDS),
                "variables": {"start_date": START, "weeks": self.random.choice((1, 1, 2, 4)),
                              "goals": f"feel better {self.random.getrandbits(32):x}"},
                "request_id": f"{self.random.getrandbits(64):016x}"}
        r = self.person.ask("POST", "/api/plans", self.unanswered)
        if r and r.status < 500:
            self.unanswered = None
        if r and r.status == 202:
            self.tasks.setdefault(r.body["task_id"], "generating")
            self.person.events(self.person.name, f"has a plan made: {r.body['task_id']}")
        elif r and r.status == 402:
            self.person.pay(r, 3)

    def look(self, task):
        r = self.person.ask("GET", f"/api/generation/{task}")
        if not r or r.status != 200 or r.body.get("degraded"):
            return
        before, now = self.tasks[task], r.body["status"]
        self.tasks[task] = now
        if before not in ("generating", now):
            self.person.problem(f"task {task} was {before}, and is {now}")
        if now == "failed" and not r.body["message"]:
            self.person.problem(f"task {task} failed without a word")
        if now == "completed":
            self.plans[r.body["plan_id"]] = r.body["kind"]

    def cancel(self, task):
        r = self.person.ask("DELETE", f"/api/generation/{task}")
        self.person.events(self.person.name, f"cancels {task}: {r.status if r else None}")
        if r and r.status == 200:
            self.cancelled.add(task)
            self.tasks[task] = "cancelled"

    def change(self, plan):
        """A day is read and written; now and then a version too late, or twice."""
        date = (datetime.date.fromisoformat(START) +
                datetime.timedelta(self.random.randrange(3))).isoformat()
        path = f"/api/plans/{plan}/days/{date}"
        r = self.person.ask("GET", path)
        if not r or r.status != 200:
            return
        version, day = r.body["version"], r.body["day"]
        known = self.days.setdefault((plan, date), {})
        if mark_of(day) not in known.setdefault(version, {mark_of(day)}):
            self.person.problem(f"{plan} {date} version {version} has {mark_of(day)!r},"
                                f" expected is one of {known[version]}")
        known[version] = {mark_of(day)}
        latest = max((v for v, marks in known.items() if "" not in marks), default=version)
        if latest > 1 and self.random.random() < 0.3:
            version = latest - 1  # surely not the last any more
            self.stale += 1
        mark = f"of {self.person.name}, {self.random.getrandbits(32):x}"
        r = self.person.ask("PUT", path, {"version": version, "day": marked(day, mark)})
        if r and r.status == 200:
            if version < latest:
                self.person.problem(f"{plan} {date}: version {version} was changed, {latest} was"
                                    " there")
            if r.body["version"] != version + 1:
                self.person.problem(f"{plan} {date}: {version} was changed to {r.body['version']}")
            known[version + 1] = {mark}
        elif r is None or r.status >= 500:  # "": or it is not there
            known.setdefault(version + 1, {""}).add(mark)

    def activate(self, plan):
        kind = self.plans[plan]
        r = self.person.ask("POST", f"/api/plans/{plan}/activate", {})
        if r and r.status == 200:
            self.active[kind] = {plan}
        elif r is None or r.status >= 500:
            self.active.setdefault(kind, {None}).add(plan)

    def step(self):
        """One of the things that can be done now."""
        can = []
        if self.unanswered or len(self.open()) < OPEN_MAX:
            can += [self.submit] * 3
        if self.open():
            task = self.random.choice(self.open())
            can += [lambda: self.look(task)] * 4 + [lambda: self.cancel(task)]
        if self.plans:
            few = self.random.choice(sorted(self.plans)[:2])  # so that days are changed again
            any_ = self.random.choice(sorted(self.plans))
            can += [lambda: self.change(few)] * 3 + [lambda: self.activate(any_)]
        if can:
            self.random.choice(can)()

    def settle(self):
        """True: nothing is open any more."""
        if self.unanswered:
            self.submit()
        for task in self.open():
            self.look(task)
        return not self.unanswered and not self.open()


# --- the end ---

def tasks(stores):
    """With what was paid for each."""
    paid = {}
    for request, cents in sql(
            stores, "SELECT q.request_id, b.cents FROM ledger_request q JOIN billing_log b"
            " ON b.uid = q.uid AND b.number = q.number AND b.kind = 'deduction'"
            " AND b.source = 'redis' WHERE q.request_id LIKE 'plan:%'"):
        paid.setdefault(request.removeprefix("plan:"), []).append(int(cents))
    rows = sql(stores, "SELECT id, uid, kind, state, COALESCE(error, ''), COALESCE(plan_id, ''),"
                       " weeks, cents FROM generation_task")
    return [PlanTask(i, int(uid), kind, state, error, plan, int(weeks), int(cents),
                     paid.get(i, [])) for i, uid, kind, state, error, plan, weeks, cents in rows]


def plans(stores):
    found = []
    for kind in KINDS:
        days = {}
        for plan, date, version, day in sql(
                stores, "SELECT plan_id, date, version, REPLACE(TO_BASE64(day), '\\n', '')"
                f" FROM {kind}_day ORDER BY date"):
            days.setdefault(plan, {})[date] = Day(int(version), mark_of(decoded(day)))
        for i, uid, version, weeks in sql(
                stores, f"SELECT id, uid, version, total_weeks FROM {kind}_plan"
                " WHERE deleted IS NULL"):
            found.append(MadePlan(i, int(uid), kind, int(version), int(weeks), days.get(i, {})))
    return found


def decoded(text):
    return json.loads(base64.b64decode(text))


def owners(stores):
    """{uid: (version, untold, {kind: active plan})}"""
    return {int(uid): (int(version), int(untold), {"training": t, "nutrition": n})
            for uid, version, untold, t, n in sql(
                stores, "SELECT uid, version, untold, COALESCE(training, ''),"
                " COALESCE(nutrition, '') FROM plan_user")}


def reserved(stores):
    return [row[0] for row in sql(stores, "SELECT id FROM job_reserve WHERE queue = 'plan'")]


def cached(stores):
    """What Redis has that counts: {key: value}, of hashes {field: value}."""
    link, found = redis_link(stores), {}
    run = link("INFO", "server").split(b"run_id:")[1][:40].decode()
    hashed = lambda key: (lambda v: {v[i].decode(): v[i + 1].decode() for i in
                                     range(0, len(v), 2)})(link("HGETALL", key))
    for fence in scan(link, "user:*:plans"):
        found[fence.decode()] = {**hashed(fence), "counts": hashed(fence).get("run") == run}
    for pattern in ("training_plan:*", "nutrition_plan:*", "daily_nutrition:*",
                    "generation_task:*", "user:*:pending_tasks"):
        for key in scan(link, pattern):
            kind = link("TYPE", key)
            found[key.decode()] = (
                hashed(key) if kind == b"hash" else
                {m.decode() for m in link("SMEMBERS", key)} if kind == b"set" else
                (link("GET", key) or b"").decode())
    return found
