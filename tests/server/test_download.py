"""Downloads over HTTP, on real stores: what other programs make of the files, who may have them,
the old routes."""
import base64
import concurrent.futures
import csv
import gzip
import http.client
import io
import json
import os
import re
import signal
import subprocess
import time
import urllib.parse

from client import PASSWORD, Api, cli, with_server
from harness import alive, equal, folder, freeze, note, ok, redis_link, run_tests, sql, wait_for

HOSTILE = {
    "10.5555/a": '@article{dup,\n  title = {=cmd|\' /C calc\'!A0},\n'
                 '  author = {+Eve and {Barnes and Noble, Inc.}},\n year = 2024}',
    "10.5555/b": '@article{dup2, title = "Say {"}hi{"}, {\\"o} and 50\\%",\r\n'
                 '  abstract = {二氧化碳，😀\n\nwith\ttabs},\n journal = jn, year = 2024}',
    "10.5555/c": '@inproceedings{c3, title = {Unclosed $\\frac{1}{ \\textbf{x}} and @ signs},'
                 ' booktitle = {中文会议}, pages = {1--9}, year = 2024}',
    "made-up/0123456789abcdef0123456789abcdef":
        '@misc{m4, title = {No DOI}, author = {Ludwig van Beethoven}, year = 2024}',
}
STRINGS = '@string{jn = "Journal of {N}oise"}\n'


class User(Api):
    def __init__(self, server, name, balance="0.00"):
        super().__init__(server)
        added = cli(server, "user", "add", name, "--balance", balance, "--permission", "10",
                    stdin=PASSWORD + "\n")
        assert added.returncode == 0, added
        self.uid = self.login(name).body["uid"]

    def call(self, method, path, body=None, **more):
        """A reply that need not be JSON, and may be chunked. more: headers."""
        c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        headers = {"Authorization": "Bearer " + self.token,
                   **{name.replace("_", "-"): value for name, value in more.items()}}
        if body is not None:
            headers["Content-Type"] = "application/json"
        c.request(method, path, json.dumps(body) if body is not None else None, headers)
        r = c.getresponse()
        r.content = r.read()
        c.close()
        return r

    def create(self, qid, kind, scope="relevant"):
        return self("POST", "/api/download/create",
                    {"query_id": qid, "type": kind, "scope": scope}).body["task_id"]

    def status(self, task):
        return self("GET", f"/api/download/status?task_id={task}").body

    def ready(self, task):
        wait_for(lambda: self.status(task)["state"] in ("READY", "FAILED"), 30)
        return self.status(task)

    def file(self, qid, kind, scope="relevant"):
        task = self.create(qid, kind, scope)
        status = self.ready(task)
        assert status["state"] == "READY", status
        return self.call("GET", f"/api/download/file?task_id={task}")


def archive(server, uid, qid, question="Is it wet?", where="1"):
    """A run that is done and archived: every paper of the corpus, each second one relevant, each
    tenth failed."""
    params = json.dumps({"question": question}).replace("\\", "\\\\").replace("'", "''")
    sql(server, f"""
        INSERT INTO query_log (query_id, uid, status, archived, search_params, total_papers,
            finished_papers, relevant_papers)
            SELECT '{qid}', {uid}, 'DONE', 1, '{params}', COUNT(*), COUNT(*), 0
            FROM paperinfo WHERE {where};
        INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result)
            SELECT {uid}, '{qid}', DOI, CONCAT('meta:', journal, ':', year),
                IF(n % 10 = 9, NULL, n % 2 = 0),
                IF(n % 10 = 9, '{{"error":"timeout"}}',
                   CONCAT('{{"relevant":', IF(n % 2 = 0, 'true', 'false'),
                          ',"reason":"=because \\\\"it\\\\" is, 是"}}'))
            FROM (SELECT DOI, journal, year, ROW_NUMBER() OVER (ORDER BY DOI) - 1 AS n
                  FROM paperinfo WHERE {where}) p;
        UPDATE query_log SET relevant_papers = (SELECT COUNT(*) FROM search_result r
            WHERE r.query_id = '{qid}' AND relevant = 1) WHERE query_id = '{qid}'""")


