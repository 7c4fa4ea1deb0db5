"""Two hosts in mysql.url: the first is lost, hangs; none takes changes. Both lead to one MariaDB,
that of another server, so that they have the same rows; test_galera.py has real ones."""
import socket
import time

from admins import admin
from harness import Millrace, crowd, equal, folder, ok, run, run_tests, sql, test, wait_for
from proxy import Forwarder
from screening import audited, person, reaches, server, submit, view
from sim import Sim

PAUSE_S = 5  # until changes are taken again


class Gate(Forwarder):
    """A port that leads to a socket of MariaDB's. shut: nothing listens, connections end. mute:
    it takes connections and bytes, and passes nothing on."""

    def __init__(self, path):
        super().__init__()
        self.path, self.shut, self.mute, self.open = path, False, False, []

    def connected(self, client):
        self.open.append(client)
        while self.mute:
            time.sleep(0.05)
        s = socket.socket(socket.AF_UNIX)
        s.connect(self.path)
        return s

    def move(self, client, server):
        self.open.append(server)
        client.settimeout(0.02)
        server.settimeout(0.02)
        while not self.shut:
            for a, b in ((client, server), (server, client)):
                while self.mute:
                    time.sleep(0.05)
                try:
                    data = a.recv(65536)
                except TimeoutError:
                    continue
                if not data:
                    return
                b.sendall(data)

    def close(self):
        self.shut = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Listed:
    """The database, by both gates."""

    database = "listed"

    def __init__(self, m, gates):
        self.socket = m.sql_socket
        hosts = ",".join(f"127.0.0.1:{g.port}" for g in gates)
        self.env = {"MILLRACE_MYSQL_URL": f"mysql://listed@{hosts}/listed",
                    "MILLRACE_MYSQL_PASSWORD": "pass-word"}
        sql(m, "CREATE DATABASE listed; CREATE USER listed@localhost IDENTIFIED BY 'pass-word';"
               "GRANT ALL ON listed.* TO listed@localhost")


def changes(api):
    """Whether one is taken."""
    r = api("POST", "/api/tokens", {"name": f"n{time.monotonic()}", "scopes": ["read"]})
    if r.status == 201:
        api("DELETE", f"/api/tokens/{r.body['id']}")
    return r.status == 201


def soon(api, what):
    began = time.monotonic()
    wait_for(lambda: changes(api), 30)
    took = time.monotonic() - began
    ok(took < PAUSE_S * crowd(), f"{what}: changes are taken again after {took:.1f} s")


def lost(m, api, gates):
    qid, total = submit(api, 200)
    ok(wait_for(lambda: view(api, qid)["finished"] >= 20, 30), "a run is under way")
    gates[0].close()
    soon(api, "the first host is gone")
    ok(gates[1].accepted > 0 and f"127.0.0.1:{gates[1].port} is used now" in m.log(),
       "on the second", m.log()[-1000:])
    equal(m.get("/readyz").status, 200, "the server is ready")
    ok(reaches(api, qid, "DONE", 60), "the run ends")
    equal(view(api, qid)["finished"], total, "with all of its papers")


def read_only(m, other, api):
    root = admin(m, "root")
    names = lambda: [a["name"] for a in root("GET", "/api/admin/overview").body["alerts"]]
    sql(other, "SET GLOBAL read_only = 1")
    r = wait_for(lambda: (r := m.get("/readyz")).status == 503 and r, 20)
    ok(r and b"MySQL is read-only" in r.body, "no host takes changes: not ready, in words", r)
    ok(not changes(api) and api.me().status == 200, "changes are refused, reads go on")
    ok(wait_for(lambda: "read_only" in names(), 20), "there is an alert", names())
    sql(other, "SET GLOBAL read_only = 0")
    ok(wait_for(m.ready, 15), "ready as soon as one takes changes", m.get("/readyz"))
    ok(wait_for(lambda: "read_only" not in names(), 20), "the alert is over", names())


@test("the first host is lost, no host takes changes")
def _():
    with Millrace(env={"MILLRACE_NODES": "1"}) as other, Sim("--latency-ms", "50") as sim, \
            Gate(other.sql_socket) as first, Gate(other.sql_socket) as second:
        listed = Listed(other, [first, second])
        env = {**listed.env, "MILLRACE_DATA_DIR": folder()}
        top = f"{folder()}/sample"
        for words in (["db", "migrate"], ["sample", "--papers", "500", top],
                      ["db", "init", "--data", top]):
            done = run(*words, env=env, timeout=120)
            equal(done.returncode, 0, " ".join(words[:2]), done.stderr[-1000:])
        with server(sim, papers=0, mysql=listed, MILLRACE_NODES="1") as m:
            api = person(m, "asher", permission=2)
            ok(first.accepted and not second.accepted and changes(api), "the first host is used")
            lost(m, api, [first, second])
            read_only(m, other, api)
            audited(m)


@test("the first host hangs")
def _():
    with Millrace(env={"MILLRACE_NODES": "1"}) as other, Sim() as sim, \
            Gate(other.sql_socket) as first, Gate(other.sql_socket) as second:
        listed = Listed(other, [first, second])
        done = run("db", "migrate", env={**listed.env, "MILLRACE_DATA_DIR": folder()}, timeout=120)
        equal(done.returncode, 0, "db migrate", done.stderr)
        with server(sim, papers=0, mysql=listed, MILLRACE_NODES="1") as m:
            api = person(m, "asher", permission=2)
            first.mute = True
            soon(api, "the first host hangs")
            ok(second.accepted > 0, "on the second")
            first.mute = False
            ok(changes(api) and f"127.0.0.1:{first.port} is used now" not in m.log(),
               "which stays in use")
            audited(m)


run_tests()
