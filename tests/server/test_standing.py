"""Why a run does not move: every cause that can be made on a real server is shown within two
seconds, is an alert when it lasts, and is over when the cause is."""
import contextlib
import json
import socket
import time

from admins import admin
from harness import SCALE, crowd, equal, note, ok, redis_link, run_tests, sql, test, wait_for
from hook import Hook, overview
from screening import act, person, server, submit, view
from sim import Sim

SHOWN_S = 2


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def why(api, qid):
    v = view(api, qid)
    return v["reason_code"], v["reason_facts"]


def is_shown(api, qid, code, about, seconds=SHOWN_S, **facts):
    """In time, and with these facts; all facts. The two nodes may differ meanwhile."""
    seen = []
    def so():
        its, its_facts = why(api, qid)
        seen.append(its_facts)
        return its == code and all((its_facts or {}).get(k) == v for k, v in facts.items())
    began = time.monotonic()
    found = wait_for(so, 20)
    took = time.monotonic() - began
    ok(found and took < seconds * crowd(), f"{about}: {code} in {seconds} s", f"{took:.1f} s",
       view(api, qid))
    return seen[-1] or {}


def is_listed(api, qid, code):
    def listed():
        runs = api("GET", "/api/queries").body["queries"]
        return [r["reason_code"] for r in runs if r["query_id"] == qid] == [code]
    ok(wait_for(listed, SHOWN_S * SCALE), f"{code}, in the list of runs, too")


class Events:
    """The stream of a run; heard() is true once an event has this member."""

    def __init__(self, m, api, qid):
        self.s = socket.create_connection(("127.0.0.1", m.port), 5)
        self.s.sendall(f"GET /api/queries/{qid}/events HTTP/1.1\r\nHost: t\r\n"
                       f"Authorization: Bearer {api.token}\r\n\r\n".encode())
        self.s.settimeout(SHOWN_S * crowd())
        self.text = b""

    def heard(self, name, value):
        wanted = f'"{name}":"{value}"'.encode()
        while wanted not in self.text:
            try:
                piece = self.s.recv(65536)
            except TimeoutError:
                return False
            if not piece:
                return False
            self.text += piece
        return True


def errors_shown(m, root):
    """A node that has just joined tells of its failed calls, and is gone again."""
    link = redis_link(m)
    fault = {"kind": "dns", "count": 7, "at_ms": int(time.time() * 1000), "words": "no such host"}
    other = fault | {"service": "embedding", "count": 2}
    link("HSET", "sys:nodes:info", "00ff",
         json.dumps({"id": "x", "name": "x", "faults": [fault, other]}))
    link("ZADD", "sys:nodes", str(int(time.time() * 1000)), "00ff")
    errors = lambda: [(e["service"], e["kind"], e["count"])
                      for e in overview(root)["ai_errors"] if e["words"] == "no such host"]
    wanted = [("chat", "dns", 7), ("embedding", "dns", 2)]
    ok(wait_for(lambda: errors() == wanted and not well(root), 3),
       "AI errors of any node are in the overview", overview(root))
    link("ZREM", "sys:nodes", "00ff")
    link("HDEL", "sys:nodes:info", "00ff")
    link("HDEL", "sys:nodes:lost", "00ff")


def set_keys(m, change):
    sql(m, "UPDATE api_list SET " + change)


def rest_keys(m, seconds):
    link = redis_link(m)
    until = int((time.time() + seconds) * 1000)
    for (key,) in sql(m, "SELECT api_index FROM api_list"):
        link("HSET", f"sys:window:{key}", "rest", str(until))


def permit(root, api, permission):
    r = root("POST", f"/api/admin/users/{api.uid}/permission", {"permission": permission})
    assert r.status == 200, r


def nodes(root, what):
    for n in overview(root)["nodes"]:
        assert root("POST", f"/api/admin/nodes/{n['id']}/{what}").status == 200


def stands(root, code):
    return any(g["reason_code"] == code and g["runs"] and g["query_id"]
               for g in overview(root)["standing"])