def add_hostile(server):
    for doi, bib in HOSTILE.items():
        paper = {"journal": "HOSTILE", "year": 2024, "file": "h.bib", "bib": bib}
        if "jn" in bib:
            paper["strings"] = STRINGS
        text = json.dumps(paper, ensure_ascii=False).replace("\\", "\\\\").replace("'", "''")
        sql(server, f"INSERT INTO paperinfo (DOI, Bib) VALUES ('{doi}', '{text}')")
    sql(server, "INSERT INTO corpus_block (journal, year, papers, digest)"
        f" VALUES ('HOSTILE', 2024, {len(HOSTILE)}, 1)")


def rows_of(reply):
    return list(csv.reader(io.StringIO(reply.content.decode("utf-8-sig"), newline="")))


def external(program, data):
    """What a program of bibutils says of a file: its records, and how many it found."""
    done = subprocess.run([program], input=data, capture_output=True, timeout=60)
    found = re.search(rb"Processed (\d+) references", done.stderr)
    return done.stdout.decode("utf-8-sig"), int(found[1]) if found else -1, done.stderr


def pybtex(data):
    """Keys, and one title and journal, as pybtex reads them."""
    path = folder() + "/x.bib"
    with open(path, "wb") as f:
        f.write(data)
    program = ("import json, sys; from pybtex.database import parse_file\n"
               "d = parse_file(sys.argv[1], 'bibtex')\n"
               "print(json.dumps({k: dict(e.fields) for k, e in d.entries.items()}))")
    # Debian's packages are for Debian's Python.
    done = subprocess.run(["/usr/bin/python3", "-c", program, path], capture_output=True, text=True,
                          timeout=60)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


@with_server("files that other programs read")
def _(m):
    real(m)
    parts(m)
    hostile(m)


def parts(m):
    """A file that is held can be had in parts, or compressed, but a part is not compressed."""
    u = User(m, "patient")
    archive(m, u.uid, "p1")
    task = u.create("p1", "bib", "all")
    u.ready(task)
    path = f"/api/download/file?task_id={task}"
    whole = u.call("GET", path)
    size, tag = len(whole.content), whole.headers["ETag"]
    equal((whole.headers["Accept-Ranges"], whole.headers["Vary"]), ("bytes", "Accept-Encoding"),
          "parts are offered")
    half = size // 2
    r = u.call("GET", path, Range=f"bytes={half}-", If_Range=tag, Accept_Encoding="gzip")
    equal((r.status, r.headers["Content-Range"], r.headers["Content-Encoding"], r.headers["ETag"]),
          (206, f"bytes {half}-{size - 1}/{size}", None, tag), "the second half")
    equal(r.content, whole.content[half:], "is the second half")
    equal(u.call("GET", path, Range="bytes=-7").content, whole.content[-7:], "the end")
    equal(u.call("GET", path, Range="bytes=0-1,5-6").content, whole.content, "several are all")
    equal(u.call("GET", path, Range="bytes=0-1", If_Range='"other"').content, whole.content,
          "of another file all")
    r = u.call("GET", path, Range=f"bytes={size}-")
    equal((r.status, r.headers["Content-Range"]), (416, f"bytes */{size}"), "beyond the end")
    equal(u.call("GET", path, If_None_Match=tag).status, 304, "the same as before")
    r = u.call("GET", path, Accept_Encoding="gzip")
    equal(gzip.decompress(r.content), whole.content, "compressed")
    ok(r.headers["Content-Encoding"] == "gzip" and r.headers["ETag"] not in (None, tag)
       and not r.headers["Accept-Ranges"] and len(r.content) < size / 2, "which has no parts",
       r.headers)
    r = u.call("HEAD", path, Range="bytes=0-1")
    equal((r.status, int(r.headers["Content-Length"])), (200, size), "HEAD has no parts")
    r = u.call("GET", "/api/download_bib?query_id=p1&scope=all", Range="bytes=0-1")
    equal((r.status, r.headers["Accept-Ranges"], r.content), (200, None, whole.content),
          "a file that each request builds anew has none")
    r = u.call("GET", "/api/download_bib?query_id=p1&scope=all", Accept_Encoding="gzip")
    equal(gzip.decompress(r.content), whole.content, "but is compressed")


