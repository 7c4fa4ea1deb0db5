"""Documents (EXT-1): uploads of every kind, what is refused, quotas, uploads that are cut, texts of
PDFs, deletions, either store away, and a backup."""
import hashlib
import os
import random
import shutil
import signal
import socket
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

from admins import user
from client import Api, Reply, with_server
from drill import kill_all, restore, settings, take
from harness import (Client, Millrace, crowd, equal, folder, freeze, http, ok, run_tests, sql, test,
                     wait_for)
from tasks import pdf

PATH = "/api/documents"
MB = 1 << 20
TEXT = "Dose: 5.2 mg per day. Größe α ≤ 0.05; 剂量每天五毫克。\n"


def upload(api, name, data):
    return api("POST", f"{PATH}?name={urllib.parse.quote(name, safe='')}", raw=data)


def put(api, name, data):
    r = upload(api, name, data)
    assert r.status == 201, r
    return r.body


def get(api, id):
    return api("GET", f"{PATH}/{id}")


def raw_text(api, id):
    return http(api.server.port, f"{PATH}/{id}/text",
                headers=[f"Authorization: Bearer {api.token}", "Connection: close"])


def text(api, id):
    """Of a reply that comes in chunks."""
    c = Client(api.server.port)
    c.send(f"GET {PATH}/{id}/text HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
           f"Authorization: Bearer {api.token}\r\n\r\n".encode())
    data = b""
    while got := c.s.recv(1 << 16):
        data += got
    c.close()
    head, _, rest = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        return int(head.split()[1])
    assert b"text/plain; charset=utf-8" in head, head
    whole = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size, 16)
        whole, rest = whole + rest[:n], rest[n + 2:]
    return whole.decode()


def listed(api):
    return api("GET", PATH).body


def pieces(api):
    return int(sql(api.server, "SELECT COUNT(*) FROM document_piece p JOIN document d"
                               f" ON d.number = p.document WHERE d.uid = {uid(api)}")[0][0])


def uid(api):
    return api.me().body["uid"]


def orphans(m):
    """Pieces without a row, and rows of uploads that have not ended."""
    return [int(n) for n in sql(
        m, "SELECT (SELECT COUNT(*) FROM document_piece p LEFT JOIN document d"
           " ON d.number = p.document WHERE d.number IS NULL),"
           " (SELECT COUNT(*) FROM document WHERE stored_at IS NULL)")[0]]


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


