"""Runs over HTTP, for whole-server tests: a simulated AI of their own, people with money, and what
became of a run."""
import contextlib
import json

from admins import HASH
from client import Api, cli
from harness import Millrace, note, ok, redis_link, sql, test, wait_for
from sim import Sim

QUESTION = {
    "question": "Which catalysts split water in samples?", "year_from": 1900, "year_to": 2100}


@contextlib.contextmanager
def server(sim, papers=1500, data=None, mysql=None, **settings):
    env = {"MILLRACE_SAMPLE_PAPERS": str(papers), "MILLRACE_AI_URL": sim.url,
           "MILLRACE_AI_TIMEOUT_MS": "3000", **settings}
    with Millrace(data=data, env=env, mysql=mysql, loaded=True) as m:
        assert wait_for(m.ready, 40), m.get("/readyz")
        sql(m, "UPDATE api_list SET rpm_limit = 1000000, tpm_limit = 1000000000")
        yield m


def with_screening(name, *sim_options, **settings):
    def wrap(fn):
        @test(name)
        def _():
            with Sim(*sim_options) as sim, server(sim, **settings) as m:
                fn(m, sim)
    return wrap


def person(m, name, balance="100000.00", permission=10):
    """A user as `millrace user add` makes it, without its bcrypt."""
    paid = float(balance) > 0
    added = sql(m, "START TRANSACTION; INSERT INTO user_info (username, username_folded, password,"
                   " permission, balance, move_no)"
                   f" VALUES ('{name}', '{name.lower()}', '{HASH}', {permission}, {balance},"
                   f" {int(paid)}); SELECT @uid := LAST_INSERT_ID();" +
                ("INSERT INTO billing_log (uid, source, number, kind, cents, at) VALUES (@uid,"
                 f" 'mysql', 1, 'opening', ROUND({balance} * 100), UTC_TIMESTAMP(3));"
                 if paid else "") + "COMMIT")
    api = Api(m)
    assert api.login(name).status == 200
    api.uid = int(added[0][0])
    return api


def journals(api, papers):
    """Journals with about so many papers in all, and how many they really have."""
    chosen, total = [], 0
    for j in sorted(
            api("GET", "/api/journals").body["journals"], key=lambda j: -sum(j["years"].values())):
        n = sum(j["years"].values())
        if n and total + n <= papers:
            chosen.append(j["name"])
            total += n
    return chosen, total


def submit(api, papers=300, **wish):
    chosen, total = journals(api, papers)
    r = api("POST", "/api/queries", {**QUESTION, "journals": chosen, **wish})
    assert r.status == 202, r
    return r.body["query_id"], total


def view(api, qid):
    r = api("GET", f"/api/queries/{qid}")
    assert r.status == 200, r
    return r.body


def reaches(api, qid, state, seconds=30):
    reached = wait_for(lambda: view(api, qid)["state"] == state, seconds)
    return reached or note(view(api, qid))


def act(api, qid, what):
    return api("POST", f"/api/queries/{qid}/{what}", {})


def papers_of(m, journals_chosen):
    names = ", ".join(f"'{n}'" for n in journals_chosen)
    return {r[0] for r in sql(m, f"SELECT DOI FROM paperinfo WHERE journal IN ({names})")}


def results(m, api, qid):
    flat = redis_link(m)("HGETALL", f"result:{api.uid}:{qid}")
    return {flat[i].decode(): json.loads(flat[i + 1]) for i in range(0, len(flat), 2)}


def charged(m, qid):
    return int(sql(
        m, "SELECT COALESCE(SUM(b.cents), 0) FROM billing_log b LEFT JOIN ledger_reversal v"
        " ON v.uid = b.uid AND v.number = b.number"
        f" WHERE b.qid = '{qid}' AND b.kind = 'charge' AND v.number IS NULL")[0][0])


def audited(m):
    a = cli(m, "audit")
    return ok(a.returncode == 0, "every cent is where it belongs", a.stdout, a.stderr)


def inflight(m):
    link = redis_link(m)
    return {k.decode(): link("HLEN", k) for k in link("KEYS", "task:*:inflight")}
