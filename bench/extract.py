"""Measures extraction: fields of a template, out of many small documents, by the simulated AI.

submit   POST /api/tasks with 100 documents, and with 10,000: until the answer is there
latency  1,000 documents, AI at 200 ms, 100 at a time on one node: share of the ideal of two
         seconds, from the request to the last row that is completed
zero     AI without latency: documents per second, and CPU time of a document, beside BullMQ and
         pg-boss, in turns
close    from the end of a task's last row until the task is closed, beside 1,000 open tasks; and
         CPU time of MariaDB for the statements of one round of the aggregator with these

All have the same documents, prompt, simulated AI, and rows: pending, extracting, then completed
with the values. millrace also reserves, charges each document, and writes the charges into MariaDB;
the peers have no such thing. BullMQ has its rows in the MariaDB of millrace. pg-boss has them in
PostgreSQL, with its jobs; a commit is on disk in both (PG_SYNC=off: not in PostgreSQL). "load" is
how many processes wanted a core meanwhile: on a machine that is shared, only figures of the same
round compare. Prints a line of JSON.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from statistics import median

from figures import figure
from growth import Place
from screen_peers import NODE, PG_BIN, postgres, redis_server, simulator, tree_cpu
from screen_world import Server, Trouble, cpu_seconds, read, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
DIR = os.environ["PEERS_DIR"]
MILLRACE_NODES = 2  # at no latency; as it has by default on two cores
CONCURRENCY = 100   # of a peer; of all nodes of millrace together
LIMIT_S = 300
OPEN_TASKS = 1000
PAUSE_S = 0.1        # between submissions: each has the server alone
ROUNDS = 500         # of the aggregator's statements
FIELDS = [
    {"name": "dose", "type": "number", "unit": "mg", "required": True},
    {"name": "drugs", "type": "list", "of": "text"},
    {"name": "design", "type": "choice", "choices": ["RCT", "cohort"]},
    {"name": "patients", "type": "integer"},
]
WORDS = ("Patients with heart failure were assigned at random to one of two groups, and seen every "
         "four weeks by a physician who did not know which group they were in. ") * 12


def say(text):
    print(text, file=sys.stderr, flush=True)


def text_of(n):
    return (f"Trial number {n}.\n\n{WORDS}\nThe dose was {n % 97}.5 mg. Drugs: aspirin, heparin. "
            f"The design: RCT. Patients: {100 + n % 900}.\n")


def load():
    return os.getloadavg()[0]


# --- millrace ---

@contextlib.contextmanager
def millrace(options, nodes, latency_ms, concurrency):
    """A server of its own, with documents of one user, and its AI."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-bench.", dir="/tmp"))
        os.mkdir(f"{folder}/stores")
        sim = stack.enter_context(simulator(folder, latency_ms))
        server = Server(Place(folder), f"{folder}/stores", nodes=nodes,
                        ai=f"http://{sim.address}/v1")
        server.env |= {"MILLRACE_EXTRACT_CONCURRENCY": str(concurrency),
                       "MILLRACE_LIMIT_EXTRACTION_MINUTE": "0",
                       "MILLRACE_LIMIT_EXTRACTION_DAY": "0",
                       "MILLRACE_LIMIT_EXTRACTION_MONTH": "0"}
        stack.enter_context(server)
        server.sim = sim
        server.add_key(2_000_000_000, 1_000_000_000_000)
        yield Extraction(server, options.documents)