KINDS = [
    ("a.txt", TEXT.encode(), "text/plain", TEXT),
    ("b.md", b"# Methods\n\n* RCT\n", "text/markdown", "# Methods\n\n* RCT\n"),
    ("b.MARKDOWN", b"# Results\n", "text/markdown", "# Results\n"),
    ("no extension", b"plain", "text/plain", "plain"),
    ("latin1.txt", "Größe: 5 µg, naïve café".encode("latin-1"), "text/plain",
     "Größe: 5 µg, naïve café"),
    ("gbk.txt", ("本研究的药物剂量为每天五毫克。" * 9).encode("gb18030"), "text/plain",
     "本研究的药物剂量为每天五毫克。" * 9),
    ("utf16.txt", TEXT.encode("utf-16"), "text/plain", TEXT),
    ("bom.txt", b"\xef\xbb\xbf" + TEXT.encode(), "text/plain", TEXT),
    ("large.txt", (TEXT * 40000).encode(), "text/plain", TEXT * 40000),
    ("cut.txt", b"x" + "剂".encode() * 700000, "text/plain", "x" + "剂" * 700000),
    ("large latin1.txt", "é, ü. ".encode("latin-1") * 300000, "text/plain", "é, ü. " * 300000),
    ("whole.txt", b"0123456789abcdef" * (MB // 16), "text/plain", "0123456789abcdef" * (MB // 16)),
    ("really.txt", pdf("good evidence"), "application/pdf", None),
]


def kinds(m):
    api = user(m, "kinds")
    made = []
    for name, data, media, shown in KINDS:
        r = upload(api, name, data)
        got = r.body
        equal((r.status, got["name"], got["media"], got["bytes"], got["again"]),
              (201, name, media, len(data), False), f"{name} is taken")
        made.append(got["document_id"])
        one = get(api, got["document_id"]).body["document"]
        equal({k: v for k, v in got.items() if k not in ("again", "success")},
              {k: one[k] for k in ("document_id", "name", "media", "bytes")}, "and found")
        if shown is not None:
            equal(one["text_bytes"], len(shown.encode()), "with its text")
            ok(text(api, got["document_id"]) == shown, "which is shown", name)
    ok(int(sql(m, "SELECT MAX(LENGTH(bytes)) FROM document_piece")[0][0]) <= MB,
       "no piece has more than a megabyte")
    whole = listed(api)
    equal([d["document_id"] for d in whole["documents"]], made[::-1], "the newest first")
    equal((whole["bytes_used"], whole["bytes_max"], whole["file_bytes_max"], whole["next"]),
          (sum(len(d) for _, d, *_ in KINDS), 2048 * MB, 50 * MB, None), "with what is used")
    seen = [d["document_id"] for page in api.pages(PATH + "?limit=5") for d in page["documents"]]
    equal(seen, made[::-1], "page by page")
    equal(api("GET", PATH + "?cursor=x").error, (400, "invalid", "cursor"), "no cursor")
    equal(api("GET", PATH + "?limit=0").error, (400, "invalid", "limit"), "no limit")


NAMES = [("../../etc/passwd", "passwd"), ("C:\\Users\\x\\paper.txt", "paper.txt"),
         ("a/b/", "document"), ("line\nbreak\x7f\u0085.txt", "linebreak.txt"), ("  .. ", ".."),
         ("x" * 300 + ".txt", "x" * 255), ("é" * 300, "é" * 255), ("论文 一.txt", "论文 一.txt"),
         ("\t\n", "document"), ("<b>&.txt", "<b>&.txt")]


def names(m):
    api, other = user(m, "names"), user(m, "names2")
    for i, (name, clean) in enumerate(NAMES):
        equal(put(api, name, b"text %d" % i)["name"], clean, f"{name[:20]!r} is cleaned")
    before = listed(api)
    for name, data, words in (
            ("a.txt", b"", "the file is empty"),
            ("a.txt", b"\xff\xfe", "the file is empty"),
            ("a.pdf", b"no pdf", "the file is called .pdf, but is none"),
            ("a.txt", b"x\0y", "the file is neither text nor PDF: it has a NUL character"),
            ("a.docx", b"PK\x03\x04\x14\0\x06\0" + noise(3 * MB),
             "the file is neither text nor PDF: it has a NUL character"),
            ("late.txt", b"x" * (3 * MB) + b"\0",
             "the file is neither text nor PDF: it has a NUL character")):
        r = upload(api, name, data)
        equal((r.status, r.body["error"]["code"], r.body["error"]["message"]),
              (400, "invalid", words), f"{name}: {words}")
    equal(api("POST", PATH, raw=b"x").error, (400, "invalid", "name"), "a file without a name")
    equal(upload(api, "x" * 1001, b"x").error, (400, "invalid", "name"), "a name without end")
    equal(upload(Api(m), "x", b"x").status, 401, "no session")
    ok(wait_for(lambda: listed(api) == before, 10), "nothing was stored", listed(api))
    ok(wait_for(lambda: orphans(m) == [0, 0], 10), "nothing is left behind", orphans(m))
    id = before["documents"][0]["document_id"]
    for wrong in (id[:-1], id + "0", "0", "x", id.split("-")[0] + "-", id.upper() + "A"):
        equal((get(api, wrong).status, text(api, wrong)), (404, 404), f"no id: {wrong}")
    equal((get(other, id).status, text(other, id), other("DELETE", f"{PATH}/{id}").status),
          (404, 404, 404), "another's")
    equal(listed(other)["documents"], [], "nor is it listed")


def again(m):
    api, other = user(m, "again"), user(m, "again2")
    data = TEXT.encode() * 30000
    first = put(api, "a.txt", data)
    second = put(api, "b.md", data)
    equal((second["document_id"], second["name"], second["again"]),
          (first["document_id"], "a.txt", True), "it is the same document")
    ok(put(other, "a.txt", data)["document_id"] != first["document_id"], "another user has another")
    count = pieces(api)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda i: put(api, f"{i}.txt", b"at once" + data), range(8)))
    equal((len({d["document_id"] for d in made}), [d["again"] for d in made].count(False)), (1, 1),
          "of eight at once one is stored")
    ok(wait_for(lambda: pieces(api) == count + len(data) // MB + 1 and orphans(m) == [0, 0], 10),
       "and nothing twice", pieces(api), orphans(m))
    equal(api("DELETE", f"{PATH}/{first['document_id']}").status, 200, "deleted")
    third = put(api, "c.txt", data)
    ok(third["document_id"] != first["document_id"] and not third["again"],
       "then it is a new one", third)


def fifty(m):
    api = user(m, "fifty")
    data = b"%PDF-1.4\n" + noise(50 * MB - 9)
    began = time.monotonic()
    made = put(api, "large.pdf", data)
    ok(time.monotonic() - began < 20 * crowd(), "50 MB are taken", time.monotonic() - began)
    equal((made["bytes"], made["media"]), (50 * MB, "application/pdf"), "all of them")
    sums = sql(m, "SELECT SHA2(p.bytes, 256) FROM document_piece p JOIN document d"
                  f" ON d.number = p.document WHERE d.uid = {uid(api)} ORDER BY place")
    equal(sums, [[hashlib.sha256(data[i:i + MB]).hexdigest()] for i in range(0, 50 * MB, MB)],
          "in fifty pieces")
    equal(sql(m, f"SELECT LOWER(HEX(digest)) FROM document WHERE uid = {uid(api)}"),
          [[hashlib.sha256(data).hexdigest()]], "with their digest")
    for extra, name in ((1, "one byte more"), (MB, "51 MB")):
        r = upload(api, "larger.pdf", data + b"x" * extra)
        equal((r.status, r.body["error"]["message"]),
              (413, "the file is too large: a document has at most 50 MB"), name)
    c = Client(m.port)
    c.send(f"POST {PATH}?name=x HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {api.token}\r\n"
           "Transfer-Encoding: chunked\r\n\r\n".encode())
    for i in range(51):
        c.send(b"100000\r\n" + b"x" * MB + b"\r\n")
    c.send(b"0\r\n\r\n")
    equal(c.reply().status, 413, "or without a length")
    c.close()
    c = Client(m.port)
    c.send(f"POST {PATH}?name=x HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {api.token}\r\n"
           f"Content-Length: {51 * MB}\r\nExpect: 100-continue\r\n\r\n".encode())
    equal(c.reply().status, 413, "a client that asks first is told at once")
    c.close()
    equal(len(listed(api)["documents"]), 1, "none of them is stored")
    ok(wait_for(lambda: orphans(m) == [0, 0], 10), "nor left behind", orphans(m))
    before = text(api, made["document_id"])
    one = get(api, made["document_id"]).body["document"]
    ok(before == 400 and one["text_error"] and one["text_bytes"] is None,
       "noise is no PDF, which it says", before, one)


def begin(m, api, length, data, name="cut.txt"):
    c = Client(m.port)
    c.send(f"POST {PATH}?name={name} HTTP/1.1\r\nHost: test\r\n"
           f"Authorization: Bearer {api.token}\r\nContent-Length: {length}\r\n\r\n".encode() + data)
    return c


@with_server("a full quota", MILLRACE_EXTRACT_USER_MB="4", MILLRACE_EXTRACT_DOCUMENT_MB="2")
def _(m):
    api, other = user(m, "asher"), user(m, "bella")
    held = [begin(m, api, MB, b"%d" % i * (MB - 1)) for i in range(8)]
    time.sleep(0.5)
    for c in held:
        c.send(b"x")  # all at the same moment
    made = [Reply(c.reply()) for c in held]
    good = [r for r in made if r.status == 201]
    equal((len(good), [r.status for r in made].count(409)), (4, 4),
          "no more than fit, however many come at once")
    refused = next(r for r in made if r.status == 409)
    ok(refused.body["error"]["message"].startswith("there is no room for the file: your documents "
                                                   "have "), "it says so", refused)
    equal(upload(api, "x.txt", b"x").status, 409, "not one byte more")
    equal(listed(api)["bytes_used"], 4 * MB, "which the list says, too")
    equal(upload(other, "x.txt", b"x").status, 201, "another user has room")
    equal(upload(other, "y.txt", b"y" * (2 * MB + 1)).status, 413, "a file has its own limit")
    equal(api("DELETE", f"{PATH}/{good[0].body['document_id']}").status, 200, "one is deleted")
    equal(upload(api, "x.txt", b"x" * MB).status, 201, "then there is room")


def cuts(m):
    api = user(m, "cuts")
    for name, end in (("close", lambda c: c.close()),
                      ("reset", lambda c: (c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                                          b"\1\0\0\0\0\0\0\0"), c.close()))):
        c = begin(m, api, 6 * MB, b"x" * (4 * MB))
        ok(wait_for(lambda: pieces(api) >= 3, 10), f"{name}: pieces come in", pieces(api))
        equal((listed(api)["documents"], listed(api)["bytes_used"]), ([], 6 * MB),
              "which is no document, but has its room")
        end(c)
        ok(wait_for(lambda: (pieces(api), orphans(m)) == (0, [0, 0]), 10),
           "nothing is left behind", pieces(api), orphans(m))
    c = begin(m, api, 6 * MB, b"x" * (4 * MB))
    ok(wait_for(lambda: pieces(api) >= 3, 10), "once more", pieces(api))
    for pid in m.nodes():
        os.kill(pid, signal.SIGKILL)
    c.close()
    ok(wait_for(m.ready, 30), "nodes die, and others come")
    equal(orphans(m), [0, 1], "its row is there")
    equal(listed(api)["documents"], [], "but is no document")
    sql(m, "UPDATE document SET created_at = created_at - INTERVAL 2 HOUR")
    ok(wait_for(lambda: (pieces(api), orphans(m)) == (0, [0, 0]), 15),
       "the sweep removes it after an hour", pieces(api), orphans(m))
    held = [begin(m, api, 2 * MB, b"x") for _ in range(2)]
    rows = ", ".join(f"('{uid(api)}-{i:032}', {uid(api)}, 'x', 'text/plain', UTC_TIMESTAMP(3))"
                     for i in range(32))
    sql(m, f"INSERT INTO document (id, uid, name, media, created_at) VALUES {rows}")
    r = upload(api, "x.txt", b"x")
    equal((r.status, r.body["error"]["message"]),
          (429, "32 of your files are being uploaded already"), "not too many at once")
    for c in held:
        c.close()
    sql(m, "UPDATE document SET created_at = created_at - INTERVAL 2 HOUR WHERE stored_at IS NULL")


