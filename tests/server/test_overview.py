"""What admins see of everything, and what they tell nodes: on real stores, with a simulated AI."""
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import time

from admins import admin, told, uid_of, user
from harness import (Client, Millrace, crowd, equal, folder, note, ok, redis_link, run_tests,
                     sql, test, wait_for)
from sim import Sim

MONITORING = os.path.join(os.path.dirname(__file__), "../../docs/monitoring.md")
DASHBOARD = os.path.join(os.path.dirname(__file__), "../../deploy/grafana/millrace.json")
WISH = {"question": "Wet?", "year_from": 1900, "year_to": 2100}


@contextlib.contextmanager
def server(sim, **settings):
    env = {"MILLRACE_SAMPLE_PAPERS": "500", "MILLRACE_AI_URL": sim.url,
           "MILLRACE_AI_EMBEDDING_URL": sim.url,
           "MILLRACE_AI_TIMEOUT_MS": "3000", **settings}
    with Millrace(env=env) as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        sql(m, "UPDATE api_list SET rpm_limit = 100000, tpm_limit = 100000000")
        yield m


def overview(api):
    r = api("GET", "/api/admin/overview")
    assert r.status == 200, r
    return r.body


def begin_run(root, worker, workers):
    root("POST", f"/api/admin/users/{uid_of(worker)}/recharge",
         {"amount": "100000", "request_id": str(time.monotonic())})
    root("POST", f"/api/admin/users/{uid_of(worker)}/permission", {"permission": workers})
    journals = [j["name"] for j in worker("GET", "/api/journals").body["journals"]]
    r = worker("POST", "/api/queries", {**WISH, "journals": journals})
    assert r.status == 202, r
    return r.body["query_id"]


def stream(m, api, count):
    """The first events of a stream, and when each came."""
    c = Client(m.port)
    c.send(f"GET /api/admin/overview/events HTTP/1.1\r\nHost: x\r\n"
           f"Authorization: Bearer {api.token}\r\n\r\n".encode())
    text, found = b"", []
    while len(found) < count:
        text += c.s.recv(65536)
        while (event := re.search(rb"event: overview\r?\ndata: (\{[^\n]*\})",
                                  text)) and len(found) < count:
            found.append((time.monotonic(), json.loads(event[1])))
            text = text[event.end():]
    c.close()
    return found


def seen(m, root, worker, qid):
    # One and the same: the two nodes may differ by a second.
    o = wait_for(
        lambda: (o := overview(root))["workers"]["total"] == 4 and o["rpm"]["used"] > 4 and o,
        10) or overview(root)
    equal((len(o["rpm"]["slots"]), len(o["tpm"]["slots"])), (60, 60), "60 slots")
    ok(0 < o["rpm"]["used"] == sum(o["rpm"]["slots"]) and
       0 < o["tpm"]["used"] == sum(o["tpm"]["slots"]), "that add up", o["rpm"])
    keys = [k for k in o["keys"] if k["state"] == "active"]
    equal((o["rpm"]["limit"], o["tpm"]["limit"]), (100000 * len(keys), 100000000 * len(keys)),
          "limits")
    ok(abs(sum(k["requests_used"] for k in keys) - o["rpm"]["used"]) <= 8 and
       all(len(k["key"]) < 14 for k in keys),
       "keys, with what each has used, and nothing of the key itself", keys)
    ok(sum(k["caps"][0]["used"] for k in keys) > 0 and keys[0]["caps"][1]["cap"] is None,
       "and calls against each cap", keys)
    equal((o["workers"]["total"], sum(r["workers"] for r in o["workers"]["runs"]),
           {(r["user"], r["query_id"]) for r in o["workers"]["runs"]}),
          (4, 4, {(uid_of(worker), qid)}), "workers by node and run")
    nodes = o["nodes"]
    equal(({n["id"] for n in nodes if n["takes_work"]}, len({n["id"] for n in nodes})),
          ({r["node"] for r in o["workers"]["runs"]}, 2), "two nodes")
    ok(all(n["silent_ms"] < 4000 and n["resident_bytes"] > 0 and n["tasks"] > 5 and
           len(n["prompt"]) == 12 for n in nodes), "and how they are", nodes)
    redis, mysql = o["stores"]["redis"], o["stores"]["mysql"]
    ok(redis["up"] and mysql["up"] and 0 < redis["latency_us"] < 10**6 and
       redis["memory_bytes"] > 10**5 and redis["memory_bytes_max"] == 256 << 20 and
       mysql["memory_bytes"] > 10**5 and 0 < mysql["hits_permille"] <= 1000 and
       redis["clients"] >= 4 and redis["problem"] is None, "stores", o["stores"])
    ok(o["billing"]["records_max"] == 10000 and not o["billing"]["alarm"] and
       o["billing"]["drift_cents"] == 0, "money", o["billing"])
    equal((o["backlog"]["running"], o["backlog"]["queued"], o["alerts"]), (1, 0, []), "what waits")
    ok(wait_for(lambda: overview(root)["sessions"] == {"admins": 1, "users": 1}, 8), "sessions",
       overview(root)["sessions"])
    root("POST", "/api/admin/switches", {"name": "new_runs", "on": False})
    time.sleep(1 * crowd())  # every node has seen it
    begin_run(root, worker, 4)
    ok(wait_for(
           lambda: overview(root)["backlog"]["queued"] == 1 and overview(root)["backlog"][
               "oldest_seconds"] >= 1, 5), "how long it waits",
       overview(root)["backlog"])
    root("POST", "/api/admin/switches", {"name": "new_runs", "on": True})


