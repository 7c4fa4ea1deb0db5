"""The limit of a key over TLS, with handshakes that take longer than a permit is valid (SCR-9): two
nodes, counted by the simulator itself. Takes minutes."""
import time

from harness import equal, note, ok, run_tests, sql, test, wait_for
from screening import person, server, submit
from sim import Sim, certificate

LIMIT, HANDSHAKE_MS, SECONDS = 300, 4600, 130


def limited(*more):
    tls = certificate()
    with Sim("--rate-limit", str(LIMIT), "--latency-ms", "200", "--tls-handshake-ms",
             str(HANDSHAKE_MS), *more, tls=tls) as sim, \
            server(sim, papers=3000, MILLRACE_NODES="2", MILLRACE_AI_CA_FILE=tls[0],
                   MILLRACE_AI_TIMEOUT_MS="20000") as m:
        sql(m, "DELETE FROM api_list; INSERT INTO api_list (api_key, rpm_limit, tpm_limit)"
               f" VALUES ('sk-one', {LIMIT}, 1000000000)")
        submit(person(m, "alice", permission=100), 3000)
        assert wait_for(lambda: sim.stats()["requests"] > 0, 60)
        time.sleep(SECONDS)
        stats = sim.stats()
        key = next(k for k in stats["keys"] if k["key"] == "sk-one")
        note(f"{more}: {key}")
        equal(stats["outcomes"]["limited"], 0, f"{more}: no call is refused")
        ok(key["requests_60s_max"] <= LIMIT, f"{more}: never more than {LIMIT} in 60 s", key)
        ok(key["requests"] > LIMIT * SECONDS / 60 * 0.8, f"{more}: the limit is used", key)


@test("handshakes that are slower than permits")
def _():
    limited("--http1")
    limited()


run_tests()
