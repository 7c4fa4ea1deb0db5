"""Plans over HTTP (PLN-2..4): made, paid once, read, changed, and what Redis has of them (seed
002), while nodes and stores die."""
import csv
import io
import json
import os
import signal
import subprocess
import time
import urllib.request

from admins import admin
from client import Api, cli
from harness import (SCALE, crowd, equal, freeze, http, ok, redis_link, run_tests, sql, test,
                     wait_for)
from own_redis import Redis
from screening import audited, person, server
from sim import Sim
from tasks import money as settled

START = "2027-03-01"
DAY = 24 * 3600


def with_plans(name, *sim_options, private=False, **settings):
    def wrap(fn):
        @test(name, private)
        def _():
            with Sim(*sim_options) as sim, server(sim, papers=200, **settings) as m:
                fn(m, sim)
    return wrap


def submit(api, kind="training", weeks=1, **more):
    variables = {"start_date": START, "weeks": weeks, "goals": "feel better"}
    return api("POST", "/api/plans", {"kind": kind, "variables": variables, **more})


def task(api, task_id):
    r = api("GET", f"/api/generation/{task_id}")
    assert r.status == 200, r
    return r.body


def ended(api, task_id, status="completed", seconds=30):
    return wait_for(lambda: task(api, task_id)["status"] == status, seconds)


def make_plan(api, kind="training", weeks=1, **more):
    r = submit(api, kind, weeks, **more)
    assert r.status == 202, r
    assert ended(api, r.body["task_id"]), task(api, r.body["task_id"])
    return task(api, r.body["task_id"])["plan_id"]


def token(api, name, scope):
    r = api("POST", "/api/tokens", {"name": name, "scopes": [scope]})
    assert r.status == 201, r
    return Api(api.server, r.body["token"])


def paid(m, api):
    """How many plans MySQL has payments of."""
    return int(sql(m, f"SELECT COUNT(*) FROM ledger_request WHERE uid = {api.uid}"
                      " AND request_id LIKE 'plan:%'")[0][0])


def money(m, api):
    """Balance and what is reserved, as they settle."""
    return settled(api)


def kill_nodes(m):
    pids = m.nodes()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: len(m.nodes()) == len(pids) and not set(pids) & set(m.nodes()), 20)


