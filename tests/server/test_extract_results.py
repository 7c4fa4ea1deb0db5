"""Results of an extraction over HTTP (EXT-4): pages, filters, order, edits by hand, files."""
import contextlib
import csv
import datetime
import http.client
import io
import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as xml
import zipfile

from extraction import FIELDS, found, make_task
from harness import crowd, equal, ok, run_tests, sql, wait_for
from screening import person, with_screening
from tasks import ended, start, template, upload, with_tasks

MANY = int(os.environ.get("MILLRACE_EXTRACT_ROWS", "1500"))  # 10,000 in the slow suite
NAMES = [f["name"] for f in FIELDS]


def path(task, place=None, **query):
    text = urllib.parse.urlencode(query)
    return f"/api/tasks/{task}" + (f"/rows/{place}" if place else "") + (f"?{text}" if text else "")


def rows(api, task, **query):
    """Of all pages."""
    got = []
    for page in api.pages(path(task, **{"limit": 2, **query})):
        ok(len(page["rows"]) <= query.get("limit", 2), "no more than the limit")
        got += page["rows"]
    return got


def places(api, task, **query):
    return [r["place"] for r in rows(api, task, **query)]


def totals(api, task, **query):
    """What each page says of the rows of all."""
    return {page["total"] for page in api.pages(path(task, **{"limit": 2, **query}))}


def retry(api, task, place):
    return api("POST", f"{path(task)}/rows/{place}/retry")


def edit(api, task, place, version, field, value):
    return api("PUT", path(task, place), {"version": version, "field": field, "value": value})


def read(api, target):
    """A reply that is no JSON, and comes in chunks."""
    r = urllib.request.Request(f"http://127.0.0.1:{api.server.port}{target}",
                               headers={"Authorization": f"Bearer {api.token}"})
    with urllib.request.urlopen(r, timeout=300) as reply:
        reply.body = reply.read()
        return reply


FEW = [
    ("Beta", {"dose": found(5.5, original="5,5 mg", unit="mg"), "design": found("RCT"),
              "size": found(120), "blind": found(True), "begin": found("2020-05-04"),
              "drugs": found(["aspirin", "Heparin"]), "结论": found("=有效, \"明显\"")}),
    ("alpha", {"dose": found(-2, verified=False, quote="never said"), "design": found("cohort"),
               "size": found(7), "begin": found("2019"), "结论": found("无效")}),
    ("Gamma", {"dose": found(40, differs=[found(41, verified=False)]), "blind": found(False)}),
    ("delta", {"dose": found(5.5), "design": found("RCT"), "begin": found("2021-01"),
               "size": found(7)}),
    (None, "the document has no text"),
    ("epsilon", None),
]


