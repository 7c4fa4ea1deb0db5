"""The accounts of the first start: made once, shown once, kept nowhere; and what is said of the
AI."""
import json
import os
import random
import re
import time

from admins import Admin
from client import PASSWORD, Api, cli, second
from harness import (SCALE, Millrace, copy_of_template, equal, folder, note, ok, read,
                     run_tests, sql, test, wait_for)
from screening import submit, view

ACCOUNTS = {"MILLRACE_DEMO_ACCOUNTS": None, "MILLRACE_NODES": "1"}  # the default
NOTE = "SELECT JSON_VALUE(value, '$.shown') FROM setting WHERE name = 'first_accounts'"
UNSHOWN = "UPDATE setting SET value = JSON_SET(value, '$.shown', 0) WHERE name = 'first_accounts'"
EVERYBODY = "SELECT (SELECT COUNT(*) FROM user_info) + (SELECT COUNT(*) FROM admin_info)"
SIMULATED = "simulated: its answers are made up"


def shown(text):
    """{name: password} as people see them."""
    return dict(re.findall(r"^ +name +(\S+)\n +password +(\S+)$", text, re.M))


def holders(m, pairs):
    """Those of the passwords that open something, and log in with them."""
    return {name for name, password in pairs.items()
            if (Admin if name == "admin" else Api)(m).login(name, password).status == 200}


def files_with(folder_, secrets):
    found = []
    for where, _, names in os.walk(folder_):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and any(s.encode() in read(path) for s in secrets):
                found.append(path)
    return found


@test("a first start and the next ones")
def _():
    data = folder() + "/v"
    env = {**ACCOUNTS, "MILLRACE_SAMPLE_PAPERS": "200"}
    with Millrace(data=data, env=env) as m:
        assert wait_for(lambda: sql(m, NOTE) == [["1"]]), m.log()
        text = m.output()
        first = shown(text)
        equal(set(first), {"demo", "admin"}, "a user and an admin are shown", text)
        ok(all(re.fullmatch(r"([a-z2-9]{4}-){3}[a-z2-9]{4}", p) for p in first.values())
           and first["demo"] != first["admin"], "with random passwords", text)
        url = f"http://127.0.0.1:{m.port}"
        ok(f"researcher  {url}/\n" in text and f"admin       {url}/admin/login.html\n" in text,
           "and where they log in", text)
        ok(SIMULATED in text and '{"ai": {"url": "https://HOST/v1", "model": "NAME"}}' in text
           and "into config.json" in text and f"{url}/admin/control.html#keys" in text,
           "the AI is simulated, and how to have a real one", text)
        ok(not any(p in m.log() for p in first.values()), "the log knows no password", m.log())

        api, root = Api(m), Admin(m)
        equal((api.login("demo", first["demo"]).status, root.login("admin", first["admin"]).status),
              (200, 200), "both log in")
        equal({k: api.me().body[k] for k in ("balance", "permission")},
              {"balance": "10000.00", "permission": 4}, "the user has money", api.me())
        equal(root.me().body["role"], "super", "the admin may do everything", root.me())
        equal(sql(m, "SELECT kind, cents FROM billing_log"), [["opening", "1000000"]],
              "the money is in the log")
        equal([(r["action"], r["admin"], r["target"])
               for r in root.audit() if r["action"] == "admin.add"],
              [("admin.add", "(first start)", "admin")], "the admin is in the audit log")

        ok(wait_for(lambda: m.ready() and api("GET", "/api/journals").body["journals"], 60),
           "papers")
        qid, papers = submit(api, 60)
        ok(wait_for(lambda: view(api, qid)["state"] == "DONE", 60), "a run can be started at once",
           view(api, qid))
        r = cli(m, "audit")
        equal(r.returncode, 0, "every cent is where it belongs", r.stdout, r.stderr)
        equal(m.stop(), 0, "it stops")
    equal(files_with(data, first.values()), [], "no file has a password")
    ok(files_with(data, ["$2b$12$"]), "but hashes of them")

    with Millrace(data=data, env=env) as m:
        ok(wait_for(lambda: "admin password admin" in m.output()),
           "the next start says how to get new ones", m.output())
        ok("user password demo" in m.output() and not shown(m.output()), "and shows none",
           m.output())
        ok(not any(p in m.output() + m.log() for p in first.values()), "nowhere", m.output(),
           m.log())
        equal(holders(m, first), {"demo", "admin"}, "the same passwords hold")
        api = Api(m)
        api.login("demo", first["demo"])
        r = cli(m, "user", "password", "demo", stdin=PASSWORD + "\n")
        equal((r.returncode, r.stdout), (0, ""), "millrace user password", r.stderr)
        equal((api.me().status, Api(m).login(
            "demo", first["demo"]).status, Api(m).login("demo").status), (401, 401, 200),
              "ends the sessions, and only the new one holds")
        r = cli(m, "user", "password", "nobody", stdin=PASSWORD + "\n")
        ok(r.returncode == 1 and 'there is no user "nobody"' in r.stderr, "of somebody else",
           r.stderr)
        r = cli(m, "user", "password", "demo", stdin="short\n")
        ok(r.returncode == 1 and "at least 8" in r.stderr, "a short one", r.stderr)
        equal(sql(m, "SELECT action, admin_name, target_uid FROM admin_audit"
                  " WHERE action = 'user.password'"),
              [["user.password", "(command line)", "1"]], "it is in the audit log, once")

    with Millrace(data=data, env=env) as m:
        ok(wait_for(lambda: 'passwords of "admin"' in m.output()),
           "who has chosen one needs no reminder", m.output())
        equal(Api(m).login("demo").status, 200, "and keeps it")


