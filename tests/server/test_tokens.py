"""API tokens: every route with every scope, and what ends them, on two servers and without a
store."""
import json
import os
import re
import signal
import subprocess
import time

from admins import admin, uid_of, user
from client import Api, cli, second, with_server
from harness import equal, freeze, http, ok, redis_link, run_tests, sql, wait_for

TOKEN = re.compile(r"mr_[0-9a-f]{64}")
APPLICATIONS = ["account", "catalog", "distill", "download", "extract", "plan", "pool", "post",
                "screen", "search"]
# Routes of which a part has a scope of its own.
PARTS = {("POST", "/api/pools/{type}/{group}/pop"): ["pool:{type}/{group}", "pool:{type}"]}
# What only a person does: no token has a scope for it.
PERSONS = {
    ("POST", "/api/logout"), ("GET", "/api/sessions"), ("DELETE", "/api/sessions"),
    ("DELETE", "/api/sessions/{sid}"), ("POST", "/api/password"), ("GET", "/api/tokens"),
    ("POST", "/api/tokens"), ("DELETE", "/api/tokens/{token_id}")}
# Of the routes for either kind of session: those for admins alone.
ADMINS = {("GET", "/api/embedding/queue/status")}
PUBLIC = {("GET", "/api/welcome"), ("POST", "/api/register"), ("POST", "/api/login"),
          ("POST", "/api/admin/login")}


def make(api, name, *scopes, **more):
    r = api("POST", "/api/tokens", {"name": name, "scopes": list(scopes), **more})
    assert r.status == 201, r
    token = Api(api.server, r.body["token"])
    token.id = r.body["id"]
    return token


def tokens(api):
    return api("GET", "/api/tokens").body["tokens"]


def revoke(api, token):
    return api("DELETE", f"/api/tokens/{token.id}")


@with_server("a token from its beginning to its end")
def _(m):
    api = user(m, "asher")
    r = api("POST", "/api/tokens", {"name": "夜间 import", "scopes": ["read", "screen", "read"],
                                    "expires_days": 30})
    made = r.body
    ok(r.status == 201 and TOKEN.fullmatch(made["token"]), "it is shown once", r)
    token = Api(m, made["token"])
    listed, = tokens(api)
    equal({k: v for k, v in made.items() if k not in ("token", "success")}, listed,
          "what was answered is what is listed")
    equal((listed["name"], listed["scopes"], listed["prefix"], listed["state"],
           listed["last_used"], listed["last_address"], listed["revoked"]),
          ("夜间 import", ["read", "screen"], made["token"][:11], "active", None, None, None),
          "all there is to see of it")
    ok(listed["created"][:4] >= "2024" and listed["expires"] > listed["created"], "and its times",
       listed)
    equal(token.me().body, api.me().body, "it is its user")
    stored_nowhere(m, made["token"])
    used = lambda: tokens(api)[0]["last_address"]
    ok(wait_for(used, 15), "its use is noted", tokens(api))
    equal((used(), tokens(api)[0]["last_used"] is not None), ("127.0.0.1", True),
          "when and from where")
    equal(api("POST", "/api/password", {"old_password": "correct horse",
                                        "new_password": "battery staple"}).status, 200,
          "its user takes another password")
    equal(token.me().status, 200, "which is nothing to it")
    token.id = made["id"]
    equal((revoke(api, token).status, token.me().error), (200, (401, "unauthenticated", None)),
          "revoked: it is refused")
    equal(tokens(api), [], "and not listed")
    equal(revoke(api, token).error[:2], (404, "not_found"), "one cannot revoke it twice")


def stored_nowhere(m, token):
    rows = sql(m, "SELECT * FROM api_token")
    ok(rows and token not in str(rows) and token[11:] not in str(rows), "MySQL has only its hash")
    link = redis_link(m)
    everything = [link("DUMP", key) for key in link("KEYS", "*")]
    ok(not any(token[11:].encode() in (dump or b"") for dump in everything) and
       not any(token[11:].encode() in key for key in link("KEYS", "*")), "so has Redis")
    ok(token[11:] not in m.log(), "and the log")


