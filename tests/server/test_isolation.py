"""Nobody gets at what is another's (ISO-1): every route of /openapi.json that takes an id is tried
with the ids of another user, with made-up ones, with sessions of the other kind, and with none. A
parameter that this file has never heard of fails the test: say below what it is."""
import json
import secrets
import urllib.parse

from client import PASSWORD, Api, cli
from harness import equal, http, ok, redis_link, run_tests, sql, wait_for
from screening import journals, person, with_screening

# What parameters and members of bodies are, for users. Those of IDS name something that belongs to
# somebody.
IDS = {"id": "run", "query_id": "run", "original_query_id": "run", "task_id": "download",
       "sid": "session", "token_id": "token", "plan_id": "plan", "generation_id": "generation",
       "template_id": "template", "document_id": "document", "post_id": "post"}
EXTRACTION = "/api/tasks/{task_id}"  # there task_id is of another kind
# Take ids of several kinds, each of which is tried in tasks_of_others, or in test_search.py.
SEVERAL = ("POST /api/tasks", "POST /api/tasks/estimate", "GET /api/search/like")
NO_IDS = {
    "username", "password", "old_password", "new_password", "question", "journals", "year_from",
    "year_to", "tag", "match", "type", "scope", "limit", "cursor", "relevant", "verdict", "doi",
    "q", "journal", "nearest",  # of a search
    "of", "title", "content", "hide",  # of posts; and a batch of them is for admins alone:
    "ids", "which",
    "charges", "name", "scopes", "expires_days",
    "request_id",  # the same request_id of two users is two requests (test_reserve.py)
    "kind", "variables", "date", "version", "day",
    "fields", "lang",  # of a template of extraction
    "document_ids", "dois", "project_id", "language", "webhook",  # tasks_of_others
    "filter", "field", "sort", "place", "value",  # of a task of extraction
    "template",  # this and
    "category",  # of prompt templates, which belong to all
    "group", "count"}  # of a pool, which belongs to all; its requests to one user (test_pool.py)
# For admins every user's id is fine, but nobody else may so much as ask.
ADMIN_IDS = {"uid": "user", "admin": "admin", "key": "number", "id": "run", "sid": "session",
             "queue": "queue", "token_id": "token", "type": "pool", "group": "number",
             "template_id": "number", "version": "number"}
# The routes that accept either kind of session (EMB-4).
EITHER = {
    "GET /api/posts", "GET /api/posts/{post_id}", "GET /api/posts/events",
    "GET /api/posts/{post_id}/events", "POST /api/post/{post_id}/embed",
    "POST /api/post/embed/batch", "GET /api/embedding/queue/status",
    "GET /api/search", "GET /api/search/like"}
SAMPLES = {}  # what a route needs besides ids, once there is some
SECRET = "Which catalysts split water on the moon?"  # must not be seen by others


class Route:
    def __init__(self, method, path, told):
        self.method, self.path = method.upper(), path
        self.parameters = [(p["in"], p["name"], p["schema"], p.get("required"))
                           for p in told.get("parameters", [])]
        body = told.get("requestBody", {"content": {}})["content"].get("application/json")
        self.schema = body["schema"] if body else None  # an upload has none
        self.members = self.schema["properties"] if body else {}
        self.public = not told["security"]
        self.admin = path.startswith("/api/admin")
        self.either = not self.admin and {"admin_cookie": []} in told["security"]

    def __str__(self):
        return f"{self.method} {self.path}"

    def names(self):
        return [name for _, name, *_ in self.parameters] + list(self.members)

    def ids(self):
        return [name for name in self.names() if name in IDS and str(self) not in SEVERAL]

    def kind(self, name):
        extraction = name == "task_id" and self.path.startswith(EXTRACTION)
        return "extraction" if extraction else IDS[name]

    def ask(self, server, values, headers):
        """With values for ids, and something that is allowed for all else."""
        path, query = self.path, {}
        for where, name, schema, required in self.parameters:
            value = values.get(name, SAMPLES.get(name, sample(schema)) if required else None)
            if where == "path":
                path = path.replace("{%s}" % name, urllib.parse.quote(value, safe=""))
            elif value is not None:
                query[name] = value
        body = b""
        if self.schema:
            given = {name: values.get(name, SAMPLES.get(name) or sample(schema))
                     for name, schema in self.members.items()
                     if name in values or name in self.schema["required"]}
            body = json.dumps(given).encode()
            headers = [*headers, "Content-Type: application/json"]
        if query:
            path += "?" + urllib.parse.urlencode(query)
        return http(server.port, path, method=self.method, body=body, headers=headers)