class Holding:
    """A transaction of another program that holds what a statement locks."""

    def __init__(self, m, statement):
        self.p = subprocess.Popen(
            ["mariadb", "--no-defaults", "-uroot", "-S", m.sql_socket, m.database, "--unbuffered",
             "-N"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.p.stdin.write(f"BEGIN; {statement}; SELECT 'held';\n")
        self.p.stdin.flush()
        while "held" not in self.p.stdout.readline():
            pass

    def release(self):
        self.p.stdin.write("ROLLBACK;\n")
        self.p.stdin.close()
        self.p.wait(20)


# --- what the routes do ---

@with_plans("a plan from its submission to its end", "--latency-ms", "20")
def _(m, sim):
    ada, bob = person(m, "ada", "10.00"), person(m, "bob", "0.40")
    r = submit(ada, weeks=2, request_id="first")
    equal(r.status, 202, "submitted", r)
    first = r.body["task_id"]
    ok(first.startswith(f"{ada.uid}-") and len(first) == len(f"{ada.uid}-") + 32, "by its id",
       first)
    ok(ended(ada, first), "made", task(ada, first))
    done = task(ada, first)
    equal((done["progress"], done["message"], done["cost"], done["kind"]),
          (100, None, "1.00", "training"), "it says so", done)
    equal(money(m, ada), ("9.00", "0.00"), "and is paid")
    ok((redis_link(m)("HGET", "sys:keyring", "jobs") or b"").startswith(b"1.000 "),
       "its call is counted as one of jobs, for their share of the rate")
    equal(submit(ada, weeks=2, request_id="first").body["task_id"], first,
          "the same request is the same task")
    equal(submit(ada, weeks=3, request_id="first").error, (409, "conflict", None),
          "another one with its id is refused")
    plan = ada("GET", f"/api/plans/{done['plan_id']}").body["plan"]
    equal((plan["start_date"], plan["end_date"], plan["total_weeks"], plan["active"],
           plan["version"], plan["simulated"], len(plan["days"])),
          (START, "2027-03-14", 2, True, 1, True, 14), "the plan", plan)
    ok(plan["difficulty"] in ("easy", "medium", "hard") and plan["daily_calories"] is None
       and plan["variables"]["weeks"] == 2, "with all that a training has", plan)
    day = ada("GET", f"/api/plans/{plan['plan_id']}/days/{START}").body
    equal({**day["day"], "version": day["version"]}, plan["days"][0], "a day as in the plan")
    meals = make_plan(ada, "nutrition")
    plan2 = ada("GET", "/api/plans/active?kind=nutrition").body["plan"]
    ok(plan2["plan_id"] == meals and plan2["daily_calories"] > 0
       and abs(sum(plan2["macro_ratio"].values()) - 1) < 0.03, "a nutrition", plan2)
    listed = ada("GET", "/api/plans?limit=1").body
    equal(listed["plans"][0]["plan_id"], meals, "the newest first")
    rest = ada("GET", f"/api/plans?limit=1&cursor={listed['next']}").body
    equal((rest["plans"][0]["plan_id"], rest["next"]), (plan["plan_id"], None), "then the other")
    equal([p["kind"] for p in ada("GET", "/api/plans?kind=training").body["plans"]], ["training"],
          "or one kind")
    r = submit(bob)
    equal(r.error, (402, "funds", None), "without money it is refused", r)
    ok("costs 1.00" in r.body["error"]["message"] and "0.40 free" in r.body["error"]["message"],
       "with what is missing", r)
    equal(bob("GET", "/api/generation").body["tasks"], [], "and nothing is submitted")
    equal((bob("GET", f"/api/plans/{meals}").status, bob("GET", f"/api/generation/{first}").status,
           bob("GET", f"/api/plans/{meals}/days/{START}").status,
           bob("DELETE", f"/api/generation/{first}").status,
           bob("POST", f"/api/plans/{meals}/activate").status,
           bob("DELETE", f"/api/plans/{meals}").status), (404,) * 6, "another's are not found")
    for body, field in (({"kind": "diet"}, "kind"), ({}, "kind"),
                        ({"kind": "training"}, "variables.goals"),
                        ({"kind": "training", "variables": {"goals": "x", "weeks": 13}},
                         "variables.weeks"),
                        ({"kind": "training",
                          "variables": {"goals": "x", "start_date": "2027-02-30"}},
                         "variables.start_date"),
                        ({"kind": "training", "variables": [1]}, "variables"),
                        ({"kind": "training", "template": 0}, "template"),
                        ({"kind": "training", "request_id": ""}, "request_id")):
        equal(ada("POST", "/api/plans", body).error, (400, "invalid", field), f"refused: {body}")
    equal(submit(ada, template=999999).status, 404, "a template that is none")
    equal(http(m.port, "/api/plans", method="POST").status, 401, "without a session")
    ok(audited(m), "every cent is where it belongs")


@with_plans("days are changed by their version, plans activated and deleted")
def _(m, sim):
    ada = person(m, "ada")
    first, second = make_plan(ada), make_plan(ada)
    path = f"/api/plans/{first}/days/{START}"
    was = ada("GET", path).body
    changed = {**was["day"], "focus_area": "back", "duration": 30}
    if changed["day_type"] == "rest":
        changed.update(day_type="strength", exercises=[{"name": "row", "sets": 3, "reps": 8}])
    r = ada("PUT", path, {"version": was["version"], "day": changed})
    equal((r.status, r.body["version"], r.body["day"]["focus_area"]), (200, 2, "back"), "changed",
          r)
    equal(ada("PUT", path, {"version": was["version"], "day": changed}).error,
          (409, "conflict", None), "a stale version is refused")
    equal([ada("GET", path).body["day"]["focus_area"] for _ in range(4)], ["back"] * 4,
          "every node has it")
    equal(ada("GET", f"/api/plans/{first}").body["plan"]["days"][0]["focus_area"], "back",
          "in the plan, too")
    for body, field in (({"day": changed}, "version"), ({"version": 2}, "day"),
                        ({"version": 2, "day": {**changed, "sauce": 1}}, "day.sauce"),
                        ({"version": 2, "day": {**changed, "date": "2027-03-02"}}, "day"),
                        ({"version": 2, "day": {**changed, "duration": -1}}, "day.duration"),
                        ({"version": 2, "day": {**changed, "exercises": []}}, "day")):
        equal(ada("PUT", path, body).error, (400, "invalid", field), f"refused: {body}"[:70])
    equal(ada("PUT", f"/api/plans/{first}/days/2027-03-08", {"version": 1, "day": changed}).status,
          404, "a day that it does not have")
    equal(ada("GET", "/api/plans/active?kind=training").body["plan"]["plan_id"], first,
          "the first plan is active")
    r = ada("POST", f"/api/plans/{second}/activate")
    equal((r.body["plan_id"], r.body["was"]), (second, first), "the other is activated")
    equal([ada("GET", "/api/plans/active?kind=training").body["plan"]["plan_id"]
           for _ in range(4)], [second] * 4, "one step, on every node")
    equal([p["active"] for p in ada("GET", "/api/plans").body["plans"]], [True, False], "so listed")
    equal(ada("DELETE", f"/api/plans/{second}").status, 200, "deleted")
    equal((ada("GET", f"/api/plans/{second}").status,
           ada("GET", "/api/plans/active?kind=training").status,
           ada("DELETE", f"/api/plans/{second}").status), (404, 404, 404), "it is gone")
    gone = lambda: (not redis_link(m)("KEYS", f"*{second}*") and
                    sql(m, f"SELECT COUNT(*) FROM training_day WHERE plan_id = '{second}'")
                    == [["0"]])
    ok(wait_for(gone, 10), "out of both stores")


def ledger_jobs(rows):
    return [(r["kind"], r["amount"], r["job"]) for r in rows if r["kind"] == "deduction"]


@with_plans("the ledger tells what a job cost from what an admin took")
def _(m, sim):
    root, ada, bob = admin(m, "root"), person(m, "ada", "20.00"), person(m, "bob", "1.00")
    first = make_plan(ada)
    mine = f"plan:{sql(m, f'SELECT id FROM generation_task WHERE uid = {ada.uid}')[0][0]}"
    path = f"/api/admin/users/{ada.uid}"
    for amount, request in (("0.10", "plan:x"), ("0.20", "plain"), ("0.30", "extract:1-2")):
        r = root("POST", path + "/deduct", {"amount": amount, "request_id": request})
        assert r.status == 200, r
    equal(cli(m, "user", "deduct", "ada", "0.40", "--request", "plan:y").returncode, 0,
          "an operator takes some")
    r = root("POST", path + "/deduct", {"amount": "1.00", "request_id": mine})
    equal((r.status, ada.me().body["balance"]), (200, "18.00"), "what is paid is not taken again")
    second = make_plan(ada, "nutrition")
    ok(first != second, "two plans are paid")
    want = [("deduction", "1.00", "plan"), ("deduction", "0.40", None), ("deduction", "0.30", None),
            ("deduction", "0.20", None), ("deduction", "0.10", None), ("deduction", "1.00", "plan")]
    for query in ("limit=500", "limit=1", "limit=3", "charges=0&limit=500", "charges=0&limit=2"):
        rows = [e for page in ada.pages(f"/api/ledger?{query}") for e in page["entries"]]
        equal(ledger_jobs(rows), want, f"the ledger says which were for plans: {query}")
        equal([e["job"] for e in rows if e["kind"] != "deduction"], [None], "nothing else is")
    equal(ledger_jobs([r for page in root.pages(f"{path}/ledger?limit=2")
                       for r in page["records"]]), want, "to admins, too")
    request = urllib.request.Request(f"http://127.0.0.1:{m.port}/api/ledger.csv",
                                     headers={"Authorization": f"Bearer {ada.token}"})
    with urllib.request.urlopen(request, timeout=30) as r:
        table = list(csv.DictReader(io.StringIO(r.read().decode("utf-8-sig"))))
    equal([(e["kind"], e["out"], e["job"] or None) for e in table if e["out"]], want,
          "and in the table")
    equal([e["job"] for e in bob("GET", "/api/ledger").body["entries"]], [None],
          "nobody sees another's")


@with_plans("a token reaches plans within its scope")
def _(m, sim):
    ada = person(m, "ada")
    plan = make_plan(ada)
    whole, reads, other = (token(ada, n, s) for n, s in (("a", "plan"), ("b", "read"),
                                                        ("c", "screen")))
    equal((submit(whole).status, submit(reads).error[:2], submit(other).error[:2]),
          (202, (403, "token_scope"), (403, "token_scope")), "to submit")
    equal([t("GET", f"/api/plans/{plan}").status for t in (whole, reads, other)], [200, 200, 403],
          "to read")
    equal([t("POST", f"/api/plans/{plan}/activate").status for t in (whole, reads, other)],
          [200, 403, 403], "to change")


# --- what Redis has: every row of the seed's tables ---

SEED = [  # key, type, fields, lifetime in seconds
    ("training_plan:{training}", "hash",
     {"id", "name", "start_date", "end_date", "difficulty", "total_weeks", "plan_data", "version"},
     None),
    ("training_plan:{uid}:active", "string", None, None),
    ("training_plan:{training}:schedule:{date}", "hash",
     {"day_type", "focus_area", "exercises", "duration", "estimated_calories", "version"}, 7 * DAY),
    ("nutrition_plan:{nutrition}", "hash", {"id", "name", "daily_calories", "macro_ratio",
                                            "version"}, 30 * DAY),
    ("nutrition_plan:{uid}:active", "string", None, None),
    ("daily_nutrition:{uid}:{date}", "hash",
     {"target_calories", "target_protein", "target_carbs", "target_fat", "meals", "version"},
     7 * DAY),
    ("generation_task:{task}", "hash",
     {"task_id", "user_id", "type", "status", "progress", "result_data", "error_message",
      "reason_code", "created_at"}, DAY),
    ("user:{uid}:pending_tasks", "set", None, None),
    ("template:training:{template}", "hash",
     {"id", "name", "category", "subcategory", "template", "variables", "is_default", "version"},
     30 * DAY),
    ("template:training:default", "string", None, 30 * DAY),
    ("template:categories", "set", None, 30 * DAY),
]


@with_plans("every key of the seed, as Redis has it", "--latency-ms", "1500")
def _(m, sim):
    ada = person(m, "ada")
    names = {"uid": ada.uid, "date": START, "training": make_plan(ada),
             "nutrition": make_plan(ada, "nutrition")}
    names["task"] = submit(ada).body["task_id"]  # and is pending
    names["template"] = sql(m, "SELECT id FROM prompt_template WHERE category = 'training'"
                               " AND is_default = 1")[0][0]
    link = redis_link(m)
    for name, kind, fields, seconds in SEED:
        key = name.format(**names)
        found = link("TYPE", key).decode()
        if not equal(found, kind, f"{name} is a {kind}"):
            continue
        ttl = link("PTTL", key) / 1000
        ok(ttl < 0 if seconds is None else seconds - 60 < ttl <= seconds,
           f"{name} lives {'without end' if seconds is None else f'{seconds} s'}", ttl)
        if fields:
            has = {f.decode() for f in link("HKEYS", key)}
            ok(fields <= has, f"{name} has its fields", fields - has)
    get = lambda key: {k.decode(): v.decode() for k, v in
                       zip(*[iter(link("HGETALL", key.format(**names)))] * 2)}
    plan = get("training_plan:{training}")
    equal((plan["id"], plan["total_weeks"], len(json.loads(plan["plan_data"]))),
          (names["training"], "1", 7), "a plan has all its days in plan_data")
    ok(isinstance(json.loads(get("training_plan:{training}:schedule:{date}")["exercises"]), list),
       "exercises are JSON")
    equal(set(json.loads(get("daily_nutrition:{uid}:{date}")["meals"])),
          {"breakfast", "lunch", "dinner", "snacks"}, "so are meals")
    equal(set(json.loads(get("nutrition_plan:{nutrition}")["macro_ratio"])),
          {"protein", "carbs", "fat"}, "and the ratio")
    equal(link("GET", f"training_plan:{ada.uid}:active").decode(), names["training"],
          "the active plan by its id")
    now = get("generation_task:{task}")
    equal((now["task_id"], now["user_id"], now["type"], now["status"], now["result_data"],
           now["error_message"]),
          (names["task"], str(ada.uid), "training_plan", "generating", "", ""), "a task", now)
    ok(abs(int(now["created_at"]) - time.time()) < 60, "since when", now)
    equal(link("SMEMBERS", f"user:{ada.uid}:pending_tasks"), [names["task"].encode()],
          "it is pending")
    equal([t["task_id"] for t in ada("GET", "/api/generation").body["tasks"]], [names["task"]],
          "and listed")
    ok(ended(ada, names["task"]), "then made")
    ok(wait_for(lambda: link("SCARD", f"user:{ada.uid}:pending_tasks") == 0, 10), "none is pending")
    now = get("generation_task:{task}")
    equal((now["status"], now["progress"], now["result_data"]),
          ("completed", "100", task(ada, names["task"])["plan_id"]), "with its plan", now)


# --- the AI ---

@with_plans("progress moves while the answer streams, and a task is cancelled meanwhile",
            "--latency-ms", "4000")
def _(m, sim):
    ada = person(m, "ada", "5.00")
    first = submit(ada, weeks=4).body["task_id"]
    seen = set()
    until = time.monotonic() + 30 * SCALE
    while task(ada, first)["status"] == "generating" and time.monotonic() < until:
        seen.add(task(ada, first)["progress"])
        time.sleep(0.05)
    equal(task(ada, first)["status"], "completed", "made", task(ada, first))
    ok(len([p for p in seen if 10 <= p <= 70]) >= 3, "it was seen to grow", sorted(seen))
    second = submit(ada, weeks=4).body["task_id"]
    ok(wait_for(lambda: task(ada, second)["progress"] >= 10, 10), "another one has begun")
    metrics = lambda: sum(float(l.split()[-1]) for l in m.get("/metrics").body.decode().splitlines()
                          if l.startswith('millrace_jobs_working{') and 'queue="plan"' in l)
    equal(metrics(), 1, "and is worked on")
    r = ada("DELETE", f"/api/generation/{second}")
    equal((r.status, r.body["status"], r.body["reason_code"]), (200, "cancelled", "cancelled"),
          "it is cancelled", r)
    began = time.monotonic()
    ok(wait_for(lambda: metrics() == 0, 5), "work on it ends")
    ok(time.monotonic() - began < 1.2 * crowd(), "within a second", time.monotonic() - began)
    equal(ada("DELETE", f"/api/generation/{second}").error, (409, "conflict", None), "once")
    equal((task(ada, second)["status"], task(ada, second)["plan_id"]), ("cancelled", None),
          "so it is")
    equal((money(m, ada), paid(m, ada)), (("4.00", "0.00"), 1), "and costs nothing")
    ok(audited(m), "every cent is where it belongs")


@with_plans("answers that are wrong", "--plan-fault", "1")
def _(m, sim):
    ada = person(m, "ada", "5.00")
    for kind in ("training", "nutrition"):
        made = make_plan(ada, kind)
        equal(sql(m, "SELECT asks FROM generation_task ORDER BY number DESC LIMIT 1"), [["2"]],
              f"a {kind}: asked again with the complaint")
        equal(len(ada("GET", f"/api/plans/{made}").body["plan"]["days"]), 7, "then it is right")
    equal((money(m, ada), paid(m, ada)), (("3.00", "0.00"), 2), "each is paid once")


@with_plans("answers that stay wrong", "--plan-fault", "1", "--plan-fault-stays")
def _(m, sim):
    ada = person(m, "ada", "5.00")
    for kind in ("training", "nutrition"):
        t = submit(ada, kind).body["task_id"]
        ok(ended(ada, t, "failed"), f"a {kind} fails", task(ada, t))
        ok("no plan that can be used" in task(ada, t)["message"], "and says why", task(ada, t))
        equal(task(ada, t)["reason_code"], "bad_answer", "also by a word")
    equal((money(m, ada), paid(m, ada)), (("5.00", "0.00"), 0), "they cost nothing")
    equal(ada("GET", "/api/plans").body["plans"], [], "there is no plan")


@test("an AI that is away")
def _():
    with Sim() as sim:
        port = sim.port
        with server(sim, papers=200) as m:
            ada = person(m, "ada", "5.00")
            sim.kill()
            t = submit(ada).body["task_id"]
            ok(wait_for(lambda: task(ada, t)["message"], 30), "the task says what it waits for",
               task(ada, t))
            ok("AI service" in (task(ada, t)["message"] or ""), "the service", task(ada, t))
            equal(task(ada, t)["reason_code"], "service_down", "also by a word")
            equal(task(ada, t)["status"], "generating", "it waits")
            equal(money(m, ada)[0], "5.00", "and costs nothing so far")
            with Sim(port=port):
                ok(ended(ada, t, seconds=90), "when the AI is back, the plan is made", task(ada, t))
                equal((task(ada, t)["message"], task(ada, t)["reason_code"]), (None, None),
                      "and there is nothing to say")
            equal((money(m, ada), paid(m, ada)), (("4.00", "0.00"), 1), "it is paid once")


@with_plans("a task says by a word what it waits for", "--latency-ms", "1500", private=True)
def _(m, sim):
    root, ada = admin(m, "root"), person(m, "ada", "3.00", permission=1)
    says = lambda t: (task(ada, t)["reason_code"], task(ada, t)["message"])
    comes = lambda t, word: wait_for(lambda: says(t)[0] == word, 30)
    of_ada = f"/api/admin/users/{ada.uid}"
    first, second = submit(ada).body["task_id"], submit(ada).body["task_id"]
    ok(wait_for(lambda: "permission_used" in (says(first)[0], says(second)[0]), 20),
       "of two tasks and one permission one waits", says(first), says(second))
    ok(ended(ada, first) and ended(ada, second), "both are made", says(first), says(second))
    equal((says(first), says(second)), ((None, None),) * 2, "with nothing to say")
    sql(m, "UPDATE api_list SET is_active = 0")
    time.sleep(3 * crowd())  # all nodes have seen it
    third = submit(ada).body["task_id"]
    ok(comes(third, "no_key") and "no active key" in says(third)[1], "there is no key", says(third))
    pid = m.pid_of("mariadb")
    freeze(pid)
    try:
        away = lambda: ada("GET", f"/api/generation/{third}")
        ok(wait_for(lambda: away().status == 200 and away().body.get("degraded"), 30),
           "MySQL is away: Redis knows the task", away())
        equal(away().body["reason_code"], "no_key", "and what it waits for")
    finally:
        os.kill(pid, signal.SIGCONT)
    ok(wait_for(lambda: all(ada("GET", "/api/plans").status == 200 for _ in range(8)), 30),
       "MySQL is back, on every node")
    set_permission = lambda n: root("POST", of_ada + "/permission", {"permission": n}).status
    equal(set_permission(0), 200, "the permission is taken")
    ok(comes(third, "no_permission"), "that comes first", says(third))
    equal((set_permission(1), root("POST", of_ada + "/deduct", {
        "amount": "0.50", "request_id": "half"}).status), (200, 200), "then some of the money")
    sql(m, "UPDATE api_list SET is_active = 1")
    ok(comes(third, "no_money") and "less than 1.00" in says(third)[1], "the balance is too low",
       says(third))
    equal(ada("GET", "/api/generation").body["tasks"][0]["reason_code"], "no_money", "so listed")
    r = ada("DELETE", f"/api/generation/{third}")
    equal((r.status, says(third)), (200, ("cancelled", None)), "it is cancelled")
    ok(audited(m), "every cent is where it belongs")


# --- deaths ---

@with_plans("nodes are killed at each step", "--latency-ms", "300")
def _(m, sim):
    ada = person(m, "ada", "10.00")
    make_plan(ada)  # plan_user has a row to be locked
    asked = lambda: sim.stats()["requests"]
    # While the AI is asked.
    t = submit(ada).body["task_id"]
    time.sleep(0.15)
    kill_nodes(m)
    ok(ended(ada, t, seconds=40), "killed while it was asked: completed", task(ada, t))
    equal((paid(m, ada), money(m, ada)), (2, ("8.00", "0.00")), "and paid once")
    # The answer was kept; the payment cannot end.
    row = lambda what, t: sql(m, f"SELECT {what} FROM generation_task WHERE id = '{t}'")[0][0]
    t = submit(ada).body["task_id"]
    held = Holding(m, f"SELECT * FROM user_info WHERE uid = {ada.uid} FOR UPDATE")
    ok(wait_for(lambda: row("paying <> 0", t) == "1", 20), "another is being paid")
    equal(row("result IS NOT NULL", t), "1", "its answer is kept")
    equal(ada("DELETE", f"/api/generation/{t}").status, 409, "it cannot be cancelled any more")
    before = asked()
    kill_nodes(m)
    held.release()
    ok(ended(ada, t, seconds=40), "killed while it was paid: completed", task(ada, t))
    equal((paid(m, ada), money(m, ada)), (3, ("7.00", "0.00")), "and paid once")
    equal(asked(), before, "and not asked again")
    # It is paid; the rows cannot be written.
    held = Holding(m, f"SELECT * FROM plan_user WHERE uid = {ada.uid} FOR UPDATE")
    t = submit(ada).body["task_id"]
    ok(wait_for(lambda: paid(m, ada) == 4, 20), "another is paid, and its rows wait")
    before = asked()
    kill_nodes(m)
    held.release()
    ok(ended(ada, t, seconds=40), "killed before the rows: completed", task(ada, t))
    equal((paid(m, ada), money(m, ada)), (4, ("6.00", "0.00")), "and paid once")
    equal(asked(), before, "and not asked again")
    equal(len(ada("GET", "/api/plans").body["plans"]), 4, "there are as many plans")
    ok(audited(m), "every cent is where it belongs")


def emptied(redis):
    """Another process, with nothing in it."""
    redis.process.kill()
    redis.process.wait()
    for name in os.listdir(redis.dir):
        if name != "s" and os.path.isfile(f"{redis.dir}/{name}"):
            os.remove(f"{redis.dir}/{name}")
    redis.__enter__()


@test("Redis is emptied, and is away")
def _():
    with Sim("--latency-ms", "50") as sim, Redis() as redis, server(
            sim, papers=200, MILLRACE_REDIS_URL=redis.url,
            MILLRACE_ALLOW_UNSAFE_STORES="true") as m:
        m.stores["MILLRACE_REDIS_URL"] = redis.url  # for commands
        ada = person(m, "ada", "10.00")
        plan = make_plan(ada)
        path = f"/api/plans/{plan}/days/{START}"
        day = ada("GET", path).body
        redis.process.kill()
        away = lambda: ada("GET", path)
        ok(wait_for(lambda: away().status == 200 and away().body.get("degraded"), 20),
           "Redis is away: a day is read from MySQL, marked", away())
        equal(away().body["day"], day["day"], "as it is")
        ok(ada("GET", f"/api/plans/{plan}").body.get("degraded"), "so is a plan")
        changed = {**day["day"], "focus_area": "elsewhere"}
        equal(ada("PUT", path, {"version": 1, "day": changed}).status, 200, "a day is changed")
        equal(submit(ada).status, 503, "nothing is submitted")
        emptied(redis)
        ok(wait_for(m.ready, 40), "Redis is back, empty")
        equal([ada("GET", path).body["day"]["focus_area"] for _ in range(4)], ["elsewhere"] * 4,
              "the change is read")
        t = submit(ada).body["task_id"]
        emptied(redis)
        ok(wait_for(m.ready, 40), "it is emptied with a task in it")
        # An empty Redis does not know the calls of the last minute, and takes all keys that there
        # are for used up: only one that comes later is not.
        ok(wait_for(lambda: redis.ask("EXISTS sys:window:1") == ":1", 10), "permits are counted")
        sql(m, "INSERT INTO api_list (api_key, rpm_limit, tpm_limit)"
               " VALUES ('sk-new', 1000000, 1000000000)")
        ok(ended(ada, t, seconds=60), "the row brings the task back: completed", task(ada, t))
        equal(paid(m, ada), 2, "paid once")
        ok(audited(m), "every cent is where it belongs")


@with_plans("MySQL is away", "--latency-ms", "50", private=True)
def _(m, sim):
    ada = person(m, "ada", "10.00")
    plan = make_plan(ada)
    path = f"/api/plans/{plan}/days/{START}"
    ada("GET", path), ada("GET", f"/api/plans/{plan}")
    pid = m.pid_of("mariadb")
    freeze(pid)
    try:
        ok(wait_for(lambda: ada("GET", "/api/plans").status == 503, 20), "MySQL hangs")
        equal(submit(ada).status, 503, "nothing is submitted")
        equal((ada("GET", path).status, ada("GET", f"/api/plans/{plan}").status,
               ada("GET", "/api/plans/active?kind=training").status), (200, 200, 200),
              "plans are read from Redis")
        equal(ada("PUT", path, {"version": 1, "day": ada("GET", path).body["day"]}).status, 503,
              "nothing is changed")
    finally:
        os.kill(pid, signal.SIGCONT)
    ok(wait_for(lambda: submit(ada).status == 202, 30), "when it is back, all goes on")


@with_plans("limits and metrics", MILLRACE_LIMIT_TRAINING_PLAN_MINUTE="2")
def _(m, sim):
    ada = person(m, "ada")
    first = submit(ada, request_id="r")
    equal([submit(ada, request_id="r").status for _ in range(3)], [202] * 3,
          "repeats are not counted")
    equal(submit(ada).status, 202, "a second one")
    r = submit(ada)
    equal(r.error[:2], (429, "rate"), "the limit of a minute", r)
    ok(1 <= int(r.headers["retry-after"]) <= 60, "and when to come back", r.headers)
    equal(submit(ada, "nutrition").status, 202, "is that of its kind")
    ok(ended(ada, first.body["task_id"]), "made")
    ada("GET", f"/api/plans/{task(ada, first.body['task_id'])['plan_id']}/days/{START}")
    text = m.get("/metrics").body.decode()
    for name in ('millrace_cache_hits_total{kind="training_day"', "millrace_plans_made_total",
                 'millrace_cache_misses_total{kind="active_plan"', "millrace_plan_store_seconds",
                 'millrace_jobs_done_total{queue="plan"'):
        ok(name in text, f"there is {name}")


run_tests()
