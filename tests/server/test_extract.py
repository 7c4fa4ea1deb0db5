"""Tasks of extraction (EXT-1..3, JOB-2): submitted, worked on, paid once, closed once, while the AI
fails, and nodes and stores die."""
import json
import os
import signal
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from client import Api
from harness import SCALE, equal, freeze, http, ok, redis_link, run_tests, sql, test, wait_for
from own_redis import Redis
from screening import audited, journals, person, server, submit as screen, view
from sim import Sim
from tasks import (FIELDS, ended, money, paid, rows, start, states, status, submit, template,
                   upload, uploads, with_tasks)


def kill_nodes(m):
    pids = m.nodes()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: len(m.nodes()) == len(pids) and not set(pids) & set(m.nodes()), 20)


def token(api, name, scope):
    r = api("POST", "/api/tokens", {"name": name, "scopes": [scope]})
    assert r.status == 201, r
    return Api(api.server, r.body["token"])


def events(api, task, most=50):
    """(event, data) of a stream, until it ends."""
    r = urllib.request.Request(f"http://127.0.0.1:{api.server.port}/api/tasks/{task}/events",
                               headers={"Authorization": f"Bearer {api.token}"})
    got, name = [], None
    with urllib.request.urlopen(r, timeout=60) as stream:
        for line in stream:
            line = line.decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                got.append((name, json.loads(line[6:])))
            if len(got) >= most:
                break
    return got


# --- what the routes do ---

@with_tasks("a task from its estimate to its end", "--latency-ms", "20")
def _(m, sim):
    ada, bob = person(m, "ada", "1.00"), person(m, "bob", "0.15")
    ids, mine = uploads(ada, 3), template(ada)
    r = ada("POST", "/api/tasks/estimate", {"template_id": mine, "document_ids": ids + ids[:1]})
    equal((r.status, r.body["documents"], r.body["cost"], r.body["free"], r.body["suffices"]),
          (200, 3, "0.30", "1.00", True), "the estimate counts each document once", r)
    r = submit(ada, mine, ids, name="first", request_id="one")
    equal((r.status, r.body["total"]), (202, 3), "submitted", r)
    task = r.body["taskId"]
    ok(task.startswith(f"{ada.uid}-") and "webhook_secret" not in r.body, "by its id", r)
    seen = events(ada, task)
    equal((seen[0][0], seen[-1][0], seen[-1][1]["status"], seen[-1][1]["progress"]),
          ("state", "state", "completed",
           {"total": 3, "success": 3, "failed": 0, "percent": 100}), "events, to the end", seen)
    now = status(ada, task)
    equal((now["status"], now["message"], now["cost"]), ("completed", None, "0.30"), "status", now)
    equal(money(ada), ("0.70", "0.00"), "paid, nothing is reserved")
    calls = (redis_link(m)("HGET", "sys:keyring", "jobs") or b"0 ").split()
    ok(float(calls[0]) > 0, "its calls are counted as those of jobs, for their share of the rate",
       calls)
    got = rows(ada, task)
    equal([(x["state"], x["document_id"], x["values"]["dose"]["value"]) for x in got],
          [("completed", d, n + 0.5) for n, d in enumerate(ids, 1)], "the values", got)
    equal({x["values"]["dose"]["verified"] for x in got}, {True}, "with quotes that were found")
    equal(sql(m, "SELECT DISTINCT simulated FROM extraction_result"), [["1"]], "by whom")
    equal(submit(ada, mine, ids, name="first", request_id="one").body["taskId"], task,
          "the same request is the same task")
    equal(submit(ada, mine, ids[:2], name="first", request_id="one").error,
          (409, "conflict", None), "another one with its id is refused")
    second = start(ada, "pico", ids[:1], language="zh")
    ok(ended(ada, second), "a ready template, in Chinese", status(ada, second))
    listed = ada("GET", "/api/tasks?limit=1").body
    equal((listed["tasks"][0]["task_id"], listed["tasks"][0]["template_id"]), (second, "pico"),
          "the newest first")
    rest = ada("GET", f"/api/tasks?limit=1&cursor={listed['next']}").body
    equal((rest["tasks"][0]["task_id"], rest["tasks"][0]["name"], rest["next"]),
          (task, "first", None), "then the other", rest)
    (project, name), = sql(m, f"SELECT id, name FROM project WHERE uid = {ada.uid}")
    listed = lambda: [x["project_id"] for x in ada("GET", "/api/tasks").body["tasks"]]
    equal((name, listed()), ("", [project] * 2), "both are of one project, which has no name")
    other = f"{ada.uid}-{7:032x}"
    sql(m, "INSERT INTO project (id, uid, name, created_at, changed_at) VALUES"
           f" ('{other}', {ada.uid}, 'other', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))")
    third = start(ada, "pico", ids[:1], project_id=other)
    equal(listed(), [other, project, project], "unless another one of the user's is named")
    ok(ended(ada, third), "which is worked on, too", status(ada, third))
    bobs = uploads(bob, 2)
    r = submit(bob, "pico", bobs)
    equal(r.error, (402, "funds", None), "without money it is refused", r)
    equal(bob("GET", "/api/tasks").body["tasks"], [], "and nothing is submitted")
    sql(m, f"UPDATE user_info SET permission = 0 WHERE uid = {bob.uid}")
    equal(submit(bob, "pico", bobs[:1]).error[:2], (403, "forbidden"), "with permission 0, too")
    ok(audited(m), "every cent is where it belongs")


