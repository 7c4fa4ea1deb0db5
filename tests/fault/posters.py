"""Posts that users write, change, hide, delete and have embedded, whatever goes on around them;
others, who look for what is hidden; and what the stores have of them in the end."""
import json
import re
import threading
import time
import urllib.parse

import checks_posts
from caller import Caller, Reply
from checks_posts import Known, Post
from harness import http, sql, wait_for
from points import Eyes, chunks, decoded
from stores import PASSWORD

PRICE = 100  # cents
COLLECTION, WORDS = "blog_posts", "post_words"
SETTINGS = {"MILLRACE_EMBEDDING_POST_PRICE": str(PRICE // 100),
            **{f"MILLRACE_LIMIT_EMBEDDING_{span}": "0" for span in ("MINUTE", "DAY", "MONTH")}}
POSTS_MAX = 30  # of one user: what is like a post is one page
SEEKER_PAUSE_S = 0.6  # so often as a user may search
PAGE = 100
NOT_DONE = ("unavailable", "busy")  # surely
SUBJECTS = ("iron and steel", "bread and flour", "bees and honey", "sheep on hills", "二维材料")


def token(random):
    return f"t{random.getrandbits(48):012x}"


def paragraph(random, words):
    subject = random.choice(SUBJECTS)
    return f"About {subject}: {token(random)}. " + " ".join(
        f"It tells of {subject} at some length." for _ in range(words // 8))


def content_of(random):
    """Nothing, a few words, or some pages."""
    dice = random.random()
    if dice < 0.08:
        return random.choice(("", " \n"))
    if dice < 0.75:
        return paragraph(random, 16)
    return "\n\n".join(f"## Part {i}\n\n" + paragraph(random, 200)
                       for i in range(random.randint(2, 6)))


def words_of(content):
    """What to search for so that this is found; "": there is nothing."""
    found = re.search(checks_posts.TOKEN, content)
    return found[0] if found else ""


def unclear(r):
    """Whether nobody knows if it was done."""
    return r is None or (r.status >= 500 and r.code not in NOT_DONE)


class Posts:
    """Those of a person, who is alone with them: so it knows what they may be."""

    def __init__(self, person):
        self.person, self.random = person, person.random
        self.known = {}  # id: Known
        self.unclear = []  # contents of new ones whose answer was lost
        self.status = {}  # id: last one that was seen
        self.lock = threading.Lock()
        self.out_of_sight = {}  # id: (words, since when) of those surely hidden, or deleted
        self.count = {"created": 0, "changed": 0, "lost": 0, "late": 0, "deleted": 0, "by hand": 0}

    def there(self):
        return sorted(i for i, k in self.known.items() if not k.deleted and not k.perhaps_deleted)

    # --- what others must not see ---

    def hide(self, post, content):
        with self.lock:
            self.out_of_sight.setdefault(post, (words_of(content), time.monotonic()))

    def unhide(self, post):
        with self.lock:
            self.out_of_sight.pop(post, None)

    def sight(self):
        with self.lock:
            return dict(self.out_of_sight)

    # --- all the time ---

    def create(self):
        content, hide = content_of(self.random), self.random.random() < 0.3
        title = f"of {self.person.name} {self.random.getrandbits(24):x}"
        r = self.person.ask("POST", "/api/posts",
                            {"title": title, "content": content, "hide": hide})
        if r and r.status == 201:
            post = r.body["post"]["id"]
            self.count["created"] += 1
            self.known[post] = Known(self.person.uid, {1: [(title, content, hide)]},
                                     wishes=not checks_posts.blank(content))
            self.status[post] = r.body["post"]["rag_status"]
            self.person.events(self.person.name, f"wrote {post}")
            if hide:
                self.hide(post, content)
        elif r and r.status == 402:
            self.person.pay(r, 10)
        elif unclear(r):
            self.count["lost"] += 1
            self.unclear.append(content)

    def look(self, post):
        """Its state, by which it is clear what it is; None: it is not known now."""
        r = self.person.ask("GET", f"/api/posts/{post}", may_be_gone=True)
        if r is None or r.status >= 500 or r.body.get("degraded"):
            return None
        k = self.known[post]
        if r.status == 404:
            if not k.deleted and not k.perhaps_deleted:
                self.person.problem(f"post {post} is gone")
            k.deleted = True
            return None
        p = r.body["post"]
        self.status[post] = p["rag_status"]
        now = (p["title"], p["content"], p["hide"])
        if now not in k.versions.get(p["version"], ()):
            self.person.problem(f"post {post} version {p['version']} is {now[0]!r}"
                                f" {now[1][:40]!r} {now[2]}, its writer knows"
                                f" {[(v, [s[0] for s in x]) for v, x in k.versions.items()]}")
        # What was sent may still come.
        k.versions = {p["version"]: [now],
                      **{v: x for v, x in k.versions.items() if v > p["version"]}}
        return p

    def change(self, post):
        """Content, title or visibility; by the version that was seen, now and then a late one."""
        p = self.look(post)
        if not p:
            return
        k, version = self.known[post], p["version"]
        title, content, hide = p["title"], p["content"], p["hide"]
        dice, wish = self.random.random(), {"version": version}
        if dice < 0.45:
            content = wish["content"] = content_of(self.random)
        if dice > 0.35 and dice < 0.65:
            title = wish["title"] = f"of {self.person.name} {self.random.getrandbits(24):x}"
        if dice > 0.6:
            hide = wish["hide"] = not hide
        late = version > 1 and self.random.random() < 0.1
        if late:
            wish["version"] = version - 1
            self.count["late"] += 1
        if (title, content, hide) == (p["title"], p["content"], p["hide"]):
            return
        costs = content != p["content"] and not checks_posts.blank(content)
        self.unhide(post)
        r = self.person.ask("PUT", f"/api/posts/{post}", wish, may_be_gone=True)
        if r and r.status == 200:
            q = r.body["post"]
            self.count["changed"] += 1
            k.wishes += costs
            if late or q["version"] != version + 1:
                self.person.problem(f"post {post}: version {wish['version']} was changed to"
                                    f" {q['version']}, {version} was there")
            k.versions = {version + 1: [(title, content, hide)]}
            if (q["title"], q["content"], q["hide"]) != (title, content, hide):
                self.person.problem(f"post {post}: a change answers {q['title']!r} {q['hide']}")
            self.status[post] = q["rag_status"]
            if hide:
                self.hide(post, content)
        elif unclear(r):
            self.count["lost"] += 1
            k.perhaps += costs
            k.versions.setdefault(version + 1, []).append((title, content, hide))
        elif r.status == 402:
            self.person.pay(r, 10)

    def delete(self, post):
        p = self.look(post)
        if not p:
            return
        r = self.person.ask("DELETE", f"/api/posts/{post}?version={p['version']}",
                            may_be_gone=True)
        k = self.known[post]
        if r and r.status == 200:
            self.count["deleted"] += 1
            k.deleted = True
            self.unhide(post)
            self.hide(post, p["content"])
        elif unclear(r):
            k.perhaps_deleted = True
        self.person.events(self.person.name, f"deletes {post}: {r.status if r else None}")

    def embed(self, post):
        r = self.person.ask("POST", f"/api/post/{post}/embed", {}, may_be_gone=True)
        k = self.known[post]
        if r and r.status == 200:
            self.count["by hand"] += 1
            k.wishes += 1
            self.status[post] = "pending"
        elif unclear(r):
            k.perhaps += 1
        elif r.status == 402:
            self.person.pay(r, 10)

    def find(self, post):
        """By its own words, or not yet."""
        k = self.known[post]
        (_, content, _), = k.versions[max(k.versions)][-1:]
        if words_of(content):
            self.person.ask("GET", "/api/search?kind=post&q=" + words_of(content))

    def step(self):
        """One of the things that can be done now."""
        mine, can = self.there(), []
        if len(self.known) + len(self.unclear) < POSTS_MAX:
            can += [self.create] * 3
        if mine:
            few, any_ = self.random.choice(mine[:4]), self.random.choice(mine)
            can += [lambda: self.change(few)] * 3 + [lambda: self.change(any_)] * 4
            can += [lambda: self.look(any_), lambda: self.embed(any_), lambda: self.find(any_)]
            if self.random.random() < 0.2:
                can += [lambda: self.delete(any_)]
        if can:
            self.random.choice(can)()

    def settle(self):
        """True: all are embedded. What failed is tried again by hand."""
        open_ = False
        for post, k in self.known.items():
            if k.deleted:
                continue
            p = self.look(post)
            if k.perhaps_deleted and p:
                k.perhaps_deleted = False
                self.delete(post)
            if p and p["rag_status"] == "failed":
                self.embed(post)
            open_ = open_ or not k.deleted and (not p or p["rag_status"] != "completed")
        return not open_


class Seeker(Caller):
    """Looks for what others have hidden, or deleted: nothing of it may be found, by whatever way,
    by a request that was sent after the answer."""

    def __init__(self, name, world, seed, events, posts):
        super().__init__(name, world, seed, events)
        self.posts, self.looks, self.hits = posts, 0, 0

    def log_in(self):
        r = Reply(http(self.world.servers[0].port, "/api/login", method="POST",
                       headers=["Content-Type: application/json"],
                       body=json.dumps({"username": self.name, "password": PASSWORD}).encode()))
        assert r.status == 200, r.body
        self.token, self.uid = r.body["token"], r.body["uid"]

    def run(self):
        while not self.stopped.wait(self.random.expovariate(1 / SEEKER_PAUSE_S)):
            self.seek()

    def seek(self):
        mine = self.random.choice(self.posts)
        if not (hidden := mine.sight()):
            return
        post = self.random.choice(sorted(hidden))
        words, since = hidden[post]
        way = self.random.choice(("words", "words", "list", "get", "like"))
        path = {"words": "/api/search?kind=post&q=" + urllib.parse.quote(words or "iron steel"),
                "list": f"/api/posts?of=all&limit={PAGE}", "get": f"/api/posts/{post}",
                "like": f"/api/search/like?kind=post&id={post}"}[way]
        r = self.ask("GET", path, may_be_gone=True)
        self.looks += r is not None and r.status in (200, 404)
        if not r or r.status != 200:
            return
        seen = ([h["id"] for h in r.body["hits"]] if "hits" in r.body else
                [p["id"] for p in r.body["posts"]] if "posts" in r.body else [post])
        self.hits += len(seen)
        after = mine.sight()
        for i in seen:
            if i in hidden and after.get(i) == hidden[i]:
                self.problem(f"post {i} is hidden or deleted since {since:.2f}, and is found by"
                             f" {way} at {time.monotonic():.2f}")


# --- the end ---

def payments(stores):
    """{id of a payment: cents of each}"""
    found = {}
    for request, cents in sql(
            stores, "SELECT q.request_id, b.cents FROM ledger_request q JOIN billing_log b"
            " ON b.uid = q.uid AND b.number = q.number AND b.kind = 'deduction'"
            " AND b.source = 'redis' WHERE q.request_id LIKE 'embedding:%'"):
        found.setdefault(request.removeprefix("embedding:"), []).append(int(cents))
    return found


def spent(stores):
    """{uid: cents}"""
    found = {}
    for uid, cents in sql(
            stores, "SELECT q.uid, SUM(b.cents) FROM ledger_request q JOIN billing_log b"
            " ON b.uid = q.uid AND b.number = q.number AND b.kind = 'deduction'"
            " AND b.source = 'redis' WHERE q.request_id LIKE 'embedding:%' GROUP BY q.uid"):
        found[int(uid)] = int(cents)
    return found


def reserved(stores):
    return [row[0] for row in sql(stores, "SELECT id FROM job_reserve WHERE queue = 'embedding'")]


def posts(stores, embedder):
    there = chunks(stores, embedder, COLLECTION)
    tags = {int(i): (decoded(title), flags == "1") for i, title, flags in sql(
        stores, "SELECT owner, REPLACE(TO_BASE64(COALESCE(title, '')), '\\n', ''), flags & 1"
        " FROM point_owner WHERE collection = 'blog_posts'")}
    words = {int(i): flags == "1" for i, flags in sql(
        stores, "SELECT owner, flags & 1 FROM post_words")}
    found = []
    for (i, uid, title, content, hide, version, content_version, status, error, cents, paid_as,
         due, space, deleted) in sql(
            stores, "SELECT id, uid, REPLACE(TO_BASE64(title), '\\n', ''),"
            " REPLACE(TO_BASE64(content), '\\n', ''), hide, version, content_version, rag_status,"
            " COALESCE(rag_error, waits, ''), cents, COALESCE(paid_as, ''), tags_due, space,"
            " deleted IS NOT NULL FROM tb_post"):
        found.append(Post(int(i), int(uid), decoded(title), decoded(content), hide == "1",
                          int(version), int(content_version), status, error, int(cents), paid_as,
                          due == "1", int(space), deleted == "1", there.get(int(i), []),
                          tags.get(int(i)), words.get(int(i))))
    return found


def answers(servers, who, posts, most):
    """who: {name: (uid, token)}. For checks_posts.found; users ask about so many posts at most."""
    found = []
    texts = [p for p in checks_posts.there(posts) if not checks_posts.blank(p.content)]
    for server in servers:
        for name, (uid, token) in who.items():
            eyes, by_words, alike, reasons = Eyes(server, token), {}, {}, set()
            wait_for(lambda: not eyes.get(f"/api/search?kind=post&q={time.time()}")[1].get(
                "degraded"), 20)
            for p in [p for p in texts if not p.hide or uid in (0, p.uid)][:most if uid else None]:
                by_words[p.id] = eyes.search(f"/api/search?kind=post&limit={PAGE}&q=" +
                                             urllib.parse.quote(words_of(p.content)), reasons)
                alike[p.id] = eyes.search(
                    f"/api/search/like?kind=post&limit={PAGE}&id={p.id}", reasons)
            found.append((f"{name} at {server.port}", uid, by_words, alike, reasons))
    return found
