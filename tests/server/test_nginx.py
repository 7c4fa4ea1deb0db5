"""deploy/nginx/millrace.conf, by nginx itself, in front of a server."""
import gzip
import http.client
import json
import re
import signal
import ssl
import subprocess
import threading
import time

from client import PASSWORD
from front import SITE, Nginx, Relay, write
from harness import Millrace, equal, folder, note, ok, run_tests, test, wait_for
from screening import person, reaches, server, submit
from sim import Sim

BEHIND = {"MILLRACE_BEHIND_TLS": "true", "MILLRACE_TRUSTED_PROXIES": "127.0.0.1, unix"}
CA = "/etc/ssl/certs/ca-certificates.crt"
with open(SITE) as site:  # the alternative that the file names
    UNIX = re.search(r"or: (server unix:)\S+;", site.read())[1] + "{};"
# Every reply has its own, and nginx its own way to make them.
VARYING = {"date", "server", "connection", "etag", "last-modified", "accept-ranges",
           "content-length", "content-type", "keep-alive"}


def pages():
    """A folder as the build makes one."""
    d = folder()
    script = "export const x = 1;\n" * 200
    write(f"{d}/index.html", "<!doctype html><title>researchers</title>")
    write(f"{d}/admin/index.html", "<!doctype html><title>operators</title>")
    write(f"{d}/admin/login.html", "<!doctype html><title>log in</title>")
    write(f"{d}/icon.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")
    write(f"{d}/theme.js", "void 0;")
    write(f"{d}/.stamp", "the build's own")
    write(f"{d}/assets/app-B1xK9_Qa.js", script)
    write(f"{d}/assets/wordless.css", "a{}")
    with open(f"{d}/assets/app-B1xK9_Qa.js.gz", "wb") as f:
        f.write(gzip.compress(script.encode()))
    subprocess.run(["chmod", "-R", "a+rX", d], check=True)
    return d


def secured(reply):
    return sorted((k, v) for k, v in reply.all if k not in VARYING)


def login(front, name, *words, **more):
    return front.curl("/api/login", "--json",
                      json.dumps({"username": name, "password": PASSWORD}), *words, **more)


def addresses(front, token):
    r = front.curl("/api/sessions", "-H", f"Authorization: Bearer {token}")
    return [s["ip_address"] for s in json.loads(r.body)["sessions"]]


class Direct:
    """For curl: the server without nginx."""

    def __init__(self, port):
        self.plain, self.ca = port, CA

    def curl(self, path, *words):
        return Nginx.curl(self, path, *words, plain=True, http="--http1.1")


def serves_pages(m, front):
    d, direct = front.pages, Direct(m.port)
    for path in ("/", "/index.html", "/admin/", "/admin/login.html", "/icon.svg", "/theme.js",
                 "/assets/app-B1xK9_Qa.js", "/assets/wordless.css"):
        got, own = front.curl(path), direct.curl(path)
        equal((got.status, got.body), (200, own.body), f"{path} is the file")
        equal(secured(got), secured(own), f"{path} has the headers that millrace sends")
        equal(got.headers["content-type"], own.headers["content-type"], f"{path}: its type")
    r = front.curl("/assets/app-B1xK9_Qa.js", "-H", "Accept-Encoding: gzip")
    equal(r.headers.get("content-encoding"), "gzip", "compressed files are sent as they are")
    with open(f"{d}/assets/app-B1xK9_Qa.js", "rb") as f:
        equal(gzip.decompress(r.body), f.read(), "with that content")
    etag = front.curl("/icon.svg").headers["etag"]
    equal(front.curl("/icon.svg", "-H", f"If-None-Match: {etag}").status, 304,
          "what has not changed is not sent again")
    for path, status in (("/.stamp", 404), ("/assets/../.stamp", 400), ("/nothing.html", 404),
                         ("/assets/", 404)):
        r = front.curl(path, "--path-as-is")
        equal((r.status, json.loads(r.body)["success"]), (status, False),
              f"{path} is not to be had", r)
        equal([v for k, v in r.all if k == "strict-transport-security"], ["max-age=31536000"],
              "HSTS is sent once")


