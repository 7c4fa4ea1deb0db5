"""`millrace backup` while runs go on, `millrace restore` after everything is lost, and what both
refuse."""
import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import disk
import every_table
from client import Api
from drill import (Jobs, goes_on, kill_all, manifest, restore, rows_of, settings, someone, take,
                   under_way, while_frozen, whole)
from harness import (BIN, Millrace, equal, folder, freeze, note, ok, run, run_tests, sql, test,
                     wait_for)
from loading import MIGRATIONS, Database, sample
from own_redis import Redis
from screening import audited, server, view
from sim import Sim

OLD = 10  # migrations of an older database
PACKED_MB = 40
LONG = "MILLRACE_BACKUP_LONG" in os.environ


@test("a drill: everything is lost under load, and restored")
def _():
    with Sim("--latency-ms", "100") as sim:
        with server(sim, papers=1500) as m:
            people = [someone(m, n) for n in ("asher", "bella")]
            jobs = Jobs(m)
            runs = under_way(m, people)
            made = people[0]("POST", "/api/tokens", {"name": "x", "scopes": ["read"]})
            take(m, f"{folder()}/b", name="a backup while both are charged")
            jobs.begin(m)
            path = f"{folder()}/b"
            done, results = while_frozen(m, runs, lambda: (jobs.wait(m), take(
                m, path, name="a backup while no node syncs"))[1])
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
            equal(Api(other, made.body["token"]).me().status, 200, "an API token works")
            goes_on(other, runs)
            jobs.go_on(other)
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
        stranger(m)
        silent(m)
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
    names_the_newest(m, parent, kept[-1])
    names_what_is_away(f"{parent}/{kept[-1]}")


def names_the_newest(m, parent, newest):
    done = restore({"MILLRACE_DATA_DIR": folder()}, parent, status=1,
                   name="no restore from the parent of backups")
    ok(f"the newest in it is {parent}/{newest}\n" in done.stderr, "it names the newest",
       done.stderr)


def names_what_is_away(path):
    for store, variable, url in (("Redis", "MILLRACE_REDIS_URL", "redis://127.0.0.1:1"),
                                 ("MySQL", "MILLRACE_MYSQL_URL", "mysql://me@127.0.0.1:1/x")):
        done = restore({"MILLRACE_DATA_DIR": folder(), variable: url}, path, status=1,
                       name=f"no restore without {store}")
        ok(f"{store} at {url}: " in done.stderr and "Nothing was changed" in done.stderr,
           "it says which store is away", done.stderr)


def stranger(m):
    """A user who may not read the passwords of the stores: the server need not be started."""
    if os.geteuid() != 0:
        note("not root: a backup by another user is not tried")
        return
    p = launch(m, f"{folder()}/b", user=65534, group=65534, extra_groups=[])
    err = p.communicate(timeout=20)[1]
    ok(p.returncode == 1 and "Permission denied" in err and "start that first" not in err,
       "no backup by another user, who is told why", err)


def silent(m):
    mysql = m.pid_of("mariadb")
    freeze(mysql)
    try:
        done = take(m, f"{folder()}/b", status=1, name="no backup while MariaDB is silent")
    finally:
        os.kill(mysql, signal.SIGCONT)
    ok("the private MariaDB: " in done.stderr, "it says which store it is", done.stderr)


def full_disk(m):
    if not disk.separate():
        note("no small disk can be had here: not tried")
        return
    small = disk.Disk(folder())
    sql(m, "INSERT INTO document_piece SELECT seq, 'file', 0, REPEAT('x', 1 << 20)"
           f" FROM seq_1_to_{PACKED_MB}; ANALYZE TABLE document_piece")
    try:
        with small.full():
            wait_for(lambda: os.statvfs(small.path).f_bavail < 100, 10)
            done = take(m, small.path, status=1, name="no backup to a full disk")
        ok("the disk is full" in done.stderr, "it says so", done.stderr)
        needs = re.search(r"the backup needs (\d+) MB", done.stderr)
        ok(int(needs[1]) > PACKED_MB, "with what it needs: files of users become no smaller",
           done.stderr)
        equal([n for n in os.listdir(small.path) if n != "ballast"], [], "nothing is left")
        take(m, small.path, name="a backup straight onto a disk")
    finally:
        small.unmount()


# --- every table ---

@test("every table is in a backup, and comes back")
def _():
    with sample_server() as m, Redis("--appendonly", "yes") as redis:
        every_table.comes_back(m, redis)


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
    ok(target.counted("paperinfo") > some / 2, "MySQL knows how many, and can be stopped")
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
    old.migrate_by_hand(OLD)
    old.ask("INSERT INTO user_info (username, username_folded, password, balance)"
            " VALUES ('asher', 'asher', '', 12.34)")
    old.ask("INSERT INTO query_log (query_id, uid, status) VALUES ('q', 1, 'PAUSED')")
    env = {"MILLRACE_REDIS_URL": redis.url, "MILLRACE_DATA_DIR": folder()}
    path = f"{folder()}/b"
    done = run("backup", path, env={**env, **old.env}, timeout=120)
    equal((done.returncode, len(manifest(path)["migrations"])), (0, OLD),
          "a backup of an older database", done.stderr)
    restore({**env, **new.env}, path, "--overwrite", name="is restored by this program")
    equal(new.ask("SELECT MAX(number) FROM schema_migration"), [[str(len(MIGRATIONS))]],
          "and brought up to date")
    equal(new.ask("SELECT balance, q.judged_papers FROM user_info JOIN query_log q USING (uid)"),
          [["12.34", "0"]], "with what was in it")


if LONG:
    test("configured stores: none is overwritten unasked, nor under a running server")(configured)
run_tests()
