"""An AI service that is away or unwell while a run goes on: the run waits, no paper fails, and work
goes on by itself (SCR-12)."""
import time

from harness import crowd, equal, ok, run_tests, sql, test, wait_for
from screening import Sim, act, person, reaches, server, submit, view
from unwell import LATENCY, outages, unwell, words

KINDS = [
    ("killed", 6, 0, b""),
    ("402", 2, 402, words("pay first")),
    ("404", 2, 404, words("no such model")),
    ("500", 2, 500, words("oops")),
    ("garbage", 2, 200, b"<html>It works</html>"),
]


@test("a service that goes away, in several ways")
def _():
    outages(KINDS)


@test("a service that refuses every request")
def _():
    with Sim(*LATENCY) as sim:
        port = sim.port
    with server(sim, papers=1500) as m:
        api = person(m, "alice", permission=50)
        with unwell(port, 400, words("max_tokens is not supported")) as other:
            qid, total = submit(api, 400)
            ok(reaches(api, qid, "PAUSED", 20), "the run is paused")
            v = view(api, qid)
            ok(v["reason_code"] == "refused" and "max_tokens is not supported" in v["reason"],
               "in the words of the service", v)
            equal((v["finished"], v["failed"]), (0, 0), "no paper has failed")
            ok(other.calls <= 2 * 50, "few calls were made in vain", other.calls)
        with Sim(*LATENCY, port=port):
            equal(act(api, qid, "resume").status, 200, "it is resumed when that is mended")
            ok(reaches(api, qid, "DONE", 30), "and is done")
            equal((view(api, qid)["finished"], view(api, qid)["failed"]), (total, 0),
                  "with all of its papers")


@test("keys that are refused, and none")
def _():
    with Sim(*LATENCY) as sim, server(sim, papers=1500) as m:
        sql(m, "UPDATE api_list SET is_active = 0")
        api = person(m, "alice", permission=20)
        qid, total = submit(api, 300)
        ok(wait_for(lambda: view(api, qid)["state"] == "RUNNING", 10), "a run without a key")
        time.sleep(2)
        equal((view(api, qid)["finished"], view(api, qid)["failed"]), (0, 0), "waits for one")
        sql(m, "UPDATE api_list SET is_active = 1")
        began = time.monotonic()
        ok(wait_for(lambda: view(api, qid)["finished"] > 0, 10), "and goes on with it")
        ok(time.monotonic() - began < 5 * crowd(), "within 5 s", time.monotonic() - began)
        ok(reaches(api, qid, "DONE", 30), "to its end")
        equal(view(api, qid)["failed"], 0, "no paper has failed")
    with Sim(*LATENCY) as sim:
        port = sim.port
    with server(sim, papers=1500) as m:
        api = person(m, "bob", permission=20)
        sql(m, "INSERT INTO api_list (api_name, api_key, rpm_limit, tpm_limit, is_active)"
            " VALUES " + ", ".join(f"('k{i}', 'sk-{i}', 100000, 100000000, 1)" for i in range(11)))
        with unwell(port, 401, words("bad key")):
            qid, total = submit(api, 300)
            ok(wait_for(lambda: sql(m, "SELECT COUNT(*) FROM api_list WHERE is_active = 1")[0][0]
                        == "0", 15), "twelve keys that are refused are switched off")
            time.sleep(1)
            equal((view(api, qid)["state"], view(api, qid)["failed"]), ("RUNNING", 0),
                  "no paper fails for that")
        with Sim(*LATENCY, port=port):
            sql(m, "UPDATE api_list SET is_active = 1")
            ok(reaches(api, qid, "DONE", 30), "with keys that are good the run is done")
            equal(view(api, qid)["failed"], 0, "no paper has failed")


@test("a pause does not wait for calls that hang, and are tried again")
def _():
    with Sim("--fail", "1", "--fail-kinds", "timeout", "--http1") as sim:
        with server(sim, papers=1500, MILLRACE_AI_TIMEOUT_MS="2000") as m:
            api = person(m, "alice", permission=10)
            qid, _ = submit(api, 300)
            wait_for(lambda: sim.stats()["requests"] >= 10, 20)
            equal(act(api, qid, "pause").status, 200, "a pause")
            began = time.monotonic()
            time.sleep(0.1 * crowd())  # crews look for news forty times a second
            asked = sim.stats()["requests"]
            ok(wait_for(lambda: view(api, qid)["workers"] == 0, 10), "ends all workers")
            ok(time.monotonic() - began < 4 * crowd(), "after one attempt, not four",
               time.monotonic() - began)
            equal(sim.stats()["requests"], asked, "no further attempt begins")


run_tests()
