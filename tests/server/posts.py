"""Posts over HTTP, for whole-server tests: an embedding service of their own, and what became of a
post."""
import contextlib
import re
import struct
import urllib.parse

from client import Api
from harness import redis_link, sql, test, wait_for
from screening import server
from sim import Sim

QUEUE = "embedding"
FREE = {f"MILLRACE_LIMIT_EMBEDDING_{span}": "0" for span in ("MINUTE", "DAY", "MONTH")}


def services(sim, **settings):
    """sim.url may be None: there is no embedding service."""
    embedding = {"MILLRACE_AI_EMBEDDING_URL": sim.url} if sim.url else {}
    return {**embedding, **FREE, **settings}


def add_key(m, key="sk-embedding"):
    sql(m, "INSERT INTO api_list (api_key, service, rpm_limit, tpm_limit)"
           f" VALUES ('{key}', 'embedding', 1000000, 1000000000)")
    limit = r'^millrace_keyring_requests_limit\{.*service="embedding".*\} (\d+)$'
    assert wait_for(lambda: set(re.findall(limit, m.get("/metrics").body.decode(), re.M)) ==
                    {"1000000"}, 10), "every node knows the key"


@contextlib.contextmanager
def posts_server(sim, papers=0, key=True, **settings):
    with server(sim, papers=papers, **services(sim, **settings)) as m:
        if key:
            add_key(m)
        yield m


def restart(m):
    """Of the server as a whole; it may have another port."""
    ports = m.output().count("millrace is ready")
    m.launch()
    assert wait_for(lambda: m.output().count("millrace is ready") > ports, 60), m.log()
    m.wait_ready()
    assert wait_for(m.ready, 40), m.get("/readyz")


def with_posts(name, *sim_options, private=False, **settings):
    def wrap(fn):
        @test(name, private)
        def _():
            with Sim(*sim_options) as sim, posts_server(sim, **settings) as m:
                fn(m, sim)
    return wrap


# --- what users do ---

def write(api, title, content, hide=False):
    r = api("POST", "/api/posts", {"title": title, "content": content, "hide": hide})
    assert r.status == 201, r
    return r.body["post"]["id"]


def change(api, post, **members):
    r = api("PUT", f"/api/posts/{post}", members)
    assert r.status == 200, r
    return r.body["post"]


def show(api, post):
    r = api("GET", f"/api/posts/{post}")
    assert r.status == 200, r
    return r.body["post"]


def state(api, post):
    return show(api, post)["rag_status"]


def reaches(api, post, *states, seconds=30):
    return wait_for(lambda: state(api, post) in states, seconds)


def embedded(api, *posts, seconds=30):
    """All of them are."""
    return all(reaches(api, p, "completed", seconds=seconds) for p in posts)


# --- what the stores have ---

def row(m, post, *columns):
    found = sql(m, f"SELECT {', '.join(columns)} FROM tb_post WHERE id = {post}")
    return found[0] if found else None


def points(m, post):
    """{part: version} of its vectors in MySQL."""
    return {int(part): int(version) for part, version in sql(
        m, f"SELECT part, version FROM point_vector WHERE owner = {post} ORDER BY part")}


def vector(m, post, part=0):
    """As it is stored: what the service has made of the text, to the bit or nearly so."""
    found = sql(m, "SELECT HEX(vector) FROM point_vector"
                   f" WHERE owner = {post} AND part = {part}")
    raw = bytes.fromhex(found[0][0])
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def queue(m):
    """{post: (place, priority, tries)} of what the queue has in Redis."""
    link, found = redis_link(m), {}
    flat = link("HGETALL", f"jobs:{QUEUE}:info")
    places = {}
    for place in ("delays", "leases", "held", "aside"):
        for member in link("ZRANGE", f"jobs:{QUEUE}:{place}", 0, -1):
            places[member.decode()[17 if place == "held" else 0:]] = place
    for i in range(0, len(flat), 2):
        _, tries, priority, *_ = flat[i + 1].decode().split()
        found[int(flat[i])] = (places.get(flat[i].decode(), "waiting"), int(priority), int(tries))
    return found


def hurry(m):
    """What is tried again later is tried now."""
    link = redis_link(m)
    for job in link("ZRANGE", f"jobs:{QUEUE}:delays", 0, -1):
        link("ZADD", f"jobs:{QUEUE}:delays", "XX", 1, job)
    link("XADD", f"jobs:{QUEUE}:wake", "MAXLEN", 1, "*", "at", 1)  # a node may wait for the delay


def paused(root, on=True):
    r = root("POST", f"/api/admin/queues/{QUEUE}/{'pause' if on else 'resume'}", {})
    assert r.status == 200, r


def status(root):
    r = root("GET", "/api/embedding/queue/status")
    assert r.status == 200, r
    return r.body["data"]


def search(api, question, kind="post", more=""):
    r = api("GET", f"/api/search?kind={kind}&q={urllib.parse.quote(question)}{more}")
    assert r.status == 200, r
    return r.body


def found(api, question, **more):
    """Ids of the posts that a search finds, the best first."""
    return [h["id"] for h in search(api, question, **more)["hits"]]


def either(m, user, admin):
    """A browser with sessions of both kinds."""
    class Both(Api):
        def __call__(self, method, path, body=None, headers=(), raw=None):
            cookies = f"Cookie: millrace_session={user.token}; millrace_admin={admin.token}"
            return super().__call__(method, path, body, [*headers, cookies], raw)
    return Both(m)