class Extraction:
    def __init__(self, server, documents):
        self.server = server
        self.user = server.user("bench", 1000)
        self.template = self.user.http.ask("POST", "/api/templates",
                                           {"name": "bench", "fields": FIELDS})["template_id"]
        self.ids = [f"{self.user.uid}-{n:032x}" for n in range(1, documents + 1)]
        add_documents(server, self.user.uid, documents)

    def submit(self, documents):
        """The task, and how long that took: ms."""
        began = time.perf_counter()
        reply = self.user.http.ask("POST", "/api/tasks", {
            "template_id": self.template, "document_ids": self.ids[:documents]})
        return reply["taskId"], (time.perf_counter() - began) * 1e3

    def cancel(self, task):
        self.user.http.ask("POST", f"/api/tasks/{task}/cancel")

    def done(self):
        return int(self.server.redis_link("HGET", "jobs:extract:state", "done") or 0)

    def work(self, documents):
        """Seconds from the request to the end of the last document, and the CPU time of each."""
        before, pids, began = self.done(), self.server.pids(), time.monotonic()
        used = {k: sum(map(cpu_seconds, p)) for k, p in pids.items()}
        task, _ = self.submit(documents)
        wait_for(lambda: self.done() - before >= documents, LIMIT_S, "documents are done", 0.01)
        seconds = time.monotonic() - began
        used = {k: (sum(map(cpu_seconds, p)) - used[k]) / documents * 1e6 for k, p in pids.items()}
        self.check(task, documents)
        return seconds, used

    def check(self, task, documents):
        """Each is completed, with a quote that was found, and paid."""
        rows = self.server.sql(
            "SELECT COUNT(*), SUM(JSON_VALUE(result, '$.dose.verified') = 'true' OR"
            " JSON_VALUE(result, '$.dose.verified') = 1) FROM extraction_result"
            f" WHERE id LIKE '{task}.%' AND state = 'completed'").split()
        paid = self.server.sql("SELECT COUNT(*) FROM ledger_request WHERE number IS NOT NULL"
                               f" AND request_id LIKE 'extract:{task}.%'").strip()
        if rows != [str(documents)] * 2 or paid != str(documents):
            raise Trouble(f"of {documents} rows {rows} are completed and verified, {paid} paid")