@with_screening("a page of rows: filters and order", papers=200)
def _(m, sim):
    ada, bob = person(m, "ada"), person(m, "bob")
    task = make_task(m, ada.uid, FEW, simulated=True)
    r = ada("GET", path(task))
    equal(r.status, 200, "shown", r)
    whole = r.body
    equal((whole["task"]["task_id"], whole["task"]["name"], whole["task"]["template_version"],
           whole["task"]["progress"]["total"], whole["task"]["progress"]["success"],
           whole["model"], whole["next"]), (task, "doses", 3, 6, 4, "model-1", None), "the task")
    equal([f["name"] for f in whole["fields"]], NAMES, "its fields")
    equal([r["place"] for r in whole["rows"]], [1, 2, 3, 4, 5, 6], "its rows by place")
    first = whole["rows"][0]
    equal((first["doi"], first["document_id"], first["title"], first["state"], first["version"],
           first["simulated"], first["edits"]),
          ("10.1/1", None, "Beta", "completed", 1, True, {}), "one of them")
    equal(first["values"]["dose"],
          {"value": 5.5, "quote": "as it stands", "begin": 3, "end": 9, "part": 0,
           "verified": True, "original": "5,5 mg", "unit": "mg"}, "with the evidence of a value")
    equal([i["value"] for i in first["values"]["drugs"]["items"]], ["aspirin", "Heparin"],
          "a list item by item")
    equal((whole["rows"][4]["state"], whole["rows"][4]["error"], whole["rows"][4]["reason_code"],
           whole["rows"][4]["values"], first["reason_code"]),
          ("error", "the document has no text", "no_text", None, None), "a row in error says why")
    equal([ada("GET", path(task, place)).body for place in range(1, 7)],
          [{**row, "success": True} for row in whole["rows"]], "each row by itself is the same")
    # What an unpaid row has is not shown.
    sql(m, "UPDATE extraction_result SET result = (SELECT result FROM (SELECT result FROM"
           " extraction_result WHERE place = 1) x), missing = -1 & 127 WHERE place = 6")
    equal(ada("GET", path(task)).body["rows"][5]["values"], None,
          "values of a row that is not completed are not shown")
    for query, want in (
            ({}, [1, 2, 3, 4, 5, 6]), ({"filter": "missing"}, [2, 3, 4]),
            ({"filter": "missing", "field": "design"}, [3]),
            ({"filter": "missing", "field": "dose"}, []), ({"filter": "unverified"}, [2]),
            ({"filter": "unverified", "field": "size"}, []), ({"filter": "differs"}, [3]),
            ({"filter": "differs", "field": "dose"}, [3]), ({"filter": "edited"}, []),
            ({"filter": "error"}, [5])):
        equal((places(ada, task, **query), totals(ada, task, **query)), (want, {len(want)}),
              f"filter {query}, and its total on each page")
    for sort, want in (("place", [1, 2, 3, 4, 5, 6]), ("-place", [6, 5, 4, 3, 2, 1]),
                       ("title", [2, 1, 4, 6, 3, 5]), ("-title", [3, 6, 4, 1, 2, 5]),
                       ("field:dose", [2, 1, 4, 3, 5, 6]), ("-field:dose", [3, 1, 4, 2, 5, 6]),
                       ("field:size", [2, 4, 1, 3, 5, 6]), ("field:design", [2, 1, 4, 3, 5, 6]),
                       ("field:begin", [2, 1, 4, 3, 5, 6]), ("-field:blind", [1, 3, 2, 4, 5, 6]),
                       ("field:drugs", [1, 2, 3, 4, 5, 6])):
        for limit in (1, 2, 5, 100):
            equal(places(ada, task, sort=sort, limit=limit), want, f"by {sort}, {limit} at a time")
    by_size = {"sort": "-field:size", "filter": "missing", "limit": 1}
    equal((places(ada, task, **by_size), totals(ada, task, **by_size)), ([2, 4, 3], {3}),
          "sorted and filtered")
    for query, field in (({"filter": "odd"}, "filter"), ({"sort": "dose"}, "sort"),
                         ({"sort": "field:none"}, "sort"), ({"field": "dose"}, "field"),
                         ({"filter": "missing", "field": "none"}, "field"),
                         ({"filter": "error", "field": "dose"}, "field"), ({"limit": 501}, "limit"),
                         ({"cursor": "x"}, "cursor"), ({"cursor": "p0"}, "cursor"),
                         ({"cursor": "t3.61"}, "cursor"), ({"cursor": "p3.61"}, "cursor"),
                         ({"sort": "title", "cursor": "t3"}, "cursor"),
                         ({"sort": "title", "cursor": "t3.6"}, "cursor"),
                         ({"sort": "title", "cursor": "t3.ff"}, "cursor"),
                         ({"sort": "-title", "cursor": "t3.61"}, "cursor"),
                         ({"cursor": "p99999"}, "cursor")):
        equal(ada("GET", path(task, **query)).error, (400, "invalid", field), f"refused: {query}")
    equal(read(ada, f"{path(task, 2)}/text").body, b"alpha\n\nas it stands",
          "the text that was asked about")
    doi, journal, year = sql(m, "SELECT DOI, journal, year FROM paperinfo ORDER BY DOI LIMIT 1")[0]
    sql(m, f"UPDATE extraction_result SET doi = '{doi}', block_key = 'meta:{journal}:{year}',"
           " text = NULL WHERE place = 6")
    text = read(ada, f"{path(task, 6)}/text").body.decode()
    ok(len(text) > 50 and text.count("\n\n") == 1, "of a paper that waits: title and abstract",
       text)
    for what in ("", "/file?type=csv", "/rows/1", "/rows/1/text", "/rows/1/edits"):
        equal(bob("GET", path(task) + what).error, (404, "not_found", None),
              f"not for others{what}")
    equal((edit(bob, task, 1, 1, "dose", 1).error, retry(bob, task, 5).error),
          ((404, "not_found", None),) * 2, "nor to be changed")
    for place in (0, 7, 16384 + 1, "x", "-1"):
        equal((ada("GET", f"{path(task)}/rows/{place}/text").error,
               ada("GET", f"{path(task)}/rows/{place}/edits").error,
               ada("GET", f"{path(task)}/rows/{place}").error, retry(ada, task, place).error,
               ada("PUT", f"{path(task)}/rows/{place}",
                   {"version": 1, "field": "dose", "value": 1}).error),
              ((404, "not_found", None),) * 5, f"there is no row {place}")
    other = make_task(m, ada.uid, FEW[:3], name="by an AI")
    equal([(t["task_id"], t["simulated"]) for t in ada("GET", "/api/tasks").body["tasks"]],
          [(other, False), (task, True)], "a task says whether the AI was the simulated one")
    equal((ada("GET", path(task)).body["task"]["simulated"],
           ada("GET", path(other)).body["task"]["simulated"]), (True, False), "also by itself")
    sql(m, f"UPDATE extraction_result SET simulated = 1 WHERE id LIKE '{other}.%' AND place > 1")
    equal(ada("GET", path(other)).body["task"]["simulated"], True, "if some of it is")


