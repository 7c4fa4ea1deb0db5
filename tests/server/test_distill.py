"""Distillations over HTTP: what they cost, chains of them, runs that change under them, and what
Redis need not know."""
import csv
import io
import time

from client import cli
from harness import crowd, equal, http, note, ok, redis_link, run_tests, sql, wait_for
from screening import (act, audited, charged, inflight, journals, person, reaches, results, submit,
                       view, with_screening)

AGAIN = "Is it about energy or light?"
PRICES = [1, 3, 7]


def estimate(api, qid):
    return api("POST", "/api/distill/estimate", {"original_query_id": qid})


def distil(api, qid, question=AGAIN):
    return api("POST", "/api/distill", {"original_query_id": qid, "question": question})


def archived(api, qid):
    """Waits until a run can be distilled; its estimate."""
    r = wait_for(lambda: (r := estimate(api, qid)).status == 200 and r, 20)
    assert r, estimate(api, qid)
    return r.body


def set_prices(m, prices):
    """Of all journals, turn by turn; {journal: points}."""
    link = redis_link(m)
    names = sorted(n.decode() for n in link("HKEYS", "sys:journals:price"))
    new = {name: prices[i % len(prices)] for i, name in enumerate(names)}
    for name, price in new.items():
        link("HSET", "sys:journals:price", name, str(price))
    return new


def journal_of(result):
    return result["block_key"].removeprefix("meta:").rpartition(":")[0]


def relevant(found):
    return {doi: r for doi, r in found.items() if r["ai_result"].get("relevant")}


def money(cents):
    return f"{cents // 100}.{cents % 100:02}"


def forget(m, api, qid):
    """Everything that Redis has of a run."""
    link = redis_link(m)
    keys = [k for k in link("KEYS", f"*:{api.uid}:{qid}*")]
    assert keys and link("DEL", *keys) == len(keys), keys
    return len(keys)


