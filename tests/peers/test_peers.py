"""The HTTP client against servers, proxies and certificates that nobody here wrote: nginx, haproxy,
nghttpd, Node's http2 and https, openssl s_server; tinyproxy."""
import contextlib
import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "server"), HERE]

from certs import Authority, leaf
from harness import equal, folder, ok, run_tests, test, wait_for

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(os.environ["MILLRACE_BIN"])), "tests",
                       "peer_calls")
CALLS, AT_ONCE = 600, 50
REPLY = '{"choices":[]}'


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def calls(method, url, ca, count=CALLS, at_once=AT_ONCE, proxy=()):
    done = subprocess.run([PROGRAM, method, url, ca, str(count), str(at_once), *proxy],
                          timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, (url, done.returncode, done.stderr[-3000:])
    return json.loads(done.stdout)


@contextlib.contextmanager
def server(port, *argv):
    """A peer, from when it answers on. Its log is shown if it does not."""
    with open(f"{folder()}/log", "w+") as log:
        p = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.PIPE)
        try:
            def answers():
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    return True
            up = wait_for(lambda: p.poll() is not None or answers(), 15)
            log.seek(0)
            assert up and p.poll() is None, (argv, log.read()[-2000:])
            yield
        finally:
            p.terminate()
            p.wait(20)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


# --- the peers ---

NGINX = """daemon off; pid {dir}/pid; error_log {dir}/error.log; worker_processes 1;
events {{ worker_connections 512; }}
http {{ access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/p;
fastcgi_temp_path {dir}/f; scgi_temp_path {dir}/s; uwsgi_temp_path {dir}/u;
keepalive_requests {requests};
server {{ listen 127.0.0.1:{port} ssl{h2}; ssl_certificate {pem}; ssl_certificate_key {key};
location / {{ return 200 '{reply}'; }} }} }}
"""


def nginx(port, files, h2=True, requests=1000):
    d = folder()
    config = write(f"{d}/config", NGINX.format(
        dir=d, port=port, pem=files[0], key=files[1], reply=REPLY, requests=requests,
        h2=" http2" if h2 else ""))
    return server(port, "nginx", "-p", d, "-e", f"{d}/error.log", "-c", config)


HAPROXY = """global
  maxconn 2000
defaults
  mode http
  timeout client 10s
  timeout server 10s
  timeout connect 5s
frontend peer
  bind 127.0.0.1:{port} ssl crt {both} alpn {alpn}
  http-request return status 200 content-type application/json string '{reply}'
"""


def haproxy(port, files, h2=True):
    d = folder()
    both = write(f"{d}/both.pem", "".join(open(f).read() for f in files))
    config = write(f"{d}/config", HAPROXY.format(
        port=port, both=both, alpn="h2,http/1.1" if h2 else "http/1.1", reply=REPLY))
    return server(port, "haproxy", "-db", "-f", config)


def nghttpd(port, files):
    return server(port, "nghttpd", "-a", "127.0.0.1", "--echo-upload", str(port), files[1],
                  files[0])


NODE = """const fs = require('fs');
const [, , kind, port, pem, key] = process.argv;
const files = {cert: fs.readFileSync(pem), key: fs.readFileSync(key)};
const answer = (q, r) => { q.resume(); q.on('end', () => r.end('REPLY')); };
const s = kind === 'http2'
    ? require('http2').createSecureServer({...files, allowHTTP1: true}, answer)
    : require('https').createServer(files, answer);
s.listen(Number(port), '127.0.0.1');
""".replace("REPLY", REPLY)


def node(port, files, kind):
    return server(port, "node", "-e", NODE, "x", kind, str(port), *files)


def s_server(port, files):
    return server(port, "openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", files[0],
                  "-cert_chain", files[0], "-key", files[1], "-www", "-quiet")


TINYPROXY = """Port {port}
Listen 127.0.0.1
Allow 127.0.0.1
Timeout 60
MaxClients 200
LogLevel Connect
LogFile "{dir}/log"
{more}
"""


def tinyproxy(port, *more):
    d = folder()
    config = write(f"{d}/config", TINYPROXY.format(port=port, dir=d, more="\n".join(more)))
    return server(port, "tinyproxy", "-d", "-c", config)


PEERS = {
    "nginx, HTTP/2": (nginx, {}, "h2"), "nginx, HTTP/1.1": (nginx, {"h2": False}, "h1"),
    "haproxy, HTTP/2": (haproxy, {}, "h2"), "haproxy, HTTP/1.1": (haproxy, {"h2": False}, "h1"),
    "nghttpd": (nghttpd, {}, "h2"), "Node http2": (node, {"kind": "http2"}, "h2"),
    "Node https": (node, {"kind": "https"}, "h1")}


