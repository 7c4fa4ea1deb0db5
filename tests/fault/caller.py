"""What sends requests while everything dies: a thread with random numbers of its own, and what it
was told."""
import json
import random
import re
import threading
from collections import Counter

from harness import Client

ID = r"/(\d+-[a-z]?)?[0-9a-f]{32}((/days/|/rows/)[0-9-]+)?|(?<=/posts)/\d+|(?<=/post)/\d+"
GONE = (OSError, ConnectionError)  # timeouts are OSError


class Reply:
    def __init__(self, raw):
        self.status, self.body = raw.status, json.loads(raw.body) if raw.body else {}

    @property
    def code(self):
        return self.body.get("error", {}).get("code", "")


class Caller(threading.Thread):
    """token: of a session, or for a program."""

    def __init__(self, name, world, seed, events):
        super().__init__(name=name)
        self.world, self.events, self.token = world, events, None
        self.random = random.Random(f"{seed} {name}")
        self.stopped = threading.Event()
        self.told = Counter()
        self.problems = []

    def send(self, method, path, body, timeout, raw=None):
        """The raw reply, or None when there was none. raw: bytes in place of a body in JSON."""
        server = self.random.choice(self.world.servers)
        headers = [f"Authorization: Bearer {self.token}", "Connection: close"]
        if body is not None:
            headers.append("Content-Type: application/json")
        data = raw or (json.dumps(body).encode() if body is not None else b"")
        what = f"{method} {re.sub(ID, '/<id>', path).partition('?')[0]}"
        try:
            c = Client(server.port, timeout=timeout)
            try:
                r = c.request(path, method=method, body=data, headers=headers)
            finally:
                c.close()
        except GONE as e:
            self.told[what, type(e).__name__] += 1
            return None
        code = Reply(r).code if r.status >= 400 else ""
        self.told[what, f"{r.status} {code}".strip()] += 1
        return r

    def judge(self, r, method, path, may_be_gone):
        if r and (r.status in (401, 403, 500) or (r.status == 404 and not may_be_gone)):
            self.problem(f"{method} {path}: {r.status} {r.body}")
        return r

    def ask(self, method, path, body=None, timeout=5, may_be_gone=False, raw=None):
        """The reply, or None when there was none."""
        r = self.send(method, path, body, timeout, raw)
        return self.judge(Reply(r) if r else None, method, path, may_be_gone)

    def fetch(self, path):
        """A file, whose body is bytes; or None."""
        return self.judge(self.send("GET", path, None, timeout=20), "GET", path, may_be_gone=True)

    def problem(self, text):
        self.events(self.name, "PROBLEM " + text)
        self.problems.append(f"{self.name}: {text}")
