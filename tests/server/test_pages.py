"""What the pages ask for beyond the fixed routes: one paper, of a run or of the corpus, and the
ledger of a user."""
import csv
import io
import urllib.parse
from datetime import datetime, timedelta

from client import cli, with_server
from harness import equal, http, ok, run_tests, sql, wait_for
from screening import QUESTION, person

BALANCE = "5000.00"


def finished_run(m, api, first=0):
    """A run over two of the smallest journals, and what it says once it is over."""
    all_journals = api("GET", "/api/journals").body["journals"]
    names = [j["name"]
             for j in sorted(all_journals, key=lambda j: sum(j["years"].values()))[first:first + 2]]
    qid = api("POST", "/api/queries", {**QUESTION, "journals": names}).body["query_id"]
    show = lambda: api("GET", f"/api/queries/{qid}").body
    assert wait_for(lambda: show()["state"] == "DONE", 60), show()
    return qid, show()


def archived(m, qid):
    return sql(m, f"SELECT archived FROM query_log WHERE query_id = '{qid}'") == [["1"]]


def paper(api, qid, doi):
    return api("GET", f"/api/queries/{qid}/paper?doi={urllib.parse.quote(doi, safe='')}")


def one_paper(m, api, qid):
    rows = api("GET", f"/api/queries/{qid}/results?limit=500").body["results"]
    for row in rows[:5]:
        r = paper(api, qid, row["doi"])
        equal(r.status, 200, f"{row['doi']}: is told")
        equal({k: r.body[k] for k in row}, row, "as in the results")
        ok(len(r.body["abstract"]) > 50 and r.body["authors"] and r.body["printed_in"],
           "with abstract, authors, journal", r)
        ok(r.body["bibtex"].lstrip().startswith("@") and row["doi"] in r.body["bibtex"].lower(),
           "and its entry", r)
    return rows


def refused_papers(m, api, qid, rows):
    other = person(m, "eve", BALANCE)
    equal(paper(other, qid, rows[0]["doi"]).error[:2], (404, "not_found"), "not to somebody else")
    second, _ = finished_run(m, api, 2)
    ok(wait_for(lambda: archived(m, second), 30), "a second run, of other papers")
    outside = api("GET", f"/api/queries/{second}/results?limit=1").body["results"][0]["doi"]
    equal(paper(api, qid, outside).error[:2], (404, "not_found"), "not a paper of another run")
    equal(paper(api, qid, "10.5555/none").status, 404, "nor one that does not exist")
    equal(api("GET", f"/api/queries/{qid}/paper").error, (400, "invalid", "doi"),
          "a DOI must be given")
    equal(
        http(m.port, f"/api/queries/{qid}/paper?doi=x").status, 401, "by somebody who is logged in")


@with_server("one paper of a run")
def _(m):
    api = person(m, "ann", BALANCE)
    qid, _ = finished_run(m, api)
    rows = one_paper(m, api, qid)
    ok(wait_for(lambda: archived(m, qid), 30), "the run is archived")
    equal(len(one_paper(m, api, qid)), len(rows), "and tells the same from MySQL")
    refused_papers(m, api, qid, rows)


def corpus_paper(api, doi):
    return api("GET", f"/api/papers?doi={urllib.parse.quote(doi, safe='')}")


@with_server("one paper of the corpus")
def _(m):
    api = person(m, "bea", BALANCE)
    rows = sql(m, "SELECT DOI, journal, year FROM paperinfo ORDER BY DOI LIMIT 3")
    for doi, journal, year in rows:
        r = corpus_paper(api, doi)
        equal((r.status, r.body["doi"], r.body["journal"], r.body["year"]),
              (200, doi, journal, int(year)), f"{doi}: is told, without any run")
        ok(r.body["title"] and r.body["authors"] and r.body["printed_in"] and
           len(r.body["abstract"]) > 50 and r.body["bibtex"].lstrip().startswith("@"),
           "with title, authors, journal, abstract and entry", r)
    doi = next(row[0] for row in rows if row[0].startswith("10."))
    equal(corpus_paper(api, f"https://doi.org/{doi.upper()}").body["doi"], doi,
          "also by its address, in capitals")
    made_up = "made-up/0123456789abcdef0123456789abcdef"
    sql(m, f"INSERT INTO paperinfo (DOI, Bib) SELECT '{made_up}', Bib FROM paperinfo"
           f" WHERE DOI = '{doi}'")
    equal(corpus_paper(api, made_up.upper()).body["doi"], made_up, "and one without a DOI")
    equal(corpus_paper(api, "10.5555/none").error[:2], (404, "not_found"), "not one there is not")
    sql(m, f"DELETE FROM paperinfo WHERE DOI = '{made_up}'")
    equal(corpus_paper(api, made_up).status, 404, "nor one that has left")
    equal(api("GET", "/api/papers").error, (400, "invalid", "doi"), "a DOI must be given")
    equal(corpus_paper(api, "x" * 256).error, (400, "invalid", "doi"), "of its length")
    equal(http(m.port, f"/api/papers?doi={doi}").status, 401, "by somebody who is logged in")


