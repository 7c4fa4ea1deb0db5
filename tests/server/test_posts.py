"""Posts (EMB-1, EMB-2): written, queued, embedded once for each content, paid once, while the
service fails, and nodes and stores die."""
import json
import os
import signal
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from admins import admin, told
from client import Api
from harness import (crowd, equal, freeze, http, note, ok, redis_link, run_tests, sql, test,
                     wait_for)
from hook import Hook
from own_redis import Redis
from posts import (QUEUE, add_key, change, either, embedded, found, hurry, paused, points,
                   posts_server, queue, reaches, restart, row, search, show, state, status, vector,
                   with_posts, write)
from screening import audited, person
from sim import Sim
from tasks import money

SOON_MS = 100  # EMB-1
LONG = "\n\n".join(f"## Part {i}\n\n" + f"Sentence {i} tells of sample number {i}. " * 60
                   for i in range(8))


def kill_nodes(m):
    pids = m.nodes()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: len(m.nodes()) == len(pids) and not set(pids) & set(m.nodes()), 20)


def positions(m, post):
    return int(row(m, post, "position")[0])


class Events(threading.Thread):
    """A stream, read until it ends or is closed: got is [(event, data)]."""

    def __init__(self, api, path):
        super().__init__(daemon=True)
        r = urllib.request.Request(f"http://127.0.0.1:{api.server.port}{path}",
                                   headers={"Authorization": f"Bearer {api.token}"})
        self.stream, self.got = urllib.request.urlopen(r, timeout=60), []
        self.start()

    def run(self):
        name = None
        try:
            for line in self.stream:
                line = line.decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    self.got.append((name, json.loads(line[6:])))
        except (OSError, ValueError, AttributeError):
            pass

    def of(self, post):
        return [d["rag_status"] for _, d in self.got if d["id"] == post]


# --- what the routes do ---

@with_posts("a post from its writing to its end", "--latency-ms", "30")
def _(m, sim):
    ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
    began = time.monotonic()
    r = ada("POST", "/api/posts", {"title": "Iron", "content": LONG})
    p = r.body["post"]
    equal((r.status, p["title"], p["content"], p["hide"], p["mine"], p["version"], p["rag_status"],
           p["rag_error"], p["reason_code"]),
          (201, "Iron", LONG, False, True, 1, "pending", None, None), "written", r)
    post = p["id"]
    ok(0 < post < 2**53 and post > 1000, "its id is a number of JSON that cannot be guessed", post)
    ok(embedded(ada, post), "embedded", show(ada, post))
    note(f"{time.monotonic() - began:.2f} s from the request to its end")
    p = show(ada, post)
    n = p["progress"]["total"]
    ok(n > 5 and p["progress"]["done"] == n, "all chunks", p["progress"])
    equal(points(m, post), {i: 1 for i in range(n)}, "one vector each, of the first version")
    equal(queue(m), {}, "nothing is left in the queue")
    second = write(ada, "Zinc", "Zinc is a metal.")
    equal([x["id"] for x in ada("GET", "/api/posts").body["posts"]], [second, post],
          "the newest first")
    ok("content" not in ada("GET", "/api/posts").body["posts"][0], "without contents")
    paged = [x["id"] for page in ada.pages("/api/posts?limit=1") for x in page["posts"]]
    equal(paged, [second, post], "page by page")
    equal((bob("GET", "/api/posts").body["posts"], [x["id"] for x in bob(
        "GET", "/api/posts?of=all").body["posts"]]), ([], [second, post]), "others list all")
    seen = show(bob, post)
    equal((seen["mine"], seen["uid"], seen["content"]), (False, None, LONG), "and read them")
    equal([(x["uid"], x["mine"]) for x in root("GET", "/api/posts").body["posts"]],
          [(ada.uid, False)] * 2, "admins see whose they are")
    r = ada("DELETE", f"/api/posts/{second}")
    equal(r.status, 200, "deleted", r)
    equal([a("GET", f"/api/posts/{second}").status for a in (ada, bob, root)], [404] * 3, "gone")
    ok(wait_for(lambda: row(m, second, "id") is None, 20), "and its row")
    equal(points(m, second), {}, "with its vectors")
    equal([sql(m, f"SELECT COUNT(*) FROM {table} WHERE owner = {second}")[0][0]
           for table in ("point_owner", "post_words")], ["0", "0"], "tags, and words")


@with_posts("what is refused", MILLRACE_EMBEDDING_CONTENT_CHARS="100",
            MILLRACE_EMBEDDING_POSTS_MAX="3", MILLRACE_LIMIT_EMBEDDING_MINUTE="2")
