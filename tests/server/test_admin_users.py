"""What admins do to users, over HTTP and at the command line, on real stores: money, permission,
bans, and work that they hold up."""
import collections
import concurrent.futures
import json
import time
from urllib.parse import quote

from admins import Admin, admin, told, uid_of, user
from client import Api, cli, second, user as registered, with_server
from harness import (SCALE, Millrace, crowd, equal, ok, redis_link, run_tests, sql, test,
                     wait_for)
from sim import Sim


def cents(text):
    return round(float(text) * 100)


@with_server("money by admins", MILLRACE_SAMPLE_PAPERS="0")
def _(m):
    one, payee = admin(m, "one", "super"), user(m, "payee")
    admin(m, "two")
    path = f"/api/admin/users/{uid_of(payee)}"
    with second(m) as n:
        wait_for(n.ready, 30)
        two = Admin(n)
        two.login("two")
        def pay(i):
            return (one, two)[i % 2](
                "POST", path + "/recharge",
                {"amount": f"{i + 1}.25", "request_id": f"r{i}", "reason": f"no. {i}"})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            equal({r.status for r in pool.map(pay, range(20))}, {200},
                  "twenty recharges by two admins on two servers at once")
            equal((payee.me().body["balance"], one("GET", path).body["balance"]),
                  ("215.00", "215.00"), "add up")
            same = list(pool.map(
                            lambda i: (one, two)[i % 2]
                            ("POST", path + "/recharge", {"amount": "5.00", "request_id": "same"}),
                            range(5)))
            equal(({r.status for r in same}, {r.body["balance"] for r in same}),
                  ({200}, {"220.00"}), "the same five times: once")
            same = list(pool.map(
                            lambda i: (one, two)[i % 2]
                            ("POST", path + "/deduct", {"amount": "20.00", "request_id": "back"}),
                            range(5)))
            equal(({r.status for r in same}, {r.body["balance"] for r in same}),
                  ({200}, {"200.00"}), "so is a deduction")
    rows = one.audit("?limit=200&action=user.recharge")
    done = [r for r in rows if r["outcome"] == "done"]
    equal((len(done), len(rows)), (21, 25), "every recharge is noted once, repeats as such")
    ok(all(float(r["after"]["balance"]) > float(r["before"]["balance"]) for r in done),
       "with before and after", done[0])
    chain = sorted((cents(r["before"]["balance"]), cents(r["after"]["balance"])) for r in done)
    equal([b for b, _ in chain[1:]], [a for _, a in chain[:-1]],
          "each begins where another ended: none saw the other half-way")
    equal(collections.Counter(r["admin"] for r in done if r["reason"]), {"one": 10, "two": 10},
          "by whom")
    equal(sorted(r["reason"] for r in done if r["reason"]), sorted(f"no. {i}" for i in range(20)),
          "and the reason")
    outcomes = [r["outcome"] for r in one.audit("?action=user.deduct")]
    ok(outcomes.count("begun") == 1 and outcomes.count("done") <= 1 and
       outcomes.count("done") + outcomes.count("repeated") == 5,
       "a deduction is noted before and after", outcomes)
    equal(one("POST", path + "/recharge", {"amount": "6.00", "request_id": "same"}).error[:2],
          (409, "conflict"), "another amount")
    equal(one("POST", path + "/deduct", {"amount": "200.01", "request_id": "much"}).error[:2],
          (402, "funds"), "more than there is")
    equal(one("POST", "/api/admin/users/999/recharge", {"amount": "1", "request_id": "x"}).status,
          404, "nobody")
    equal(
        one("POST", "/api/admin/users/x/recharge", {"amount": "1", "request_id": "x"}).status, 404,
        "no number")
    equal([told(r) for r in one.audit("?limit=4")], [("user.recharge", "refused"),
                                                     ("user.recharge", "refused"),
                                                     ("user.deduct", "refused"),
                                                     ("user.recharge", "refused")], "all noted")
    bad = [b'1e3', b'"1e3"', b'"-5"', b'-5', b'"0.001"', b'0.001', b'"99999999999"', b'99999999999',
           b'"0"', b'"0.00"', b'5', b'" 5"', b'"+5"', b'"5,00"', b'"05"', b'"NaN"', b'""', b'null',
           b'"\\uff15"', b'true', b'[]']
    for i, amount in enumerate(bad):
        kind = ("recharge", "deduct")[i % 2]
        r = one("POST", f"{path}/{kind}",
                raw=b'{"amount": %s, "request_id": "bad%d"}' % (amount, i))
        ok(r.error == (400, "invalid", "amount") and len(r.body["error"]["message"]) > 15,
           f"{kind} {amount.decode()}: refused", r)
        row = one.audit("?limit=1")[0]
        equal((row["action"], row["outcome"], row["request_id"]),
              (f"user.{kind}", "refused", f"bad{i}"), "and noted", row)
    ok("1000" in one.audit(f"?action=user.recharge&limit={(len(bad) + 1) // 2}")[-1]["asked"],
       "with what was asked for")
    for r, field in (({"amount": "1.00"}, "request_id"),
                     ({"amount": "1.00", "request_id": "x" * 65}, "request_id"),
                     ({"amount": "1.00", "request_id": "x", "uid": 3}, "uid")):
        equal(one("POST", path + "/recharge", r).error, (400, "invalid", field),
              f"refused, naming {field}")
    equal(payee.me().body["balance"], "200.00", "nothing of that moved a cent")
    records = [r for page in one.pages(f"{path}/ledger?limit=4") for r in page["records"]]
    equal((len(records), len({(r["source"], r["number"]) for r in records})), (22, 22),
          "the ledger, page by page")
    equal([r["at"] for r in records], sorted((r["at"] for r in records), reverse=True),
          "newest first")
    equal((records[0]["kind"], records[0]["amount"]), ("deduction", "20.00"), "what a record shows")
    equal(sum(
              round(float(r["amount"]) * 100) * (-1 if r["kind"] == "deduction" else 1)
              for r in records), 20000, "sums up")
    equal((one("GET", path + "/ledger?cursor=x").error, one(
        "GET", "/api/admin/users/999/ledger").status), ((400, "invalid", "cursor"), 404),
          "no such page, no such user")
    r = cli(m, "audit")
    ok(r.returncode == 0, "every cent is where it belongs", r.stdout, r.stderr)


