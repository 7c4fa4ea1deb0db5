"""What the operator does about users and keys that do not work: stopped accounts and their release,
`millrace user list|permission|release`, keys that are tested, woken and deleted."""
import json
import time

from admins import admin
from client import cli
from harness import Millrace, equal, ok, redis_link, run_tests, sql, test, wait_for
from screening import person, submit, view
from unwell import Service

ANSWER = {"choices": [{"message": {"role": "assistant", "content": "yes"}}]}
REPLIES = {  # by the last word of the key
    "works": (200, ANSWER),
    "stranger": (401, {"error": {"message": "no such key: sk-0123456789-stranger"}}),
    "poor": (402, {"error": {"message": "Please recharge"}}),
    "busy": (429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}),
    "spent": (429, {"error": {"message": "quota", "code": "insufficient_quota"}}),
    "moved": (404, {"error": {"message": "no such model"}}),
    "portal": (200, {"hello": "please log in to this network"}),
}


def answer(headers):
    """By the key it is asked with."""
    status, reply = REPLIES[headers["Authorization"].rsplit("-", 1)[1]]
    return status, json.dumps(reply).encode()


@test("keys")
def _():
    with Service(answer) as service, Millrace(
            env={"MILLRACE_SAMPLE_PAPERS": "0", "MILLRACE_AI_URL": service.url}) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        root = admin(m, "root")
        keys = {word: root("POST", "/api/admin/keys", {"key": f"sk-0123456789-{word}"}).body["id"]
                for word in REPLIES}
        try_keys(root, keys)
        rest(m, root, keys["works"])
        cap(root, keys["works"])
        delete(m, root, keys["poor"])
        service.__exit__()
        r = root("POST", f"/api/admin/keys/{keys['works']}/test").body
        ok(r["outcome"] == "unreachable" and r["status"] is None and r["words"],
           "a service that is away", r)


def listed(root, kid):
    return next(k for k in root("GET", "/api/admin/keys").body["keys"] if k["id"] == kid)


def try_keys(root, keys):
    for word, outcome, status, words in (
            ("works", "works", 200, None),
            ("stranger", "refused", 401, "its answer repeats the key"),
            ("poor", "no_money", 402, "Please recharge"), ("busy", "limited", 429, "slow down"),
            ("spent", "no_money", 429, "quota"), ("moved", "failed", 404, "no such model"),
            ("portal", "failed", 200, "")):
        r = root("POST", f"/api/admin/keys/{keys[word]}/test").body
        equal((r["outcome"], r["status"], r["words"]), (outcome, status, words), f"a key: {word}")
        ok(word not in r["key"] and r["key"] == listed(root, keys[word])["key"], "masked alike", r)
    equal({k["state"] for k in root("GET", "/api/admin/keys").body["keys"]}, {"active"},
          "a test changes nothing")
    row = root.audit("?action=key.test")[-1]
    equal((row["target"], row["after"]), (str(keys["works"]), {"state": "works"}), "noted")
    equal(root("POST", "/api/admin/keys/999/test").status, 404, "no such key")
    other = root("POST", "/api/admin/keys",
                 {"key": "sk-0123456789-works", "service": "embedding"}).body["id"]
    equal(root("POST", f"/api/admin/keys/{other}/test").error[0], 409,
          "one of a service that is not called")


@test("keys of the embedding service")
def _():
    def vector(headers):
        right = headers["Authorization"] == "Bearer sk-0123456789-vector"
        return (200 if right else 400), json.dumps({"data": [{"embedding": [1]}]}).encode()

    with Service(vector) as service, Millrace(
            env={"MILLRACE_SAMPLE_PAPERS": "0", "MILLRACE_AI_EMBEDDING_URL": service.url}) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        root = admin(m, "root")
        own = {"key": "sk-0123456789-vector", "service": "embedding"}
        kid = root("POST", "/api/admin/keys", own).body["id"]
        r = root("POST", f"/api/admin/keys/{kid}/test").body
        equal((r["outcome"], r["status"]), ("works", 200), "is asked for a vector")
        link = redis_link(m)
        link("HSET", f"sys:window:{kid}", "rest", 10 ** 14)
        equal(listed(root, kid)["state"], "resting", "rests")
        equal(root("POST", f"/api/admin/keys/{kid}/wake").body["state"], "active", "is woken")
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "0"}) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        root = admin(m, "root")
        kid = root("POST", "/api/admin/keys", own).body["id"]
        r = root("POST", f"/api/admin/keys/{kid}/test").body
        equal((r["outcome"], r["status"]), ("works", 200), "the simulated AI gives vectors, too")
        ok(b'millrace_ai_open{service="embedding"' in m.get("/metrics").body,
           "and has metrics of its own")


def shown(root, kid):
    """The state of a key, in its list and in the overview."""
    there = [k for k in root("GET", "/api/admin/overview").body["keys"] if k["id"] == kid]
    return (listed(root, kid)["state"], there[0]["state"] if there else None)