@with_screening("values are changed by hand", papers=200)
def _(m, sim):
    ada = person(m, "ada")
    task = make_task(m, ada.uid, FEW)
    row = lambda place: ada("GET", path(task)).body["rows"][place - 1]
    before = row(1)["values"]
    r = edit(ada, task, 1, 1, "dose", "7.25 mg")
    equal((r.status, r.body["version"], r.body["value"]["value"], r.body["value"]["edited"]),
          (200, 2, 7.25, True), "a number given as text", r)
    now = row(1)
    equal((now["version"], now["values"]["dose"]["value"], now["values"]["design"]),
          (2, 7.25, before["design"]), "is the value of the row, and the others stay")
    mark = now["edits"]["dose"]
    equal((list(now["edits"]), mark["by"], mark["was"]), (["dose"], "ada", before["dose"]),
          "marked with who did it, and what the AI had found")
    ok(abs(datetime.datetime.fromisoformat(mark["at"].replace("Z", "+00:00")).timestamp()
           - time.time()) < 60, "and when", mark)
    equal(r.body["edit"]["was"], before["dose"], "the reply says so, too")
    for body, error in (
            ({"version": 1, "field": "dose", "value": 8}, (409, "conflict", None)),
            ({"version": 3, "field": "dose", "value": 8}, (409, "conflict", None)),
            ({"version": 2, "field": "dose", "value": "much"}, (400, "invalid", "value")),
            ({"version": 2, "field": "dose", "value": True}, (400, "invalid", "value")),
            ({"version": 2, "field": "dose", "value": [1]}, (400, "invalid", "value")),
            ({"version": 2, "field": "size", "value": 1.5}, (400, "invalid", "value")),
            ({"version": 2, "field": "design", "value": "case"}, (400, "invalid", "value")),
            ({"version": 2, "field": "begin", "value": "2020-02-30"}, (400, "invalid", "value")),
            ({"version": 2, "field": "begin", "value": "03/04/2020"}, (400, "invalid", "value")),
            ({"version": 2, "field": "none", "value": 1}, (400, "invalid", "field")),
            ({"version": 2, "field": "dose"}, (400, "invalid", "value")),
            ({"version": 2, "field": "drugs", "value": [["a"]]}, (400, "invalid", "value[0]")),
            ({"version": 2, "field": "drugs", "value": {"a": 1}}, (400, "invalid", "value"))):
        r = ada("PUT", path(task, 1), body)
        equal(r.error, error, f"refused: {body}", r)
    ok("dose" in ada("PUT", path(task, 1), {"version": 2, "field": "dose", "value": "much"})
       .body["error"]["message"], "a wrong type names the field")
    equal(row(1), now, "and nothing is changed by any of them")
    equal(ada("GET", path(task, 1)).body, {**now, "success": True}, "the row by itself is the same")
    for place in (5, 6):
        equal(edit(ada, task, place, 1, "dose", 1).error, (409, "conflict", None),
              f"row {place} has no values to be changed")
    version = 2
    for field, value, want in (("size", "1,200", 1200), ("blind", "no", False),
                               ("begin", "5 May 2020", "2020-05-05"),
                               ("design", "COHORT", "cohort"),
                               ("drugs", ["warfarin", "苯"], ["warfarin", "苯"]),
                               ("结论", "第一行", "第一行"), ("dose", None, None)):
        r = edit(ada, task, 1, version, field, value)
        version += 1
        equal((r.status, r.body["version"], r.body["value"]["value"]), (200, version, want),
              f"{field}: {value}", r)
    equal(row(1)["edits"]["dose"]["was"], before["dose"],
          "after two edits what the AI had found is there still")
    equal((places(ada, task, filter="edited"), places(ada, task, filter="edited", field="size"),
           places(ada, task, filter="missing", field="dose"),
           places(ada, task, sort="field:size")), ([1], [1], [1], [2, 4, 1, 3, 5, 6]),
          "filters and order follow")
    edits = ada("GET", f"{path(task, 1)}/edits").body["edits"]
    equal([(e["field"], e["was"]["value"], e["now"]["value"], e["by"], e["version"])
           for e in edits[-2:]], [("size", 120, 1200, "ada", 3), ("dose", 5.5, 7.25, "ada", 2)],
          "all edits are kept", edits)
    equal((len(edits), edits[0]["field"], edits[0]["was"]["value"], edits[0]["now"]["value"]),
          (8, "dose", 7.25, None), "the newest first")
    paged = [e["version"] for p in ada.pages(f"{path(task, 1)}/edits?limit=3") for e in p["edits"]]
    equal(paged, [9, 8, 7, 6, 5, 4, 3, 2], "page by page")
    r = edit(ada, task, 1, version, "dose", 5.5)
    equal((r.status, r.body["value"], r.body["edit"]), (200, before["dose"], None),
          "an edit back to what the AI had found brings its quote back", r)
    ok("dose" not in row(1)["edits"], "and is no edited value any more")
    r = edit(ada, task, 1, version + 1, "dose", 5.5)
    equal((r.status, r.body["version"]), (200, version + 1), "the same value changes nothing")
    equal(len(ada("GET", f"{path(task, 1)}/edits").body["edits"]), 9, "and is no edit")
    r = edit(ada, task, 2, 1, "dose", -3)
    equal((places(ada, task, filter="unverified"), r.body["edit"]["was"]["quote"]),
          ([], "never said"), "an edited value is not unverified any more")
    edit(ada, task, 3, 1, "dose", 41)
    equal((places(ada, task, filter="differs"), row(3)["edits"]["dose"]["was"]["differs"][0]
           ["value"]), ([], 41), "and one that was chosen does not differ")