def serves_people(m, front):
    r = front.curl("/api/register", "--json",
                   json.dumps({"username": "asher", "password": PASSWORD}))
    equal((r.status, r.version), (201, "HTTP/2"), "registered over HTTP/2", r)
    equal(front.curl("/api/me", http="--http1.1").version, "HTTP/1.1", "HTTP/1.1 as well")
    r = login(front, "asher")
    cookie = r.headers["set-cookie"]
    ok(r.status == 200 and "; Secure" in cookie and "HttpOnly" in cookie, "the cookie is Secure",
       cookie)
    origin = f"Origin: https://127.0.0.1:{front.port}"
    r = front.curl("/api/logout", "-X", "POST", "-b", cookie.split(";")[0], "-H", origin)
    equal(r.status, 200, "a write from the pages is let through: Host arrives with its port", r)
    token = json.loads(login(front, "asher").body)["token"]
    equal(addresses(front, token), ["127.0.0.2"], "a session has the browser's address")
    for spoof in ("X-Forwarded-For: 203.0.113.9", "X-Real-IP: 203.0.113.9",
                  "Forwarded: for=203.0.113.9"):
        equal(login(front, "asher", "-H", spoof).status, 200, f"a log-in with {spoof}")
    equal(set(addresses(front, token)), {"127.0.0.2"}, "is not believed")
    equal(login(front, "asher", "-H", "X-Forwarded-For: 203.0.113.9", source="127.0.0.1").status,
          200, "a log-in from the address of a trusted proxy")
    equal(set(addresses(front, token)), {"127.0.0.1", "127.0.0.2"}, "is not believed either")
    for path in ("/metrics", "/readyz"):
        equal((front.curl(path).status, m.get(path).status), (404, 200),
              f"{path} is not for the world")
    equal(front.curl("/healthz").status, 200, "/healthz is")
    return token


def redirects(front):
    r = front.curl("/x?y=1", plain=True, http="--http1.1")
    equal((r.status, r.headers["location"]), (301, "https://127.0.0.1/x?y=1"),
          "plain HTTP is sent to https")
    write(f"{front.dir}/acme/.well-known/acme-challenge/token", "proof")
    subprocess.run(["chmod", "-R", "a+rX", front.dir], check=True)
    equal(front.curl("/.well-known/acme-challenge/token", plain=True, http="--http1.1").body,
          b"proof", "but for the proof that a certificate asks for")
    for version, works in (("1_1", False), ("1_2", True), ("1_3", True)):
        equal(handshake(front, version), works, f"TLS {version}: {'yes' if works else 'no'}")


def handshake(front, version):
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{front.port}", f"-tls{version}", "-cipher",
         "ALL:@SECLEVEL=0"], capture_output=True, text=True, input="")
    return done.returncode == 0 and "Cipher is (NONE)" not in done.stdout


