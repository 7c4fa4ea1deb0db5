"""The limit of a key where connections take longer than a permit is valid (SCR-9): slow TLS
handshakes, slow networks, slow proxies; two nodes, counted by the simulator itself. Takes
minutes."""
import contextlib
import time

from harness import equal, note, ok, run_tests, sql, test, wait_for
from proxy import Forwarder, Proxy
from screening import person, server, submit
from sim import Sim, certificate

LIMIT, SLOW_S, SECONDS, SECONDS_SHORT = 300, 4.6, 130, 75


@contextlib.contextmanager
def simulator(*how, tls=True):
    """And what its clients must be told."""
    files = certificate() if tls else None
    with Sim("--rate-limit", str(LIMIT), "--latency-ms", "200", *how, tls=files) as sim:
        yield sim, {"MILLRACE_AI_CA_FILE": files[0]} if tls else {}


def limited(name, sim, seconds, **settings):
    with server(sim, papers=3000, MILLRACE_NODES="2", MILLRACE_AI_TIMEOUT_MS="20000",
                **settings) as m:
        sql(m, "DELETE FROM api_list; INSERT INTO api_list (api_key, rpm_limit, tpm_limit)"
               f" VALUES ('sk-one', {LIMIT}, 1000000000)")
        submit(person(m, "alice", permission=100), 3000)
        assert wait_for(lambda: sim.stats()["requests"] > 0, 60)
        time.sleep(seconds)
        stats = sim.stats()
        key = next(k for k in stats["keys"] if k["key"] == "sk-one")
        note(f"{name}: {key}")
        equal(stats["outcomes"]["limited"], 0, f"{name}: no call is refused")
        ok(key["requests_60s_max"] <= LIMIT, f"{name}: never more than {LIMIT} in 60 s", key)
        ok(key["requests"] > LIMIT * seconds / 60 * 0.8, f"{name}: the limit is used", key)


@test("handshakes that are slower than permits")
def _():
    for how in (["--http1"], []):
        with simulator("--tls-handshake-ms", str(int(SLOW_S * 1000)), *how) as (sim, settings):
            limited(f"handshakes {how}", sim, SECONDS, **settings)


@test("connections that are slower than permits")
def _():
    with simulator("--http1") as (sim, settings), \
            Forwarder(sim.port, wait_s=SLOW_S, life_s=20) as way:
        url = sim.url
        sim.url = url.replace(f":{sim.port}/", f":{way.port}/")
        limited("connections", sim, SECONDS_SHORT, **settings)
        ok(way.accepted > 100, "connections were made again and again", way.accepted)


@test("a proxy that is slower than permits")
def _():
    for how in (["--http1"], []):
        with simulator(*how) as (sim, settings), Proxy(late_s=SLOW_S) as proxy:
            limited(f"proxy, TLS {how}", sim, SECONDS_SHORT, MILLRACE_AI_PROXY=proxy.url(),
                    **settings)
            ok(proxy.seen, "through the proxy")
    with simulator("--http1", tls=False) as (sim, settings), \
            Proxy(late_s=SLOW_S, life_s=20) as proxy:
        limited("proxy, http://", sim, SECONDS_SHORT, MILLRACE_AI_PROXY=proxy.url())
        ok(len(proxy.seen) > 100, "tunnels were made again and again", len(proxy.seen))


run_tests()
