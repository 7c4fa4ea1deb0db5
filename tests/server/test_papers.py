"""Papers that are found by meaning and by words (EMB-5): asked for by admins and at the command
line, indexed by the nodes, brought up to date after each load."""
import os
import pathlib
import re
import shutil
import signal
from urllib.parse import urlencode

from admins import admin
from client import Api
from harness import (MYSQL, Millrace, equal, folder, freeze, ok, run, run_tests, sql, test,
                     wait_for)
from screening import person, server
from sim import Sim

PAPERS = 300
VECTORS = "SELECT COUNT(DISTINCT owner) FROM point_vector"
KEY = ("INSERT INTO api_list (api_key, service, rpm_limit, tpm_limit) VALUES"
       " ('sk-embedding', 'embedding', 1000000, 1000000000)")


def number(m, statement):
    return int(sql(m, statement)[0][0])


def idle(m):
    open_units = "SELECT COUNT(*) FROM embedding_unit WHERE state IN ('pending', 'working')"
    return number(m, open_units) == 0


def at_rest(m, what="all of it is done"):
    ok(wait_for(lambda: idle(m), 90), what, sql(m, "SELECT * FROM embedding_unit LIMIT 5"))


def journals(api):
    return {j["journal"]: j for j in api("GET", "/api/admin/embedding/journals").body["journals"]}


def look(api):
    return api("GET", "/api/admin/embedding").body


def want(api, **body):
    return api("POST", "/api/admin/embedding/papers", body)


def found(api, q, **filters):
    query = urlencode({"q": q, "kind": "paper", "limit": 50, **filters}, True)
    r = api("GET", "/api/search?" + query)
    assert r.status == 200, r
    return r.body


def extent(api, **filters):
    """How many papers there are, and how many of them are found by words, and by meaning."""
    x, = found(api, "zebra", **filters)["searched"]
    return x["total"], x["by_words"], x["by_meaning"]


def largest(api):
    seen = journals(api)
    return max(seen, key=lambda j: seen[j]["papers"])


def with_papers(name, *sim_options, nodes=1, **settings):
    def wrap(fn):
        @test(name)
        def _():
            with Sim(*sim_options) as sim:
                env = {"MILLRACE_AI_EMBEDDING_URL": sim.url, "MILLRACE_NODES": str(nodes),
                       **settings}
                with server(sim, PAPERS, **env) as m:
                    sql(m, KEY)
                    fn(m, sim)
    return wrap


def titles(m, journal):
    """DOI, year and title of each of its papers."""
    rows = sql(m, "SELECT DOI, year, REPLACE(JSON_UNQUOTE(JSON_EXTRACT(Bib, '$.bib')), '\\n', ' ')"
                  f" FROM paperinfo WHERE journal = '{journal}' ORDER BY DOI")
    return [(r[0], int(r[1]), re.search(r"title +=  ?\{([^{}]+)\}", r[2])[1]) for r in rows
            if re.search(r"title +=  ?\{([^{}]+)\}", r[2])]