def real(m):
    u = User(m, "reader")
    archive(m, u.uid, "q1", "二氧化碳 and \"water\"?")
    total = int(sql(m, "SELECT COUNT(*) FROM paperinfo")[0][0])
    relevant = int(sql(m, "SELECT COUNT(*) FROM search_result WHERE relevant = 1")[0][0])
    r = u.file("q1", "csv")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    equal(r.headers["Content-Type"], "text/csv; charset=utf-8", "CSV")
    equal(int(r.headers["Content-Length"]), len(r.content), "its length is told")
    name = f"millrace-二氧化碳-and-water-{today}-relevant.csv"
    ok(f'filename="millrace-and-water-{today}-relevant.csv"' in r.headers["Content-Disposition"]
       and urllib.parse.quote(name) in r.headers["Content-Disposition"], "its name",
       r.headers["Content-Disposition"])
    ok(r.content.startswith(b"\xef\xbb\xbf"), "a byte order mark, for Excel")
    rows = rows_of(r)
    equal(rows[0], ["doi", "title", "authors", "journal", "year", "verdict", "reason", "abstract",
                    "simulated"],
          "columns")
    equal((len(rows) - 1, {len(x) for x in rows}, {x[5] for x in rows[1:]}),
          (relevant, {9}, {"relevant"}), "rows")
    ok(all(x[1] and x[2] and x[6] == "'=because \"it\" is, 是" for x in rows[1:]),
       "titles, authors, reasons")
    rows = rows_of(u.file("q1", "csv", "all"))
    equal((len(rows) - 1, {x[5] for x in rows[1:]}),
          (total, {"relevant", "not relevant", "failed"}), "all of them")

    r = u.file("q1", "bib")
    equal(r.headers["Content-Type"], "application/x-bibtex; charset=utf-8", "BibTeX")
    stored = [json.loads(base64.b64decode(row[0].replace("\\n", "")))["bib"] for row in sql(
        m, "SELECT TO_BASE64(Bib) FROM paperinfo JOIN search_result r ON r.doi = paperinfo.DOI"
        " WHERE relevant = 1")]
    text = r.content.decode()
    ok(len(stored) == relevant and all(b in text for b in stored), "entries are byte for byte")
    found = pybtex(r.content)
    equal(len(found), relevant, "pybtex reads them", str(found)[:300])
    xml, count, err = external("bib2xml", r.content)
    equal(count, relevant, "so does bibutils", err[:300])

    r = u.file("q1", "ris")
    equal(r.headers["Content-Type"], "application/x-research-info-systems; charset=utf-8", "RIS")
    xml, count, err = external("ris2xml", r.content)
    equal(count, relevant, "bibutils reads it", err[:300])
    equal((xml.count("<title>") >= relevant, xml.count("journal article")), (True, relevant),
          "titles of articles")


def hostile(m):
    u = User(m, "hostile")
    add_hostile(m)
    archive(m, u.uid, "h1", "x", "DOI LIKE '10.5555/_' OR DOI LIKE 'made-up/0123%'")
    sql(m, "UPDATE search_result SET relevant = 1,"
        " ai_result = '{\"relevant\": true, \"reason\": \"\\\\n=1+1\"}' WHERE query_id = 'h1'")
    rows = {x[0]: x for x in rows_of(u.file("h1", "csv"))[1:]}
    equal(sorted(rows), sorted(HOSTILE), "every paper is in the table, in a row of its own")
    equal(rows["10.5555/a"][1:3], ["'=cmd|' /C calc'!A0", "'+Eve and Barnes and Noble, Inc."],
          "no formulas")
    equal(rows["10.5555/b"][7], "二氧化碳，😀 with tabs", "text in one line")
    ok(all(x[6] == "'=1+1" for x in rows.values()), "nor in what the AI said", rows)
    data = u.file("h1", "bib").content
    ok(all(b.encode() in data for b in HOSTILE.values()), "entries are byte for byte", data)
    equal(data.count(STRINGS.encode()), 1, "with the @string that one needs")
    found = pybtex(data)
    ok(isinstance(found, dict) and set(found) == {"dup", "dup2", "c3", "m4"}
       and found["dup2"]["journal"] == "Journal of {N}oise", "pybtex reads them", found)
    data = u.file("h1", "ris").content
    xml, count, err = external("ris2xml", data)
    equal(count, len(HOSTILE), "four records", err)
    ok("<namePart type=\"family\">van Beethoven</namePart>" in xml and "二氧化碳，😀 with tabs" in xml
       and "<start>1</start>" in xml, "as they should be", xml)
    ok(b"made-up" not in data, "what was made up is no DOI")


