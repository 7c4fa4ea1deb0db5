"""A client of the API for whole-server tests: every reply is held against /openapi.json.

    @with_server("a name")
    def _(m):
        api = user(m, "asher")
        equal(api.me().status, 200, "logged in")
"""
import json
import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
import openapi

from harness import Millrace, ok, run, test, wait_for

PASSWORD = "correct horse"
FAST = {"MILLRACE_SAMPLE_PAPERS": "500"}
PAGES_MAX = 500


class Reply:
    def __init__(self, raw):
        self.status, self.headers = raw.status, raw.headers
        self.body = json.loads(raw.body) if raw.body else None

    def __repr__(self):
        return f"<{self.status} {self.body}>"

    @property
    def error(self):
        return (self.status, self.body["error"]["code"], self.body["error"].get("field"))


class Api:
    """A client; token or cookie once it is logged in."""

    documents = {}  # port: /openapi.json

    def __init__(self, server, token=None):
        self.server, self.token = server, token

    def fits(self, method, path, reply):
        """Every reply of every test is held against the document."""
        port = self.server.port
        if port not in Api.documents:
            Api.documents[port] = json.loads(self.server.get("/openapi.json").body)
        wrong = openapi.problems(Api.documents[port], method, path, reply.status, reply.body)
        if wrong:
            ok(False, f"{method} {path} is as /openapi.json says", *wrong, reply)

    def __call__(self, method, path, body=None, headers=(), raw=None):
        lines = list(headers)
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else b""
        if data:
            lines.append("Content-Type: application/json")
        reply = Reply(self.server.get(path, method=method, body=data, headers=lines))
        self.fits(method, path, reply)
        return reply

    def pages(self, path):
        """The bodies of a list's pages, from the first to the last. path ends in ? or a query."""
        join, cursor = "" if path.endswith("?") else "&", ""
        for _ in range(PAGES_MAX):
            r = self("GET", path + (f"{join}cursor={cursor}" if cursor else ""))
            assert r.status == 200, r
            yield r.body
            cursor = r.body["next"]
            if cursor is None:
                return
        raise AssertionError(f"{path}: the pages go round in circles")

    def login(self, name, password=PASSWORD, headers=()):
        r = self("POST", "/api/login", {"username": name, "password": password}, headers)
        if r.status == 200:
            self.token = r.body["token"]
        return r

    def register(self, name, password=PASSWORD):
        return self("POST", "/api/register", {"username": name, "password": password})

    def me(self):
        return self("GET", "/api/me")


def user(server, name):
    api = Api(server)
    r = api.register(name)
    assert r.status == 201, r
    r = api.login(name)
    assert r.status == 200, r
    return api


def with_server(name, private=False, **settings):
    def wrap(fn):
        @test(name, private)
        def _():
            with Millrace(env={**FAST, **settings}, loaded=True) as m:
                assert wait_for(m.ready, 30), m.get("/readyz")
                fn(m)
    return wrap


def second(server):
    """Another server on the same stores."""
    read = lambda name: open(f"{server.data}/secret/{name}").read().strip()
    env = {"MILLRACE_NODES": "1", "MILLRACE_REDIS_URL": f"unix:{server.data}/run/redis.sock",
           "MILLRACE_REDIS_PASSWORD": read("redis"), **server.stores}
    if "MILLRACE_MYSQL_URL" not in env:
        env["MILLRACE_MYSQL_URL"] = f"unix:{server.sql_socket}?user=millrace&database=millrace"
        env["MILLRACE_MYSQL_PASSWORD"] = read("mariadb")
    del env["MILLRACE_DATA_DIR"]
    return Millrace(env=env)


def cli(server, *args, stdin=None):
    return run(*args, env=server.stores, stdin=stdin)
