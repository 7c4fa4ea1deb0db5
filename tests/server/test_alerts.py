"""What admins are told by a webhook, once for each episode, while stores and nodes go away: on real stores, with a simulated AI."""
import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time

from admins import admin, uid_of, user
from harness import Millrace, equal, folder, note, ok, redis_link, run_tests, sql, test, wait_for
from sim import Sim


def overview(api):
    r = api("GET", "/api/admin/overview")
    assert r.status == 200, r
    return r.body


class Hook:
    """A webhook that refuses the first message, and keeps the rest. certificate: it speaks TLS, and refuses nothing."""

    def __init__(self, certificate=None):
        self.certificate = certificate

    def __enter__(self):
        hook = self
        self.got, self.refused = [], 1 if self.certificate else 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                first = not hook.refused
                hook.refused += first
                if not first:
                    hook.got.append((time.monotonic(), self.path, body))
                self.send_response(500 if first else 204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate + ".crt", self.certificate + ".key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'s' if self.certificate else ''}://127.0.0.1:{self.server.server_port}/hooks/s3cr3t"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def events(self, name):
        return [b["event"] for _, _, b in self.got if b["alert"] == name]

    def told(self, name, events, seconds=25):
        wait_for(lambda: self.events(name) == events, seconds)
        return equal(self.events(name), events, f"{name}: {', '.join(events)}", *self.got)


def keys_refused(m, root, worker, hook):
    kid = root("POST", "/api/admin/keys", {"key": "sk-nobody-knows-this-one", "rpm_limit": 100000}).body["id"]
    root("POST", f"/api/admin/users/{uid_of(worker)}/recharge", {"amount": "100000", "request_id": "x"})
    journals = [j["name"] for j in worker("GET", "/api/journals").body["journals"]]
    worker("POST", "/api/queries", {"question": "Wet?", "year_from": 1900, "year_to": 2100, "journals": journals})
    hook.told(f"key:{kid}", ["begun"])
    ok(hook.refused == 1, "a message that was refused is sent again")
    _, path, body = next(g for g in hook.got if g[2]["alert"] == f"key:{kid}")
    ok(path == "/hooks/s3cr3t" and set(body) == {"event", "alert", "text", "since", "at", "seconds"} and "401" in body["text"], "what is told", body)
    o = wait_for(lambda: (o := overview(root))["alerts"] and o, 5) or overview(root)  # nodes may differ by a second
    key = next(k for k in o["keys"] if k["id"] == kid)
    ok(key["state"] == "refused" and "401" in key["last_error"] and key["last_error_at"], "the key, and why", key)
    equal([a["name"] for a in o["alerts"]], [f"key:{kid}"], "in the overview, too")
    root("POST", f"/api/admin/keys/{kid}", {"active": False})
    hook.told(f"key:{kid}", ["begun", "ended"])
    ok("nobody-knows" not in json.dumps(hook.got) + m.log() and "s3cr3t" not in m.log(), "no secrets are told")


def store_down(m, root, store, name, hook):
    pid = m.pid_of(store)
    os.kill(pid, signal.SIGSTOP)
    try:
        hook.told(name, ["begun"])
        if name == "redis":
            r = root("GET", "/api/admin/overview")
            ok(r.status == 200 and not r.body["stores"]["redis"]["up"] and r.body["stores"]["mysql"]["up"] and r.body["stores"]["redis"]["problem"],
               "the overview says so", r)
    finally:
        os.kill(pid, signal.SIGCONT)
    hook.told(name, ["begun", "ended"])


def node_lost(m, root, hook):
    watcher = json.loads(sql(m, "SELECT value FROM setting WHERE name = 'alerts.watch'")[0][0])
    said = redis_link(m)("HGETALL", "sys:nodes:info")
    victim = next(json.loads(v) for k, v in zip(said[::2], said[1::2]) if k.decode() != watcher)  # else it takes ten seconds more
    os.kill(int(victim["name"].rsplit(":", 1)[1]), signal.SIGKILL)
    hook.told("node:" + victim["id"], ["begun", "ended"])


@test("alerts")
def _():
    keys = os.path.join(folder(), "keys")
    with open(keys, "w") as f:
        f.write("sk-of-the-simulator\n")
    with Hook() as hook, Sim("--keys", keys) as sim, Millrace(env={
            "MILLRACE_SAMPLE_PAPERS": "500", "MILLRACE_AI_URL": sim.url, "MILLRACE_ALERT_WEBHOOK_URL": hook.url}) as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        root, worker = admin(m, "root"), user(m, "worker")
        sql(m, "DELETE FROM api_list")
        for part in (lambda: keys_refused(m, root, worker, hook), lambda: store_down(m, root, "redis", "redis", hook),
                     lambda: store_down(m, root, "mariadb", "mysql", hook), lambda: node_lost(m, root, hook)):
            began = time.monotonic()
            part()
            note(f"{time.monotonic() - began:.1f} s")
        equal({b["alert"] for _, _, b in hook.got if hook.events(b["alert"]) != ["begun", "ended"]}, set(), "each was told once", *hook.got)
        ok(wait_for(lambda: not any(overview(root)["alerts"] for _ in range(6)), 5), "nothing is left", overview(root)["alerts"])


def certificate(path):
    """One that vouches for itself, at 127.0.0.1."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=hook",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out", path + ".crt"], check=True, capture_output=True)
    return path


def money_off(m, root, hook):
    """What an audit has found, and records that nobody can write: as Redis would have them."""
    link, nobody = redis_link(m), "999999"
    link("SET", "sys:drift", "1234 2")
    link("SET", "sys:audited", int(time.time() * 1000))
    link("RPUSH", f"billing_queue:{nobody}", *["x"] * 6)
    link("ZADD", "sys:billing", int(time.time() * 1000), nobody)
    hook.told("drift", ["begun"])
    billing = overview(root)["billing"]
    ok((billing["drift_cents"], billing["findings"], billing["records"], billing["records_max"], billing["alarm"]) == (1234, 2, 6, 5, True), "the overview has both", billing)
    hook.told("billing", ["begun"])
    link("SET", "sys:drift", "0 0")
    link("DEL", f"billing_queue:{nobody}")
    hook.told("drift", ["begun", "ended"])
    hook.told("billing", ["begun", "ended"])
    equal([b["text"] for _, _, b in hook.got if b["event"] == "begun" and b["alert"] in ("drift", "billing")],
          ["millrace: the audit found 2 places where money is off, by 12.34 in all", "millrace: 6 charges wait to be written to MySQL; more than 5 is too many"], "in words")


@test("a webhook over TLS")
def _():
    place = folder()
    ours, theirs, trusted = certificate(f"{place}/ours"), certificate(f"{place}/theirs"), f"{place}/trusted.crt"
    shutil.copy(theirs + ".crt", trusted)
    failed = lambda m: sum(float(v) for v in re.findall(r'^millrace_alert_messages_total{outcome="failed"[^ ]* (\S+)$', m.get("/metrics").body.decode(), re.M))
    with Hook(ours) as hook, Millrace(env={"MILLRACE_ALERT_WEBHOOK_URL": hook.url, "MILLRACE_ALERT_CA_FILE": trusted, "MILLRACE_ALERT_BILLING_RECORDS": "5"}) as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        root = admin(m, "root")
        kid = root("POST", "/api/admin/keys", {"key": "sk-that-was-refused", "active": False}).body["id"]
        redis_link(m)("HSET", "sys:keyring:errors", kid, f"{int(time.time() * 1000)} refused status 401: it was switched off")
        ok(wait_for(lambda: failed(m) >= 2, 20), "a certificate that nobody vouches for: the message is not sent, and tried again", m.log())
        lines = [l for l in m.log().splitlines() if "could not be told" in l]
        ok(lines and all("certificate" in l for l in lines), "the log says why", *lines)
        equal((hook.got, "s3cr3t" in m.log()), ([], False), "the webhook has heard nothing, and the log does not name its path")
        shutil.copy(ours + ".crt", trusted)
        m.send_signal(signal.SIGHUP)
        hook.told(f"key:{kid}", ["begun"])
        root("POST", f"/api/admin/keys/{kid}", {"active": False})
        hook.told(f"key:{kid}", ["begun", "ended"])
        money_off(m, root, hook)


run_tests()