def rest(m, root, kid):
    link = redis_link(m)
    link("HSET", f"sys:window:{kid}", "rest", 10 ** 14)
    link("HSET", "sys:keyring:errors", kid, "1 rests status 429: it rests for 600000 ms")
    ok(wait_for(lambda: shown(root, kid) == ("resting", "resting"), 5), "a key that rests",
       shown(root, kid))
    equal(listed(root, kid)["last_error"], "status 429: it rests for 600000 ms", "and why")
    r = root("POST", f"/api/admin/keys/{kid}/wake").body
    equal((r["state"], r["rests_ms"], r["last_error"]), ("active", 0, None), "is woken")
    ok(wait_for(lambda: shown(root, kid) == ("active", "active"), 5), "as the overview says",
       shown(root, kid))
    equal(root.audit("?action=key.wake")[0]["target"], str(kid), "noted")


def cap(root, kid):
    change = lambda **what: root("POST", f"/api/admin/keys/{kid}", what).body
    equal(change(day_cap=0)["state"], "capped", "a key whose cap is used up")
    ok(wait_for(lambda: shown(root, kid) == ("capped", "capped"), 5), "as the overview says",
       shown(root, kid))
    r = change(day_cap=None)
    equal((r["state"], r["day_cap"]), ("active", None), "null clears the cap")
    equal(change(active=False)["state"], "off", "one that is off")
    ok(wait_for(lambda: shown(root, kid) == ("off", "off"), 5), "as the overview says",
       shown(root, kid))
    equal(change(active=True)["state"], "active", "and on again")
    equal(root("POST", f"/api/admin/keys/{kid}", {"active": None}).error,
          (400, "invalid", "active"), "null is no value elsewhere")


def delete(m, root, kid):
    link = redis_link(m)
    link("HSET", "sys:keyring:errors", kid, "1 refused status 401: it was switched off")
    sql(m, f"UPDATE api_list SET is_active = 0 WHERE api_index = {kid}")
    ok(wait_for(lambda: shown(root, kid) == ("refused", "refused"), 5), "a refused key",
       shown(root, kid))
    equal(root("DELETE", f"/api/admin/keys/{kid}").status, 200, "is deleted")
    equal(sql(m, f"SELECT COUNT(*) FROM api_list WHERE api_index = {kid}"), [["0"]], "in MySQL")
    equal(link("HGET", "sys:keyring:errors", kid), None, "with its errors")
    ok(wait_for(lambda: kid not in [k["id"] for k in
                                    root("GET", "/api/admin/overview").body["keys"]], 5),
       "and is not in the overview")
    row = root.audit("?action=key.delete")[0]
    equal((row["target"], row["before"]["active"], row["after"]), (str(kid), False, None),
          "the audit log knows that it was")
    ok("sk-0123456789-poor" not in json.dumps(root.audit("?limit=200")) + m.log(),
       "not what it was")
    equal(root("DELETE", f"/api/admin/keys/{kid}").status, 404, "once")


@test("a stopped account")
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "300", "MILLRACE_NODES": "1"}) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        root, asher, basil = admin(m, "root"), person(m, "asher"), person(m, "basil")
        commands(m, basil)
        root("POST", "/api/admin/switches", {"name": "new_runs", "on": False})
        mine, _ = submit(asher, 100)
        qid, _ = submit(asher, 100)
        equal([asher("POST", f"/api/queries/{q}/pause").body["state"] for q in (mine, qid)],
              ["PAUSED"] * 2, "two runs, one paused by its user")
        sql(m, "UPDATE query_log SET reason = 'the account needs the operator'"
               f" WHERE query_id = '{qid}'")
        stop(m, root, asher, qid)
        release(m, root, asher, qid)
        aside(m)
        equal(view(asher, mine)["state"], "PAUSED", "what the user has paused stays so")


def commands(m, basil):
    r = cli(m, "user", "list")
    lines = [line.split("\t") for line in r.stdout.splitlines()]
    whole = ["10", "100000.00", "0.00", "100000.00", "active"]
    equal([line[1:7] for line in lines if line[1] in ("asher", "basil")],
          [["asher", *whole], ["basil", *whole]], "user list", r)
    names = lambda *args: [u["username"] for u in
                           json.loads(cli(m, "user", "list", "--json", *args).stdout)["users"]]
    equal(names("--find", "BA"), ["basil"], "by the start of a name, in any case")
    equal(names("--find", "a_"), [], "no pattern")
    equal(names("--state", "stopped"), [], "by state")
    cli(m, "user", "ban", "basil")
    equal(names("--state", "banned"), ["basil"], "by another")
    cli(m, "user", "unban", "basil")
    sql(m, "INSERT INTO user_info (username, username_folded, password, banned)"
           " SELECT CONCAT('many', seq), CONCAT('many', seq), '', seq > 1200 FROM seq_1_to_1300")
    equal((len(names("--find", "many")), len(names("--state", "banned"))), (1300, 100),
          "of more users than one statement brings")
    sql(m, "DELETE FROM user_info WHERE username LIKE 'many%'")
    equal(cli(m, "user", "list", "--state", "fine").returncode, 2, "there is no such state")
    r = cli(m, "user", "permission", "basil", "3")
    equal((r.returncode, basil.login("basil").status, basil.me().body["permission"]), (0, 200, 3),
          "user permission", r)
    for n in ("-1", "1001", "many"):
        equal(cli(m, "user", "permission", "basil", n).returncode, 2, f"not {n}")
    r = cli(m, "user", "permission", "cora", "3")
    ok(r.returncode == 1 and 'no user "cora"' in r.stderr, "of nobody", r)