@with_server("tokens that cannot be made")
def _(m):
    api = user(m, "asher")
    good = {"name": "fine", "scopes": ["read"]}
    for field, change in (
            ("name", {"name": ""}), ("name", {"name": "x" * 65}), ("name", {"name": "a\nb"}),
            ("name", {"name": " a"}), ("name", {"name": 5}), ("scopes", {"scopes": []}),
            ("scopes", {"scopes": "read"}), ("scopes[0]", {"scopes": ["*"]}),
            ("scopes[0]", {"scopes": ["admin"]}), ("scopes[1]", {"scopes": ["read", "scren"]}),
            ("scopes[0]", {"scopes": ["read screen"]}), ("scopes[0]", {"scopes": ["screen:write"]}),
            ("scopes[0]", {"scopes": ["screen:x/y"]}), ("scopes", {"scopes": ["read"] * 21}),
            ("expires_days", {"expires_days": 0}), ("expires_days", {"expires_days": 3651}),
            ("expires_days", {"expires_days": "7"}), ("uid", {"uid": 2}),
            ("token", {"token": "mr_" + "0" * 64})):
        equal(api("POST", "/api/tokens", {**good, **change}).error, (400, "invalid", field),
              f"refused: {change}"[:70])
    equal(api("POST", "/api/tokens", {"name": "x"}).error, (400, "invalid", "scopes"),
          "nothing is allowed unless it is named")
    equal(tokens(api), [], "none was made")
    make(api, "same", "read")
    equal(api("POST", "/api/tokens", {**good, "name": "same"}).error[:2], (409, "exists"),
          "a name that is taken")
    for i in range(49):
        make(api, f"number {i}", "read")
    r = api("POST", "/api/tokens", good)
    ok(r.error[:2] == (409, "conflict") and "50" in r.body["error"]["message"],
       "fifty are the most", r)
    equal(len(tokens(api)), 50, "there are fifty")
    equal(api("GET", "/api/tokens").body["most"], 50, "as the list says")
    equal(Api(m)("POST", "/api/tokens", good).status, 401, "without a session there are none")


# --- every route, every scope ---

class Route:
    def __init__(self, method, path, told):
        self.method, self.path, self.told = method.upper(), path, told
        self.application = told["tags"][0]

    def __str__(self):
        return f"{self.method} {self.path}"

    def key(self):
        return (self.method, self.path)

    def ask(self, m, token):
        """With ids that nothing has and a body that is refused: it changes nothing. The status and
        the code of the refusal."""
        headers = [f"Authorization: Bearer {token}"] if token else []
        body = b""
        if "requestBody" in self.told:
            headers.append("Content-Type: application/json")
            body = b'{"no_such_member": 1}'
        r = http(m.port, re.sub(r"\{\w+\}", "0" * 32, self.path), method=self.method, body=body,
                 headers=headers)
        refused = r.status >= 400 and json.loads(r.body)["error"]
        return r.status, refused and refused["code"], refused and refused["message"]

    def needs(self):
        """Scopes of which each suffices, by rules of this test's own."""
        if self.path.startswith("/api/admin/") or self.key() in PERSONS:
            return []
        reads = [f"{self.application}:read", "read"] if self.method == "GET" else []
        return [*PARTS.get(self.key(), []), self.application, *reads]


def routes(m):
    document = json.loads(http(m.port, "/openapi.json").body)
    every = [Route(method, path, told) for path, item in document["paths"].items()
             if path.startswith("/api/") for method, told in item.items()]
    return [r for r in every if r.key() not in PUBLIC]


def check_document(every):
    for route in every:
        told = [s["token"][0] for s in route.told["security"] if "token" in s]
        equal(told, route.needs(), f"{route}: the document says which scopes it takes")
    users = [r for r in every if not r.path.startswith("/api/admin/")]
    equal({r.key() for r in users if not r.needs()}, PERSONS, "what is for persons only")
    equal(sorted({r.application for r in users}), APPLICATIONS, "every application is tried")
    ok(len(users) > 30, "there are some", len(users))


def check_dead(m, every, name, token):
    wrong = [(str(r), got) for r in every if (got := r.ask(m, token)[:2]) !=
             (401, "unauthenticated")]
    equal(wrong, [], f"{name}: 401 at every route")


