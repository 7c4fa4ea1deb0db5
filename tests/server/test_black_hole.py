"""A connection to the AI service that swallows everything, as after a router forgets it: another
one is opened, and no paper fails (SCR-12)."""
import socket
import threading
import time

from harness import equal, ok, run_tests, test, wait_for
from screening import audited, person, reaches, server, submit, view
from sim import Sim


class Forwarder:
    """TCP to the simulator. After hole() no byte passes on the connections of before."""

    def __init__(self, port):
        self.to, self.opened, self.swallowed = port, [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.to))
            number = len(self.opened)
            self.opened.append(time.monotonic())
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.forward, args=(a, b, number), daemon=True).start()

    def forward(self, a, b, number):
        try:
            while data := a.recv(65536):
                if number >= self.swallowed:
                    b.sendall(data)
            if number >= self.swallowed:
                b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def hole(self):
        self.swallowed = len(self.opened)
        return time.monotonic()


@test("a connection that swallows everything")
def _():
    with Sim("--latency-ms", "200") as sim:
        way = Forwarder(sim.port)
        sim.url = way.url
        with server(sim, MILLRACE_AI_TIMEOUT_MS="60000", MILLRACE_NODES="1") as m:
            api = person(m, "alice", permission=20)
            qid, total = submit(api, 1000)
            assert wait_for(lambda: view(api, qid)["finished"] > 100, 30)
            at = way.hole()
            ok(wait_for(lambda: way.opened[-1] > at, 20), "another connection is opened",
               way.opened, at)
            took = way.opened[-1] - at
            ok(took < 16, f"within 16 s: {took:.1f}")
            ok(reaches(api, qid, "DONE", 120), "the run goes on to its end", view(api, qid))
            v = view(api, qid)
            equal((v["finished"], v["failed"]), (total, 0), "and no paper has failed")
            audited(m)
        way.listener.close()


run_tests()