def well(root):
    return overview(root)["well"]


def people(m, root, hook, others):
    """Causes of one user each, while the keys rest: they go before those of all."""
    api, qid = others["forbidden"]
    permit(root, api, 0)
    is_shown(api, qid, "no_permission", "the permission is taken away", permission=0)
    assert root("POST", "/api/admin/switches", {"name": "new_runs", "on": False}).status == 200
    api = person(m, "held", permission=1)
    qid, _ = submit(api)
    is_shown(api, qid, "new_runs_off", "new runs are switched off")
    is_listed(api, qid, "new_runs_off")
    others["held"] = api, qid


def keys(m, root, hook, api, qid):
    """One episode for no_key, whatever the keys lack."""
    count = int(sql(m, "SELECT COUNT(*) FROM api_list")[0][0])
    events = Events(m, api, qid)
    set_keys(m, "is_active = 0")
    is_shown(api, qid, "no_key", "all keys are off", cause="off", keys=count)
    ok(events.heard("reason_code", "no_key"), "in its events, too", events.text[-500:])
    is_listed(api, qid, "no_key")
    journals = [api("GET", "/api/journals").body["journals"][0]["name"]]
    wish = {"journals": journals, "year_from": 1900, "year_to": 2100}
    says = lambda e: (e["reason_code"], (e["reason_facts"] or {}).get("cause"), e["seconds_min"])
    ok(wait_for(lambda: says(api("POST", "/api/estimate", wish).body) == ("no_key", "off", None),
                SHOWN_S * SCALE), "an estimate says so before the run is submitted")
    ok(wait_for(lambda: stands(root, "no_key") and not well(root), 4), "the overview knows",
       overview(root)["standing"])
    hook.told("standing:no_key", ["begun"])
    set_keys(m, "is_active = 1, day_cap = 1")
    facts = is_shown(api, qid, "no_key", "all keys have reached a cap", cause="capped", keys=count)
    ok(facts["until"] > now(), "and until when", facts)
    ok(events.heard("cause", "capped"), "in its events, though nothing else has changed",
       events.text[-500:])
    events.s.close()
    rows = sql(m, "SELECT api_key, rpm_limit, tpm_limit FROM api_list")
    sql(m, "DELETE FROM api_list")
    is_shown(api, qid, "no_key", "there is no key", cause="none", keys=0)
    for key, rpm, tpm in rows:
        sql(m, "INSERT INTO api_list (api_key, rpm_limit, tpm_limit)"
               f" VALUES ('{key}', {rpm}, {tpm})")
    is_shown(api, qid, None, "there are keys again")
    rest_keys(m, 60)
    facts = is_shown(api, qid, "keys_resting", "all keys rest", keys=count)
    ok(facts["until"] > now(), "and until when", facts)
    hook.told("standing:no_key", ["begun", "ended"])
    hook.told("standing:keys_resting", ["begun"])


def service(m, root, hook, sim, api, qid):
    """The AI service dies, and comes back at the same address."""
    sim.kill()
    # With two workers each, the nodes know it after a second or two, when calls were tried again.
    known = lambda: m.log().count("the AI service does not work") >= 2
    ok(wait_for(known, 5), "both nodes find that the AI service is away")
    is_shown(api, qid, "service_down", "the AI service is away", cause="refused")
    is_listed(api, qid, "service_down")
    hook.told("standing:service_down", ["begun"])
    ok(not well(root) and stands(root, "service_down"), "the overview knows", overview(root))
    # As after a restart of Redis: the balance is loaded anew before the next charge.
    redis_link(m)("HSET", f"user:{api.uid}:ledger", "run", "0" * 40)
    is_shown(api, qid, "repairing", "a balance of another Redis", cause="account")
    hook.told("standing:repairing", ["begun"])


