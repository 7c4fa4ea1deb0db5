"""`millrace backup` while runs go on, `millrace restore` after everything is lost, and what both
refuse."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

import disk
from client import Api
from harness import (BIN, Millrace, equal, folder, note, ok, redis_link, run, run_tests, sql,
                     test, wait_for)
from loading import Database, sample
from own_redis import Redis
from screening import audited, charged, person, reaches, server, submit, view
from sim import Sim

PAPERS = 400
SCHEMA = pathlib.Path(__file__).parents[2] / "schema"
OLD = 10  # migrations of an older database
TEXT, EXACT = "utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_nopad_bin"
LONG = "MILLRACE_BACKUP_LONG" in os.environ


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


def kill_all(m):
    """Everything at once, the stores too."""
    pids = [m.process.pid, *m.nodes(), m.pid_of("redis"), m.pid_of("mariadb")]
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


def someone(m, name):
    api = person(m, name, permission=4)
    api.name = name
    return api


# --- the drill ---

def under_way(m, people):
    runs = [(api, *submit(api, PAPERS)) for api in people]
    ok(wait_for(lambda: all(view(a, q)["finished"] >= 40 for a, q, _ in runs), 60),
       "two runs are under way")
    return runs


def freeze(m, people):
    """The nodes, stopped while some charges are in Redis alone."""
    nodes, link = m.nodes(), redis_link(m)
    for _ in range(100):
        for pid in nodes:
            os.kill(pid, signal.SIGSTOP)
        if any(link("LLEN", f"billing_queue:{a.uid}") for a in people):
            return nodes
        for pid in nodes:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
    raise AssertionError("every charge is synced at once")


def while_frozen(m, runs, act):
    """What act returns, and how many papers had been charged."""
    nodes = freeze(m, [a for a, _, _ in runs])
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


@test("a drill: everything is lost under load, and restored")
def _():
    with Sim("--latency-ms", "100") as sim:
        with server(sim, papers=1500) as m:
            people = [someone(m, n) for n in ("asher", "bella")]
            runs = under_way(m, people)
            take(m, f"{folder()}/b", name="a backup while both are charged")
            path = f"{folder()}/b"
            done, results = while_frozen(m, runs, lambda: take(
                m, path, name="a backup while no node syncs"))
            ok("verified" in done.stdout and "everything that happened before" in done.stdout,
               "it says what it has", done.stdout)
            whole(path)
            charges = rows_of(path)["billing_log"]
            ok(charges >= results, "it has every charge so far", charges, results)
            refuses_full(m, path)
            busy = restore(settings(m), path, "--overwrite", status=1,
                           name="no restore while the server runs")
            ok("another millrace" in busy.stderr, "it says so", busy.stderr)
            ok(wait_for(lambda: sum(view(a, q)["finished"] for a, q, _ in runs) > charges + 40, 60),
               "the runs go on meanwhile")
            kill_all(m)
        refuses_database(m, path)
        shutil.rmtree(m.data)
        refuses_damage(m, path)
        done = restore(settings(m), path, name="a restore on an empty machine")
        ok(re.search(r"Lost is what happened in the \d+ s since then", done.stdout),
           "it says what is lost", done.stdout)
        with Millrace(data=m.data, env=settings(m)) as other:
            ok(wait_for(other.ready, 40), "a server starts on it")
            audited(other)
            ok(sql(other, "SELECT 1 FROM api_list WHERE rpm_limit = 1000000"),
               "keys are as they were")
            goes_on(other, runs)
            if LONG:
                overwrites(other, path)


def refuses_full(m, path):
    done = take(m, path, status=1, name="no backup into a folder that has one")
    ok("is not empty" in done.stderr and path in done.stderr, "it says so", done.stderr)
    equal(len(manifest(path)["tables"]) > 20, True, "and leaves it alone")


def refuses_database(m, path):
    before = os.stat(f"{m.data}/mariadb/data").st_ino
    done = restore(settings(m), path, status=1, name="no restore over a database")
    ok("has a database already" in done.stderr and "Nothing was changed" in done.stderr,
       "it says so", done.stderr)
    equal(os.stat(f"{m.data}/mariadb/data").st_ino, before, "which is left alone")


def overwrites(m, path):
    """With --overwrite the old data is moved aside; a restore that fails puts it back."""
    users = sql(m, "SELECT COUNT(*) FROM user_info")
    m.stop()
    done = restore(settings(m), path, "--overwrite", name="a restore over a database")
    aside = re.search(r"The database from before is in (\S+):", done.stdout)
    ok(aside and os.path.exists(f"{aside[1]}/ibdata1"), "it says where the old one is", done.stdout)
    with Millrace(data=m.data, env=settings(m)) as other:
        ok(wait_for(other.ready, 40), "a server starts on it")
        equal(sql(other, "SELECT COUNT(*) FROM user_info"), users, "with its users")
        audited(other)


# --- damage ---

def copy(path):
    there = f"{folder()}/b"
    shutil.copytree(path, there)
    return there


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1]))


def change(path, old, new):
    with open(path, "r+", encoding="utf-8") as f:
        text = f.read()
        assert old in text, old
        f.seek(0)
        f.write(text.replace(old, new, 1))
        f.truncate()


def damages(path):
    """What was done to a copy of a backup, and what the refusal must name."""
    big = f"{path}/paperinfo.tsv.zst"
    size = os.path.getsize(big)
    yield "a flipped byte", "paperinfo.tsv.zst", lambda p: flip(f"{p}/paperinfo.tsv.zst", size // 2)
    yield "a truncated file", "paperinfo.tsv.zst", lambda p: os.truncate(
        f"{p}/paperinfo.tsv.zst", size - 100)
    yield "an appended byte", "user_info.tsv.zst", lambda p: open(
        f"{p}/user_info.tsv.zst", "ab").write(b"x")
    yield "a missing file", "billing_log.tsv.zst", lambda p: os.unlink(f"{p}/billing_log.tsv.zst")
    yield "a missing manifest", "manifest.json", lambda p: os.unlink(f"{p}/manifest.json")
    rows = rows_of(path)["user_info"]
    yield "another number of rows", "manifest.json", lambda p: change(
        f"{p}/manifest.json", f'"name":"user_info","rows":{rows}',
        f'"name":"user_info","rows":{rows + 1}')
    yield "a path in the manifest", "manifest.json", lambda p: change(
        f"{p}/manifest.json", '"user_info.tsv.zst"', '"../user_info.tsv.zst"')
    yield "half a manifest", "manifest.json", lambda p: os.truncate(f"{p}/manifest.json", 500)
    yield "a newer format", "newer millrace", lambda p: change(
        f"{p}/manifest.json", '"format":1', '"format":2')
    yield "another migration", "migration 0001", lambda p: change(
        f"{p}/manifest.json", manifest(p)["migrations"][0], "0" * 64)
    yield "a changed redis.json", "redis.json", lambda p: change(f"{p}/redis.json", "{", " {")


def refuses_damage(m, path):
    for name, word, damage in damages(path):
        there = copy(path)
        damage(there)
        done = run("restore", there, env=settings(m), timeout=60)
        ok(done.returncode == 1 and word in done.stderr and "Nothing was changed" in done.stderr,
           f"{name}: refused, with {word}", done.returncode, done.stdout, done.stderr)
        ok(not os.path.exists(m.data), f"{name}: nothing was made")
        shutil.rmtree(there)


# --- what ends a backup ---

def sample_server():
    return Millrace(env={"MILLRACE_SAMPLE_PAPERS": "1500", "MILLRACE_NODES": "1"})


@contextlib.contextmanager
def locked(m, table):
    database = Database.__new__(Database)
    database.server, database.name = m, "millrace"
    with database.locked(table):
        yield


def launch(m, *args, **kw):
    return subprocess.Popen([BIN, "backup", *args], env=m.env, cwd=folder(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


@test("a backup that is interrupted, or cannot be written, leaves nothing")
def _():
    with sample_server() as m:
        for number in (signal.SIGINT, signal.SIGTERM):
            path = f"{folder()}/b"
            with locked(m, "prompt_text"):
                p = launch(m, path)
                ok(wait_for(lambda: os.path.exists(f"{path}/partial/paperinfo.tsv.zst"), 20),
                   "a backup is under way")
                second = take(m, path, status=1, name="a second one into the same folder")
                ok("another backup" in second.stderr, "is refused", second.stderr)
                p.send_signal(number)
                out, err = p.communicate(timeout=20)
            ok(p.returncode == 1 and "interrupted" in err, "a signal ends it", p.returncode, err)
            ok(not os.path.exists(path), "nothing is left")
        path = folder()
        limit = 50_000
        p = launch(m, path, preexec_fn=lambda: (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
        out, err = p.communicate(timeout=60)
        ok(p.returncode == 1 and "File too large" in err, "a file that cannot be written", err)
        equal(os.listdir(path), [], "nothing is left in a folder that was there")
        keeps(m)
        bad = take(m, "/proc/nothing/b", status=1, name="a folder that cannot be made")
        ok("/proc/nothing/b: No such file" in bad.stderr, "is named", bad.stderr)
        full_disk(m)
    gone = take(m, f"{folder()}/b", status=1, name="no backup without stores")
    ok("start that first" in gone.stderr, "it says what to do", gone.stderr)


def keeps(m):
    """--keep: the newest ones stay, what was interrupted goes, all else is left alone."""
    parent = f"{folder()}/backups"
    os.makedirs(f"{parent}/millrace-20200101T000000Z/partial")
    for other in ("mine", "millrace-notes"):
        os.makedirs(f"{parent}/{other}")
    for i in range(3):
        take(m, parent, "--keep", "2", name=f"backup {i + 1} of three, two are kept")
        time.sleep(1.1)
    kept = sorted(n for n in os.listdir(parent) if re.fullmatch(r"millrace-\d{8}T\d{6}Z", n))
    equal((len(kept), [os.path.exists(f"{parent}/{n}/manifest.json") for n in kept]),
          (2, [True, True]), "two whole ones stay")
    ok(all(os.path.exists(f"{parent}/{n}") for n in ("mine", "millrace-notes")),
       "other folders stay")


def full_disk(m):
    if not disk.separate():
        note("no small disk can be had here: not tried")
        return
    small = disk.Disk(folder())
    try:
        with small.full():
            wait_for(lambda: os.statvfs(small.path).f_bavail < 100, 10)
            done = take(m, small.path, status=1, name="no backup to a full disk")
        ok("the disk is full" in done.stderr, "it says so", done.stderr)
        equal([n for n in os.listdir(small.path) if n != "ballast"], [], "nothing is left")
        take(m, small.path, name="a backup straight onto a disk")
    finally:
        small.unmount()


# --- configured stores ---

def configured():
    with sample_server() as m, Redis("--appendonly", "yes") as redis:
        loading = Database(m)
        top = sample(3000, seed=5)
        loader = loading.launch(top)
        ok(wait_for(lambda: loading.stored() > 200, 60), "db init is under way")
        env = {**loading.env, "MILLRACE_REDIS_URL": redis.url, "MILLRACE_DATA_DIR": folder()}
        path = f"{folder()}/b"
        redis.say('SET api_limit:1:month "1793491200 1234"')
        done = run("backup", path, env=env, timeout=120)
        ok(done.returncode == 0, "a backup during a load", done.stdout, done.stderr)
        loader.wait(120)
        some = rows_of(path)["paperinfo"]
        ok(0 < some <= 3000, "has the papers so far", some)
        again_into(m, redis, path, top, loading, some)
        older(m, redis)


def again_into(m, redis, path, top, loading, some):
    target = Database(m)
    env = {**target.env, "MILLRACE_REDIS_URL": redis.url, "MILLRACE_DATA_DIR": folder()}
    redis.say("SET a 1")
    done = restore(env, path, status=1, name="no restore into a Redis with keys")
    ok("is not empty: it has" in done.stderr, "it says so", done.stderr)
    equal(target.ask("SHOW TABLES"), [], "MySQL was not touched")
    restore(env, path, "--overwrite", name="with --overwrite it is emptied")
    equal((redis.ask("DBSIZE"), redis.ask("STRLEN api_limit:1:month"), target.stored()),
          (":1", ":15", some), "but for the counter of a cap; and MySQL has the papers")
    equal(target.ask("SELECT next.AUTO_INCREMENT = old.AUTO_INCREMENT"
                     " FROM information_schema.tables next JOIN information_schema.tables old"
                     " ON old.table_name = next.table_name WHERE next.table_name = 'api_list'"
                     f" AND next.table_schema = '{target.name}'"
                     f" AND old.table_schema = '{loading.name}'"), [["1"]], "numbers go on")
    target.init(top)
    equal(target.dump()["paperinfo"], loading.dump()["paperinfo"], "db init completes the load")
    redis.say("FLUSHDB")
    done = restore(env, path, status=1, name="no restore into a MySQL with tables")
    ok("has tables of millrace already" in done.stderr, "it says so", done.stderr)
    target.ask("CREATE TABLE restore_unfinished (id INT)")
    done = run("db", "migrate", env=env)
    ok(done.returncode == 1 and "run \"millrace restore --overwrite\" again" in done.stderr,
       "a database that is half restored is not used", done.stderr)
    restore(env, path, "--overwrite", name="with --overwrite it is replaced")
    equal((target.stored(), target.ask("SHOW TABLES LIKE 'restore_unfinished'")), (some, []),
          "by the papers of the backup")
    serves(m, target, redis, path, env)


def serves(m, target, redis, path, env):
    with Millrace(data=env["MILLRACE_DATA_DIR"], env={**env, "MILLRACE_NODES": "1"}) as other:
        ok(wait_for(other.ready, 40), "a server starts on it", other.get("/readyz").body)
        done = restore({**env, "MILLRACE_DATA_DIR": folder()}, path, "--overwrite", status=1,
                       name="no restore under a server on another machine")
        ok("a node of millrace is running" in done.stderr, "it says so", done.stderr)
        equal(run("audit", env=env).returncode, 0, "every cent is where it belongs")


def older(m, redis):
    """A backup of a database that lacks the last migrations."""
    old, new = Database(m), Database(m)
    old.ask("CREATE TABLE schema_migration (number INT NOT NULL PRIMARY KEY,"
            " name VARCHAR(64) NOT NULL, checksum CHAR(64) NOT NULL, applied_at DATETIME(3) NULL)")
    names = sorted(p for p in SCHEMA.glob("*.sql"))
    for path in names[:OLD]:
        number, _, name = path.stem.partition("_")
        text = path.read_text(encoding="utf-8")
        old.ask(text.replace("@TEXT@", TEXT).replace("@EXACT@", EXACT))
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        old.ask("INSERT INTO schema_migration VALUES"
                f" ({int(number)}, '{name}', '{checksum}', NOW(3))")
    old.ask("INSERT INTO user_info (username, username_folded, password, balance)"
            " VALUES ('asher', 'asher', '', 12.34)")
    old.ask("INSERT INTO query_log (query_id, uid, status) VALUES ('q', 1, 'PAUSED')")
    env = {"MILLRACE_REDIS_URL": redis.url, "MILLRACE_DATA_DIR": folder()}
    path = f"{folder()}/b"
    done = run("backup", path, env={**env, **old.env}, timeout=120)
    equal((done.returncode, len(manifest(path)["migrations"])), (0, OLD),
          "a backup of an older database", done.stderr)
    restore({**env, **new.env}, path, "--overwrite", name="is restored by this program")
    equal(new.ask("SELECT MAX(number) FROM schema_migration"), [[str(len(names))]],
          "and brought up to date")
    equal(new.ask("SELECT balance, q.judged_papers FROM user_info JOIN query_log q USING (uid)"),
          [["12.34", "0"]], "with what was in it")


if LONG:
    test("configured stores: none is overwritten unasked, nor under a running server")(configured)
run_tests()
