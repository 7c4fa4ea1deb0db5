#!/usr/bin/env python3
"""The store of points on a Qdrant server, against a stand-in: the same points and the same hits as
the embedded index, whatever fails on the way; and collections on it, of two machines. Prints TAP.
QDRANT_PEER and QDRANT_NODES are the programs qdrant_peer.c and qdrant_nodes.c."""
import os
import re
import subprocess
import time

import qdrant_api
from harness import equal, note, ok, run_tests, test
from qdrant import FAULTS, Qdrant
from sim import certificate

PEER = os.environ["QDRANT_PEER"]
KEY = "qd-key-1"
SEED = os.environ.get("QDRANT_SEED", "20261")
PAYLOAD = {"owner", "version", "chunkIndex", "flags", "journal", "year", "title", "chunkText"}


def peer(server, kind="papers", seed=SEED, steps=60, key=KEY, ms=5000, ca=()):
    """What the program said, and whether all of it was right."""
    done = subprocess.run([PEER, server.url, key, kind, seed, str(steps), str(ms), *ca],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode == 0, done.stdout


def fits(server):
    equal([p[-300:] for p in server.problems[:3]], [], "all requests and replies are of the API")


@test("the same points and hits")
def _():
    note("the published description of the API is " +
         ("compared, too" if qdrant_api.DESCRIPTION else "not here: the table alone is compared"))
    for kind in ("papers", "posts"):
        with Qdrant(KEY) as server:
            held, said = peer(server, kind, steps=250)
            ok(held, f"{kind}: both stores are the same after 250 steps", said)
            fits(server)
            ok(int(re.search(r"(\d+) hits", said).group(1)) > 2000, "with many hits", said)
            equal(server.names(), [f"{kind}_1"], "in one collection")
            equal(server.points(kind), server.points(f"{kind}_1"), "which the alias means")
            own = {"doi"} if kind == "papers" else {"postId", "hide"}
            payloads = server.points(kind).values()
            ok(payloads and all(set(p) | {"postId"} == PAYLOAD | own | {"postId"}
                                for p in payloads), f"{kind} have their payload")
            ok(all(p["title"] in ('A title, "quoted"', "Another title") and
                   p["chunkText"] == "石墨烯 \n and more" for p in payloads), "texts as they were")
            if kind == "posts":
                ok(all(p["hide"] == ("1" if 0 in p["flags"] else "0") for p in payloads),
                   "hidden ones are marked")
                ok(all(p.get("postId", int(p["owner"])) == int(p["owner"]) for p in payloads),
                   "and named")


@test("a server that fails in every way")
def _():
    with Qdrant(KEY) as server:
        server.slow_seconds = 0.6
        server.fail_at_random(0.25, 7)
        held, said = peer(server, steps=90, ms=300)
        server.fail_at_random(0, 7)
        ok(held, "calls that are repeated leave the same in both", said)
        fits(server)
        repeated = int(re.search(r"(\d+) calls repeated", said).group(1))
        ok(repeated > 20, f"{repeated} calls were repeated", said)


@test("each fault at each request")
def _():
    for fault in FAULTS:
        with Qdrant(KEY) as server:
            server.slow_seconds = 0.4
            for on in ("GET /c", "DELETE", "PUT /collections/papers_1", "/index", "/aliases",
                       "points?", "/points/delete", "/points/payload", "/points/query",
                       "/points/count"):
                server.fail(fault, 2, on)
            held, said = peer(server, steps=20, ms=150)
            ok(held, f"{fault} at every request", said)
            equal([f[2] for f in server.faults if f[1]], [], "and each of them has met it")
            fits(server)


@test("a connection that the server has closed is no failure")
def _():
    for on in ("/points/query", "/points/delete", "PUT", "GET", "/points/payload"):
        with Qdrant(KEY) as server:
            server.fail("cut_before", 1, on)
            held, said = peer(server, steps=20)
            ok(held and "; 0 calls repeated" in said, f"{on}: it is sent again", said)
            equal(server.faults[0][1], 0, "once")
            fits(server)


@test("a wrong key")
def _():
    with Qdrant(KEY) as server:
        began = time.monotonic()
        held, said = peer(server, key="another", steps=1)
        ok(not held and "refuses the key" in said and "another" not in said, "is said", said[-600:])
        ok(time.monotonic() - began < 60, "in time")
        equal(server.names(), [], "nothing is made")


@test("two machines")
def _():
    with Qdrant(KEY) as server:
        done = subprocess.run([os.environ["QDRANT_NODES"], server.url, KEY], text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        equal(done.returncode, 0, "share a server")
        ok(done.stdout.count("\nok ") > 40, "in all of these ways", done.stdout)
        fits(server)
        equal({p["title"] for p in server.points("blog_posts").values()}, {"a title"}, "titles")
        equal({p["chunkText"] for p in server.points("blog_posts").values()},
              {"bananas", "iron and steel", "cherries"}, "and texts are there")


@test("TLS")
def _():
    with Qdrant(KEY, tls=certificate()) as server:
        held, said = peer(server, steps=10, ca=[server.tls[0]])
        ok(held, "a certificate that is trusted", said)
        asked = len(server.asked)
        held, said = peer(server, steps=1)
        ok(not held and "certificate" in said, "one that is not", said[-600:])
        equal(len(server.asked), asked, "gets no request, and no key")
        fits(server)


if __name__ == "__main__":
    run_tests()
