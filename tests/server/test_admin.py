"""Admins over HTTP, on real stores: who may what, switches, keys, the audit log."""
import concurrent.futures
import csv
import io
import json
import random
import re
import time
from http.client import HTTPConnection
from urllib.parse import quote

from admins import ADMIN_PASSWORD, Admin, admin, told, uid_of, user
from client import Api, cli, openapi, second, with_server as with_papers
from harness import equal, http as ask, ok, redis_link, run_tests, sql, wait_for


def with_server(name, **settings):
    return with_papers(name, **{"MILLRACE_SAMPLE_PAPERS": "0", **settings})


@with_server("who may what")
def _(m):
    root, clerk, api = admin(m, "root", "super"), admin(m, "clerk"), user(m, "asher")
    spare = Admin(m)
    spare.login("clerk")
    doc = json.loads(m.get("/openapi.json").body)
    routes = [(method.upper(), path, told) for path, methods in doc["paths"].items()
              for method, told in methods.items()]
    supers = set()
    for method, path, route in routes:
        url = re.sub(r"\{\w+\}", "1", path)
        data = b"{}" if "requestBody" in route else b""
        def status(*headers):
            return ask(m.port, url, method=method, body=data,
                       headers=["Content-Type: application/json", *headers]).status
        if not path.startswith("/api/admin/"):
            either = {"admin_cookie": []} in route["security"]  # see test_isolation.py
            if either:
                ok(401 not in {status(f"Authorization: Bearer {root.token}"),
                               status(f"Cookie: millrace_admin={root.token}")},
                   f"{method} {path}: admins, too")
                equal(status(f"Cookie: millrace_session={root.token}"), 401, "by their own cookie")
            elif route["security"]:
                equal({
                          status(f"Authorization: Bearer {root.token}"),
                          status(f"Cookie: millrace_admin={root.token}"),
                          status(f"Cookie: millrace_session={root.token}")}, {401},
                      f"{method} {path}: no admins")
            continue
        if not route["security"]:
            equal(path, "/api/admin/login", "only the door is open")
            continue
        equal({
                  status(),
                  status(f"Authorization: Bearer {api.token}"),
                  status(f"Cookie: millrace_session={api.token}"),
                  status(f"Cookie: millrace_admin={api.token}"),
                  status(f"Cookie: millrace_session={root.token}")}, {401},
              f"{method} {path}: nobody, no users")
        only_super = "super" in route.get("description", "")
        if only_super:
            supers.add(path)
        token = (spare if path.endswith("/logout") else clerk).token
        got = status(f"Authorization: Bearer {token}")
        ok(got == 403 if only_super else got in (200, 201, 400, 404, 409),
           f"{method} {path}: an admin", got)
        if only_super and method == "GET":
            equal(status(f"Cookie: millrace_admin={root.token}"), 200, "a super admin")
    equal(supers, {p for _, p, _ in routes if p.startswith("/api/admin/admins")},
          "what is about admins is for super admins")
    rows = [r for r in root.audit("?admin=clerk&limit=200") if "only super" in (r["error"] or "")]
    equal({r["action"] for r in rows},
          {"admin.add", "admin.remove", "admin.role", "admin.reset_password"},
          "who wanted more than the role allows is noted")
    ok(len(routes) > 50 and sum(p.startswith("/api/admin/") for _, p, _ in routes) > 25,
       "of all routes there are", len(routes))
    equal(clerk.me().body, {"success": True, "uid": 2, "username": "clerk", "role": "admin"},
          "who is who")
    equal(
        ask(m.port, "/api/admin/logout", method="POST",
            headers=[f"Cookie: millrace_admin={root.token}", "Sec-Fetch-Site: cross-site"]).status,
        403, "not from another site")


