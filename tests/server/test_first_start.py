"""The first start: tables, a sample of papers, Redis filled from them; and all of it
interrupted."""
import json
import os
import random
import re
import shutil
import signal
import time

from harness import (SCALE, Millrace, copy_of_template, crowd, equal, folder, marked, note, ok,
                     read, redis, redis_link, run, run_tests, sql, test, wait_for)

SAMPLE = {"MILLRACE_SAMPLE_PAPERS": None}  # the default
PAPERS = 3000
SCHEMA = os.path.join(os.path.dirname(__file__), "..", "..", "schema")
NEWEST = len([n for n in os.listdir(SCHEMA) if n.endswith(".sql")])
LINE = 'papers  3,000 made-up papers to try it with; load your own with "millrace db init"'
NOTE = "SELECT JSON_VALUE(value, '$.papers'), JSON_VALUE(value, '$.loaded') FROM setting WHERE" \
       " name = 'sample_corpus'"
CONTENTS = {  # of each table: how much, and a number that any change changes
    "paperinfo": "DOI Bib",
    "corpus_block": "journal year papers digest",
    "contentlist": "Name FullName DataRange UpdateDate Price",
    "contentlist_year_number": "Name YearNumberJson",
    "info_tag": "Tag TagType",
    "info_paper_with_tag": "Name Tag",
    "api_list": "api_key",
}


def contents(m):
    found = {}
    for table, columns in CONTENTS.items():
        row = ", ".join(f"BINARY {c}" for c in columns.split())
        found[table] = sql(
            m, f"SELECT COUNT(*), BIT_XOR(CRC32(CONCAT_WS('/', {row}))) FROM {table}")[0]
    return found


def readyz(m):
    r = m.get("/readyz")
    return r.status, json.loads(r.body)


def said(m):
    """The status and the message of /readyz."""
    status, body = readyz(m)
    return status, body.get("error", {}).get("message")


def warm(m):
    """Whether the node that answers has filled Redis."""
    return readyz(m)[1]["warm_up"]["state"] == "done"


def keys(m, pattern):
    count = redis(m, "EVAL", "return #redis.call('KEYS', ARGV[1])", "0", pattern)
    return int(count.lstrip(":"))


_reference = None


def reference():
    """What an undisturbed first start gives."""
    global _reference
    if not _reference:
        with Millrace(env=SAMPLE) as m:
            _reference = contents(m)
    return _reference


def is_whole(m, name):
    """All of the sample is there, and known to be."""
    return equal((contents(m), sql(m, NOTE)), (reference(), [[str(PAPERS), "1"]]), name, m.log())


@test("nothing is configured")
def _():
    data = folder() + "/v"
    with Millrace(data=data, env=SAMPLE) as m:
        ok(f"loading a sample of {PAPERS} papers" in m.log() and "the sample is loaded" in m.log(),
           "the log tells of the sample before and after", m.log())
        ok("applied 0001" not in m.log() and "Redis is not up to date" not in m.log(),
           "but not what the commands print", m.log())
        ok("applied 0001_accounts" in read(f"{data}/log/provision.log").decode(),
           "which is in a file")
        ok(LINE in m.output(), "the announcement has a line for it", m.output())
        first = contents(m)
        equal(first["paperinfo"][0], str(PAPERS), "papers")
        for table in CONTENTS:
            ok(int(first[table][0]) > 0, f"{table} has rows")
        equal(sql(m, "SELECT SUM(papers) FROM corpus_block"), [[str(PAPERS)]], "blocks")
        # Each node says so when it has looked; whichever answers next must have.
        ok(wait_for(lambda: warm(m) and m.log().count("Redis is filled") >= 2, 60),
           "Redis is filled", m.log())
        equal(keys(m, "meta:*"), int(first["corpus_block"][0]), "with all blocks")
        equal(keys(m, "contentlist_year_number:*"), int(first["contentlist"][0]), "and years")
        equal(int(redis(m, "HLEN", "sys:journals:price")[1:]), int(first["contentlist"][0]),
              "and prices")
        status, body = readyz(m)
        blocks = int(first["corpus_block"][0])
        equal((status, body["warm_up"], body["schema"]),
              (200, {"state": "done", "catalog": True, "blocks": blocks, "blocks_ready": blocks,
                     "papers": PAPERS, "papers_ready": PAPERS},
               {"database": NEWEST, "program": NEWEST}), "and /readyz says so")
        metrics = wait_for(
            lambda: (t := m.get("/metrics").body.decode()).count(f"}} {blocks}\n") >= 4 and t, 15)
        for name in ("warm_blocks", "warm_blocks_ready"):
            for node in "01":
                ok(metrics and f'millrace_{name}{{node="{node}"}} {blocks}\n' in metrics,
                   f"metric {name} of node {node}", metrics)
        equal(m.stop(), 0, "it stops")
    made = os.stat(f"{data}/sample/.millrace-sample").st_mtime_ns
    with Millrace(data=data, env=SAMPLE) as m:
        ok("loading" not in m.log() and LINE in m.output(), "the second start loads nothing",
           m.log())
        equal(contents(m), first, "nothing has changed")
        equal(os.stat(f"{data}/sample/.millrace-sample").st_mtime_ns, made, "nor in the folder")
        sql(m, "DELETE FROM contentlist; DELETE FROM paperinfo")
    with Millrace(data=data, env=SAMPLE) as m:
        equal(sql(m, "SELECT COUNT(*) FROM contentlist"), [["0"]],
              "a sample that was removed stays so", m.log())