def ledger(api, **query):
    """All entries, and on how many pages they were."""
    pages = list(api.pages("/api/ledger?" + urllib.parse.urlencode(query)))
    return [e for page in pages for e in page["entries"]], len(pages)


def cents(entries):
    sign = lambda e: -1 if e["kind"] in ("charge", "deduction") else 1
    return sum(sign(e) * int(e["amount"].replace(".", "")) for e in entries)


def table(m, api):
    r = http_get(m, api, "/api/ledger.csv")
    ok(r[1].startswith(b"\xef\xbb\xbf") and "text/csv" in r[0], "a table that spreadsheets know",
       r[0])
    return list(csv.DictReader(io.StringIO(r[1].decode("utf-8-sig"))))


def http_get(m, api, path):
    import http.client
    c = http.client.HTTPConnection("127.0.0.1", m.port, timeout=60)
    c.request("GET", path, headers={"Authorization": "Bearer " + api.token})
    r = c.getresponse()
    body = r.read()
    c.close()
    return r.headers["Content-Type"], body


@with_server("the ledger of a user")
def _(m):
    api = person(m, "ann", BALANCE)
    equal([(e["kind"], e["amount"]) for e in ledger(api)[0]], [("opening", "5000.00")],
          "it begins with the opening")
    for command, amount in [("recharge", "7.50"), ("deduct", "2.25"), ("recharge", "1.00")]:
        done = cli(m, "user", command, "ann", amount)
        assert done.returncode == 0, done
    qid, run = finished_run(m, api)
    ok(wait_for(lambda: len(ledger(api, query_id=qid)[0]) == run["finished"], 20),
       "every charge of the run gets there")
    entries, pages = ledger(api, limit=7)
    equal(len(entries), run["finished"] + 4, "each move is there once")
    ok(pages == (len(entries) + 6) // 7, "page by page", pages)
    # In the order of their numbers, which Redis gives; the time is that of the node, and two nodes
    # may ask at once.
    times = [datetime.fromisoformat(e["at"].replace("Z", "+00:00")) for e in entries]
    ok(all(b - a < timedelta(seconds=0.2) for a, b in zip(times, times[1:])), "newest first", times)
    ok(times[0] > times[-1], "and oldest last")
    balance = int(api.me().body["balance"].replace(".", ""))
    equal(cents(entries), balance, "and they add up to the balance")
    equal(-cents(ledger(api, query_id=qid)[0]), int(run["cost"].replace(".", "")),
          "those of a run to what it cost")
    equal([e["kind"] for e in ledger(api, charges=0, limit=2)[0]],
          ["recharge", "deduction", "recharge", "opening"], "without the papers")
    rows = table(m, api)
    equal(len(rows), len(entries), "the table has as many rows")
    money = lambda text: int(text.replace(".", "") or "0")
    equal(sum(money(r["in"]) - money(r["out"]) for r in rows), balance, "and the same sum")
    equal([(r["kind"], r["query_id"], r["doi"]) for r in rows],
          [(e["kind"], e["query_id"] or "", e["doi"] or "") for e in entries], "in the same order")

    other = person(m, "eve", "1.00")
    equal([e["kind"] for e in ledger(other)[0]], ["opening"], "nobody sees another's")
    equal(
        other("GET", f"/api/ledger?query_id={qid}").error[:2], (404, "not_found"), "nor by the run")
    for cursor in ["x", "1", "1.", ".1", "-1.2", "1.2.3", "9" * 40]:
        equal(api("GET", f"/api/ledger?cursor={cursor}").error, (400, "invalid", "cursor"),
              f"no cursor: {cursor[:9]}")
    equal(api("GET", f"/api/ledger?query_id={qid}&charges=0").error, (400, "invalid", "charges"),
          "not both")
    equal(http(m.port, "/api/ledger").status, 401, "by somebody who is logged in")
    equal(http(m.port, "/api/ledger.csv").status, 401, "the table too")


run_tests()