@test("peers")
def _():
    d = folder()
    root = Authority(d, "root")
    files = leaf(root, "good", names="DNS:localhost,IP:127.0.0.1")
    for name, (start, how, version) in PEERS.items():
        port = free_port()
        with start(port, files, **how):
            got = calls("POST", f"https://localhost:{port}/v1", root.pem)
            equal((got["answered"], got[version]), (CALLS, CALLS), f"{name}: every call", got)
    port = free_port()
    with nginx(port, files, requests=20):
        got = calls("POST", f"https://localhost:{port}/v1", root.pem)
        equal(got["answered"], CALLS, "nginx that ends its connections: every call", got)
    port = free_port()
    with s_server(port, files):
        got = calls("GET", f"https://127.0.0.1:{port}/", root.pem, 20, 1)
        equal(got["answered"], 20, "openssl s_server: every call", got)


@test("a proxy")
def _():
    """localhost is looked up by the proxy, and goes through it because the client is told so."""
    d = folder()
    root = Authority(d, "root")
    files = leaf(root, "good", names="DNS:localhost")
    port, open_port, closed_port = free_port(), free_port(), free_port()
    url = f"https://localhost:{port}/v1"
    through = lambda p, login="": (f"http://{login}127.0.0.1:{p}",)
    with tinyproxy(open_port), tinyproxy(closed_port, "BasicAuth me p.ss-w"):
        for version, how in (("h2", {}), ("h1", {"h2": False})):
            with nginx(port, files, **how):
                for name, proxy in (("without a login", through(open_port)),
                                    ("with one", through(closed_port, "me:p%2Ess%2Dw@"))):
                    got = calls("POST", url, root.pem, CALLS, 10, proxy=proxy)
                    equal((got["answered"], got[version]), (CALLS, CALLS),
                          f"tinyproxy {name}, {version}: every call", got)
        with nginx(port, files):
            for login, words in (("", "wants a user and a password: 407 "),
                                 ("me:wrong@", "refuses the user and the password: 401 ")):
                got = calls("POST", url, root.pem, 5, 1, proxy=through(closed_port, login))
                ok(got["failed"] == 5 and f"the proxy 127.0.0.1:{closed_port} {words}" in
                   got["error"], f"tinyproxy: login \"{login}\"", got)
        got = calls("POST", url, root.pem, 5, 1, proxy=through(open_port))
        ok(got["failed"] == 5 and f"the proxy 127.0.0.1:{open_port} refuses CONNECT: 500 " in
           got["error"], "tinyproxy: no server", got)
    with tinyproxy(open_port, "ConnectPort 443"), nginx(port, files):
        got = calls("POST", url, root.pem, 5, 1, proxy=through(open_port))
        ok(got["failed"] == 5 and f"the proxy 127.0.0.1:{open_port} refuses CONNECT: 403 " in
           got["error"], "tinyproxy: only port 443", got)


@test("a hundred thousand calls")
def _():
    """Sanitizers would end the program if it used memory wrongly, or left some behind."""
    d = folder()
    root = Authority(d, "root")
    files = leaf(root, "good")
    for version, how in (("h2", {"requests": 5000}), ("h1", {"h2": False, "requests": 100})):
        port = free_port()
        with nginx(port, files, **how):
            got = calls("POST", f"https://localhost:{port}/v1", root.pem, 50000, 100)
            equal((got["answered"], got[version]), (50000, 50000), f"{version}: every call", got)


@test("certificates")
def _():
    d = folder()
    root, other = Authority(d, "root"), Authority(d, "other")
    middle = Authority(d, "middle", above=root)
    both = "DNS:localhost,IP:127.0.0.1"
    # Name of the host; the certificate; what the error says, None: it is right.
    cases = [
        ("localhost", leaf(root, "right"), None),
        ("b.a.localhost", leaf(root, "wildcard", names="DNS:*.a.localhost"), None),
        ("127.0.0.1", leaf(root, "address", names="IP:127.0.0.1"), None),
        ("localhost", leaf(middle, "chain", chain=[middle]), None),
        ("localhost", leaf(root, "expired", last="20210101000000Z"), "expired"),
        ("localhost", leaf(root, "early", first="20390101000000Z"), "not valid"),
        ("localhost", leaf(root, "elsewhere", names="DNS:elsewhere.example"), "elsewhere.example"),
        ("c.b.a.localhost", leaf(root, "deep", names="DNS:*.a.localhost"), "*.a.localhost"),
        ("127.0.0.1", leaf(root, "named"), "127.0.0.1"),
        ("localhost", leaf(other, "stranger", names=both), "other"),
        ("localhost", leaf(middle, "short", names=both), "middle"),
    ]
    for host, files, problem in cases:
        port = free_port()
        name = os.path.basename(files[0])
        with nginx(port, files):
            got = calls("POST", f"https://{host}:{port}/v1", root.pem, 5, 1)
        if problem is None:
            equal(got["answered"], 5, f"{name}: {host}", got)
        else:
            ok(got["failed"] == 5 and problem in got["error"], f"{name}: {host} is refused", got)


run_tests()