@test("no sample is wanted, or there are papers")
def _():
    data = copy_of_template()
    with Millrace(data=data) as m:
        equal({n for n, _ in contents(m).values()}, {"0"}, "sample_papers 0: nothing is loaded")
        ok(wait_for(lambda: warm(m)) and readyz(m)[0] == 200, "an empty server is ready", readyz(m))
        ok("papers" not in m.output() and not os.path.exists(f"{data}/sample"), "and has no sample")
        sql(m, "INSERT INTO contentlist (Name, FullName) VALUES ('MINE', 'My journal')")
    with Millrace(data=data, env=SAMPLE) as m:
        equal(sql(m, "SELECT Name FROM contentlist"), [["MINE"]],
              "somebody's journals: nothing either")
        equal(sql(m, NOTE), [], "nor is anything noted")
        ok("made-up" not in m.output() and not os.path.exists(f"{data}/sample"), "no sample")
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "20"}) as m:
        equal(sql(m, "SELECT COUNT(*) FROM paperinfo"), [["20"]], "another number")
        ok(" 20 made-up papers" in m.output(), "is announced", m.output())


@test("a sample that cannot be made")
def _():
    data = copy_of_template()
    os.makedirs(f"{data}/sample")
    with open(f"{data}/sample/letter", "w") as f:
        f.write("x")
    with Millrace(data=data, env=SAMPLE) as m:
        ok("is not empty, and not a sample" in m.log() and "could not be loaded" in m.log(),
           "somebody's folder: a warning", m.log())
        ok(" error " not in m.log() and "made-up" not in m.output(), "no more than that", m.log())
        equal(said(m), (200, None), "the server serves")
        equal((os.listdir(f"{data}/sample"), sql(m, NOTE)), (["letter"], []),
              "the folder is untouched")
    shutil.rmtree(f"{data}/sample")
    run("sample", "--papers", "50", f"{data}/sample")
    with Millrace(data=data, env=SAMPLE) as m:
        ok("holds another sample" in m.log(), "somebody's sample: a warning too", m.log())
        equal(sql(m, "SELECT COUNT(*) FROM contentlist"), [["0"]], "it is not loaded")
    run("sample", "--papers", str(PAPERS), "--force", f"{data}/sample")
    with Millrace(data=data, env=SAMPLE) as m:
        is_whole(m, "the same sample as ours will do")


