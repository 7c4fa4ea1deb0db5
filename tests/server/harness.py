"""Starts real millrace servers for whole-server tests and prints TAP.

MILLRACE_BIN is the program. Every server gets a data directory of its own in a short temporary
path (socket paths are limited to 107 bytes) and a mark in its environment; whatever carries the
mark when a test ends was left behind, and fails the test.

    @test("a name")
    def _(): ...
    run_tests()
"""
import contextlib
import fcntl
import glob
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BIN = os.path.abspath(os.environ.get("MILLRACE_BIN", "build/millrace"))
ROOT = os.geteuid() == 0
SCALE = float(os.environ.get("MILLRACE_TEST_SCALE", "1"))  # of all time limits, for slow machines
CROWD_MAX = 8
MARK = "MRTEST=" + secrets.token_hex(8)
SETTINGS = {
    "MILLRACE_NODES": "2",
    "MILLRACE_MYSQL_BUFFER_BYTES": str(64 << 20),
    "MILLRACE_REDIS_MAX_BYTES": str(256 << 20),
    "MILLRACE_DRAIN_MS": "5000",
    "MILLRACE_SAMPLE_PAPERS": "0",
    "MILLRACE_DEMO_ACCOUNTS": "false",
    "MILLRACE_NEW_USER_HOURLY_MAX": "1000",
}

MYSQL = os.environ.get("MILLRACE_TEST_MYSQL")  # a socket: servers have databases there

_tests = []
_count = _failed = 0
_folder = None


# --- TAP ---

def test(name, private=False):
    """private: it stops or loses the MariaDB of its server; left out where MYSQL is given."""
    def wrap(fn):
        if not (private and MYSQL):
            _tests.append((name, fn))
        return fn
    return wrap


def ok(held, name, *details):
    global _count, _failed
    _count += 1
    _failed += not held
    line = " ".join(str(name).splitlines())
    print(f"{'' if held else 'not '}ok {_count} - {line}", flush=True)
    if not held:
        for line in "\n".join(str(d) for d in details).splitlines():
            print("#", line, flush=True)
    return held


def equal(got, want, name, *details):
    return ok(got == want, name, f" got {got!r}", f"want {want!r}", *details)


def note(text):
    for line in str(text).splitlines():
        print("#", line, flush=True)


def run_tests():
    global _folder
    only = sys.argv[1:]
    top = tempfile.gettempdir()
    _folder = tempfile.mkdtemp(prefix="mr", dir=top if len(top) < 40 else "/tmp")
    os.chmod(_folder, 0o755)  # tests that change the user must get through
    try:
        for name, fn in _tests:
            if only and not any(part in name for part in only):
                continue
            began, others = time.monotonic(), os.listdir(_folder)
            try:
                fn()
            except Exception:
                ok(False, name, traceback.format_exc())
            left = kill_left()
            ok(not left, f"{name}: no process is left", *left)
            note(f"{name}: {time.monotonic() - began:.1f} s")
            for made in set(os.listdir(_folder)).difference(others):  # it may be in memory
                shutil.rmtree(f"{_folder}/{made}", ignore_errors=True)
    finally:
        kill_left()
        shutil.rmtree(_folder, ignore_errors=True)
    finish()


def finish():
    """Prints the plan and ends the program; for those that do without run_tests."""
    print(f"1..{_count}", flush=True)
    sys.exit(1 if _failed else 0)


# --- processes ---

def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def marked(mark=MARK, below=None):
    """{pid: command line} of everything that has the mark in its environment or works below a
    folder (Redis writes over its environment), zombies excepted."""
    found = {}
    below = (below or _folder) + "/"
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        environ = read(f"/proc/{name}/environ")
        if mark.encode() in environ.split(b"\0") or link(f"/proc/{name}/cwd").startswith(below):
            command = read(f"/proc/{name}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
            if command:
                found[int(name)] = command.strip()
    return found


def kill_left():
    """Kills what is left; the list of it, after a moment to end by itself."""
    wait_for(lambda: not marked(), 2)
    left = marked()
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if left:
        wait_for(lambda: not marked(), 10)
    return [f"{pid} {command}" for pid, command in left.items()]


def alive(pid):
    return pid is not None and read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:1] not in (
        [], [b"Z"])


def freeze(pid):
    """Stops a process, and returns when none of its threads runs any more: the signal alone may
    take a moment, in which a store still answers. SIGCONT lets it go on."""
    def stands():
        states = [read(path).rpartition(b")")[2].split()[:1]
                  for path in glob.glob(f"/proc/{pid}/task/*/stat")]
        return all(state in ([], [b"T"], [b"Z"]) for state in states)

    os.kill(pid, signal.SIGSTOP)
    assert wait_for(stands, 10), f"process {pid} does not stop"