def streams(m, root):
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: stream(m, root, 4), range(6)))
    # The first one comes at once.
    gaps = [[b[0] - a[0] for a, b in zip(events[1:], events[2:])] for events in found]
    ok(all(max(g) < 1.4 * crowd() and sum(g) > 0.6 * len(g) for g in gaps), "an event each second",
       gaps)
    taken = {e["at"] for events in found for _, e in events}
    ok(len(taken) <= 2 * (4 + crowd()), "six streams on two nodes share what is collected",
       len(taken))
    del found[0][0][1]["at"]
    equal(set(found[0][0][1]) | {"success", "at"}, set(overview(root)),
          "an event is what the overview is")


def in_metrics(m, root):
    text = m.get("/metrics").body.decode()
    there = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    with open(DASHBOARD) as f:
        dashboard = json.load(f)
    named = {n for p in dashboard["panels"] for t in p.get("targets", [])
             for n in re.findall(r"\bmillrace_\w+", t["expr"])}
    ok(len(named) > 40, "a dashboard", len(named))
    equal(named - there, set(), "all of whose metrics exist")
    with open(MONITORING) as f:
        described = set(re.findall(r"`(millrace_\w+)", f.read()))
    equal(described - {n for t in there for n in (t, re.sub("_(bucket|sum|count)$", "", t))}, set(),
          "so do all that are described")
    equal({re.sub("_bucket$", "", n) for n in named} - described, set(),
          "and what it shows is described")
    ids = [p["id"] for p in dashboard["panels"]]
    equal(len(ids), len(set(ids)), "each panel with an id of its own")
    value = lambda name: max(
        float(v) for v in re.findall(rf"^{re.escape(name)}[,}}][^ ]* (\S+)$", text, re.M))
    equal((value('millrace_nodes_alive{node="0"'), value('millrace_store_up{store="redis"'),
           value('millrace_store_up{store="mysql"')), (2, 1, 1), "nodes and stores")
    used = lambda: {limit: int(v) for limit, v in re.findall(
                        r'^millrace_key_use_permille{key="\d+",limit="(\w+)"[^ ]* (\d+)$',
                        m.get("/metrics").body.decode(), re.M)}
    equal(set(used()), {"requests", "tokens"},
          "of keys without caps, how much of their limits is used")
    for key in overview(root)["keys"]:
        root("POST", f"/api/admin/keys/{key['id']}", {"day_cap": 4000})
    ok(wait_for(lambda: used().get("day", 0) > 0, 8), "of those with a cap, how much of that",
       used())
    for key in overview(root)["keys"]:
        root("POST", f"/api/admin/keys/{key['id']}", {"day_cap": -1})
    ok(value('millrace_sessions{kind="user"') >= 1 and
       value('millrace_sessions{kind="admin"') >= 1 and value('millrace_keys{state="active"') >= 1,
       "sessions and keys")