@with_server("admin sessions", MILLRACE_TRUSTED_PROXIES="127.0.0.1")
def _(m):
    root = admin(m, "root", "super")
    other = Admin(m)
    r = other.login("ROOT")
    cookie = r.headers["set-cookie"]
    ok(all(w in cookie for w in ("millrace_admin=" + r.body["token"], "HttpOnly", "SameSite=Lax",
                                 "Max-Age=43200")), "log in, with a cookie for 12 hours", cookie)
    key = wait_for(lambda: other.me() and redis_link(m)("KEYS", "admin:session:*"), 5)
    ok(key and 43000 < redis_link(m)("TTL", key[0]) <= 43200, "and so long in Redis", key)
    equal(sql(m, "SELECT kind, COUNT(*) FROM session GROUP BY kind"), [["admin", "2"]],
          "rows in MySQL")
    sessions = root("GET", "/api/admin/sessions").body["sessions"]
    equal([s["current"] for s in sessions], [False, True], "are listed")
    equal(root("DELETE", "/api/admin/sessions/" + sessions[0]["sid"]).status, 200, "one is ended")
    equal((other.me().status, root.me().status), (401, 200), "which is dead")
    other.login("root")
    body = {"old_password": "wrong wrong", "new_password": "another pass"}
    equal(root("POST", "/api/admin/password", body).error, (400, "invalid", "old_password"),
          "a wrong old password")
    equal(root("POST", "/api/admin/password", {**body, "old_password": ADMIN_PASSWORD}).status, 200,
          "a new password")
    equal((other.me().status, root.me().status, Admin(m).login("root").status,
           other.login("root", "another pass").status), (401, 200, 401, 200),
          "other sessions end, the new one holds")
    equal(other("POST", "/api/admin/logout").status, 200, "log out")
    equal(other.me().status, 401, "is effective")
    user(m, "guessed")
    admin(m, "guessed")
    def guess(name, address):
        return Admin(m).login(name, "wrong wrong", [f"X-Forwarded-For: {address}"]).status
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        got = sorted(pool.map(lambda i: guess("guessed", "9.2.0.1"), range(12)))
    equal(got, [401] * 10 + [429] * 2, "ten failed guesses for an admin, then no more")
    equal(Api(m).login("guessed", headers=["X-Forwarded-For: 9.2.0.1"]).status, 200,
          "a user of that name is another one")
    equal(guess("nobody", "9.4.0.1"), 401, "an unknown name looks alike")
    rows = [(a, o, json.loads(d or "{}").get("error")) for a, o, d in sql(
        m, "SELECT action, JSON_VALUE(details, '$.outcome'), details FROM admin_audit"
        " WHERE action = 'admin.login' ORDER BY id")]
    equal([o for _, o, _ in rows].count("refused"), 11, "wrong passwords are in the audit log",
          rows)