def pdfs(m):
    api = user(m, "pdfs")
    good = put(api, "a.pdf", pdf("good evidence: 5 mg", "second page"))["document_id"]
    equal(get(api, good).body["document"]["text_bytes"], None, "it is not known at first")
    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda _: text(api, good), range(6)))
    ok(len(set(got)) == 1 and "good evidence: 5 mg" in got[0] and "second page" in got[0],
       "six want it at once", got[0])
    one = get(api, good).body["document"]
    equal((one["text_bytes"], one["pages"], one["text_error"]), (len(got[0].encode()), 2, None),
          "then it is known")
    sql(m, "UPDATE document_piece SET bytes = UPPER(CONVERT(bytes USING utf8mb4))"
           " WHERE kind = 'text'")
    equal(text(api, good), got[0].upper(), "it is not parsed again")
    bad = put(api, "b.pdf", b"%PDF-1.7\nthis is no PDF at all")["document_id"]
    r = raw_text(api, bad)
    one = get(api, bad).body["document"]
    ok(r.status == 400 and one["text_error"] and one["text_error"] in r.body.decode(),
       "a bad one has none, and says why", r, one)
    equal((one["reason_code"], get(api, good).body["document"]["reason_code"]),
          ("pdf_damaged", None), "by a word, too")
    sql(m, "UPDATE document d JOIN document_piece p ON p.document = d.number AND p.kind = 'file'"
           f" SET p.bytes = 'x', d.text_error = 'as it was' WHERE d.id = '{bad}'")
    ok("as it was" in raw_text(api, bad).body.decode(), "nor is that one")


