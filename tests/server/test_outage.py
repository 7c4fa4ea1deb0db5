"""An AI service that is away or unwell while a run goes on: the run waits, no paper fails, and work
goes on by itself (SCR-12)."""
import contextlib
import http.server
import json
import threading
import time

from harness import equal, ok, run_tests, sql, test, wait_for
from screening import Sim, act, audited, person, reaches, server, submit, view

WORKERS = 200
LATENCY = ("--latency-ms", "100", "--http1")


class Unwell:
    """Answers every call in one way, at the address of a service that was there before."""

    def __init__(self, port, status, body):
        outer = self
        self.calls = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.calls += 1
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 1024

        self.server = Server(("127.0.0.1", port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Absent:
    calls = 0


def unwell(port, status, body):
    return Unwell(port, status, body) if status else contextlib.nullcontext(Absent())


def words(message):
    return json.dumps({"error": {"message": message}}).encode()


def outage(m, api, name, seconds, status, body=b""):
    """The service dies in the middle of a run, something else answers in its place, and then it is
    back."""
    with Sim(*LATENCY, port=m.sim_port) as sim:
        qid, total = submit(api, 1400)
        wait_for(lambda: view(api, qid)["finished"] > 300, 30)
        asked = sim.stats()["requests"]
        sim.kill()
    with unwell(m.sim_port, status, body) as other:
        time.sleep(seconds)
        v = view(api, qid)
        equal((v["state"], v["failed"]), ("RUNNING", 0), f"{name}: the run waits, none fails", v)
    with Sim(*LATENCY, port=m.sim_port) as sim:
        back = time.monotonic()
        ok(wait_for(lambda: sim.stats()["requests"] > WORKERS, 10), f"{name}: it goes on by itself")
        took = time.monotonic() - back
        ok(took < 5, f"{name}: within 5 s of the return of the service", took)
        ok(reaches(api, qid, "DONE", 60), f"{name}: to its end")
        v = view(api, qid)
        equal((v["finished"], v["failed"]), (total, 0), f"{name}: every paper has a verdict")
        again = asked + other.calls + sim.stats()["requests"] - total
        ok(again <= 2 * WORKERS, f"{name}: at most two calls in vain for each worker", again)


KINDS = [
    ("killed", 6, 0, b""),
    ("402", 2, 402, words("pay first")),
    ("404", 2, 404, words("no such model")),
    ("500", 2, 500, words("oops")),
    ("garbage", 2, 200, b"<html>It works</html>"),
]


@test("a service that goes away, in several ways")
def _():
    with Sim(*LATENCY) as sim:
        port = sim.port
    with server(sim, papers=3000) as m:
        m.sim_port = port
        api = person(m, "alice", permission=WORKERS)
        for kind in KINDS:
            outage(m, api, *kind)
        audited(m)


@test("a service that refuses every request")
def _():
    with Sim(*LATENCY) as sim:
        port = sim.port
    with server(sim, papers=1500) as m:
        api = person(m, "alice", permission=50)
        with Unwell(port, 400, words("max_tokens is not supported")) as other:
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
        ok(time.monotonic() - began < 5, "within 5 s", time.monotonic() - began)
        ok(reaches(api, qid, "DONE", 30), "to its end")
        equal(view(api, qid)["failed"], 0, "no paper has failed")
    with Sim(*LATENCY) as sim:
        port = sim.port
    with server(sim, papers=1500) as m:
        api = person(m, "bob", permission=20)
        sql(m, "INSERT INTO api_list (api_name, api_key, rpm_limit, tpm_limit, is_active)"
            " VALUES " + ", ".join(f"('k{i}', 'sk-{i}', 100000, 100000000, 1)" for i in range(11)))
        with Unwell(port, 401, words("bad key")):
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
            asked = sim.stats()["requests"]
            equal(act(api, qid, "pause").status, 200, "a pause")
            began = time.monotonic()
            ok(wait_for(lambda: view(api, qid)["workers"] == 0, 10), "ends all workers")
            ok(time.monotonic() - began < 4, "after one attempt, not four",
               time.monotonic() - began)
            equal(sim.stats()["requests"], asked, "no further attempt begins")


run_tests()
