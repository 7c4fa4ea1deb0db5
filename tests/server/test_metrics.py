"""/metrics on an address of its own; what /openapi.json tells of /healthz, /readyz and /metrics; a
first start whose log is for programs."""
import json
import os
import re
import signal
import socket

from client import openapi
from front import free_port
from harness import Millrace, equal, folder, freeze, http, ok, run_tests, test, wait_for

TOLD = ("/healthz", "/readyz", "/metrics")


def fits(m, path, reply):
    document = json.loads(m.get("/openapi.json").body)
    json_body = reply.headers["content-type"] == "application/json"
    body = json.loads(reply.body) if json_body else reply.headers["content-type"]
    equal(openapi.problems(document, "GET", path, reply.status, body), [],
          f"{path}, {reply.status}, is as /openapi.json says")


def metrics_at(port):
    try:
        return http(port, "/metrics")
    except OSError:
        return None


@test("an address of its own")
def _():
    port = free_port()
    other = socket.create_server(("127.0.0.1", port))  # has no SO_REUSEPORT
    with Millrace(data=folder(), env={
            "MILLRACE_METRICS_LISTEN": f"127.0.0.1:{port}", "MILLRACE_LOG_FORMAT": "json",
            "MILLRACE_SAMPLE_PAPERS": "100", "MILLRACE_DEMO_ACCOUNTS": "true"}) as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        ok(wait_for(lambda: "no admin can log in yet" in m.log(), 20),
           "a first start shows no password where logs are kept", m.output(), m.log())
        for line in (m.output() + m.log()).splitlines():
            json.loads(line)
        ok(True, "and every line of it is JSON")
        ok(wait_for(lambda: m.log().count(f"cannot listen at 127.0.0.1:{port}") == 2, 10),
           "an address that is in use is told by each node, which serves all the same", m.log())
        other.close()
        ok(wait_for(lambda: metrics_at(port), 20), "and used once it is free")
        r = metrics_at(port)
        ok(r.status == 200 and b'millrace_nodes_alive{node="0"}' in r.body, "metrics are there", r)
        equal([http(port, path).status for path in ("/", "/api/me", "/readyz", "/openapi.json")],
              [404] * 4, "nothing else is")
        equal(m.get("/metrics").status, 404, "and they are not with the pages")
        ok(wait_for(lambda: m.log().count("metrics are at") == 2, 40), "both nodes listen", m.log())
        requests = r'millrace_http_requests_total\{code="2xx",node="\d"\} (\d+)'
        count = lambda: sum(map(int, re.findall(requests, metrics_at(port).body.decode())))
        ok(count() == count(), "a scrape is not counted as a request")
        old = set(m.nodes())
        m.send_signal(signal.SIGHUP)
        seen = []
        wait_for(lambda: seen.append(metrics_at(port)) or m.nodes() and not old & set(m.nodes()),
                 40)
        ok(not old & set(m.nodes()) and wait_for(lambda: metrics_at(port), 5),
           "they are there after a reload")


@test("in the document")
def _():
    with Millrace() as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        for path in TOLD:
            r = m.get(path)
            equal(r.status, 200, path)
            fits(m, path, r)
        seconds = dict(re.findall(r'^(millrace_\w+_seconds(?:_total)?)\{[^}]*node="0"\} (\S+)$',
                                  m.get("/metrics").body.decode(), re.M))
        for name in ("millrace_node_cpu_seconds_total", "millrace_node_loop_late_seconds",
                     "millrace_store_latency_seconds"):
            ok(re.fullmatch(r"\d+\.\d{6}", seconds.get(name, "")) and float(seconds[name]) < 60,
               f"{name} is in seconds", seconds)
        ok(float(seconds["millrace_node_cpu_seconds_total"]) > 0, "a node has worked", seconds)
        freeze(m.process.pid)  # the supervisor: it would start Redis again
        freeze(m.pid_of("redis"))
        r = wait_for(lambda: next((r for r in [m.get("/readyz")] if r.status == 503), None), 20)
        ok(r and not json.loads(r.body)["success"], "not ready", r)
        if r:
            fits(m, "/readyz", r)
        os.kill(m.pid_of("redis"), signal.SIGCONT)
        m.send_signal(signal.SIGCONT)


run_tests()
