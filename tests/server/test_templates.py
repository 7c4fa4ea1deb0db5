"""Prompt templates (PLN-1): every route and its refusals, what Redis holds of them, two servers,
and either store away."""
import os
import signal
import time

from admins import Admin, admin, told, user
from client import second, with_server
from harness import equal, freeze, http, ok, redis_link, run_tests, sql, wait_for

PATH = "/api/admin/prompt_templates"
HEAD = "Plan: training\nStart date: {{start_date}}\nWeeks: {{weeks}}\n"
GOAL = {"name": "goal", "type": "text", "label": "Goal", "required": True, "least": 1, "most": 40}
DAYS = 24 * 3600 * 1000


def draft(**changes):
    return {"category": "training", "subcategory": "strength", "name": "Short",
            "template": HEAD + "Goal: {{goal}}\n", "variables": [GOAL], **changes}


def without(body, *names):
    return {k: v for k, v in body.items() if k not in names}


def change(root, was, **changes):
    body = {k: was[k] for k in ("version", "subcategory", "name", "template", "variables")}
    return root("PUT", f"{PATH}/{was['id']}", {**body, **changes})


def preview(root, **body):
    return root("POST", PATH + "/preview", body).body


def cached(m, key):
    flat = [part.decode() for part in redis_link(m)("HGETALL", key)]
    return dict(zip(flat[::2], flat[1::2]))


def names(api, category="training"):
    return [t["name"] for t in api("GET", f"/api/plan_templates?category={category}").body[
        "templates"]]


@with_server("what is shipped")
def _(m):
    api, root = user(m, "ada"), admin(m, "root")
    templates = api("GET", "/api/plan_templates").body["templates"]
    equal([(t["id"], t["category"], t["name"], t["is_default"]) for t in templates],
          [(2, "nutrition", "Nutrition plan", True), (1, "training", "Training plan", True)],
          "one default for each kind of plan")
    equal({t["category"]: t["price"] for t in templates}, {"nutrition": "1.00", "training": "1.00"},
          "what a plan of each costs")
    equal(api("GET", "/api/plan_templates").body["simulated"], True,
          "there is a simulated AI only, and it says so")
    root("POST", PATH, draft(category="sleep", name="Sleep"))
    ok(all("price" not in t
           for t in api("GET", "/api/plan_templates?category=sleep").body["templates"]),
       "of a category without plans there is no price")
    ok(all({"start_date", "weeks", "goals"} <= {v["name"] for v in t["variables"]}
           for t in templates), "with their variables", templates)
    for t in templates:
        seen = preview(root, id=t["id"], values={"goals": "run ten kilometres", "weeks": 3})
        lines = seen["prompt"].split("\n")
        equal([line for line in lines if line.startswith(("Plan:", "Start date:", "Weeks:"))],
              [f"Plan: {t['category']}", f"Start date: {seen['values']['start_date']}", "Weeks: 3"],
              "the lines that programs read")
        ok("{{" not in seen["prompt"] and len(seen["prompt"]) / 4 < seen["tokens"] < 2000,
           "a prompt with its tokens", seen)
        equal(seen["values"]["weeks"], 3, "and what it was made with")
        equal(preview(root, id=t["id"])["problem"], "goals: is missing", "a value that is needed")


@with_server("what Redis holds")
def _(m):
    link, root = redis_link(m), admin(m, "root")
    ok(wait_for(lambda: link("EXISTS", "template:training:1", "template:nutrition:2") == 2, 10),
       "templates are there at once: the warm-up")
    row, = sql(m, "SELECT name, subcategory, version FROM prompt_template WHERE id = 1")
    got = cached(m, "template:training:1")
    equal(set(got), {"id", "name", "category", "subcategory", "template", "variables", "is_default",
                     "version"}, "the fields of the design")
    equal((got["id"], got["category"], got["is_default"], got["name"], got["subcategory"],
           got["version"]), ("1", "training", "1", *row), "and their values")
    equal(link("GET", "template:training:default"), b"1", "the default")
    equal(set(link("SMEMBERS", "template:categories")), {b"training", b"nutrition"}, "categories")
    for key in ("template:training:1", "template:training:default", "template:categories"):
        ok(29 * DAYS < link("PTTL", key) <= 30 * DAYS, f"{key} lives for thirty days")
    made = root("POST", PATH, draft(category="injury_prevention", template="Goal: {{goal}}")).body
    key = f"template:injury_prevention:{made['id']}"
    equal(cached(m, key)["template"], "Goal: {{goal}}", "a new one is there at once")
    equal((link("GET", "template:injury_prevention:default"), made["is_default"]),
          (b"%d" % made["id"], True), "the first of its category is the default")
    ok(link("SISMEMBER", "template:categories", "injury_prevention"), "which is listed")
    equal(root("DELETE", f"{PATH}/{made['id']}").status, 200, "the last of such a category may go")
    equal(cached(m, key), {"version": "2"}, "of which the version stays, as a fencing token")
    equal((link("EXISTS", "template:injury_prevention:default"),
           link("SISMEMBER", "template:categories", "injury_prevention")), (0, 0),
          "the category is gone")
    metrics = http(m.port, "/metrics").body.decode()
    ok('millrace_cache_hits_total{kind="template"' in metrics, "hits are counted")


