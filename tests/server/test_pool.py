"""Pools: items that are handed out once each (POL-1..4), over HTTP, while nodes and stores die.

MILLRACE_POOL_ITEMS: how many items 64 programs take while nodes are killed; 12,000 if not said."""
import contextlib
import csv
import io
import json
import os
import random
import re
import signal
import time

from admins import admin, user
from client import Api, cli
from harness import (MYSQL, SCALE, Millrace, crowd, equal, freeze, http, note, ok, redis_link,
                     run_tests, sql, test, wait_for)
from own_redis import Redis
from poppers import Poppers

ITEMS = int(os.environ.get("MILLRACE_POOL_ITEMS", "12000"))
LOST_MAX = 1000  # of a group, when Redis is lost
TWO53 = 2**53


def put(m, group, count, batch=1, table="titles", column="title"):
    """As another program would: by SQL."""
    for first in range(1, count + 1, 2000):
        rows = (f"({group},{batch},'{group}-{batch}-{i}')"
                for i in range(first, min(first + 2000, count + 1)))
        sql(m, f"INSERT INTO {table} (group_id, batch_id, {column}) VALUES {','.join(rows)}")


def pop(api, group, **body):
    return api("POST", f"/api/pools/titles/{group}/pop", body)


def texts(reply):
    return [item["text"] for item in reply.body["items"]]


def statuses(m, group):
    """{status: items}"""
    found = sql(m, f"SELECT status, COUNT(*) FROM titles WHERE group_id = {group} GROUP BY status")
    return {int(s): int(n) for s, n in found}


def used(m, group):
    return statuses(m, group).get(0, 0)


def marked(m, group, count):
    return wait_for(lambda: used(m, group) == count, 15)


def take_all(api, group, given):
    """What is left of a group, with what was given before in a dict; how often one came twice."""
    twice = 0
    for _ in range(10000):
        r = pop(api, group, count=100)
        if r.status == 503:  # a store is being restarted
            time.sleep(0.05)
            continue
        if r.status != 200:
            break
        for item in r.body["items"]:
            twice += item["id"] in given
            given[item["id"]] = 1
    equal(r.status, 409, "in the end nothing is left", r)
    return twice


# --- what the routes do ---

def routes(m, ada, root):
    put(m, 7, 3)
    put(m, 7, 2, batch=2)
    equal(texts(pop(ada, 7)), ["7-2-1"], "the newest batch comes first")
    equal(texts(pop(ada, 7, count=100)), ["7-2-2", "7-1-1", "7-1-2", "7-1-3"], "the rest follows")
    equal(pop(ada, 7).error, (409, "conflict", None), "then nothing is left")
    equal(pop(ada, 8).error, (404, "not_found", None), "a group without items is none")
    for group in ("0", "-1", "x", "1.5", str(TWO53), "99999999999999999999"):
        equal(pop(ada, group).error, (400, "invalid", "group"), f"group {group} is refused")
    put(m, TWO53 - 1, 1)
    equal(texts(pop(ada, TWO53 - 1)), [f"{TWO53 - 1}-1-1"], "the largest group is one")
    equal(ada("POST", "/api/pools/words/7/pop").error, (404, "not_found", None), "so is a type")
    for body in ({"count": 0}, {"count": 101}, {"count": "2"}, {"request_id": ""},
                 {"request_id": "x" * 65}, {"counts": 1}):
        equal(pop(ada, 7, **body).status, 400, f"{body} is refused")
    equal(ada("POST", "/api/pools/titles/7/pop", raw=b"[]").status, 400, "so is a list")
    equal(http(m.port, "/api/pools/titles/7/pop", method="POST").status, 401, "without a session")
    equal(pop(root, 7).status, 401, "and with one of an admin")
    put(m, 7, 1, table="contents", column="content")
    r = ada("POST", "/api/pools/contents/7/pop")
    equal(texts(r), ["7-1-1"], "contents are pools of their own")
    ok(marked(m, 7, 5), "what was handed out is marked as used", statuses(m, 7))