@test("passwords that nobody saw")
def _():
    data = copy_of_template()
    full = open("/dev/full", "w")
    m = Millrace(data=data, env=ACCOUNTS).launch(stdout=full)
    ok(wait_for(lambda: "could not be shown" in m.log()), "the output is full: a warning", m.log())
    equal(sql(m, NOTE), [["0"]], "it is noted")
    m.stop()
    with Millrace(data=data, env=ACCOUNTS) as m:
        ok(wait_for(lambda: sql(m, NOTE) == [["1"]]), "the next start shows them", m.log())
        first = shown(m.output())
        equal(holders(m, first), {"demo", "admin"}, "and they hold", m.output())
        # As after kill -9 between showing them and noting that.
        sql(m, UNSHOWN)
    with Millrace(data=data, env=ACCOUNTS) as m:
        ok(wait_for(lambda: sql(m, NOTE) == [["1"]]), "killed before it was noted: shown again",
           m.log())
        again = shown(m.output())
        equal((set(again), holders(m, again), holders(m, first)),
              ({"demo", "admin"}, {"demo", "admin"}, set()), "new ones, and only those hold",
              m.output())
        equal(cli(m, "user", "password", "demo", stdin=PASSWORD + "\n").returncode, 0,
              "somebody changes one")
        sql(m, UNSHOWN)
    with Millrace(data=data, env=ACCOUNTS) as m:
        ok(wait_for(lambda: sql(m, NOTE) == [["1"]]), "killed once more", m.log())
        last = shown(m.output())
        equal((set(last), holders(m, last)), ({"admin"}, {"admin"}), "the other one is shown",
              m.output())
        equal(Api(m).login("demo").status, 200, "what was chosen stays")
        equal(cli(m, "audit").returncode, 0, "the audit is clean")
        equal(sql(m, "SELECT COUNT(*), SUM(balance) FROM user_info"), [["1", "10000.00"]],
              "money came once")


