"""Templates of extraction (EXT-4): every route and its refusals, versions, limits, another user's
ids, and either store away."""
import os
import signal
from concurrent.futures import ThreadPoolExecutor

from admins import user
from client import with_server
from harness import equal, freeze, ok, run_tests, sql, wait_for

PATH = "/api/templates"
DOSE = {"name": "dose", "type": "number", "unit": "mg", "instruction": "per day", "required": True}
DESIGN = {"name": "design", "type": "choice", "choices": ["RCT", "cohort"]}
DRUGS = {"name": "药物", "type": "list", "of": "text"}


def draft(*fields, name="Trials", **more):
    return {"name": name, "fields": list(fields) or [DOSE, DESIGN, DRUGS], **more}


def make(api, *fields, **more):
    r = api("POST", PATH, draft(*fields, **more))
    assert r.status == 201, r
    return r.body["template_id"]


def get(api, id, query=""):
    return api("GET", f"{PATH}/{id}{query}").body.get("template")


def listed(api, query=""):
    return api("GET", PATH + query).body["templates"]


def own(api):
    return [t for t in listed(api) if not t["ready"]]


def same(got, want):
    """A field as it was sent; what says nothing may be left out."""
    empty = lambda f: {k: v for k, v in f.items() if v not in (None, False, "", [])}
    return [empty(f) for f in got] == [empty(f) for f in want]


def ready(m):
    api = user(m, "ready")
    shipped = listed(api)
    ok({"pico", "trial", "materials", "benchmark"} <= {t["template_id"] for t in shipped},
       "what is shipped", shipped)
    ok(all(t["ready"] and t["version"] == 1 and t["fields"] > 0 and t["changed_at"] is None
           for t in shipped), "they are marked", shipped)
    chinese = {t["template_id"]: t for t in listed(api, "?lang=zh")}
    for t in shipped:
        id = t["template_id"]
        en, zh = get(api, id), get(api, id, "?lang=zh")
        equal((len(en["fields"]), len(zh["fields"])), (t["fields"], t["fields"]),
              f"{id} has its fields in both languages")
        equal([f["type"] for f in en["fields"]], [f["type"] for f in zh["fields"]], "of one type")
        ok(en["name"] == t["name"] and zh["name"] == chinese[id]["name"] and zh != en, "and name")
        r = api("POST", PATH, {"name": zh["name"], "fields": zh["fields"]})
        equal(r.status, 201, "it can be copied")
        ok(same(get(api, r.body["template_id"])["fields"], zh["fields"]), "as it is")
    equal(api("PUT", f"{PATH}/pico", draft(version=1)).error[:2], (409, "conflict"),
          "it cannot be changed")
    equal(api("DELETE", f"{PATH}/pico").error[:2], (409, "conflict"), "nor deleted")
    equal(get(api, "pico", "?version=1"), get(api, "pico"), "it has one version")
    equal(api("GET", f"{PATH}/pico?version=2").status, 404, "and no other")
    equal([t["template_id"] for t in listed(api)][:len(shipped)],
          [t["template_id"] for t in shipped], "they come first")


