"""A server with private stores whose disk is full for a while: it says so, loses nothing, and goes
on by itself."""
import os
import signal
import time

import disk
from harness import Millrace, copy_of_template, equal, note, ok, run_tests, sql, test, wait_for
from screening import audited, charged, person, reaches, submit, view
from sim import Sim

TRIES = 20
SUPERVISOR_ASKS_S = 8  # three times no answer within this, and a store is restarted


def full(m, api, small):
    """The disk fills up under a run: nothing dies, no paper fails, nobody is charged wrongly."""
    qid, papers = submit(api, 1200)
    wait_for(lambda: view(api, qid)["finished"] > 100, 20)
    with small.full():
        stands_still(m, api, qid, papers)
    ok(reaches(api, qid, "DONE", 40), "it goes on when there is room")
    v = view(api, qid)
    equal((v["finished"], v["failed"]), (papers, 0), "to its end")
    cents = round(float(v["cost"]) * 100)
    wait_for(lambda: charged(m, qid) == cents, 20)
    equal(charged(m, qid), cents, "and every paper was charged once")
    ok(wait_for(lambda: m.get("/readyz").status == 200 and
                "Redis writes to its disk again" in m.log(), 10), "all is well again")


def create(api, qid):
    return api("POST", "/api/download/create", {"query_id": qid, "type": "csv"})


def stands_still(m, api, qid, papers):
    pids = [m.pid_of(name) for name in ("redis", "mariadb")]
    ok(wait_for(lambda: "MISCONF" in m.get("/readyz").body.decode(), 10),
       "/readyz says what is wrong",
       m.get("/readyz").body)
    replies = [create(api, qid)]
    # Redis tries again each second, and some bytes always fit.
    while replies[-1].status < 300 and len(replies) < TRIES:
        time.sleep(0.1)
        replies.append(create(api, qid))
    equal(replies[-1].error[:2], (503, "unavailable"), "who changes something is told to come back")
    equal((api.me().status, api("GET", "/api/queries").status), (200, 200),
          "who only looks is answered")
    killed = m.nodes()[0]
    os.kill(killed, signal.SIGKILL)
    ok(wait_for(lambda: len(m.nodes()) == 2 and killed not in m.nodes(), 10),
       "a node that dies is replaced")
    time.sleep(SUPERVISOR_ASKS_S)
    equal([m.pid_of(name) for name in ("redis", "mariadb")], pids, "the stores are left alone")
    ok("Redis cannot write to its disk" in m.log(), "the log says why")
    v = view(api, qid)
    # Not quite: see above.
    ok(v["state"] == "RUNNING" and v["failed"] == 0 and v["finished"] < papers / 2,
       "the run stands still, and no paper failed", v)


@test("a full disk")
def _():
    if not disk.separate():
        note("no disk can be mounted here")
        return
    data = copy_of_template()
    small = disk.Disk(data)
    try:
        with Sim("--latency-ms", "20") as sim, Millrace(data=data, env={
                "MILLRACE_SAMPLE_PAPERS": "1500", "MILLRACE_AI_URL": sim.url,
                "MILLRACE_AI_TIMEOUT_MS": "3000"}) as m:
            assert wait_for(m.ready, 40), m.get("/readyz")
            sql(m, "UPDATE api_list SET rpm_limit = 1000000, tpm_limit = 1000000000")
            full(m, person(m, "alice", permission=5), small)
            audited(m)
    finally:
        small.unmount()


run_tests()