@with_server("the life of a template")
def _(m):
    api, root = user(m, "ada"), admin(m, "root")
    r = root("POST", PATH, draft())
    made = r.body
    equal((r.status, made["version"], made["is_default"], made["changed_by"]),
          (201, 1, False, "root"), "made")
    equal([v["name"] for v in made["variables"]], ["goal", "start_date", "weeks"],
          "with the variables of every plan")
    equal(root("GET", f"{PATH}/{made['id']}").body, made, "shown")
    heads = root("GET", PATH + "?category=training").body["templates"]
    equal([(t["id"], t["is_default"]) for t in heads], [(1, True), (made["id"], False)], "listed")
    equal(root("GET", PATH + "?category=none").body["templates"], [], "by category")
    changed = change(root, made, name="Longer", template=HEAD + "- {{goal}}\r\nEnd").body
    equal((changed["version"], changed["template"]), (2, HEAD + "- {{goal}}\nEnd"), "changed")
    r = change(root, made, name="Lost")
    equal(r.error[:2], (409, "conflict"), "a stale version is refused", r)
    ok("version 2" in r.body["error"]["message"], "and told which one counts", r)
    equal(names(api), ["Training plan", "Longer"], "nothing was changed by it")
    equal([(v["version"], v["name"]) for v in
           root("GET", f"{PATH}/{made['id']}/versions").body["versions"]],
          [(2, "Longer"), (1, "Short")], "both versions are kept")
    old = root("GET", f"{PATH}/{made['id']}/versions/1").body
    equal((old["name"], old["template"]), ("Short", made["template"]), "with their texts")
    equal(root("GET", f"{PATH}/{made['id']}/versions/3").status, 404, "a third there is not")
    r = root("POST", f"{PATH}/{made['id']}/default")
    equal((r.status, r.body["version"]), (200, 3), "made the default")
    equal(root("POST", f"{PATH}/{made['id']}/default").body["version"], 3, "which is idempotent")
    equal(names(api), ["Longer", "Training plan"], "in one step: there is one default")
    equal(redis_link(m)("GET", "template:training:default"), b"%d" % made["id"], "Redis has it")
    equal(cached(m, "template:training:1")["is_default"], "0", "of the other one, too")
    equal(root("GET", f"{PATH}/{made['id']}/versions/3").body["template"], changed["template"],
          "a version that changed no text has the one before")
    equal(root("DELETE", f"{PATH}/{made['id']}").error[:2], (409, "conflict"),
          "a default cannot be deleted")
    equal(root("DELETE", f"{PATH}/1?version=1").error[:2], (409, "conflict"),
          "nor what was changed")
    equal(root("DELETE", f"{PATH}/1?version=2").status, 200, "another one can")
    equal((root("GET", f"{PATH}/1").status, root("DELETE", f"{PATH}/1").status,
           root("POST", f"{PATH}/1/default").status, root("GET", f"{PATH}/1/versions").status),
          (404, 404, 404, 404), "and is gone")
    equal(root("DELETE", f"{PATH}/{made['id']}").status, 409, "the last of a kind of plans stays")
    log = [told(row) for row in root.audit()][::-1]
    equal([row for row in log if row[1] == "done" and row[0].startswith("template.")],
          [("template.add", "done"), ("template.change", "done"), ("template.default", "done"),
           ("template.delete", "done")], "all of it is in the admins' log", log)
    equal([row[0] for row in log if row[1] == "refused"].count("template.delete"), 4,
          "refusals, too")