def _(m, sim):
    ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
    mine, hidden = write(ada, "a", "铁" * 100), write(ada, "b", "secret", hide=True)
    for body, field in (({"content": "铁" * 101}, "content"), ({"title": "t" * 501}, "title"),
                        ({"title": 1}, "title"), ({"hide": "yes"}, "hide"),
                        ({"content": "a\0b"}, "content"), ({"uid": bob.uid}, "uid"),
                        ({"rag_status": "completed"}, "rag_status")):
        for method, path in (("POST", "/api/posts"), ("PUT", f"/api/posts/{mine}")):
            equal(ada(method, path, body).error, (400, "invalid", field), f"{method} {body}"[:60])
    equal((ada("PUT", f"/api/posts/{mine}", {"version": 0}).error,
           ada("GET", "/api/posts?limit=101").error, ada("GET", "/api/posts?cursor=x").error,
           ada("GET", "/api/posts?cursor=-1").error, ada("GET", "/api/posts?of=x").error),
          ((400, "invalid", "version"), (400, "invalid", "limit"), (400, "invalid", "cursor"),
           (400, "invalid", "cursor"), (400, "invalid", "of")), "parameters that are none")
    equal(ada("PUT", f"/api/posts/{mine}", {"title": "c", "version": 9}).error[:2],
          (409, "conflict"), "a version that is not the last")
    equal(ada("DELETE", f"/api/posts/{mine}?version=9").error[:2], (409, "conflict"), "nor deleted")
    ids = (hidden, 1, 2**52 - 1, "x", "-1", "0", 2**63, "99999999999999999999")
    for post in ids:
        equal([bob(method, path, body).status for method, path, body in (
            ("GET", f"/api/posts/{post}", None), ("PUT", f"/api/posts/{post}", {"title": "x"}),
            ("DELETE", f"/api/posts/{post}", None), ("POST", f"/api/post/{post}/embed", {}))] +
              [http(m.port, f"/api/posts/{post}/events",
                    headers=[f"Authorization: Bearer {bob.token}"]).status], [404] * 5,
              f"another's hidden post, or none: {post}")
    equal([bob(method, path, body).status for method, path, body in (
        ("GET", f"/api/posts/{mine}", None), ("PUT", f"/api/posts/{mine}", {"title": "x"}),
        ("DELETE", f"/api/posts/{mine}", None), ("POST", f"/api/post/{mine}/embed", {}))],
          [200, 404, 404, 404], "another's open post can be read, and that is all")
    equal([x["id"] for x in bob("GET", "/api/posts?of=all").body["posts"]], [mine], "or listed")
    for method, path in (("GET", "/api/posts"), ("POST", "/api/posts"), ("GET", "/api/posts/1"),
                         ("PUT", "/api/posts/1"), ("DELETE", "/api/posts/1"),
                         ("GET", "/api/posts/events"), ("GET", "/api/posts/1/events"),
                         ("POST", "/api/post/1/embed"), ("POST", "/api/post/embed/batch"),
                         ("GET", "/api/embedding/queue/status")):
        equal(http(m.port, path, method=method).status, 401, f"{method} {path} without a session")
    equal([root(*x).status for x in (
        ("POST", "/api/posts", {"content": "x"}), ("PUT", f"/api/posts/{mine}", {"title": "x"}),
        ("DELETE", f"/api/posts/{mine}"))], [401] * 3, "an admin writes no posts")
    equal([ada("POST", "/api/post/embed/batch", {}).status,
           ada("GET", "/api/embedding/queue/status").status], [403, 403], "batches are for admins")
    for body, field in (({"ids": []}, "ids"), ({"ids": 1}, "ids"), ({"ids": ["x"]}, "ids"),
                        ({"ids": [1], "which": "all"}, "which"), ({"which": "some"}, "which"),
                        ({"ids": [1] * 1001}, "ids")):
        equal(root("POST", "/api/post/embed/batch", body).error, (400, "invalid", field),
              f"a batch of {body}"[:50])
    equal(root("POST", "/api/post/embed/batch", {"ids": [1, 2**52 - 1]}).body["queued"], 0,
          "ids of none are passed over")
    equal((root("POST", "/api/post/1/embed", {}).status, told(root.audit()[0])),
          (404, ("post.embed", "refused")), "what admins are refused is noted")
    empty = write(ada, "c", " \n\t ")
    equal(ada("POST", f"/api/post/{empty}/embed", {}).error[:2], (409, "conflict"),
          "an empty post is not embedded by hand")
    equal(ada("POST", "/api/posts", {"content": "x"}).error[:2], (409, "conflict"),
          "more posts than a user may have")
    ok(embedded(ada, mine, hidden), "the others are")
    equal([ada("POST", f"/api/post/{mine}/embed", {}).status for _ in range(3)], [200, 200, 429],
          "by hand as often as a minute allows")
    equal(root("POST", f"/api/post/{mine}/embed", {}).status, 200, "admins as they like")
    ok(embedded(ada, mine) and show(ada, mine)["title"] == "a", "it is as it was", show(ada, mine))