@with_tasks("what is refused", MILLRACE_LIMIT_EXTRACTION_DAY="5")
def _(m, sim):
    ada, bob = person(m, "ada"), person(m, "bob")
    ids, mine = uploads(ada, 3), template(ada)
    task = start(ada, mine, ids)
    ok(ended(ada, task), "a task")
    for body, field in (({}, "template_id"), ({"template_id": mine}, "document_ids"),
                        ({"template_id": mine, "document_ids": []}, "document_ids"),
                        ({"template_id": mine, "document_ids": ids, "query_id": "x"}, "query_id"),
                        ({"template_id": mine, "document_ids": ids, "dois": ["10.1/x"]}, "dois"),
                        ({"template_id": mine, "document_ids": ["x"] * 10001}, "document_ids"),
                        ({"template_id": mine, "document_ids": ids, "webhook": "http://a.org/"},
                         "webhook"),
                        ({"template_id": mine, "document_ids": ids, "webhook": "https://u:p@a.org"},
                         "webhook"),
                        ({"template_id": mine, "document_ids": ids, "name": "n" * 201}, "name"),
                        ({"template_id": mine, "document_ids": ids, "request_id": ""},
                         "request_id")):
        equal(ada("POST", "/api/tasks", body).error, (400, "invalid", field),
              f"refused: {body}"[:70])
    for what, body in (("template", {"template_id": mine, "document_ids": uploads(bob, 1)}),
                       ("document", {"template_id": "pico", "document_ids": ids}),
                       ("one document of several", {"template_id": "pico",
                                                    "document_ids": uploads(bob, 1) + ids[:1]}),
                       ("project", {"template_id": "pico", "document_ids": uploads(bob, 1),
                                    "project_id": sql(m, "SELECT id FROM project WHERE uid = "
                                                         f"{ada.uid}")[0][0]}),
                       ("run", {"template_id": "pico", "query_id": "0" * 32})):
        equal(bob("POST", "/api/tasks", body).status, 404, f"another's {what}", body)
        if what != "project":
            equal(bob("POST", "/api/tasks/estimate", body).status, 404, "nor an estimate")
    equal((bob("GET", f"/api/tasks/{task}/status").status, bob("GET", f"/api/tasks/{task}").status,
           bob("POST", f"/api/tasks/{task}/cancel").status,
           bob("POST", f"/api/tasks/{task}/retry").status,
           http(m.port, f"/api/tasks/{task}/events",
                headers=[f"Authorization: Bearer {bob.token}"]).status), (404,) * 5,
          "another's task is not found")
    equal(bob("GET", "/api/tasks").body["tasks"], [], "and nothing was submitted")
    equal(http(m.port, "/api/tasks", method="POST").status, 401, "without a session")
    r = submit(ada, mine, ids)
    equal(r.error[:2], (429, "rate"), "more documents than a day has", r)
    equal(submit(ada, mine, ids[:2]).status, 202, "as many as are left")
    equal((ada("POST", f"/api/tasks/{task}/cancel").status,
           ada("POST", f"/api/tasks/{task}/retry").status), (409, 409),
          "what has ended is not cancelled, and has no errors")
    whole, reads, other = (token(bob, n, s) for n, s in (("a", "extract"), ("b", "read"),
                                                         ("c", "screen")))
    own = uploads(bob, 1, 50)
    equal([submit(t, "pico", own).status for t in (whole, reads, other)], [202, 403, 403],
          "tokens, within their scopes")
    equal([t("GET", "/api/tasks").status for t in (whole, reads, other)], [200, 200, 403],
          "to read")