@with_server("whose they are, limits, the old routes")
def _(m):
    whose(m)
    at_once(m)


def whose(m):
    u, other = User(m, "owner"), User(m, "other")
    archive(m, u.uid, "q1")
    task = u.create("q1", "ris")
    equal(u.ready(task)["state"], "READY", "the owner's is READY")
    equal(other.call("GET", f"/api/download/status?task_id={task}").status, 404,
          "another user sees no status")
    equal(other.call("GET", f"/api/download/file?task_id={task}").status, 404, "gets no file")
    equal(other.call("POST", "/api/download/create", {"query_id": "q1", "type": "csv"}).status, 404,
          "and no run")
    for path in ("/api/download_csv?query_id=q1", "/api/download_bib?query_id=q1"):
        equal(other.call("GET", path).status, 404, f"nor by {path}")
    for task in ("x", "0" * 32, "..%2f" * 4, "%00"):
        ok(u.call("GET", f"/api/download/status?task_id={task}").status in (400, 404),
           f"no task {task}")
    for body in ({}, {"query_id": "q1"}, {"query_id": "q1", "type": "pdf"},
                 {"query_id": 1, "type": "csv"}, {"query_id": "q1", "type": "csv", "scope": "some"},
                 {"query_id": "q1", "type": "csv", "x": 1}):
        equal(u.call("POST", "/api/download/create", body).status, 400, f"refused: {body}")
    nobody = http.client.HTTPConnection("127.0.0.1", m.port)
    nobody.request("GET", "/api/download/file?task_id=" + "0" * 32)
    equal(nobody.getresponse().status, 401, "nothing without a session")
    redis = redis_link(m)
    now = int(time.time() * 1000)
    redis("HSET", "jobs:download:users", u.uid, 20)
    r = u.call("POST", "/api/download/create", {"query_id": "q1", "type": "csv"})
    equal(r.status, 429, "not with twenty waiting", r.content)
    redis("HDEL", "jobs:download:users", u.uid)
    redis("ZADD", f"user:{u.uid}:downloads", now + 60000, "x:268435000")
    task = u.create("q1", "bib", "all")
    status = u.ready(task)
    ok(status["streamed"] and status["state"] == "READY",
       "who has much held gets it as it is built", status)
    r = u.call("GET", f"/api/download/file?task_id={task}")
    ok("Content-Length" not in r.headers and
       len(pybtex(r.content)) == int(sql(m, "SELECT COUNT(*) FROM paperinfo")[0][0]), "whole",
       r.headers)
    r = u.call("HEAD", f"/api/download/file?task_id={task}")
    ok(r.status == 200 and not r.content, "its head alone")


@with_server("runs done and under way, and a node that dies")
def _(m):
    done(m)
    under_way(m)


def done(m):
    """The whole way: asked, judged by the simulated AI, downloaded."""
    u = User(m, "asker", "100000.00")
    journals = [j["name"] for j in u("GET", "/api/journals").body["journals"] if j["years"]][:4]
    qid = u("POST", "/api/queries", {
                "question": "Which catalysts split water?", "journals": journals, "year_from": 1900,
                "year_to": 2100}).body["query_id"]
    view = lambda: u("GET", f"/api/queries/{qid}").body
    equal(wait_for(lambda: view()["state"] == "DONE", 40), True, "a run is done", view())
    rows = rows_of(u.file(qid, "csv", "all"))[1:]
    shown = u("GET", f"/api/queries/{qid}/results?limit=500").body["results"]
    verdicts = {True: "relevant", False: "not relevant", None: "failed"}
    ok(rows and sorted((x[0], x[1], x[5]) for x in rows) == sorted(
           (r["doi"], r["title"], verdicts[r["relevant"]]) for r in shown),
       "its file says what its page says", rows[:2], shown[:2])
    equal(len(rows_of(u.file(qid, "csv"))) - 1, view()["relevant"], "so do the relevant ones")