# --- files ---

def fetch(api, task, kind):
    return read(api, f"{path(task)}/file?type={kind}")


SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
EPOCH = datetime.date(1899, 12, 30)


def column(reference):
    n = 0
    for c in reference:
        if c.isalpha():
            n = n * 26 + ord(c) - 64
    return n - 1


def workbook(data):
    """Sheets by name: rows of cells as (type, text, is it a date)."""
    book = zipfile.ZipFile(io.BytesIO(data))
    assert book.testzip() is None
    part = lambda name: xml.fromstring(book.read(name))
    links = {r.get("Id"): r.get("Target") for r in part("xl/_rels/workbook.xml.rels")}
    styles = part("xl/styles.xml")
    own = {int(f.get("numFmtId")): f.get("formatCode") for f in styles.iter(f"{SHEET}numFmt")}
    dated = [int(x.get("numFmtId", 0)) in (14, 22) or "yy" in own.get(int(x.get("numFmtId", 0)), "")
             for x in styles.find(f"{SHEET}cellXfs")]
    shared = []
    if "xl/sharedStrings.xml" in book.namelist():
        shared = ["".join(t.text or "" for t in si.iter(f"{SHEET}t"))
                  for si in part("xl/sharedStrings.xml")]
    sheets = {}
    for s in part("xl/workbook.xml").iter(f"{SHEET}sheet"):
        target = links[s.get(f"{REL}id")].lstrip("/")
        sheet = part(target if target.startswith("xl/") else "xl/" + target)
        table = []
        for row in sheet.iter(f"{SHEET}row"):
            cells = []
            for c in row.iter(f"{SHEET}c"):
                assert c.find(f"{SHEET}f") is None, "a formula"
                at = column(c.get("r")) if c.get("r") else len(cells)
                cells += [None] * (at - len(cells))
                kind, v = c.get("t", "n"), c.find(f"{SHEET}v")
                text = ("".join(t.text or "" for t in c.iter(f"{SHEET}t")) if kind == "inlineStr"
                        else v.text if v is not None else None)
                if kind == "s":
                    kind, text = "text", shared[int(text)]
                cells.append((kind.replace("inlineStr", "text"), text,
                              dated[int(c.get("s", "0"))]) if text is not None else None)
            table.append(cells)
        sheets[s.get("name")] = table
    return sheets