def pid_of(node):
    return int(node["name"].rsplit(":", 1)[1])


def reloaded(m, root, victim):
    """Nodes of another generation have the same places. The process that has the drained one."""
    before = {n["id"]: pid_of(n) for n in overview(root)["nodes"]}
    m.send_signal(signal.SIGHUP)
    ok(wait_for(lambda: "the old nodes have ended" in m.log(), 30), "a reload", m.log())
    now = lambda: {n["id"]: n for n in overview(root)["nodes"]}
    ok(wait_for(
           lambda: set(now()) == set(before) and all(
               pid_of(n) != before[i] for i, n in now().items()), 10),
       "has new nodes in the same places", before, now())
    equal({i: (n["drained"], n["takes_work"]) for i, n in now().items()},
          {i: (i == victim, i != victim) for i in before}, "the drained one is drained")
    ok(wait_for(lambda: overview(root)["workers"]["total"] == 4 and now()[victim]["workers"] == 0,
                10), "the others work", now())
    return pid_of(now()[victim])


def from_the_first_moment(m):
    """Every node that was started in the drained place has said so before it served."""
    lines = [
        l for l in m.log().splitlines() if "takes no work any more" in l or "node: serves" in l]
    held = [i for i, l in enumerate(lines) if "takes no work" in l]
    ok(len(held) == 3, "a node was drained, and two have followed it", *lines)
    for i in held[1:]:
        who = re.search(r"node-\d+", lines[i])[0]
        ok(any(who in l and "serves" in l for l in lines[i + 1:]),
           "who follows a drained node knows it before it serves", *lines)


def all_drained(m, root, worker):
    """Nobody takes work: runs stay queued."""
    ids = [n["id"] for n in overview(root)["nodes"]]
    for i in ids:
        root("POST", f"/api/admin/nodes/{i}/drain")
    ok(wait_for(
           lambda: not any(n["takes_work"] for n in overview(root)["nodes"]) and overview(root)[
               "workers"]["total"] == 0, 10), "all nodes are drained",
       overview(root)["nodes"])
    other, queued = user(m, "other"), lambda: overview(root)["backlog"]["queued"]
    time.sleep(1.5 * crowd())  # the node that dispatches hears of the others with its heartbeats
    before = queued()
    qid = begin_run(root, other, 2)
    state = lambda: sql(m, f"SELECT status FROM query_log WHERE query_id = '{qid}'")[0][0]
    ok(not wait_for(lambda: state() != "QUEUED", 1.5), "a run waits in the queue", state())
    equal(queued(), before + 1, "and is seen there")
    gone = begin_run(root, other, 2)
    equal(other("POST", f"/api/queries/{gone}/terminate").body["state"], "CANCELLED",
          "another is ended")
    ok(wait_for(lambda: queued() == before + 1, 5), "and leaves the queue",
       overview(root)["backlog"])
    root("POST", f"/api/admin/nodes/{ids[0]}/undrain")
    ok(wait_for(
           lambda: state() == "RUNNING" and any(r["query_id"] == qid
                                                for r in overview(root)["workers"]["runs"]), 10),
       "it starts when a node takes work", state())
    root("POST", f"/api/admin/nodes/{ids[1]}/undrain")