@with_server("every route with every scope")
def _(m):
    every = routes(m)
    check_document(every)
    api = user(m, "asher")
    offered = api("GET", "/api/tokens").body["applications"]
    equal([a["name"] for a in offered], APPLICATIONS, "the list offers them")
    kinds = [["read"], *[[a] for a in APPLICATIONS], *[[f"{a}:read"] for a in APPLICATIONS],
             ["screen:read", "download"], [*APPLICATIONS, "read"]]
    for scopes in kinds:
        token = make(api, " ".join(scopes)[:64], *scopes).token
        wrong = []
        for route in every:
            status, code, message = route.ask(m, token)
            needs = route.needs()
            if set(needs) & set(scopes):
                right = ((status, code) == (403, "forbidden") if route.key() in ADMINS else
                         status not in (401, 403) and status < 500)
            else:
                least = needs[1 if route.method == "GET" else 0] if needs else "no API token"
                named = re.sub(r"\{\w+\}", "0" * 32, least)
                right = (status, code) == (403, "token_scope") and named in message
            if not right:
                wrong.append((str(route), status, code, message))
        equal(wrong, [], f"a token for {' '.join(scopes)}: what it names, and nothing else")
    dead(m, every, api)


def dead(m, every, api):
    everything = [*APPLICATIONS, "read"]
    check_dead(m, every, "no token", None)
    check_dead(m, every, "a token that never was", "mr_" + "0" * 64)
    for name in ("not a token", "mr_", "mr_" + "0" * 63, "MR_" + "0" * 64):
        equal(Api(m, name).me().status, 401, f"{name[:20]!r} is none")
    gone = make(api, "gone", *everything)
    assert gone.me().status == 200 and revoke(api, gone).status == 200
    check_dead(m, every, "a token that was revoked", gone.token)
    old = make(api, "old", *everything, expires_days=1)
    equal(old.me().status, 200, "a token has a day")
    sql(m, "UPDATE api_token SET expires = UTC_TIMESTAMP() + INTERVAL 2 SECOND WHERE name = 'old'")
    link = redis_link(m)
    link("DEL", *link("KEYS", "session:*"))  # so that it is read again
    equal(old.me().status, 200, "which may be shortened")
    ok(wait_for(lambda: old.me().status == 401, 10), "and expires")
    check_dead(m, every, "a token that has expired", old.token)
    equal({t["name"]: t["state"] for t in tokens(api)}["old"], "expired", "as its list says")
    mine = make(api, "mine", *everything)
    banned(m, every, api, mine)


def banned(m, every, api, token):
    root = admin(m, "root")
    uid = uid_of(api)
    equal(token.me().status, 200, "a token of a user")
    equal(root("POST", f"/api/admin/users/{uid}/ban", {"banned": True}).status, 200, "is banned")
    check_dead(m, every, "a token of a banned user", token.token)
    equal(root("POST", f"/api/admin/users/{uid}/ban", {"banned": False}).status, 200,
          "when the ban ends")
    equal((token.me().status, api.me().status), (200, 401),
          "the token works again; the session does not")


@with_server("a token at work")
def _(m):
    api, other = user(m, "asher"), user(m, "bella")
    cli(m, "user", "recharge", "asher", "100.00")
    works, looks = make(api, "works", "catalog", "screen"), make(api, "looks", "screen:read")
    strange = make(other, "strange", "read", *APPLICATIONS)
    name = works("GET", "/api/journals").body["journals"][0]["name"]
    r = works("POST", "/api/queries",
              {"question": "Does it?", "journals": [name], "year_from": 1900, "year_to": 2100})
    equal(r.status, 202, "it submits a run", r)
    run = f"/api/queries/{r.body['query_id']}"
    equal(looks("GET", run).status, 200, "another one looks at it")
    r = looks("POST", f"{run}/terminate")
    equal((r.error[:2], r.body["error"]["message"]),
          ((403, "token_scope"), 'the API token has no scope for this: it needs "screen"'),
          "and cannot end it")
    for method, path in (("GET", run), ("POST", f"{run}/pause"), ("GET", f"{run}/results"),
                         ("POST", f"{run}/terminate")):
        equal(strange(method, path).error[:2], (404, "not_found"),
              f"{method}: a token of another user finds nothing")
    equal(other("DELETE", f"/api/tokens/{works.id}").error[:2], (404, "not_found"),
          "nor can another user revoke it")
    r = http(m.port, f"{run}/terminate", method="POST",
             headers=[f"Authorization: Bearer {works.token}", "Origin: https://elsewhere.example",
                      "Sec-Fetch-Site: cross-site"])
    equal(r.status, 200, "from another site, too: no browser adds it by itself")
    equal(http(m.port, "/api/me", headers=[f"Cookie: millrace_session={works.token}"]).status, 401,
          "it is no cookie")