@with_server("admins and the last of them")
def _(m):
    r = cli(m, "admin", "add", "root", "--super", stdin=ADMIN_PASSWORD + "\n")
    equal((r.returncode, r.stdout), (0, "admin 1\n"), "the first one is added by hand", r.stderr)
    root = Admin(m)
    root.login("root")
    uid = {"root": uid_of(root)}
    for name, role in (("second", "super"), ("clerk", None)):
        r = root("POST", "/api/admin/admins",
                 {"username": name, "password": ADMIN_PASSWORD, **({"role": role} if role else {})})
        equal(r.status, 201, f"{name} is added", r)
        uid[name] = r.body["uid"]
    for body, want in [({"username": "ROOT", "password": ADMIN_PASSWORD}, (409, "exists", None)),
                       ({"username": "a b c", "password": ADMIN_PASSWORD},
                        (400, "invalid", "username")),
                       ({"username": "fine", "password": "short"}, (400, "invalid", "password")),
                       ({"username": "fine", "password": ADMIN_PASSWORD, "role": "god"},
                        (400, "invalid", "role"))]:
        equal(root("POST", "/api/admin/admins", body).error, want, f"refused: {body['username']}")
    clerk, two = Admin(m), Admin(m)
    clerk.login("clerk")
    two.login("second")
    equal([(a["username"], a["role"]) for a in root("GET", "/api/admin/admins").body["admins"]],
          [("root", "super"), ("second", "super"), ("clerk", "admin")], "the list")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        a = pool.submit(root, "DELETE", f"/api/admin/admins/{uid['second']}")
        b = pool.submit(two, "DELETE", f"/api/admin/admins/{uid['root']}")
        statuses = sorted((a.result().status, b.result().status))
    ok(statuses in ([200, 401], [200, 409]), "two super admins remove each other: one stays",
       statuses)
    left, name = (root, "root") if a.result().status == 200 else (two, "second")
    equal(left.me().status, 200, "and can work")
    equal((two if left is root else root).me().status, 401, "the other one is out")
    equal(left("DELETE", f"/api/admin/admins/{uid[name]}").error[:2], (409, "conflict"),
          "the last one cannot be removed")
    equal(left("POST", f"/api/admin/admins/{uid[name]}/role", {"role": "admin"}).error[:2],
          (409, "conflict"), "nor demoted")
    r = cli(m, "admin", "remove", name)
    ok(r.returncode == 1 and "last super admin" in r.stderr, "not at the command line either",
       r.stderr)
    equal(left("POST", f"/api/admin/admins/{uid['clerk']}/role", {"role": "super"}).body["role"],
          "super", "another is promoted")
    equal(clerk("GET", "/api/admin/admins").status, 200, "at once")
    equal(left("POST", f"/api/admin/admins/{uid['clerk']}/role", {"role": "admin"}).status, 200,
          "and demoted")
    equal(clerk("GET", "/api/admin/admins").status, 403, "at once")
    equal(left("POST", f"/api/admin/admins/{uid['clerk']}/password",
               {"password": "a newer one"}).status, 200, "a new password")
    equal((clerk.me().status, clerk.login("clerk").status, clerk.login(
        "clerk", "a newer one").status), (401, 401, 200), "holds")
    r = cli(m, "admin", "password", "clerk", stdin="yet another\n")
    equal((r.returncode, clerk.me().status, clerk.login("clerk", "yet another").status),
          (0, 401, 200), "by hand, too", r.stderr)
    r = cli(m, "admin", "list")
    equal([line.split("\t")[:3] for line in r.stdout.splitlines()],
          [[str(uid[name]), name, "super"], [str(uid["clerk"]), "clerk", "admin"]], "admin list")
    r = cli(m, "admin", "remove", "clerk")
    equal((r.returncode, clerk.me().status), (0, 401), "admin remove ends sessions", r.stderr)
    for args, status, text in [(("remove", "nobody"), 1, "no admin"),
                               (("add", "ab"), 2, "at least 3"), (("add",), 2, "missing"),
                               (("add", name), 1, "an admin of this name"),
                               (("remove",), 2, "missing")]:
        r = cli(m, "admin", *args, stdin=ADMIN_PASSWORD)
        ok(r.returncode == status and text in r.stderr, f"admin {' '.join(args)}", r.stderr)
    rows = left.audit("?admin=" + quote("(command line)"))
    equal([told(r) for r in rows if r["target"] != "root"], [("admin.remove", "done"),
                                                             ("admin.reset_password", "done")],
          "what the operator did is noted", rows)
    ok(all(p not in json.dumps(left.audit("?limit=200"))
           for p in (ADMIN_PASSWORD, "a newer one", "short", "$2b$")), "no passwords")