def limits(front):
    for size, by in ((100 << 10, "millrace"), (9 << 20, "nginx")):
        body = write(f"{folder()}/body", json.dumps({"username": "x" * size}))
        r = front.curl("/api/login", "--json", f"@{body}")
        equal((r.status, json.loads(r.body)["success"], r.headers["content-type"]),
              (413, False, "application/json"), f"{size} bytes are refused by {by}", r)
    for size, status in ((20 << 20, 401), (51 << 20, 413)):
        body = write(f"{folder()}/body", "x" * size)
        r = front.curl("/api/documents?name=x.txt", "--data-binary", f"@{body}")
        equal((r.status, json.loads(r.body)["success"]), (status, False),
              f"a document of {size >> 20} MB: {status}", r)
    done = subprocess.run(
        ["curl", "--silent", "--http2", "--cacert", front.ca, "--parallel", "--parallel-max",
         "50", "-w", "\\n%{http_code}\\n",
         f"https://127.0.0.1:{front.port}/api/login?[1-400]"], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    refused = lines.count("429")
    note(f"{refused} of 400 were refused")
    ok(0 < refused <= 300 and lines.count("405") == 400 - refused,
       "a flood of log-ins is refused, after the first hundred", sorted(set(lines)))
    ok(any('"code":"rate"' in line for line in lines), "in the words of the API")


def reloads(m, front, token):
    """Nodes are replaced under load: nginx gets an answer to every request."""
    statuses, stop = [], threading.Event()
    trust = ssl.create_default_context(cafile=front.ca)

    def call(method):
        c = http.client.HTTPSConnection("127.0.0.1", front.port, timeout=30, context=trust)
        while not stop.is_set():
            c.request(method, "/api/me" if method == "GET" else "/api/estimate",
                      "{}" if method == "POST" else None,
                      {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            r = c.getresponse()
            r.read()
            statuses.append((method, r.status))
        c.close()

    threads = [threading.Thread(target=call, args=(method,)) for method in ("GET", "POST") * 4]
    for t in threads:
        t.start()
    for _ in range(2):
        old = set(m.nodes())
        m.send_signal(signal.SIGHUP)
        ok(wait_for(lambda: m.nodes() and not old & set(m.nodes()), 40), "new nodes serve")
        time.sleep(1)
    stop.set()
    for t in threads:
        t.join(30)
    kinds = {s: statuses.count(s) for s in set(statuses)}
    note(f"{len(statuses)} requests: {kinds}")
    equal(set(statuses), {("GET", 200), ("POST", 400)}, "every request was answered", kinds,
          front.errors())


@test("the site")
def _():
    d = pages()
    with Millrace(env={**BEHIND, "MILLRACE_WEB_DIR": d}) as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        with Nginx(m.port, d) as front:
            serves_pages(m, front)
            token = serves_people(m, front)
            redirects(front)
            limits(front)
        with Nginx(m.port, d, change={"rate=100r/s": "rate=100000r/s"}) as front:
            reloads(m, front, token)
            m.stop()
            equal(front.curl("/").status, 200, "pages are served while millrace is away")
            r = front.curl("/api/me")
            equal((r.status, json.loads(r.body)["error"]["code"], r.headers["retry-after"]),
                  (503, "unavailable", "5"), "calls are answered in the API's words")


# --- a run ---

def event_times(front, token, path, count):
    """When each of the first events arrives, in seconds from the request."""
    p = subprocess.Popen(["curl", "--silent", "--no-buffer", "--http2", "--cacert", front.ca, "-H",
                          f"Authorization: Bearer {token}", "--max-time", "10",
                          f"https://127.0.0.1:{front.port}{path}"], stdout=subprocess.PIPE,
                         text=True)
    began, times = time.monotonic(), []
    try:
        for line in p.stdout:
            if line.startswith("event:"):
                times.append(time.monotonic() - began)
                if len(times) == count:
                    break
    finally:
        p.terminate()
        p.wait(10)
    return times


def streams_events(front, api, qid):
    times = event_times(front, api.token, f"/api/queries/{qid}/events", 8)
    gaps = [round(b - a, 2) for a, b in zip(times, times[1:])]
    note(f"events after {[round(t, 2) for t in times]} s")
    ok(len(times) == 8 and times[0] < 2 and sum(g > 0.05 for g in gaps) >= 3,
       "events arrive one by one", times)
    # A buffer would be full sooner or later while a run works; what it holds back shows when the
    # stream is silent.
    api("POST", f"/api/queries/{qid}/pause", {})
    reaches(api, qid, "PAUSED")
    time.sleep(2)
    times = event_times(front, api.token, f"/api/queries/{qid}/events", 1)
    note(f"of a paused run: after {times} s")
    ok(times and times[0] < 5, "the first event of a silent stream arrives at once", times)
    api("POST", f"/api/queries/{qid}/resume", {})


def downloads(m, front, api, qid):
    task = api("POST", "/api/download/create",
               {"query_id": qid, "type": "bib", "scope": "all"}).body["task_id"]
    assert wait_for(lambda: api("GET", f"/api/download/status?task_id={task}").body["state"]
                    == "READY", 60)
    path = f"/api/download/file?task_id={task}"
    words = ["-H", f"Authorization: Bearer {api.token}"]
    got, own = front.curl(path, *words), Direct(m.port).curl(path, *words)
    ok(got.status == 200 and len(got.body) > 1 << 20 and got.body == own.body,
       "a large file is the same through nginx", len(got.body), len(own.body))
    note(f"{len(got.body)} bytes")
    ok(front.curl(path, *words, "--limit-rate", "1M").body == own.body, "and for a slow client")


@test("a run")
def _():
    d = pages()
    with Sim("--latency-ms", "20") as sim, server(sim, papers=3000, **BEHIND) as m:
        with Relay(m.port) as relay, Nginx(m.port, d, upstream=UNIX.format(relay.path)) as front:
            api = person(m, "reader", permission=20)
            qid, _ = submit(api, 3000)
            streams_events(front, api, qid)
            assert reaches(api, qid, "DONE", 120)
            downloads(m, front, api, qid)


run_tests()