@with_papers("a journal is indexed, and found", nodes=2)
def _(m, _sim):
    api = admin(m, "ada")
    asher = person(m, "asher")
    seen = journals(api)
    ok(len(seen) > 3 and not any(j["indexed"] for j in seen.values()), "nothing is indexed")
    name = largest(api)
    other = min(seen, key=lambda j: seen[j]["papers"])
    equal((extent(asher), extent(asher, journal=other)),
          ((PAPERS, 0, 0), (seen[other]["papers"], 0, 0)), "and searches say so")
    r = want(api, journals=[name])
    equal((r.status, r.body["papers"]), (202, seen[name]["papers"]), "a journal is asked for")
    equal(r.body["queued"], number(m, "SELECT COUNT(*) FROM corpus_block WHERE papers > 0 AND"
                                      f" journal = '{name}'"), "a unit for each year")
    at_rest(m)
    now = journals(api)[name]
    equal((now["embedded"], now["indexed"], now["changed"], now["error"]),
          (now["papers"], now["papers"], False, None), "every paper is embedded")
    state = look(api)
    equal((state["service"], state["simulated"], state["papers"]["total"],
           state["papers"]["embedded"], state["papers"]["units_pending"]),
          (True, False, PAPERS, now["papers"], 0), "it is counted")
    papers = [c for c in state["collections"] if c["name"] == "papers"][0]
    ok(papers["points"] >= now["papers"] and papers["reason"] is None, "points are in the store")
    n = now["papers"]
    ok(wait_for(lambda: extent(asher) == (PAPERS, n, n), 5), "searches say how much is indexed",
       extent(asher))
    equal((extent(asher, journal=name), extent(asher, journal=other),
           extent(asher, journal=[name, other])),
          ((n, n, n), (seen[other]["papers"], 0, 0), (n + seen[other]["papers"], n, n)),
          "of the journals that were asked for")
    by_year = {y: int(k) for y, k in sql(m, "SELECT year, SUM(papers) FROM corpus_block WHERE"
                                            f" journal = '{name}' AND papers > 0 GROUP BY year")}
    year = max(by_year, key=by_year.get)
    n = by_year[year]
    equal((extent(asher, journal=name, year_from=year, year_to=year),
           extent(asher, journal=name, year_to=1500)), ((n, n, n), (0, 0, 0)), "and years")
    search(asher, m, name)
    paging(api)
    audit(api, name)


def search(api, m, name):
    doi, year, title = titles(m, name)[0]
    hits = found(api, title)["hits"]
    ok(hits and hits[0]["doi"] == doi, "a paper is found by its title", title, hits[:2])
    equal((hits[0]["journal"], hits[0]["year"]), (name, year), "with journal and year")
    equal({h["journal"] for h in hits}, {name}, "others are not indexed")
    hits = found(api, title, journal=name, year_from=year, year_to=year)["hits"]
    ok(hits and {h["year"] for h in hits} == {year} and hits[0]["doi"] == doi, "of a year", hits)
    equal(found(api, title, year_from=2199)["hits"], [], "of a year without papers")
    r = api("GET", "/api/search/like?" + urlencode({"kind": "paper", "doi": doi}))
    ok(r.status == 200 and r.body["hits"] and all(h["doi"] != doi for h in r.body["hits"]),
       "others are like it", r)


def paging(api):
    every = list(journals(api))
    equal(every, sorted(every), "journals are listed by name")
    got, cursor = [], None
    while cursor is not None or not got:
        query = urlencode({"limit": 2, **({"cursor": cursor} if cursor else {})})
        page = api("GET", "/api/admin/embedding/journals?" + query).body
        got += [j["journal"] for j in page["journals"]]
        cursor = page["next"]
        if cursor is None:
            break
    equal(got, every, "page by page, too")
    part = every[0][1:4].lower()
    some = api("GET", "/api/admin/embedding/journals?" + urlencode({"q": part})).body["journals"]
    equal([j["journal"] for j in some], [j for j in every if part in j.lower()], "and by a part")


def audit(api, name):
    rows = [r for r in api.audit() if r["action"] == "paper.embed"]
    equal([(r["outcome"], r["target"]) for r in rows], [("done", name), ("begun", name)],
          "the audit log has it")
    ok(rows[0]["after"]["units"] > 0 and rows[0]["after"]["papers"] > 0, "with counts", rows[0])


@with_papers("what is refused")
def _(m, _sim):
    api = admin(m, "ada")
    name = largest(api)
    for body, field in (({}, "journals"), ({"all": True, "failed": True}, "failed"),
                        ({"journals": [name], "all": True}, "all"), ({"all": False}, "all"),
                        ({"journals": []}, "journals"), ({"journals": ["NO SUCH"]}, "journals"),
                        ({"journals": [name, "NO SUCH"]}, "journals"), ({"none": True}, "none")):
        equal(want(api, **body).error, (400, "invalid", field), f"{body}")
    ok("NO SUCH" in want(api, journals=["NO SUCH"]).body["error"]["message"], "it is named")
    equal(number(m, "SELECT COUNT(*) FROM embedding_unit"), 0, "nothing is queued")
    asher = person(m, "asher")
    for method, path in (("GET", ""), ("GET", "/journals"), ("POST", "/papers")):
        body = {"all": True} if method == "POST" else None
        equal(asher(method, "/api/admin/embedding" + path, body).status, 401, f"users: {path}")
        equal(Api(m)(method, "/api/admin/embedding" + path, body).status, 401, f"others: {path}")