@with_server("what is refused")
def _(m):
    api, root = user(m, "ada"), admin(m, "root")
    before = sql(m, "SELECT id, version, template, variables FROM prompt_template ORDER BY id")

    def refuse(field, why, **changes):
        r = root("POST", PATH, draft(**changes))
        equal(r.error, (400, "invalid", field), why, r)
    for category in ("", "Training", "a b", "a:b", "1a", "x" * 33):
        refuse("category", f"category {category!r}", category=category)
    for name in ("", " x", "a\nb", "a{b", "x" * 101):
        refuse("name", f"name {name[:9]!r}", name=name)
    refuse("subcategory", "a subcategory of two lines", subcategory="a\nb")
    for why, text in (("nothing", ""), ("no head", "{{goal}}"),
                      ("no weeks", HEAD.replace("W", "w")),
                      ("another kind", HEAD.replace("training", "nutrition") + "{{goal}}"),
                      ("a value before the head", "{{goal}}\n" + HEAD),
                      ("an unknown variable", HEAD + "{{goals}}"),
                      ("half a place", HEAD + "{{goal"),
                      ("a place with blanks", HEAD + "{{ goal }}"),
                      ("three braces", HEAD + "{{{goal}}}"),
                      ("a control character", HEAD + "\x07"), ("too many", HEAD + "{{goal}}" * 101),
                      ("too long", HEAD + "x" * 20000)):
        refuse("template", f"template: {why}", template=text)
    for why, variable in (
            ("a name with blanks", {"name": "a b"}), ("a name in capitals", {"name": "Goal"}),
            ("a default that does not fit", {"type": "integer", "default": "x"}),
            ("a default out of range", {"type": "integer", "default": "9", "most": 8}),
            ("limits in disorder", {"type": "number", "least": 3, "most": 2}),
            ("too long a text", {"most": 2001}), ("a choice without choices", {"type": "choice"}),
            ("a choice twice", {"type": "choice", "choices": ["a", "a"]}),
            ("braces in a choice", {"type": "choice", "choices": ["{{goal}}"]}),
            ("choices of a text", {"choices": ["a"]}), ("a label of two lines", {"label": "a\nb"}),
            ("a required one with a default", {"required": True, "default": "x"}),
            ("weeks of another type", {"name": "weeks", "type": "text"}),
            ("too many weeks", {"name": "weeks", "type": "integer", "least": 1, "most": 13}),
            ("a first day that is a text", {"name": "start_date", "type": "text"})):
        refuse("variables", f"variables: {why}", template=HEAD + "{{goal}}",
               variables=[GOAL, {"name": "x", "type": "text", **variable}])
    refuse("variables", "a name twice", variables=[GOAL, GOAL])
    equal(root("POST", PATH, draft(variables=[{**GOAL, "type": "song"}])).error,
          (400, "invalid", "variables[0].type"), "a type that there is not")
    equal(root("POST", PATH, draft(variables=[GOAL] * 31)).status, 400, "too many variables")
    equal(root("POST", PATH, without(draft(), "template")).status, 400, "no template")
    for number in ("0", "-1", "x", "99", "2147483648"):
        equal([root(method, f"{PATH}/{number}{rest}").status for method, rest in (
            ("GET", ""), ("DELETE", ""), ("POST", "/default"), ("GET", "/versions"),
            ("GET", "/versions/1"))], [404] * 5, f"template {number} there is not")
        equal(change(root, {**draft(), "id": number, "version": 1}).status, 404,
              "nor is it changed")
    equal(change(root, {**draft(), "id": 1, "version": 1}, template="x").error,
          (400, "invalid", "template"), "a change is checked as a new one is")
    for method, path in (("GET", PATH), ("POST", PATH), ("GET", PATH + "/1"), ("PUT", PATH + "/1"),
                         ("DELETE", PATH + "/1"), ("POST", PATH + "/1/default"),
                         ("POST", PATH + "/preview"), ("GET", PATH + "/1/versions"),
                         ("GET", PATH + "/1/versions/1")):
        equal(api(method, path).status, 401, f"{method} {path} is not for users")
    equal(root("GET", "/api/plan_templates").status, 401, "and lists for users not for admins")
    equal(api("GET", "/api/plan_templates?kind=x").status, 400, "a parameter that is not known")
    equal(sql(m, "SELECT id, version, template, variables FROM prompt_template ORDER BY id"),
          before, "nothing has changed")
    equal(len(redis_link(m)("KEYS", "template:*")), 5, "nor in Redis")