def deletions(m):
    api = user(m, "deletions")
    free = put(api, "free.txt", b"free" * MB)["document_id"]
    used = put(api, "used.txt", b"used" * MB)["document_id"]
    other = put(api, "latin1.txt", "größe".encode("latin-1"))["document_id"]
    parsed = put(api, "parsed.pdf", pdf("good evidence"))["document_id"]
    unread = put(api, "unread.pdf", pdf("good reading"))["document_id"]
    text(api, parsed)
    sql(m, f"UPDATE document SET used = 1 WHERE uid = {uid(api)} AND id <> '{free}'")
    every = (free, used, other, parsed, unread)
    for id in every:
        equal(api("DELETE", f"{PATH}/{id}").status, 200, "deleted")
        equal((get(api, id).status, text(api, id), api("DELETE", f"{PATH}/{id}").status),
              (404, 404, 404), "and gone")
    equal((listed(api)["documents"], listed(api)["bytes_used"]), ([], 0), "room is there at once")
    left = lambda: dict(sql(m, "SELECT d.name, GROUP_CONCAT(p.kind, p.place ORDER BY p.place) FROM"
                               " document d JOIN document_piece p ON p.document = d.number"
                               f" WHERE d.uid = {uid(api)} GROUP BY d.number"))
    want = {"used.txt": "file0,file1,file2,file3", "latin1.txt": "text0", "parsed.pdf": "text0",
            "unread.pdf": "file0"}
    ok(wait_for(lambda: left() == want, 15), "what tasks have keeps its text, the rest goes",
       left())
    equal(sql(m, f"SELECT COUNT(*) FROM document WHERE id = '{free}'"), [["0"]], "with its row")