def under_way(m):
    u = User(m, "runner")
    dois = [(r[0], r[1]) for r in sql(
        m, "SELECT DOI, CONCAT('meta:', journal, ':', year) FROM paperinfo ORDER BY DOI")]
    sql(m, f"""INSERT INTO query_log (query_id, uid, status, search_params, total_papers)
               VALUES ('r1', {u.uid}, 'PAUSED', '{{"question": "x"}}', {len(dois)})""")
    redis = redis_link(m)
    key = f"result:{u.uid}:r1"
    redis("HSET", f"query:{u.uid}:r1:status", "state", "PAUSED", "finished", 100, "relevant", 50)
    for i, (doi, block) in enumerate(dois[:100]):
        verdict = {"relevant": i % 2 == 0, "reason": f"reason {i}"}
        redis("HSET", key, doi, json.dumps({"ai_result": verdict, "block_key": block}))
        redis("RPUSH", key + ":arrivals", doi)
        if i % 2 == 0:
            redis("RPUSH", key + ":relevant", doi)
    rows = rows_of(u.file("r1", "csv", "all"))
    equal([x[0] for x in rows[1:]], [d for d, _ in dois[:100]], "what is there so far, as it came")
    equal([x[6] for x in rows_of(u.file("r1", "csv"))[1:]],
          [f"reason {i}" for i in range(0, 100, 2)], "the relevant ones")

    # One node takes a download and is stopped for good before it can finish it.
    archive(m, u.uid, "q1")
    victim, other = m.nodes()[0], m.nodes()[1]
    freeze(other)
    tasks = [u.create("q1", "ris", "all") for _ in range(10)]
    held = wait_for(lambda: redis("ZRANGE", "jobs:download:leases", 0, -1), 10)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: not alive(victim))
    left = redis("ZRANGE", "jobs:download:leases", 0, -1)
    note(f"{len(held)} were in hands, {len(left)} when the node was gone")
    for member in left:  # their leases end in five seconds; these do now
        redis("ZADD", "jobs:download:leases", "XX", 1, member)
    os.kill(other, signal.SIGCONT)
    equal([u.ready(task)["state"] for task in tasks], ["READY"] * 10,
          "what a node was at when it died is done by another")


def at_once(m):
    users = [User(m, f"user{i}") for i in range(4)]
    for i, u in enumerate(users):
        archive(m, u.uid, f"o{i}")
    u = users[0]
    r = u.call("GET", "/api/download_csv?query_id=o0&scope=all")
    equal((r.status, len(rows_of(r)) - 1),
          (200, int(sql(m, "SELECT COUNT(*) FROM paperinfo")[0][0])), "CSV at once")
    same = u.call("POST", "/api/download_csv", {"query_id": "o0", "scope": "all"})
    equal(same.content, r.content, "asked for by POST")
    r = u.call("GET", "/api/download_bib?query_id=o0")
    ok(r.status == 200 and r.headers["Content-Disposition"].endswith('-relevant.bib"'),
       "BibTeX at once", r.headers)
    equal(u.call("GET", "/api/download_bib?query_id=none").status, 404, "of no run")
    began = time.monotonic()
    jobs = [(u, f"o{i}") for i, u in enumerate(users)] * 10
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        sizes = set(pool.map(lambda j: len(j[0].file(j[1], "bib").content), jobs))
    note(f"40 downloads of 250 papers: {time.monotonic() - began:.2f} s")
    equal(sizes, {len(r.content)}, "forty at once are all alike")
    metrics = m.get("/metrics").body.decode()
    ok(re.search(r"millrace_downloads_ready_total\{node=\"\d\"\} [1-9]", metrics),
       "they are counted")


if __name__ == "__main__":
    run_tests()
