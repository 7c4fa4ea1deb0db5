"""Papers that are found by meaning and by words (EMB-5): indexed by journal, by an admin."""
from urllib.parse import urlencode

from admins import admin
from client import Api, cli
from harness import Millrace, equal, note, ok, run_tests, sql, test, wait_for
from screening import person, server
from sim import Sim

PAPERS = 300


def number(m, statement):
    return int(sql(m, statement)[0][0])


def idle(m):
    open_units = "SELECT COUNT(*) FROM embedding_unit WHERE state IN ('pending', 'working')"
    return number(m, open_units) == 0


def journals(api):
    return {j["journal"]: j for j in api("GET", "/api/admin/embedding/journals").body["journals"]}


def look(api):
    return api("GET", "/api/admin/embedding").body


def want(api, **body):
    return api("POST", "/api/admin/embedding/papers", body)


def found(api, q, **filters):
    r = api("GET", "/api/search?" + urlencode({"q": q, "kind": "paper", "limit": 50, **filters}))
    assert r.status == 200, r
    return r.body


def with_papers(name, *sim_options, **settings):
    def wrap(fn):
        @test(name)
        def _():
            with Sim(*sim_options) as sim:
                env = {"MILLRACE_AI_EMBEDDING_URL": sim.url, "MILLRACE_NODES": "2", **settings}
                with server(sim, PAPERS, **env) as m:
                    sql(m, "INSERT INTO api_list (api_key, service, rpm_limit, tpm_limit) VALUES"
                           " ('sk-embedding', 'embedding', 1000000, 1000000000)")
                    fn(m, sim)
    return wrap


@with_papers("a journal is indexed, and found")
def _(m, sim):
    api = admin(m, "ada")
    seen = journals(api)
    ok(len(seen) > 3 and not any(j["indexed"] for j in seen.values()), "nothing is indexed")
    name = max(seen, key=lambda j: seen[j]["papers"])
    r = want(api, journals=[name])
    equal((r.status, r.body["papers"]), (202, seen[name]["papers"]), "a journal is asked for")
    equal(r.body["queued"], number(m, "SELECT COUNT(*) FROM corpus_block WHERE papers > 0 AND"
                                      f" journal = '{name}'"), "a unit for each year")
    ok(wait_for(lambda: idle(m), 60), "all of it is done")
    now = journals(api)[name]
    note(f"{now} {look(api)}")
    equal((now["embedded"], now["indexed"], now["changed"], now["error"]),
          (now["indexed"], now["papers"], False, None), "every paper is embedded")


if __name__ == "__main__":
    run_tests()