@test("a sample that cannot be loaded")
def _():
    data = copy_of_template()
    refuse = "CREATE TRIGGER refuse BEFORE INSERT ON {} FOR EACH ROW SIGNAL SQLSTATE '45000'" \
             " SET MESSAGE_TEXT = 'not today'"
    with Millrace(data=data) as m:
        sql(m, refuse.format("contentlist"))
    with Millrace(data=data, env=SAMPLE) as m:
        ok("not today" in m.log() and '"millrace db init' in m.log() and "could not" in m.log(),
           "a warning with the words of the command", m.log())
        equal(said(m), (200, None), "the server serves")
        ok(sql(m, NOTE) == [] and not os.path.exists(f"{data}/sample"),
           "nothing came into the tables: it is as if nothing had been begun")
        sql(m, "DROP TRIGGER refuse; " + refuse.format("paperinfo"))
    with Millrace(data=data, env=SAMPLE) as m:
        ok("not today" in m.log() and "made-up" not in m.output(), "papers are refused", m.log())
        equal(sql(m, NOTE), [[str(PAPERS), "0"]], "journals were not: it is noted")
        sql(m, "DROP TRIGGER refuse")
    with Millrace(data=data) as m:
        equal(sql(m, "SELECT COUNT(*) FROM paperinfo"), [["0"]], "sample_papers 0: not completed")
    with Millrace(data=data, env={"MILLRACE_SAMPLE_PAPERS": "7"}) as m:
        is_whole(m, "the next start completes it, with as many papers as were begun")


def is_made(m):
    return read(f"{m.data}/sample/.millrace-sample").endswith(b"complete\n")


def phase(m):
    """How far the first start of a server that was killed had come. Its stores live on."""
    if not is_made(m):
        return "sample" if os.path.exists(f"{m.data}/sample") else "tables"
    return "done" if sql(m, NOTE) == [[str(PAPERS), "1"]] else "load"


@test("killed at any moment")
def _():
    seed = random.SystemRandom().randrange(1 << 32)
    dice = random.Random(seed)
    note(f"seed {seed}")
    reference()
    env = {**SAMPLE, "MILLRACE_NODES": "1"}
    with Millrace(env=env) as m:
        log = m.log()
    took = float(re.search(r"the sample is loaded, after ([0-9.]+) s", log)[1])
    hits = []
    for i in range(5):
        # One while tables are made, two while the sample is made, two while it is loaded.
        m = Millrace(data=folder() + "/v" if i < 1 else None, env=env).launch()
        if i < 1:
            wait_for(lambda: "MariaDB started" in m.log(), 40)
            time.sleep(dice.uniform(0, 0.4 * SCALE))
        elif i < 3:
            wait_for(lambda: os.path.exists(f"{m.data}/run/mariadb.sock"))
            while not os.path.exists(f"{m.data}/sample") and m.process.poll() is None:
                pass
            time.sleep(dice.uniform(0, 0.005))
        elif i < 4:
            wait_for(lambda: is_made(m), 40)
            time.sleep(dice.uniform(0, took * 0.3))
        else:
            wait_for(lambda: "loading a sample" in m.log(), 40)
            time.sleep(dice.uniform(0, took))
        m.process.kill()
        m.wait()
        ok(wait_for(lambda: not any(c.startswith("millrace ") for c in marked().values()), 10),
           f"round {i}: nobody goes on", marked())
        hits.append(phase(m))
        with Millrace(data=m.data, env=env) as after:
            is_whole(after, f"round {i}, {hits[-1]}: the next start completes it")
            ok("interrupted" in after.log() or hits[-1] in ("tables", "done"),
               f"round {i}: and says that it does", after.log())
        shutil.rmtree(m.data)
    ok({"sample", "load"} <= set(hits), "some were in the middle of it", hits)


@test("stopped while the sample is loaded")
def _():
    reference()
    data = copy_of_template()
    for delay in (0.0, 0.1, 0.3):
        m = Millrace(data=data, env={"MILLRACE_SAMPLE_PAPERS": "100000"}).launch()
        ok(wait_for(lambda: "loading a sample" in m.log(), 30), "it loads", m.log())
        time.sleep(delay)
        began = time.monotonic()
        equal(m.stop(), 0, f"SIGTERM after {delay} s", m.log())
        took = time.monotonic() - began
        ok(took < 4 * crowd(), f"ends it at once: {took:.1f} s", m.log())
        ok("could not" not in m.log() and "killing" not in m.log(), "without a complaint", m.log())
        ok(wait_for(lambda: not marked(), 2), "nothing is left", marked())
    with Millrace(data=data, env=SAMPLE) as m:
        if "sample of 3000 papers again" in m.log():
            is_whole(m, "another number, as nothing had come into the tables yet")
        else:
            equal(sql(m, NOTE), [["100000", "1"]], "begun with this number, so ended", m.log())
            equal(sql(m, "SELECT COUNT(*) FROM paperinfo"), [["100000"]], "all papers")


