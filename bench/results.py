"""The measuring half of bench/results: results.py PORT DATA_DIR. Prints one line of JSON."""
import asyncio
import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import time

PORT, DATA = int(sys.argv[1]), sys.argv[2]
PEOPLE, PAPERS, MANY, RUNS = 100, 1000, 100_000, 1000


# --- the stores ---

def secret(name):
    with open(f"{DATA}/secret/{name}") as f:
        return f.read().strip()


def sql(statement):
    done = subprocess.run(["mariadb", "--no-defaults", "-u", "millrace", "-S",
                           f"{DATA}/run/mariadb.sock", "-N", "-B", "millrace"],
                          input=statement, capture_output=True, text=True,
                          env={**os.environ, "MYSQL_PWD": secret("mariadb")})
    if done.returncode:
        sys.exit(f"{statement[:200]}: {done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


class Redis:
    def __init__(self):
        s = socket.socket(socket.AF_UNIX)
        s.connect(f"{DATA}/run/redis.sock")
        self.file = s.makefile("rwb")
        self(["AUTH", secret("redis")])

    def __call__(self, *commands):
        for words in commands:
            words = [str(w).encode() for w in words]
            self.file.write(b"*%d\r\n" % len(words) +
                            b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        self.file.flush()
        for words in commands:
            line = self.file.readline()
            if line[:1] not in (b"+", b":"):
                sys.exit(f"{words[:2]}: {line}")


# --- people: each has a session and an archived run of PAPERS papers ---

def people():
    tokens = [hashlib.sha256(b"%d" % i).hexdigest() for i in range(PEOPLE)]
    sids = [hashlib.sha256(t.encode()).hexdigest() for t in tokens]
    first = 1000
    now, journals = "UTC_TIMESTAMP(3)", json.dumps(
        [{"name": n, "price": 1} for n, in sql("SELECT Name FROM contentlist")])
    params = json.dumps({"question": "Which catalysts split water?"})[:-1]
    params += f', "journals": {journals}}}'
    sessions = ", ".join(f"('{sid}', 'user', {first + i}, {now}, {now}, '127.0.0.1', '')"
                         for i, sid in enumerate(sids))
    people = f"seq_0_to_{PEOPLE - 1}"
    sql(f"""
        INSERT INTO user_info
            (uid, username, username_folded, password, permission, balance, move_no)
            SELECT {first} + seq, CONCAT('b', seq), CONCAT('b', seq), '', 1, 1000000, 1
            FROM {people};
        INSERT INTO billing_log (uid, source, number, kind, cents, at)
            SELECT {first} + seq, 'mysql', 1, 'opening', 100000000, {now} FROM {people};
        INSERT INTO session VALUES {sessions};
        INSERT INTO query_log (query_id, uid, status, archived, search_params, total_papers,
            finished_papers, relevant_papers)
            SELECT CONCAT('run', seq), {first} + seq, 'DONE', 1, '{params}',
                {PAPERS}, {PAPERS}, {PAPERS} FROM {people};
        INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result)
            SELECT {first} + seq, CONCAT('run', seq), DOI, CONCAT('meta:', journal, ':', year), 1,
                '{{"relevant":true,"reason":"The abstract names catalysts that split water."}}'
            FROM {people}
            JOIN (SELECT DOI, journal, year FROM paperinfo ORDER BY DOI LIMIT {PAPERS}) p;
        INSERT INTO query_log (query_id, uid, status, archived, search_params, created_at)
            SELECT CONCAT('old', seq), {first}, 'DONE', 1,
                '{{"question": "Which catalysts split water?"}}',
                {now} - INTERVAL seq MINUTE FROM seq_1_to_{RUNS};""")
    return first, tokens


# --- clients ---

class Client:
    def __init__(self, token):
        self.token = token

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", PORT)
        return self

    async def ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body else b""
        self.writer.write(f"{method} {path} HTTP/1.1\r\nHost: bench\r\n"
                          f"Content-Type: application/json\r\nAuthorization: Bearer "
                          f"{self.token}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        data = await self.reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
        if int(head.split()[1]) >= 300:
            sys.exit(f"{path}: {head.split()[1]} {data[:300]}")
        return data

    async def json(self, *request):
        return json.loads(await self.ask(*request))

    async def create(self, qid, kind):
        return (await self.json("POST", "/api/download/create",
                                {"query_id": qid, "type": kind, "scope": "all"}))["task_id"]

    async def ready(self, task, pause):
        while (state := (await self.json(
                "GET", f"/api/download/status?task_id={task}"))["state"]) != "READY":
            if state == "FAILED":
                sys.exit("a download has failed")
            await asyncio.sleep(pause)


def p99(times):
    return sorted(times)[len(times) * 99 // 100]


def built():
    """Files, and seconds that building them took, over all nodes."""
    async def metrics():
        return (await (await Client("").open()).ask("GET", "/metrics")).decode()
    text = asyncio.run(metrics())
    value = lambda name: sum(
        float(v) for v in re.findall(rf"^millrace_download_build_seconds_{name}(?:{{.*}})? (\S+)$",
                                     text, re.M))
    return value("count"), value("sum")


# --- one after the other ---

def one_file(token, kind):
    async def fetch():
        client = await Client(token).open()
        took = []
        for _ in range(12):
            began = time.perf_counter()
            task = await client.create("run0", kind)
            await client.ready(task, 0.001)
            data = await client.ask("GET", f"/api/download/file?task_id={task}")
            took.append((time.perf_counter() - began) * 1e3)
        return statistics.median(took), len(data)
    count, seconds = built()
    had, size = asyncio.run(fetch())
    files, more = built()
    return {
        "server_ms": round((more - seconds) * 1e3 / (files - count), 2), "had_ms": round(had, 2),
        "bytes": size}


def history(token):
    async def pages():
        client, took = await Client(token).open(), []
        for _ in range(500):
            began = time.perf_counter()
            page = await client.json("GET", "/api/queries?limit=20")
            took.append((time.perf_counter() - began) * 1e3)
        assert len(page["queries"]) == 20 and page["next"] and not page.get("degraded")
        return took
    took = asyncio.run(pages())
    return round(statistics.median(took), 2), round(p99(took), 2)


# --- everybody at once ---

def probe(token, ended, out):
    with contextlib.suppress(PermissionError):
        os.nice(-10)  # what is measured is the server, not whether the client gets its turn

    async def me():
        client, took = await Client(token).open(), []
        while not ended.is_set():
            began = time.perf_counter()
            await client.ask("GET", "/api/me")
            took.append((time.perf_counter() - began) * 1e3)
            await asyncio.sleep(0.002)
        return took
    out.put(asyncio.run(me()))


def probed(token, what):
    """What it returns, and p99 of GET /api/me meanwhile, by a process of its own."""
    ended, out = multiprocessing.Event(), multiprocessing.Queue()
    process = multiprocessing.Process(target=probe, args=(token, ended, out))
    process.start()
    try:
        result = what()
    finally:
        ended.set()
        took = out.get(timeout=10)
        process.join()
    return result, round(p99(took), 2)


def everybody(tokens):
    async def all_of_them():
        clients = [await Client(t).open() for t in tokens]
        await asyncio.gather(*(c.ask("GET", "/api/me") for c in clients))
        began = time.perf_counter()
        tasks = await asyncio.gather(
            *(c.create(f"run{i}", ("csv", "bib", "ris")[i % 3]) for i, c in enumerate(clients)))
        await asyncio.gather(*(c.ready(task, 0.25) for c, task in zip(clients, tasks)))
        return time.perf_counter() - began
    return asyncio.run(all_of_them())


# --- archive, distillation ---

def archive(uid):
    """A run that has ended in Redis: results/s from the first row in search_result to archived =
    1."""
    redis, qid, changed = Redis(), "large", int(time.time() * 1000)
    blocks = [
        b for b, in sql("SELECT CONCAT('meta:', journal, ':', year) FROM corpus_block LIMIT 200")]
    for first in range(0, MANY, 1000):
        words = ["HSET", f"result:{uid}:{qid}"]
        for i in range(first, first + 1000):
            words += [f"10.5555/bench.{i}",
                      json.dumps({
                          "ai_result": {"relevant": True, "reason": "The abstract names it."},
                          "block_key": blocks[i % len(blocks)]})]
        redis(words)
    redis([
        "HSET", f"query:{uid}:{qid}:status", "state", "DONE", "changed", changed, "total_blocks", 1,
        "finished_blocks", 1, "papers", MANY, "finished", MANY, "relevant", MANY])
    # Only now: a row that is DONE, and not so in Redis, would be set to work again.
    sql(f"""SET time_zone = '+00:00';
        INSERT INTO query_log (query_id, uid, status, search_params, changed_at, total_papers)
            SELECT '{qid}', {uid}, 'DONE', search_params, FROM_UNIXTIME({changed} / 1000), {MANY}
            FROM query_log WHERE query_id = 'run0'""")
    while not sql(f"SELECT 1 FROM search_result WHERE query_id = '{qid}' LIMIT 1"):
        time.sleep(0.01)
    began = time.perf_counter()
    while not sql(f"SELECT 1 FROM query_log WHERE query_id = '{qid}' AND archived = 1"):
        time.sleep(0.02)
    return round(MANY / (time.perf_counter() - began))


def distil(token):
    async def submit():
        client = await Client(token).open()
        began = time.perf_counter()
        told = await client.json("POST", "/api/distill/estimate", {"original_query_id": "large"})
        middle = time.perf_counter()
        await client.json("POST", "/api/distill",
                          {"original_query_id": "large", "question": "And which of them last?"})
        assert told["papers"] == MANY
        return round((middle - began) * 1e3, 1), round((time.perf_counter() - middle) * 1e3, 1)
    return asyncio.run(submit())


def main():
    load = os.getloadavg()[0]
    uid, tokens = people()
    out = {"bench": "results", "papers": PAPERS}
    for kind in ("csv", "bib", "ris"):
        out[kind] = one_file(tokens[0], kind)
    out["history_ms"], out["history_p99_ms"] = history(tokens[0])
    all_ready, meanwhile = probed(tokens[-1], lambda: everybody(tokens))
    out.update(people=PEOPLE, all_ready_s=round(all_ready, 2), me_p99_ms_meanwhile=meanwhile)
    out["archive_results_per_s"], out["me_p99_ms_while_archiving"] = probed(
        tokens[-1], lambda: archive(uid))
    (out["distill_estimate_ms"],
     out["distill_submit_ms"]), _ = probed(tokens[-1], lambda: distil(tokens[0]))
    out.update(distilled=MANY, load_before=round(load, 1))
    print(json.dumps(out))


main()
