"""A drill for backups: runs under way, a backup meanwhile, everything killed; after the restore the
runs go on."""
import contextlib
import json
import os
import signal
import subprocess
import time

import tasks
from admins import admin
from client import Api
from harness import equal, freeze, ok, redis_link, run, sql, wait_for
from screening import audited, charged, person, reaches, submit, view

DRILL_PAPERS = 400  # of each run
DOCUMENTS, ITEMS = 60, 3000


def take(m, path, *args, status=0, name="a backup"):
    done = run("backup", *args, str(path), env=settings(m), timeout=120)
    ok(done.returncode == status, name, done.stdout, done.stderr)
    return done


def restore(env, path, *args, status=0, name="a restore"):
    done = run("restore", *args, str(path), env=env, timeout=120)
    ok(done.returncode == status, name, done.stdout, done.stderr)
    return done


def manifest(path):
    with open(f"{path}/manifest.json", encoding="utf-8") as f:
        return json.load(f)


def rows_of(path):
    return {t["name"]: t["rows"] for t in manifest(path)["tables"]}


def settings(m):
    return {k: v for k, v in m.env.items() if k.startswith("MILLRACE_")}


def kill_all(m, mysql=None):
    """Everything at once, the stores too. mysql: the pid of one that is not private."""
    pids = [m.process.pid, *m.nodes(), m.pid_of("redis"), mysql or m.pid_of("mariadb")]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    m.process.wait(20)
    wait_for(lambda: not any(os.path.exists(f"/proc/{p}/cwd") for p in pids[1:]), 20)


def again(api, m):
    """The same user, logged in at a server that was started anew."""
    other = Api(m)
    assert other.login(api.name).status == 200
    other.uid = api.uid
    return other


def someone(m, name, permission=4):
    api = person(m, name, permission=permission)
    api.name = name
    return api


# --- the drill ---

def under_way(m, people):
    runs = [(api, *submit(api, DRILL_PAPERS)) for api in people]
    ok(wait_for(lambda: all(view(a, q)["finished"] >= 40 for a, q, _ in runs), 60),
       "two runs are under way")
    return runs


def freeze_nodes(m, people):
    """The nodes, stopped while some charges are in Redis alone, and no transaction is open: its
    locks would stop a backup until the supervisor kills the node that holds them."""
    nodes, link = m.nodes(), redis_link(m)
    for _ in range(100):
        for pid in nodes:
            freeze(pid)
        if any(link("LLEN", f"billing_queue:{a.uid}") for a in people) and \
                sql(m, "SELECT COUNT(*) FROM information_schema.innodb_trx") == [["0"]]:
            return nodes
        for pid in nodes:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
    raise AssertionError("every charge is synced at once")


def while_frozen(m, runs, act):
    """What act returns, and how many papers had been charged."""
    nodes = freeze_nodes(m, [a for a, _, _ in runs])
    try:
        results = sum(redis_link(m)("HLEN", f"result:{a.uid}:{q}") for a, q, _ in runs)
        return act(), results
    finally:
        for pid in nodes:
            os.kill(pid, signal.SIGCONT)