@with_server("switches and keys")
def _(m):
    root = admin(m, "root")
    with second(m) as n:
        wait_for(n.ready, 30)
        def seen(server):
            return Api(server).register(f"r{random.randrange(10 ** 9)}").status
        for enabled, status in ((False, 403), (True, 201)):
            r = root("POST", "/api/admin/toggle_registration", {"enabled": enabled})
            equal(r.body, {"success": True, "enabled": enabled}, f"registration {enabled}")
            equal(Api(n).register("somebody", "short").status, 400 if enabled else 403,
                  "another server has it when the request is answered")
            equal(seen(n), status, "and holds to it")
        shown = []
        for i in range(10):
            root("POST", "/api/admin/toggle_registration", {"enabled": i % 2 == 1})
            shown.append(json.loads(ask(n.port, "/api/welcome").body)["registration"])
        equal(shown, [False, True] * 5, "so does its log-in page")
        there = Admin(n)
        there.login("root")
        root("POST", "/api/admin/switches",
             {"name": "new_runs", "on": False, "reason": "maintenance"})
        state = lambda api: {
            s["name"]: s["on"] for s in api("GET", "/api/admin/switches").body["switches"]}
        equal(state(there), {"registration": True, "new_runs": False}, "and nothing else")
        root("POST", "/api/admin/toggle_registration", {"enabled": False})
    with second(m) as n:
        equal(Api(n).register("tooearly").status, 403,
              "a server that starts has it from its first moment on")
        root("POST", "/api/admin/toggle_registration", {"enabled": True})
    for body, field in (({"name": "power", "on": True}, "name"),
                        ({"name": "new_runs", "on": 1}, "on"), ({"on": True}, "name")):
        equal(root("POST", "/api/admin/switches", body).error, (400, "invalid", field),
              f"refused, naming {field}")
    row = root.audit("?action=switch.turn")[-1]
    equal((row["target"], row["before"], row["after"], row["reason"]),
          ("new_runs", {"on": True}, {"on": False}, "maintenance"), "noted")

    secret = "sk-0123456789abcdefWXYZ"
    known = {k["id"] for k in root("GET", "/api/admin/keys").body["keys"]}
    r = root("POST", "/api/admin/keys",
             {"key": secret, "name": "=first", "rpm_limit": 60, "day_cap": 0})
    equal(r.status, 201, "a key is added", r)
    kid = r.body["id"]
    key = lambda: next(k for k in root("GET", "/api/admin/keys").body["keys"] if k["id"] == kid)
    equal(key(), {"id": kid, "key": "sk-0…YZ", "name": "=first", "service": "chat",
                  "rpm_limit": 60, "tpm_limit": 500000, "active": True, "minute_cap": None,
                  "day_cap": 0, "month_cap": None, "state": "capped", "rests_ms": 0,
                  "last_error": None, "last_error_at": None}, "and shown, but for what matters")
    equal(root("POST", "/api/admin/keys", {"key": secret}).error[:2], (409, "exists"), "once")
    r = root("POST", "/api/admin/keys", {"key": secret, "service": "embedding"})
    equal(r.status, 201, "but for another service, too", r)
    known.add(r.body["id"])
    equal([k["service"] for k in root("GET", "/api/admin/keys").body["keys"]
           if k["key"] == "sk-0…YZ"], ["chat", "embedding"], "as the list says")
    r = root("POST", f"/api/admin/keys/{kid}",
             {"active": False, "tpm_limit": 9000, "day_cap": -1, "month_cap": 7})
    equal(r.body, {"success": True, **key()}, "changed")
    equal((key()["active"], key()["tpm_limit"], key()["rpm_limit"], key()["day_cap"],
           key()["month_cap"]), (False, 9000, 60, None, 7), "in part")
    equal(sql(m, f"SELECT api_key, is_active, day_cap FROM api_list WHERE api_index = {kid}"),
          [[secret, "0", "NULL"]], "in MySQL")
    equal(root("POST", f"/api/admin/keys/{kid}", {"active": True}).body["active"], True,
          "switched on again")
    for body, field in (({"key": "short"}, "key"), ({"key": "with space in it"}, "key"),
                        ({"key": "line\r\nbreak: it"}, "key"),
                        ({"key": secret + "x", "rpm_limit": 0}, "rpm_limit"),
                        ({"key": secret + "x", "day_cap": -2}, "day_cap"), ({}, "key"),
                        ({"key": secret + "x", "service": "speech"}, "service")):
        equal(root("POST", "/api/admin/keys", body).error, (400, "invalid", field),
              f"refused: {body}")
    equal(root("POST", "/api/admin/keys/999", {"active": True}).status, 404, "no such key")
    equal({k["id"] for k in root("GET", "/api/admin/keys").body["keys"]} - known, {kid},
          "nothing else was added")
    r = root("POST", "/api/admin/keys", {"key": "tiny-key-123"})
    equal(root("GET", "/api/admin/keys").body["keys"][-1]["key"], "…",
          "of a short one nothing is shown")
    rows = root.audit("?limit=200")
    row = [r for r in rows if r["action"] == "key.change"][-1]
    equal((row["before"]["active"], row["after"]["active"], row["target"]), (True, False, str(kid)),
          "noted")
    ok("123456789" not in json.dumps(rows) + m.log() and
       "tiny-key" not in json.dumps(rows) + m.log(), "never with the key itself")


def by_time(m, root, walk):
    # Half an hour late, as if a lock had been waited for: 03 at midnight has a higher number than
    # half past.
    times = ["01 00:00", "02 00:00", "03 00:30", "03 00:00", "04 00:00", "05 00:00", "06 00:00"]
    sql(m, "INSERT INTO admin_audit (at, admin_uid, admin_name, action, ip_address) VALUES " +
        ", ".join(f"('2020-01-{t}', {8 if i else 777}, '{'777' if i else 'seven'}', 'day', '::1')"
                  for i, t in enumerate(times)))
    days = lambda query: [r["at"][8:16].replace("T", " ") for r in walk("&action=day" + query, 3)]
    equal(days(""), times[::-1], "all days")
    equal(days("&from=2020-01-02&to=2020-01-05"), times[1:5][::-1],
          "from one day to another, which is not meant")
    equal(days("&from=2020-01-03T00:15:00Z"), [*times[4:][::-1], "03 00:30"], "from a moment on")
    equal(days("&to=2020-01-03T00:15:00.000Z"), ["03 00:00", "02 00:00", "01 00:00"],
          "before a moment")
    equal((days("&from=2030-01-01"), days("&to=2000-01-01")), ([], []), "nobody was there")
    equal([r["admin"] for r in walk("&admin=777", 3)], ["777"] * 6 + ["seven"],
          "a number may be a name")
    for name in ("from", "to"):
        for text in ("yesterday", "2020-02-30", "2020-01-01T00:00:00%2B1"):
            r = root("GET", f"/api/admin/audit?{name}={text}")
            ok(r.error == (400, "invalid", name) and "2026-01-31" in r.body["error"]["message"],
               f"no time: {text}", r)


