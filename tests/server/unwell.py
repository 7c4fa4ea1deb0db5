"""An AI service that dies in the middle of a run, and is back after a while."""
import contextlib
import http.server
import json
import threading
import time

from harness import crowd, equal, ok, wait_for
from screening import Sim, audited, person, reaches, server, submit, view

WORKERS = 200
LATENCY = ("--latency-ms", "100", "--http1")


class Service:
    """An AI service that answers what answer(headers) says: a status and bytes."""

    def __init__(self, answer, port=0):
        outer = self
        self.calls = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.calls += 1
                self.rfile.read(int(self.headers["Content-Length"]))
                status, body = answer(self.headers)
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
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()


def unwell(port, status, body):
    """Answers every call in one way, at the address of a service that was there before."""
    return Service(lambda _: (status, body), port)


class Absent:
    calls = 0


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
    away = contextlib.nullcontext(Absent())
    with unwell(m.sim_port, status, body) if status else away as other:
        time.sleep(seconds)
        v = view(api, qid)
        equal((v["state"], v["failed"]), ("RUNNING", 0), f"{name}: the run waits, none fails", v)
    with Sim(*LATENCY, port=m.sim_port) as sim:
        back = time.monotonic()
        ok(wait_for(lambda: sim.stats()["requests"] > WORKERS, 10), f"{name}: it goes on by itself")
        took = time.monotonic() - back
        ok(took < 5 * crowd(), f"{name}: within 5 s of the return of the service", took)
        ok(reaches(api, qid, "DONE", 60), f"{name}: to its end")
        v = view(api, qid)
        equal((v["finished"], v["failed"]), (total, 0), f"{name}: every paper has a verdict")
        again = asked + other.calls + sim.stats()["requests"] - total
        ok(again <= 2 * WORKERS, f"{name}: at most two calls in vain for each worker", again)


def outages(kinds):
    with Sim(*LATENCY) as sim:
        port = sim.port
    with server(sim, papers=3000) as m:
        m.sim_port = port
        api = person(m, "alice", permission=WORKERS)
        for kind in kinds:
            outage(m, api, *kind)
        audited(m)