def crowd():
    """How many processes want each core, as the last minute had it: time limits are for a machine
    that has nothing else to do, and get longer by this factor."""
    return SCALE * min(max(os.getloadavg()[0] / os.cpu_count(), 1), CROWD_MAX)


def wait_for(condition, seconds=20):
    """The first true value of condition(), or its last false one."""
    began = time.monotonic()
    while True:
        value = condition()
        if value or time.monotonic() > began + seconds * crowd():
            return value
        time.sleep(0.02)


def folder(name=None):
    path = os.path.join(_folder, name or secrets.token_hex(3))
    os.makedirs(path, exist_ok=True)
    return path


def environment(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MILLRACE_")}
    env.update(SETTINGS)
    key, value = MARK.split("=")
    env[key] = value
    env.update(extra or {})
    return {k: v for k, v in env.items() if v is not None}


def run(*args, env=None, cwd=None, timeout=30, stdin=None):
    """A command that ends by itself."""
    return subprocess.run([BIN, *args], env=environment(env), cwd=cwd or folder(), text=True,
                          capture_output=True, timeout=timeout * crowd(), input=stdin,
                          start_new_session=True)


# --- HTTP on raw sockets ---

class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Client:
    """One connection; a request after the other."""
    name = "test"  # of the server, as it is asked for

    def __init__(self, port, host="127.0.0.1", timeout=20):
        self.s = socket.create_connection((host, port), timeout * crowd())
        self.buffer = b""

    def close(self):
        self.s.close()

    def send(self, data):
        self.s.sendall(data)

    def request(self, path, method="GET", body=b"", headers=()):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.name}", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return self.reply()

    def _fill(self):
        data = self.s.recv(65536)
        if not data:
            raise ConnectionError(
                "closed in mid-reply" if self.buffer else "closed without a reply")
        self.buffer += data

    def reply(self):
        while b"\r\n\r\n" not in self.buffer:
            self._fill()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        headers = {
            k.strip().lower(): v.strip() for k, _, v in (l.partition(":") for l in lines[1:])}
        n = int(headers.get("content-length", "0"))
        while len(self.buffer) < n:
            self._fill()
        body, self.buffer = self.buffer[:n], self.buffer[n:]
        return Reply(status, headers, body)


def http(port, path, **kw):
    c = Client(port)
    try:
        return c.request(path, **kw)
    finally:
        c.close()


# --- servers ---