def life(m):
    api = user(m, "life")
    r = api("POST", PATH, draft(name="  Trials 试验  "))
    id = r.body["template_id"]
    equal((r.status, r.body["version"]), (201, 1), "made")
    got = get(api, id)
    equal((got["name"], got["version"], got["ready"]), ("Trials 试验", 1, False), "and read")
    ok(same(got["fields"], [DOSE, DESIGN, DRUGS]), "with its fields", got)
    r = api("PUT", f"{PATH}/{id}", draft(DOSE, name="Doses", version=1))
    equal((r.status, r.body["version"]), (200, 2), "changed")
    first, second = get(api, id, "?version=1"), get(api, id, "?version=2")
    equal((first["name"], len(first["fields"]), second["name"], len(second["fields"])),
          ("Trials 试验", 3, "Doses", 1), "both versions are there")
    equal(get(api, id), second, "the newest if none is named")
    equal(api("GET", f"{PATH}/{id}?version=3").status, 404, "a later one is not")
    stale = api("PUT", f"{PATH}/{id}", draft(DESIGN, name="Late", version=1))
    equal((stale.error[:2], stale.body["error"]["message"]),
          ((409, "conflict"), "the template was changed meanwhile: it is version 2 now"),
          "a stale change is refused")
    equal((get(api, id), len(own(api))), (second, 1), "and changes nothing")
    other = make(api, DESIGN, name="Later")
    equal([(t["name"], t["fields"], t["version"]) for t in own(api)],
          [("Later", 1, 1), ("Doses", 1, 2)], "the last changed comes first")
    api("PUT", f"{PATH}/{id}", draft(DOSE, name="Doses", version=2))
    equal([t["template_id"] for t in own(api)], [id, other], "after a change, too")
    equal(api("DELETE", f"{PATH}/{id}").status, 200, "deleted")
    for method, body in (("GET", None), ("DELETE", None), ("PUT", draft(version=3))):
        equal(api(method, f"{PATH}/{id}", body).status, 404, f"{method}: it is gone")
    equal(api("GET", f"{PATH}/{id}?version=1").status, 404, "with all versions")
    equal([t["template_id"] for t in own(api)], [other], "and not listed")
    equal(sql(m, f"SELECT 1 FROM extraction_template_version WHERE template_id = '{id}'"), [],
          "nor stored")


REFUSED = [
    ("fields", draft({**DOSE, "type": "decimal"}), "a type that is none"),
    ("fields", draft({**DOSE, "name": ""}), "a field without a name"),
    ("fields", draft({**DOSE, "name": "x" * 65}), "a name that is too long"),
    ("fields", draft({**DOSE, "name": "a\nb"}), "a name of two lines"),
    ("fields", draft({**DOSE, "instruction": "x" * 2001}), "an instruction that is too long"),
    ("fields", draft(DOSE, {**DESIGN, "name": "DOSE"}), "names that differ in case only"),
    ("fields", draft({"name": "x", "type": "choice"}), "a choice without choices"),
    ("fields", draft({**DESIGN, "choices": ["a"] * 51}), "too many of them"),
    ("fields", draft({"name": "x", "type": "list"}), "a list of nothing"),
    ("fields", draft({"name": "x", "type": "list", "of": "list"}), "a list of lists"),
    ("fields", draft({**DOSE, "typ": "x"}), "a member that is misspelt"),
    ("fields", draft(*[{**DOSE, "name": f"f{i}"} for i in range(51)]), "more than fifty fields"),
    ("fields", {"name": "x", "fields": []}, "none"),
    ("fields", {"name": "x"}, "fields that are missing"),
    ("fields", {"name": "x", "fields": {"dose": "number"}}, "fields that are no list"),
    ("name", {"fields": [DOSE]}, "no name"),
    ("name", draft(name=""), "an empty name"),
    ("name", draft(name="   "), "a name of blanks"),
    ("name", draft(name="a\tb"), "a name with a tab"),
    ("name", draft(name="x" * 201), "a name that is too long"),
    ("nmae", draft(nmae="x"), "a member that the body does not have"),
]


def refusals(m):
    api = user(m, "refusals")
    id = make(api)
    for field, body, name in REFUSED:
        for method, path, more in (("POST", PATH, {}), ("PUT", f"{PATH}/{id}", {"version": 1})):
            r = api(method, path, {**body, **more})
            ok(r.error[:2] == (400, "invalid") and r.error[2].split("[")[0].split(".")[0] == field,
               f"{method}: {name}", r)
    equal(api("PUT", f"{PATH}/{id}", draft()).error, (400, "invalid", "version"),
          "a change that does not say of what")
    equal(api("GET", PATH + "?lang=fr").error, (400, "invalid", "lang"), "another language")
    equal(api("GET", f"{PATH}/{id}?version=0").error, (400, "invalid", "version"), "version 0")
    large = draft(*[{"name": f"f{i}", "type": "choice", "instruction": "é" * 2000,
                     "choices": [f"{k}" + "中" * 198 for k in range(50)]} for i in range(20)])
    ok(api("POST", PATH, large).status in (400, 413), "one of too many bytes")
    equal((get(api, id)["version"], len(own(api))), (1, 1), "nothing was changed")