def whole(path):
    """What must be true of the folder."""
    names = sorted(os.listdir(path))
    equal([n for n in names if not n.endswith(".tsv.zst")],
          ["SHA256SUMS", "manifest.json", "redis.json"], "the folder has nothing unfinished")
    equal((os.stat(path).st_mode & 0o777, {os.stat(f"{path}/{n}").st_mode & 0o777 for n in names}),
          (0o700, {0o600}), "only its owner may read it")
    sums = subprocess.run(["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=path,
                          capture_output=True, text=True)
    equal((sums.returncode, sums.stdout.count(": OK")), (0, len(names) - 1),
          "sha256sum agrees with it", sums.stdout, sums.stderr)
    with open(f"{path}/manifest.json", encoding="utf-8") as f:
        ok("password" not in json.dumps([t["file"] for t in json.load(f)["tables"]]),
           "the manifest has no secrets")


def goes_on(m, runs):
    """Every paper of every run is judged and charged once, on what was restored."""
    # An empty Redis does not know the calls of the last minute, so all keys rest for so long; a new
    # key has no such minute.
    sql(m, "INSERT INTO api_list (api_key, rpm_limit, tpm_limit)"
           " VALUES ('sk-new', 1000000, 1000000000)")
    for api, qid, papers in runs:
        api = again(api, m)
        ok(reaches(api, qid, "DONE", 60), "a run that was under way goes on to its end")
        v = view(api, qid)
        equal((v["finished"], v["failed"]), (papers, 0), "with all of its papers")
        wait_for(lambda: charged(m, qid) == round(float(v["cost"]) * 100), 20)
        equal(charged(m, qid), round(float(v["cost"]) * 100), "its cost is what was charged")
        twice = sql(m, "SELECT COUNT(*), COUNT(DISTINCT doi) FROM billing_log"
                       f" WHERE qid = '{qid}' AND kind = 'charge'")[0]
        equal(twice, [str(papers)] * 2, "every paper was charged once")
    audited(m)


# --- what is no run ---

class Jobs:
    """A pool, a task of extraction that asks the AI one question at a time, and a plan that waits,
    because its queue is paused."""

    def __init__(self, m):
        self.api = someone(m, "cleo", permission=1)
        self.admin = admin(m, "warden")
        numbers = ", ".join(f"(7, 'item {i}')" for i in range(ITEMS))
        sql(m, f"INSERT INTO titles (group_id, title) VALUES {numbers}")
        self.given = self.pop(self.api)
        last = tasks.pdf(tasks.text_of(DOCUMENTS).replace("\n", " "))
        self.documents = [*tasks.uploads(self.api, DOCUMENTS - 1),
                          tasks.upload(self.api, last, "last.pdf")]

    def begin(self, m):
        self.task = tasks.start(self.api, tasks.template(self.api), self.documents)
        assert self.admin("POST", "/api/admin/queues/plan/pause", {}).status == 200
        r = self.api("POST", "/api/plans", {"kind": "training", "variables": {
            "start_date": "2027-03-01", "weeks": 1, "goals": "feel better"}})
        assert r.status == 202, r
        self.plan = r.body["task_id"]
        ok(wait_for(lambda: tasks.states(m, self.task).get("completed"), 30),
           "a task of extraction is under way")

    @staticmethod
    def pop(api):
        """Ids of items that were handed out."""
        r = api("POST", "/api/pools/titles/7/pop", {"count": 50})
        assert r.status == 200, r
        return {item["id"] for item in r.body["items"]}

    def wait(self, m):
        """What MySQL has at this moment is not the end of either."""
        states = tasks.states(m, self.task)
        plan = sql(m, f"SELECT state FROM generation_task WHERE id = '{self.plan}'")[0][0]
        ok(states.get("completed") and states.get("pending") and plan == "pending",
           "documents of the task wait, and so does the plan", states, plan)

    def go_on(self, m):
        """Each document and the plan are made and paid once, on what was restored."""
        api = again(self.api, m)
        ok(tasks.ended(api, self.task, seconds=60), "the task of extraction goes on to its end",
           tasks.status(api, self.task))
        doses = [row["values"]["dose"]["value"] for row in tasks.rows(api, self.task)]
        equal(doses, [n + 0.5 for n in range(1, DOCUMENTS + 1)], "with the values of its documents")
        equal(tasks.paid(m, api), DOCUMENTS, "every document was paid once")
        self.admin.server = m
        equal((api("GET", f"/api/generation/{self.plan}").body["status"],
               self.admin("POST", "/api/admin/queues/plan/resume", {}).status),
              ("generating", 200), "the queue of the plan is paused still, until it is resumed")
        made = lambda: api("GET", f"/api/generation/{self.plan}").body
        ok(wait_for(lambda: made()["status"] == "completed", 60), "the plan is made", made())
        equal(len(api("GET", f"/api/plans/{made()['plan_id']}").body["plan"]["days"]), 7,
              "with its days")
        equal(sql(m, f"SELECT COUNT(*) FROM ledger_request WHERE uid = {api.uid}"
                     " AND request_id LIKE 'plan:%'"), [["1"]], "and paid once")
        equal(self.pop(api) & self.given, set(),
              "no item that was handed out before the backup is handed out again")
        audited(m)