def template(papers="0"):
    """A data directory that has been started once, with a sample of so many papers; copied, it
    starts faster than a new one. Beside the program, for the tests of all files: the first that
    needs it makes it."""
    program = os.stat(BIN)
    path = f"{BIN}.template"
    build = f"{program.st_mtime_ns}-{program.st_size}-"
    made = f"{path}/{build}{papers}"
    os.makedirs(path, exist_ok=True)
    data = copy_of_template() if papers != "0" and not os.path.exists(made) else folder("first")
    with open(f"{path}/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(made):
            for other in os.listdir(path):
                if not other.startswith(build):
                    shutil.rmtree(f"{path}/{other}", ignore_errors=True)
            env = {"MILLRACE_NODES": "1", "MILLRACE_SAMPLE_PAPERS": papers}
            with Millrace(data=data, env=env) as m:
                assert wait_for(m.ready, 60), m.log()
            copy(m.data, f"{path}/new")
            os.rename(f"{path}/new", made)
    return made


def copy(source, path):
    os.makedirs(path, exist_ok=True)
    subprocess.run(["cp", "-a", "--sparse=always", source + "/.", path], check=True)


def copy_of_template(papers="0"):
    path = folder()
    copy(template(papers), path)
    return path


class Millrace:
    """One server. Use as a context manager, or start() and stop(). mysql: what it uses instead of
    a private MariaDB (own_mysql.py). loaded: its sample of papers is there before it starts."""

    def __init__(self, data=None, env=None, args=(), binary=BIN, listen="127.0.0.1:0", config=None,
                 mysql=None, loaded=False):
        if MYSQL and not mysql and "MILLRACE_MYSQL_URL" not in (env or {}):
            from own_mysql import lent
            data = data or folder()
            mysql = lent(MYSQL, data, environment(env))
        papers = environment(env)["MILLRACE_SAMPLE_PAPERS"] if loaded else "0"
        self.data = data or (folder() if mysql else copy_of_template(papers))
        self.stores = {"MILLRACE_DATA_DIR": self.data, **(mysql.env if mysql else {})}
        self.sql_socket = mysql.socket if mysql else f"{self.data}/run/mariadb.sock"
        self.database = mysql.database if mysql else "millrace"
        self.sample = getattr(mysql, "sample", None) or f"{self.data}/sample"
        self.cwd = folder()
        self.binary = binary
        self.env = environment({**self.stores, **(env or {})})
        self.args = list(args)
        if listen:
            self.args += ["--listen", listen]
        if config is not None:
            self.write_config(config)
        self.process = None
        self.port = None

    def write_config(self, text):
        with open(os.path.join(self.cwd, "config.json"), "w") as f:
            f.write(text)

    def launch(self, **popen):
        """Starts it without waiting."""
        self.out = open(os.path.join(self.cwd, "out"), "a+")
        self.err = open(os.path.join(self.cwd, "err"), "a+")
        popen.setdefault("start_new_session", True)
        popen.setdefault("stdout", self.out)
        popen.setdefault("stderr", self.err)
        self.process = subprocess.Popen([self.binary, "serve", *self.args], cwd=self.cwd,
                                        env=self.env, stdin=subprocess.DEVNULL, **popen)
        return self

    def start(self, timeout=60):
        self.launch()
        return self.wait_ready(timeout)

    def wait_ready(self, timeout=60):
        wait_for(lambda: self._find_port() or self.process.poll() is not None, timeout)
        if not self.port:
            raise AssertionError(f"the server is not ready\n{self.log()}")
        return self

    def _find_port(self):
        found = re.findall(r"millrace (?:is ready|serves) at http://[^/\n]*?:(\d+)[;,\n]",
                           self.output() + self.log())
        self.port = int(found[-1]) if found else None
        return self.port

    def output(self):
        return read(os.path.join(self.cwd, "out")).decode("utf-8", "replace")

    def log(self):
        return read(os.path.join(self.cwd, "err")).decode("utf-8", "replace")

    def get(self, path, **kw):
        return http(self.port, path, **kw)

    def ready(self):
        try:
            return self.get("/readyz").status == 200
        except (OSError, ConnectionError):
            return False

    def nodes(self):
        return self.children("millrace node")

    def children(self, begins):
        """Processes of this server whose command line begins so, by what the system says."""
        found = marked(f"MILLRACE_DATA_DIR={self.data}", self.data)
        return sorted(p for p, c in found.items() if c.startswith(begins))

    def pid_of(self, store):
        try:
            with open(f"{self.data}/run/{store}.pid") as f:
                return int(f.read())
        except (OSError, ValueError):
            return None

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM, timeout=40):
        self.send_signal(number)
        return self.wait(timeout)

    def wait(self, timeout=40):
        try:
            return self.process.wait(timeout * crowd())
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server does not end\n{self.log()}") from None

    def __enter__(self):
        try:
            return self if self.port else self.start()
        except AssertionError:
            self.process.kill()
            raise

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40 * crowd())
            except subprocess.TimeoutExpired:
                self.process.kill()
        if exc[0]:
            note(self.log())
        elif any(word in self.log() for word in ("Sanitizer", "runtime error", "check failed:")):
            ok(False, "neither a sanitizer nor a check() has anything to say", self.log())


def redis(server, *command):
    """One command to the private Redis of a server, by its own socket and password."""
    with open(f"{server.data}/secret/redis") as f:
        password = f.read().strip()
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(f"{server.data}/run/redis.sock")
    with s, s.makefile("rwb") as f:
        for words in (("AUTH", password), command):
            f.write(b"*%d\r\n" % len(words))
            for w in words:
                f.write(b"$%d\r\n%s\r\n" % (len(w), w.encode()))
        f.flush()
        f.readline()
        line = f.readline()
        if line.startswith(b"$") and line != b"$-1\r\n":
            line = f.read(int(line[1:]) + 2)
        return line.strip().decode()


class redis_link:
    """A connection to the private Redis of a server: link("HLEN", key). Bytes, numbers, None,
    lists."""

    def __init__(self, server):
        with open(f"{server.data}/secret/redis") as f:
            password = f.read().strip()
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        s.connect(f"{server.data}/run/redis.sock")
        self.file = s.makefile("rwb")
        self("AUTH", password)

    def __call__(self, *command):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in command]
        self.file.write(b"*%d\r\n" % len(words) +
                        b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        self.file.flush()
        return self._reply()

    def _reply(self):
        line = self.file.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise AssertionError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        return rest


def sql(server, statement, database=None):
    """Rows as lists of strings, asked by the administrator of a server's MariaDB."""
    done = subprocess.run([
        "mariadb", "--no-defaults", "-uroot", "-S", server.sql_socket, "-N", "-B",
        "--default-character-set=utf8mb4", database or server.database, "-e", statement],
                          capture_output=True, text=True, timeout=30 * crowd())
    if done.returncode:
        raise AssertionError(f"{statement}: {done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]
