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
       "sid": "session"}
NO_IDS = {
    "username", "password", "old_password", "new_password", "question", "journals", "year_from",
    "year_to", "tag", "match", "type", "scope", "limit", "cursor", "relevant", "verdict", "doi",
    "charges", "request_id"}  # the same request_id of two users is two requests (test_reserve.py)
# For admins every user's id is fine, but nobody else may so much as ask.
ADMIN_IDS = {"uid": "user", "admin": "admin", "key": "number", "id": "run", "sid": "session"}
SAMPLES = {}  # what a route needs besides ids, once there is some
SECRET = "Which catalysts split water on the moon?"  # must not be seen by others


class Route:
    def __init__(self, method, path, told):
        self.method, self.path = method.upper(), path
        self.parameters = [(p["in"], p["name"], p["schema"], p.get("required"))
                           for p in told.get("parameters", [])]
        body = told.get("requestBody")
        self.schema = body["content"]["application/json"]["schema"] if body else None
        self.members = self.schema["properties"] if body else {}
        self.public = not told["security"]
        self.admin = path.startswith("/api/admin")

    def __str__(self):
        return f"{self.method} {self.path}"

    def names(self):
        return [name for _, name, *_ in self.parameters] + list(self.members)

    def ids(self):
        return [name for name in self.names() if name in IDS]

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
            given = {name: values.get(name, sample(schema)) for name, schema in self.members.items()
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
            "boolean": False, "array": ["x"]}[schema["type"]]


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
    """Their ids by kind: a run that is archived and one that waits, a file, another session."""
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
    return api, {"run": [done, live], "download": [file], "session": [sid], "user": [str(api.uid)]}


def state_of(m, uid):
    """All there is of somebody, and how much of everything there is."""
    link = redis_link(m)
    rows = {table: sql(m, f"SELECT * FROM {table} WHERE uid = {uid} ORDER BY 1, 2, 3")
            for table in ("query_log", "search_result", "billing_log")}
    rows["session"] = sql(m,
                          f"SELECT * FROM session WHERE kind = 'user' AND uid = {uid} ORDER BY 1")
    rows["user"] = sql(
        m,
        f"SELECT balance, permission, banned, password, move_no FROM user_info WHERE uid = {uid}")
    for table in ("query_log", "search_result", "distill_paper", "distillation"):
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
        kinds = {IDS[name] for name in route.ids()}
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
        have = {**have, "admin": sql(m, "SELECT uid FROM admin_info")[0], "number": ["1"]}
    for route in every:
        if route.public:
            continue
        known = ADMIN_IDS if route.admin else IDS
        values = {name: have[known[name]][0] for name in route.names() if name in known}
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
        elif admin:
            wrong += [bearer(admin),
                      cookie("millrace_session", admin),
                      cookie("millrace_admin", admin)]
        got = [route.ask(m, values, headers).status for headers in wrong]
        ok(set(got) <= {401, 403}, f"{route}: refused without a session of its kind",
           list(zip(wrong, got)))


def the_owner(m, every, api, have):
    """What was refused for the right reason is allowed to its owner: an id that nobody can use
    proves nothing."""
    ends = ["/terminate", "/api/sessions/{sid}"]
    for route in sorted(every, key=lambda r: any(r.path.endswith(e) for e in ends)):
        if route.admin or not route.ids():
            continue
        owned = have[IDS[route.ids()[0]]]
        if "doi" in route.names():
            owned = owned[:1]  # the run that waits has no papers yet
        got = [route.ask(m, {name: own for name in route.ids()}, bearer(api.token)).status
               for own in owned]
        ok(set(got) <= {200, 202, 409} and (set(got) != {409} or "retry_failed" in route.path),
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
    the_owner(m, every, api, have)


run_tests()
