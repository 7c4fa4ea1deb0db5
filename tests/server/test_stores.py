"""Stores that cannot be relied on: unsafe settings, a cluster, a MySQL that takes no changes, an
append-only file that ends in zeros; and that ready means ready, at once."""
import contextlib
import glob
import json
import os
import re
import signal
import socket
import subprocess
import time

from admins import admin
from client import Api, second
from harness import (Client, Millrace, equal, folder, freeze, http, ok, redis, redis_link,
                     run_tests, sql, test, wait_for)
from hook import overview
from own_redis import Redis
from screening import QUESTION, audited, journals, person, reaches, results, server, submit
from sim import Sim


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def again(m):
    """A server that has ended, to be started once more, without what it printed before."""
    m.port = None
    for name in ("out", "err"):
        os.truncate(f"{m.cwd}/{name}", 0)
    return m


def refused(m, words, name):
    """It ends at once, and its last words are these."""
    m.launch()
    equal(m.wait(20), 1, f"{name}: it does not start", m.log())
    ok(words in m.log() and "ready" not in m.output(), f"{name}: it says why", m.log())


def alerts(root):
    return {a["name"]: a["text"] for a in overview(root)["alerts"]}


# --- settings ---

@test("unsafe settings")
def _():
    with Millrace(env={"MILLRACE_NODES": "1"}) as m:
        link = redis_link(m)
        link("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        refused(second(m), 'set "maxmemory-policy noeviction" in redis.conf', "evicting Redis")
        link("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
        sql(m, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
        refused(second(m), 'set "innodb_flush_log_at_trx_commit = 1" in my.cnf', "hasty MySQL")
        other = second(m)
        other.args.append("--allow-unsafe-stores")
        with other:
            ok(any(" warn " in l and "innodb_flush_log_at_trx_commit = 0" in l
                   for l in other.log().splitlines()), "told to start, it warns", other.log())
            equal(other.get("/readyz").status, 200, "and serves")
            root = admin(m, "root")
            ok(wait_for(lambda: "settings:mysql" in alerts(root), 15), "an alert", overview(root))
            problem = overview(root)["stores"]["mysql"]["problem"]
            ok("innodb_flush_log_at_trx_commit = 1" in problem, "and in the overview", problem)
            sql(m, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
            ok(wait_for(lambda: not alerts(root), 20), "over when it is changed", overview(root))
        link("CONFIG", "SET", "appendonly", "no")
        m.process.kill()
        m.wait()
        refused(again(m), 'set "appendonly yes" in redis.conf', "a private Redis that was left so")
        again(m).start()
        equal(m.get("/readyz").status, 200, "the next start makes it as it should be", m.log())


@test("settings that cannot be read, or come late")
def _():
    with Millrace(env={"MILLRACE_NODES": "1"}) as m:
        other = second(m)
        late = Redis("--appendonly", "no", "--save", "")
        other.env.update({"MILLRACE_REDIS_URL": late.url, "MILLRACE_REDIS_PASSWORD": ""})
        with other:
            ok("serves at" in other.output() and "is ready" not in other.output(),
               "a Redis that is away is no reason not to serve", other.output())
            time.sleep(3)
            equal([l for l in other.log().splitlines() if " serve redis:" in l], [],
                  "asked again and again, which is not logged")
            with late:
                equal(other.wait(20), 1, "it answers, and is unsafe: that is the end", other.log())
                ok('set "appendonly yes" in redis.conf' in other.log(), "with the line to change",
                   other.log())
        managed = Redis("--appendonly", "yes", "--port", str(free_port()))
        other = second(m)
        other.env.update({"MILLRACE_REDIS_PASSWORD": "",
                          "MILLRACE_REDIS_URL": f"redis://tenant:pw@127.0.0.1:{managed.port}"})
        with managed:
            managed.say("ACL SETUSER tenant on >pw ~* +@all -config")
            with other:
                ok("does not tell this account its setting appendfsync" in other.log(),
                   "what cannot be read is said", other.log())
                equal(other.get("/readyz").status, 200, "and it goes on")


@test("a Redis Cluster")
def _():
    with Millrace(env={"MILLRACE_NODES": "1"}) as m:
        cluster = Redis("--cluster-enabled", "yes", "--appendonly", "yes", "--port",
                        str(free_port()), "--cluster-port", str(free_port()))
        with cluster:
            for url, name in ((cluster.url, "a cluster"),
                              (f"redis://127.0.0.1:{free_port()},127.0.0.1:{cluster.port}",
                               "the addresses of a cluster, of which one answers")):
                other = second(m)
                other.env.update({"MILLRACE_REDIS_URL": url, "MILLRACE_REDIS_PASSWORD": ""})
                other.args.append("--allow-unsafe-stores")
                refused(other, "redis.url leads to a Redis Cluster, which millrace cannot use yet",
                        name)


# --- read-only ---

@test("a MySQL that is read-only")
def _():
    with Sim("--latency-ms", "20") as sim, server(sim, papers=500) as m:
        api, root = person(m, "ann"), admin(m, "root")
        chosen, total = journals(api, 200)
        wish = {**QUESTION, "journals": chosen}
        early, _ = submit(api, 200)
        sql(m, "SET GLOBAL read_only = 1")
        r = wait_for(lambda: (r := m.get("/readyz")).status == 503 and r) or m.get("/readyz")
        body = json.loads(r.body)
        ok(r.status == 503 and body["error"]["message"].startswith("MySQL is read-only: "),
           "not ready, in words", r)
        ok(body["stores"]["mysql"]["up"] and "1290" in body["stores"]["mysql"]["problem"],
           "though it answers", body)
        r = api("POST", "/api/queries", wish)
        ok(r.status == 503 and "the database is read-only" in r.body["error"]["message"],
           "a submit is refused with a sentence", r)
        equal(api.me().status, 200, "reads go on")
        ok(wait_for(lambda: "read_only" in alerts(root), 15), "an alert", overview(root))
        ok("1290" in overview(root)["stores"]["mysql"]["problem"], "the overview", overview(root))
        ok(not re.search(r"(?<![.:\d])502(?![\dZ])|CROSSSLOT", m.log()), "no riddles")
        sql(m, "SET GLOBAL read_only = 0")
        ok(wait_for(m.ready, 10), "ready as soon as it is writable", m.get("/readyz"))
        r = api("POST", "/api/queries", wish)
        equal(r.status, 202, "a submit is taken", r)
        ok(reaches(api, early, "DONE"), "the run of before ends")
        ok(reaches(api, r.body["query_id"], "DONE"), "and the one of now")
        ok(wait_for(lambda: not alerts(root), 15), "the alert is over", overview(root))
        audited(m)


# --- the append-only file ---

def aof_of(m):
    folder_ = f"{m.data}/redis/appendonlydir"
    with open(f"{folder_}/appendonly.aof.manifest") as f:
        return f"{folder_}/{f.read().split()[-5]}"


def power_cut(m):
    """All at once. The kernel still writes what it was given."""
    pids = [m.process.pid, *m.nodes(), m.pid_of("redis"), m.pid_of("mariadb"),
            *m.children("millrace sim")]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    m.wait()
    wait_for(lambda: not any(os.path.exists(f"/proc/{p}/cwd") for p in pids[1:]), 10)


def damage_live(m, change):
    """The supervisor starts Redis anew, on what change has made of its file."""
    pid = m.pid_of("redis")
    freeze(m.process.pid)
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    change(aof_of(m))
    m.send_signal(signal.SIGCONT)
    return wait_for(lambda: m.pid_of("redis") not in (None, pid) and m.ready(), 20)


def zeros_instead(path):
    size = os.path.getsize(path)
    with open(path, "r+b") as f:
        f.seek(size - 100)
        f.write(bytes(5000))


def half_a_command(path):
    os.truncate(path, os.path.getsize(path) - 3)


def cut_bytes(m):
    return [int(l.split("has cut the last ")[1].split()[0])
            for l in m.log().splitlines() if "has cut the last " in l]


@test("an append-only file that ends badly")
def _():
    with Sim("--latency-ms", "30") as sim:
        with server(sim, papers=700) as m:
            api = person(m, "ann", permission=20)
            qid, total = submit(api, 600)
            queue = f"billing_queue:{api.uid}"
            ok(wait_for(lambda: redis(m, "HLEN", f"result:{api.uid}:{qid}") not in (":0", ":1"),
                        20), "it runs")
            freeze(m.pid_of("mariadb"))
            ok(wait_for(lambda: redis_link(m)("LLEN", queue) >= 50, 20),
               "charges that only Redis has", m.log())
            freeze(m.process.pid)
            for pid in m.nodes():
                freeze(pid)
            had, owed = results(m, api, qid), redis_link(m)("LLEN", queue)
            power_cut(m)
            path = aof_of(m)
            whole = open(path, "rb").read()
            with open(path, "ab") as f:
                f.write(bytes(8192))
            again(m).start()
            ok(wait_for(m.ready, 20), "it starts", m.log())
            equal(cut_bytes(m), [8192], "the zeros are cut, which is said", m.log())
            copies = glob.glob(path + ".damaged-*")
            ok(len(copies) == 1 and open(copies[0], "rb").read() == whole + bytes(8192),
               "the file as it was is kept", copies)
            after = results(m, api, qid)
            ok(all(after.get(doi) == had[doi] for doi in had),
               f"no verdict of {len(had)} is lost, {owed} of which MySQL did not have")
            ok(reaches(api, qid, "DONE", 40), "the run ends")
            ok(damage_live(m, zeros_instead), "zeros instead of the last bytes", m.log())
            ok(len(cut_bytes(m)) == 2 and cut_bytes(m)[1] < 10000, "only the end is cut", m.log())
            ok(damage_live(m, half_a_command), "half a command", m.log())
            ok(len(cut_bytes(m)) == 3 and cut_bytes(m)[2] < 10000, "cut with the same tool",
               m.log())
            audited(m)
            charges = sql(m, f"SELECT COUNT(*) FROM billing_log WHERE qid = '{qid}'"
                             " AND kind = 'charge'")
            ok(total >= int(charges[0][0]) >= len(had), "paid once", charges, total)


@test("an append-only file that is not cut")
def _():
    with Millrace(env={"MILLRACE_NODES": "1"}) as m:
        for i in range(200):
            redis(m, "SET", f"mark{i}", "x" * 50)
        power_cut(m)
        path = aof_of(m)
        whole = open(path, "rb").read()
        advice = "make a backup of your AOF file, then use ./redis-check-aof --fix"

        with open(path, "r+b") as f:  # the head of a command: bytes within a value harm nothing
            f.seek(whole.rindex(b"*3", 0, whole.index(b"mark100")))
            f.write(bytes(64))
        broken = open(path, "rb").read()
        m.launch()
        equal(m.wait(30), 1, "damage in the middle: it does not start", m.log())
        ok("whole commands follow: it is not cut" in m.log() and advice in m.log(),
           "the cause, and what Redis advises", m.log())
        ok(open(path, "rb").read() == broken, "nothing was changed")

        with open(path, "wb") as f:
            f.write(whole + bytes(100))
        tools = folder()
        with open(f"{tools}/redis-check-aof", "w") as f:
            f.write("#!/bin/sh\nexit 3\n")
        os.chmod(f"{tools}/redis-check-aof", 0o755)
        m.env["PATH"] = f"{tools}:{m.env['PATH']}"
        again(m).launch()
        equal(m.wait(30), 1, "the tool fails: it does not start", m.log())
        ok(advice in m.log(), "with the advice of Redis", m.log())
        equal(os.path.getsize(path), len(whole) + 100, "nothing was changed")
        m.env["PATH"] = m.env["PATH"].partition(":")[2]
        again(m).start()
        equal(redis(m, "GET", "mark199"), "x" * 50, "with the tool all is there again")


# --- ready ---

def poll(port, path):
    try:
        return http(port, path).status
    except OSError:
        return 0


@contextlib.contextmanager
def locked(m, table):
    """No other connection can read it."""
    client = subprocess.Popen(
        ["mariadb", "--no-defaults", "-uroot", "-S", f"{m.data}/run/mariadb.sock", "-N", "-B", "-n",
         "millrace"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client.stdin.write(f"LOCK TABLES {table} WRITE; SELECT 'locked';\n")
    client.stdin.flush()
    assert client.stdout.readline() == "locked\n"
    try:
        yield
    finally:
        client.communicate()


@test("ready means that a submit is taken")
def _():
    port = free_port()
    m = Millrace(listen=f"127.0.0.1:{port}",
                 env={"MILLRACE_SAMPLE_PAPERS": "300", "MILLRACE_NODES": "2"})
    with m:
        api = person(m, "ann")
        wish = {**QUESTION, "journals": journals(api, 30)[0]}
        token = api.token
        statuses, printed = [], []
        for i in range(5):
            m.process.kill()
            m.wait()
            again(m).launch()
            m.port = port
            if i % 2:
                wait_for(lambda: "is ready at" in m.output(), 30)
            else:
                while poll(port, "/readyz") != 200:
                    pass
            statuses.append(Api(m, token)("POST", "/api/queries", wish).status)
            printed.append(wait_for(lambda: "is ready at" in m.output(), 20))
        equal(statuses, [202] * 5, "at the very moment, on any node", m.log())
        ok(all(printed), "it is printed, too")
        statuses = []
        one = Client(port)  # nodes see that Redis is back one after the other
        for _ in range(3):
            os.kill(m.pid_of("redis"), signal.SIGKILL)
            wait_for(lambda: one.request("/readyz").status == 503, 5)
            wait_for(lambda: one.request("/readyz").status == 200, 20)
            statuses.append(one.request(
                "/api/queries", "POST", json.dumps(wish).encode(),
                [f"Authorization: Bearer {token}", "Content-Type: application/json"]).status)
        words = lambda: json.loads(one.request("/readyz").body).get("error", {}).get("message")
        with locked(m, "cache_stale"):
            os.kill(m.pid_of("redis"), signal.SIGKILL)
            ok(wait_for(lambda: words() == "records in Redis have not been checked against MySQL "
                        "yet", 15), "not while Redis is there, but not trusted", words())
        ok(wait_for(lambda: not words(), 20), "and then at once")
        one.close()
        equal(statuses, [202] * 3, "and after Redis was away", m.log())


run_tests()