def chain(m, sim):
    api, other = person(m, "alice", permission=20), person(m, "bob")
    prices = set_prices(m, PRICES)
    first, _ = submit(api, 900)
    equal(
        estimate(api, first).error[:2], (409, "conflict"), "a run that goes on cannot be distilled")
    ok(reaches(api, first, "DONE"), "a run")
    ended = time.monotonic()
    ok(wait_for(lambda: estimate(api, first).status == 200, 5), "it can be distilled")
    took = time.monotonic() - ended
    ok(took < 1 * crowd(), "within a second after its end (BIL-7)", took)
    sql(m, f"UPDATE query_log SET archived = 0, status = 'RUNNING' WHERE query_id = '{first}'")
    equal((estimate(api, first).error[:2], distil(api, first).error[:2]), ((409, "conflict"),) * 2,
          "one that is not archived cannot")
    sql(m, f"UPDATE query_log SET archived = 1, status = 'DONE' WHERE query_id = '{first}'")
    found = relevant(results(m, api, first))
    cents = sum(prices[journal_of(r)] * 10 for r in found.values())
    ok(len(found) > 120 and {prices[journal_of(r)] for r in found.values()} == set(PRICES),
       "at several prices", len(found))
    set_prices(m, [50])
    balance = api.me().body["balance"]
    want = {"success": True, "papers": len(found), "cost": money(cents), "free": balance,
            "suffices": True}
    equal(archived(api, first), want, "once it is, each paper costs a tenth of what it cost then")
    for who, qid, name in [(other, first, "another's run"), (api, "0" * 32, "none at all")]:
        equal((estimate(who, qid).status, distil(who, qid).status), (404, 404), f"404: {name}")
    equal(distil(api, first, " \n\u3000\t").error[0], 400, "a question is needed")
    forget(m, api, first)
    equal(estimate(api, first).body, want, "Redis need not know the run any more")

    sim.reset()
    before = float(api.me().body["balance"])
    second = distil(api, first)
    equal(second.status, 202, "submitted", second)
    second = second.body["query_id"]
    ok(reaches(api, second, "DONE"), "done")
    v = view(api, second)
    equal((v["papers"], v["finished"], v["failed"], v["cost"]),
          (len(found), len(found), 0, money(cents)), "all of its papers, for what was estimated")
    equal((v["is_distillation"], v["original_query_id"], v["question"]), (True, first, AGAIN),
          "what it is")
    equal(f"{before - float(api.me().body['balance']):.2f}", money(cents),
          "the balance is less by that much")
    wait_for(lambda: charged(m, second) == cents, 10)
    equal(charged(m, second), cents, "and so says billing_log")
    judged = results(m, api, second)
    equal((set(judged), sim.stats()["requests"]), (set(found), len(found)),
          "those that were relevant, once each")
    equal({d: r["block_key"] for d, r in judged.items()},
          {d: r["block_key"] for d, r in found.items()}, "their blocks")
    link = redis_link(m)
    chunks = link("KEYS", f"distill_chunk:{api.uid}:{second}:*")
    each = min(100, len(found) // 20)  # 20 workers
    equal(sorted(link("LLEN", k) for k in chunks),
          sorted([len(found) % each or each] + [each] * ((len(found) - 1) // each)),
          "in chunks for all workers", each)
    equal((view(api, first)["distillations"], view(api, second)["distillations"]), ([second], []),
          "the first has it")
    equal([(q["query_id"], q["original_query_id"])
           for q in api("GET", "/api/queries").body["queries"]],
          [(second, first), (first, None)], "the history has both")

    twice = relevant(judged)
    ok(0 < len(twice) < len(found), "not all of them are relevant again", len(twice), len(found))
    cents = sum(prices[journal_of(r)] * 10 for r in twice.values())
    equal(archived(api, second),
          {"success": True, "papers": len(twice), "cost": money(cents),
           "free": api.me().body["balance"], "suffices": True},
          "a distillation is distilled at the same prices")
    forget(m, api, second)
    third = distil(api, second, "Does it say catalyst?").body["query_id"]
    ok(reaches(api, third, "DONE"), "which also needs nothing of Redis")
    equal((set(results(m, api, third)), view(api, third)["cost"]), (set(twice), money(cents)),
          "those, for that")
    rows = lambda qid: list(
        csv.reader(io.StringIO(
                       http(m.port, f"/api/download_csv?query_id={qid}&scope=all", headers=[
                           f"Authorization: Bearer {api.token}"]).body.decode("utf-8-sig"))))[1:]
    equal(({r[0] for r in rows(second)}, {r[0] for r in rows(third)}), (set(judged), set(twice)),
          "results as files")
    control(m, sim, api, first)
    poor(m, api, first)


def poor(m, api, qid):
    cost = estimate(api, qid).body["cost"]
    rest = f"{float(api.me().body['balance']) - float(cost) + 0.01:.2f}"
    assert cli(m, "user", "deduct", "alice", rest).returncode == 0
    runs = sql(m, "SELECT COUNT(*) FROM query_log")
    equal(distil(api, qid).status, 402, "a cent is missing")
    equal((sql(m, "SELECT COUNT(*) FROM query_log"),
           sql(m, "SELECT COUNT(DISTINCT query_id) FROM distill_paper")), (runs, [["5"]]),
          "nothing is written")


def control(m, sim, api, first):
    """A distillation is paused, loses what Redis knows of its papers, goes on, is ended."""
    sim.reset()
    second = distil(api, first).body["query_id"]
    wait_for(lambda: view(api, second)["finished"] > 5, 20)
    equal(act(api, second, "pause").body["state"], "PAUSED", "pause")
    wait_for(lambda: view(api, second)["workers"] == 0, 5)
    asked = sim.stats()["requests"]
    equal(view(api, second)["finished"], asked, "what was in hand was finished and charged")
    link = redis_link(m)
    chunks = link("KEYS", f"distill_chunk:{api.uid}:{second}:*")
    ok(chunks and link("DEL", *chunks), "Redis loses its chunks")
    equal(act(api, second, "resume").body["state"], "RUNNING", "resume")
    ok(wait_for(lambda: view(api, second)["finished"] > asked + 5, 20), "it goes on")
    equal(act(api, second, "terminate").body["state"], "CANCELLED", "terminate")
    ok(wait_for(lambda: view(api, second)["workers"] == 0, 5), "its workers are gone")
    v = view(api, second)
    found = results(m, api, second)
    ok(asked < v["finished"] < v["papers"] and len(found) == v["finished"], "what was judged stays",
       v)
    wait_for(lambda: charged(m, second) == round(float(v["cost"]) * 100), 10)
    equal(charged(m, second), round(float(v["cost"]) * 100),
          "and was charged, and no more than that")
    equal([act(api, second, what).status for what in ("resume", "retry_failed")], [409, 409],
          "that is final")
    ok(wait_for(lambda: inflight(m) == {}, 3), "no unit is held")


def spoil(m, papers):
    """Papers that cannot be read are failed ones; what they were."""
    link = redis_link(m)
    were = {(r["block_key"], doi): link("HGET", r["block_key"], doi) for doi, r in papers.items()}
    for block, doi in were:
        link("HSET", block, doi, "spoilt")
    return were


def mend(m, were):
    for (block, doi), paper in were.items():
        redis_link(m)("HSET", block, doi, paper)


def some(found, part):
    return {doi: r for i, (doi, r) in enumerate(sorted(found.items())) if i % 3 == part}


def failures(m, sim):
    """Failed papers of a distillation, and of the run that it distils."""
    api = person(m, "dave", permission=20)
    chosen, _ = journals(api, 400)
    names = ", ".join(f"'{name}'" for name in chosen)
    papers = {doi: {"block_key": f"meta:{journal}:{year}"} for doi, journal, year in sql(
        m, f"SELECT DOI, journal, year FROM paperinfo WHERE journal IN ({names})")}
    assert wait_for(lambda: m.log().count("Redis is filled") >= len(m.nodes()), 30), m.log()
    were = spoil(m, some(papers, 0))
    first, _ = submit(api, 400)
    ok(reaches(api, first, "DONE"), "a run is done although papers fail")
    known = relevant(results(m, api, first))
    equal(view(api, first)["failed"], len(were), "a third have")
    cost = archived(api, first)["cost"]
    waits = distil(api, first).body["query_id"]
    act(api, waits, "pause")
    lost = spoil(m, some(known, 1))
    fails = distil(api, first).body["query_id"]
    ok(reaches(api, fails, "DONE"), "so is a distillation")
    equal((view(api, fails)["failed"], view(api, fails)["finished"]), (len(lost), len(known)),
          "and has failed papers")
    ok(float(view(api, fails)["cost"]) < float(cost), "which are not charged")

    mend(m, {**were, **lost})
    equal(act(api, first, "retry_failed").status, 200, "the run tries its failed papers again")
    ok(reaches(api, first, "DONE"), "it is done")
    more = relevant(results(m, api, first))
    ok(set(more) > set(known), "and has more that are relevant", len(more), len(known))
    equal(view(api, waits)["papers"], len(known), "a distillation that waits has as many as before")
    act(api, waits, "resume")
    ok(reaches(api, waits, "DONE"), "goes on")
    equal((set(results(m, api, waits)), view(api, waits)["failed"]), (set(known), 0), "over these")
    sim.reset()
    equal(
        act(api, fails, "retry_failed").status, 200, "a distillation tries its failed papers again")
    ok(reaches(api, fails, "DONE"), "it is done")
    equal((view(api, fails)["failed"], sim.stats()["requests"]), (0, len(lost)),
          "only those are asked about")
    equal((view(api, waits)["cost"], view(api, fails)["cost"]), (cost, cost),
          "each costs what was estimated")
    equal(archived(api, first)["papers"], len(more), "a new one would have all")
    equal(sorted(view(api, first)["distillations"]), sorted([waits, fails]), "the run has both")


@with_screening("distillations", "--latency-ms", "20")
def _(m, sim):
    for part in (failures, chain):
        began = time.monotonic()
        part(m, sim)
        note(f"{part.__name__}: {time.monotonic() - began:.1f} s")
    audited(m)


run_tests()
