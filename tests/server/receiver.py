"""A webhook over TLS that keeps what it is told, and answers what a test wants."""
import base64
import hashlib
import hmac
import http.server
import ssl
import threading


class Receiver:
    """statuses: of the first answers; then 204. length: of the bodies of answers."""

    def __init__(self, certificate, statuses=(), length=0, location=None):
        self.certificate, self.statuses = certificate, list(statuses)
        self.length, self.location, self.got = length, location, []

    def __enter__(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((dict(self.headers), body))
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                self.send_response(status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                if status != 204:
                    self.send_header("Content-Length", str(receiver.length))
                self.end_headers()
                try:
                    self.wfile.write(b"x" * receiver.length if status != 204 else b"")
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.certificate)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # a client that does not trust us
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server.server_port}/hook?of=me"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def signed(secret, headers, body):
    """Whether a message is signed with the secret, by the convention of Standard Webhooks."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{headers['Webhook-Id']}.{headers['Webhook-Timestamp']}.".encode() + body
    want = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return headers["Webhook-Signature"] == f"v1,{want}"
