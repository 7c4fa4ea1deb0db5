"""Queues of jobs, as admins see them: listed, paused, resumed, refusals. Downloads are the jobs."""
import os
import signal

from admins import admin, told
from harness import equal, ok, run_tests, wait_for
from screening import person, reaches, submit, with_screening


def queue(root, name):
    """From any node: one of them may hear of a new Redis later than the others."""
    found = wait_for(lambda: queue_or_none(root, name), 10)
    assert found
    return found


def queue_or_none(root, name):
    r = root("GET", "/api/admin/queues")
    return r.status == 200 and next(q for q in r.body["queues"] if q["name"] == name)


def state(api, task):
    return api("GET", f"/api/download/status?task_id={task}").body["state"]


@with_screening("a queue that is paused, and goes on", "--latency-ms", "1")
def paused(m, sim):
    root, u = admin(m, "root", "super"), person(m, "ann")
    qid, _ = submit(u, 50)
    ok(reaches(u, qid, "DONE"), "a run is done")
    equal(queue(root, "download")["paused"], False, "its queue is open")
    ok(queue(root, "download")["filled"], "and filled")
    r = root("POST", "/api/admin/queues/download/pause", {"reason": "a disk is full"})
    equal((r.status, r.body.get("paused")), (200, True), "it is paused")
    wish = {"query_id": qid, "type": "csv", "scope": "all"}
    task = u("POST", "/api/download/create", wish).body["task_id"]
    ok(wait_for(lambda: queue(root, "download")["waiting"] == 1, 5), "a job waits")
    ok(not wait_for(lambda: state(u, task) != "PENDING", 1.5), "and is not taken")
    ok(wait_for(lambda: queue(root, "download")["oldest_seconds"] >= 1, 5), "its age is shown")
    os.kill(m.pid_of("redis"), signal.SIGKILL)
    ok(wait_for(lambda: (q := queue_or_none(root, "download")) and q["filled"], 30),
       "Redis dies, and its queue is filled again")
    ok(queue(root, "download")["paused"], "it stays paused")
    r = root("POST", "/api/admin/queues/download/resume", {})
    equal((r.status, r.body.get("paused")), (200, False), "it goes on")
    ok(wait_for(lambda: state(u, task) == "READY", 10), "and the file is built")
    seen = queue(root, "download")
    equal((seen["waiting"], seen["working"], seen["failures"]), (0, 0, 0), "nothing is left")
    ok(seen["done"] >= 1, "it is counted")
    text = m.get("/metrics").body.decode()
    ok('millrace_jobs_done_total{queue="download"' in text, "and a metric")
    equal([told(x) for x in root.audit()[:2]], [("queue.resume", "done"), ("queue.pause", "done")],
          "both are in the audit log")
    for path, body, status in (("nothing/pause", {}, 404), ("download/retry", {}, 404),
                               ("download/drop", {}, 404), ("download/pause", {"x": 1}, 400)):
        r = root("POST", "/api/admin/queues/" + path, body)
        equal(r.status, status, f"{path} with {body}: {status}", r)
    for path in ("download/pause", "download/resume", "download/retry", "download/drop"):
        equal(u("POST", "/api/admin/queues/" + path, {}).status, 401, f"{path} is for admins")
    equal(queue(root, "download")["paused"], False, "none of them changed anything")


run_tests()