def limits(m):
    api = user(m, "limits")
    uid = api.me().body["uid"]
    rows = ", ".join(f"('{uid}-{i:032}', {uid}, 'x', 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
                     for i in range(198))
    sql(m, "INSERT INTO extraction_template (id, uid, name, field_count, created_at, changed_at)"
           f" VALUES {rows}")
    with ThreadPoolExecutor(8) as pool:
        made = [r.status for r in pool.map(lambda _: api("POST", PATH, draft(DOSE)), range(8))]
    equal((made.count(201), made.count(409)), (2, 6), "two hundred, however many come at once")
    r = api("POST", PATH, draft(DOSE))
    equal((r.error[:2], r.body["error"]["message"]),
          ((409, "conflict"), "you have 200 templates: delete some of them first"), "it says so")
    id = own(api)[0]["template_id"]
    equal(api("DELETE", f"{PATH}/{own(api)[-1]['template_id']}").status, 200, "one is deleted")
    equal(api("POST", PATH, draft(DOSE)).status, 201, "then there is room")
    rows = ", ".join(f"('{id}', {i}, 'x', '[]', UTC_TIMESTAMP(3))" for i in range(1, 100))
    sql(m, f"UPDATE extraction_template SET version = 100 WHERE id = '{id}';"
           f"UPDATE extraction_template_version SET version = 100 WHERE template_id = '{id}';"
           "INSERT INTO extraction_template_version (template_id, version, name, fields,"
           f" changed_at) VALUES {rows}")
    equal(api("PUT", f"{PATH}/{id}", draft(DOSE, version=100)).body["version"], 101, "changed")
    kept = sql(m, "SELECT MIN(version), MAX(version), COUNT(*) FROM extraction_template_version"
                  f" WHERE template_id = '{id}'")
    equal(kept, [["2", "101", "100"]], "the last hundred versions are kept")
    with ThreadPoolExecutor(8) as pool:
        done = [r.status for r in pool.map(
            lambda i: api("PUT", f"{PATH}/{id}", draft(DOSE, name=f"n{i}", version=101)), range(8))]
    equal((done.count(200), done.count(409)), (1, 7), "of changes at the same time one holds")


def others(m):
    api, other = user(m, "others"), user(m, "bella")
    id = make(api, name="Secret")
    for method, body in (("GET", None), ("PUT", draft(version=1)), ("DELETE", None)):
        equal(other(method, f"{PATH}/{id}", body).status, 404, f"{method}: another's")
        for wrong in (id[:-1], id + "0", "0", "x", id.split("-")[0] + "-"):
            equal(api(method, f"{PATH}/{wrong}", body).status, 404, f"{method}: no id {wrong}")
    equal((own(other), get(api, id)["version"]), ([], 1), "and nothing was changed")


@with_server("templates of extraction")
def _(m):
    for part in (ready, life, refusals, limits, others):
        part(m)


@with_server("templates while a store is away", private=True)
def _(m):
    api = user(m, "away")
    id, mariadb = make(api), m.pid_of("mariadb")
    freeze(mariadb)
    try:
        away = lambda: api("POST", PATH, draft()).status
        ok(wait_for(lambda: away() == 503, 20), "without MySQL none is made")
        equal(api("GET", f"{PATH}/pico").status, 200, "ready ones can be read")
        equal(api("GET", f"{PATH}/{id}").status, 503, "others cannot")
    finally:
        os.kill(mariadb, signal.SIGCONT)
    back = lambda: all(api("GET", PATH).status == 200 for _ in range(8))  # on every node
    ok(wait_for(back, 30), "then it goes on")
    equal([t["version"] for t in own(api)], [1], "with all there was")
    redis = m.pid_of("redis")
    freeze(redis)
    try:
        equal(api("PUT", f"{PATH}/{id}", draft(version=1)).body["version"], 2,
              "without Redis templates are changed")
        equal(get(api, id)["version"], 2, "and read")
    finally:
        os.kill(redis, signal.SIGCONT)


run_tests()
