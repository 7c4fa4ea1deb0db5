"""A private millrace to measure screening with: made-up papers, stores, a simulated AI, users and
runs.

Papers are made and loaded once; every measurement begins with a copy of those stores. Everything
lives below one temporary folder and ends with the script, by its pid.
"""
import contextlib
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

from resp import Redis

BIN = os.path.abspath(os.environ["MILLRACE_BIN"])
HERTZ = os.sysconf("SC_CLK_TCK")
FIRST_YEAR, LAST_YEAR = 2011, 2025
BLOCK_PAPERS = 100  # a unit each
JOURNAL_PAPERS = BLOCK_PAPERS * (LAST_YEAR - FIRST_YEAR + 1)
UNLIMITED = (2_000_000_000, 1_000_000_000_000)  # requests and tokens per minute of a key
IDLE_S = 20
PASSWORD = "correct horse"
BALANCE = "999999999.99"


class Trouble(Exception):
    pass


def wait_for(condition, seconds, what, pause=0.02):
    """The first true value of condition()."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Trouble(f"not after {seconds} s: {what}")
        time.sleep(pause)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def cpu_seconds(pid):
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / HERTZ


def waited_seconds(pid):
    """How long its first thread could have run and had no core."""
    return int(read(f"/proc/{pid}/schedstat").split()[1]) / 1e9


def memory_mb(pid):
    """What it has in RAM now, and the most it ever had."""
    text = read(f"/proc/{pid}/status")
    return [int(re.search(name + r":\s*(\d+)", text)[1]) / 1024 for name in ("VmRSS", "VmHWM")]


def end_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def process(log, *command, env=None):
    """In the background until the block ends."""
    with open(log, "a", encoding="utf-8") as out:
        p = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env,
                             cwd=os.path.dirname(log), start_new_session=True,
                             preexec_fn=end_with_us)
    try:
        yield p
    finally:
        p.terminate()
        try:
            p.wait(60)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


# --- papers ---

def pieces_of(folder):
    """Made-up entries, cut around year and DOI."""
    cut = re.compile(r'(@ARTICLE\{.*?year=)\d+(,.*?doi=")[^"]*(".*)', re.S)
    found = []
    for place, _, files in os.walk(os.path.join(folder, "Data")):
        for name in files:
            entries = read(os.path.join(place, name)).split("\n@")
            found += [cut.match(e if e.startswith("@") else "@" + e) for e in entries]
    pieces = [m.groups() for m in found if m]
    if not pieces:
        raise Trouble("millrace sample writes something else than expected")
    return pieces


def make_papers(folder, count):
    """Journals of 15 years with BLOCK_PAPERS each: the texts of a sample, with DOIs of their
    own."""
    sample = folder + ".sample"
    subprocess.run([BIN, "sample", "--papers", "10000", sample], check=True,
                   stdout=subprocess.DEVNULL)
    pieces = pieces_of(sample)
    shutil.rmtree(sample)
    journals = [f"BENCH {i}" for i in range(1, (count + JOURNAL_PAPERS - 1) // JOURNAL_PAPERS + 1)]
    number = 0
    for journal in journals:
        os.makedirs(f"{folder}/Data/{journal}")
        for year in range(FIRST_YEAR, LAST_YEAR + 1):
            with open(f"{folder}/Data/{journal}/{journal}-{year}.bib", "w", encoding="utf-8") as f:
                for _ in range(BLOCK_PAPERS):
                    number += 1
                    head, middle, tail = pieces[number * 7919 % len(pieces)]
                    f.write(f"{head}{year}{middle}10.5555/bench.{number}{tail}\n")
    os.makedirs(f"{folder}/PaperAndTagInfo")
    with open(f"{folder}/PaperAndTagInfo/InfoList.Paper.csv", "w", encoding="utf-8") as f:
        f.write("Name,FullName,DataRange,UpdateDate,Price\n")
        f.writelines(f"{j},{j},{FIRST_YEAR}-{LAST_YEAR},10/31/2025,1\n" for j in journals)
    return journals


class World:
    """The folder of all, and the loaded stores that every server starts from."""

    def __init__(self, papers):
        self.papers = papers

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="millrace-bench.", dir="/tmp")
        self.count = 0
        try:
            self._load()
        except BaseException:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.dir, ignore_errors=True)

    def _load(self):
        self.journals = make_papers(f"{self.dir}/papers", self.papers)
        self.papers = len(self.journals) * JOURNAL_PAPERS
        self.loaded = f"{self.dir}/loaded"
        os.mkdir(self.loaded)
        with Server(self, self.loaded, nodes=1, ai="http://127.0.0.1:1/v1") as s:
            s.tool("db", "init", "--data", f"{self.dir}/papers")
            s.tool("db", "warm")
        shutil.rmtree(f"{self.dir}/papers")

    def folder(self):
        self.count += 1
        path = f"{self.dir}/{self.count}"
        os.mkdir(path)
        return path

    def certificate(self):
        """Of the AI, for 127.0.0.1, and its key; ECDSA P-256."""
        cert, key = f"{self.dir}/sim.crt", f"{self.dir}/sim.key"
        if not os.path.exists(cert):
            subprocess.run([
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=sim", "-addext",
                "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key], check=True,
                           capture_output=True)
        return cert, key

    @contextlib.contextmanager
    def run(self, nodes=1, limits=UNLIMITED, sim=(), tls=False):
        """A server on a copy of the loaded stores, with one key, and its AI, which may speak TLS
        with a certificate that the server trusts."""
        cert, key = self.certificate() if tls else (None, None)
        if tls:
            sim = [*sim, "--tls-cert", cert, "--tls-key", key]
        data, log = self.folder(), f"{self.dir}/sim{self.count}.log"
        subprocess.run(["cp", "-a", "--sparse=always", f"{self.loaded}/.", data], check=True)
        try:
            with process(log, BIN, "sim", "--listen", "127.0.0.1:0", *sim) as p:
                url = wait_for(lambda: re.search(r"listens at (https?://\S+?)/?\n", read(log)), 10,
                               "the simulator")[1]
                with Server(self, data, nodes=nodes, ai=url + "/v1", ai_ca=cert) as s:
                    s.sim = Sim(p.pid, url, ca=cert)
                    s.add_key(*limits)
                    yield s
        finally:
            shutil.rmtree(data, ignore_errors=True)


# --- processes of a server ---

class Http:
    def __init__(self, url, token=None, ca=None):
        scheme, self.address = url.split("://")
        self.token = token
        if scheme == "https":
            trust = ssl.create_default_context(cafile=ca)
            self.connection = http.client.HTTPSConnection(self.address, timeout=60, context=trust)
        else:
            self.connection = http.client.HTTPConnection(self.address, timeout=60)
        self.used = time.monotonic()

    def ask(self, method, path, body=None):
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if time.monotonic() > self.used + IDLE_S:
            self.connection.close()  # the server may be about to; it opens again by itself
        self.used = time.monotonic()
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise Trouble(f"{method} {path}: {reply.status} {text[:400]!r}")
        return json.loads(text)


class Sim(Http):
    def __init__(self, pid, url, ca=None):
        super().__init__(url, ca=ca)
        self.pid = pid

    def stats(self):
        return self.ask("GET", "/stats")


class Server:
    def __init__(self, world, data, nodes, ai, ai_ca=None):
        self.world, self.data, self.nodes = world, data, nodes
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("MILLRACE_")}
        self.env |= {"MILLRACE_DATA_DIR": data, "MILLRACE_SAMPLE_PAPERS": "0",
                     "MILLRACE_DEMO_ACCOUNTS": "false", "MILLRACE_AI_URL": ai,
                     "MILLRACE_LISTEN": "127.0.0.1:0", "MILLRACE_NODES": str(nodes)}
        if ai_ca:
            self.env["MILLRACE_AI_CA_FILE"] = ai_ca
        self.log = data + ".log"

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        p = self.stack.enter_context(process(self.log, BIN, "serve", env=self.env))
        try:
            self.supervisor = p.pid
            self.url = wait_for(
                lambda: re.search(r"is ready at (http://\S+?)/?\n", read(self.log)) or p.poll() is
                not None and self._fail(), 120, "the server")[1]
            wait_for(lambda: read(self.log).count("Redis is filled") >= self.nodes, 120,
                     "Redis is filled", 0.1)
            wait_for(lambda: len(self.node_pids()) == self.nodes, 10, "nodes")
            self.redis_link = self.stack.enter_context(
                Redis(f"{self.data}/run/redis.sock", read(f"{self.data}/secret/redis").strip()))
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, kind, *exc):
        if kind is Trouble:
            print(*read(self.log).splitlines()[-30:], sep="\n", file=sys.stderr)
        self.stack.close()

    def _fail(self):
        raise Trouble("the server has ended: " + read(self.log)[-2000:])

    def tool(self, *words, stdin=""):
        done = subprocess.run([BIN, *words], env=self.env, input=stdin, capture_output=True,
                              text=True, timeout=600, cwd=self.world.dir)
        if done.returncode:
            raise Trouble(f"millrace {' '.join(words)}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        return done.stdout

    def sql(self, statement):
        env = {**self.env, "MYSQL_PWD": read(f"{self.data}/secret/mariadb").strip()}
        return subprocess.run([
            "mariadb", "--no-defaults", "-u", "millrace", "-S", f"{self.data}/run/mariadb.sock",
            "-N", "-B", "millrace", "-e", statement], env=env, check=True, text=True,
                              capture_output=True, timeout=60).stdout

    def redis(self, *words):
        env = {**self.env, "REDISCLI_AUTH": read(f"{self.data}/secret/redis").strip()}
        return subprocess.run(["redis-cli", "-s", f"{self.data}/run/redis.sock", *words], env=env,
                              check=True, text=True, capture_output=True,
                              timeout=60).stdout.strip()

    def add_key(self, requests, tokens):
        """These stores are a copy, so that Redis has begun anew, and the keys that were there count
        as used for a minute. One that comes later does not; 'at' tells that the nodes have
        looked."""
        before = self.redis("HGET", "sys:keyring", "at")
        wait_for(lambda: self.redis("HGET", "sys:keyring", "at") not in ("", before), 10,
                 "the keyring", 0.1)
        self.sql("DELETE FROM api_list")
        self.sql("INSERT INTO api_list (api_key, rpm_limit, tpm_limit)"
                 f" VALUES ('sk-bench', {requests}, {tokens})")
        time.sleep(2.5)  # each node looks every second, and gives nothing for two after a restart

    def node_pids(self):
        found = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and read(f"/proc/{name}/cmdline").replace(
                        "\0", " ").startswith("millrace node"):
                    parent = read(f"/proc/{name}/stat").rpartition(")")[2].split()[1]
                    found += [int(name)] if int(parent) == self.supervisor else []
        return sorted(found)

    def pids(self):
        store = lambda name: int(read(f"{self.data}/run/{name}.pid"))
        return {"node": self.node_pids(), "redis": [store("redis")], "mariadb": [store("mariadb")],
                "sim": [self.sim.pid]}

    def user(self, name, permission):
        self.tool("user", "add", name, "--balance", BALANCE, "--permission", str(permission),
                  stdin=PASSWORD + "\n")
        who = Http(self.url).ask("POST", "/api/login", {"username": name, "password": PASSWORD})
        return User(self, who["uid"], Http(self.url, who["token"]))


class User:
    def __init__(self, server, uid, connection):
        self.server, self.uid, self.http = server, uid, connection

    def submit(self, papers=None, question="Which treatment of heart failure works?"):
        """A run over so many papers, in whole journals."""
        journals = self.server.world.journals
        if papers is not None:
            journals = journals[:max(1, papers // JOURNAL_PAPERS)]
        qid = self.http.ask("POST", "/api/queries", {
            "question": question, "journals": journals, "year_from": FIRST_YEAR,
            "year_to": LAST_YEAR})["query_id"]
        return Run(self, qid)


class Run:
    def __init__(self, user, qid):
        self.user, self.path = user, "/api/queries/" + qid

    def show(self):
        v = self.user.http.ask("GET", self.path)
        if v["state"] == "FAILED":
            raise Trouble(f"the run has failed: {v['reason']}")
        return v

    def do(self, what):
        return self.user.http.ask("POST", f"{self.path}/{what}")["state"]

    def end(self):
        """Terminated, unless it has ended by itself."""
        with contextlib.suppress(Trouble):
            self.do("terminate")
        if self.show()["state"] not in ("CANCELLED", "DONE"):
            raise Trouble("the run does not end")