def drained(m, root, worker):
    wait_for(lambda: len({r["node"] for r in overview(root)["workers"]["runs"]}) == 2, 10)
    nodes = overview(root)["nodes"]
    victim = nodes[0]["id"]
    state = lambda: next((n for n in overview(root)["nodes"] if n["id"] == victim), None)
    said = lambda: [v for v in map(json.loads,
                                   redis_link(m)("HVALS", "sys:nodes:info")) if v["id"] == victim]
    began = time.monotonic()
    equal(root("POST", f"/api/admin/nodes/{victim}/drain", {"reason": "new disks"}).body,
          {"success": True, "id": victim, "drained": True}, "a node is drained")
    wait_for(lambda: said() and not said()[0]["takes"], 5)
    took = time.monotonic() - began
    ok(took < 1 * crowd(), "it takes no work within a second", took)
    ok(wait_for(lambda: state()["workers"] == 0 and overview(root)["workers"]["total"] == 4, 10),
       "its workers go to the other one",
       overview(root)["nodes"])
    equal({m.get("/readyz").status for _ in range(20)}, {200}, "it still serves")
    pid = reloaded(m, root, victim)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # the table cannot be read for a while
        pool.submit(sql, m, "LOCK TABLES setting WRITE; DO SLEEP(1.5)")
        wait_for(lambda: sql(m, "SHOW OPEN TABLES WHERE `Table` = 'setting' AND In_use"), 5)
        os.kill(pid, signal.SIGKILL)
        new = wait_for(lambda: [v for v in said() if pid_of(v) != pid], 20)
    ok(new and not new[0]["takes"],
       "it is killed, and another takes its place, but no work, from its first heartbeat on", new)
    ok(wait_for(lambda: (s := state()) and s["drained"] and not s["takes_work"] and
                pid_of(s) != pid, 10), "which is drained, too", state())
    from_the_first_moment(m)
    equal(root("POST", f"/api/admin/nodes/{victim}/undrain").body["drained"], False,
          "and works again")
    ok(wait_for(lambda: state()["workers"] > 0, 10), "when it may", overview(root)["nodes"])
    for name in ("nobody-0000-0", "x" * 49, "%27"):
        equal(root("POST", f"/api/admin/nodes/{name}/drain").status, 404, "there is no such node")
    rows = root.audit("?action=node.drain")
    equal([told(r) for r in rows], [("node.drain", "refused")] * 3 + [("node.drain", "done")],
          "noted")
    equal((rows[3]["target"], rows[3]["before"], rows[3]["after"], rows[3]["reason"]),
          (victim, {"drained": False}, {"drained": True}, "new disks"), "with all there is")
    equal([told(r) for r in root.audit("?action=node.undrain")], [("node.undrain", "done")],
          "so is the other way")


def prompts(m, root, path):
    marks = lambda: {n["prompt"] for n in map(json.loads, redis_link(m)("HVALS", "sys:nodes:info"))}
    before = marks()
    equal(len(before), 1, "all nodes have the same prompt")
    with open(path, "w") as f:
        f.write("Something else: {{question}}")
    began = time.monotonic()
    r = root("POST", "/api/admin/prompts/reload", {"reason": "better"})
    equal(r.status, 200, "it is read again", r)
    wait_for(lambda: marks() == {r.body["prompt"]}, 5)
    took = time.monotonic() - began
    ok({r.body["prompt"]} != before and took < 1.6 * crowd(),
       "on every node, within a second and a sign of life", took)
    with open(path, "w") as f:
        f.write("No place for it")
    bad = root("POST", "/api/admin/prompts/reload")
    ok(bad.status == 400 and "has no {{question}}" in bad.body["error"]["message"],
       "one that cannot be used is refused", bad)
    os.unlink(path)
    ok("No such file" in root("POST", "/api/admin/prompts/reload").body["error"]["message"],
       "and one that is not there")
    equal(marks(), {r.body["prompt"]}, "the old one stays")
    rows = root.audit("?action=prompts.reload")
    equal(([x["outcome"] for x in rows], [rows[2]["before"]["prompt"]], rows[2]["after"]),
          (["refused", "refused", "done"], list(before), {"prompt": r.body["prompt"]}), "noted")


@test("overview")
def _():
    path = os.path.join(folder(), "prompt.txt")
    with open(path, "w") as f:
        f.write("Judge this.\nQuestion: {{question}}")
    with Sim("--latency-ms", "300") as sim, server(sim, MILLRACE_AI_PROMPT_FILE=path) as m:
        root, worker = admin(m, "root"), user(m, "worker")
        qid = begin_run(root, worker, 4)
        for part in (lambda: seen(m, root, worker, qid), lambda: streams(m, root),
                     lambda: in_metrics(m, root), lambda: drained(m, root, worker),
                     lambda: prompts(m, root, path), lambda: all_drained(m, root, worker)):
            began = time.monotonic()
            part()
            note(f"{time.monotonic() - began:.1f} s")


run_tests()
