"""HTTP as a whole server speaks it: what RFC 9112 wants accepted, what must stay refused, which
replies are compressed, and which never are."""
import gzip
import json
import os
import socket

from admins import admin
from client import FAST, PASSWORD, Millrace, user
from harness import equal, folder, ok, run_tests, test, wait_for

WELCOME = b"GET /api/welcome HTTP/1.1\r\nHost: h\r\n\r\n"
LOGIN = json.dumps({"username": "nobody", "password": PASSWORD}).encode()


def replies(m, data, timeout=5):
    """All that comes back until the server closes or falls silent: [(status, headers, body)]."""
    with socket.create_connection(("127.0.0.1", m.port), timeout) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b""
        while piece := s.recv(65536):
            got += piece
    found = []
    while got:
        head, _, rest = got.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines[1:])}
        size = int(headers.get("content-length", 0))
        found.append((int(lines[0].split()[1]), headers, rest[:size]))
        got = rest[size:]
    return found


def statuses(m, data):
    return [r[0] for r in replies(m, data)]


def post(headers, body):
    return (b"POST /api/login HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n" + headers
            + b"\r\n" + body)


def chunked(body, extension=b"", trailers=b""):
    return b"%x%s\r\n%s\r\n0\r\n%s\r\n" % (len(body), extension, body, trailers)


def accepted(m):
    coded = b"Transfer-Encoding: Chunked\r\n"
    cases = {
        "Chunked": post(coded, chunked(LOGIN)),
        "chunk extensions": post(coded, chunked(LOGIN, b";a=b;c=\"d\"")),
        "trailers": post(coded, chunked(LOGIN, trailers=b"X-Sum: 1\r\nContent-Length: 3\r\n")),
    }
    for what, request in cases.items():
        equal(statuses(m, request + WELCOME), [401, 200], f"{what}, and the next request")
    equal(statuses(m, b"\r\n\r\n" + WELCOME + b"\r\n" + WELCOME), [200, 200], "empty lines before")
    equal(statuses(m, b"GET http://other:80/api/welcome HTTP/1.1\r\nHost: h\r\n\r\n"), [200],
          "an absolute target")
    body = b"GET /api/none HTTP/1.1\r\nHost: h\r\n\r\n"
    get = b"GET /api/welcome HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s"
    equal(statuses(m, get % (len(body), body) + WELCOME), [200, 200],
          "a body of a GET is no request")
    equal(statuses(m, get % (65537, b"")), [413], "unless it is too large")
    # The host of the target is the one that Origin is held against.
    write = (b"POST http://other/api/login HTTP/1.1\r\nHost: h\r\nOrigin: http://%s\r\n"
             b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s")
    equal([statuses(m, write % (host, len(LOGIN), LOGIN)) for host in (b"other", b"h")],
          [[401], [403]], "its host counts")


def refused(m):
    """Two programs could read each of these in two ways: 400, and what follows is not read."""
    coded = b"Transfer-Encoding: chunked\r\n"
    cases = {
        "a length and chunks": post(coded + b"Content-Length: 5\r\n", b"0\r\n\r\n"),
        "chunks and a length": post(b"Content-Length: 5\r\n" + coded, b"0\r\n\r\n"),
        "two lengths": post(b"Content-Length: 5\r\nContent-Length: 6\r\n", b"hello"),
        "a folded header": post(b"A: b\r\n c\r\nContent-Length: 0\r\n", b""),
        "a blank before the colon": post(b"Content-Length : 0\r\n", b""),
        "a bare line feed": b"GET /api/welcome HTTP/1.1\nHost: h\r\n\r\n",
        "a line feed in an extension": post(coded, b"2;a\nxx\r\n0\r\n\r\n"),
        "a carriage return in one": post(coded, b"2;a\rb\r\nxx\r\n0\r\n\r\n"),
        "a folded trailer": post(coded, b"0\r\nX: y\r\n z\r\n\r\n"),
        "a blank in a trailer's name": post(coded, b"0\r\nX : y\r\n\r\n"),
        "extensions without end": post(coded, b"1;" + b"a" * 9000),
        "many empty lines": b"\r\n" * 5 + WELCOME,
        "a user in the target": b"GET http://u@h/api/welcome HTTP/1.1\r\nHost: h\r\n\r\n",
        "another coding": post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"),
    }
    for what, request in cases.items():
        equal(statuses(m, request + WELCOME), [400], what)


def compressed_body(m):
    data = gzip.compress(LOGIN)
    header = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(data)
    status, headers, body = replies(m, post(header, data))[0]
    equal((status, headers.get("accept-encoding"), json.loads(body)["error"]["code"]),
          (415, "identity", "unsupported_coding"), "a compressed body is refused by its name")
    equal(statuses(m, post(header, data) + WELCOME), [415, 200], "and the connection goes on")


def get(m, path, token=None, accept="gzip", method="GET", body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: h", f"Accept-Encoding: {accept}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return replies(m, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)[0]


def compressed(m):
    api = user(m, "reader")
    for path in ("/api/journals", "/openapi.json", "/metrics"):
        status, headers, body = get(m, path, api.token)
        equal((status, headers.get("content-encoding"), headers.get("vary")),
              (200, "gzip", "Accept-Encoding"), f"{path} is compressed")
        plain = get(m, path, api.token, "identity")
        ok("content-encoding" not in plain[1] and len(body) < len(plain[2]) / 2, "and shorter",
           len(body), len(plain[2]))
        if path != "/metrics":
            equal(gzip.decompress(body), plain[2], "and the same")


def never(m):
    """BREACH: a token or a key must not show in the length of a reply."""
    user(m, "writer")
    root = admin(m, "root", "super")
    body = json.dumps({"username": "writer", "password": PASSWORD}).encode()
    status, headers, _ = get(m, "/api/login", None, "gzip, identity;q=0", "POST", body)
    equal((status, headers.get("content-encoding")), (200, None), "a log-in is not compressed")
    for i in range(20):
        added = root("POST", "/api/admin/keys", {"key": f"sk-secret-{i:020}", "reason": "more"})
        assert added.status == 201, added
    for path in ("/api/admin/keys", "/api/admin/overview", "/api/admin/audit"):
        status, headers, data = get(m, path, root.token, "gzip, identity;q=0")
        ok(status == 200 and "content-encoding" not in headers and len(data) > 1400,
           f"nor is {path}", status, headers, len(data))


def pages(m):
    _, headers, body = get(m, "/", accept="br;q=0.5, gzip;q=1")
    ok(body == b"GZ" and headers["cache-control"] == "no-cache" and "etag" in headers
       and "camera=()" in headers["permissions-policy"]
       and headers["cross-origin-opener-policy"] == "same-origin", "a page", headers, body)
    _, headers, _ = get(m, "/assets/index-BfK1s2xZ.js")
    equal(headers["cache-control"], "public, max-age=31536000, immutable", "an asset stays")


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


@test("HTTP")
def _():
    web = folder("web")
    for name, text in {"index.html": "<p>plain", "index.html.gz": "GZ", "index.html.br": "BR",
                       "assets/index-BfK1s2xZ.js": "script"}.items():
        put(f"{web}/{name}", text)
    with Millrace(env={**FAST, "MILLRACE_WEB_DIR": web}) as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        accepted(m)
        refused(m)
        compressed_body(m)
        compressed(m)
        never(m)
        pages(m)


run_tests()