DOI = re.compile(r"doi += \{([^}]+)\}")


def change(top, name):
    """One paper leaves, another gets a new title; (DOI that left, DOI that changed)."""
    some = []
    for path in sorted(pathlib.Path(top).glob(f"Data/{name}/*.bib")):
        entries = re.split(r"(?m)^(?=@\w+\{)", path.read_text(encoding="utf-8"))
        some += [(path, e, DOI.search(e)[1].lower()) for e in entries if DOI.search(e)]
    (path, entry, left), (other, text, changed) = some[:2]
    path.write_text(path.read_text(encoding="utf-8").replace(entry, ""), encoding="utf-8")
    named = re.sub(r"(title += \{)", r"\1Xylophone resonance of ", text, count=1)
    other.write_text(other.read_text(encoding="utf-8").replace(text, named), encoding="utf-8")
    return left, changed


@with_papers("a load changes it")
def _(m, sim):
    api = admin(m, "ada")
    asher = person(m, "asher")
    name = largest(api)
    top = f"{folder()}/sample"
    shutil.copytree(m.sample, top)
    want(api, all=True)
    at_rest(m)
    equal(look(api)["papers"]["embedded"], PAPERS, "all papers are embedded")
    ok(not any("Xylophone" in h["title"] for h in found(asher, "xylophone resonance")["hits"]),
       "nothing is called so")
    before = number(m, VECTORS)
    left, changed = change(top, name)
    done = run("db", "init", "--data", top, "--prune", env=m.env, timeout=120)
    ok(done.returncode == 0, "db init", done.stdout[-800:], done.stderr[-800:])
    equal(number(m, f"SELECT COUNT(*) FROM paperinfo WHERE DOI = '{left}'"), 0, "one has left")
    ok(wait_for(lambda: (found(asher, "xylophone resonance")["hits"] or [{}])[0].get("doi") ==
                changed, 60), "what has changed is found, without being asked for")
    at_rest(m)
    equal(number(m, VECTORS), before - 1, "what has left has gone")
    rows = number(m, f"SELECT COUNT(*) FROM embedding_paper WHERE doi = '{left}'")
    equal(rows, 0, "so has its row")


@with_papers("a restart in the middle", "--latency-ms", "400", nodes=2)
def _(m, _sim):
    api = admin(m, "ada")
    want(api, all=True)
    ok(wait_for(lambda: number(m, "SELECT COUNT(*) FROM embedding_unit WHERE state = 'working'"),
                30), "work has begun")
    for pid in m.nodes():
        os.kill(pid, 9)
    at_rest(m, "nodes that are killed leave nothing undone")
    equal(number(m, "SELECT COUNT(*) FROM embedding_unit WHERE state = 'failed'"), 0,
          "and nothing failed")
    equal(number(m, VECTORS), PAPERS, "every paper has its vectors")
    equal(number(m, "SELECT COUNT(*) FROM embedding_paper WHERE space > 0"), PAPERS, "and a row")
    equal(number(m, "SELECT COUNT(*) FROM paper_words"), PAPERS, "and words")


@with_papers("stores that stand still", "--latency-ms", "200")
def _(m, _sim):
    api = admin(m, "ada")
    for store in ("redis",) if MYSQL else ("redis", "mariadb"):  # that one serves other tests, too
        sql(m, "UPDATE embedding_paper SET space = 0")
        want(api, all=True)
        wait_for(lambda: number(m, "SELECT COUNT(*) FROM embedding_unit"
                                   " WHERE state = 'working'"), 20)
        pid = m.pid_of(store)
        freeze(pid)
        try:
            ok(wait_for(lambda: m.get("/readyz").status == 503, 20), f"{store} stands still")
        finally:
            os.kill(pid, signal.SIGCONT)
        at_rest(m, f"{store}: all of it is done when it answers again")
        equal(number(m, "SELECT COUNT(*) FROM embedding_unit WHERE state = 'failed'"), 0,
              "nothing has failed")
    equal(number(m, "SELECT COUNT(*) FROM embedding_paper WHERE space > 0"), PAPERS, "all is there")


