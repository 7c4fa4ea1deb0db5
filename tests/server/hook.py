"""A webhook for whole-server tests, that keeps what it is told; and the overview, to compare."""
import http.server
import json
import ssl
import threading
import time

from harness import equal, wait_for


def overview(api):
    r = api("GET", "/api/admin/overview")
    assert r.status == 200, r
    return r.body


class Hook:
    """A webhook that refuses the first message, and keeps the rest, but for repeats: alerts are
    delivered at least once, with an id. certificate: it speaks TLS, and refuses nothing."""

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
                what = lambda b: (b["id"], b["event"])
                known = any(what(b) == what(body) for _, _, b in hook.got)
                if not first and not known:
                    hook.got.append((time.monotonic(), self.path, body))
                self.send_response(500 if first else 204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate + ".crt", self.certificate + ".key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.url = (f"http{'s' if self.certificate else ''}://127.0.0.1:{self.server.server_port}"
                    "/hooks/s3cr3t")
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