def stop(m, root, asher, qid):
    """As if MySQL had been restored from a backup of yesterday."""
    link = redis_link(m)
    me = asher.me().body
    equal((me["account"], me["account_why"], me["account_since"]), ("active", None, None),
          "an account that works")
    link("HSET", f"user:{asher.uid}:ledger", "synced", 99)
    link("HDEL", f"user:{asher.uid}:ledger", "run")
    r = asher.me()
    ok(r.status == 200 and r.body["account"] == "stopped" and r.body["balance"] == "100000.00" and
       "operator" in r.body["account_why"], "is stopped, not broken", r)
    paused = sql(m, f"SELECT changed_at FROM query_log WHERE query_id = '{qid}'")[0][0]
    equal(r.body["account_since"], paused.replace(" ", "T") + "Z", "since its run was paused")
    r = root("GET", f"/api/admin/users/{asher.uid}")
    ok(r.status == 200 and r.body["account"] == "stopped" and
       "MySQL is older than Redis" in r.body["account_why"] and r.body["account_since"],
       "admins see what it is about", r)
    r = cli(m, "user", "list", "--state", "stopped")
    ok(r.stdout.split("\t")[1:2] == ["asher"], "so does the operator", r)


def release(m, root, asher, qid):
    link = redis_link(m)
    r = cli(m, "user", "release", "asher")
    ok(r.returncode == 1 and "older: MySQL is older than Redis" in r.stderr and
       "to do: restore MySQL" in r.stderr and
       '"asher" is not released: its money does not add up' in r.stderr,
       "it is not released while something is off, which is said", r)
    equal(view(asher, qid)["state"], "PAUSED", "its run waits")
    sql(m, f"UPDATE user_info SET balance = balance + 1 WHERE uid = {asher.uid}")
    link("HSET", f"user:{asher.uid}:ledger", "synced", 0)
    r = cli(m, "user", "release", "asher")
    ok(r.returncode == 1 and "log: " in r.stderr and "100001.00 is there" in r.stderr,
       "nor with a balance that the log does not explain", r)
    equal(view(asher, qid)["state"], "PAUSED", "its run waits")
    sql(m, f"UPDATE user_info SET balance = balance - 1 WHERE uid = {asher.uid}")
    link("RPUSH", f"billing_queue:{asher.uid}", "no record")
    r = cli(m, "user", "release", "asher")
    ok(r.returncode == 1 and "aside: a record cannot be read: no record" in r.stderr and
       "not released" in r.stderr, "nor with a record that is none", r)
    r = cli(m, "user", "release", "--write-off", "asher")
    ok("1 record is written off" in r.stdout, "which the operator can give up", r)
    ok(r.returncode == 0 and "asher is released, and has 100000.00" in r.stdout and
       "1 paused run" in r.stdout, "when all adds up", r)
    equal(asher.me().body["account"], "active", "the account works")
    ok(view(asher, qid)["state"] in ("QUEUED", "RUNNING", "DONE"),
       "its run goes on, or waits where it did", view(asher, qid))
    noted = root.audit(f"?user={asher.uid}&limit=3")
    equal([a["action"] for a in noted], ["run.resume", "user.release", "user.write_off"], "noted")
    equal(noted[2]["before"], {"record": "no record"}, "with the record that was given up")
    equal(cli(m, "user", "list", "--state", "stopped").stdout, "", "none is stopped")
    r = cli(m, "user", "release", "asher")
    ok(r.returncode == 0 and "asher was not stopped" in r.stdout, "once more changes nothing", r)


def aside(m):
    """A record that cannot be read, of a user who has no run."""
    link, cleo = redis_link(m), person(m, "cleo", permission=1)
    link("RPUSH", f"billing_queue:{cleo.uid}", "no record")
    link("ZADD", "sys:billing", str(int(time.time() * 1000)), str(cleo.uid))
    stopped = lambda: cli(m, "user", "list", "--state", "stopped").stdout.split("\t")[1:2]
    ok(wait_for(lambda: stopped() == ["cleo"], 10), "is listed, too", stopped())
    r = cli(m, "user", "release", "--write-off", "cleo")
    ok(r.returncode == 0 and "cleo is released" in r.stdout and stopped() == [], "and released", r)


run_tests()