@test("no embedding service")
def _():
    with Sim() as sim, server(sim, PAPERS) as m:
        api = admin(m, "ada")
        r = want(api, all=True)
        equal(r.error[:2], (409, "conflict"), "nothing can be asked for")
        ok("ai.embedding.url" in r.body["error"]["message"], "and why", r)
        equal(look(api)["service"], False, "it is told")
        done = run("embed", "--all", env=m.env)
        equal((done.returncode, "ai.embedding.url" in done.stderr), (1, True),
              "nor at the command line", done.stderr)
        equal(number(m, "SELECT COUNT(*) FROM embedding_unit"), 0, "nothing is queued")


@with_papers("a service that is away")
def _(m, sim):
    api = admin(m, "ada")
    name = largest(api)
    sim.kill()
    want(api, journals=[name])
    ok(wait_for(lambda: journals(api)[name]["reason_code"] == "service_down", 60),
       "units say what they wait for", journals(api)[name])
    equal(journals(api)[name]["units_failed"], 0, "and do not fail")
    with Sim(port=sim.port):
        at_rest(m, "they are done when it is back")
        equal(journals(api)[name]["error"], None, "without an error")


@with_papers("the command line")
def _(m, _sim):
    api = admin(m, "ada")
    name = largest(api)
    count = journals(api)[name]["papers"]
    for args, said in (((), "say one of"), (("--all", "--changed"), "say one of"),
                       (("--journal", name, "--failed"), "say one of")):
        done = run("embed", *args, env=m.env)
        equal((done.returncode, said in done.stderr), (2, True), f"embed {args}", done.stderr)
    done = run("embed", "--journal", name, "--journal", "NO SUCH", env=m.env)
    equal((done.returncode, "NO SUCH" in done.stderr), (1, True), "no such journal", done.stderr)
    done = run("embed", "--journal", name, "--wait", env=m.env, timeout=90)
    equal(done.returncode, 0, "a journal", done.stdout, done.stderr)
    ok(f"about {count} papers" in done.stdout and
       f"{count} of {PAPERS} papers are indexed, {count} of them by meaning" in done.stdout,
       "says what is queued, and what there is then", done.stdout)
    ok("no server" not in done.stderr, "a server runs", done.stderr)
    equal(journals(api)[name]["embedded"], count, "and all of it is there")
    done = run("embed", "--changed", env=m.env)
    equal((done.returncode, done.stdout), (0, "0 units are queued, about 0 papers\n"),
          "nothing has changed")
    rows = [r for r in api.audit() if r["action"] == "paper.embed" and r["outcome"] == "done"]
    equal([(r["admin_uid"], r["target"]) for r in rows], [(0, "changed"), (0, name)],
          "the audit log has it")


@with_papers("a new model")
def _(m, _sim):
    api = admin(m, "ada")
    asher = person(m, "asher")
    want(api, all=True)
    at_rest(m)
    name = largest(api)
    title = titles(m, name)[0][2]
    env = {k: v for k, v in m.env.items() if k.startswith("MILLRACE_") and k not in m.stores}
    m.stop()
    with Millrace(data=m.data, env={**env, "MILLRACE_AI_EMBEDDING_DIMENSIONS": "128"}) as other:
        ok(wait_for(other.ready, 60), "the server starts with another dimension")
        new_model(other, name, title)


def new_model(m, name, title):
    api, asher = admin(m, "bob"), person(m, "boris")
    sql(m, f"UPDATE embedding_paper SET space = 0 WHERE journal = '{name}'")
    want(api, journals=[name])
    dimension = lambda: [c["dimension"] for c in look(api)["collections"] if c["name"] == "papers"]
    ok(wait_for(lambda: dimension() == [128], 60), "what is embedded by it takes all others along",
       look(api))
    at_rest(m)
    equal(number(m, "SELECT COUNT(DISTINCT space) FROM embedding_paper"), 1, "into one space")
    equal(number(m, VECTORS), PAPERS, "every paper")
    ok(found(asher, title)["hits"], "and they are found")


if __name__ == "__main__":
    run_tests()