def sample(schema):
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "x" * max(1, schema.get("minLength", 1)), "integer": schema.get("minimum", 1),
            "boolean": False, "array": ["x"], "object": {}}[schema["type"]]


def routes(server):
    document = json.loads(http(server.port, "/openapi.json").body)
    return [Route(method, path, told) for path, item in document["paths"].items()
            for method, told in item.items()]


def bearer(token):
    return [f"Authorization: Bearer {token}"]


def cookie(name, token):
    return [f"Cookie: {name}={token}"]


# --- somebody with something to lose ---

def victim(m):
    """Their ids by kind: a run that is archived and one that waits, a file, another session, an API
    token, a plan and the task that made it, a document, a template, a task of extraction, a
    post."""
    api = person(m, "victim")
    chosen, _ = journals(api, 100)
    r = api("POST", "/api/queries",
            {"question": SECRET, "journals": chosen, "year_from": 1900, "year_to": 2100})
    done = r.body["query_id"]
    archived = lambda: api("POST", "/api/distill/estimate",
                           {"original_query_id": done}).status == 200
    assert wait_for(archived, 30), api("GET", f"/api/queries/{done}")
    SAMPLES["doi"] = api("GET", f"/api/queries/{done}/results?limit=1").body["results"][0]["doi"]
    r = api("POST", "/api/distill", {"original_query_id": done, "question": SECRET})
    live = r.body["query_id"]
    assert api("POST", f"/api/queries/{live}/pause").body["state"] == "PAUSED"
    file = api("POST", "/api/download/create", {"query_id": done, "type": "csv"}).body["task_id"]
    ready = lambda: api("GET", f"/api/download/status?task_id={file}").body["state"] == "READY"
    assert wait_for(ready, 20)
    second = Api(m)
    assert second.login("victim").status == 200
    sid, = (s["sid"] for s in api("GET", "/api/sessions").body["sessions"] if not s["current"])
    r = api("POST", "/api/tokens", {"name": SECRET, "scopes": ["read", "screen"]})
    assert Api(m, r.body["token"]).me().status == 200
    t = api("POST", "/api/plans", {"kind": "training", "variables": {"goals": SECRET, "weeks": 1}})
    made = lambda: api("GET", f"/api/generation/{t.body['task_id']}").body["plan_id"]
    assert wait_for(made, 30), t
    plan = api("GET", f"/api/plans/{made()}").body["plan"]
    SAMPLES["date"] = plan["start_date"]
    SAMPLES["day"] = {k: v for k, v in plan["days"][0].items() if k != "version"}
    document = api("POST", "/api/documents?name=x.txt", raw=SECRET.encode()).body["document_id"]
    SAMPLES["fields"] = [{"name": "x", "type": "text", "instruction": SECRET}]
    template = api("POST", "/api/templates", {"name": SECRET, "fields": SAMPLES["fields"]})
    SAMPLES.update(field="x", value="y", place="1")
    task = api("POST", "/api/tasks", {"template_id": template.body["template_id"], "name": SECRET,
                                      "document_ids": [document]}).body["taskId"]
    # Without a text it has no work that would change its row.
    post = api("POST", "/api/posts", {"title": SECRET, "hide": True}).body["post"]["id"]
    closed = lambda: api("GET", f"/api/tasks/{task}/status").body["status"] == "completed"
    assert wait_for(closed, 40), api("GET", f"/api/tasks/{task}")
    return api, {"document": [document], "template": [template.body["template_id"]],
                 "extraction": [task], "post": [str(post)],
                 "run": [done, live], "download": [file], "session": [sid], "user": [str(api.uid)],
                 "token": [str(r.body["id"])], "plan": [plan["plan_id"]],
                 "generation": [t.body["task_id"]]}


