"""What admins are told by a webhook, once for each episode, while stores and nodes go away: on real
stores, with a simulated AI."""
import json
import os
import signal
import time

from admins import admin, uid_of, user
import guides
from harness import (Millrace, equal, folder, freeze, note, ok, redis_link, run_tests, sql, test,
                     wait_for)
from hook import Hook, overview
from sim import Sim


def keys_refused(m, root, worker, hook):
    kid = root("POST", "/api/admin/keys",
               {"key": "sk-nobody-knows-this-one", "rpm_limit": 100000}).body["id"]
    root("POST", f"/api/admin/users/{uid_of(worker)}/recharge",
         {"amount": "100000", "request_id": "x"})
    journals = [j["name"] for j in worker("GET", "/api/journals").body["journals"]]
    worker("POST", "/api/queries",
           {"question": "Wet?", "year_from": 1900, "year_to": 2100, "journals": journals})
    hook.told(f"key:{kid}", ["begun"])
    ok(hook.refused == 1, "a message that was refused is sent again")
    _, path, body = next(g for g in hook.got if g[2]["alert"] == f"key:{kid}")
    members = set(json.loads(next(guides.blocks("docs/monitoring.md", "json")).text))
    ok(path == "/hooks/s3cr3t" and set(body) == members and "401" in body["text"],
       "what is told", body)
    # Nodes may differ by a second.
    o = wait_for(lambda: (o := overview(root))["alerts"] and o, 5) or overview(root)
    key = next(k for k in o["keys"] if k["id"] == kid)
    ok(key["state"] == "refused" and "401" in key["last_error"] and key["last_error_at"],
       "the key, and why", key)
    equal([a["name"] for a in o["alerts"]], [f"key:{kid}"], "in the overview, too")
    root("POST", f"/api/admin/keys/{kid}", {"active": False})
    hook.told(f"key:{kid}", ["begun", "ended"])
    ok("nobody-knows" not in json.dumps(hook.got) + m.log() and "s3cr3t" not in m.log(),
       "no secrets are told")


def store_down(m, root, store, name, hook):
    pid = m.pid_of(store)
    freeze(pid)
    try:
        hook.told(name, ["begun"])
        if name == "redis":
            r = root("GET", "/api/admin/overview")
            ok(r.status == 200 and not r.body["stores"]["redis"]["up"] and
               r.body["stores"]["mysql"]["up"] and r.body["stores"]["redis"]["problem"],
               "the overview says so", r)
    finally:
        os.kill(pid, signal.SIGCONT)
    hook.told(name, ["begun", "ended"])


def node_lost(m, root, hook):
    said = redis_link(m)("HGETALL", "sys:nodes:info")
    # If it was the node that watches, another one does within ten seconds.
    victim = json.loads(said[1])
    os.kill(int(victim["name"].rsplit(":", 1)[1]), signal.SIGKILL)
    hook.told("node:" + victim["id"], ["begun", "ended"])


@test("alerts")
def _():
    keys = os.path.join(folder(), "keys")
    with open(keys, "w") as f:
        f.write("sk-of-the-simulator\n")
    with Hook() as hook, Sim("--keys", keys) as sim, Millrace(env={
            "MILLRACE_SAMPLE_PAPERS": "500", "MILLRACE_AI_URL": sim.url,
            "MILLRACE_ALERT_WEBHOOK_URL": hook.url,
            # Its run stands for want of a key: test_standing.py has those alerts.
            "MILLRACE_ALERT_STANDING_MS": "3600000"}) as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        root, worker = admin(m, "root"), user(m, "worker")
        sql(m, "DELETE FROM api_list")
        for part in (lambda: keys_refused(m, root, worker, hook),
                     lambda: store_down(m, root, "redis", "redis", hook),
                     lambda: store_down(m, root, "mariadb", "mysql", hook),
                     lambda: node_lost(m, root, hook)):
            began = time.monotonic()
            part()
            note(f"{time.monotonic() - began:.1f} s")
        equal({b["alert"] for _, _, b in hook.got if hook.events(b["alert"]) != ["begun", "ended"]},
              set(), "each was told once", *hook.got)
        ok(wait_for(lambda: not any(overview(root)["alerts"] for _ in range(6)), 5),
           "nothing is left",
           overview(root)["alerts"])


run_tests()