def plain(cell):
    """What a person sees: a text, a number, a date, true or false."""
    if cell is None:
        return None
    kind, text, date = cell
    if kind == "b":
        return text == "1"
    if kind == "n":
        return EPOCH + datetime.timedelta(float(text)) if date else float(text)
    return text


def records(table):
    head = [c[1] for c in table[0]]
    return [dict(zip(head, map(plain, row + [None] * (len(head) - len(row))))) for row in table[1:]]


@with_screening("files: CSV, JSON lines, XLSX", papers=200)
def _(m, sim):
    ada = person(m, "ada")
    task = make_task(m, ada.uid, FEW, name="剂量 doses", simulated=True)
    edit(ada, task, 4, 1, "design", "cohort")
    r = fetch(ada, task, "csv")
    ok(r.headers["content-type"].startswith("text/csv"), "its type", r.headers)
    name = r.headers["content-disposition"]
    ok('filename="millrace-doses-' in name
       and "filename*=UTF-8''millrace-%E5%89%82%E9%87%8F-doses-" in name, "its name", name)
    ok(r.body.startswith(b"\xef\xbb\xbf"), "a byte order mark, for Excel")
    table = list(csv.DictReader(io.StringIO(r.body.decode("utf-8-sig"), newline="")))
    equal(list(table[0]), ["row", "document", "doi", "document_id", "state", "error", "dose (mg)",
                           "design", "size", "blind", "begin", "drugs", "结论", "unverified",
                           "edited", "simulated"], "the columns")
    equal([x["dose (mg)"] for x in table], ["5.5", "-2", "40", "5.5", "", ""],
          "numbers, below zero, too")
    equal((table[0]["结论"], table[0]["drugs"], table[0]["blind"], table[0]["begin"]),
          ("'=有效, \"明显\"", "aspirin; Heparin", "true", "2020-05-04"),
          "no cell starts a formula; lists in one cell", table[0])
    equal([(x["state"], x["unverified"], x["edited"], x["simulated"]) for x in table],
          [("completed", "", "", "yes"), ("completed", "dose", "", "yes"),
           ("completed", "", "", "yes"), ("completed", "", "design", "yes"),
           ("error", "", "", ""), ("cancelled", "", "", "")], "what is to be known of each row")
    equal((table[4]["error"], table[1]["doi"], table[1]["document"]),
          ("the document has no text", "10.1/2", "alpha"), "which document it is")
    shown = ada("GET", path(task)).body["rows"]
    lines = [json.loads(x) for x in fetch(ada, task, "jsonl").body.decode().splitlines()]
    equal([{k: v for k, v in x.items()
            if k not in ("task_id", "template_name", "template_version", "model")} for x in lines],
          shown, "JSON lines have all that the API shows")
    equal((lines[0]["task_id"], lines[0]["template_name"], lines[0]["template_version"],
           lines[0]["model"]), (task, "Doses", 3, "model-1"), "and where it comes from")
    r = fetch(ada, task, "xlsx")
    ok("spreadsheetml" in r.headers["content-type"], "its type", r.headers)
    book = workbook(r.body)
    equal(list(book), ["Results", "Quotes", "About"], "three sheets")
    got = records(book["Results"])
    equal(list(got[0]), list(table[0]), "the columns of the CSV file")
    equal([x["dose (mg)"] for x in got], [5.5, -2.0, 40.0, 5.5, None, None],
          "numbers are numbers", got)
    equal([x["begin"] for x in got[:4]], [datetime.date(2020, 5, 4), "2019", None, "2021-01"],
          "dates are dates, and those without a day are text")
    equal([x["blind"] for x in got[:3]], [True, None, False], "truth values are such")
    equal((got[0]["结论"], got[0]["drugs"], got[0]["size"]),
          ('=有效, "明显"', "aspirin; Heparin", 120.0), "texts are texts")
    equal([x["simulated"] for x in got], ["yes"] * 4 + [None] * 2, "simulated ones are marked")
    quotes = records(book["Quotes"])
    equal([(x["row"], x["field"], x["value"], x["verified"], x["kind"]) for x in quotes
           if x["field"] in ("dose", "drugs")],
          [(1, "dose", 5.5, "yes", "shown"), (1, "drugs", "aspirin", "yes", "shown"),
           (1, "drugs", "Heparin", "yes", "shown"), (2, "dose", -2, "no", "shown"),
           (3, "dose", 40, "yes", "shown"), (3, "dose", 41, "no", "differs"),
           (4, "dose", 5.5, "yes", "shown")], "every quote", quotes)
    equal([(x["field"], x["value"], x["quote"], x["verified"]) for x in quotes
           if x["row"] == 4 and x["field"] == "design"], [("design", "cohort", None, "edited")],
          "an edited value has none")
    equal({x["simulated"] for x in quotes}, {"yes"}, "marked here, too")
    about = {x["about"]: x["value"] for x in records(book["About"])}
    equal((about["task"], about["template"], about["template version"], about["model"],
           about["simulated results"], about["documents"], about["completed"], about["errors"]),
          ("剂量 doses", "Doses", 3.0, "model-1", 4.0, 6.0, 4.0, 1.0), "where it comes from", about)
    equal(ada("GET", f"{path(task)}/file?type=pdf").error, (400, "invalid", "type"), "no others")