@with_posts("a post whose answer was lost is sent again", MILLRACE_EMBEDDING_POSTS_MAX="3")
def _(m, sim):
    ada, bob = person(m, "ada"), person(m, "bob")
    send = lambda api, request, **members: api("POST", "/api/posts",
                                               {**members, "request_id": request})
    r = send(ada, "a-1", title="Tin", content="Tin melts early.")
    first = r.body["post"]["id"]
    ok(embedded(ada, first), "a post")
    at = positions(m, first)
    r = send(ada, "a-1", title="Tin", content="Tin melts early.", hide=False)
    equal((r.status, r.body["post"]["id"], r.body["post"]["rag_status"]),
          (201, first, "completed"), "the same again is the same post, as it is now", r)
    equal((positions(m, first), len(ada("GET", "/api/posts").body["posts"])), (at, 1),
          "which is not queued again")
    for members in ({"title": "Lead"}, {"content": "x"}, {"content": ""}, {"hide": True}):
        r = send(ada, "a-1", **{"title": "Tin", "content": "Tin melts early.", **members})
        equal(r.error[:2], (409, "conflict"), f"another one is refused: {members}", r)
    equal([send(ada, request, title="x").error for request in ("", " ", "a b", "é", "x" * 65, 7)],
          [(400, "invalid", "request_id")] * 6, "what is no request_id")
    theirs = send(bob, "a-1", title="Tin", content="Tin melts early.").body["post"]["id"]
    ok(theirs != first, "each user has requests of one's own")
    change(ada, first, title="Zinn", content="Zinn schmilzt.")
    r = send(ada, "a-1", title="Tin", content="Tin melts early.")
    equal((r.body["post"]["id"], r.body["post"]["title"]), (first, "Zinn"),
          "one that was changed since is not changed back", r)

    with ThreadPoolExecutor(16) as pool:
        for request in ("b-1", "b-2"):
            got = list(pool.map(lambda _, request=request: send(
                ada, request, title=request, content="At once."), range(16)))
            equal({(x.status, x.body["post"]["id"]) for x in got if x.status == 201},
                  {(201, got[0].body["post"]["id"])}, f"{request}: at once, one post", got)
            equal({x.status for x in got}, {201}, "and no error", got)
    equal(len(ada("GET", "/api/posts").body["posts"]), 3, "no more")
    equal(send(ada, "b-2", title="b-2", content="At once.").status, 201,
          "also when a user has all the posts there may be")
    equal(send(ada, "b-3", title="x").error[:2], (409, "conflict"), "which another one is not")

    equal(ada("DELETE", f"/api/posts/{first}").status, 200, "deleted")
    r = send(ada, "a-1", title="Tin", content="Tin melts early.")
    ok(r.status == 201 and r.body["post"]["id"] != first, "then it is a new one", r)
    ok(embedded(ada, r.body["post"]["id"]), "embedded")


@with_posts("what is queued, and what is not")
def _(m, sim):
    ada, root = person(m, "ada"), admin(m, "root")
    empty = write(ada, "nothing", "\n \t\n")
    equal((state(ada, empty), positions(m, empty), queue(m)), ("completed", 0, {}),
          "an empty post is not queued")
    change(ada, empty, title="nothing at all")
    change(ada, empty, content=" ")
    equal((state(ada, empty), positions(m, empty)), ("completed", 0), "nor when it stays empty")
    post = write(ada, "Copper", "Copper conducts heat.")
    ok(embedded(ada, post), "one with a text is")
    at, asked = positions(m, post), sim.stats()["requests"]
    for members in ({"title": "Kupfer"}, {"hide": True}, {"hide": False, "title": "铜"}, {},
                    {"content": "Copper conducts heat."}):
        p = change(ada, post, **members)
        equal((p["rag_status"], positions(m, post), sim.stats()["requests"]),
              ("completed", at, asked), f"not by {list(members)} alone")
    ok(wait_for(lambda: row(m, post, "tags_due") == ["0"], 5), "its vectors are told")
    equal(sql(m, f"SELECT title, flags FROM point_owner WHERE owner = {post}"), [["铜", "0"]],
          "its title")
    equal(show(ada, post)["version"], 4, "what changes nothing is no version")
    p = change(ada, post, content="Copper conducts current.")
    equal((p["rag_status"], positions(m, post) > at), ("pending", True), "by its content")
    ok(embedded(ada, post) and points(m, post) == {0: 5}, "embedded again", points(m, post))
    p = change(ada, post, content="")
    equal((p["rag_status"], p["version"]), ("pending", 6), "emptied")
    ok(embedded(ada, post) and points(m, post) == {}, "its vectors go", points(m, post))
    equal((found(ada, "Copper conducts current"), sql(m, "SELECT * FROM post_words")), ([], []),
          "and its words")
    at = sim.stats()["requests"]
    change(ada, post, title="Silver")
    equal(root("POST", "/api/post/embed/batch", {}).body, {
        "success": True, "queued": 0, "refused": 0}, "no batch takes empty posts")
    equal(sim.stats()["requests"], at, "none asks for them")


@with_posts("an answer at once, while the service hangs", "--latency-ms", "600000",
            MILLRACE_AI_TIMEOUT_MS="1000")