def away(m):
    api = user(m, "away")
    id = put(api, "a.txt", TEXT.encode())["document_id"]
    redis, mariadb = m.pid_of("redis"), m.pid_of("mariadb")
    freeze(redis)
    try:
        equal(upload(api, "b.txt", b"without Redis").status, 201, "without Redis files are taken")
        equal(text(api, id), TEXT, "and read")
    finally:
        os.kill(redis, signal.SIGCONT)
    assert wait_for(m.ready, 20)
    c = begin(m, api, 6 * MB, b"x" * (3 * MB))
    ok(wait_for(lambda: pieces(api) >= 4, 10), "an upload is under way", pieces(api))
    began = time.monotonic()
    freeze(mariadb)
    try:
        c.send(b"x" * (3 * MB))
        ok(c.reply().status in (502, 503), "MySQL goes away in its middle")
        took = time.monotonic() - began
        ok(took < 8 * crowd(), "which does not take long", took)
        equal(get(api, id).status, 503, "nothing is read")
        equal(upload(api, "c.txt", b"c").status, 503, "and nothing taken")
    finally:
        os.kill(mariadb, signal.SIGCONT)
    c.close()
    back = lambda: all(api("GET", PATH).status == 200 for _ in range(8))  # on every node
    ok(wait_for(back, 30), "it comes back")
    equal([d["name"] for d in listed(api)["documents"]], ["b.txt", "a.txt"], "with all there was")
    sql(m, "UPDATE document SET created_at = created_at - INTERVAL 2 HOUR")
    ok(wait_for(lambda: (pieces(api), orphans(m)) == (2, [0, 0]), 15), "and nothing else",
       pieces(api))


@with_server("documents")
def _(m):
    for part in (kinds, names, again, fifty, pdfs, deletions):
        part(m)


@with_server("documents when something fails", MILLRACE_NODES="2")
def _(m):
    cuts(m)


@with_server("documents while a store is away", MILLRACE_NODES="2", private=True)
def _(m):
    away(m)


@test("a backup has documents and templates", private=True)
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "100"}) as m:
        assert wait_for(m.ready, 30)
        api = user(m, "asher")
        data = b"%PDF-1.4\n" + noise(3 * MB)
        put(api, "a.pdf", data)
        id = put(api, "b.txt", TEXT.encode() * 9)["document_id"]
        made = api("POST", "/api/templates", {"name": "x", "fields": [
            {"name": "dose", "type": "number"}]}).body["template_id"]
        had = listed(api), api("GET", f"/api/templates/{made}").body
        files = "SELECT SHA2(bytes, 256) FROM document_piece ORDER BY document, kind, place"
        sums = sql(m, files)
        path = f"{folder()}/b"
        take(m, path)
        kill_all(m)
    shutil.rmtree(m.data)
    restore(settings(m), path)
    with Millrace(data=m.data, env=settings(m)) as other:
        assert wait_for(other.ready, 40)
        api = Api(other)
        assert api.login("asher").status == 200
        equal((listed(api), api("GET", f"/api/templates/{made}").body), had, "all are listed again")
        equal((sql(other, files), text(api, id)), (sums, TEXT * 9), "with every byte")
        ok(put(api, "again.pdf", data)["again"], "and known by their bytes")


run_tests()