@test("a configured MySQL")
def _():
    with Millrace() as m:
        sql(m, "CREATE DATABASE theirs; CREATE USER they@localhost IDENTIFIED BY 'pass-word';"
               " GRANT ALL ON theirs.* TO they@localhost")
        url = f"unix:{m.data}/run/mariadb.sock?user=they&database=theirs"
        env = {**SAMPLE, "MILLRACE_MYSQL_URL": url, "MILLRACE_MYSQL_PASSWORD": "pass-word"}
        lacks = 'the database lacks migrations: run "millrace db migrate"'
        with Millrace(data=folder() + "/v", env=env) as other:
            equal(said(other), (503, lacks), "without tables it is not ready", other.log())
            body = readyz(other)[1]
            equal((body["warm_up"], body["schema"]),
                  ({"state": "failed", "catalog": False, "blocks": 0, "blocks_ready": 0,
                    "papers": 0, "papers_ready": 0, "problem": lacks},
                   {"database": 0, "program": NEWEST}), "and says what it is about")
            equal(sql(m, "SHOW TABLES", "theirs"), [], "nothing was made there")
            ok(not os.path.exists(f"{other.data}/sample") and "made-up" not in other.output(),
               "nor a sample")
            ok(wait_for(lambda: other.log().count(lacks) == 2, 10), "each node logs it",
               other.log())
            time.sleep(4 * SCALE)
            equal(other.log().count(lacks), 2, "once", other.log())
            loud = [l for l in other.log().splitlines()
                    if re.search(r"\b(WARN|ERROR)\b", l, re.I) and "running as root" not in l]
            equal(len(loud), 2, "and nothing else complains", *loud)
            equal(sql(m, "SHOW TABLES", "theirs"), [], "still nothing was made")
            equal(run("db", "migrate", env=env).returncode, 0, "the operator makes the tables")
            ok(wait_for(lambda: said(other) == (200, None), 15), "noticed without a restart",
               other.log())
            ok(wait_for(lambda: redis_link(other)("HLEN", "sys:nodes:info") == 2, 10),
               "the nodes get to work", other.log())
            equal(sql(m, "SELECT COUNT(*) FROM contentlist", "theirs"), [["0"]],
                  "there are no papers")
        sql(m, f"INSERT INTO schema_migration VALUES ({NEWEST + 4}, 'later', 'x', NOW())", "theirs")
        with Millrace(data=folder() + "/v", env=env) as other:
            status, message = said(other)
            ok(status == 503 and f"it is at migration {NEWEST + 4:04}" in message,
               "a newer database is not used", message)
        sql(m, "DROP DATABASE theirs")


@test("stores that are down")
def _():
    nothing = {"state": "waiting", "catalog": False, "blocks": 0, "blocks_ready": 0, "papers": 0,
               "papers_ready": 0}
    for name, env in (("Redis does not answer", {"MILLRACE_REDIS_URL": "redis://127.0.0.1:9"}),
                      ("MySQL does not answer",
                       {"MILLRACE_MYSQL_URL": "mysql://u:p@127.0.0.1:9/x"}),
                      ("Redis and MySQL do not answer",
                       {"MILLRACE_REDIS_URL": "redis://127.0.0.1:9",
                        "MILLRACE_MYSQL_URL": "mysql://u:p@127.0.0.1:9/x"})):
        with Millrace(env={**env, "MILLRACE_NODES": "1"}) as m:
            equal(said(m), (503, name), name)
            body = readyz(m)[1]
            equal((body["warm_up"], body["schema"]),
                  (nothing, {"database": None, "program": NEWEST}),
                  f"{name}: the rest is not known")
            equal(m.get("/healthz").status, 200, f"{name}: it lives")