def _(m, sim):
    ada, took, posts = person(m, "ada"), {"create": [], "change": [], "head": [], "delete": []}, []

    def timed(what, *args):
        began = time.monotonic()
        r = ada(*args)
        took[what].append((time.monotonic() - began) * 1000)
        return r

    for i in range(40):
        r = timed("create", "POST", "/api/posts", {"title": f"t{i}", "content": LONG + str(i)})
        posts.append(r.body["post"]["id"])
    for i, post in enumerate(posts):
        timed("change", "PUT", f"/api/posts/{post}", {"content": LONG + f"{i}b"})
        timed("head", "PUT", f"/api/posts/{post}", {"title": f"u{i}", "hide": i % 2 == 0})
    for post in posts[:20]:
        equal(timed("delete", "DELETE", f"/api/posts/{post}").status, 200, "deleted") \
            if post == posts[0] else timed("delete", "DELETE", f"/api/posts/{post}")
    for what, ms in took.items():
        ms.sort()
        note(f"{what}: median {ms[len(ms) // 2]:.1f} ms, at most {ms[-1]:.1f} ms")
        ok(ms[len(ms) // 2] < SOON_MS * crowd(), f"{what}: in {SOON_MS} ms", ms)
    equal({state(ada, p) for p in posts[20:]} <= {"pending", "processing"}, True, "they wait")
    ok(wait_for(lambda: not row(m, posts[0], "id"), 30), "those deleted are gone without it")


# --- the queue ---

@with_posts("the queue's order, without duplicates")
def _(m, sim):
    ada, root = person(m, "ada"), admin(m, "root")
    old = [write(ada, f"old {i}", f"old text {i}") for i in range(2)]
    ok(embedded(ada, *old), "two posts from before")
    paused(root)
    normal = [write(ada, f"n {i}", f"text of {i}") for i in range(3)]
    equal(root("POST", "/api/post/embed/batch", {}).body["queued"], 2,
          "a batch takes those that are done")
    equal(ada("POST", f"/api/post/{normal[2]}/embed", {}).status, 200, "one by hand")
    for _ in range(3):
        ada("POST", f"/api/post/{normal[2]}/embed", {})
        change(ada, normal[1], content="text of 1, again")
        root("POST", "/api/post/embed/batch", {"ids": [*old, *normal]})
    data = status(root)
    equal((data["queueLength"], data["processingCount"], data["processingTasks"]), (5, 0, []),
          "each is there once", data)
    equal([(x["postId"], x["priority"], x["tries"], x["uid"]) for x in data["queueTasks"]],
          [(normal[2], 1, 0, ada.uid), (normal[0], 5, 0, ada.uid), (normal[1], 5, 0, ada.uid),
           (old[0], 10, 0, ada.uid), (old[1], 10, 0, ada.uid)],
          "by hand, as written, batches; then by time", data)
    equal([x["title"] for x in data["queueTasks"]], ["n 2", "n 0", "n 1", "old 0", "old 1"],
          "with their titles")
    r = ada("DELETE", f"/api/posts/{normal[0]}")
    data = status(root)["queueTasks"][0]
    equal((r.status, data["postId"], data["priority"], data["title"]), (200, normal[0], 0, None),
          "one that is deleted comes before all others")
    equal([d["id"] for d in root("GET", "/api/posts").body["posts"]],
          [normal[2], normal[1], *old[::-1]], "and is gone")
    paused(root, False)
    posts = [*normal[1:], *old]
    ok(embedded(ada, *posts), "all are embedded", [show(ada, p) for p in posts])
    equal([told(x) for x in root.audit()[:4]],
          [("queue.resume", "done"), ("post.embed_batch", "done"), ("queue.pause", "done"),
           ("admin.login", "done")], "admins' deeds are in the audit log, once")
    equal(root.audit()[1]["after"], {"posts": 2}, "with what came of them")
    equal(root("POST", f"/api/post/{old[0]}/embed", {}).status, 200, "an admin embeds one")
    deed = root.audit()[0]
    equal((told(deed), deed["target"]), (("post.embed", "done"), str(old[0])), "noted, too", deed)
    equal(person(m, "eve")("POST", "/api/post/embed/batch", {}).status, 403, "others cannot")


@with_posts("an update during work runs again", "--latency-ms", "1500")
def _(m, sim):
    ada = person(m, "ada")
    post = write(ada, "first", "a first text about iron")
    ok(reaches(ada, post, "processing"), "it is in work")
    p = change(ada, post, content="a second text about silver")
    equal((p["version"], p["rag_status"]), (2, "pending"), "changed meanwhile")
    for i in range(3):
        p = change(ada, post, content=f"a third text about gold {i}")
    at = positions(m, post)
    equal(len(queue(m)), 1, "it is in the queue once", queue(m))
    ok(wait_for(lambda: points(m, post) == {0: 5}, 30), "the last text wins", points(m, post))
    ok(embedded(ada, post), "it is completed", show(ada, post))
    equal((positions(m, post), queue(m)), (at, {}), "by the job of its last change")
    time.sleep(0.5)
    calls = sim.stats()["requests"]
    ok(calls <= 4, "not one call for each change", calls)
    other = write(ada, "other", "a first text about iron")
    ok(reaches(ada, other, "processing"), "another one in work")
    change(ada, other, title="another", hide=True)
    ok(embedded(ada, other), "its title is changed meanwhile")
    ok(wait_for(lambda: sql(m, f"SELECT title, flags FROM point_owner WHERE owner = {other}") ==
                [["another", "1"]], 10), "its vectors are told")
    equal(points(m, other), {0: 1}, "and are those of its content")
    gone = write(ada, "gone", "a text that goes")
    ok(reaches(ada, gone, "processing"), "a third one in work")
    equal(ada("DELETE", f"/api/posts/{gone}").status, 200, "deleted meanwhile")
    ok(wait_for(lambda: row(m, gone, "id") is None and not queue(m), 30), "its row goes")
    equal(points(m, gone), {}, "no vector stays")


@with_posts("two at a time, over all nodes", "--latency-ms", "400", MILLRACE_NODES="3")
def _(m, sim):
    ada, root = person(m, "ada"), admin(m, "root")
    posts = [write(ada, f"t{i}", f"text number {i} of many") for i in range(10)]
    most = shown = 0
    while any(state(ada, p) != "completed" for p in posts[-2:]):
        link = redis_link(m)
        most = max(most, link("ZCARD", f"jobs:{QUEUE}:leases"))
        shown = max(shown, status(root)["processingCount"])
    ok(embedded(ada, *posts), "all are embedded")
    ok(most == 2 and shown <= 2, "never more than two were in work", most, shown)


@with_posts("two more tries, each at a lower priority", "--embed-fault", "1",
            "--embed-fault-kinds", "null")
def _(m, sim):
    ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
    post, seen = write(ada, "t", "one that the service makes no vector of"), []
    for n in (1, 2):
        ok(wait_for(lambda: queue(m).get(post, ("", 0, 0)) == ("delays", 5 + n, n), 20),
           f"after try {n} it waits, one priority lower", queue(m))
        link = redis_link(m)
        due = float(link("ZSCORE", f"jobs:{QUEUE}:delays", str(post))) / 1000 - time.time()
        seen.append(due)
        hurry(m)
    ok(0.5 < seen[0] <= 7.6 and seen[0] < seen[1] <= 15.1, "5 s, then twice that, about", seen)
    ok(reaches(ada, post, "failed"), "after the third it failed", show(ada, post))
    p = show(ada, post)
    ok(p["reason_code"] == "bad_answer" and "vector" in p["rag_error"], "and says why", p)
    equal((show(bob, post)["rag_error"], show(bob, post)["reason_code"]), (None, None),
          "to its owner")
    equal(show(root, post)["rag_error"], p["rag_error"], "and admins")
    equal(queue(m), {}, "it is in the queue no more")
    equal(points(m, post), {}, "and has no vectors")
    equal(found(ada, "service makes no vector"), [post], "but is found by its words")
    sim.kill()
    with Sim(port=sim.port):
        equal(root("POST", "/api/post/embed/batch", {"which": "failed"}).body["queued"], 1,
              "a batch of failed ones")
        ok(embedded(ada, post, seconds=40), "it is embedded when the service is well again",
           show(ada, post))
        equal((show(ada, post)["rag_error"], list(points(m, post))), (None, [0]), "for good")
    sim.__enter__()


@with_posts("a queue that is full", MILLRACE_EMBEDDING_QUEUE_MAX="3")
def _(m, sim):
    ada, root = person(m, "ada"), admin(m, "root")
    first = write(ada, "a", "first")
    ok(embedded(ada, first), "one from before")
    paused(root)
    posts = [write(ada, f"t{i}", f"text {i}") for i in range(2)]
    equal(root("POST", "/api/post/embed/batch", {"ids": [first]}).body["queued"], 1, "three wait")
    equal([ada("POST", "/api/posts", {"content": "more"}).error[:2],
           ada("PUT", f"/api/posts/{first}", {"content": "more"}).error[:2],
           ada("POST", f"/api/post/{first}/embed", {}).error[:2],
           root("POST", "/api/post/embed/batch", {}).error[:2]], [(503, "busy")] * 4,
          "no more are taken")
    equal(show(ada, first)["content"], "first", "and nothing is changed")
    equal(ada("PUT", f"/api/posts/{first}", {"title": "b"}).status, 200, "titles are")
    equal([ada("POST", "/api/posts", {"title": "x"}).status,
           ada("PUT", f"/api/posts/{posts[0]}", {"content": ""}).status,
           ada("DELETE", f"/api/posts/{posts[1]}").status], [201, 200, 200],
          "and what makes it shorter, or needs no place")
    paused(root, False)
    ok(embedded(ada, first, posts[0]) and wait_for(lambda: not queue(m), 20), "then it goes on")
    paused(root)
    write(ada, "c", "text")
    r = root("POST", "/api/post/embed/batch", {}).body
    equal((r["queued"], r["refused"]), (1, 0), "one fits", r)
    paused(root, False)


# --- events ---

@with_posts("events", "--latency-ms", "300")
def _(m, sim):
    ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
    mine, alls, others = (Events(a, "/api/posts/events") for a in (ada, root, bob))
    post = write(ada, "t", LONG)
    one = Events(ada, f"/api/posts/{post}/events")
    ok(embedded(ada, post), "embedded")
    one.join(10)
    ok(not one.is_alive() and one.got[-1][0] == "state", "the stream of one ends", one.got)
    last = one.got[-1][1]
    equal((last["rag_status"], last["progress"]["done"] == last["progress"]["total"] > 1,
           set(last)), ("completed", True, {"id", "rag_status", "rag_error", "reason_code",
                                            "progress"}), "with all of its chunks", last)
    for who, stream in (("its owner", mine), ("an admin", alls)):
        ok(wait_for(lambda: stream.of(post)[-1:] == ["completed"], 10), f"{who} is told",
           stream.got)
    change(ada, post, content="short")
    ok(wait_for(lambda: mine.of(post)[-1:] == ["completed"] and len(mine.of(post)) > 2, 20),
       "each time", mine.got)
    equal(others.got, [], "others are not")
    equal([s.is_alive() for s in (mine, alls, others)], [True] * 3, "these do not end")
    done = Events(bob, f"/api/posts/{post}/events")
    done.join(10)
    equal([(n, d["rag_status"]) for n, d in done.got], [("state", "completed")],
          "of one that has ended: its end")


# --- either kind of session ---

@with_posts("a browser with sessions of both kinds")
def _(m, sim):
    ada, bob, root = person(m, "ada"), person(m, "bob"), admin(m, "root")
    both = either(m, bob, root)
    hidden = write(ada, "hidden", "a hidden text", hide=True)
    own = write(bob, "own", "a text of bob")
    ok(embedded(ada, hidden) and embedded(bob, own), "posts of two")
    equal(both("GET", f"/api/posts/{hidden}").status, 200, "the admin sees what the user may not")
    equal(both("GET", f"/api/posts/{own}").body["post"]["mine"], True, "own ones are the user's")
    equal([x["id"] for x in both("GET", "/api/posts").body["posts"]], [own], "lists, too")
    asked = positions(m, hidden), positions(m, own)
    equal([both("POST", f"/api/post/{p}/embed", {}).status for p in (hidden, own)], [200, 200],
          "either is embedded")
    ok(embedded(ada, hidden) and embedded(bob, own), "again")
    ok(positions(m, hidden) > asked[0] and positions(m, own) > asked[1], "indeed")
    equal([(x["action"], x["target"]) for x in root.audit() if x["action"] == "post.embed"],
          [("post.embed", str(hidden))], "the admin's deed is noted, not the user's")
    equal(both("POST", "/api/post/embed/batch", {}).body["queued"], 2, "batches are the admin's")
    equal(both("GET", "/api/embedding/queue/status").status, 200, "and the queue")
    sql(m, "UPDATE admin_info SET username = username")
    equal(both("PUT", f"/api/posts/{hidden}", {"title": "x"}).status, 404, "but not to write")


# --- money ---

@with_posts("posts that cost something", "--latency-ms", "100", MILLRACE_EMBEDDING_POST_PRICE="1")
def _(m, sim):
    ada, root = person(m, "ada", "5.00"), admin(m, "root")
    post = write(ada, "a", "a text that costs")
    equal(ada.me().body["reserved"], "1.00", "reserved")
    ok(embedded(ada, post), "embedded")
    equal(money(ada), ("4.00", "0.00"), "paid once")
    change(ada, post, title="b")
    change(ada, post, hide=True)
    equal(root("POST", f"/api/post/{post}/embed", {}).status, 200, "again by an admin")
    ok(embedded(ada, post), "embedded")
    equal(root("POST", "/api/post/embed/batch", {}).body["queued"], 1, "and in a batch")
    ok(embedded(ada, post), "embedded")
    equal(money(ada), ("4.00", "0.00"), "title, visibility and admins cost nothing")
    change(ada, post, content="another text")
    ok(embedded(ada, post), "embedded")
    equal(ada("POST", f"/api/post/{post}/embed", {}).status, 200, "by hand")
    ok(embedded(ada, post), "embedded")
    equal(money(ada), ("2.00", "0.00"), "a content and a wish of the user's cost")
    paused(root)
    other = write(ada, "c", "third text")
    for i in range(3):
        change(ada, other, content=f"third text {i}")
        ada("POST", f"/api/post/{other}/embed", {})
    equal(money(ada), ("2.00", "1.00"), "what waits costs once")
    change(ada, other, content="")
    paused(root, False)
    ok(embedded(ada, other), "emptied")
    equal(money(ada), ("2.00", "0.00"), "which costs nothing")
    paused(root)
    posts = [write(ada, f"p{i}", f"poor {i}") for i in range(2)]
    r = ada("POST", "/api/posts", {"content": "too much"})
    equal(r.error[:2], (402, "funds"), "without money it is refused", r)
    equal(ada("PUT", f"/api/posts/{post}", {"content": "too much"}).status, 402, "so is a change")
    equal(ada("POST", f"/api/post/{post}/embed", {}).status, 402, "and a wish")
    equal(show(ada, post)["content"], "another text", "nothing is changed")
    equal(ada("DELETE", f"/api/posts/{posts[0]}").status, 200, "a deletion costs nothing")
    paused(root, False)
    ok(embedded(ada, posts[1]), "the other is embedded")
    equal(money(ada), ("1.00", "0.00"), "and paid")
    charges = sql(m, "SELECT COUNT(*) FROM ledger_request WHERE request_id LIKE 'embedding:%'")
    equal(charges, [["4"]], "four payments")
    paused(root)
    late = write(ada, "l", "late")
    r = root("POST", f"/api/admin/users/{ada.uid}/deduct", {"amount": "1.00", "request_id": "x"})
    equal(r.status, 200, "the money goes meanwhile", r)
    paused(root, False)
    ok(wait_for(lambda: show(ada, late)["reason_code"] == "no_money", 20), "then it waits, and "
       "says so", show(ada, late))
    equal(queue(m)[late][0], "held", "held")
    root("POST", f"/api/admin/users/{ada.uid}/recharge", {"amount": "1.00", "request_id": "y"})
    ok(embedded(ada, late, seconds=20), "until there is some", show(ada, late))
    equal(money(ada), ("0.00", "0.00"), "for which it is paid")
    sql(m, f"UPDATE user_info SET permission = 0 WHERE uid = {ada.uid}")
    equal(root("POST", f"/api/admin/users/{ada.uid}/permission", {"permission": 0}).status, 200,
          "permission 0")
    equal(root("POST", f"/api/post/{post}/embed", {}).status, 200, "embedded by an admin")
    ok(wait_for(lambda: show(ada, post)["reason_code"] == "no_permission", 20), "waits",
       show(ada, post))
    root("POST", f"/api/admin/users/{ada.uid}/permission", {"permission": 5})
    ok(embedded(ada, post, seconds=20), "until it is allowed")
    bob = person(m, "bob", "1.00")
    last = {"content": "for the only coin", "request_id": "last"}
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: bob("POST", "/api/posts", last), range(8)))
    equal({x.status for x in got}, {201}, "sent again and again", got)
    ids = {x.body["post"]["id"] for x in got}
    ok(len(ids) == 1 and embedded(bob, *ids), "it is one post", ids)
    equal(money(bob), ("0.00", "0.00"), "paid once")
    equal(bob("POST", "/api/posts", last).status, 201, "and answered without money")
    audited(m)


