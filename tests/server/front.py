"""nginx with deploy/nginx/millrace.conf in front of a server, as a process of the test's own.

    with Nginx(m, pages) as front:
        front.curl("/api/me")
"""
import os
import re
import socket
import subprocess
import threading

from harness import Reply, environment, folder, wait_for
from sim import certificate

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SITE = os.path.join(ROOT, "deploy/nginx/millrace.conf")
MAIN = """daemon off; pid {dir}/pid; worker_processes 1; error_log {dir}/error.log warn;
events {{ worker_connections 1024; }}
http {{ access_log {dir}/access.log;
client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
fastcgi_temp_path {dir}/f; scgi_temp_path {dir}/s; uwsgi_temp_path {dir}/u;
include {dir}/site.conf; }}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    return path


class Nginx:
    """upstream: a line for the place of the TCP one. change: {text of the site: what is there
    instead}."""

    def __init__(self, port, pages, upstream=None, change=None):
        self.dir, self.pages = folder(), pages
        self.plain, self.port = free_port(), free_port()
        self.ca, key = certificate("nginx")
        put = {
            r"server 127\.0\.0\.1:8080;": upstream or f"server 127.0.0.1:{port};",
            r"listen 80;": f"listen 127.0.0.1:{self.plain};",
            r"listen 443 ssl http2;": f"listen 127.0.0.1:{self.port} ssl http2;",
            r"listen \[::\]:80;": "", r"listen \[::\]:443 ssl http2;": "",
            r"/etc/ssl/millrace/fullchain\.pem": self.ca,
            r"/etc/ssl/millrace/privkey\.pem": key,
            r"/usr/share/millrace/web;": f"{pages};",
            r"/var/www/acme": f"{self.dir}/acme",
            **{re.escape(old): new for old, new in (change or {}).items()},
        }
        with open(SITE) as f:
            site = f.read()
        for old, new in put.items():
            site, count = re.subn(old, lambda _, new=new: new, site)
            assert count >= 1, f"millrace.conf has no {old}"
        write(f"{self.dir}/site.conf", site)
        self.config = write(f"{self.dir}/nginx.conf", MAIN.format(dir=self.dir))

    def command(self, *words):
        return ["nginx", "-p", self.dir, "-e", f"{self.dir}/error.log", "-c", self.config, *words]

    def __enter__(self):
        self.process = subprocess.Popen(self.command(), env=environment(), cwd=self.dir,
                                        stderr=subprocess.PIPE)
        up = wait_for(lambda: self.process.poll() is not None or self._answers(), 15)
        assert up and self.process.poll() is None, self.process.stderr.read()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def _answers(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def errors(self):
        with open(f"{self.dir}/error.log") as f:
            return f.read()

    def curl(self, path, *words, source="127.0.0.2", plain=False, http="--http2"):
        """A reply, with .version and all headers as (name, value) in .all."""
        url = f"http://127.0.0.1:{self.plain}" if plain else f"https://127.0.0.1:{self.port}"
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--include", http, "--cacert", self.ca,
             "--interface", source, "--max-time", "60", *words, url + path], capture_output=True)
        assert done.returncode == 0, (path, done.returncode, done.stderr)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        while b" 100" in head.split(b"\r\n")[0]:
            head, _, body = body.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = [(k.strip().lower(), v.strip()) for k, _, v in (l.partition(":") for l in lines)]
        reply = Reply(int(first.split()[1]), dict(pairs), body)
        reply.version, reply.all = first.split()[0], pairs
        return reply


class Relay:
    """A unix socket whose connections go to a port."""

    def __init__(self, port):
        self.port, self.path = port, f"{folder()}/http.sock"

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        os.chmod(self.path, 0o666)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        try:
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.port))
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(a, b), daemon=True).start()
        except OSError:
            pass

    @staticmethod
    def _pass(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass
