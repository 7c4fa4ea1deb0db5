"""Oracle's MySQL instead of MariaDB, with everything that millrace does: all migrations, a corpus,
a screening and what follows it, money, outages, backup and restore, TLS; then whole tests of other
files. Needs a mirror of Debian within reach; own_mysql.py says what is unpacked, and how another
version is tried."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

import every_table
from admins import admin
from client import cli
from drill import (Jobs, again, goes_on, kill_all, manifest, restore, rows_of, settings, someone,
                   take, under_way, while_frozen, whole)
from harness import (Millrace, equal, finish, folder, note, ok, redis_link, run, run_tests, sql,
                     test, wait_for)
from loading import MIGRATIONS, Database, sample
from own_mysql import MySQL, Unavailable, unpacked
from own_redis import Redis
from screening import (QUESTION, act, audited, charged, journals, person, reaches, server, submit,
                       view)
from sim import Sim, certificate

PAPERS = 1500
OLD = 10  # migrations of an older database
MY_CNF = os.path.join(os.path.dirname(__file__), "../../deploy/my.cnf")
# As servers of providers are often set.
MANAGED = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--sql-require-primary-key=ON"]
# These run on MySQL, but for those of their tests that are private; each server has a database of
# its own.
OTHERS = ["migrate", "audit", "distill", "documents", "download", "extract", "extract_results",
          "extract_rows", "extract_templates", "hooks", "isolation", "loads", "nearest", "outage",
          "overview", "papers", "plan", "pool", "posts", "reserve", "scope", "screen", "search",
          "templates", "tokens"]


def load(mysql, papers=PAPERS):
    """Tables and papers, as operators of their own MySQL load them. (folder, env, report)"""
    env = {**mysql.env, "MILLRACE_DATA_DIR": folder()}
    done = run("db", "migrate", env=env, timeout=120)
    equal((done.returncode, done.stdout.count("applied "), done.stderr), (0, len(MIGRATIONS), ""),
          "every migration is applied", done.stdout)
    top = sample(papers)
    return top, env, init(top, env)


def init(top, env):
    path = f"{folder()}/report.json"
    done = run("db", "init", "--data", str(top), "--report", path, env=env, timeout=300)
    ok(done.returncode == 0, "db init", done.stdout[-1000:], done.stderr[-1000:])
    with open(path, encoding="utf-8") as f:
        return json.load(f)["papers"]


def complaints(m):
    """Lines of its log that tell of an error, such as a statement that MySQL refuses."""
    return [l for l in m.log().splitlines() if re.match(r"\S+ error ", l)]


# --- tables and papers ---

@test("an empty database, and an older one")
def _():
    with MySQL(PROGRAM, *MANAGED) as mysql:
        note(f"MySQL {mysql.ask('SELECT VERSION()')}")
        top, env, papers = load(mysql)
        equal(papers["stored"], PAPERS, "all papers are loaded", papers)
        for path in top.glob("Data/*/*.bib"):
            path.write_bytes(path.read_bytes() + b"\n")
        papers = init(top, env)
        equal((papers["unchanged"], papers["read"]), (PAPERS, PAPERS),
              "read again, each is what MySQL has, whose JSON is written in another way", papers)
        collations = mysql.ask(
            "SELECT DISTINCT table_collation FROM information_schema.tables WHERE table_schema ="
            " 'millrace' AND table_name NOT IN ('schema_migration', 'post_words', 'paper_words')")
        equal(collations, "utf8mb4_0900_ai_ci", "texts: neither case nor accents matter")
        done = run("db", "migrate", "--check", env=env)
        equal(done.returncode, 0, "nothing is missing", done.stdout, done.stderr)
        older(Lender(mysql))


class Lender:
    """As much of a server as Database needs."""

    def __init__(self, mysql):
        self.sql_socket, self.database = mysql.socket, mysql.database


def older(lender):
    """Rows of an older millrace, which migrations change."""
    old = Database(lender)
    old.migrate_by_hand(OLD)
    old.ask("INSERT INTO user_info (username, username_folded, password, balance)"
            " VALUES ('asher', 'asher', '', 12.34);"
            "INSERT INTO query_log (query_id, uid, status, archived, finished_papers,"
            " failed_papers, relevant_papers) VALUES ('q', 1, 'DONE', 1, 3, 1, 1),"
            " ('r', 1, 'PAUSED', 0, 0, 0, 0);"
            "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result) VALUES"
            " (1, 'q', '10.1/a', 'meta:A: B:2001', 1, '{\"relevant\": true}'),"
            " (1, 'q', '10.1/b', 'meta:A:-20', 0, '{\"relevant\": false}'),"
            " (1, 'q', '10.1/c', 'meta:A:x', NULL, '{\"error\": \"late\"}'),"
            " (1, 'r', '10.1/d', 'meta:A:2001', NULL, '{\"not_judged\": 1}'),"
            " (1, 'r', '10.1/e', 'meta:A:2001', 1, '{\"relevant\": true}');"
            "INSERT INTO billing_log VALUES"
            " (1, 'redis', 1, 'charge', 'r', '10.1/e', 250, UTC_TIMESTAMP(3));"
            "INSERT INTO corpus_block (journal, year, papers, digest) VALUES ('A', 2001, 2, 7);"
            "INSERT INTO contentlist_year_number VALUES ('A', '{\"2001\": 1}'),"
            " ('a', '{\"1999\": 5}')")
    done = run("db", "migrate", env={**old.env, "MILLRACE_DATA_DIR": folder()}, timeout=120)
    equal((done.returncode, done.stdout.count("applied ")), (0, len(MIGRATIONS) - OLD),
          "an older database is brought up to date", done.stdout, done.stderr)
    equal(old.ask("SELECT doi, year, outcome FROM search_result ORDER BY doi"),
          [["10.1/a", "2001", "relevant"], ["10.1/b", "-20", "irrelevant"],
           ["10.1/c", "0", "failed"], ["10.1/d", "2001", "not_judged"],
           ["10.1/e", "2001", "relevant"]], "with what became of each paper")
    equal(old.ask("SELECT query_id, judged_papers, relevant_papers, total_cost FROM query_log"
                  " ORDER BY query_id"), [["q", "2", "1", "0.00"], ["r", "1", "1", "2.50"]],
          "and of each run")
    equal(old.ask("SELECT * FROM contentlist_year_number"), [["A", '{"2001": 2}']],
          "the catalog shows what the blocks have")


# --- a screening, and what follows ---

def fetched(api, qid, kind):
    """A file of the relevant papers."""
    task = api("POST", "/api/download/create",
               {"query_id": qid, "type": kind, "scope": "relevant"}).body["task_id"]
    state = lambda: api("GET", f"/api/download/status?task_id={task}").body["state"]
    wait_for(lambda: state() in ("READY", "FAILED"), 30)
    request = urllib.request.Request(
        f"http://127.0.0.1:{api.server.port}/api/download/file?task_id={task}",
        headers={"Authorization": "Bearer " + api.token})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.read().decode()


def screened(m, api):
    qid, total = submit(api, 400)
    ok(reaches(api, qid, "DONE", 60), f"a run of {total} papers")
    v = view(api, qid)
    equal((v["finished"], v["failed"]), (total, 0), "has all of them", v)
    wait_for(lambda: charged(m, qid) == round(float(v["cost"]) * 100), 20)
    equal(charged(m, qid), round(float(v["cost"]) * 100), "its cost is what was charged")
    in_mysql = lambda: sql(m, "SELECT COUNT(*), COUNT(DISTINCT doi) FROM search_result"
                              f" WHERE query_id = '{qid}' AND relevant IS NOT NULL")[0]
    wait_for(lambda: in_mysql() == [str(total)] * 2, 20)
    equal(in_mysql(), [str(total)] * 2, "every verdict is in MySQL, once")
    return qid, v["relevant"]


def distilled(api, qid, relevant):
    wish = {"original_query_id": qid}
    wait_for(lambda: api("POST", "/api/distill/estimate", wish).status == 200, 20)
    r = api("POST", "/api/distill", {**wish, "question": "Is it about energy or light?"})
    equal(r.status, 202, "a distillation", r)
    ok(reaches(api, r.body["query_id"], "DONE", 60), "is done")
    equal(view(api, r.body["query_id"])["finished"], relevant, "over the relevant papers")


def halted(api):
    qid, total = submit(api, 1400)
    ok(wait_for(lambda: view(api, qid)["finished"] >= 20, 30), "another run is under way")
    equal(act(api, qid, "pause").status, 200, "paused")
    ok(reaches(api, qid, "PAUSED", 20), "it stops")
    time.sleep(1)
    stands = view(api, qid)["finished"]
    time.sleep(1)
    equal(view(api, qid)["finished"], stands, "and stands still")
    equal(act(api, qid, "resume").status, 200, "resumed")
    ok(wait_for(lambda: view(api, qid)["finished"] > stands, 30), "it goes on")
    equal(act(api, qid, "terminate").status, 200, "terminated")
    ok(reaches(api, qid, "CANCELLED", 20) and view(api, qid)["finished"] < total, "before its end")


def paid(m, api):
    root = admin(m, "root")
    path = f"/api/admin/users/{api.uid}"
    before = float(api.me().body["balance"])
    for _ in range(2):
        r = root("POST", path + "/recharge", {"amount": "7.50", "request_id": "one"})
    equal((r.status, r.body["balance"]), (200, f"{before + 7.5:.2f}"), "a recharge, once", r)
    for _ in range(2):
        r = root("POST", path + "/deduct", {"amount": "2.25", "request_id": "two"})
    equal((r.status, r.body["balance"]), (200, f"{before + 5.25:.2f}"), "a deduction, once", r)
    done = cli(m, "user", "recharge", "asher", "0.75")
    equal((done.returncode, api.me().body["balance"]), (0, f"{before + 6:.2f}"),
          "a recharge from the command line", done.stderr)


def remembered(m, api, qid, relevant):
    """What Redis had of a run is gone; MySQL has it."""
    shown = lambda: ([r["doi"] for page in api.pages(
        f"/api/queries/{qid}/results?verdict=relevant") for r in page["results"]])
    before, link = shown(), redis_link(m)
    equal(len(before), relevant, "the relevant papers are listed")
    keys = link("KEYS", f"*:{api.uid}:{qid}*")
    ok(keys and link("DEL", *keys) == len(keys), "its keys are dropped from Redis", keys)
    ok(qid in [q["query_id"] for q in api("GET", "/api/queries").body["queries"]],
       "it is in the history")
    equal((view(api, qid)["state"], shown()), ("DONE", before), "with its results")


@test("a screening, and what follows")
def _():
    with MySQL(PROGRAM, *MANAGED) as mysql, Sim("--latency-ms", "50") as sim:
        load(mysql)
        with server(sim, papers=0, mysql=mysql) as m:
            equal(json.loads(m.get("/readyz").body)["stores"]["mysql"]["up"], True, "ready")
            api = person(m, "asher", permission=20)
            qid, relevant = screened(m, api)
            distilled(api, qid, relevant)
            equal(fetched(api, qid, "bib").count("@"), relevant, "a file in BibTeX")
            ok(fetched(api, qid, "csv").count("\n") > relevant, "one for spreadsheets")
            halted(api)
            paid(m, api)
            remembered(m, api, qid, relevant)
            audited(m)
            equal(complaints(m), [], "no error in the log")


# --- MySQL is not itself ---

def read_only(m, mysql, api):
    mysql.ask("SET GLOBAL super_read_only = 1")
    r = wait_for(lambda: (r := m.get("/readyz")).status == 503 and r) or m.get("/readyz")
    ok(r.status == 503 and b"MySQL is read-only: " in r.body and b"1290" in r.body,
       "read-only: not ready, in words", r)
    r = api("POST", "/api/queries", {**QUESTION, "journals": journals(api, 50)[0]})
    equal(r.status, 503, "a submit is refused", r)
    equal(api.me().status, 200, "reads go on")
    mysql.ask("SET GLOBAL super_read_only = 0; SET GLOBAL read_only = 0")
    ok(wait_for(m.ready, 15), "ready as soon as it is writable", m.get("/readyz"))


def killed(m, mysql, api):
    qid, total = submit(api, 400)
    ok(wait_for(lambda: view(api, qid)["finished"] >= 20, 30), "a run is under way")
    mysql.kill()
    ok(wait_for(lambda: m.get("/readyz").status == 503, 10), "MySQL is killed: not ready")
    mysql.start()
    ok(wait_for(m.ready, 30), "ready when it is back", m.get("/readyz"))
    ok(reaches(api, qid, "DONE", 60), "the run ends")
    equal(view(api, qid)["finished"], total, "with all of its papers")
    audited(m)


def idle(m, api):
    """MySQL ends connections that were idle for two seconds, and writes to them that it does."""
    for _ in range(3):
        time.sleep(4)
        equal([api.me().status, api("GET", "/api/queries").status,
               api.login("asher").status], [200] * 3, "connections that MySQL has closed are"
                                                      " replaced unseen")


def unsafe(mysql, env):
    for setting, safe, words in (
            ("SET GLOBAL innodb_flush_log_at_trx_commit = 2",
             "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
             'set "innodb_flush_log_at_trx_commit = 1" in my.cnf'),
            ("SET GLOBAL sync_binlog = 0", "SET GLOBAL sync_binlog = 1",
             'set "sync_binlog = 1" in my.cnf'),
            ("ALTER INSTANCE DISABLE INNODB REDO_LOG", "ALTER INSTANCE ENABLE INNODB REDO_LOG",
             "run ALTER INSTANCE ENABLE INNODB REDO_LOG")):
        ok(mysql.ask(setting) is not None, setting)
        other = Millrace(env=env, mysql=mysql).launch()
        equal(other.wait(30), 1, "it does not start", other.log())
        ok(words in other.log(), f"and says: {words}", other.log())
        mysql.ask(safe)


@test("MySQL is read-only, killed, impatient, unsafe")
def _():
    with MySQL(PROGRAM, "--wait-timeout=2") as mysql, Sim("--latency-ms", "50") as sim:
        load(mysql)
        with server(sim, papers=0, mysql=mysql) as m:
            api = person(m, "asher", permission=4)
            read_only(m, mysql, api)
            killed(m, mysql, api)
            idle(m, api)
            audited(m)
        unsafe(mysql, {"MILLRACE_NODES": "1"})


@test("deploy/my.cnf")
def _():
    """MySQL starts with it, which it does not with a name that it does not know."""
    with open(MY_CNF) as f:
        text = f.read().replace("innodb_buffer_pool_size = 1G", "innodb_buffer_pool_size = 64M")
    path = f"{folder()}/my.cnf"
    with open(path, "w") as f:
        f.write(text)
    with MySQL(PROGRAM, defaults=path) as mysql:
        equal(mysql.ask("SELECT @@innodb_redo_log_capacity, @@max_connections, @@local_infile"),
              f"{512 << 20}\t300\t0", "its lines count")
        found = [l for l in mysql.log().splitlines() if "unknown variable" in l]
        equal(found, [], "each of them")


# --- backup and restore ---

@test("a drill: everything is lost under load, and restored")
def _():
    path = f"{folder()}/b"
    with MySQL(PROGRAM, *MANAGED) as mysql, Sim("--latency-ms", "100") as sim:
        load(mysql)
        with server(sim, papers=0, mysql=mysql) as m:
            people = [someone(m, n) for n in ("asher", "bella")]
            jobs = Jobs(m)
            runs = under_way(m, people)
            take(m, f"{folder()}/b", name="a backup while both are charged")
            jobs.begin(m)
            counts, results = while_frozen(m, runs, lambda: (take(
                m, path, name="a backup while no node syncs"), next_numbers(mysql))[1])
            whole(path)
            equal({t["name"]: str(t["auto_increment"]) for t in manifest(path)["tables"]
                   if "auto_increment" in t}, counts,
                  "it has the numbers that tables count by, not those of the one before")
            charges = rows_of(path)["billing_log"]
            ok(charges >= results, "it has every charge so far", charges, results)
            kill_all(m, mysql.process.pid)
        mysql.destroy()
        shutil.rmtree(m.data)
        mysql.start()
        done = restore(settings(m), path, name="a restore into an empty MySQL")
        ok(re.search(r"Lost is what happened in the \d+ s since then", done.stdout),
           "it says what is lost", done.stdout)
        with Millrace(data=m.data, env=settings(m), mysql=mysql) as other:
            ok(wait_for(other.ready, 40), "a server starts on it", other.log())
            audited(other)
            goes_on(other, runs)
            jobs.go_on(other)
            equal(complaints(other), [], "no error in the log")
        refused_full(m, path)
        moved(mysql, path, sim, runs)


def next_numbers(mysql):
    """MySQL answers with what it has counted before, unless it is told not to."""
    rows = mysql.ask("SET information_schema_stats_expiry = 0; SELECT table_name, auto_increment"
                     " FROM information_schema.tables WHERE table_schema = 'millrace'"
                     " AND auto_increment IS NOT NULL")
    return dict(line.split("\t") for line in rows.splitlines())


def refused_full(m, path):
    shutil.rmtree(m.data)
    done = restore(settings(m), path, status=1, name="no restore into a MySQL with tables")
    ok("has tables of millrace already" in done.stderr, "it says so", done.stderr)


def moved(mysql, path, sim, runs):
    """What was saved from MySQL serves on MariaDB, and goes back to MySQL."""
    env = {"MILLRACE_DATA_DIR": folder() + "/d", "MILLRACE_AI_URL": sim.url, "MILLRACE_NODES": "1"}
    back = f"{folder()}/b"
    restore(env, path, name="a restore into a private MariaDB")
    with Millrace(data=env["MILLRACE_DATA_DIR"], env=env) as m:
        ok(wait_for(m.ready, 40), "a server starts on it", m.log())
        audited(m)
        equal(again(runs[0][0], m).me().status, 200, "users are known")
        take(m, back, name="a backup of it")
        rows = rows_of(back)
    env = {**settings(m), **mysql.env, "MILLRACE_DATA_DIR": folder()}
    restore(env, back, "--overwrite", name="a restore into MySQL, over what is there")
    with Millrace(data=env["MILLRACE_DATA_DIR"], env=env, mysql=mysql) as m:
        ok(wait_for(m.ready, 40), "a server starts on it", m.log())
        audited(m)
        equal(int(sql(m, "SELECT COUNT(*) FROM paperinfo")[0][0]), rows["paperinfo"], "its papers")


@test("every table is in a backup, and comes back")
def _():
    with MySQL(PROGRAM, *MANAGED) as mysql, Redis("--appendonly", "yes") as redis:
        every_table.comes_back(Lender(mysql), redis)


# --- TLS ---

@test("over TLS")
def _():
    tls, stranger = certificate("mysql", "DNS:localhost"), certificate("other", "DNS:localhost")
    with MySQL(PROGRAM, "--tls-version=TLSv1.2,TLSv1.3", tls=tls) as mysql, Sim() as sim:
        url = f"mysql://millrace@localhost:{mysql.port}/millrace"
        env = {**mysql.env, "MILLRACE_DATA_DIR": folder()}
        for name, more, words in (
                ("none", "", "Access denied"),
                ("a certificate of somebody else", f"?tls=verify&ca={stranger[0]}", "ertificate"),
                ("an authority that is not known", "?tls=verify", "ertificate")):
            done = run("db", "migrate", env={**env, "MILLRACE_MYSQL_URL": url + more})
            ok(done.returncode == 1 and words in done.stderr, f"{name}: refused", done.stderr)
        mysql.env["MILLRACE_MYSQL_URL"] = f"{url}?tls=verify&ca={tls[0]}"
        load(mysql, 500)
        with server(sim, papers=0, mysql=mysql) as m:
            api = person(m, "asher")
            qid, total = submit(api, 200)
            ok(reaches(api, qid, "DONE", 60), "a run over TLS")
            take(m, f"{folder()}/b", name="a backup over TLS")
            audited(m)
            equal(complaints(m), [], "no error in the log")


# --- whole tests of other files ---

@test("other tests")
def _():
    with MySQL(PROGRAM) as mysql:
        for name in OTHERS:
            path = os.path.join(os.path.dirname(__file__), f"test_{name}.py")
            done = subprocess.run([sys.executable, path], text=True, capture_output=True,
                                  timeout=1200, cwd=folder(),
                                  env={**os.environ, "MILLRACE_TEST_MYSQL": mysql.socket})
            failed = re.findall(r"^not ok .*(?:\n#.*)*", done.stdout, re.M)
            held = len(re.findall(r"^ok ", done.stdout, re.M))
            ok(done.returncode == 0 and held and not failed, f"test_{name}.py: {held} checks",
               *(f[:2000] for f in failed), done.stderr[-2000:])


try:
    PROGRAM = unpacked()
except Unavailable as why:
    ok(False, f"MySQL cannot be tried here: {why}")
    finish()
run_tests()
