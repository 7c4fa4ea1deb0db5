"""`millrace db warm` on real stores: what Redis holds afterwards, what is done again, what a kill
leaves."""
import json
import os
import random
import re
import subprocess

from harness import (BIN, Millrace, environment, equal, folder, note, ok, redis_link, run,
                     run_tests, sql, test, wait_for)

DAY = 24 * 3600 * 1000


class Corpus:
    """A server with a sample in its private MariaDB, and nothing in Redis but what the test puts
    there."""

    def __init__(self, server, papers=3000):
        self.server, self.env = server, server.stores
        self.top = os.path.join(folder(), "s")
        self.must("sample", "--papers", str(papers), self.top)
        self.must("db", "init", "--data", self.top)
        self.redis = redis_link(server)

    def must(self, *args):
        done = run(*args, env=self.env, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def warm(self, *args):
        """(blocks there are, papers in them, blocks built now)"""
        out = self.must("db", "warm", *args)
        return tuple(map(int,
                         re.search(r"(\d+) blocks with (\d+) papers: (\d+) built", out).groups()))

    def blocks(self):
        """{(journal, year): papers} as MySQL has it."""
        return {(j, y): int(n) for j, y, n in
                sql(self.server, "SELECT journal, year, COUNT(*) FROM paperinfo GROUP BY 1, 2")}

    def keys(self, pattern):
        return sorted(k.decode() for k in self.redis("KEYS", pattern))

    def broken_blocks(self):
        """Blocks that can be seen and are not whole."""
        want, found = self.blocks(), []
        for key in self.keys("meta:*"):
            _, journal, year = key.split(":")
            head, fields = self.redis("HGET", key, "block"), self.redis("HLEN", key)
            if not head or int(head.split()[0]) != fields - 1 or want[journal, year] != fields - 1:
                found.append((key, head, fields))
        return found


def with_corpus(name, papers=3000):
    def wrap(fn):
        @test(name)
        def _():
            # Nodes fill Redis, too: these start before there is anything to fill it with.
            with Millrace(env={"MILLRACE_NODES": "1"}) as m:
                wait_for(lambda: json.loads(m.get("/readyz").body)["warm_up"]["state"] == "done")
                fn(Corpus(m, papers))
    return wrap


@with_corpus("what Redis holds")
def _(c):
    want = c.blocks()
    equal(c.keys("meta:*"), [], "nothing before")
    equal(c.warm(), (len(want), 3000, len(want)), "every block is built")
    equal({tuple(k.split(":")[1:]): c.redis("HLEN", k) - 1 for k in c.keys("meta:*")}, want,
          "one hash for each journal and year, with all its papers")
    equal(c.broken_blocks(), [], "and each says so itself")
    ttl = [c.redis("PTTL", k) for k in c.keys("meta:*")]
    ok(6.2 * DAY < min(ttl) and max(ttl) <= 7 * DAY and max(ttl) - min(ttl) > DAY / 4,
       "they live for seven days, but do not end together", min(ttl), max(ttl))
    ok("3000 papers were read back: all are" in c.must("db", "warm", "--verify"),
       "read back, all are as in MySQL")
    key = c.keys("meta:*")[0]
    fields = [f for f in c.redis("HKEYS", key) if f != b"block"]
    value = c.redis("HGET", key, fields[0])
    c.redis("HSET", key, fields[0], value[:-9] + bytes(9))
    r = run("db", "warm", "--verify", env=c.env)
    ok(r.returncode == 1 and key.split(":")[1] in r.stderr and "--rebuild" in r.stdout,
       "a damaged paper is found", r.stdout, r.stderr)
    c.redis("HSET", key, fields[0], value)
    doi, = sql(c.server, "SELECT DOI FROM paperinfo LIMIT 1")[0]
    journal, year = sql(c.server, f"SELECT journal, year FROM paperinfo WHERE DOI = '{doi}'")[0]
    ok(c.redis("HGET", f"meta:{journal}:{year}", doi).startswith(b"\x28\xb5\x2f\xfd"),
       "papers are zstd frames")
    pairs = lambda key: {
        a.decode(): b.decode() for a, b in zip(*[iter(c.redis("HGETALL", key))] * 2)}
    equal(pairs("sys:tags:info"), dict(sql(c.server, "SELECT Tag, TagType FROM info_tag")), "tags")
    equal(pairs("sys:journals:price"), dict(sql(c.server, "SELECT Name, Price FROM contentlist")),
          "prices")
    listed = sql(c.server, "SELECT Name, FullName, DataRange, UpdateDate FROM contentlist")
    equal({n: tuple(json.loads(t).values()) for n, t in pairs("sys:journals:info").items()},
          {r[0]: tuple(r[1:]) for r in listed}, "journals")
    tagged = {}
    for name, tag in sql(c.server, "SELECT Name, Tag FROM info_paper_with_tag"):
        tagged.setdefault(tag, set()).add(name)
    found = {k.split(":", 2)[2]: {m.decode() for m in c.redis("SMEMBERS", k)}
             for k in c.keys("sys:tag_journals:*")}
    equal(found, tagged, "journals of each tag")
    equal({(k.split(":")[1], y): int(n) for k in c.keys("contentlist_year_number:*")
           for y, n in pairs(k).items()}, want, "papers of each year")
    catalog = [k for pattern in ("sys:tags*", "sys:tag_*", "sys:journals*", "contentlist*")
               for k in c.keys(pattern)]
    ok(len(catalog) > 4 and all(c.redis("PTTL", k) == -1 for k in catalog),
       "the catalog has no TTL", catalog)


@with_corpus("only what changed")
def _(c):
    blocks = len(c.blocks())
    c.warm()
    equal(c.warm(), (blocks, 3000, 0), "again: nothing is built")
    journal, year, file = sql(
        c.server, "SELECT journal, year, JSON_VALUE(Bib, '$.file') FROM paperinfo LIMIT 1")[0]
    path = f"{c.top}/Data/{journal}/{file}"
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(re.sub(r"(?im)^(\s*title\s*=\s*[{\"]+)", r"\1New ", text, count=1))
    key = f"meta:{journal}:{year}"
    doi = sql(c.server,
              f"SELECT MIN(DOI) FROM paperinfo WHERE journal = '{journal}' AND year = {year}")[0][0]
    before = {d: c.redis("HGETALL", key)[i + 1] for i, d in enumerate(c.redis("HGETALL", key))
              if i % 2 == 0}
    c.must("db", "init", "--data", c.top)
    equal(c.warm(), (blocks, 3000, 1), "a corrected paper: one block")
    after = {d: c.redis("HGETALL", key)[i + 1] for i, d in enumerate(c.redis("HGETALL", key))
             if i % 2 == 0}
    equal(sum(before.get(d) != v for d, v in after.items()), 2, "with that paper and its head")
    c.redis("DEL", key)
    equal(c.warm()[2], 1, "a block that is gone comes back")
    c.redis("HDEL", key, doi)
    equal((c.warm()[2], c.broken_blocks()), (1, []), "so does one that lost a paper")
    equal(c.warm("--rebuild")[2], blocks, "--rebuild builds all")
    sql(c.server, f"DELETE FROM contentlist WHERE Name = '{journal}';"
        " DELETE FROM info_tag ORDER BY Tag LIMIT 1")
    tags = {r[0] for r in sql(c.server, "SELECT Tag FROM info_tag")}
    c.warm()
    ok(f"contentlist_year_number:{journal}" not in c.keys("contentlist*") and
       c.redis("HGET", "sys:journals:price", journal) is None and
       {k.split(":", 2)[2] for k in c.keys("sys:tag_journals:*")} <= tags,
       "what left the catalog leaves Redis")


@with_corpus("killed half-way", 20000)
def _(c):
    seed = random.randrange(10 ** 9)
    note(f"seed {seed}")
    chance = random.Random(seed)
    total, partly = len(c.blocks()), 0
    for i in range(8):
        c.redis("FLUSHALL")
        p = subprocess.Popen([BIN, "db", "warm"], env=environment(c.env), cwd=folder(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)
        wait_for(lambda: c.redis("DBSIZE") > total * chance.random() or p.poll() is not None)
        p.kill()
        p.wait()
        partly += 0 < len(c.keys("meta:*")) < total
        broken = c.broken_blocks()
        aside = [k for k in c.keys("sys:aside:*") if c.redis("PTTL", k) < 0]
        if broken or aside:
            ok(False, "what can be seen is whole, what is aside will end", broken[:3], aside[:3])
            return
    ok(partly > 0, f"8 kills, {partly} of them half-way: no half block was ever to be seen")
    for key in c.keys("sys:lock:*"):
        c.redis("DEL", key)  # in 30 s they would end by themselves
    c.warm()
    equal((len(c.keys("meta:*")), c.broken_blocks()), (total, []), "the next run completes it")


@with_corpus("stores that are away", 1000)
def _(c):
    r = run("db", "warm", env={**c.env, "MILLRACE_REDIS_URL": "redis://:hush@127.0.0.1:9"})
    ok(r.returncode == 1 and "Redis at redis://:***@127.0.0.1:9" in r.stderr, "Redis", r.stderr)
    r = run("db", "warm", env={**c.env, "MILLRACE_MYSQL_URL": "mysql://u:hush@127.0.0.1:9/x"})
    ok(r.returncode == 1 and "MySQL at mysql://u:***@127.0.0.1:9/x" in r.stderr, "MySQL", r.stderr)
    sql(c.server, "CREATE DATABASE bare", "mysql")
    r = run("db", "warm", env={
                **c.env, "MILLRACE_MYSQL_URL": f"unix:{c.server.data}/run/mariadb.sock?user=root"
                "&database=bare"})
    ok(r.returncode == 1 and 'run "millrace db migrate"' in r.stderr, "no tables", r.stderr)


if __name__ == "__main__":
    run_tests()