@with_tasks("papers of a run")
def _(m, sim):
    ada, bob = person(m, "ada"), person(m, "bob")
    qid, _ = screen(ada, 60)
    r = submit(ada, "pico", query_id=qid)
    ok(r.status in (202, 409), "a run that goes on is refused, unless it was quick", r)
    archived = lambda: ada("POST", "/api/tasks/estimate",
                           {"template_id": "pico", "query_id": qid}).status == 200
    ok(wait_for(archived, 40), "archived", view(ada, qid))
    relevant = {x["doi"] for page in ada.pages(f"/api/queries/{qid}/results?relevant=1")
                for x in page["results"]}
    r = ada("POST", "/api/tasks/estimate", {"template_id": "pico", "query_id": qid})
    equal(r.body["documents"], len(relevant), "its relevant papers", r)
    fields = [{"name": "catalyst", "type": "text"}]
    mine = template(ada, fields)
    task = start(ada, mine, query_id=qid)
    ok(ended(ada, task, seconds=60), "done", status(ada, task))
    got = rows(ada, task)
    equal({x["doi"] for x in got}, relevant, "a row for each")
    ok(all(x["title"] for x in got if x["state"] == "completed"), "with their titles", got[:2])
    texts = sql(m, f"SELECT COUNT(*) FROM extraction_result WHERE id LIKE '{task}.%'"
                   " AND state = 'completed' AND text LIKE CONCAT(LEFT(title, 20), '%')")
    equal(int(texts[0][0]), sum(x["state"] == "completed" for x in got),
          "and the text that was asked about")
    picked = sorted(relevant)[:2]
    task = start(ada, mine, query_id=qid, dois=picked)
    ok(ended(ada, task), "two that were picked")
    equal([x["doi"] for x in rows(ada, task)], picked, "those alone")
    equal(submit(ada, mine, query_id=qid, dois=["10.1/none"]).status, 404, "one that it has not")
    equal(submit(bob, "pico", query_id=qid).status, 404, "another's run")
    ok(audited(m), "every cent is where it belongs")


# --- the AI ---

@with_tasks("answers that are wrong", "--extract-fault", "1", "--extract-fault-kinds",
            "types,missing")
def _(m, sim):
    ada = person(m, "ada", "5.00")
    task = start(ada, template(ada), uploads(ada, 4))
    ok(ended(ada, task), "asked again with the complaint: completed", status(ada, task))
    equal((states(m, task), paid(m, ada)), ({"completed": 4}, 4), "each is paid once")
    equal(sim.stats()["requests"], 8, "and was asked about twice")


@test("answers that stay wrong are errors, and are tried again")
def _():
    with Sim("--extract-fault", "1", "--extract-fault-kinds", "types",
             "--extract-fault-stays") as sim:
        port = sim.port
        with server(sim, papers=200) as m:
            ada = person(m, "ada", "0.50")
            task = start(ada, template(ada), uploads(ada, 4) + [upload(ada, b"%PDF-1.4 broken",
                                                                      "b.pdf")])
            ok(ended(ada, task), "closed", status(ada, task))
            equal((states(m, task), status(ada, task)["progress"]["failed"]), ({"error": 5}, 5),
                  "all are errors")
            ok("fits the template" in rows(ada, task)[0]["error"], "that say why", rows(ada, task))
            equal((money(ada), paid(m, ada)), (("0.50", "0.00"), 0), "they cost nothing")
            sim.kill()
            with Sim(port=port):
                r = ada("POST", f"/api/tasks/{task}/retry")
                equal((r.status, r.body["status"]), (200, "processing"), "tried again", r)
                ok(ended(ada, task), "closed again", status(ada, task))
            equal(states(m, task), {"completed": 4, "error": 1}, "only the PDF stays an error")
            equal((money(ada), paid(m, ada)), (("0.10", "0.00"), 4), "the others are paid once")
            equal(sql(m, f"SELECT closed FROM extraction_task WHERE id = '{task}'"), [["2"]],
                  "it was closed twice")
            ok(audited(m), "every cent is where it belongs")


