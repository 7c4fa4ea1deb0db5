"""Searching posts (EMB-4, EMB-6): by meaning and by words, what others may see, pages, limits; and
degraded with a reason, never wrong, while the service, MySQL's words, the index's file, its disk or
a Qdrant server fail. SEARCH_TRIALS: how often the time is measured until all nodes see a change."""
import contextlib
import fcntl
import hashlib
import http.server
import json
import math
import os
import shutil
import signal
import threading
import time
import urllib.parse

import disk
from admins import admin
from client import Api, Reply
from harness import (Client, crowd, equal, freeze, http as request, note, ok, redis_link,
                     run_tests, sql, test, wait_for)
from posts import (change, embedded, found, hurry, paused, points, posts_server,
                   restart, row, search, show, state, with_posts, write)
from qdrant import Qdrant
from screening import person
from sim import Sim

TRIALS = int(os.environ.get("SEARCH_TRIALS", "15"))
SEEN_S = 2  # EMB-6
MINUTE_MAX = 120
TEXTS = {"iron": "Iron rusts in wet air. Steel is an alloy of iron and carbon.",
         "bread": "Bread is baked from flour, water and yeast in a hot oven.",
         "bees": "Bees collect nectar from flowers, and make honey of it.",
         "石墨烯": "石墨烯是一种由碳原子组成的二维材料，导电性能优异。"}
QUESTION = "How is steel made of iron?"


# --- every node of a server ---

class Pinned(Api):
    """A session on one connection, which stays with one node."""

    def __init__(self, api):
        super().__init__(api.server, api.token)
        self.connection = Client(api.server.port)

    def __call__(self, method, path, body=None, headers=(), raw=None):
        lines = [*headers, f"Authorization: Bearer {self.token}"]
        data = json.dumps(body).encode() if body is not None else b""
        if data:
            lines.append("Content-Type: application/json")
        return Reply(self.connection.request(path, method=method, body=data, headers=lines))


def on_each_node(api):
    """A session on each node: while the others stand still, only that one takes connections."""
    pids, pins = api.server.nodes(), []
    for pid in pids:
        others = [p for p in pids if p != pid]
        try:
            for other in others:
                freeze(other)
            pins.append(Pinned(api))
            assert pins[-1]("GET", "/api/posts").status == 200
        finally:
            for other in others:
                os.kill(other, signal.SIGCONT)
    return pins


def like(api, post, limit=100):
    r = api("GET", f"/api/search/like?kind=post&id={post}&limit={limit}")
    assert r.status == 200, r
    return [h["id"] for h in r.body["hits"]]


def texts(api):
    ids = {name: write(api, name, text) for name, text in TEXTS.items()}
    assert embedded(api, *ids.values()), [show(api, p) for p in ids.values()]
    return ids


def reason(api, question, **more):
    """A question that was not asked before, so that no answer is a kept one."""
    r = search(api, f"{question} {os.urandom(3).hex()}", **more)
    return r["reason"], r.get("degraded", False), [h["id"] for h in r["hits"]]


def searched(api, **more):
    """How many posts there are, and how many of them are found by words, and by meaning."""
    x, = search(api, "how much is there", **more)["searched"]
    return x["total"], x["by_words"], x["by_meaning"]


def index_file(m):
    """The path of the file that searches use."""
    space, = sql(m, "SELECT number FROM vector_space WHERE collection = 'blog_posts'"
                    " AND active = 1")
    return f"{m.data}/vectors/blog_posts-{space[0]}.index"


def rebuilds(m):
    return int(sql(m, "SELECT COALESCE(SUM(builds), 0) FROM vector_store v JOIN vector_space s"
                      " ON s.number = v.space WHERE s.active = 1"
                      " AND s.collection = 'blog_posts'")[0][0])