def state_of(m, uid):
    """All there is of somebody, and how much of everything there is."""
    link = redis_link(m)
    rows = {table: sql(m, f"SELECT * FROM {table} WHERE uid = {uid} ORDER BY 1, 2, 3")
            for table in ("query_log", "search_result", "billing_log", "api_token", "training_plan",
                          "generation_task", "plan_user", "extraction_template", "project",
                          "extraction_task", "extraction_result", "extraction_edit", "tb_post")}
    rows["document"] = sql(
        m, "SELECT id, name, bytes, HEX(digest), text_bytes, pages, used, stored_at, deleted, swept"
           f" FROM document WHERE uid = {uid} ORDER BY 1")
    rows["session"] = sql(m,
                          f"SELECT * FROM session WHERE kind = 'user' AND uid = {uid} ORDER BY 1")
    rows["user"] = sql(
        m,
        f"SELECT balance, permission, banned, password, move_no FROM user_info WHERE uid = {uid}")
    for table in ("query_log", "search_result", "distill_paper", "distillation", "training_plan",
                  "training_day", "nutrition_plan", "nutrition_day", "document", "document_piece",
                  "extraction_template", "extraction_template_version"):
        rows["all of " + table] = sql(m, f"SELECT COUNT(*) FROM {table}")
    fleeting = f"user:{uid}:unfinished".encode()  # lives two seconds
    for key in sorted(k for k in link("KEYS", f"*:{uid}:*")
                      if not k.startswith(b"admin:") and k != fleeting):
        rows[key] = link("DUMP", key)
    return rows


# --- attempts ---