@with_tasks("an AI that fails now and then", "--fail", "0.3", "--fail-kinds", "500,cut,garbage")
def _(m, sim):
    ada = person(m, "ada", "5.00")
    task = start(ada, template(ada), uploads(ada, 20))
    ok(ended(ada, task, seconds=90), "it ends", status(ada, task))
    done = states(m, task).get("completed", 0)
    equal((done, paid(m, ada)), (20, 20), "all are completed, and paid once", states(m, task))


@test("an AI that is away")
def _():
    with Sim() as sim, ThreadPoolExecutor(1) as pool:
        port = sim.port
        with server(sim, papers=200) as m:
            ada = person(m, "ada", "5.00")
            mine, ids = template(ada), uploads(ada, 3)
            sim.kill()
            task = start(ada, mine, ids)
            stream = pool.submit(events, ada, task)
            ok(wait_for(lambda: status(ada, task)["message"], 30), "it says what it waits for",
               status(ada, task))
            equal(status(ada, task)["reason_code"], "service_down", "by a word, too")
            equal((status(ada, task)["status"], states(m, task).get("error", 0)),
                  ("processing", 0), "and waits")
            with Sim(port=port):
                ok(ended(ada, task, seconds=90), "it goes on when the AI is back",
                   status(ada, task))
            equal((states(m, task), paid(m, ada)), ({"completed": 3}, 3), "each is paid once")
            seen = [(e["reason_code"], e["status"]) for _, e in stream.result(60)]
            ok(("service_down", "processing") in seen and seen[-1] == (None, "completed"),
               "events tell of it", seen)


# --- cancelling ---

@with_tasks("a task is cancelled", "--latency-ms", "1500", MILLRACE_NODES="1",
            MILLRACE_EXTRACT_CONCURRENCY="2", MILLRACE_AI_TIMEOUT_MS="30000")
def _(m, sim):
    ada = person(m, "ada", "5.00")
    task = start(ada, template(ada), uploads(ada, 10))
    ok(wait_for(lambda: states(m, task).get("extracting") == 2, 20), "two are worked on")
    r = ada("POST", f"/api/tasks/{task}/cancel")
    equal((r.status, r.body["status"]), (200, "cancelled"), "cancelled", r)
    equal(money(ada), ("5.00", "0.00"), "the money is free")
    time.sleep(2)
    equal((states(m, task), paid(m, ada)), ({"cancelled": 10}, 0), "nothing more is done")
    ok(sim.stats()["requests"] <= 2, "nor asked", sim.stats())
    equal((ada("POST", f"/api/tasks/{task}/cancel").status,
           ada("POST", f"/api/tasks/{task}/retry").status), (409, 409), "for good")
    second = start(ada, "pico", uploads(ada, 1, 60))
    ok(ended(ada, second), "another task goes on", status(ada, second))
    ok(audited(m), "every cent is where it belongs")


# --- deaths ---

@with_tasks("nodes are killed", "--latency-ms", "400", MILLRACE_EXTRACT_LEASE_S="2")
def _(m, sim):
    ada = person(m, "ada", "10.00")
    task = start(ada, template(ada), uploads(ada, 30))
    for _ in range(2):
        time.sleep(0.7)
        kill_nodes(m)
    ok(ended(ada, task, seconds=90), "closed", status(ada, task), states(m, task))
    equal((states(m, task), paid(m, ada)), ({"completed": 30}, 30),
          "every document is completed, and paid once")
    equal((money(ada), sql(m, f"SELECT closed FROM extraction_task WHERE id = '{task}'")),
          (("7.00", "0.00"), [["1"]]), "the task is closed once")
    ok(audited(m), "every cent is where it belongs")