@contextlib.contextmanager
def no_turns(m, collection="blog_posts"):
    """Nobody may write to the stores meanwhile: what is damaged stays so."""
    with open(f"{m.data}/vectors/{collection}.turn", "r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX, 1, 0)
        yield


# --- what is found ---

@with_posts("by meaning and by words")
def _(m, sim):
    ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
    equal(reason(ada, "iron"), (None, False, []), "nothing is there, and nothing is wrong")
    equal(search(ada, "iron", kind="paper")["searched"], [
        {"kind": "paper", "total": 0, "by_words": 0, "by_meaning": 0}], "no papers, either")
    ids = texts(ada)
    r = search(ada, QUESTION)
    hit = r["hits"][0]
    equal((hit["id"], hit["kind"], hit["title"], hit["mine"], hit["hide"], r["reason"]),
          (ids["iron"], "post", "iron", True, False, None), "a question", r)
    ok("Steel" in hit["snippet"] and hit["marks"], "its nearest part, words marked", hit)
    marked = [hit["snippet"][x["begin"]:x["end"]].lower() for x in hit["marks"]]
    ok({"iron", "steel"} <= set(marked), "these words", marked)
    equal(found(bob, QUESTION)[:1], [ids["iron"]], "by others, too")
    equal(search(bob, QUESTION)["hits"][0]["mine"], False, "whose it is not")
    equal(found(root, QUESTION)[:1], [ids["iron"]], "and by admins")
    for question, name in (("honey", "bees"), ("flour and yeast", "bread"), ("石墨烯", "石墨烯"),
                           ("碳原子导电性能", "石墨烯"), ("HONEY!", "bees")):
        equal(found(ada, question)[:1], [ids[name]], f"{question}: {name}")
    hit = search(ada, "导电性能")["hits"][0]
    equal([hit["snippet"][x["begin"]:x["end"]] for x in hit["marks"]][:1], ["导电性能"],
          "Chinese words are marked", hit)
    equal(like(ada, ids["iron"]).count(ids["iron"]), 0, "what is like a post is not itself")
    twin = write(bob, "steel", TEXTS["iron"] + " Steel is hard.")
    ok(embedded(bob, twin), "a post like another one")
    equal(like(ada, ids["iron"])[:1], [twin], "is found as such")
    change(ada, ids["bees"], title="Zebras")
    ok(wait_for(lambda: found(bob, "zebras")[:1] == [ids["bees"]], SEEN_S), "by its new title")
    change(ada, ids["bees"], content="Wasps build nests of paper.")
    ok(embedded(ada, ids["bees"]), "another content")
    equal(found(bob, "wasps nests")[:1], [ids["bees"]], "is found")
    ok(ids["bees"] not in found(bob, "nectar honey flowers")[:1], "and its former one is not")


@with_posts("what is refused, and what are pages")
def _(m, sim):
    ada, bob = person(m, "ada"), person(m, "bob")
    ask = lambda api, query: api("GET", "/api/search?" + urllib.parse.urlencode(query, True))
    for query, field in (({}, "q"), ({"q": " "}, "q"), ({"q": "x" * 1001}, "q"),
                         ({"q": "x", "kind": "book"}, "kind"), ({"q": "x", "limit": 101}, "limit"),
                         ({"q": "x", "limit": 0}, "limit"), ({"q": "x", "cursor": "x"}, "cursor"),
                         ({"q": "x", "cursor": "-0"}, "cursor"),
                         ({"q": "x", "cursor": "z" * 32 + "-1"}, "cursor"),
                         ({"q": "x", "kind": "post", "journal": "A"}, "kind"),
                         ({"q": "x", "kind": "post", "year_from": 2000}, "kind"),
                         ({"q": "x", "year_from": 2001, "year_to": 2000}, "year_from"),
                         ({"q": "x", "year_from": 10000}, "year_from")):
        equal(ask(ada, query).error, (400, "invalid", field), f"refused: {query}"[:70])
    for query, error in (({"kind": "post"}, (400, "invalid", "id")), ({}, (400, "invalid", "kind")),
                         ({"kind": "paper", "id": 1}, (400, "invalid", "doi")),
                         ({"kind": "post", "id": 1, "doi": "10.1/x"}, (400, "invalid", "id")),
                         ({"kind": "post", "id": 1}, (404, "not_found", None)),
                         ({"kind": "post", "id": -1}, (400, "invalid", "id")),
                         ({"kind": "paper", "doi": "10.1/none"}, (404, "not_found", None))):
        r = ada("GET", "/api/search/like?" + urllib.parse.urlencode(query))
        equal(r.error, error, f"like {query}")
    equal([request(m.port, p).status for p in ("/api/search?q=x", "/api/search/like?kind=post")],
          [401, 401], "without a session")
    own = [write(ada, f"sheep {i}", f"Sheep number {i} eats grass.") for i in range(25)]
    ok(embedded(ada, *own), "many that are alike")
    walk = lambda api, query: [h for p in api.pages(
        "/api/search?" + urllib.parse.urlencode(query)) for h in p["hits"]]
    hits = walk(ada, {"q": "sheep eat grass", "kind": "post", "limit": 7})
    equal(sorted(h["id"] for h in hits), sorted(own), "all pages have each once")
    ok([h["score"] for h in hits] == sorted((h["score"] for h in hits), reverse=True),
       "the best first")
    first = ask(ada, {"q": "sheep", "limit": 5}).body
    equal(ask(ada, {"q": "goats", "limit": 5, "cursor": first["next"]}).error,
          (400, "invalid", "cursor"), "a cursor is of its question")
    ids = [h["id"] for h in first["hits"]]
    left = [p for p in own if p not in ids]
    gone, hidden, new = left[0], left[1], write(ada, "sheep", "A new sheep.")
    ada("DELETE", f"/api/posts/{gone}")
    change(ada, hidden, hide=True)
    ok(embedded(ada, new), "one more meanwhile")
    cursor, rest = first["next"], []
    while cursor:
        page = ask(ada, {"q": "sheep", "limit": 5, "cursor": cursor}).body
        rest, cursor = rest + [h["id"] for h in page["hits"]], page["next"]
    equal(sorted(ids + rest), sorted(set(own) - {gone}), "its pages go on in the same order,"
          " without what is deleted", ids, rest)
    r = ask(bob, {"q": "sheep", "limit": 5, "cursor": first["next"]})
    ok(r.status == 200 and hidden not in [h["id"] for h in r.body["hits"]],
       "another's cursor shows what that one may see", r)
    redis_link(m)("FLUSHALL")
    ada.login("ada")
    r = ask(ada, {"q": "sheep", "limit": 5, "cursor": first["next"]})
    ok(r.status == 200 and r.body["hits"], "a cursor that is gone is made again", r)


@with_posts("so many searches in a minute", MILLRACE_NODES="1")
def _(m, sim):
    ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
    ask, minutes = lambda api: api("GET", "/api/search?kind=post&q=x").status, []
    while ask(ada) == 200 and len(minutes) <= 3 * MINUTE_MAX:
        minutes.append(time.time() // 60)
    r = ada("GET", "/api/search?kind=post&q=x")
    ok(r.error[:2] == (429, "rate") and 0 < int(r.headers["retry-after"]) <= 60,
       "there is an end, and when it is over", r)
    # Of a search that begins in one minute and ends in the next, either may count.
    count = minutes.count(minutes[-1])
    ok(abs(count - MINUTE_MAX) <= (len(set(minutes)) > 1), "as many as there may be", count)
    equal(ada("GET", "/api/search/like?kind=post&id=1").status, 429, "nor what is alike")
    equal((ask(bob), ask(root)), (200, 200), "others may")
    equal({ask(root) for _ in range(MINUTE_MAX + 5)}, {200}, "admins as they like")


@with_posts("hidden posts, on every node")
def _(m, sim):
    ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
    ids = texts(ada)
    post = ids["iron"]
    others, owners, admins = on_each_node(bob), on_each_node(ada), on_each_node(root)
    sees = lambda api: (post in found(api, QUESTION), post in found(api, "iron"),
                        post in like(api, ids["bread"]),
                        api("GET", f"/api/search/like?kind=post&id={post}").status)
    for n in range(4):
        change(ada, post, hide=True)
        equal([sees(p) for p in others], [(False, False, False, 404)] * 2,
              "not found by others from the next request on")
        equal([sees(p) for p in (*owners, *admins)], [(True, True, True, 200)] * 4,
              "but by its owner and admins")
        if n == 1:  # also when nothing was told of it
            ok(wait_for(lambda: row(m, post, "tags_due") == ["0"], 5), "its vectors are told")
        change(ada, post, hide=False)
        ok(wait_for(lambda: all(sees(p) == (True, True, True, 200) for p in others), SEEN_S),
           "and then by all", [sees(p) for p in others])
    n = len(ids)
    ok(wait_for(lambda: searched(bob) == (n, n, n), 5), "how many there are", searched(bob))
    born = write(ada, "secret", "A secret text about uranium.", hide=True)
    ok(embedded(ada, born), "one that was hidden from the start")
    for who, count in ((ada, n + 1), (root, n + 1), (bob, n)):
        ok(wait_for(lambda: searched(who) == (count,) * 3, 5), "how many that one may find",
           searched(who))
    write(ada, "empty", " \n")
    time.sleep(2.5)
    equal(searched(ada), (n + 1,) * 3, "an empty one is none")
    equal([born in found(p, "uranium secret") for p in others], [False] * 2,
          "is not found by others")
    equal([found(p, "uranium secret")[:1] for p in owners], [[born]] * 2, "but by its owner")
    ada("DELETE", f"/api/posts/{post}")
    equal([(post in found(p, QUESTION), post in like(p, ids["bread"])) for p in
           (*others, *owners, *admins)], [(False, False)] * 6, "deleted, by nobody")


# --- how soon ---

def share(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


@with_posts("a change is seen by every node")
def _(m, sim):
    """Vectors alone: by what is like a post, as admins ask for it, as often as they like."""
    ada, root = person(m, "ada"), admin(m, "root")
    ids = texts(ada)
    pins, took = on_each_node(root), {"embedded": [], "deleted": [], "shown": []}
    bobs = [on_each_node(person(m, f"bob{i}")) for i in range(TRIALS)]

    def until(pins, sees, since):
        """The slowest node, in ms after since()."""
        seen = {}
        began = time.monotonic()
        while len(seen) < len(pins) and time.monotonic() - began < 10 * crowd():
            for i, p in enumerate(pins):
                if i not in seen and sees(p):
                    seen[i] = time.monotonic()
        assert len(seen) == len(pins), "a node has not seen it"
        return max(0.0, (max(seen.values()) - since()) * 1000)

    for i in range(TRIALS):
        post, done = write(ada, f"twin {i}", f"Iron rusts in wet air. Steel, number {i}."), []

        def watch():
            link = f"SELECT rag_status FROM tb_post WHERE id = {post}"
            while not done:
                if sql(m, link) == [["completed"]]:
                    done.append(time.monotonic())
        thread = threading.Thread(target=watch)
        thread.start()
        took["embedded"].append(until(pins, lambda p: post in like(p, ids["iron"]),
                                      lambda: thread.join() or done[0]))
        change(ada, post, hide=True)
        ok(wait_for(lambda: row(m, post, "tags_due") == ["0"], 10), "hidden") if i == 0 else \
            wait_for(lambda: row(m, post, "tags_due") == ["0"], 10)
        began = time.monotonic()
        change(ada, post, hide=False)
        took["shown"].append(until(bobs[i], lambda p: time.sleep(0.02) or
                                   post in like(p, ids["iron"]), lambda: began))
        began = time.monotonic()
        ada("DELETE", f"/api/posts/{post}")
        took["deleted"].append(until(pins, lambda p: post not in like(p, ids["iron"]),
                                     lambda: began))
    for what, ms in took.items():
        note(f"{what}: p50 {share(ms, 0.5):.0f} ms, p99 {share(ms, 0.99):.0f} ms of {len(ms)}")
        ok(share(ms, 0.99) < SEEN_S * 1000 * crowd(), f"{what}: seen in {SEEN_S} s", ms)


# --- degraded, and why ---

class Picky:
    """An embedding service that knows one model, and refuses others; or that answers by another
    one than it was asked for."""

    def __init__(self, model):
        self.model, self.answers = model, None

    def __enter__(self):
        picky = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, reply = picky.reply(body)
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def reply(self, body):
        if body["model"] != self.model and not self.answers:
            return 404, {"error": {"message": f"The model {body['model']} does not exist"}}
        given = body["input"] if isinstance(body["input"], list) else [body["input"]]
        made = self.answers or self.model
        return 200, {"model": made, "usage": {"prompt_tokens": 5, "total_tokens": 5},
                     "data": [{"index": i, "embedding": self.vector(made, text)}
                              for i, text in enumerate(given)]}

    def vector(self, model, text):
        """Of its words, each at a place of its own: 64 dimensions, or 32."""
        v = [0.01] * (32 if model.endswith("-32") else 64)
        for word in text.lower().replace(".", " ").replace("?", " ").split():
            v[int(hashlib.sha256(word.encode()).hexdigest(), 16) % len(v)] += 1.0
        length = math.sqrt(sum(x * x for x in v))
        return [x / length for x in v]


@test("degraded: no service, the service is away, nothing is embedded")
def _():
    sim = Sim()
    with sim, posts_server(sim, MILLRACE_AI_TIMEOUT_MS="1000") as m:
        ada = person(m, "ada")
        sim.kill()
        first = write(ada, "cobalt", "Cobalt is blue.")
        ok(wait_for(lambda: found(ada, "cobalt") == [first], 20), "words do not wait")
        ok(wait_for(lambda: searched(ada) == (1, 1, 0), 5), "and it says so", searched(ada))
        equal(reason(ada, "cobalt"), ("nothing_embedded", True, [first]), "nothing embedded yet")
        equal(ada("GET", f"/api/search/like?kind=post&id={first}").status in (404, 503), True,
              "nothing is like it")
        sim.__enter__()
        ok(wait_for(lambda: hurry(m) or state(ada, first) == "completed", 40), "it is embedded")
        ok(wait_for(lambda: reason(ada, "cobalt") == (None, False, [first]), 10), "all is well",
           reason(ada, "cobalt"))
        ok(wait_for(lambda: searched(ada) == (1, 1, 1), 5), "found by meaning, too", searched(ada))
        one = on_each_node(ada)[0]
        asked = search(one, "what is blue")
        equal(asked["reason"], None, "a question that will be asked again")
        sim.kill()
        equal(reason(ada, "cobalt"), ("embedding_service_away", True, [first]), "away")
        equal(search(one, "what is blue")["hits"], asked["hits"], "a question of before is kept")
        sql(m, "RENAME TABLE post_words TO post_words_aside")
        r = ada("GET", "/api/search?kind=post&q=nothing+is+left")
        equal(r.error[:2], (503, "unavailable"), "neither way works", r)
        sim.__enter__()
        ok(wait_for(lambda: ada("GET", "/api/search?kind=post&q=cobalt").status == 200, 20),
           "the service is back")
        ok(wait_for(lambda: reason(ada, "Cobalt is blue.")[:1] == ("words_index_away",), 10),
           "without words", reason(ada, "Cobalt is blue."))
        equal(reason(ada, "Cobalt is blue.")[2], [first], "it is found by its meaning")
        sql(m, "RENAME TABLE post_words_aside TO post_words")
        ok(wait_for(lambda: reason(ada, "cobalt")[0] is None, 10), "all is well again")
        text = m.get("/metrics").body.decode()
        ok('millrace_searches_degraded_total{reason="words_index_away"' in text, "counted")
        equal(m.stop(), 0, "the server ends")
        m.env.pop("MILLRACE_AI_EMBEDDING_URL")
        restart(m)
        equal(reason(ada, "cobalt"), ("no_embedding_service", True, [first]), "no service")
        equal(like(ada, first), [], "what is alike needs none")


@test("degraded: another model")
def _():
    with Picky("m-64") as picky, Sim() as sim, posts_server(
            sim, MILLRACE_AI_EMBEDDING_URL=picky.url, MILLRACE_AI_EMBEDDING_MODEL="m-64") as m:
        ada, root = person(m, "ada"), admin(m, "root")
        ids = texts(ada)
        equal(reason(ada, QUESTION)[:2], (None, False), "all is well")
        equal(m.stop(), 0, "the server ends")
        picky.model = "n-32"
        m.env["MILLRACE_AI_EMBEDDING_MODEL"] = "n-32"
        restart(m)
        paused(root)
        r = reason(ada, QUESTION)
        equal(r[:2], ("embedding_model_changed", True), "the service has another model now", r)
        equal(r[2][:1], [ids["iron"]], "words find it meanwhile")
        new = write(ada, "zinc", "Zinc protects steel from rust.")
        paused(root, False)
        ok(embedded(ada, new), "a post is of the new model")
        ok(wait_for(lambda: hurry(m) or sql(
            m, "SELECT model FROM vector_space WHERE active = 1 AND alive = 1") == [["n-32"]], 40),
           "the others follow by themselves, then searches use it",
           sql(m, "SELECT * FROM vector_space"))
        ok(wait_for(lambda: reason(ada, QUESTION)[:2] == (None, False), 10), "all is well",
           reason(ada, QUESTION))
        equal({len(points(m, p)) for p in (*ids.values(), new)}, {1, 1},
              "each has its vectors once", [points(m, p) for p in ids.values()])
        ok(wait_for(lambda: not os.path.exists(f"{m.data}/vectors/blog_posts-1.index"), 20),
           "the former index goes", os.listdir(f"{m.data}/vectors"))


# --- the file of the embedded index ---

class Searching(threading.Thread):
    """Searches all the time on one node. wrong: answers that must not be."""

    def __init__(self, api, wanted):
        super().__init__(daemon=True)
        self.api, self.wanted, self.over = api, wanted, threading.Event()
        self.wrong, self.reasons, self.count = [], set(), 0
        self.start()

    def run(self):
        while not self.over.wait(0.005):
            r = self.api("GET", "/api/search?kind=post&limit=5&q=" + urllib.parse.quote(QUESTION))
            self.count += 1
            ids = [h["id"] for h in r.body["hits"]] if r.status == 200 else []
            said = r.body.get("reason")
            self.reasons.add(said)
            if r.status != 200 or (not said and self.wanted not in ids[:1]):
                self.wrong.append(r)

    def stop(self):
        self.over.set()
        self.join(20)


def cut(path, size):
    with open(path, "r+b") as f:
        f.truncate(size)


def flip(path, places):
    with open(path, "r+b") as f:
        for at in places:
            f.seek(at)
            byte = f.read(1)
            f.seek(at)
            f.write(bytes([byte[0] ^ 0x40]) if byte else b"\x40")


def overwrite(path, data):
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.rename(path + ".new", path)


def data_places(path):
    """Where the file has data, of its sparse columns: a few bytes of each."""
    places, at = [], 0
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        while at < size:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            places += [at + n for n in (0, 9, 130, 1500) if at + n < size]
            at = os.lseek(f.fileno(), at, os.SEEK_HOLE)
    return places


@with_posts("the index's file is damaged while two nodes search")
def _(m, sim):
    ada, root = person(m, "ada"), admin(m, "root")
    ids = texts(ada)
    many = [write(ada, f"s{i}", f"Sheep number {i} eats grass on hill {i}.") for i in range(12)]
    ok(embedded(ada, *many), "posts")
    pids, pins = m.nodes(), on_each_node(root)
    threads = [Searching(p, ids["iron"]) for p in on_each_node(root)]
    shutil.copy(index_file(m), m.cwd + "/older")
    extra = write(ada, "late", "Iron is found in red rocks.")
    ok(embedded(ada, extra), "one more")
    size = os.path.getsize(index_file(m))
    damage = (("cut in half", lambda f: cut(f, size // 2), 2), ("emptied", lambda f: cut(f, 0), 2),
              ("cut to its head", lambda f: cut(f, 70000), 2),
              ("bits flipped", lambda f: flip(f, data_places(f)), 2),
              # A node that has it open needs its head no more, and writers find it.
              ("its head flipped", lambda f: flip(f, range(65536, 65600)), 0),
              ("deleted", os.unlink, 2),
              ("replaced by garbage", lambda f: overwrite(f, b"x" * 9999), 2),
              ("replaced by nothing", lambda f: overwrite(f, b""), 2))
    for what, spoil, least in damage:
        built = rebuilds(m)
        began = time.monotonic()
        with no_turns(m):
            spoil(index_file(m))
            seen = lambda: sum(reason(p, QUESTION)[0] == "index_rebuilt" for p in pins) >= least
            ok(wait_for(seen, 20), f"{what}: answers are degraded, on {least} nodes",
               [reason(p, QUESTION) for p in pins])
            equal([reason(p, QUESTION)[2][:1] for p in pins], [[ids["iron"]]] * 2,
                  f"{what}: words find it")
        ok(wait_for(lambda: rebuilds(m) == built + 1, 20), f"{what}: noticed")
        well = lambda: all(reason(p, QUESTION)[:2] == (None, False) for p in pins)
        ok(wait_for(well, 20), f"{what}: made anew", [reason(p, QUESTION) for p in pins])
        note(f"{what}: {time.monotonic() - began:.2f} s")
        equal(rebuilds(m), built + 1, f"{what}: once")
        equal([sorted(like(p, ids["iron"])) for p in pins],
              [sorted([*many, extra, *(i for n, i in ids.items() if n != "iron")])] * 2,
              f"{what}: with all vectors")
    for t in threads:
        t.stop()
    equal([t.wrong[:3] for t in threads], [[], []], "no answer was wrong at any time")
    note([(t.count, sorted(map(str, t.reasons))) for t in threads])
    equal(m.nodes(), pids, "no node has died")
    # A file that is whole, and old, cannot be told by its looks: its points are counted.
    path, built = index_file(m), rebuilds(m)
    equal(m.stop(), 0, "the server ends")
    shutil.copy(m.cwd + "/older", path)
    restart(m)
    ok(wait_for(lambda: rebuilds(m) == built + 1, 20), "an old copy is noticed at a start")
    ok(wait_for(lambda: extra in like(root, ids["iron"]), 20), "and made anew")


def is_full(path):
    """And stays so: while a large file is tried, and does not fit, it seems full for a moment."""
    looks = [time.sleep(0.02) or os.statvfs(path).f_bavail for _ in range(40)]
    return not any(looks)


@test("the disk of the index is full")
def _():
    if not disk.separate():
        note("no disk can be mounted here")
        return
    with Sim() as sim, posts_server(sim) as m:
        ada, root = person(m, "ada"), admin(m, "root")
        ids = texts(ada)
        path = index_file(m)
        equal(m.stop(), 0, "the server ends")
        os.unlink(path)  # it is made anew, and takes only the room that it needs
        small = disk.Disk(f"{m.data}/vectors")
        try:
            restart(m)
            ok(wait_for(lambda: reason(root, "rolls")[:2] == (None, False), 20), "made anew")
            big = "\n\n".join(f"Iron number {i} and steel {i * 7}. " * 10 for i in range(400))
            with small.full():
                ok(wait_for(lambda: is_full(small.path), 20), "the disk is full")
                new = write(ada, "new", big + " Iron rusts.")
                ok(wait_for(lambda: points(m, new) != {}, 40), "vectors are in MySQL",
                   show(ada, new))
                note(f"{len(points(m, new))} of them")
                change(ada, ids["bread"], content="Rolls are baked, too.")
                seen = lambda: reason(root, "rolls")[:2]
                ok(wait_for(lambda: seen() == ("vector_store_away", True), 20),
                   "searches say that it is behind", seen(), show(ada, new))
                equal(found(ada, QUESTION) != [], True, "and find what they can")
                equal({root("GET", "/api/search?kind=post&q=iron").status for _ in range(5)}, {200},
                      "all the time")
            ok(wait_for(lambda: hurry(m) or (state(ada, new), state(ada, ids["bread"])) ==
                        ("completed",) * 2, 40), "when there is room, all are embedded",
               show(ada, new))
            ok(wait_for(lambda: seen() == (None, False), 20), "and nothing lacks", seen())
            ok(wait_for(lambda: new in like(ada, ids["iron"]), 5), "the new one is found")
            equal(os.path.exists(path), True, "in the same file")
            equal(m.stop(), 0, "the server ends")
        finally:
            small.unmount()


# --- a Qdrant server ---

def right(m, server, posts):
    """Whether the server has the vectors of these posts, and nothing else."""
    there = {}
    try:
        for p in server.points("blog_posts").values():
            there.setdefault(int(p["owner"]), set()).add(int(p["version"]))
    except Exception:
        return False
    return there == {p: set(points(m, p).values()) for p in posts}


@test("a Qdrant server that is away, slow, full, or answers 500")
def _():
    with Qdrant("qd-key") as server, Sim() as sim, posts_server(
            sim, MILLRACE_VECTORS_STORE="qdrant", MILLRACE_VECTORS_URL=server.url,
            MILLRACE_VECTORS_API_KEY="qd-key", MILLRACE_VECTORS_TIMEOUT_MS="500") as m:
        ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
        ids = texts(ada)
        equal(found(ada, QUESTION)[:1], [ids["iron"]], "it is searched")
        ok(wait_for(lambda: right(m, server, ids.values())), "it has all vectors")
        posts, server.slow_seconds = dict(ids), 0.8

        def stops():
            server.stop()
            return server.start

        def fails(fault):
            server.fail_at_random(1, 7, [fault])
            return lambda: server.fail_at_random(0, 7)

        for what, begin in (("away", stops), ("500", lambda: fails("500")),
                            ("full", lambda: fails("full")), ("slow", lambda: fails("slow")),
                            ("garbage", lambda: fails("garbage"))):
            began = time.monotonic()
            end = begin()
            posts[what] = write(ada, what, f"Nickel while it is {what}.")
            change(ada, ids["bread"], content=f"Bread while it is {what}.")
            change(ada, ids["bees"], title=f"Bees while it is {what}", hide=True)
            gone = write(ada, "gone", f"It goes while it is {what}.")
            ada("DELETE", f"/api/posts/{gone}")
            ok(wait_for(lambda: reason(root, "bread")[:2] == ("vector_store_away", True), 20),
               f"{what}: searches are degraded", reason(root, "bread"))
            equal((found(ada, what)[:1], ids["bees"] in found(bob, "bees honey")),
                  ([posts[what]], False), f"{what}: words find what may be found")
            end()
            change(ada, ids["bees"], hide=False)
            ok(wait_for(lambda: hurry(m) or (
                all(state(ada, p) == "completed" for p in posts.values()) and
                row(m, gone, "id") is None), 60), f"{what}: no post is lost",
               [show(ada, p) for p in posts.values()], row(m, gone, "id", "waits"))
            ok(wait_for(lambda: right(m, server, posts.values()), 20),
               f"{what}: in the end it is right", server.points("blog_posts"))
            ok(wait_for(lambda: reason(root, "bread")[:2] == (None, False), 20),
               f"{what}: all well", reason(root, "bread"))
            title = {p["title"] for p in server.points("blog_posts").values()
                     if int(p["owner"]) == ids["bees"]}
            equal(title, {f"Bees while it is {what}"}, f"{what}: with the last title")
            note(f"{what}: {time.monotonic() - began:.1f} s")
        server.fail_at_random(0.3, 11)
        for i in range(6):
            posts[i] = write(ada, f"n{i}", f"Tin number {i}.")
            change(ada, posts[i], content=f"Tin number {i}, changed.")
        ok(wait_for(lambda: hurry(m) or all(state(ada, p) == "completed" for p in posts.values()),
                    60), "all of it at random: no post is lost")
        server.fail_at_random(0, 11)
        ok(wait_for(lambda: right(m, server, posts.values()), 20), "and in the end it is right")
        server.lose(server.names()[0])
        ok(wait_for(lambda: right(m, server, posts.values()), 30), "lost, it is made anew")
        equal([p[-300:] for p in server.problems[:3]], [], "all requests are of its API")


if __name__ == "__main__":
    run_tests()
