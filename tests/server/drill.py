"""A drill for backups: runs under way, a backup meanwhile, everything killed; after the restore the
runs go on."""
import contextlib
import json
import os
import signal
import subprocess
import time

from client import Api
from harness import equal, freeze, ok, redis_link, run, sql, wait_for
from screening import audited, charged, person, reaches, submit, view

DRILL_PAPERS = 400  # of each run


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


def someone(m, name):
    api = person(m, name, permission=4)
    api.name = name
    return api


# --- the drill ---

def under_way(m, people):
    runs = [(api, *submit(api, DRILL_PAPERS)) for api in people]
    ok(wait_for(lambda: all(view(a, q)["finished"] >= 40 for a, q, _ in runs), 60),
       "two runs are under way")
    return runs


def freeze(m, people):
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