@with_tasks("a node is silent for longer than its leases", "--latency-ms", "1000",
            MILLRACE_NODES="2", MILLRACE_EXTRACT_LEASE_S="1", MILLRACE_EXTRACT_CONCURRENCY="2")
def _(m, sim):
    ada = person(m, "ada", "5.00")
    task = start(ada, template(ada), uploads(ada, 12))
    ok(wait_for(lambda: sim.stats()["in_flight"] == 4, 20), "both nodes ask about two",
       states(m, task))
    silent = m.nodes()[0]
    freeze(silent)
    try:  # routes may be answered by the one that stands still: MySQL is asked
        ok(wait_for(lambda: states(m, task) == {"completed": 12}, 60),
           "the other one takes its documents over, and completes them", states(m, task))
    finally:
        os.kill(silent, signal.SIGCONT)
    ok(ended(ada, task), "the task is closed", status(ada, task))
    time.sleep(2)  # what the silent one had in hand comes in
    ok(silent in m.nodes(), "the silent one works again")
    ok(sim.stats()["requests"] > 12, "what it had asked about was asked once more", sim.stats())
    equal((states(m, task), paid(m, ada), money(ada)), ({"completed": 12}, 12, ("3.80", "0.00")),
          "every document is completed, and paid once")
    equal(sql(m, f"SELECT closed FROM extraction_task WHERE id = '{task}'"), [["1"]],
          "the task is closed once")
    ok(audited(m), "every cent is where it belongs")


def emptied(redis):
    """Another process, with nothing in it."""
    redis.process.kill()
    redis.process.wait()
    for name in os.listdir(redis.dir):
        if name != "s" and os.path.isfile(f"{redis.dir}/{name}"):
            os.remove(f"{redis.dir}/{name}")
    redis.__enter__()


@test("Redis is emptied")
def _():
    with Sim("--latency-ms", "200") as sim, Redis() as redis, server(
            sim, papers=200, MILLRACE_REDIS_URL=redis.url, MILLRACE_EXTRACT_LEASE_S="2",
            MILLRACE_ALLOW_UNSAFE_STORES="true") as m:
        m.stores["MILLRACE_REDIS_URL"] = redis.url  # for commands
        ada = person(m, "ada", "10.00")
        mine, ids = template(ada), uploads(ada, 30)
        task = start(ada, mine, ids)
        time.sleep(0.3)
        emptied(redis)
        ok(wait_for(m.ready, 40), "it is emptied with a task in it")
        # An empty Redis takes all keys that there are for used up: one that comes later is not.
        ok(wait_for(lambda: redis.ask("EXISTS sys:window:1") == ":1", 10), "permits are counted")
        sql(m, "INSERT INTO api_list (api_key, rpm_limit, tpm_limit)"
               " VALUES ('sk-new', 1000000, 1000000000)")
        ok(ended(ada, task, seconds=90), "the rows bring it back: closed", status(ada, task))
        equal((states(m, task), paid(m, ada)), ({"completed": 30}, 30), "each is paid once")
        redis.process.kill()
        ok(wait_for(lambda: submit(ada, mine, ids[:1]).status == 503, 20),
           "while Redis is away nothing is submitted")
        redis.__enter__()
        ok(wait_for(m.ready, 40), "Redis is back")
        ok(audited(m), "every cent is where it belongs")


@with_tasks("MySQL is away", "--latency-ms", "100", private=True)
def _(m, sim):
    ada = person(m, "ada", "10.00")
    mine, ids = template(ada), uploads(ada, 20)
    task = start(ada, mine, ids)
    pid = m.pid_of("mariadb")
    freeze(pid)
    try:
        ok(wait_for(lambda: submit(ada, mine, ids[:1]).status == 503, 20), "nothing is submitted")
    finally:
        os.kill(pid, signal.SIGCONT)
    asked = lambda: ada("GET", f"/api/tasks/{task}/status")  # nodes find out one by one
    ok(wait_for(lambda: asked().body.get("status") == "completed", 90),
       "when it is back, all goes on", asked())
    equal((states(m, task), paid(m, ada)), ({"completed": 20}, 20), "each is paid once")
    ok(audited(m), "every cent is where it belongs")


run_tests()