@with_server("users", MILLRACE_SAMPLE_PAPERS="0")
def _(m):
    root, asher = admin(m, "root"), user(m, "Asher_1")
    uid = uid_of(asher)
    rows = ", ".join(f"('Zoe_{i:02}', 'zoe_{i:02}', 'x', {i})" for i in range(25)) + \
        ", ('zoexx', 'zoexx', 'x', 0), ('25', '25', 'x', 0), ('2500', '2500', 'x', 0)"
    sql(m, f"INSERT INTO user_info (username, username_folded, password, permission) VALUES {rows}")
    everybody = [u for u, in sql(m, "SELECT username FROM user_info ORDER BY uid")]
    def walk(query, limit):
        seen = []
        for page in root.pages(f"/api/admin/users?limit={limit}{query}"):
            ok(len(page["users"]) <= limit, "a page is no longer than asked for")
            seen += [u["username"] for u in page["users"]]
        return seen
    for limit in (1, 7, 200):
        equal(walk("", limit), everybody, f"all users, {limit} at a time")
        equal(walk("&q=", limit), everybody, "all of them if nothing is looked for")
        equal(walk("&q=ZOE_", limit), [f"Zoe_{i:02}" for i in range(25)],
              "by the beginning of the name")
        equal(walk("&q=25", limit), [everybody[24], "25", "2500"], "by number, then by name")
    for q in ("%25", "a%25", "'", "%F0%9F%98%80", "nobody"):
        equal(walk("&q=" + q, 10), [], f"q={q}")
    equal(
        root("GET", "/api/admin/users?cursor=x").error, (400, "invalid", "cursor"), "no such page")
    body = root("GET", f"/api/admin/users/{uid}").body
    ok((body["username"], body["balance"], body["permission"], body["banned"], body["runs"])
       == ("Asher_1", "0.00", 1, False, 0) and body["created_at"].startswith("20"), "one of them",
       body)
    equal(root("GET", "/api/admin/users/999").status, 404, "nobody")
    equal(
        root("POST", f"/api/admin/users/{uid}/permission", {"permission": 1000}).body["permission"],
        1000, "permission")
    equal(asher.me().body["permission"], 1000, "holds at once")
    for value in (-1, 1001, "5", 1.5, None):
        equal(root("POST", f"/api/admin/users/{uid}/permission", {"permission": value}).error,
              (400, "invalid", "permission"), f"not {value}")
    row = root.audit("?action=user.permission&limit=200")[-1]
    equal((row["before"], row["after"], row["user"], row["admin"], row["ip_address"]),
          ({"permission": 1}, {"permission": 1000}, uid, "root", "127.0.0.1"), "noted")
    other = Api(m)
    other.login("asher_1")
    equal(root("POST", f"/api/admin/users/{uid}/password", {"password": "short"}).error,
          (400, "invalid", "password"), "a bad password")
    equal(root("POST", f"/api/admin/users/{uid}/password", {"password": "given anew"}).status, 200,
          "a new password")
    equal((asher.me().status, other.me().status, asher.login("asher_1").status,
           asher.login("asher_1", "given anew").status), (401, 401, 401, 200),
          "ends all sessions, and holds")
    ok("given anew" not in json.dumps(root.audit()), "and is not in the audit log")