def requests(m, ada, bob):
    put(m, 9, 4000)
    first = texts(pop(ada, 9, count=3, request_id="one"))
    equal(texts(pop(ada, 9, count=3, request_id="one")), first, "a repeat is given the same")
    ok(texts(pop(bob, 9, count=3, request_id="one")) != first, "but not to another user")
    pid = m.nodes()[0]
    os.kill(pid, signal.SIGKILL)
    ok(wait_for(lambda: pid not in m.nodes() and len(m.nodes()) == 2), "a node is killed")
    again = [texts(pop(ada, 9, count=3, request_id="one")) for _ in range(8)]
    ok(all(a == first for a in again), "also afterwards, on any node", first, again)
    link = redis_link(m)
    ttl, = (link("PTTL", key) for key in link("KEYS", "sys:pool:*:request:*:one")
            if b":%d:" % ada.uid in key)
    ok(9 * 60000 < ttl <= 600000, "for ten minutes", ttl)


def counts(m, ada, root):
    put(m, 11, 6000)
    full = lambda: redis_link(m)("LLEN", "titles:pool:11") == 5000
    ok(wait_for(full, 15), "a new group is found, and its list filled before anyone asks")
    equal(statuses(m, 11), {1: 1000, 2: 5000}, "MySQL has them numbered")
    got = {item["id"] for _ in range(3) for item in pop(ada, 11, count=100).body["items"]}
    equal(len(got), 300, "three hundred are taken")
    ok(marked(m, 11, 300), "and marked")

    def level(api, path):
        pools = {(p["type"], p["group"]): p for p in api("GET", path).body["pools"]}
        return pools[("titles", 11)]
    settled = lambda: level(ada, "/api/pools")["used"] == 300
    ok(wait_for(settled, 10), "which is counted", level(ada, "/api/pools"))
    p = level(ada, "/api/pools")
    equal(p["usable"] + p["in_list"], 5700, "with what is left", p)
    p = level(root, "/api/admin/pools")
    ok(p["per_hour"] > 0 and p["minutes_left"] is not None, "admins see the pace", p)
    equal(ada("GET", "/api/admin/pools").status, 401, "users do not")


def running_out(m, ada, root):
    """The pace is that of a minute and a half ago: it is set back instead of waited for."""
    named = lambda: "pool:titles/13" in str(root("GET", "/api/admin/overview").body["alerts"])
    low = lambda: max(map(float, re.findall(r"^millrace_pool_groups_low{[^}]*} (\S+)$",
                                            m.get("/metrics").body.decode(), re.M)))
    put(m, 13, 150)
    equal(len(pop(ada, 13, count=100).body["items"]), 100, "most of a group is taken")
    ok(marked(m, 13, 100), "and marked")
    sql(m, "UPDATE pool_group SET since_at = since_at - 90 WHERE group_id = 13")
    ok(wait_for(named, 20), "it runs out: an alert")
    ok(re.search(r"pool:titles/13: pool titles/13 runs out.* 50 items are left", m.log()),
       "in the log, too, with what is left")
    ok(low() >= 1, "and a metric", low())
    put(m, 13, 10000, batch=2)
    over = lambda: "pool:titles/13 is over" in m.log()  # overviews of other nodes are older
    ok(wait_for(over, 20), "until there is more")