MANY = 60000


@with_papers("a switch is effective when it is answered")
def _(m):
    """Fifty times off, on either of two servers: nothing is accepted after the answer."""
    root, waits = admin(m, "root"), user(m, "waits")
    cli(m, "user", "recharge", "waits", "1000000")
    root("POST", f"/api/admin/users/{uid_of(waits)}/permission", {"permission": 1000})
    def turn(api, name, on):
        assert api("POST", "/api/admin/switches", {"name": name, "on": on}).status == 200
    with second(m) as n:
        wait_for(n.ready, 30)
        there = Admin(n)
        there.login("root")
        late, accepted = [], []
        for i in range(50):
            far = (root, Api(n)) if i % 2 else (there, Api(m))
            turn(far[0], "registration", False)
            late.append(far[1].register(f"late{i}", "short").status)
            turn(far[0], "registration", True)
            accepted.append(far[1].register(f"soon{i}", "short").status)
        equal((set(late), set(accepted)), ({403}, {400}),
              "registration is closed and open when the other server says so")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for i in range(3):
                flood = [pool.submit(lambda k=k: Api(n).register(f"f{i}-{k}").status)
                         for k in range(4)]
                time.sleep(0.1 * i)
                turn(root, "registration", False)
                there_were = sql(m, "SELECT COUNT(*) FROM user_info")
                statuses = {f.result() for f in flood}
                equal((sql(m, "SELECT COUNT(*) FROM user_info"), statuses <= {201, 403, 503}),
                      (there_were, True), "passwords that are hashed meanwhile make no account",
                      statuses)
                turn(root, "registration", True)
        turn(root, "new_runs", False)
        journal = min(waits("GET", "/api/journals").body["journals"],
                      key=lambda j: sum(j["years"].values()))
        wish = {"question": "Wet?", "journals": [journal["name"]], "year_from": 1900,
                "year_to": 2100}
        for _ in range(60):
            assert waits("POST", "/api/queries", wish).status == 202
        off = []  # [from, to]: when it was off, by the clock of this machine
        for i in range(50):
            far = there if i % 2 else root
            turn(far, "new_runs", True)
            time.sleep(0.02 * (i % 5))
            turn(far, "new_runs", False)
            off.append((time.time(), time.sleep(0.05) or time.time()))
        starts = [float(t) for t, in sql(m, "SELECT UNIX_TIMESTAMP(CONVERT_TZ(start_time, '+00:00',"
                                         " @@session.time_zone)) FROM query_log"
                                         " WHERE start_time IS NOT NULL")]
        ok(starts, "runs have started")
        equal([t for t in starts if any(a < t < b for a, b in off)], [],
              "but none after new_runs was turned off")


@with_server("a long audit log")
def _(m):
    root = admin(m, "root")
    sql(m, "INSERT INTO admin_audit"
        " (at, admin_uid, admin_name, action, target_uid, details, ip_address)"
        " SELECT '2020-01-01' + INTERVAL seq MINUTE, IF(seq % 30000, 7, 5),"
        " IF(seq % 30000, 'busy', 'rare'), IF(seq % 30000, 'much', 'seldom'),"
        " IF(seq % 30000, 3, 4), '{\"outcome\": \"done\"}',"
        f" '::1' FROM seq_1_to_{MANY}; ANALYZE TABLE admin_audit")
    read = lambda: sum(int(n) for _, n in sql(m, "SHOW GLOBAL STATUS LIKE 'Handler_read%'"))
    last = sql(m, "SELECT MAX(id) FROM admin_audit WHERE admin_uid = 7")[0][0]
    for query, rows in (("admin=rare", 2), ("admin=5", 2), ("action=seldom", 2), ("user=4", 2),
                        ("admin=busy", 50), ("action=much&user=3", 50), ("to=2020-01-02", 50),
                        ("from=2020-01-20&to=2020-01-21", 50),
                        ("from=2020-01-20&to=2020-01-21&action=much", 50),
                        ("to=2019-01-01", 0), ("action=never", 0),
                        (f"admin=busy&cursor={int(last) // 2}", 50),
                        (f"admin=7&cursor={int(last) - 9000}", 50),
                        (f"action=much&user=3&cursor={int(last) // 3}", 50),
                        ("action=seldom&from=2020-01-05", 2), ("", 50)):
        before = read()
        r = root("GET", "/api/admin/audit?" + query)
        cost = read() - before
        ok(len(r.body["actions"]) == rows and
           cost < MANY / 20, f"{query or 'all'}: a page is found without reading it all",
           len(r.body["actions"]), cost)


