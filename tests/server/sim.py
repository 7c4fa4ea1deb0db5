"""A simulated AI of a test's own, that tells what was asked of it."""
import json
import ssl
import subprocess
import urllib.request

from harness import BIN, environment, folder, http


def certificate(name="sim", of="IP:127.0.0.1"):
    """Paths of a certificate, which vouches for itself, and of its key."""
    path = f"{folder()}/{name}"
    subprocess.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName={of}",
        "-out", path + ".crt", "-keyout", path + ".key"], check=True, capture_output=True)
    return path + ".crt", path + ".key"


class Sim:
    """tls: what certificate() returns; it then speaks TLS alone."""

    def __init__(self, *args, port=0, tls=None):
        self.args, self.port, self.ca = args, port, tls and tls[0]
        if tls:
            self.args += ("--tls-cert", tls[0], "--tls-key", tls[1])

    def __enter__(self):
        self.process = subprocess.Popen(
            [BIN, "sim", "--listen", f"127.0.0.1:{self.port}", "--seed", "1", *self.args],
            env=environment(), cwd=folder(), stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.url = f"{'https' if self.ca else 'http'}://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def stats(self):
        if not self.ca:
            return json.loads(http(self.port, "/stats").body)
        with urllib.request.urlopen(f"https://127.0.0.1:{self.port}/stats", timeout=30,
                                    context=ssl.create_default_context(cafile=self.ca)) as reply:
            return json.loads(reply.read())

    def reset(self):
        http(self.port, "/stats/reset", method="POST")