def files(m, ada, root):
    base = "/api/admin/pools/titles/21"
    rows = ["text,by"] + [f'"title {i}, of many",me' for i in range(2000)]
    rows[500:500] = ["", "only one cell", '"title 3, of many",again', ",nothing"]
    body = "\r\n".join(rows).encode()
    total = {"imported": 0, "duplicates_in_file": 0, "duplicates_in_group": 0, "rejected": 0}
    at, place, problems = 0, "", []
    while at < len(body):  # in pieces, as the page does it
        end = min(at + 16000, len(body))
        r = root("POST", f"{base}/import?format=csv&last={int(end == len(body))}{place}",
                 raw=body[at:end])
        assert r.status == 200, r
        for name in total:
            total[name] += r.body[name]
        problems += r.body["problems"]
        at += r.body["read"]
        place = "".join(f"&{n}={r.body[n]}" for n in ("batch_id", "line", "column", "columns"))
    equal(total, {"imported": 2000, "duplicates_in_file": 1, "duplicates_in_group": 0,
                  "rejected": 2}, "a CSV file is imported in pieces")
    equal([p["line"] for p in problems], [502, 504], "with the lines that are no good", problems)
    lines = [json.dumps({"title": f"title {i}, of many"}) for i in (5, 6)] + ['"new 标题"', "{}"]
    r = root("POST", f"{base}/import?format=jsonl", raw="\n".join(lines).encode())
    equal([r.body[n] for n in total], [1, 0, 2, 1], "JSON lines, and what the group has", r)
    equal(r.body["batch_id"], 2, "are a newer batch")
    equal(texts(pop(ada, 21)), ["new 标题"], "which goes first")
    r = root("POST", f"{base}/import?format=csv", raw=b"words\nx\n")
    equal(r.error, (400, "invalid", None), "a file without texts is refused", r)
    equal(root("POST", f"{base}/import?format=xml", raw=b"x").error[2], "format", "so is XML")
    equal(root("POST", f"{base}/import?format=csv&line=9", raw=b"x\n").error[2], "column",
          "and a later piece without its place")
    equal(ada("POST", f"{base}/import?format=csv", raw=b"text\nx\n").status, 401, "by users")
    ok(marked(m, 21, 1), "one is used")
    got = http(m.port, f"{base}/export?format=csv", headers=[f"Authorization: Bearer {root.token}"])
    equal(got.status, 200, "what is used is a file")
    actions = [a["action"] for a in root.audit("?limit=20")]
    ok(actions.count("pool.import") >= 2, "imports are in the audit log", actions)
    r = root("POST", f"{base}/drop")
    equal((r.status, r.body["dropped"]), (200, 2000), "what is not used can be deleted", r)
    equal(statuses(m, 21), {0: 1}, "and is gone")
    equal(pop(ada, 21).status, 409, "also from the list")


def commands(m):
    path = os.path.join(m.cwd, "titles.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": f"text {i % 900}"}) + "\n" for i in range(1000))
    r = cli(m, "pool", "import", "titles", "31", path)
    equal(r.returncode, 0, "millrace pool import", r.stderr)
    ok("900 items" in r.stdout and "100 " in r.stdout, "tells what it did", r.stdout)
    r = cli(m, "pool", "import", "titles", "31", path)
    ok("0 items" in r.stdout and "900 " in r.stdout, "again: all are there", r.stdout)
    r = cli(m, "pool", "list")
    row = [line.split() for line in r.stdout.splitlines() if line.startswith("titles")]
    ok(["titles", "31"] in [x[:2] for x in row], "millrace pool list", r.stdout)
    sql(m, "UPDATE titles SET status = 0, used_at = UNIX_TIMESTAMP() WHERE group_id = 31"
           " AND status = 1 LIMIT 5")
    r = cli(m, "pool", "export", "titles", "31", "--format", "csv")
    found = list(csv.DictReader(io.StringIO(r.stdout.lstrip("\ufeff"))))
    ok(r.returncode == 0 and len(found) == used(m, 31), "millrace pool export", r.stdout[:300])
    ok(all(f["text"].startswith("text ") and f["used_at"].endswith("Z") for f in found),
       "with texts and times", found[:2])
    r = cli(m, "pool", "drop", "titles", "31", "--yes")
    equal((r.returncode, statuses(m, 31)), (0, {0: len(found)}), "millrace pool drop", r.stdout)
    r = cli(m, "pool", "import", "titles", "0", path)
    equal(r.returncode, 2, "a group that is none is refused", r.stderr)
    r = cli(m, "pool", "import", "words", "1", path)
    ok(r.returncode == 2 and "titles" in r.stderr, "so is a type, which are named", r.stderr)
    r = cli(m, "pool", "import", "titles", "1", "not-there.csv")
    ok(r.returncode == 1 and "No such file" in r.stderr, "and a file that is not there", r.stderr)