# --- the service ---

def waits(api, post, reason="service_down", seconds=30):
    return wait_for(lambda: (p := show(api, post))["reason_code"] == reason and p["rag_error"]
                    and p["rag_status"] in ("pending", "processing"), seconds)


@test("a service that is away, slow or failing")
def _():
    sim = Sim()
    with Hook() as hook, sim, posts_server(
            sim, MILLRACE_AI_TIMEOUT_MS="1000", MILLRACE_ALERT_QUEUE_MS="2000",
            MILLRACE_ALERT_WEBHOOK_URL=hook.url) as m:
        ada, root = person(m, "ada"), admin(m, "root")
        first = write(ada, "first", "first text")
        ok(embedded(ada, first), "a service that works")
        for what, args in (("away", None), ("slow", ("--latency-ms", "60000")),
                           ("500", ("--fail", "1", "--fail-kinds", "500")),
                           ("garbage", ("--fail", "1", "--fail-kinds", "garbage"))):
            began = time.monotonic()
            sim.kill()
            if args:
                sim.args = args
                sim.__enter__()
            post = write(ada, what, f"text while it is {what}")
            ok(waits(ada, post), f"{what}: the post waits, and says why", show(ada, post))
            note(show(ada, post)["rag_error"])
            if args:
                sim.kill()
            else:
                hook.told("queue:embedding", ["begun"])
                hurry(m)
                time.sleep(3)  # while it is tried again and again
                hook.told("queue:embedding", ["begun"])
            sim.args = ()
            sim.__enter__()
            ok(wait_for(lambda: hurry(m) or state(ada, post) == "completed", 40),
               f"{what}: it goes on by itself", show(ada, post))
            p = show(ada, post)
            equal((p["rag_error"], p["reason_code"], int(row(m, post, "priority")[0])),
                  (None, None, 5), f"{what}: no try was lost", p)
            if not args:
                hook.told("queue:embedding", ["begun", "ended"])
            note(f"{what}: {time.monotonic() - began:.1f} s")
        equal(queue(m), {}, "nothing is left")