@test("killed at any moment")
def _():
    seed = random.SystemRandom().randrange(1 << 32)
    dice = random.Random(seed)
    note(f"seed {seed}")
    for i in range(3):
        m = Millrace(env=ACCOUNTS).launch()
        wait_for(lambda: "node: serves" in m.log(), 40)
        time.sleep(dice.uniform(0, 0.7 * SCALE))
        m.process.kill()
        m.wait()
        before, accounts = shown(m.output()), sql(m, "SELECT COUNT(*) FROM user_info")[0][0]
        with Millrace(data=m.data, env=ACCOUNTS) as after:
            ok(wait_for(lambda: sql(after, NOTE) == [["1"]]), "the next start goes on", after.log())
            last = shown(after.output()) or before
            equal((set(last), holders(after, last)), ({"demo", "admin"}, {"demo", "admin"}),
                  f"round {i}, {len(before)} shown, {accounts} made: what was shown last holds",
                  after.output())


def theirs(m):
    """A server that has not been started, with the default for accounts."""
    m.env.pop("MILLRACE_DEMO_ACCOUNTS")
    return m


def none(m, why):
    """Nodes serve, and what else there is to say has been said: the log ends with what nodes do
    next."""
    ok(wait_for(lambda: "stop    Ctrl-C" in m.output() and m.ready()), f"{why}: it is ready",
       m.log())
    ok("password" not in m.output(), f"{why}: nobody is shown", m.output())


@test("stopped while they are made")
def _():
    m = Millrace(env=ACCOUNTS).launch()
    wait_for(lambda: "node: serves" in m.log(), 40)  # half a second of hashing begins
    equal(m.stop(), 0, "it ends in time", m.log())
    with Millrace(data=m.data, env=ACCOUNTS) as after:
        ok(wait_for(lambda: sql(after, NOTE) == [["1"]]), "the next start goes on", after.log())
        last = shown(after.output()) or shown(m.output())
        equal(holders(after, last), {"demo", "admin"}, "what was shown last holds", after.output())


@test("none are made")
def _():
    with Millrace() as m:
        with theirs(second(m)) as other:
            none(other, "configured stores")
        redis = {k: v for k, v in other.env.items() if k.startswith("MILLRACE_REDIS_")}
        with Millrace(env={**redis, **ACCOUNTS}) as other:
            none(other, "a configured Redis")
            equal(other.stop(), 0, "it stops")
        equal(sql(m, EVERYBODY), [["0"]], "nobody was made there")
        none(m, "demo_accounts off")
        equal(m.stop(), 0, "it stops")
    with Millrace(data=m.data, env={**ACCOUNTS, "MILLRACE_LOG_FORMAT": "json"}) as m:
        ok(wait_for(lambda: "admin add NAME --super" in m.log()),
           "logs for programs: how to add one", m.log())
        ok(not shown(m.log()) and sql(m, NOTE) == [], "but none is made", m.log())
        lines = [json.loads(line)["message"] for line in m.log().splitlines()]
        ok(any(f"ready at http://127.0.0.1:{m.port}; " in line and "AI: simulated" in line
               for line in lines) and m.output() == "", "and every line is JSON", m.output(),
           m.log())
        cli(m, "user", "add", "somebody", stdin=PASSWORD + "\n")
        equal(m.stop(), 0, "it stops")
    with Millrace(data=m.data, env={**ACCOUNTS, "MILLRACE_AI_URL": "http://127.0.0.1:9/v1"}) as m:
        none(m, "somebody has an account")
        ok(SIMULATED not in m.output() and "AI      http://127.0.0.1:9/v1\n" in m.output(),
           "a real AI: nothing is said of a simulated one", m.output())


@test("the journal")
def _():
    m = Millrace(env=ACCOUNTS)
    path = os.path.join(m.cwd, "out")
    open(path, "w").close()
    st = os.stat(path)
    m.env["JOURNAL_STREAM"] = f"{st.st_dev}:{st.st_ino}"
    with m:
        ok(wait_for(lambda: "admin add NAME --super" in m.log()),
           "output goes there: how to add an admin", m.log())
        equal((shown(m.output()), sql(m, NOTE)), ({}, []), "no password does", m.output())
    other = Millrace(data=m.data, env={**ACCOUNTS, "JOURNAL_STREAM": "1:1"})
    with other as m:
        ok(wait_for(lambda: len(shown(m.output())) == 2),
           "somebody else's output goes there: shown", m.output())


if __name__ == "__main__":
    run_tests()