# --- as the AI found them ---

TEXTS = ["一期 trial.\n\nThe dose was 5.2 mg. Drugs: aspirin, heparin.\n\fThe start was 2020-05-04. "
         "结论：有效。\n",
         "The dose was 7 mg. Drugs: warfarin.\n"]
ASKED = [f for f in FIELDS if f["name"] in ("dose", "drugs", "结论")] + [
    {"name": "start", "type": "date"}]


def asked(m, api):
    documents = [upload(api, text, f"{i}.txt") for i, text in enumerate(TEXTS, 1)]
    sql(m, "UPDATE document SET pages = 2 WHERE name = '1.txt'")  # as if it were a PDF
    task = start(api, template(api, ASKED), documents)
    assert ended(api, task)
    return task


@with_tasks("values as they were found: quotes in the text, pages, edits")
def _(m, sim):
    ada = person(m, "ada")
    task = asked(m, ada)
    first, second = ada("GET", path(task)).body["rows"]
    equal((first["title"], first["doi"], first["simulated"], second["values"]["start"]),
          ("1.txt", None, True, {"value": None}), "the rows", first)
    text = read(ada, f"{path(task, 1)}/text").body
    equal(text.decode(), TEXTS[0], "the text of a document")
    one = first["values"]
    equal((one["dose"]["value"], one["drugs"]["value"], one["start"]["value"],
           one["结论"]["value"]), (5.2, ["aspirin", "heparin"], "2020-05-04", "有效"), "values", one)
    for v in (one["dose"], one["start"], one["结论"], *one["drugs"]["items"]):
        ok(v["verified"] and text[v["begin"]:v["end"]].decode().strip() == v["quote"].strip(),
           "the bytes that a value names are its quote", v, text[v["begin"]:v["end"]])
    equal((places(ada, task, filter="missing"), places(ada, task, filter="missing", field="dose"),
           places(ada, task, filter="unverified"), places(ada, task, sort="-field:dose")),
          ([2], [], [], [2, 1]), "filters and order of what work wrote")
    r = edit(ada, task, 2, second["version"], "start", "2021-02-03")
    equal((r.status, r.body["value"]["value"], places(ada, task, sort="-field:start")),
          (200, "2021-02-03", [2, 1]), "a value that was missing is given by hand", r)
    quotes = records(workbook(fetch(ada, task, "xlsx").body)["Quotes"])
    equal([(x["row"], x["field"], x["page"], x["verified"], x["simulated"]) for x in quotes
           if x["field"] in ("dose", "start")],
          [(1, "dose", 1.0, "yes", "yes"), (1, "start", 2.0, "yes", "yes"),
           (2, "dose", None, "yes", "yes"), (2, "start", None, "edited", "yes")],
          "pages, where a document has such", quotes)
    ada("DELETE", f"/api/documents/{first['document_id']}")
    equal((read(ada, f"{path(task, 1)}/text").body, len(fetch(ada, task, "xlsx").body) > 1000),
          (text, True), "a deleted document stays readable in its task")