@test("no key, no service")
def _():
    class Nothing:
        url = None
    sim = Sim()
    with sim, posts_server(sim, key=False, MILLRACE_AI_TIMEOUT_MS="1000") as m:
        ada = person(m, "ada")
        post = write(ada, "first", "first text")
        ok(waits(ada, post), "without a key it waits, and says why", show(ada, post))
        note(show(ada, post)["rag_error"])
        add_key(m)
        ok(wait_for(lambda: hurry(m) or state(ada, post) == "completed", 40), "it goes on",
           show(ada, post))
        change(ada, post, content="second text")
        ok(embedded(ada, post), "embedded")
        equal(m.stop(), 0, "the server ends")
        url = m.env.pop("MILLRACE_AI_EMBEDDING_URL")
        restart(m)
        change(ada, post, content="third text of cobalt")
        ok(waits(ada, post, "no_embedding_service"), "without a service, too", show(ada, post))
        ok(wait_for(lambda: found(ada, "cobalt") == [post], 10), "it is found by its words")
        equal(m.stop(), 0, "the server ends")
        m.env["MILLRACE_AI_EMBEDDING_URL"] = url
        restart(m)
        ok(embedded(ada, post, seconds=40), "and goes on when there is one", show(ada, post))


@test("an alert of failures")
def _():
    sim = Sim("--embed-fault", "1", "--embed-fault-kinds", "zero")
    with Hook() as hook, sim, posts_server(sim, MILLRACE_ALERT_WEBHOOK_URL=hook.url) as m:
        ada, root = person(m, "ada"), admin(m, "root")
        posts = [write(ada, f"t{i}", f"text {i} of some") for i in range(12)]
        ok(wait_for(lambda: hurry(m) or all(
            s == ["failed"] for s in sql(m, "SELECT rag_status FROM tb_post")), 60),
           "all posts fail")
        hook.told("failing:embedding", ["begun"])
        q = next(q for q in root("GET", "/api/admin/queues").body["queues"] if q["name"] == QUEUE)
        equal((q["failed"], q["failures"]), (12, 12), "they are counted", q)
        text = m.get("/metrics").body.decode()
        ok('millrace_jobs_failed_total{queue="embedding"' in text, "and a metric")
        sim.kill()
        with Sim(port=sim.port):
            r = root("POST", f"/api/admin/queues/{QUEUE}/retry", {})
            equal((r.status, r.body["jobs"]), (200, 12), "an admin retries them", r)
            ok(wait_for(lambda: hurry(m) or all(
                s == ["completed"] for s in sql(m, "SELECT rag_status FROM tb_post")), 60),
               "all are embedded", *[show(ada, p)["rag_error"] for p in posts[:2]])
        equal(root("POST", f"/api/admin/queues/{QUEUE}/drop", {}).status, 409,
              "posts are not dropped with their jobs")
        sim.args = ()
        sim.__enter__()