def mysql_away(m, ada):
    put(m, 41, 5000)
    given = {item["id"]: 1 for _ in range(5) for item in pop(ada, 41, count=100).body["items"]}
    # The first pop fills in as many as one push takes; the rest, and the limit, follow behind it.
    length = lambda: redis_link(m)("LLEN", "titles:pool:41")
    ok(wait_for(lambda: length() >= LOST_MAX, 4), "the list is filled ahead", length())
    time.sleep(0.3 * crowd())  # limits are raised ahead
    pid = m.pid_of("mariadb")
    freeze(pid)
    try:
        meanwhile = 0
        for _ in range(100):
            r = pop(ada, 41, count=50)
            if r.status != 200:
                break
            meanwhile += len(r.body["items"])
            given.update((item["id"], 1) for item in r.body["items"])
    finally:
        os.kill(pid, signal.SIGCONT)
    equal(r.status, 503, "without MySQL pops end", r)
    ok(0 < meanwhile <= LOST_MAX, f"after {meanwhile} more, as far as the limit goes")
    ok(wait_for(lambda: pop(ada, 41).status == 200, 20), "and go on when it is back")
    # Each node finds out by itself.
    wait_for(lambda: all(ada("GET", "/api/plans").status == 200 for _ in range(12)), 20)


def restart(m, ada):
    put(m, 51, 4000)
    given = {}
    for _ in range(10):
        r = pop(ada, 51, count=77)
        assert r.status == 200, r
        given.update((item["id"], 1) for item in r.body["items"])
    m.stop()
    with Millrace(data=m.data) as again:
        assert wait_for(again.ready, 30)
        equal(take_all(Api(again, ada.token), 51, given), 0, "nothing is handed out twice")
        ok(marked(again, 51, 4000), "all are used")
    equal(len(given), 4000, "none is lost by an orderly stop")


@test("pools")
def _():
    with Millrace() as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        ada, bob, root = user(m, "ada"), user(m, "bob"), admin(m, "root")
        ada.uid = ada.me().body["uid"]
        routes(m, ada, root)
        counts(m, ada, root)
        running_out(m, ada, root)
        requests(m, ada, bob)
        files(m, ada, root)
        commands(m)
        if not MYSQL:  # which serves other tests, too
            mysql_away(m, ada)
        restart(m, ada)


@test("sessions may be kept out")
def _():
    with Millrace(env={"MILLRACE_POOL_SESSIONS": "false", "MILLRACE_NODES": "1"}) as m:
        assert wait_for(m.ready, 30)
        ada = user(m, "ada")
        put(m, 7, 3)
        equal(pop(ada, 7).error, (403, "forbidden", None), "a session is refused")
        equal(used(m, 7), 0, "and nothing was taken")
        equal(ada("GET", "/api/pools").status, 200, "levels can be seen")
        program = Api(m)
        r = ada("POST", "/api/tokens", {"name": "site", "scopes": ["pool:titles/7"]})
        program.token = r.body["token"]
        equal(pop(program, 7).status, 200, "an API token takes an item")
        equal(pop(program, 8).error[:2], (403, "token_scope"), "but not of another pool")
        equal(program("GET", "/api/me").status, 403, "nor anything else")


# --- Redis is lost ---

@contextlib.contextmanager
def with_own_redis():
    with Redis("--save", "", "--appendonly", "no") as r:
        env = {"MILLRACE_REDIS_URL": r.url, "MILLRACE_ALLOW_UNSAFE_STORES": "true"}
        with Millrace(env=env) as m:
            assert wait_for(m.ready, 30), m.get("/readyz")
            yield m, r


def lose(m, r, seconds=0.3):
    """It comes back as it was when it last saved, if it ever did."""
    r.__exit__()
    time.sleep(seconds)
    r.__enter__()
    ok(wait_for(m.ready, 30), "Redis is back")


def lost(m, group, given, total):
    """Used, and in no answer."""
    ok(marked(m, group, total), "all are used", statuses(m, group))
    return total - len(given)