@with_tasks("quotes that were made up", "--extract-fault", "1", "--extract-fault-kinds", "quotes",
            "--extract-fault-stays")
def _(m, sim):
    ada = person(m, "ada")
    task = asked(m, ada)
    equal((places(ada, task, filter="unverified"),
           places(ada, task, filter="unverified", field="start")), ([1, 2], [1]),
          "are found by the filter", ada("GET", path(task)))
    table = csv.DictReader(io.StringIO(fetch(ada, task, "csv").body.decode("utf-8-sig")))
    equal([x["unverified"] for x in table], ["dose; drugs; 结论; start", "dose; drugs"],
          "and named in the file")


@with_screening("many rows", papers=200)
def _(m, sim):
    ada = person(m, "ada")
    chance = random.Random(7)
    names = [f"field {i}" for i in range(12)]
    fields = [{"name": n, "type": "number" if i % 2 else "text"} for i, n in enumerate(names)]
    value = lambda i: round(chance.uniform(-1e6, 1e6), 3) if i % 2 else f"text {chance.random()}"
    rest = {"quote": "so it is written in the document, word by word " * 3}
    made = [(f"Paper {chance.random()}",
             {n: found(value(i), chance.random() > 0.02, **rest) for i, n in enumerate(names)
              if chance.random() > 0.05}) for _ in range(MANY)]
    task = make_task(m, ada.uid, made, fields)
    number = lambda place: made[place - 1][1].get("field 1", {"value": None})["value"]
    order = sorted(range(1, MANY + 1), key=lambda p: (number(p) is None, number(p) or 0, p))
    for query, want in (
            ({}, list(range(1, MANY + 1))), ({"sort": "field:field 1"}, order),
            ({"filter": "unverified", "field": "field 3"},
             [p for p in range(1, MANY + 1)
              if not made[p - 1][1].get("field 3", {"verified": True})["verified"]])):
        times, got, cursor = [], [], None
        while True:
            began = time.monotonic()
            r = ada("GET", path(task, limit=500, **query, **({"cursor": cursor} if cursor else {})))
            times.append(time.monotonic() - began)
            got += [x["place"] for x in r.body["rows"]]
            total = r.body["total"]
            cursor = r.body["next"]
            if not cursor:
                break
        equal((got, total), (want, len(want)), f"all rows of {query}, each once, in order")
        median = sorted(times)[len(times) // 2]
        ok(median < 3 * crowd(), f"a page takes {median:.3f} s")
    table = list(csv.DictReader(io.StringIO(fetch(ada, task, "csv").body.decode("utf-8-sig"))))
    equal((len(table), table[-1]["row"]), (MANY, str(MANY)), "all in a CSV file")
    lines = fetch(ada, task, "jsonl").body.decode().splitlines()
    equal((len(lines), json.loads(lines[-1])["place"]), (MANY, MANY), "all in JSON lines")
    book = workbook(fetch(ada, task, "xlsx").body)
    equal((len(book["Results"]), len(book["Quotes"])),
          (MANY + 1, 1 + sum(len(v) for _, v in made)), "all in a workbook, with their quotes")
    stalled, status = [], 200
    while status == 200 and len(stalled) < 5:  # two on each of two nodes, and one more
        stalled.append(http.client.HTTPConnection("127.0.0.1", m.port, timeout=60))
        stalled[-1].request("GET", f"{path(task)}/file?type=jsonl",
                            headers={"Authorization": f"Bearer {ada.token}"})
        status = stalled[-1].getresponse().status
    equal(status, 503, "who does not read a file gets no further ones", len(stalled))
    ok(len(stalled) > 2, "but two at the same time", len(stalled))
    for c in stalled:
        c.close()

    def whole():
        with contextlib.suppress(urllib.error.HTTPError):
            return len(fetch(ada, task, "jsonl").body.splitlines()) == MANY
    ok(wait_for(whole, 30), "and all of it later")


run_tests()
