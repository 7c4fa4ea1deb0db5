"""acme.py PORT FOLDER: a certificate authority for one test, as far as certbot needs one (RFC 8555,
http-01 alone, over plain HTTP). Its own certificate is FOLDER/ca.pem. It fetches the proof before
it signs, and takes signatures of accounts on trust."""
import base64
import http.server
import json
import os
import subprocess
import sys
import urllib.request

PORT, FOLDER = int(sys.argv[1]), sys.argv[2]
HOME = f"http://127.0.0.1:{PORT}"
CA, KEY = f"{FOLDER}/ca.pem", f"{FOLDER}/ca.key"
state = {"name": None, "token": None, "proven": False, "certificate": None}


def openssl(*words, **kw):
    return subprocess.run(["openssl", *words], check=True, capture_output=True, **kw).stdout


def found_authority():
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=authority of a test", "-keyout", KEY, "-out", CA + ".new")
    os.rename(CA + ".new", CA)


def random_text():
    return base64.urlsafe_b64encode(os.urandom(24)).decode()


def unpadded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def sign(request):
    signed = openssl("x509", "-req", "-inform", "der", "-CA", CA, "-CAkey", KEY, "-CAcreateserial",
                     "-days", "90", "-copy_extensions", "copyall", input=request)
    with open(CA, "rb") as f:
        return signed + f.read()


def proof():
    """Whether the site shows what only its operator can put there."""
    url = f"http://{state['name']}/.well-known/acme-challenge/{state['token']}"
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read().decode().startswith(state["token"] + ".")


def order():
    status = "valid" if state["certificate"] else "ready" if state["proven"] else "pending"
    shown = {"status": status, "identifiers": [{"type": "dns", "value": state["name"]}],
             "authorizations": [HOME + "/authorization"], "finalize": HOME + "/finalize"}
    if state["certificate"]:
        shown["certificate"] = HOME + "/certificate"
    return shown


def challenge():
    return {"type": "http-01", "url": HOME + "/challenge", "token": state["token"],
            "status": "valid" if state["proven"] else "pending"}


def answer(path, payload):
    """(status, body, headers) of a POST."""
    if path == "/account":
        return 201, {"status": "valid"}, {"Location": HOME + "/account/1"}
    if path == "/order":
        state.update(name=payload["identifiers"][0]["value"], token=random_text(), proven=False,
                     certificate=None)
        return 201, order(), {"Location": HOME + "/order/1"}
    if path == "/order/1":
        return 200, order(), {}
    if path == "/authorization":
        return 200, {"status": challenge()["status"], "challenges": [challenge()],
                     "identifier": {"type": "dns", "value": state["name"]}}, {}
    if path == "/challenge":
        state["proven"] = proof()
        return 200, challenge(), {"Link": f'<{HOME}/authorization>;rel="up"'}
    if path == "/finalize" and state["proven"]:
        state["certificate"] = sign(unpadded(payload["csr"]))
        return 200, order(), {"Location": HOME + "/order/1"}
    if path == "/certificate" and state["certificate"]:
        return 200, state["certificate"], {}
    return 404, {"type": "urn:ietf:params:acme:error:malformed"}, {}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.reply(200, b"", {})

    def do_GET(self):
        self.reply(200, {"newNonce": HOME + "/nonce", "newAccount": HOME + "/account",
                         "newOrder": HOME + "/order", "revokeCert": HOME + "/revoke",
                         "keyChange": HOME + "/change"}, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        payload = json.loads(unpadded(body["payload"]) or "null")
        self.reply(*answer(self.path, payload))

    def reply(self, status, body, headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Replay-Nonce": random_text(),
                            "Content-Type": "application/json",
                            "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


found_authority()
http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
