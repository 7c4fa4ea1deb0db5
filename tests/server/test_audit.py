"""What `millrace audit` says when something is off, one row at a time: the user, what it is, the
run, what is expected and what is there."""
import json

from client import cli
from harness import equal, ok, redis_link, run_tests, sql, wait_for
from screening import act, audited, person, reaches, submit, view, with_screening


def findings(m):
    r = cli(m, "audit", "--json")
    found = json.loads(r.stdout)["findings"]
    assert r.returncode == bool(found), r
    return found


def number(m, query):
    return round(float(sql(m, query)[0][0]))


def damages(m, done, paused, doi):
    """(what it is, damage, how it is undone, which findings, a text of theirs)"""
    row = f"UPDATE query_log SET {{}} WHERE query_id = '{done}'"
    half = f"UPDATE query_log SET {{}} WHERE query_id = '{paused}'"
    cost = number(m, f"SELECT total_cost * 100 FROM query_log WHERE query_id = '{done}'")
    judged = number(m, f"SELECT judged_papers FROM query_log WHERE query_id = '{done}'")
    money = lambda cents: f"{cents // 100}.{cents % 100:02}"
    is_there = lambda want, got: f"{want} is expected, {got} is there"
    of_paper = f"WHERE query_id = '{done}' AND doi = '{doi}'"
    kept = f"SELECT * FROM search_result {of_paper}"
    return [
        ("a run that costs more than its estimate", row.format("ceiling = ceiling - 1"),
         row.format("ceiling = ceiling + 1"), {"estimate"},
         "its cost, by its estimate: " + is_there(money(cost - 1), money(cost))),
        ("a run with more papers than its estimate", row.format("total_papers = total_papers - 1"),
         row.format("total_papers = total_papers + 1"), {"estimate"},
         "papers judged, by its estimate: " + is_there(judged - 1, judged)),
        ("a cost that would reserve too little", half.format("total_cost = total_cost - 0.01"),
         half.format("total_cost = total_cost + 0.01"), {"reserved", "counts"},
         "its cost so far in Redis, by MySQL and what is not synced"),
        ("a verdict without a charge",
         "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, outcome) SELECT uid,"
         f" query_id, '10.1/x', 'meta:J:2020', 0, 'irrelevant' FROM query_log WHERE query_id ="
         f" '{done}'; " + row.format("judged_papers = judged_papers + 1, total_papers ="
                                     " total_papers + 1"),
         "DELETE FROM search_result WHERE doi = '10.1/x'; " +
         row.format("judged_papers = judged_papers - 1, total_papers = total_papers - 1"),
         {"verdicts"},
         "verdicts in search_result, by its charges: " + is_there(judged, judged + 1)),
        ("a charge without its verdict",
         f"CREATE TABLE kept AS {kept}; DELETE FROM search_result {of_paper}",
         "INSERT INTO search_result SELECT * FROM kept; DROP TABLE kept",
         {"result", "verdicts", "counts"}, f"paper {doi} has no result in search_result"),
        ("a count of papers", row.format("judged_papers = judged_papers - 1"),
         row.format("judged_papers = judged_papers + 1"), {"counts"},
         "papers judged, by search_result: " + is_there(judged, judged - 1)),
        ("a count of relevant papers", row.format("relevant_papers = relevant_papers + 1"),
         row.format("relevant_papers = relevant_papers - 1"), {"counts"},
         "relevant papers, by search_result"),
        ("a cost", row.format("total_cost = total_cost - 0.01"),
         row.format("total_cost = total_cost + 0.01"), {"counts"},
         "its cost, by billing_log: " + is_there(money(cost), money(cost - 1))),
        ("an amount in the log", f"UPDATE billing_log SET cents = cents + 1 WHERE qid = '{done}'"
         f" AND doi = '{doi}'", f"UPDATE billing_log SET cents = cents - 1 WHERE qid = '{done}' AND"
         f" doi = '{doi}'", {"log", "counts"}, "the balance in MySQL, by billing_log"),
    ]


@with_screening("one row at a time", "--latency-ms", "50")
def _(m, sim):
    api, link = person(m, "alice", permission=6), redis_link(m)
    done, _ = submit(api, 60)
    ok(reaches(api, done, "DONE"), "a run that is done")
    paused, _ = submit(api, 150)
    wait_for(lambda: view(api, paused)["finished"] > 5)
    act(api, paused, "pause")
    ok(wait_for(lambda: view(api, paused)["workers"] == 0, 10), "and one that is not")
    assert wait_for(lambda: link("LLEN", f"billing_queue:{api.uid}") == 0 and sql(
        m, f"SELECT archived FROM query_log WHERE query_id = '{done}'") == [["1"]], 20)
    audited(m)
    doi = sql(m, f"SELECT MIN(doi) FROM search_result WHERE query_id = '{done}'"
                 " AND relevant IS NOT NULL")[0][0]
    for what, damage, undo, kinds, text in damages(m, done, paused, doi):
        sql(m, damage)
        found = findings(m)
        equal(({f["what"] for f in found}, {f["uid"] for f in found}), (kinds, {api.uid}), what)
        ok(any(text in f["detail"] for f in found), "with run and figures", text, *found)
        sql(m, undo)
    key = f"user:{api.uid}:balance"
    link("INCR", key)
    found = findings(m)
    equal([(f["uid"], f["what"], f["cents"]) for f in found], [(api.uid, "redis", 1)],
          "a cent in Redis")
    r = cli(m, "user", "release", "alice")
    ok(r.returncode == 1 and "delete the key" in r.stderr, "with what to do about it", r)
    link("DECR", key)
    sql(m, f"UPDATE query_log SET ceiling = ceiling - 1 WHERE query_id = '{done}'")
    r = cli(m, "user", "release", "alice")
    ok(r.returncode == 1 and "to do: " in r.stderr and "run millrace audit" not in r.stderr,
       "of every kind", r)
    sql(m, f"UPDATE query_log SET ceiling = ceiling + 1 WHERE query_id = '{done}'")
    equal(findings(m), [], "all is as it was")


run_tests()