@with_server("two servers")
def _(m):
    with second(m) as n:
        wait_for(n.ready, 30)
        api = user(m, "asher")
        here = make(api, "one", "read")
        there = Api(n, here.token)
        equal((here.me().status, there.me().status), (200, 200), "a token is known to both")
        revoke(api, here)
        equal(there.me().status, 401, "revoked on one, dead on the other at once")
        here = make(api, "two", "read")
        there.token = here.token
        equal((here.me().status, there.me().status), (200, 200), "another one")
        equal(cli(m, "user", "ban", "asher").returncode, 0, "its user is banned")
        equal((here.me().status, there.me().status), (401, 401), "out at once, on both")
        cli(m, "user", "unban", "asher")
        equal((here.me().status, there.me().status), (200, 200), "until that is over")
        for i in range(10):  # whatever the last look has left in Redis
            api.login("asher")
            here = make(api, f"again {i}", "read")
            there.token = here.token
            assert here.me().status == there.me().status == 200
            r = revoke(api, here)
            if (r.status, there.me().status, here.me().status) != (200, 401, 401):
                ok(False, "dead at once", i)


@with_server("without Redis")
def _(m):
    api = user(m, "asher")
    stays, goes = make(api, "stays", "read"), make(api, "goes", "read", "screen")
    before = stays.me().body
    assert goes.me().status == 200
    wait_for(lambda: redis_link(m)("BGREWRITEAOF") is not None, 5)
    time.sleep(1.5)  # what Redis was told is on disk
    pid = m.pid_of("redis")
    freeze(pid)
    try:
        ok(wait_for(lambda: stays.me().body.get("degraded"), 15), "it works, and says so")
        r = stays("POST", "/api/distill", {})
        equal(r.error[:2], (403, "token_scope"), "within its scopes")
        equal(revoke(api, goes).status, 200, "another is revoked")
        equal(goes.me().status, 401, "and is dead")
        fresh = make(api, "fresh", "account:read")
        equal(fresh.me().status, 200, "one is made, and works")
    finally:
        os.kill(pid, signal.SIGKILL)
    ok(wait_for(m.ready, 30), "Redis is back")
    equal(goes.me().status, 401, "what Redis remembers is not believed")
    ok(wait_for(lambda: all("degraded" not in stays.me().body for _ in range(20)), 15),
       "every node is normal again")
    equal((stays.me().body, fresh.me().status, goes.me().status), (before, 200, 401),
          "with the same answers")


@with_server("without MySQL", private=True)
def _(m):
    api = user(m, "asher")
    token = make(api, "one", "catalog", "screen:read")
    assert token("GET", "/api/tags").status == 200
    pid = m.pid_of("mariadb")
    freeze(pid)
    try:
        got = [token("GET", "/api/tags").status for _ in range(10)]
        equal(got, [200] * 10, "a token that Redis has works")
        equal(token("POST", "/api/distill", {}).error[:2], (403, "token_scope"),
              "within its scopes")
        equal(api("POST", "/api/tokens", {"name": "x", "scopes": ["read"]}).status, 503,
              "none is made")
    finally:
        os.kill(pid, signal.SIGCONT)
    ok(wait_for(m.ready, 30) and token("GET", "/api/tags").status == 200, "and goes on")


# --- admins and the operator ---