@with_server("the audit log")
def _(m):
    root, clerk, asher = admin(m, "root", "super"), admin(m, "clerk"), user(m, "asher")
    nasty = "=cmd|' /C calc'!A0,\"\r\nx"
    root("POST", f"/api/admin/users/{uid_of(asher)}/permission", {"permission": 3, "reason": nasty})
    clerk("POST", f"/api/admin/users/{uid_of(asher)}/ban", {"banned": False, "reason": "@SUM(1)"})
    sql(m, "INSERT INTO admin_audit (at, admin_uid, admin_name, action, details, ip_address)"
        " SELECT UTC_TIMESTAMP(3), 9, 'old', 'old.deed',"
        " CONCAT('{\"outcome\": \"done\", \"reason\": \"', seq, '\"}'), '::1' FROM seq_1_to_450")
    def walk(query, limit=100):
        pages = root.pages(f"/api/admin/audit?limit={limit}{query}")
        return [row for page in pages for row in page["actions"]]
    rows = walk("")
    equal([int(i) for i, in sql(m, "SELECT id FROM admin_audit ORDER BY id DESC")],
          [r["id"] for r in rows], "all of it, page by page")
    equal({r["admin"] for r in walk("&admin=CLERK")}, {"clerk"}, "by name")
    equal([r["action"] for r in walk(f"&admin={uid_of(clerk)}")][0], "user.ban", "by number")
    equal(len(walk("&action=old.deed", 200)), 450, "by action")
    equal([r["action"] for r in walk(f"&user={uid_of(asher)}&admin=root")], ["user.permission"],
          "by user and admin")
    equal(
        root("GET", "/api/admin/audit?cursor=-1").error, (400, "invalid", "cursor"), "no such page")

    def download(query=""):
        c = HTTPConnection("127.0.0.1", m.port, timeout=20)
        c.request("GET", "/api/admin/audit.csv" + query,
                  headers={"Authorization": f"Bearer {root.token}"})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        doc = json.loads(m.get("/openapi.json").body)
        equal(openapi.problems(doc, "GET", "/api/admin/audit.csv", r.status,
                               r.headers["Content-Type"]), [], "as the document says")
        return r, list(csv.reader(io.StringIO(text, newline="")))
    r, table = download()
    ok("attachment" in r.headers["Content-Disposition"], "a file")
    equal(len(table), len(rows) + 1, "with all rows")
    column = {name: i for i, name in enumerate(table[0])}
    equal([t[column["id"]] for t in table[1:]], [str(r["id"]) for r in rows], "in the same order")
    line = next(t for t in table if t[column["action"]] == "user.permission")
    equal(line[column["reason"]], "'" + nasty, "no formulas")
    equal((json.loads(line[column["before"]]), json.loads(
        line[column["after"]]), line[column["admin"]], line[column["ip_address"]]),
          ({"permission": 1}, {"permission": 3}, "root", "127.0.0.1"), "what is told")
    ok(not any(cell[:1] in "=+-@" for t in table[1:] for cell in t if cell), "anywhere")
    _, table = download("?action=old.deed&admin=old")
    equal(len(table), 451, "filtered")
    equal(ask(m.port, "/api/admin/audit.csv").status, 401, "not for everybody")
    by_time(m, root, walk)
    _, table = download("?from=2020-01-02&to=2020-01-05")
    equal(len(table), 5, "filtered by time")
    rows = walk("")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/api/admin/audit", f"/api/admin/audit/{rows[0]['id']}"):
            ok(ask(m.port, path, method=method,
                   headers=[f"Authorization: Bearer {root.token}"]).status in (404, 405),
               f"{method} {path}")
    equal(walk(""), rows, "nobody can edit it")


if __name__ == "__main__":
    run_tests()