@test("Redis comes back older, and empty")
def _():
    with with_own_redis() as (m, r):
        ada = user(m, "ada")
        given = {}
        put(m, 7, 6000)

        def some(group, times):
            for _ in range(times):
                given.update((i["id"], 1) for i in pop(ada, group, count=5).body["items"])
        some(7, 60)
        r.say("SAVE")
        some(7, 150)
        lose(m, r)
        ok(int(r.ask("LLEN titles:pool:7")[1:]) > 0, "with items that were handed out")
        equal(take_all(ada, 7, given), 0, "an older one hands out nothing twice")
        unseen = lost(m, 7, given, 6000)
        ok(unseen <= LOST_MAX, f"older: {unseen} used up unseen")
        note(f"older: {unseen} of 6000 used up unseen")
        put(m, 8, 3000)
        given.clear()
        some(8, 40)
        os.unlink(f"{r.dir}/dump.rdb")
        lose(m, r)
        equal(take_all(ada, 8, given), 0, "an empty one neither")
        unseen = lost(m, 8, given, 3000)
        ok(unseen <= LOST_MAX, f"empty: {unseen} used up unseen")
        note(f"empty: {unseen} of 3000 used up unseen")


@test("Redis is away")
def _():
    with with_own_redis() as (m, r):
        ada = user(m, "ada")
        put(m, 7, 300)
        given = {i["id"]: 1 for i in pop(ada, 7, count=50).body["items"]}
        ok(wait_for(lambda: int(r.ask("LLEN titles:pool:7")[1:]) == 250), "the rest is in the list")
        r.__exit__()
        put(m, 7, 100, batch=2)
        wait_for(lambda: pop(ada, 7).body.get("degraded") or True, 1)
        reply = pop(ada, 7, count=10, request_id="away")
        ok(reply.status == 200 and reply.body["degraded"], "MySQL hands out, and says so", reply)
        ok(all(t.startswith("7-2-") for t in texts(reply)), "what is in no list", reply)
        equal(texts(pop(ada, 7, count=10, request_id="away")), texts(reply), "a repeat: the same")
        left = {}
        while (answer := pop(ada, 7, count=20)).status == 200:
            left.update((i["id"], 1) for i in answer.body["items"])
        equal(answer.status, 503, "what is in the list has to wait", answer)
        equal(len(left.keys() & given.keys()), 0, "none twice")
        r.__enter__()
        ok(wait_for(m.ready, 30), "Redis is back")
        equal(texts(pop(ada, 7, count=10, request_id="away")), texts(reply),
              "the repeat is known there, too")
        given.update(left)
        given.update((i["id"], 1) for i in reply.body["items"])
        equal(take_all(ada, 7, given), 0, "and the rest follows")


# --- 64 programs, and nodes are killed ---

def kill_some(m, p, kills, redis_kills, rng):
    """Returns how often Redis was lost."""
    losses = 0
    for i in range(kills):
        time.sleep((0.3 + 0.4 * rng.random()) * SCALE)
        if p.empty.is_set():
            break
        if i % 3 == 2 and losses < redis_kills:
            # The supervisor waits longer before each start of a store that dies again and again.
            redis = wait_for(lambda: m.pid_of("redis"), 30)
            if ok(redis, f"Redis is there to be lost, {losses + 1}"):
                os.kill(redis, signal.SIGKILL)
            losses += 1
            continue
        nodes = m.nodes()
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            if nodes:
                os.kill(rng.choice(nodes), signal.SIGKILL)
    return losses


@test("64 programs while nodes and Redis are killed")
def _():
    seed = random.SystemRandom().randrange(10**6)
    rng = random.Random(seed)
    with Millrace() as m:
        assert wait_for(m.ready, 30)
        ada = user(m, "ada")
        put(m, 7, ITEMS)
        began = time.monotonic()
        with Poppers(m.port, ada.token, "titles/7") as p:
            losses = kill_some(m, p, 7 * max(1, ITEMS // 40000), 2 * max(1, ITEMS // 40000), rng)
            ok(p.empty.wait(300 * SCALE), "all is taken", p.statuses)
        seconds = time.monotonic() - began
        equal(p.twice, 0, "no item is in two answers", f"seed {seed}")
        ok(marked(m, 7, ITEMS), "all are used", statuses(m, 7))
        unseen = ITEMS - len(p.given)
        bound = p.cut + losses * LOST_MAX
        ok(unseen <= bound, f"used up unseen: {unseen}, at most {bound}", f"seed {seed}")
        note(f"seed {seed}: {ITEMS} items, {p.answers} answers in {seconds:.1f} s, {p.cut} cut off,"
             f" Redis lost {losses} times, {unseen} used up unseen; {p.statuses}")


run_tests()