def add_documents(server, uid, count):
    """As uploads would leave them."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as f:
        for first in range(1, count + 1, 500):
            numbers = range(first, min(first + 500, count + 1))
            texts = {n: text_of(n) for n in numbers}
            rows = ",".join(
                f"({n}, '{uid}-{n:032x}', {uid}, '{n}.txt', 'text/plain', {len(texts[n])},"
                f" UNHEX(SHA2('{n}', 256)), 'file', {len(texts[n])}, UTC_TIMESTAMP(3),"
                " UTC_TIMESTAMP(3))" for n in numbers)
            f.write("INSERT INTO document (number, id, uid, name, media, bytes, digest, text_from,"
                    f" text_bytes, created_at, stored_at) VALUES {rows};\n")
            rows = ",".join(f"({n}, 'file', 0, '{texts[n]}')" for n in numbers)
            f.write(f"INSERT INTO document_piece (document, kind, place, bytes) VALUES {rows};\n")
        f.flush()
        server.sql(f"SOURCE {f.name}")


# --- parts: each returns what one round has found ---

def submit(options):
    few, many = [], []
    with millrace(options, 1, 60000, 1) as x:
        for i in range(220 // options.less):
            task, ms = x.submit(100)
            if i >= 10:
                few.append(ms)
            x.cancel(task)
            time.sleep(PAUSE_S)
        for _ in range(3):
            task, ms = x.submit(10_000)
            many.append(ms / 1e3)
            x.cancel(task)
    few.sort()
    return {"submit/few_p50_ms/millrace": few[len(few) // 2],
            "submit/few_p99_ms/millrace": few[int(len(few) * 0.99)],
            "submit/many_s/millrace": median(many), "submit/load/machine": load()}


def latency(options):
    ideal = 1000 / CONCURRENCY * 0.2
    with millrace(options, 1, 200, CONCURRENCY) as x:
        x.work(200)
        seconds, used = x.work(1000)
    return {"latency/share/millrace": ideal / seconds, "latency/node_us/millrace": used["node"],
            "latency/load/machine": load()}


def question(folder):
    """The request as millrace writes it, up to the document."""
    source = read(f"{HERE}/../src/app/extract/fields/prompt.c")
    said = {name: "".join(json.loads(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', text))
            for name, text in re.findall(r"char (task|rules)\[\] =\n(.*?);\n", source, re.S)}
    if set(said) != {"task", "rules"}:
        raise Trouble("src/app/extract/fields/prompt.c has no prompt any more that this can read")
    lines = "".join(json.dumps(f, separators=(",", ":")) + "\n" for f in FIELDS)
    request = {"model": "default", "temperature": 0, "max_tokens": 8000, "messages": [
        {"role": "system", "content": said["task"] + lines + said["rules"]},
        {"role": "user", "content": ""}]}
    head = json.dumps(request, ensure_ascii=False, separators=(",", ":")).removesuffix('""}]}')
    with open(f"{folder}/question", "w", encoding="utf-8") as f:
        json.dump({"head": head, "tail": "}]}", "fields": FIELDS}, f)
    return f"{folder}/question"


RESULT_COLUMNS = """number BIGINT NOT NULL PRIMARY KEY, id VARCHAR(64) NOT NULL UNIQUE,
    task BIGINT NOT NULL, place INT NOT NULL, uid INT NOT NULL, document_id VARCHAR(64),
    state VARCHAR(16) NOT NULL, result {text}, version BIGINT NOT NULL DEFAULT 1,
    created_at {time}(3) NOT NULL, changed_at {time}(3) NOT NULL"""
RESULT_ROWS = """INSERT INTO bench_result (number, id, task, place, uid, document_id, state,
    created_at, changed_at) SELECT {n}, CONCAT('bench.', {n}), 1, {n}, 1, CONCAT('1-', {n}),
    'pending', CURRENT_TIMESTAMP(3), CURRENT_TIMESTAMP(3) FROM """


class Peer:
    """Its queue and rows, of one round."""

    def __init__(self, who, x, documents, folder):
        self.who, self.x, self.documents, self.folder = who, x, documents, folder
        self.env = {**os.environ, "NODE_ENV": "production", "QUESTION": question(folder),
                    "AI_URL": "http://" + x.server.sim.address, "CONCURRENCY": str(CONCURRENCY)}

    def run(self, *words):
        done = subprocess.run(NODE + [f"{self.who}.mjs", *map(str, words)], env=self.env, cwd=DIR,
                              capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode:
            raise Trouble(f"{self.who} has failed: {(done.stdout + done.stderr)[-1500:]}")
        return done.stdout

    def measure(self, sql, stores):
        self.run("push", self.documents)
        before = tree_cpu(stores)
        found = json.loads(self.run("work", self.documents).splitlines()[-1])
        stores_us = (tree_cpu(stores) - before) / self.documents * 1e6
        ended = sql("SELECT COUNT(*) FROM bench_result WHERE state = 'completed' AND result LIKE"
                    " '%\"verified\":true%'").strip()
        if ended != str(self.documents):
            raise Trouble(f"{self.who} has completed {ended} of {self.documents} documents")
        own = found["cpu_us"] / self.documents
        return {"per_s": self.documents / found["seconds"], "own_us": own,
                "all_us": own + stores_us}


def bullmq(x, documents, folder):
    """In the MariaDB of millrace, whose nodes have nothing to do; Redis of its own."""
    server, peer = x.server, Peer("bullmq", x, documents, folder)
    columns = RESULT_COLUMNS.format(text="MEDIUMTEXT", time="DATETIME")
    server.sql("DROP TABLE IF EXISTS bench_result, bench_piece;"
               f"CREATE TABLE bench_result ({columns},"
               " KEY of_task (task, state), KEY in_line (state, number),"
               " KEY changes (state, changed_at));"
               f"{RESULT_ROWS.format(n='seq')} seq_1_to_{documents};"
               "CREATE TABLE bench_piece LIKE document_piece;"
               "INSERT INTO bench_piece SELECT * FROM document_piece"
               f" WHERE document <= {documents}")
    mariadb = server.pids()["mariadb"]
    with redis_server(folder) as (pid, path, _):
        peer.env |= {"REDIS_SOCKET": path, "MYSQL_SOCKET": f"{server.data}/run/mariadb.sock",
                     "MYSQL_PWD": read(f"{server.data}/secret/mariadb").strip()}
        return peer.measure(server.sql, [pid, *mariadb])


def pgboss(x, documents, folder):
    peer = Peer("pgboss", x, documents, folder)
    with postgres(folder) as (pid, path):
        peer.env["PGHOST"] = path

        def sql(statement):
            done = subprocess.run([f"{PG_BIN}/psql", "-q", "-A", "-t", "-h", path, "-U", "postgres",
                                   "-v", "ON_ERROR_STOP=1"], input=statement, text=True,
                                  capture_output=True, timeout=60)
            if done.returncode:
                raise Trouble(f"PostgreSQL: {done.stderr[-500:]}")
            return done.stdout

        wait_for(lambda: not subprocess.run([f"{PG_BIN}/psql", "-h", path, "-U", "postgres", "-c",
                                             "SELECT 1"], capture_output=True).returncode, 30,
                 "PostgreSQL answers", 0.2)
        sync = os.environ.get("PG_SYNC", "on")
        pieces = ",".join(f"({n}, 0, '{text_of(n)}')" for n in range(1, documents + 1))
        sql(f"ALTER SYSTEM SET synchronous_commit = {sync};\nSELECT pg_reload_conf();\n"
            f"CREATE TABLE bench_result ({RESULT_COLUMNS.format(text='TEXT', time='TIMESTAMP')});"
            "CREATE INDEX ON bench_result (task, state); CREATE INDEX ON bench_result"
            " (state, number); CREATE INDEX ON bench_result (state, changed_at);"
            f"{RESULT_ROWS.format(n='n')} generate_series(1, {documents}) n;"
            "CREATE TABLE bench_piece (document BIGINT, place INT, bytes BYTEA NOT NULL,"
            f" PRIMARY KEY (document, place)); INSERT INTO bench_piece VALUES {pieces};")
        return peer.measure(sql, [pid])


PEERS = {"bullmq": bullmq, "pgboss": pgboss}


def zero(options):
    """All in the same minute, with the same AI."""
    found, documents = {}, options.documents // 2
    with millrace(options, MILLRACE_NODES, 0, CONCURRENCY // MILLRACE_NODES) as x:
        x.work(500)
        seconds, used = x.work(documents)
        found |= {"zero/per_s/millrace": documents / seconds, "zero/own_us/millrace": used["node"],
                  "zero/all_us/millrace": used["node"] + used["redis"] + used["mariadb"],
                  "zero/redis_us/millrace": used["redis"],
                  "zero/mariadb_us/millrace": used["mariadb"], "zero/load/machine": load()}
        for who, measure in PEERS.items():
            folder = tempfile.mkdtemp(prefix="millrace-bench.", dir="/tmp")
            try:
                for k, v in measure(x, documents, folder).items():
                    found[f"zero/{k}/{who}"] = v
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return found


# --- the aggregator ---

def open_tasks(x, count):
    """With a row each that no queue has heard of: it was changed long ago."""
    uid = x.user.uid + 1
    x.server.sql(
        "INSERT INTO extraction_task (number, id, uid, template_id, template_version,"
        " template_name, fields, total_count, status, cents, model, asked, created_at) SELECT"
        f" 1000000 + seq, CONCAT('{uid}-', seq), {uid}, 'pico', 1, '', '[]', 1, 'processing', 0,"
        f" '', '', '2020-01-01' FROM seq_1_to_{count};"
        "INSERT INTO extraction_result (number, id, task, place, uid, state, priority, cents,"
        " created_at, changed_at) SELECT (1000000 + seq) * 16384 + 1,"
        f" CONCAT('{uid}-', seq, '.1'), 1000000 + seq, 1, {uid}, 'pending', 1, 0, '2020-01-01',"
        f" '2020-01-01' FROM seq_1_to_{count}")


def round_statements():
    """Both of a round of the aggregator, as close.c has them."""
    source = read(f"{HERE}/../src/app/extract/task/close.c")
    rounds = int(re.search(r"CLOSE_ROUNDS\s+(\d+)",
                           read(f"{HERE}/../src/app/extract/extract.h"))[1])
    found = ["".join(json.loads(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', text))
             for text in re.findall(r'&r,\s*((?:"[^"]*"\s*)+),\s*sql_int\((?:first|l->after)\)',
                                    source)]
    both = {text.startswith("SELECT k."): text for text in found if text.startswith("SELECT")}
    if set(both) != {True, False}:
        raise Trouble("src/app/extract/task/close.c has no statements any more that this can read")
    page = OPEN_TASKS // rounds + 1
    fill = lambda text, *values: re.sub(r"\?", lambda _, v=iter(values): str(next(v)), text)
    return fill(both[False], 1000000, page) + ";" + fill(both[True], 1000001, 1000000 + page)


def mariadb_seconds(x, work):
    """CPU time of MariaDB meanwhile."""
    pids = x.server.pids()["mariadb"]
    before = sum(map(cpu_seconds, pids))
    work()
    return sum(map(cpu_seconds, pids)) - before


def close(options):
    with millrace(options, 1, 0, 10) as x:
        x.work(20)
        open_tasks(x, OPEN_TASKS)
        for _ in range(20 // (2 if options.quick else 1)):
            x.work(3)
            time.sleep(0.37)
        waiting = ("SELECT COUNT(*) FROM extraction_task WHERE status = 'processing'"
                   " AND number < 1000000")
        wait_for(lambda: x.server.sql(waiting).strip() == "0", 30, "tasks are closed", 0.2)
        late = [float(s) for s in x.server.sql(
            "SELECT TIMESTAMPDIFF(MICROSECOND, MAX(r.changed_at), k.completed_at) / 1e6 FROM"
            " extraction_task k JOIN extraction_result r ON r.task = k.number WHERE"
            " k.number < 1000000 GROUP BY k.number").split()]
        idle = mariadb_seconds(x, lambda: time.sleep(2)) / 2
        statements, began = round_statements(), time.monotonic()
        with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as f:
            f.write(f"{statements};\n" * ROUNDS)
            f.flush()
            used = mariadb_seconds(x, lambda: x.server.sql(f"SOURCE {f.name}"))
        used -= idle * (time.monotonic() - began)
    return {"close/closed_s/millrace": max(late), "close/round_ms/millrace": used / ROUNDS * 1e3,
            "close/load/machine": load()}


# --- all ---

PARTS = {"submit": submit, "latency": latency, "zero": zero, "close": close}
UNITS = {"per_s": "/s", "us": "µs", "ms": "ms", "_s": "s", "share": "", "load": ""}
GOALS = {"submit/few_p99_ms": "<= 10", "submit/many_s": "<= 0.5", "latency/share": ">= 0.95",
         "zero/per_s": ">= 1.5x", "zero/own_us": "<= 60", "close/closed_s": "<= 11",
         "close/round_ms": "<= 1"}


def tell(found):
    line = {"bench": "extract"}
    for name, values in found.items():
        what, _, who = name.rpartition("/")
        unit = next(u for end, u in UNITS.items() if what.endswith(end))
        figure("extract/" + name, unit, [round(v, 3) for v in values],
               GOALS.get(what, "") if who == "millrace" else "")
        line[name.removesuffix("/millrace")] = round(median(values), 3)
    best = max((median(found[f"zero/per_s/{who}"]) for who in PEERS
                if f"zero/per_s/{who}" in found), default=0)
    if best and "zero/per_s/millrace" in found:
        line["ratio"] = round(median(found["zero/per_s/millrace"]) / best, 2)
    print(json.dumps(line), flush=True)


def main():
    p = argparse.ArgumentParser(prog="bench/extract", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS) + "; default: all")
    p.add_argument("--rounds", type=int, help="(default 3; 1 with --quick)")
    p.add_argument("--quick", action="store_true", help="with fewer documents")
    options = p.parse_args()
    unknown = [x for x in options.parts if x not in PARTS]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    options.less = 4 if options.quick else 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found, failed = {}, False
    for i in range(options.rounds or (1 if options.quick else 3)):
        for name in options.parts or PARTS:
            # A task has at most 10,000; half of them are worked on without latency.
            options.documents = 2000 if options.quick and name != "submit" else 10_000
            say(f"round {i + 1}, {name}; load {load():.1f}")
            try:
                r = PARTS[name](options)
            except (Trouble, OSError, subprocess.SubprocessError) as e:
                say(f"error: {name}: {e} {getattr(e, 'stderr', '') or ''}")
                failed = True
                continue
            say("    " + ", ".join(f"{k} {v:.4g}" for k, v in r.items()))
            for k, v in r.items():
                found.setdefault(k, []).append(v)
    tell(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    try:
        main()
    except Trouble as e:
        say(f"error: {e}")
        sys.exit(1)