def banned(m, root, hook, api):
    """Between a ban and the pause of the user's runs, which MySQL may delay. Sessions are over
    then: admins see it."""
    link, key = redis_link(m), f"user:{api.uid}:info"
    assert link("HEXISTS", key, "banned")
    link("HSET", key, "banned", "1")
    ok(wait_for(lambda: stands(root, "account_stopped"), SHOWN_S * SCALE),
       f"a run of a banned user: account_stopped in {SHOWN_S} s", overview(root)["standing"])
    hook.told("standing:account_stopped", ["begun"])
    link("HSET", key, "banned", "0")
    hook.told("standing:account_stopped", ["begun", "ended"])


def drained(m, root, hook, api, qid):
    nodes(root, "drain")
    is_shown(api, qid, "drained", "all nodes are drained", nodes=2)
    hook.told("standing:drained", ["begun"])
    nodes(root, "undrain")


def queue(m):
    """The second run of a user whose first one has all of the permission."""
    api = person(m, "patient", permission=1)
    first, _ = submit(api)
    is_shown(api, first, None, "a run that moves")
    second, _ = submit(api)
    is_shown(api, second, "queued", "behind the first one", position=1, of=1, others=1,
             permission=1)
    is_listed(api, second, "queued")
    act(api, first, "terminate")
    is_shown(api, second, None, "it is its turn")
    act(api, second, "terminate")


def limit(m, root, api, qid):
    set_keys(m, "rpm_limit = 12")
    is_shown(api, qid, "rate_limit", "the limit is what holds it")
    count = int(sql(m, "SELECT COUNT(*) FROM api_list")[0][0])

    def told():
        v = view(api, qid)
        least = (v["papers"] - v["finished"]) * 60 // (12 * count) - 1
        return v["seconds_left_min"] and v["seconds_left_max"] >= v["seconds_left_min"] >= least

    ok(wait_for(told, SHOWN_S * SCALE), "and the time left is told by it", view(api, qid))
    ok(not stands(root, "rate_limit"), "which no operator need mend")


@test("standing")
def _():
    with contextlib.ExitStack() as stack, Hook() as hook, Sim("--latency-ms", "300") as sim, server(
            sim, papers=1000, MILLRACE_ALERT_WEBHOOK_URL=hook.url, MILLRACE_NODES="2",
            MILLRACE_ALERT_STANDING_MS="500") as m:
        root = admin(m, "root")
        api = person(m, "worker", permission=4)
        qid, _ = submit(api, papers=1000)
        is_shown(api, qid, None, "a run that moves")
        forbidden = person(m, "forbidden", permission=1)
        others = {"forbidden": (forbidden, submit(forbidden)[0])}
        ok(wait_for(lambda: well(root), 5), "all is well", overview(root))
        for part in (lambda: queue(m),
                     lambda: errors_shown(m, root),
                     lambda: keys(m, root, hook, api, qid),
                     lambda: people(m, root, hook, others)):
            began = time.monotonic()
            part()
            note(f"{time.monotonic() - began:.1f} s")
        for code in ("no_permission", "new_runs_off"):
            hook.told(f"standing:{code}", ["begun"])
        rest_keys(m, -1)
        is_shown(api, qid, None, "the keys have rested")
        permit(root, forbidden, 1)
        assert root("POST", "/api/admin/switches", {"name": "new_runs", "on": True}).status == 200
        drained(m, root, hook, api, qid)
        is_shown(api, qid, None, "they take work again")
        for code in ("keys_resting", "no_permission", "new_runs_off", "drained"):
            hook.told(f"standing:{code}", ["begun", "ended"])
        ok(wait_for(lambda: well(root), 5), "all is well again", overview(root))
        service(m, root, hook, sim, api, qid)
        stack.enter_context(Sim("--latency-ms", "300", port=sim.port))
        is_shown(api, qid, None, "the AI service is back", 5)
        for code in ("service_down", "repairing"):
            hook.told(f"standing:{code}", ["begun", "ended"])
        banned(m, root, hook, api)
        limit(m, root, api, qid)
        for who, run in [*others.values(), (api, qid)]:
            act(who, run, "terminate")


run_tests()