@test("Redis comes back empty")
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "300"}) as m:
        blocks = int(sql(m, "SELECT COUNT(*) FROM corpus_block")[0][0])
        ok(wait_for(lambda: m.log().count("Redis is filled") == 2, 30),
           "both nodes have filled Redis", m.log())
        equal(keys(m, "meta:*"), blocks, "with all blocks")
        prices = redis(m, "HLEN", "sys:journals:price")
        equal(redis(m, "CONFIG", "SET", "appendfsync", "always"), "+OK", "to disk at once")
        equal(redis(m, "FLUSHALL"), "+OK", "all is gone")
        pid = m.pid_of("redis")
        os.kill(pid, signal.SIGKILL)
        ok(wait_for(lambda: m.pid_of("redis") not in (None, pid) and m.ready(), 30), "a new Redis",
           m.log())
        ok(wait_for(lambda: keys(m, "meta:*") == blocks, 30), "is filled again", m.log())
        equal(redis(m, "HLEN", "sys:journals:price"), prices, "with the catalog too")
        ok(wait_for(lambda: m.log().count("Redis is filled") == 4), "by both nodes", m.log())
        equal(said(m), (200, None), "ready")


@test("a node that died while it loaded the catalog")
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "300", "MILLRACE_NODES": "1"}) as m:
        ok(wait_for(lambda: warm(m), 30), "Redis is filled", m.log())
        for name in ("a catalog", "no catalog, and no journals"):
            redis(m, "SET", "sys:lock:catalog", "somebody", "PX", "15000")
            pid = m.nodes()[0]
            os.kill(pid, signal.SIGKILL)
            ok(wait_for(lambda: m.log().count("node: serves") == (2 if name[0] == "a" else 3)),
               f"{name}: another node", m.log())
            status, body = readyz(m)
            equal((status, body["warm_up"]["state"]), (200, "catalog"),
                  f"{name}: it is ready while it waits to load it anew", body)
            redis(m, "DEL", "sys:lock:catalog")
            ok(wait_for(lambda: warm(m)), f"{name}: and then does", m.log())
            sql(m, "DELETE FROM contentlist")
            redis(m, "DEL", "sys:journals:info")


@test("migrations that fail")
def _():
    newer = f"INSERT INTO schema_migration VALUES ({NEWEST + 4}, 'later', 'x', NOW())"
    why = f"it is at migration {NEWEST + 4:04}"
    with Millrace() as m:
        nodes = m.nodes()
        ok(wait_for(lambda: m.log().count("Redis is filled") == 2), "both nodes are ready", m.log())
        sql(m, newer)
        m.send_signal(signal.SIGHUP)
        ok(wait_for(lambda: "not migrated: no new nodes, 2 old ones go on" in m.log()),
           "on a reload: no new nodes", m.log())
        ok(why in m.log(), "and why", m.log())
        time.sleep(1)
        equal((m.nodes(), said(m)), (nodes, (200, None)), "the old ones serve")
        m.send_signal(signal.SIGHUP)
        ok(wait_for(lambda: m.log().count("not migrated") == 2), "another reload tries again",
           m.log())
        equal((m.nodes(), said(m)), (nodes, (200, None)), "the old ones serve still")
        sql(m, f"DELETE FROM schema_migration WHERE number > {NEWEST}")
        m.send_signal(signal.SIGHUP)
        ok(wait_for(lambda: "the old nodes have ended" in m.log(), 30), "a good one works", m.log())
        ok(not set(nodes) & set(m.nodes()) and said(m) == (200, None), "with new nodes", m.log())
        sql(m, newer)
        m.send_signal(signal.SIGHUP)
        ok(wait_for(lambda: m.log().count("not migrated") == 3), "once more a bad one", m.log())
        equal(m.stop(), 0, "SIGTERM ends that too", m.log())
    again = Millrace(data=m.data).launch()
    equal(again.wait(), 1, "at a start: exit status 1", again.log())
    ok(why in again.log() and "could not be migrated" in again.log(), "and why", again.log())


if __name__ == "__main__":
    run_tests()
