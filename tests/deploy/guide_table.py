"""The table of the guide's test: every command of the guides has a row that says how it is tried.

    @row("build/millrace user add NAME --balance 100.00")
    def _(here):
        here.run(stdin="correct horse\n", NAME="mei")
        ...what the guide says about it must be true

A row without `why` runs the command as it stands, but for words in capitals, which stand for names
and folders. `why` is the reason for which another one is run."""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, PROJECT + "/tests/server")
sys.path.insert(0, PROJECT + "/tests")
from harness import SCALE, equal, ok, wait_for  # noqa: E402

PASSWORD = "correct horse battery"
ASSIGNED = r"^(?:export )?(\w+)="
SERVER = "http://127.0.0.1:8080"
ROWS = {}  # command: Row


class Row:
    def __init__(self, fn, why):
        self.fn, self.why = fn, why


def plain(text):
    """A command in one line."""
    return re.sub(r"\s+", " ", text.replace("\\\n", " "))


def row(*texts, why=None):
    def put(fn):
        for text in map(plain, texts):
            assert text not in ROWS, text
            ROWS[text] = Row(fn, why)
        return fn
    return put


class Here:
    """Where the guide is followed: a machine, a folder and variables of a shell, and what earlier
    commands have left behind."""

    def __init__(self, box, home, logs):
        self.box, self.home = box, home
        self.log = logs + "/run"        # of ./run, which is self.server
        self.command = None
        self.cwd, self.variables = home, {}
        self.data, self.papers = "/root/papers", 0      # DIR, and how many papers it has

    # --- commands ---

    def run(self, text=None, stdin=None, status=0, network=False, timeout=600, **words):
        """Runs the command of the row, with words in capitals replaced; what it says."""
        text = self.fill(text or self.command.text, words)
        keep = "".join(f"; declare -p {name} 2>/dev/null"
                       for name in {*self.variables, *re.findall(ASSIGNED, text, re.M)})
        script = "\n".join([*self.variables.values(), text, "status=$?",
                            f"{{ pwd{keep}; }} >/tmp/shell; exit $status"])
        done = self.box.run(script, cwd=self.cwd, stdin=stdin, network=network,
                            timeout=timeout * SCALE, check=False)
        equal(done.returncode, status, f"{self.command}", text, done.stdout[-4000:],
              done.stderr[-4000:])
        self._remember()
        return done.stdout + done.stderr

    @staticmethod
    def fill(text, words):
        for old, new in words.items():
            text, count = re.subn(rf"\b{re.escape(old)}\b", lambda _: new, text)
            assert count, f"{old} is not in: {text}"
        return text

    def _remember(self):
        cwd, *lines = self.read("/tmp/shell").splitlines() or [self.cwd]
        self.cwd = cwd
        for line in lines:
            self.variables[re.match(r"declare \S+ (\w+)", line)[1]] = line

    def start(self, out, text=None, **words):
        """The same for one that does not end by itself."""
        script = "\n".join([*self.variables.values(),
                            "exec " + self.fill(text or self.command.text, words)])
        return self.box.start(script, cwd=self.cwd, stdout=open(out, "w"),
                              stderr=subprocess.STDOUT)

    @staticmethod
    def end(process):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)

    @staticmethod
    def text(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def sh(self, text, **kw):
        """A command that is not the guide's, in the same folder."""
        return self.box.run(text, cwd=self.home, **kw).stdout

    # --- files ---

    def read(self, path):
        with open(self.box.path(os.path.join(self.home, path)), encoding="utf-8") as f:
            return f.read()

    def write(self, path, text):
        path = self.box.path(os.path.join(self.home, path))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def exists(self, path):
        return os.path.lexists(self.box.path(os.path.join(self.home, path)))

    # --- the server ---

    def curl(self, *words):
        """(status, body) of a request to this machine."""
        done = self.box.run("curl -sS -m 60 -w '\\n%{http_code}' " + shlex.join(words), check=False)
        body, _, status = done.stdout.rpartition("\n")
        return int(status or 0), body

    def api(self, path, body=None, token=None, method=None):
        words = ["-H", f"Authorization: Bearer {token}"] if token else []
        if body is not None:
            words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        if method:
            words += ["-X", method]
        status, text = self.curl(*words, f"{SERVER}/api{path}")
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def login(self, name, password=PASSWORD, admin=False):
        status, body = self.api("/admin/login" if admin else "/login",
                                {"username": name, "password": password})
        return body["token"] if status == 200 else None

    def ready(self):
        return self.curl(SERVER + "/readyz")[0] == 200

    def wait_ready(self, seconds=60):
        end = time.monotonic() + seconds * SCALE
        while not self.ready():
            assert time.monotonic() < end, self.curl(SERVER + "/readyz")
            time.sleep(0.3)

    def nodes(self):
        return set(self.box.run("pgrep -f '^millrace node'", check=False).stdout.split())


def settle(condition, seconds, text, *details):
    return ok(wait_for(condition, seconds), text, *details)