def new_runs_wait(m, root):
    equal(root("POST", "/api/admin/switches", {"name": "new_runs", "on": False}).status, 200,
          "new runs wait")
    ok(wait_for(lambda: m.log().count("switch new_runs is off now") == len(m.nodes()), 5),
       "on every node", m.log())


@with_server("a ban")
def _(m):
    root, villain, friend = admin(m, "root"), registered(m, "villain"), user(m, "friend")
    new_runs_wait(m, root)
    journal = villain("GET", "/api/journals").body["journals"][0]["name"]
    wish = {"question": "Wet?", "journals": [journal], "year_from": 2011, "year_to": 2025}
    ids = {}
    for api, name in ((villain, "villain"), (friend, "friend")):
        root("POST", f"/api/admin/users/{uid_of(api)}/recharge",
             {"amount": "100000.00", "request_id": name})
        ids[name] = [api("POST", "/api/queries", wish).body["query_id"] for _ in range(3)]
    uid = uid_of(villain)
    villain("POST", f"/api/queries/{ids['villain'][2]}/terminate")
    equal(root("GET", f"/api/admin/users/{uid}").body["runs_active"], 2,
          "two runs of three are active")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        late = [Api(m) for _ in range(5)]
        logins = [pool.submit(api.login, "villain") for api in late]
        # Some are past the first look by now, and wait while passwords are checked one by one.
        time.sleep(0.3)
        r = root("POST", f"/api/admin/users/{uid}/ban", {"banned": True, "reason": "abuse"})
        statuses = [f.result().status for f in logins]
    ok(r.status == 200 and r.body["banned"] is True and r.body["runs_active"] == 0, "banned", r)
    equal({api.me().status for api in (villain, *late)}, {401},
          "all sessions are over, also those that began meanwhile", statuses)
    equal(sql(m, f"SELECT COUNT(*) FROM session WHERE kind = 'user' AND uid = {uid}"), [["0"]],
          "none is left")
    equal(Api(m).login("villain").status, 403, "nobody gets in")
    equal(sql(m, f"SELECT status, reason FROM query_log WHERE uid = {uid} ORDER BY status"),
          [["CANCELLED", ""], ["PAUSED", "the account is banned"],
           ["PAUSED", "the account is banned"]], "runs are paused")
    equal([redis_link(m)("HGET", f"query:{uid}:{q}:status", "state") for q in ids["villain"][:2]],
          [b"PAUSED"] * 2, "in Redis, too")
    equal({q["state"] for q in friend("GET", "/api/queries").body["queries"]}, {"QUEUED"},
          "nobody else's")
    rows = root.audit(f"?user={uid}&limit=3")
    equal([r["action"] for r in rows], ["run.pause", "run.pause", "user.ban"], "noted")
    # The keeper pauses runs of banned users, too, and may have come first.
    ok(all(r["outcome"] == "repeated" or
           (r["outcome"], r["before"], r["after"], r["reason"]) ==
           ("done", {"state": "QUEUED"}, {"state": "PAUSED"}, "the account is banned")
           for r in rows[:2]), "each run", rows)
    equal(rows[2]["outcome"], "done", "and the ban")
    equal((rows[2]["before"], rows[2]["after"], rows[2]["reason"]),
          ({"banned": False}, {"banned": True}, "abuse"), "before and after")
    equal(root("POST", f"/api/admin/users/{uid}/ban", {"banned": True}).status, 200,
          "again, to be sure")
    equal(root("POST", f"/api/admin/users/{uid}/ban", {"banned": False}).body["banned"], False,
          "unbanned")
    equal(villain.login("villain").status, 200, "may come in again")
    runs = root("GET", f"/api/admin/users/{uid}/runs?limit=2").body
    equal((len(runs["queries"]), runs["queries"][1]["state"], runs["queries"][1]["reason"]),
          (2, "PAUSED", "the account is banned"), "runs, as admins see them")
    rest = root("GET", f"/api/admin/users/{uid}/runs?limit=2&cursor={runs['next']}").body
    equal(([q["query_id"] for q in runs["queries"] + rest["queries"]], rest["next"]),
          (ids["villain"][::-1], None), "page by page")
    path = f"/api/admin/runs/{ids['friend'][0]}/terminate"
    equal(root("POST", path, {"reason": "too large"}).body["state"], "CANCELLED",
          "a run is terminated")
    equal(friend("GET", f"/api/queries/{ids['friend'][0]}").body["state"], "CANCELLED",
          "its user sees it")
    equal(root("POST", path).body["state"], "CANCELLED", "again")
    equal(root("POST", "/api/admin/runs/nope/terminate").status, 404, "no such run")
    rows = root.audit("?action=run.terminate")
    equal([r["outcome"] for r in rows], ["refused", "repeated", "done"], "noted")
    equal((rows[2]["before"], rows[2]["after"], rows[2]["target"], rows[2]["user"]),
          ({"state": "QUEUED"}, {"state": "CANCELLED"}, ids["friend"][0], uid_of(friend)),
          "with all there is to tell")