@with_server("admins")
def _(m):
    api, other = user(m, "asher"), user(m, "bella")
    root = admin(m, "root")
    uid, its = uid_of(api), uid_of(other)
    token = make(api, "nightly", "read", "screen")
    path = f"/api/admin/users/{uid}/tokens"
    listed, = root("GET", path).body["tokens"]
    equal((listed, "mr_" in json.dumps(listed).replace(listed["prefix"], "")),
          (tokens(api)[0], False), "an admin sees what the user sees")
    equal(root("GET", f"/api/admin/users/{its}/tokens").body["tokens"], [], "of that user")
    equal(root("GET", "/api/admin/users/999/tokens").error[:2], (404, "not_found"), "of a user")
    equal(root("DELETE", f"/api/admin/users/{its}/tokens/{token.id}").error[:2],
          (404, "not_found"), "it is not another user's")
    for wrong in ("0", "x", "-1", "9" * 30):
        equal(root("DELETE", f"{path}/{wrong}").error[:2], (404, "not_found"), f"nor {wrong}")
    equal(token.me().status, 200, "so it works")
    equal(root("DELETE", f"{path}/{token.id}").status, 200, "an admin revokes it")
    equal(token.me().status, 401, "at once")
    row = root.audit(f"?action=user.revoke_token&user={uid}&limit=1")[0]
    equal((row["admin"], row["outcome"], row["target"]),
          ("root", "done", str(token.id)), "which is noted", row)
    ok("nightly" in json.dumps(row) and token.token[11:] not in json.dumps(row),
       "with its name, and nothing secret", row)
    refused = root.audit(f"?action=user.revoke_token&user={its}")
    equal([r["outcome"] for r in refused], ["refused"], "refusals as well")
    states = {t["name"]: t["state"] for t in root("GET", path).body["tokens"]}
    equal(states, {"nightly": "revoked"}, "the admin still sees that there was one")
    for who in (api, other, make(other, "x", "read")):
        ok(who("GET", path).status in (401, 403) and
           who("DELETE", f"{path}/{token.id}").status in (401, 403), "nobody else does")


@with_server("the command line")
def _(m):
    api = user(m, "asher")
    done = cli(m, "token", "add", "asher", "nightly", "--scope", "account:read", "--days", "7")
    ok(done.returncode == 0 and TOKEN.fullmatch(done.stdout.strip()) and
       "not shown again" in done.stderr, "a token, alone on standard output", done)
    token = Api(m, done.stdout.strip())
    equal((token.me().status, token("GET", "/api/tags").status), (200, 403), "it works")
    listed = json.loads(cli(m, "token", "list", "asher", "--json").stdout)
    equal(listed, tokens(api), "the list is the user's")
    line = cli(m, "token", "list", "asher").stdout.rstrip("\n").split("\t")
    equal(line[:5], [str(listed[0]["id"]), "nightly", token.token[:11], "account:read", "active"],
          "as lines, too")
    number = str(listed[0]["id"])
    for status, *words in (
            (2, "add", "asher", "x"), (2, "add", "asher"), (2, "add", "asher", "x", "--scope", "y"),
            (2, "add", "asher", "", "--scope", "read"),
            (2, "add", "asher", "x", "--scope", "read", "--days", "0"),
            (1, "add", "nobody", "x", "--scope", "read"),
            (1, "add", "asher", "nightly", "--scope", "read"), (1, "list", "nobody"),
            (1, "revoke", "asher", "99"), (2, "revoke", "asher", "x"),
            (1, "revoke", "nobody", number), (2, "revoke", "asher")):
        done = cli(m, "token", *words)
        ok(done.returncode == status and done.stderr and not done.stdout,
           f"refused: token {' '.join(words)}", done)
    equal(token.me().status, 200, "it works still")
    equal(cli(m, "token", "revoke", "asher", number).returncode, 0, "revoked")
    equal(token.me().status, 401, "at once")
    equal((cli(m, "token", "list", "asher").stdout,
           cli(m, "token", "list", "asher", "--all").stdout.split("\t")[4]), ("", "revoked"),
          "and listed only if asked for")
    equal(sql(m, "SELECT action, admin_name, target_uid FROM admin_audit ORDER BY id"),
          [[f"user.{what}_token", "(command line)", "1"] for what in ("add", "revoke")],
          "both are in the audit log")
    help_text = subprocess.run([os.environ["MILLRACE_BIN"], "token", "add", "--help"],
                               capture_output=True, text=True).stdout
    ok(all(a in help_text for a in APPLICATIONS), "--help names every application")


run_tests()
