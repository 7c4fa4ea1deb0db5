"""Accounts, sessions, the catalog and money over HTTP, on real stores: what works, what is refused,
what survives."""
import concurrent.futures
import json
import os
import random
import re
import signal
import subprocess
import time

from admins import HASH, Admin, admin, user
from client import PASSWORD, Api, cli, second, user as registered, with_server
from harness import (BIN, Millrace, environment, equal, folder, freeze, http, note, ok, read,
                     redis_link, run_tests, sql, test, wait_for)


def cpu_seconds(m):
    """Of all nodes: what bcrypt takes of them, however busy the machine is."""
    ticks = sum(int(n) for pid in m.nodes()
                for n in read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


@with_server("register and log in")
def _(m):
    api = Api(m)
    r = api.register("Asher")
    equal((r.status, r.body["success"], r.body["uid"]), (201, True, 1), "register")
    equal(api.me().error, (401, "unauthenticated", None), "nobody is logged in by that")
    r = api.login("asher")
    ok(r.status == 200 and r.body["uid"] == 1 and r.body["username"] == "Asher" and
       len(r.body["token"]) == 64, "log in, in another case", r)
    cookie = r.headers["set-cookie"]
    ok(all(w in cookie
           for w in ("millrace_session=" + r.body["token"], "HttpOnly", "SameSite=Lax", "Path=/"))
       and "Secure" not in cookie, "the cookie", cookie)
    equal(api.me().body,
          {"success": True, "uid": 1, "username": "Asher", "balance": "0.00",
           "reserved": "0.00", "free": "0.00", "permission": 1,
           "account": "active", "account_why": None, "account_since": None}, "me")
    by_cookie = http(m.port, "/api/me", headers=["Cookie: millrace_session=" + api.token])
    equal(by_cookie.status, 200, "by cookie, too")
    equal(http(m.port, "/api/me", headers=["Cookie: millrace_admin=" + api.token]).status, 401,
          "not by an admin's cookie")
    equal(api.register("ASHER").error, (409, "exists", None), "the name is taken in any case")
    hashed = sql(m, "SELECT password FROM user_info")[0][0]
    ok(hashed.startswith("$2b$12$") and len(hashed) == 60, "bcrypt at cost 12", hashed)
    sids = [r[0] for r in sql(m, "SELECT sid FROM session")]
    ok(api.token not in sids and len(sids) == 1, "the token itself is stored nowhere", sids)
    equal(api("POST", "/api/logout").status, 200, "log out")
    equal(api.me().error, (401, "unauthenticated", None), "is effective")


@with_server("names and passwords")
def _(m):
    api = Api(m)
    for name in ["abc", "a-b_c", "李明同学", "𠮷野家", "Müller", "x" * 32]:
        equal(api.register(name).status, 201, f"name {name!r}")
        equal(Api(m).login(name).status, 200, f"logs in as {name!r}")
    for name in [
            "ab", "x" * 33, "a b c", "a\u0000bc", "a'b\"c", "; DROP TABLE", "*1\r\n$4\r\nPING",
            "😀😀😀", "", "a\u202ebc", "abc\u0301\u0301", "-- '"]:
        r = api.register(name)
        equal(r.error, (400, "invalid", "username"), f"no name: {name!r}", r)
    equal(api.register("ＡＢＣ").error[0], 409, "fullwidth letters are the same name")
    admin(m, "admin")
    for name in ["ADMIN", "\u0430dmin", "а-b_c".replace("а", "\u0430"), "\u0410\u0412\u0421"]:
        equal(api.register(name).error, (409, "exists", None), f"looks like another: {name!r}")
    for password, status in {
            "1234567": 400, "12345678": 201, "x" * 72: 201, "x" * 73: 400, "密" * 24: 201,
            "密" * 25: 400, "'; DROP--": 201, "a\u0000bcdefgh": 400, "😀😀": 201}.items():
        name = f"p{random.randrange(10 ** 9)}"
        r = api.register(name, password)
        equal(r.status, status, f"password {password[:12]!r} of {len(password.encode())} bytes", r)
        if status == 201:
            equal(Api(m).login(name, password).status, 200, "logs in with it")
            r = Api(m).login(name, password + "x")
            ok(r.status in (400, 401, 429), "and with no other", r)
        else:
            equal(r.error, (400, "invalid", "password"), "the field is named")
    for raw, field in [(b"{", None), (b"[]", None),
                       (b'{"username": 5, "password": "12345678"}', "username"),
                       (b'{"username": "abc"}', "password"),
                       (b'{"username": "abcd", "password": "12345678", "x": 1}', "x"),
                       (b'{"username": "\xff\xfe\xfa", "password": "12345678"}', None)]:
        r = api("POST", "/api/register", raw=raw)
        ok(r.status == 400 and r.body["error"].get("field") == field, f"body {raw[:30]!r}", r)


@with_server("guesses are limited", MILLRACE_TRUSTED_PROXIES="127.0.0.1")
def _(m):
    user(m, "victim")
    registered(m, "watched")
    def guess(name, address):
        return Api(m).login(name, "wrong wrong", [f"X-Forwarded-For: 6.6.6.6, {address}"])
    one, two = guess("victim", "9.0.0.1"), guess("nobody-there", "9.0.0.2")
    equal((one.status, one.body), (two.status, two.body),
          "a wrong password and an unknown user look alike")
    took = {}
    for name in ("watched", "nobody-here"):
        began = cpu_seconds(m)
        for i in range(3):
            guess(name, f"9.1.0.{i}")
        took[name] = cpu_seconds(m) - began
    ok(0.5 < took["watched"] / max(took["nobody-here"], 0.01) < 2, "and take as long", took)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        statuses = [r.status for r in pool.map(lambda i: guess("victim", "9.2.0.1"), range(20))]
    equal((statuses.count(401), statuses.count(429)), (10, 10),
          "ten failed ones for a user at an address, then no more", statuses)
    r = guess("victim", "9.2.0.1")
    ok(r.error[1] == "rate" and 0 < int(r.headers["retry-after"]) <= 300,
       "it says when to come back", r.headers)
    home, away = ["X-Forwarded-For: 9.3.0.1"], ["X-Forwarded-For: 9.2.0.1"]
    equal(Api(m).login("victim", headers=away).status, 429,
          "the right password does not help there")
    equal(Api(m).login("victim", headers=home).status, 200, "it does elsewhere")
    equal([cli(m, "user", "unlock", name).returncode for name in ("victim", "not-there")], [0, 1],
          "an operator unlocks a user")
    equal(Api(m).login("victim", headers=away).status, 200, "who may log in at once")
    admin(m, "chief")
    for i in range(10):
        Admin(m).login("chief", "wrong wrong")
    equal(Admin(m).login("chief").status, 429, "an admin is locked out on the machine itself")
    r = cli(m, "admin", "unlock", "Chief")
    equal((r.returncode, r.stdout), (0, "unlocked\n"), "unlocked", r.stderr)
    equal(Admin(m).login("chief").status, 200, "and is let in")
    r = cli(m, "admin", "unlock", "chief")
    equal((r.returncode, r.stdout), (0, "no failed log-ins were counted\n"), "a repeat is harmless",
          r.stderr)
    equal(sql(m, "SELECT action, JSON_VALUE(details, '$.target') FROM admin_audit"
              " WHERE action LIKE '%.unlock' ORDER BY id"),
          [["user.unlock", "victim"], ["admin.unlock", "chief"], ["admin.unlock", "chief"]],
          "all of it is noted")


@with_server("an address has a limit of its own", MILLRACE_TRUSTED_PROXIES="127.0.0.1",
             MILLRACE_LOGIN_ADDRESS_MAX="20")
def _(m):
    sql(m, "INSERT INTO user_info (username, username_folded, password) VALUES " + ", ".join(
        f"('student{i}', 'student{i}', '{HASH}')" for i in range(21)))
    def login(name, address, password=PASSWORD):
        return Api(m).login(name, password, [f"X-Forwarded-For: {address}"]).status
    equal(login("student0", "9.9.9.9"), 200, "a user logs in from there")
    for name in ("some-body", "no-body", *(f"student{i}" for i in range(3, 21))):
        login(name, "9.9.9.9", "wrong wrong")
    equal(login("student1", "9.9.9.9"), 429, "after twenty failed ones a stranger there is refused")
    equal(login("student0", "9.9.9.9"), 200, "a user who was there before is not")
    equal(login("student2", "9.9.9.8"), 200, "another address may")


@with_server("a campus is one address", MILLRACE_TRUSTED_PROXIES="127.0.0.1")
def _(m):
    students = 1000
    sql(m, "INSERT INTO user_info (username, username_folded, password) VALUES " + ", ".join(
        f"('student{i}', 'student{i}', '{HASH}')" for i in range(students + 1)))
    def login(name, password=PASSWORD):
        return Api(m).login(name, password, ["X-Forwarded-For: 9.0.0.1"]).status
    def one(i):
        wrong = login(f"student{students}", "wrong wrong") if i % (students // 50) == 0 else None
        return login(f"student{i}"), wrong
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(one, range(students)))
    equal({right for right, _ in statuses}, {200}, "a thousand users log in from one address")
    wrongs = [w for _, w in statuses if w]
    equal((len(wrongs), wrongs.count(401), wrongs.count(429)), (50, 10, 40),
          "while one guesses fifty times, and is refused after ten")


@with_server("registrations are limited", MILLRACE_TRUSTED_PROXIES="127.0.0.1",
             MILLRACE_NEW_USER_HOURLY_MAX=None)
def _(m):
    def register(name, address, password=PASSWORD):
        return Api(m)("POST", "/api/register", {"username": name, "password": password},
                      [f"X-Forwarded-For: {address}"])

    equal(register("short", "9.0.0.1", "short").status, 400,
          "what is refused for another reason does not count")
    first = time.monotonic()
    for i in range(20):
        r = register(f"student{i}", "9.0.0.1")
        if r.status != 201:
            break
    equal(r.status, 201, "twenty from an address", r)
    began = cpu_seconds(m)
    late = [register(f"late{i}", "9.0.0.1") for i in range(30)]
    took = cpu_seconds(m) - began
    equal({r.error for r in late}, {(429, "rate", None)}, "not one more")
    ok(3590 - (time.monotonic() - first) < int(late[0].headers["retry-after"]) <= 3600,
       "it says when to come back", late[0].headers)
    ok(took / len(late) < 0.1, "before anything is hashed", took)
    equal(register("neighbour", "9.0.0.2").status, 201, "another address may")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        flood = pool.map(lambda i: register(f"flood{i}", "9.0.0.1").status, range(60))
        statuses = [Api(m).login(f"student{i}", headers=["X-Forwarded-For: 9.0.0.1"]).status
                    for i in range(5)]
        equal((statuses, set(flood)), ([200] * 5, {429}), "its log-ins work meanwhile")
    equal(int(sql(m, "SELECT COUNT(*) FROM user_info")[0][0]), 21, "nobody else was registered")


@with_server("many register at once")
def _(m):
    equal(Api(m).register("patient").status, 201, "a user")
    with concurrent.futures.ThreadPoolExecutor(80) as pool:
        flood = [pool.submit(lambda i=i: Api(m).register(f"flood{i}").status) for i in range(80)]
        time.sleep(0.3)
        logins = [pool.submit(lambda: Api(m).login("patient").status) for _ in range(4)]
        equal([f.result() for f in logins], [200] * 4, "a log-in finds a place in the queue")
        statuses = {s: [f.result() for f in flood].count(s) for s in (201, 503)}
    ok(sum(statuses.values()) == 80 and statuses[503] > 0,
       "what does not fit is told to come back", statuses)


@with_server("who may write")
def _(m):
    api = user(m, "writer")
    cookie = f"Cookie: millrace_session={api.token}"
    def write(*headers):
        return http(m.port, "/api/logout", method="POST", headers=[cookie, *headers]).status
    equal(write("Sec-Fetch-Site: cross-site"), 403, "another site, says the browser")
    equal(write("Sec-Fetch-Site: same-site"), 403, "a neighbour")
    equal(write("Origin: https://evil.example"), 403, "another origin")
    equal(write("Origin: null"), 403, "no origin to speak of")
    equal(api.me().status, 200, "the session is still there")
    equal(api("POST", "/api/logout", headers=["Origin: https://evil.example"]).status, 200,
          "a token is no cookie: nobody sends it unawares")
    api.login("writer")
    cookie = f"Cookie: millrace_session={api.token}"
    equal(write("Origin: http://test", "Sec-Fetch-Site: same-origin"), 200, "the page itself")


@with_server("sessions")
def _(m):
    api, other = user(m, "many"), Api(m)
    other.login("many", headers=["User-Agent: Old Phone"])
    r = api("GET", "/api/sessions")
    equal([(s["current"], s["user_agent"], s["ip_address"]) for s in r.body["sessions"]],
          [(False, "Old Phone", "127.0.0.1"), (True, "", "127.0.0.1")],
          "are listed, newest first", r)
    stranger = user(m, "stranger")
    sid = r.body["sessions"][0]["sid"]
    equal(stranger("DELETE", f"/api/sessions/{sid}").error[0], 404, "not another's")
    equal(other.me().status, 200, "which goes on")
    equal(api("DELETE", f"/api/sessions/{sid}").status, 200, "one is ended")
    equal(other.me().status, 401, "and is dead")
    more = [Api(m) for _ in range(3)]
    for a in more:
        a.login("many")
    equal(api("DELETE", "/api/sessions").status, 200, "all others are ended")
    equal([a.me().status for a in more] + [api.me().status], [401] * 3 + [200], "but not this one")
    other.login("many")
    r = api("POST", "/api/password",
            {"old_password": "wrong wrong", "new_password": "another pass"})
    equal(r.error, (400, "invalid", "old_password"), "a wrong old password")
    equal(api("POST", "/api/password", {"old_password": PASSWORD, "new_password": "short"}).error,
          (400, "invalid", "new_password"), "a bad new one")
    equal(api("POST", "/api/password",
              {"old_password": PASSWORD, "new_password": "another pass"}).status, 200,
          "the password is changed")
    equal((other.me().status, api.me().status), (401, 200), "other sessions end")
    equal((Api(m).login("many").status, Api(m).login("many", "another pass").status), (401, 200),
          "the new one holds")


@with_server("two servers on the same stores")
def _(m):
    with second(m) as n:
        wait_for(n.ready, 30)
        here = user(m, "both")
        there = Api(n, here.token)
        equal(there.me().body, here.me().body, "a session is known to both")
        here("POST", "/api/logout")
        equal(there.me().status, 401, "ended on one, dead on the other at once")
        here.login("both")
        there.token = here.token
        equal(there.me().status, 200, "a new one")
        equal(cli(m, "user", "ban", "both").returncode, 0, "banned from the command line")
        equal((here.me().status, there.me().status), (401, 401), "out at once, on both")
        equal(Api(n).login("both").error[:2], (403, "forbidden"), "and stays out")
        cli(m, "user", "unban", "both")
        equal(Api(n).login("both").status, 200, "until it is lifted")
        r = cli(m, "user", "recharge", "both", "12.34", "--request", "r1")
        ok(r.returncode == 0 and "both has 12.34" in r.stdout, "money comes", r.stdout, r.stderr)
        here.login("both")
        there.token = here.token
        equal((here.me().body["balance"], there.me().body["balance"]), ("12.34", "12.34"),
              "on both")
        for _ in range(3):
            cli(m, "user", "recharge", "both", "12.34", "--request", "r1")
        equal(there.me().body["balance"], "12.34", "the same request again: nothing")
        r = cli(m, "user", "recharge", "both", "1.00", "--request", "r1")
        ok(r.returncode == 1 and r.stderr, "another amount is refused", r.stderr)
        r = cli(m, "user", "deduct", "both", "20.00")
        ok(r.returncode == 1 and "less than that" in r.stderr, "no overdraft", r.stderr)
        r = cli(m, "user", "deduct", "both", "2.34", "--request", "d1")
        ok(r.returncode == 0 and "both has 10.00" in r.stdout, "a deduction", r.stdout, r.stderr)
        cli(m, "user", "deduct", "both", "2.34", "--request", "d1")
        equal(here.me().body["balance"], "10.00", "once")
        equal(sql(m, "SELECT source, kind, cents FROM billing_log ORDER BY source, number"),
              [["redis", "deduction", "234"], ["mysql", "recharge", "1234"]], "both are in the log")
        equal(sql(m, "SELECT balance FROM user_info"), [["10.00"]], "and in the balance")


@with_server("what the log-in page knows", MILLRACE_CONTACT="Li Ming")
def _(m):
    def welcome(api=None):
        cookie = [f"Cookie: millrace_session={api.token}"] if api else []
        body = json.loads(http(m.port, "/api/welcome", headers=cookie).body)
        return {k: v for k, v in body.items() if k != "success"}
    fresh = {"registration": True, "banned": False, "contact": "Li Ming"}
    equal(welcome(), fresh, "to a stranger")
    api, other = user(m, "asher"), user(m, "other")
    equal(welcome(api), fresh, "to a user")
    other("POST", "/api/logout")
    equal(welcome(other), fresh, "to a user who has logged out")
    cli(m, "user", "ban", "asher")
    equal((api.me().status, welcome(api)), (401, {**fresh, "banned": True}),
          "a session that a ban has ended")
    equal(welcome(other), fresh, "which is told to nobody else")
    cli(m, "user", "unban", "asher")
    equal(welcome(api), fresh, "and not when the ban is over")


@with_server("registration can be closed")
def _(m):
    sql(m, "REPLACE INTO setting (name, value, changed_at)"
        " VALUES ('registration', 'false', UTC_TIMESTAMP(3))")
    ok(wait_for(lambda: Api(m).register(f"r{random.randrange(10 ** 9)}").status == 403, 20),
       "within a second or so")
    r = cli(m, "user", "add", "by-hand", "--balance", "5.50", "--permission", "3",
            stdin=PASSWORD + "\n")
    ok(r.returncode == 0 and r.stdout.startswith("user "), "the operator still can", r.stderr)
    api = Api(m)
    api.login("by-hand")
    body = api.me().body
    equal((body["balance"], body["permission"]), ("5.50", 3), "with money and permission")
    equal(sql(m, "SELECT kind, cents FROM billing_log"), [["opening", "550"]],
          "which is in the log")
    for args, text in [(("ab",), "at least 3"), (("fine", "--balance", "1e3"), "--balance"),
                       ((), "missing")]:
        r = cli(m, "user", "add", *args, stdin=PASSWORD)
        ok(r.returncode == 2 and text in r.stderr, f"user add {' '.join(args)}", r.stderr)
    r = cli(m, "user", "add", "fine", stdin="short\n")
    ok(r.returncode == 1 and "at least 8" in r.stderr, "a short password", r.stderr)


@with_server("the catalog")
def _(m):
    api = user(m, "reader")
    tags = api("GET", "/api/tags").body["tags"]
    want = {t: n for t, n in sql(m, "SELECT Tag, COUNT(*) FROM info_paper_with_tag GROUP BY Tag")}
    equal({t["tag"]: str(t["journals"]) for t in tags if t["journals"]}, want,
          "tags with their journals")
    journals = api("GET", "/api/journals").body["journals"]
    equal({j["name"]: j["price"] for j in journals},
          {n: int(p) for n, p in sql(m, "SELECT Name, Price FROM contentlist")},
          "all journals, with prices")
    counted = {
        (j, y): int(n) for j, y, n in sql(m, "SELECT journal, year, papers FROM corpus_block")}
    equal({(j["name"], y): n for j in journals
           for y, n in j["years"].items()}, counted, "and papers per year")
    two = [t["tag"] for t in tags if t["journals"]][:2]
    by = {t: {n for n, in sql(m, f"SELECT Name FROM info_paper_with_tag WHERE Tag = '{t}'")}
          for t in two}
    from urllib.parse import quote
    query = "&".join("tag=" + quote(t) for t in two)
    names = lambda q: {j["name"] for j in api("GET", "/api/journals?" + q).body["journals"]}
    equal(names(query), by[two[0]] & by[two[1]], "all of two tags")
    equal(names(query + "&match=any"), by[two[0]] | by[two[1]], "any of two tags")
    equal(names("tag=" + quote("没有")), set(), "an unknown tag has none")
    equal(api("GET", "/api/journals?match=some").error, (400, "invalid", "match"), "no such match")
    equal(api("GET", "/api/journals?tags=x").error, (400, "invalid", "tags"), "no such parameter")
    chosen = [j["name"] for j in journals[:5]]
    r = api("POST", "/api/estimate", {"journals": chosen, "year_from": 2015, "year_to": 2020})
    per = [(n, sum(c for (j, y), c in counted.items() if j == n and 2015 <= int(y) <= 2020),
            {j["name"]: j["price"] for j in journals}[n]) for n in chosen]
    equal((r.body["papers"], r.body["cost"]),
          (sum(p for _, p, _ in per), f"{sum(p * c for _, p, c in per)}.00"), "an estimate", r)
    equal([(x["journal"], x["papers"], x["price"]) for x in r.body["per_journal"]], per,
          "for each journal")
    for body, field in [({"journals": [], "year_from": 2015, "year_to": 2020}, "journals"),
                        ({"journals": ["nope"], "year_from": 2015, "year_to": 2020}, "journals"),
                        ({"journals": chosen, "year_from": 2021, "year_to": 2020}, "year_to"),
                        ({"journals": chosen, "year_from": 3, "year_to": 2020}, "year_from"),
                        ({"journals": chosen, "year_from": 2015, "year_to": 99999}, "year_to"),
                        ({"journals": chosen * 2, "year_from": 2015, "year_to": 2020}, "journals"),
                        ({"journals": chosen, "year_from": "2015", "year_to": 2020}, "year_from"),
                        ({"journals": chosen, "year_from": 2015}, "year_to")]:
        r = api("POST", "/api/estimate", body)
        equal(r.error, (400, "invalid", field), f"refused, naming {field}", r)
    for path in ("/api/tags", "/api/journals", "/api/me", "/api/sessions"):
        equal(Api(m)("GET", path).status, 401, f"{path} wants a session")


def add_runs(m, uid, count, start=0):
    """Rows as the screening will write them; several share a millisecond."""
    rows = ", ".join(f"('{uid:04}-{i:04}', {uid}, '{{\"question\": \"Q{i}\"}}',"
                     f" '2026-01-02 03:04:{i // 7:02}.500', 'DONE', 1, 12.34)"
                     for i in range(start, start + count))
    sql(m, "INSERT INTO query_log"
        " (query_id, uid, search_params, created_at, status, archived, total_cost) VALUES " + rows)


@with_server("history")
def _(m):
    api, other = user(m, "historian"), user(m, "newcomer")
    equal(api("GET", "/api/queries").body, {"success": True, "queries": [], "next": None},
          "nothing yet")
    add_runs(m, 1, 50)
    redis_link(m)("DEL", "user:1:history")
    want = sorted((f"0001-{i:04}" for i in range(50)), key=lambda q: (int(q[-4:]) // 7, q),
                  reverse=True)
    def walk(limit):
        pages = api.pages(f"/api/queries?limit={limit}")
        return [q["query_id"] for page in pages for q in page["queries"]]
    for limit in (1, 3, 7, 50, 100):
        equal(walk(limit), want, f"all of it, {limit} at a time")
    equal(redis_link(m)("ZCARD", "user:1:history"), 51, "from Redis")
    one = api("GET", "/api/queries?limit=1").body["queries"][0]
    equal((one["state"], one["question"], one["cost"], one["created_at"], one["end_time"]),
          ("DONE", "Q49", "12.34", "2026-01-02T03:04:07.500Z", None), "what a run shows")
    equal(other("GET", "/api/queries").body["queries"], [], "nobody sees another's")
    for query, field in (("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit"),
                         ("cursor=x", "cursor"), ("cursor=1.", "cursor"), ("page=2", "page")):
        equal(api("GET", "/api/queries?" + query).error, (400, "invalid", field), query)


@with_server("submitting")
def _(m):
    api, other = user(m, "submitter"), user(m, "onlooker")
    journals = [j["name"] for j in api("GET", "/api/journals").body["journals"]][:3]
    wish = {
        "question": "Is it about water?", "journals": journals, "year_from": 2011, "year_to": 2025}
    estimate = api("POST", "/api/estimate", {k: v for k, v in wish.items() if k != "question"}).body
    r = api("POST", "/api/queries", wish)
    equal(r.error[:2], (402, "funds"), "without money", r)
    cli(m, "user", "recharge", "submitter", estimate["cost"])
    for body, field in [({**wish, "question": "  "}, "question"),
                        ({**wish, "journals": ["nope"]}, "journals"),
                        ({**wish, "year_from": 2025, "year_to": 2011}, "year_to"),
                        ({**wish, "x": 1}, "x"),
                        ({**wish, "year_from": 1500, "year_to": 1501}, "journals")]:
        equal(api("POST", "/api/queries", body).error, (400, "invalid", field),
              f"refused, naming {field}")
    equal(api("GET", "/api/queries").body["queries"], [], "nothing was written")
    turned = admin(m, "root", "super")("POST", "/api/admin/switches",
                                       {"name": "new_runs", "on": False})
    equal(turned.status, 200, "from here on no run is started")
    r = api("POST", "/api/queries", wish)
    equal(r.status, 202, "with enough of it", r)
    path = "/api/queries/" + r.body["query_id"]
    got = api("GET", path).body
    equal((got["state"], got["papers"], got["question"], got["cost"]),
          ("QUEUED", estimate["papers"], "Is it about water?", "0.00"), "the run")
    equal([q["query_id"] for q in api("GET", "/api/queries").body["queries"]], [r.body["query_id"]],
          "in the history")
    for way in ("", "/pause", "/resume", "/terminate"):
        equal(other("POST" if way else "GET", path + way).status, 404,
              f"not another's: {way or 'show'}")
    equal(api("POST", path + "/pause").body["state"], "PAUSED", "pause")
    equal(api("POST", path + "/resume").body["state"], "QUEUED", "resume: it was never started")
    equal(api("GET", path).body["start_time"], None, "so it has no start")
    equal(api("POST", path + "/terminate").body["state"], "CANCELLED", "terminate")
    equal(api("POST", path + "/resume").error[:2], (409, "conflict"), "which is final")
    equal(api("GET", path).body["state"], "CANCELLED", "for good")


@with_server("results")
def _(m):
    api, other = user(m, "reader"), user(m, "stranger")
    papers = [(f"10.5555/r{i:02}", f"Of Water: {i % 2}", 2001 + i % 3, f"Caf\u00e9 & {i}")
              for i in (3, 11, 7, 1, 10, 2, 5, 8, 4, 9, 6)]
    for doi, journal, year, title in papers:
        bib = "@article{k, title = {" + title.replace("\u00e9", "{\\\\\\\\'e}").replace(
            "&", "\\\\\\\\&").replace("'", "''") + "}}"
        sql(m, f"INSERT INTO paperinfo (DOI, Bib) VALUES ('{doi}', '{{\"journal\": \"{journal}\","
            f" \"year\": {year}, \"file\": \"f\", \"bib\": \"{bib}\"}}')")
    sql(m, "INSERT INTO corpus_block (journal, year, papers, digest)"
        " SELECT journal, year, COUNT(*), 1 FROM paperinfo"
        " WHERE DOI LIKE '10.5555/r%' GROUP BY 1, 2")
    papers.append(("10.5555/r99", papers[0][1], papers[0][2], None))  # left the corpus meanwhile
    qid, path = "0123456789abcdef" * 2, "/api/queries/" + "0123456789abcdef" * 2
    verdicts = [{"relevant": True, "reason": "fits \u6c34"}, {"relevant": False, "reason": ""},
                {"error": "no verdict"}]
    want = [{"doi": d, "title": t, "journal": j, "year": y, "relevant": v.get("relevant"),
             "reason": v.get("reason"), "error": v.get("error"),
             "not_judged": False, "withdrawn": False, "simulated": False}
                 for (d, j, y, t), v in zip(papers, verdicts * 4)]
    sql(m, "INSERT INTO query_log (query_id, uid, search_params, status, total_papers)"
        f" VALUES ('{qid}', 1, '{{}}', 'PAUSED', 12)")
    redis = redis_link(m)
    block = lambda w: f"meta:{w['journal']}:{w['year']}"
    for w, v in zip(want, verdicts * 4):
        redis("HSET", f"result:1:{qid}", w["doi"],
              json.dumps({"ai_result": v, "block_key": block(w)}))
        redis("RPUSH", f"result:1:{qid}:arrivals", w["doi"])
        if w["relevant"]:
            redis("RPUSH", f"result:1:{qid}:relevant", w["doi"])
        if w["error"]:
            redis("SADD", f"query:1:{qid}:failed", w["doi"])
    redis("HSET", f"query:1:{qid}:status", "state", "PAUSED", "finished", "12", "relevant", "4",
          "failed", "4", "cost", "123")
    def counts(p):
        got = api("GET", p).body
        got = got["queries"][0] if "queries" in got else got
        return got["state"], got["finished"], got["relevant"], got["failed"], got["cost"]
    for p in ("/api/queries", path):
        equal(counts(p), ("PAUSED", 12, 4, 4, "1.23"), f"{p} shows how far it is")
    def walk(query, limit):
        seen = []
        for page in api.pages(f"{path}/results?limit={limit}{query}"):
            if not ok(not page["restarted"], f"a page of {limit}", page):
                return seen
            seen += page["results"]
        return seen
    equal(walk("", 5), want, "all, as they came")
    equal(walk("&relevant=1", 3), [w for w in want if w["relevant"]], "relevant ones")
    for verdict, relevant in (("relevant", True), ("irrelevant", False), ("failed", None)):
        equal(walk(f"&verdict={verdict}", 3), [w for w in want if w["relevant"] is relevant],
              f"{verdict} ones")
    for query, field in (("limit=0", "limit"), ("limit=501", "limit"), ("cursor=x", "cursor"),
                         ("cursor=s0.1&relevant=2", "relevant"), ("cursor=r1", "cursor"),
                         ("page=2", "page"), ("verdict=good", "verdict"),
                         ("verdict=failed&relevant=1", "verdict"),
                         ("verdict=failed&cursor=n1", "cursor")):
        equal(api("GET", f"{path}/results?{query}").error, (400, "invalid", field), query)
    equal(other("GET", path + "/results").status, 404, "not another's")
    equal(Api(m)("GET", path + "/results").status, 401, "nor nobody's")
    cursor = api("GET", path + "/results?limit=1").body["next"]
    for w, v in zip(want, verdicts * 4):
        verdict = json.dumps(v).replace("\\", "\\\\")
        sql(m, "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result)"
            f" VALUES (1, '{qid}', '{w['doi']}', '{block(w)}',"
            f" {'NULL' if w['error'] else w['relevant']}, '{verdict}')")
    sql(m, "UPDATE query_log SET status = 'DONE', archived = 1, finished_papers = 11,"
        f" total_cost = 4.56 WHERE query_id = '{qid}'")
    redis("DEL", f"result:1:{qid}", f"result:1:{qid}:arrivals", f"result:1:{qid}:relevant")
    final = sorted(want, key=lambda w: (bool(w["error"]), not w["relevant"], block(w), w["doi"]))
    equal(walk("", 5), final, "once it is archived: in final order, without Redis")
    equal(walk("&relevant=1", 3), final[:4], "relevant ones")
    for i, verdict in enumerate(("relevant", "irrelevant", "failed")):
        equal(walk(f"&verdict={verdict}", 3), final[4 * i : 4 * i + 4], f"{verdict} ones")
    r = api("GET", f"{path}/results?limit=3&cursor={cursor}").body
    equal((r["restarted"], r["results"]), (True, final[:3]),
          "a cursor from before begins anew, and says so")
    equal(counts("/api/queries"), ("DONE", 11, 0, 0, "4.56"), "the history shows what was archived")


@with_server("without Redis")
def _(m):
    api, gone = user(m, "steady"), user(m, "leaver")
    cli(m, "user", "recharge", "steady", "7.00")
    add_runs(m, 1, 5)
    normal = {p: api("GET", p).body
              for p in ("/api/me", "/api/tags", "/api/journals", "/api/queries?limit=3")}
    equal(normal["/api/me"]["balance"], "7.00", "before")
    wait_for(lambda: redis_link(m)("BGREWRITEAOF") is not None, 5)
    time.sleep(1.5)  # what Redis was told is on disk
    pid = m.pid_of("redis")
    freeze(pid)  # it does not come back by itself for a while
    try:
        def degraded(path):
            r = api("GET", path)
            return r.status == 200 and r.body.get("degraded") is True and \
                {k: v for k, v in r.body.items() if k != "degraded"} == normal[path]
        for path in normal:
            ok(wait_for(lambda: degraded(path), 15), f"{path} answers from MySQL, and says so",
               api("GET", path))
        r = Api(m).login("steady")
        ok(r.status == 200 and r.body["degraded"], "so does log-in", r)
        name = normal["/api/journals"]["journals"][0]["name"]
        r = api("POST", "/api/queries",
                {"question": "Q", "journals": [name], "year_from": 2011, "year_to": 2025})
        equal(r.error[:2], (503, "unavailable"), "submitting is refused", r)
        equal(gone("POST", "/api/logout").status, 200, "somebody logs out")
        equal(gone.me().status, 401, "and is out")
    finally:
        os.kill(pid, signal.SIGKILL)
    ok(wait_for(m.ready, 30), "Redis is back")
    equal(gone.me().status, 401, "a session that Redis remembers is not believed")
    ok(wait_for(lambda: all("degraded" not in api.me().body for _ in range(20)), 15),
       "every node is normal again, by itself")
    equal(api.me().body, normal["/api/me"], "with the same answer")
    equal(gone.me().status, 401, "still out")


@with_server("kill -9 while money moves")
def _(m):
    seed = random.randrange(10 ** 9)
    note(f"seed {seed}")
    chance = random.Random(seed)
    api = user(m, "rich")
    env = environment({"MILLRACE_DATA_DIR": m.data})
    began = time.monotonic()
    cli(m, "user", "recharge", "rich", "100.00", "--request", "first")
    took = time.monotonic() - began
    total = 10000
    for i in range(25):
        kind, cents = ("recharge", 100 + i) if i % 2 == 0 else ("deduct", 10 + i)
        args = [BIN, "user", kind, "rich", f"{cents / 100:.2f}", "--request", f"q{i}"]
        p = subprocess.Popen(args, env=env, cwd=folder(), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(chance.random() * took * 1.2)
        p.kill()
        p.wait()
        if chance.random() < 0.15:
            # The one before may not have been replaced yet.
            os.kill(wait_for(m.nodes)[0], signal.SIGKILL)
        done = cli(m, "user", *args[2:])
        if done.returncode:
            done = cli(m, "user", *args[2:])
        if not equal(done.returncode, 0, f"{kind} {i}, killed and sent again", done.stderr):
            break
        total += cents if kind == "recharge" else -cents
    want = f"{total / 100:.2f}"
    ok(wait_for(lambda: sql(m, "SELECT balance FROM user_info") == [[want]], 20),
       "MySQL has every movement once", sql(m, "SELECT balance FROM user_info"), want)
    ok(wait_for(lambda: api.me().status == 200 and api.me().body["balance"] == want, 20),
       "and so has Redis", api.me())
    equal(sql(m, "SELECT SUM(IF(kind = 'deduction', -cents, cents)) FROM billing_log"),
          [[str(total)]], "and the log")
    r = cli(m, "audit", "--json")
    ok(r.returncode == 0 and json.loads(r.stdout), "the audit finds every cent", r.stdout, r.stderr)
    sql(m, "UPDATE user_info SET balance = balance + 0.03")
    r = cli(m, "audit")
    ok(r.returncode == 1 and "2 findings" in r.stdout, "and notices three cents, in both stores",
       r.stdout, r.stderr)


@with_server("OpenAPI")
def _(m):
    doc = json.loads(m.get("/openapi.json").body)
    equal(doc["openapi"][:3], "3.1", "version")
    api = user(m, "walker")
    for path, methods in doc["paths"].items():
        for method, told in methods.items():
            url = re.sub(r"\{\w+\}", "0" * 32, path.replace("{sid}", "0" * 64))
            if path.startswith("/api/admin/") or not path.startswith("/api/"):
                continue  # see test_admin.py, test_metrics.py
            bare = Api(m)(method.upper(), url, {} if "requestBody" in told else None)
            if told.get("security"):
                equal(bare.status, 401, f"{method} {path}: wants a session")
            if method == "get" and any(
                    p["required"] and p["in"] == "query" for p in told.get("parameters", [])):
                equal(api("GET", url).status, 400, f"{method} {path}: wants its parameters")
            elif method == "get" and "{" in path:
                equal(api("GET", url).status, 404, f"{method} {path}: nothing there")
            elif method == "get" and "application/json" not in told["responses"]["200"]["content"]:
                raw = http(m.port, url, headers=[f"Authorization: Bearer {api.token}"])
                ok(raw.status == 200 and raw.headers["content-type"].split(";")[0]
                   in told["responses"]["200"]["content"],
                   f"{method} {path}: answers in the form that the document says", raw.headers)
            elif path == "/api/embedding/queue/status":
                equal(api("GET", url).status, 403, f"{method} {path}: is for admins")
            elif method == "get":
                r = api("GET", url)
                ok(r.status == 200 and
                   set(r.body) - {"success"} <= set(told["responses"]["200"]["content"]
                                                    ["application/json"]["schema"]["properties"]),
                   f"{method} {path}: answers what the document says", r)
            elif "requestBody" in told:
                r = api(method.upper(), url, {"no_such_member": 1})
                equal(r.status, 400, f"{method} {path}: refuses what the document does not name")


@test("local_develop_mode")
def _():
    for mode, persist, want in (("true", "false", "no"), ("true", "true", "yes"),
                                ("false", "false", "yes")):
        with Millrace(env={"MILLRACE_LOCAL_DEVELOP_MODE": mode,
                           "MILLRACE_PERSIST_USER_INFO": persist, "MILLRACE_NODES": "1"}) as m:
            equal(redis_link(m)("CONFIG", "GET", "appendonly")[1].decode(), want,
                  f"local_develop_mode {mode}, persist_user_info {persist}")


if __name__ == "__main__":
    run_tests()