@with_server("the operator at the command line")
def _(m):
    root = admin(m, "root")
    new_runs_wait(m, root)
    equal(cli(m, "user", "add", "hand", "--balance", "7.00", "--permission", "2",
              stdin="correct horse\n").returncode, 0, "a user")
    hand = Api(m)
    hand.login("hand")
    uid = uid_of(hand)
    for command in (("recharge", "hand", "5000.00", "--request", "a"),
                    ("recharge", "hand", "5000.00", "--request", "a"),
                    ("deduct", "hand", "7.00", "--request", "b")):
        equal(cli(m, "user", *command).returncode, 0, " ".join(command))
    journal = hand("GET", "/api/journals").body["journals"][0]["name"]
    qid = hand("POST", "/api/queries", {"question": "Wet?", "journals": [journal],
                                        "year_from": 2011, "year_to": 2025}).body["query_id"]
    equal((cli(m, "user", "ban", "hand").returncode, hand.me().status), (0, 401),
          "a ban ends sessions")
    equal(sql(m, f"SELECT status, reason FROM query_log WHERE query_id = '{qid}'"),
          [["PAUSED", "the account is banned"]], "and pauses runs")
    equal(cli(m, "user", "unban", "hand").returncode, 0, "and its end")
    rows = root.audit(f"?user={uid}&admin=" + quote("(command line)"))
    equal([told(r) for r in rows], [("user.ban", "done"),
                                    ("run.pause", "done"), ("user.ban", "done"),
                                    ("user.deduct", "done"), ("user.deduct", "begun"),
                                    ("user.recharge", "repeated"), ("user.recharge", "done"),
                                    ("user.add", "done")], "all of it is in the audit log")
    equal((rows[1]["target"], rows[2]["after"], rows[6]["before"], rows[6]["after"],
           rows[6]["request_id"], rows[7]["after"]),
          (qid, {"banned": True}, {"balance": "7.00"}, {"balance": "5007.00"}, "a",
           {"balance": "7.00", "permission": 2}), "with all there is to tell")


LATENCY_MS = 1000


@test("work is held up")
def _():
    with Sim("--latency-ms", str(LATENCY_MS)) as sim:
        with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "500", "MILLRACE_AI_URL": sim.url}) as m:
            assert wait_for(m.ready, 30), m.get("/readyz")
            hold_up(m, sim)


