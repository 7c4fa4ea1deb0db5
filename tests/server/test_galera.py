"""Galera as MySQL, by a list of its three nodes: the one in use is killed, hangs, takes no changes,
or loses the others; and two servers of millrace that use different nodes. Needs galera-4, which
`./test slow` and `./test --only test_galera` install."""
import contextlib
import itertools
import threading
import time

from admins import admin
from client import Api
from drill import settings
from harness import (Millrace, crowd, equal, finish, folder, note, ok, run, run_tests, sql, test,
                     wait_for)
from loading import sample
from own_galera import Galera, Unavailable, available
from own_redis import Redis
from screening import audited, charged, person, reaches, submit, view
from sim import Sim

PAPERS = 1500
RUN_PAPERS = 400
PAUSE_S = 5  # that no change is taken when the node in use goes
ROUNDS = 60
ROWS = 100000
NUMBERS = itertools.count()


def load(galera):
    env = {**galera.env, "MILLRACE_DATA_DIR": folder()}
    done = run("db", "migrate", env=env, timeout=120)
    equal((done.returncode, done.stderr), (0, ""), "every migration is applied", done.stdout)
    done = run("db", "init", "--data", str(sample(PAPERS)), env=env, timeout=300)
    ok(done.returncode == 0, "db init", done.stdout[-1000:], done.stderr[-1000:])


@contextlib.contextmanager
def server(galera, sim, **settings):
    env = {"MILLRACE_SAMPLE_PAPERS": "0", "MILLRACE_AI_URL": sim.url,
           "MILLRACE_AI_TIMEOUT_MS": "3000", "MILLRACE_NODES": "2", **settings}
    with Millrace(env=env, mysql=galera) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        sql(m, "UPDATE api_list SET rpm_limit = 1000000, tpm_limit = 1000000000")
        yield m


def connections(node):
    return int(node.ask("SELECT COUNT(*) FROM information_schema.processlist"
                        " WHERE user = 'millrace'") or 0)


def in_use(galera):
    """The node that the server's connections are to."""
    one = lambda: [n for n in galera.nodes if connections(n)]
    assert wait_for(lambda: len(one()) == 1, 10), [connections(n) for n in galera.nodes]
    return one()[0]


def token(api, name):
    return api("POST", "/api/tokens", {"name": name, "scopes": ["read"]})


class Changes:
    """A change of MySQL every 50 ms, and how long none was taken; not by a user with runs, whose
    row they would share."""

    def __init__(self, m, api):
        self.api = Api(m, api.token)
        self.longest, self.made, self.refused, self.going = 0.0, 0, [], True

    def work(self):
        last = time.monotonic()
        while self.going:
            r = token(self.api, f"change {next(NUMBERS)}")
            if r.status == 201:
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now
                self.made += 1
                self.api("DELETE", f"/api/tokens/{r.body['id']}")
            else:
                self.refused.append(r.status)
            time.sleep(0.05)

    def __enter__(self):
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.going = False
        self.thread.join(60)


# --- the node in use goes ---

def goes(galera, m, people, what, hurt):
    """hurt(node) while a run is under way. The node."""
    asher, bella = people
    node = in_use(galera)
    m.sql_socket = next(n.socket for n in galera.nodes if n is not node)
    qid, total = submit(asher, RUN_PAPERS)
    ok(wait_for(lambda: view(asher, qid)["finished"] >= 20, 30), "a run is under way")
    with Changes(m, bella) as changes:
        wait_for(lambda: changes.made > 3, 10)
        hurt(node)
        before = changes.made
        ok(wait_for(lambda: changes.made > before + 20, 30), f"{what}: changes go on")
    ok(changes.longest <= PAUSE_S * crowd(),
       f"{what}: {changes.longest:.1f} s without a change, {len(changes.refused)} refused")
    ok(set(changes.refused) <= {503}, "with 503, if any", changes.refused)
    ok(reaches(asher, qid, "DONE", 60), "the run ends")
    v = view(asher, qid)
    equal((v["finished"], v["failed"]), (total, 0), "with all of its papers")
    cents = round(float(v["cost"]) * 100)
    ok(wait_for(lambda: charged(m, qid) == cents, 20), "its cost is what was charged",
       charged(m, qid), cents)
    ok(in_use(galera) is not node, "another node is used")
    audited(m)
    return node


def none_writable(galera, m, api):
    root = admin(m, "root")
    names = lambda: [a["name"] for a in root("GET", "/api/admin/overview").body["alerts"]]
    for n in galera.nodes:
        assert n.ask("SET GLOBAL read_only = 1") is not None
    r = wait_for(lambda: (r := m.get("/readyz")).status == 503 and r, 20)
    ok(r and b"MySQL is read-only" in r.body, "no node takes changes: not ready, in words", r)
    equal((token(api, "x").status, api.me().status), (503, 200), "changes are refused, reads go on")
    ok(wait_for(lambda: "read_only" in names(), 20), "there is an alert", names())
    galera.nodes[2].ask("SET GLOBAL read_only = 0")
    ok(wait_for(m.ready, 15), "one takes changes again: ready", m.get("/readyz"))
    ok(wait_for(lambda: "read_only" not in names(), 20), "the alert is over", names())
    ok(in_use(galera) is galera.nodes[2], "that one is used")
    for n in galera.nodes:
        n.ask("SET GLOBAL read_only = 0")