def made_up(own):
    """Ids that nobody has, some of them close to one that somebody has."""
    return [secrets.token_hex(len(own) // 2), own[:-1], own + "0",
            own.upper() if own.upper() != own else own + "A", "*", "' OR '1'='1", "../" + own,
            own + "\n", f"{own}%00", "0"]


def refused(route, reply, statuses, name):
    body = reply.body.decode("utf-8", "replace")
    return ok(reply.status in statuses and SECRET not in body, f"{route}: {name}", reply.status,
              body[:300])


def attempts(m, every, api, have):
    mallory = person(m, "mallory")
    tried = 0
    for route in every:
        if route.admin or not route.ids():
            continue
        kinds = {route.kind(name) for name in route.ids()}
        equal(len(kinds), 1, f"{route} takes ids of one kind")
        for own in have[kinds.pop()]:
            give = lambda value: {name: value for name in route.ids()}
            refused(route, route.ask(m, give(own), bearer(mallory.token)), {404}, "another's id")
            refused(route, route.ask(m, give(own), []), {401}, "no session")
            wrong = [v for v in made_up(own)
                     if (r := route.ask(m, give(v), bearer(mallory.token))).status not in (
                         400, 404) or SECRET.encode() in r.body]
            equal(wrong, [], f"{route}: ids that nobody has")
            tried += 1
    ok(tried > 15, "there were some", tried)
    history = lambda who, cursor="": who("GET", f"/api/queries?limit=1{cursor}").body
    cursor = history(api)["next"]
    equal((len(history(api)["queries"]), history(
        mallory, f"&cursor={urllib.parse.quote(cursor)}")["queries"]), (1, []),
          "a place in another's history shows nothing of it")
    equal(mallory("GET", "/api/queries").body["queries"], [], "nor has mallory anything by now")
    return mallory


def tasks_of_others(m, mallory, have):
    """A task of extraction names several things: each of them must be the caller's."""
    document = mallory("POST", "/api/documents?name=m.txt", raw=b"Dose: 5 mg").body["document_id"]
    mine = {"template_id": "pico", "document_ids": [document]}
    equal(mallory("POST", "/api/tasks/estimate", mine).status, 200, "of one's own")
    for route in ("/api/tasks/estimate", "/api/tasks"):
        for wish in ({**mine, "template_id": have["template"][0]},
                     {**mine, "document_ids": have["document"]},
                     {**mine, "document_ids": [document, *have["document"]]},
                     {"template_id": "pico", "query_id": have["run"][0]},
                     {"template_id": "pico", "query_id": have["run"][0],
                      "dois": [SAMPLES["doi"]]}):
            r = mallory("POST", route, wish)
            ok(r.status == 404 and SECRET not in str(r.body), f"{route}: not with {wish}", r)
    project, = sql(m, "SELECT project_id FROM extraction_task LIMIT 1")[0]
    equal(mallory("POST", "/api/tasks", {**mine, "project_id": project}).status, 404,
          "nor for another's project")
    equal(mallory("GET", "/api/tasks").body["tasks"], [], "and nothing was submitted")


def sessions_of_the_other_kind(m, every, api, mallory, have):
    """No session, none that holds, one of the other kind: for every route that wants one."""
    admin = None
    if any(r.admin for r in every):
        added = cli(m, "admin", "add", "root", "--super", stdin=PASSWORD + "\n")
        assert added.returncode == 0, added
        r = http(m.port, "/api/admin/login", method="POST",
                 headers=["Content-Type: application/json"],
                 body=json.dumps({"username": "root", "password": PASSWORD}).encode())
        admin = json.loads(r.body)["token"]
        have = {**have, "admin": sql(m, "SELECT uid FROM admin_info")[0], "number": ["1"],
                "pool": ["titles"], "queue": ["download"]}
    equal({str(r) for r in every if r.either}, EITHER, "what either kind of session reaches")
    for route in every:
        if route.public:
            continue
        known = ({name: ADMIN_IDS[name] for name in route.names() if name in ADMIN_IDS}
                 if route.admin else {name: route.kind(name) for name in route.ids()})
        values = {name: have[kind][0] for name, kind in known.items()}
        wrong = [[],
                 bearer("x" * 64),
                 bearer(secrets.token_hex(32)),
                 bearer(""),
                 cookie("millrace_session", "0"),
                 bearer(have["session"][0])]
        if route.admin:
            wrong += [bearer(mallory.token),
                      cookie("millrace_session", api.token),
                      cookie("millrace_admin", api.token)]
        elif admin and not route.either:
            wrong += [bearer(admin),
                      cookie("millrace_session", admin),
                      cookie("millrace_admin", admin)]
        got = [route.ask(m, values, headers).status for headers in wrong]
        ok(set(got) <= {401, 403}, f"{route}: refused without a session of its kind",
           list(zip(wrong, got)))


def the_owner(m, every, api, have):
    """What was refused for the right reason is allowed to its owner: an id that nobody can use
    proves nothing."""
    # Last, and in this order: what ends something, and a run that goes on is not done before.
    ends = ("/resume", "/terminate", "/api/sessions/{sid}", "/api/tokens/{token_id}")
    deletes = ("DELETE /api/plans/{plan_id}", "DELETE /api/documents/{document_id}",
               "DELETE /api/templates/{template_id}", "DELETE /api/posts/{post_id}")
    order = lambda r: max((i for i, e in enumerate(ends, 1) if r.path.endswith(e)),
                          default=int(str(r) in deletes))
    too_late = ("retry_failed", "/api/generation/", EXTRACTION + "/cancel",
                EXTRACTION + "/retry", "/rows/{place}/retry",  # 409, to its owner
                "/api/post/{post_id}/embed")  # it is empty
    for route in sorted(every, key=order):
        if route.admin or not route.ids():
            continue
        owned = have[route.kind(route.ids()[0])]
        if "doi" in route.names():
            owned = owned[:1]  # the run that waits has no papers yet
        got = [route.ask(m, {name: own for name in route.ids()}, bearer(api.token)).status
               for own in owned]
        late = any(e in route.path for e in too_late)
        ok(set(got) <= {200, 202, 409} and (set(got) != {409} or late),
           f"{route}: its owner may", got)


@with_screening("isolation", "--latency-ms", "150", papers=500)
def _(m, sim):
    every = routes(m)
    for route in every:
        strange = [n for n in route.names() if not route.admin and n not in IDS and n not in NO_IDS]
        strange += [n for w, n, *_ in route.parameters
                    if route.admin and w == "path" and n not in ADMIN_IDS]
        ok(not strange, f"{route}: all it takes is known here", *strange)
    api, have = victim(m)
    wait_for(lambda: not sql(m, "SELECT 1 FROM archive_outbox") and not redis_link(m)
             ("LLEN", f"billing_queue:{api.uid}"), 20)
    api("GET", "/api/queries")  # which leaves the history in Redis
    before = state_of(m, api.uid)
    ok(len(before["query_log"]) == 2 and len(before) > 20, "there is something to lose",
       len(before))
    mallory = attempts(m, every, api, have)
    sessions_of_the_other_kind(m, every, api, mallory, have)
    after = state_of(m, api.uid)
    equal({
              k: (before.get(k), after.get(k))
              for k in {**before, **after} if before.get(k) != after.get(k)}, {},
          "nothing has changed")
    tasks_of_others(m, mallory, have)
    the_owner(m, every, api, have)


run_tests()