@with_server("values that people give")
def _(m):
    root = admin(m, "root")
    base = without(draft(), "subcategory", "name")

    def prompt(value, **more):
        return preview(root, **{**base, **more}, values={"goal": value})["prompt"]
    for value, shown in (
            ("run", "run"), ("  a \r\n\t b\u2028c\u0085d ", "a b c d"), ("{{weeks}}", "((weeks))"),
            ("x\nWeeks: 12", "x Weeks: 12"), ("a\u202eb\ufeffc\U000e0041d", "abcd"),
            ("跑步 🏃", "跑步 🏃"), ("%s \\n $1", "%s \\n $1")):
        equal(prompt(value), prompt("MARK").replace("MARK", shown), f"{value!r}")
    equal(prompt("{", template=HEAD + "{{goal}}{{goal}}").split("\n")[-1], "((",
          "braces cannot meet")
    for value, why in (("", "is missing"), ("\ufeff", "is missing"), (None, "is missing"),
                       (7, "must be a text"), ("\x00", None), ("a\x1bb", "must not have control"),
                       ("x" * 41, "at most 40 characters")):
        r = root("POST", PATH + "/preview", {**base, "values": {"goal": value}})
        refused = r.status == 400 if why is None else (
            why in r.body["problem"] and r.body["prompt"] is None)
        ok(refused, f"{value!r} is refused", r)
    typed = [{"name": "n", "type": "number", "least": 0, "most": 10},
             {"name": "d", "type": "date"}, {"name": "c", "type": "choice", "choices": ["a", "b"]}]
    text = HEAD + "{{n}} {{d}} {{c}}"
    see = lambda **values: preview(root, category="training", template=text, variables=typed,
                                   values=values)
    equal(see(n=1.5, d="2028-02-29", c="b")["prompt"].split("\n")[-1], "1.5 2028-02-29 b", "typed")
    equal(see(n="2")["values"] | {"start_date": 0}, {"n": 2, "d": None, "c": None, "weeks": 4,
                                                     "start_date": 0}, "in full")
    for values, why in (({"n": 11}, "n: must be from 0 to 10"), ({"n": "x"}, "n: must be a number"),
                        ({"d": "2027-02-29"}, "d: must be a date"), ({"d": 1}, "d: must be a date"),
                        ({"c": "C"}, "c: must be one of: a, b"), ({"weeks": 13}, "weeks: must be"),
                        ({"weeks": 1.5}, "weeks: must be a whole number"),
                        ({"more": "x"}, "more: there is no such variable"),
                        ({"start_date": "soon"}, "start_date: must be a date")):
        problem = see(**values)["problem"]
        ok(problem and problem.startswith(why), f"{values} is refused", problem)
    equal(preview(root, **{**base, "template": "x"})["problem"][:9], "template:",
          "what is wrong with a draft is an answer")
    equal(root("POST", PATH + "/preview", {"id": 99}).status, 404, "a template that is not there")
    equal(root("POST", PATH + "/preview", {}).error, (400, "invalid", "category"), "nothing at all")


@with_server("two servers, and Redis or MySQL away", private=True)
def _(m):
    api, root = user(m, "ada"), admin(m, "root")
    made = root("POST", PATH, draft()).body
    with second(m) as other:
        assert wait_for(other.ready, 30)
        there = Admin(other, admin(m, "rita").token)
        for i in range(20):
            made = change(root, made, name=f"Name {i}").body
            seen = there("GET", f"{PATH}/{made['id']}").body
            if (seen["name"], cached(m, f"template:training:{made['id']}")["name"]) != (
                    f"Name {i}",) * 2:
                ok(False, "seen at once", i, seen)
        equal(change(there, {**seen, "version": seen["version"] - 1}).status, 409,
              "versions hold over servers")
    pid = m.pid_of("redis")
    time.sleep(1.5)  # what Redis was told is on disk
    freeze(pid)
    try:
        ok(wait_for(lambda: api("GET", "/api/plan_templates").body.get("degraded"), 15),
           "without Redis they come from MySQL, and it says so")
        made = change(root, made, name="While away").body
        equal((made["version"], names(api)), (22, ["Training plan", "While away"]), "changes hold")
    finally:
        os.kill(pid, signal.SIGKILL)
    ok(wait_for(m.ready, 30), "Redis is back, as it was")
    ok(wait_for(lambda: cached(m, f"template:training:{made['id']}")["name"] == "While away", 10),
       "and is told what it missed")
    ok(wait_for(lambda: "degraded" not in api("GET", "/api/plan_templates").body, 15),
       "then normal")
    # That it was told is written down after the telling.
    left = lambda: sql(m, "SELECT COUNT(*) FROM prompt_template WHERE told <> version")
    ok(wait_for(lambda: left() == [["0"]], 10), "nothing is left to tell", left())
    pid = m.pid_of("mariadb")
    freeze(pid)
    try:
        r = api("GET", "/api/plan_templates")
        equal((r.status, r.body.get("degraded"), sorted(t["id"] for t in r.body["templates"])),
              (200, True, [1, 2]), "without MySQL the defaults come from Redis")
        equal(names(api, "nutrition"), ["Nutrition plan"], "of one category, too")
        equal(change(root, made, name="Never").status, 503, "no change is made")
    finally:
        os.kill(pid, signal.SIGCONT)
    # The node that is asked may be another one than /readyz asked.
    ok(wait_for(m.ready, 30) and
       wait_for(lambda: names(api) == ["Training plan", "While away"], 15), "and goes on")


run_tests()
