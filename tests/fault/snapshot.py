"""Reads from the stores, and over HTTP, what checks.py looks at."""
import json

from checks import Movement, Run
from harness import redis_link, sql


def cents(decimal):
    whole, _, part = decimal.partition(".")
    return int(whole) * 100 + int((part + "00")[:2])


def corpus(stores):
    """{journal: {year: [DOIs]}}"""
    found = {}
    for doi, journal, year in sql(stores, "SELECT DOI, journal, year FROM paperinfo"):
        found.setdefault(journal, {}).setdefault(int(year), []).append(doi)
    return found


def papers_of(params, papers):
    """{DOI: cents} of the journals and years of a run, at the prices of its submission."""
    found = {}
    for journal in params["journals"]:
        for year, dois in papers[journal["name"]].items():
            if params["year_from"] <= year <= params["year_to"]:
                found.update(dict.fromkeys(dois, journal["price"] * 100))
    return found


def frozen_papers(stores, qid, prices):
    """{DOI: cents} of a distillation: a tenth of what a paper costs in the run at the root of the
    chain."""
    rows = sql(stores, f"SELECT doi, block_key FROM distill_paper WHERE query_id = '{qid}'")
    return {doi: prices[block.removeprefix("meta:").rpartition(":")[0]] * 10 for doi, block in rows}


def prices_at_root(qid, original, params):
    while original[qid]:
        qid = original[qid]
    return {j["name"]: j["price"] for j in params[qid]["journals"]}


def verdict(ai_result):
    return ai_result["relevant"] if "relevant" in ai_result else None


def results_in_redis(link, uid, qid):
    fields = link("HGETALL", f"result:{uid}:{qid}")
    return {doi.decode(): verdict(json.loads(text)["ai_result"])
            for doi, text in zip(fields[::2], fields[1::2])}


def results_in_mysql(stores, qid):
    rows = sql(stores, f"SELECT doi, relevant FROM search_result WHERE query_id = '{qid}'")
    return {doi: None if relevant == "NULL" else relevant == "1" for doi, relevant in rows}


def runs(stores, papers, show=None):
    """All runs of all users. show(uid, qid): what the server says of one."""
    link, found = redis_link(stores), []
    rows = sql(stores, "SELECT uid, query_id, status, archived, COALESCE(original_query_id, ''),"
               " search_params FROM query_log ORDER BY created_at")
    params = {row[1]: json.loads(row[5]) for row in rows}
    original = {row[1]: row[4] for row in rows}
    for uid, qid, state, archived, _, _ in rows:
        r = Run(
            int(uid), qid, state,
            frozen_papers(stores, qid, prices_at_root(qid, original, params))
            if original[qid] else papers_of(params[qid], papers), original=original[qid] or None)
        r.results = results_in_mysql(stores, qid) if archived == "1" else results_in_redis(
            link, uid, qid)
        r.shown = show(r.uid, qid) if show else {}
        found.append(r)
    return found


def movements(stores):
    rows = sql(stores, "SELECT b.uid, b.kind, b.number, b.cents, b.qid, b.doi,"
               " v.number IS NOT NULL FROM billing_log b"
               " LEFT JOIN ledger_reversal v ON v.uid = b.uid AND v.number = b.number"
               " AND b.source = 'redis'")
    return [Movement(int(uid), kind, int(number), int(amount), qid, doi, reverted == "1")
            for uid, kind, number, amount, qid, doi, reverted in rows]


def balances(stores):
    link, found = redis_link(stores), {}
    for uid, balance in sql(stores, "SELECT uid, balance FROM user_info"):
        here = link("GET", f"user:{uid}:balance")
        found[int(uid)] = cents(balance), None if here is None else int(here)
    return found


def scan(link, pattern):
    names, cursor = set(), b"0"
    while True:
        cursor, page = link("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
        names.update(page)
        if cursor == b"0":
            return names


def units(stores):
    """Arguments of checks.nothing_left: inflight, pending, running, queue."""
    link = redis_link(stores)
    of = lambda name: b":".join(name.split(b":")[1:3]).decode()
    return ({of(k): link("HLEN", k) for k in scan(link, "task:*:inflight")},
            {of(k): link("LLEN", k) for k in scan(link, "task:*:pending_blocks")},
            {k.decode() for k in link("HKEYS", "sys:running")},
            {k.decode() for k in link("ZRANGE", "sys:queue", 0, -1)})