def alone(galera, m, api):
    """wsrep_ready is OFF: the node in use answers, and refuses everything (1047)."""
    node = in_use(galera)
    others = [n for n in galera.nodes if n is not node]
    for n in others:
        n.freeze()
    r = wait_for(lambda: (r := m.get("/readyz")).status == 503 and r, 30)
    ok(r and b"MySQL does not answer" in r.body, "a node that has lost its group: not ready", r)
    equal(token(api, "y").status, 503, "changes are refused")
    equal(node.status("wsrep_ready"), "OFF", "it is not ready")
    for n in others:
        n.thaw()
    ok(wait_for(m.ready, 40), "ready when the group is whole again", m.get("/readyz"))
    equal(token(api, "z").status, 201, "changes are taken")
    for n in galera.nodes:
        n.wait_synced()


@test("the node in use is killed, hangs, takes no changes, is alone")
def _():
    with Galera() as galera, Sim("--latency-ms", "60") as sim:
        note(f"MariaDB {galera.nodes[0].ask('SELECT VERSION()')}")
        load(galera)
        with server(galera, sim) as m:
            people = [person(m, name, permission=4) for name in ("asher", "bella")]
            goes(galera, m, people, "killed", lambda n: n.kill()).start_again()
            node = goes(galera, m, people, "frozen", lambda n: n.freeze())
            node.thaw()
            node.wait_synced()
            node = goes(galera, m, people, "read-only", lambda n: n.ask("SET GLOBAL read_only = 1"))
            node.ask("SET GLOBAL read_only = 0")
            none_writable(galera, m, people[1])
            alone(galera, m, people[1])
            audited(m)


# --- two machines, two nodes ---

def at_once(calls):
    """What they return; they begin at the same time."""
    barrier, out = threading.Barrier(len(calls)), [None] * len(calls)

    def one(i):
        barrier.wait()
        out[i] = calls[i]()
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


def reads_see(galera, here, there):
    """The other node is behind: a change of many rows, which it applies row by row, comes before
    each token."""
    first, missed = galera.nodes[0], 0
    assert first.ask("USE millrace; CREATE TABLE many (id INT PRIMARY KEY, n INT);"
                     f"INSERT INTO many SELECT seq, 0 FROM seq_1_to_{ROWS}") is not None
    for i in range(3):
        assert first.ask("UPDATE millrace.many SET n = n + 1") is not None
        made = token(here, f"seen {i}").body["id"]
        missed += made not in [x["id"] for x in there("GET", "/api/tokens").body["tokens"]]
        missed += there("DELETE", f"/api/tokens/{made}").status != 200
    equal(missed, 0, "what was committed on one node is read on another that is behind")
    first.ask("DROP TABLE millrace.many")


def take_turns(here, there):
    """Names are compared while the user's row is locked, which another node does not see."""
    both = 0
    for i in range(ROUNDS):
        replies = at_once([lambda: token(here, f"turn {i}"), lambda: token(there, f"turn {i}")])
        statuses = sorted(r.status for r in replies)
        both += statuses == [201, 201]
        for r in replies:
            if r.status == 201:
                here("DELETE", f"/api/tokens/{r.body['id']}")
    equal(both, 0, f"of two tokens of one name at the same time one is made, {ROUNDS} times")


def conflicts(galera):
    return sum(int(n.status(s)) for n in galera.nodes
               for s in ("wsrep_local_cert_failures", "wsrep_local_bf_aborts"))


@test("two servers that use different nodes")
def _():
    with Galera() as galera, Redis("--appendonly", "yes", "--maxmemory-policy",
                                   "noeviction") as redis, Sim("--latency-ms", "60") as sim:
        load(galera)
        env = {"MILLRACE_REDIS_URL": redis.url}
        first, second = galera.nodes[0], galera.nodes[1]
        with server(galera, sim, **env) as m, \
                server(galera, sim, **env, MILLRACE_MYSQL_URL=galera.url(1)) as other:
            ok(connections(first) and connections(second) and not connections(galera.nodes[2]),
               "each uses the first of its list", [connections(n) for n in galera.nodes])
            here = person(m, "asher", permission=8)
            there = Api(other)
            there.login("asher")
            reads_see(galera, here, there)
            take_turns(here, there)
            note(f"{conflicts(galera)} transactions were rolled back for another node's")
            runs = [(api, *submit(api, RUN_PAPERS)) for api in (here, there)]
            for api, qid, total in runs:
                ok(reaches(api, qid, "DONE", 60), "a run of each")
                equal(view(api, qid)["finished"], total, "has all of its papers")
            a = run("audit", env=settings(m))
            ok(a.returncode == 0, "every cent is where it belongs", a.stdout, a.stderr)


try:
    available()
except Unavailable as why:
    ok(False, f"Galera cannot be tried here: {why}")
    finish()
run_tests()