def hold_up(m, sim):
    root, worker = admin(m, "root"), user(m, "worker")
    uid = uid_of(worker)
    root("POST", "/api/admin/keys", {"key": "sk-of-the-simulator"})
    root("POST", f"/api/admin/users/{uid}/recharge", {"amount": "100000", "request_id": "x"})
    root("POST", f"/api/admin/users/{uid}/permission", {"permission": 4})
    new_runs_wait(m, root)
    journals = [j["name"] for j in worker("GET", "/api/journals").body["journals"]]
    wish = {"question": "Wet?", "journals": journals, "year_from": 2011, "year_to": 2025}
    qid = worker("POST", "/api/queries", wish).body["query_id"]
    status = lambda: worker("GET", f"/api/queries/{qid}").body
    ok(not wait_for(lambda: status()["state"] != "QUEUED", 1), "a run waits", status())
    root("POST", "/api/admin/switches", {"name": "new_runs", "on": True})
    ok(wait_for(lambda: status()["finished"] > 4, 15), "and starts when it may", status())
    link = redis_link(m)
    workers = lambda: sum(int(v.split(b"@")[0]) for v in link("HVALS", f"user:{uid}:workers"))
    follow_permission(root, uid, status, workers)
    follow_keys(root, sim)
    stop_for_a_ban(m, sim, root, uid, qid, workers)


def follow_permission(root, uid, status, workers):
    """A run has as many workers as are permitted, once the papers in hand are done."""
    for permission in (1, 6, 0, 4):
        root("POST", f"/api/admin/users/{uid}/permission", {"permission": permission})
        began = time.monotonic()
        wait_for(lambda: workers() == permission, 10)
        took = time.monotonic() - began
        ok(workers() == permission and took < LATENCY_MS / 1000 + 1 * crowd(),
           f"permission {permission} holds for a run at work", workers(), took)
    equal(status()["state"], "RUNNING", "which is still the same run")


def follow_keys(root, sim):
    """Both nodes have workers: none of them asks with a key that was switched off a second ago."""
    keys = [k["id"] for k in root("GET", "/api/admin/keys").body["keys"]]
    for kid in keys:
        root("POST", f"/api/admin/keys/{kid}", {"active": False})
    time.sleep(1 * crowd())
    calls = sim.stats()["requests"]
    ok(not wait_for(lambda: sim.stats()["requests"] != calls, 1.5 * LATENCY_MS / 1000 / SCALE),
       "keys that are switched off are not used a second later")
    for kid in keys:
        root("POST", f"/api/admin/keys/{kid}", {"active": True})
    ok(wait_for(lambda: sim.stats()["requests"] > calls, 10), "and used again when they are on",
       sim.stats())


def stop_for_a_ban(m, sim, root, uid, qid, workers):
    """Paused within one latency, exactly: when the ban is answered the run is PAUSED; within a
    tenth of a second (crews look for news forty times in one) no call is begun any more; those
    under way end by themselves, within their latency, are recorded and charged; then there are no
    workers."""
    ok(wait_for(lambda: workers() == 4, 10), "it works")
    finished = lambda: int(redis_link(m)("HGET", f"query:{uid}:{qid}:status", "finished"))
    root("POST", f"/api/admin/users/{uid}/ban", {"banned": True})
    answered = time.monotonic()
    state = sql(m, f"SELECT status, reason FROM query_log WHERE query_id = '{qid}'")
    time.sleep(max(0, answered + 0.1 * crowd() - time.monotonic()))
    calls = sim.stats()["requests"]
    wait_for(lambda: not workers(), 10)
    took = time.monotonic() - answered
    equal(state, [["PAUSED", "the account is banned"]], "when a ban is answered the run is paused")
    ok(took < LATENCY_MS / 1000 + 0.3 * crowd(), "its workers stop within one latency", took)
    then = finished()
    ok(not wait_for(lambda: (sim.stats()["requests"], finished()) !=
                    (calls, then), 1.5 * LATENCY_MS / 1000 / SCALE),
       "no call is begun, nothing more is finished",
       sim.stats()["requests"] - calls,
       finished() - then)
    equal(then, calls, "and every call that was made is recorded")
    run = root("GET", f"/api/admin/users/{uid}/runs").body["queries"][0]
    ok(run["state"] == "PAUSED" and run["reason"] == "the account is banned" and
       then == run["finished"] < run["papers"], "it is paused", run, then)


run_tests()