# --- restarts ---

@with_posts("nodes, the server and Redis die in the middle", "--latency-ms", "300")
def _(m, sim):
    ada = person(m, "ada")
    posts = [write(ada, f"t{i}", f"text {i} of many that wait") for i in range(8)]
    gone = posts.pop()
    ok(wait_for(lambda: any(state(ada, p) == "processing" for p in posts), 10), "in work")
    ada("DELETE", f"/api/posts/{gone}")
    kill_nodes(m)
    assert wait_for(m.ready, 30)
    change(ada, posts[0], content="text 0, changed while nodes die")
    os.kill(m.pid_of("redis"), signal.SIGKILL)
    wait_for(lambda: (r := ada("PUT", f"/api/posts/{posts[1]}", {"content": "text 1, changed"}))
             and r.status == 200, 30)
    ok(wait_for(m.ready, 30), "Redis is back")
    ok(embedded(ada, *posts, seconds=60), "all are embedded", [show(ada, p) for p in posts])
    equal([points(m, p) for p in posts], [{0: 2}, {0: 2}] + [{0: 1}] * 5,
          "once, by their last content")
    ok(wait_for(lambda: row(m, gone, "id") is None and points(m, gone) == {}, 20), "one is gone")
    for i, p in enumerate(posts):
        change(ada, p, content=f"text {i} of another kind")
    equal(m.stop(), 0, "the server ends in the middle")
    restart(m)
    ok(embedded(ada, *posts, seconds=60), "and goes on after a start")
    equal([set(points(m, p).values()) for p in posts], [{3}, {3}] + [{2}] * 5, "with all")
    ok(wait_for(lambda: queue(m) == {}, 20), "nothing is left in the queue", queue(m))


@with_posts("Redis comes back empty", "--latency-ms", "200")
def _(m, sim):
    ada, root = person(m, "ada"), admin(m, "root")
    posts = [write(ada, f"t{i}", f"text {i} of many that wait") for i in range(6)]
    redis_link(m)("CONFIG", "SET", "appendonly", "no")
    redis_link(m)("FLUSHALL")
    pid = m.pid_of("redis")
    os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: m.pid_of("redis") not in (None, pid) and m.ready(), 40)
    ada.login("ada")
    ok(embedded(ada, *posts, seconds=90), "no post is lost", [show(ada, p) for p in posts])
    equal([points(m, p) for p in posts], [{0: 1}] * 6, "nor embedded twice in effect")


run_tests()
