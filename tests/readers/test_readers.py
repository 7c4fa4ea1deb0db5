"""What large programs make of downloaded files: biber of BibTeX, LibreOffice of CSV and of
workbooks. Debian's packages of both are needed, about 100 MB, so this is not part of the default
suites; pybtex, bibutils and Python's csv are in test_download.py."""
import csv
import os
import re
import subprocess
import sys
import urllib.request
import xml.etree.ElementTree as ElementTree
import zipfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import harness
import test_download as downloads
from harness import BIN, equal, folder, ok, run_tests, sql, test
from screening import person
from tasks import ended, start, template, upload, with_tasks

harness._tests.clear()  # its helpers are wanted, not its tests


def biber(data):
    """(warnings and errors, entries written) of biber in tool mode, which reads all of a file."""
    place = folder()
    path = f"{place}/x.bib"
    with open(path, "wb") as f:
        f.write(data)
    done = subprocess.run(["biber", "--tool", "--nolog", "--output-file", f"{place}/out.bib", path],
                          capture_output=True, text=True, timeout=120, cwd=place)
    said = [l for l in (done.stdout + done.stderr).splitlines() if re.match(r"(WARN|ERROR)", l)]
    written = len(re.findall(r"^@",
                             open(f"{place}/out.bib").read(), re.M)) if done.returncode == 0 else -1
    return said, written


def libreoffice(data):
    """Rows of a CSV file after LibreOffice has read it and written it again, what it shows and not
    what it reckons."""
    place = folder()
    with open(f"{place}/in.csv", "wb") as f:
        f.write(data)
    # 44: comma, 34: quote, 76: UTF-8, 1: from the first line; every column as text
    columns = "/".join(f"{i}/2" for i in range(1, 9))
    subprocess.run(["soffice", "--headless", f"-env:UserInstallation=file://{place}/profile",
                    f"--infilter=CSV:44,34,76,1,{columns}", "--convert-to", "ods",
                    "--outdir", place, f"{place}/in.csv"],
                   check=True, capture_output=True, timeout=180)
    return shown(place, "in.ods")


def shown(place, name, sheet=None):
    """Rows of the first sheet of a file in place, or of another, as LibreOffice shows its cells."""
    # The last token: -1 is every sheet, each in a file of its own
    which = ",,0,false,true,false,false,false,-1" if sheet else ""
    subprocess.run(["soffice", "--headless", f"-env:UserInstallation=file://{place}/profile",
                    "--convert-to", f"csv:Text - txt - csv (StarCalc):44,34,76,1{which}",
                    "--outdir", f"{place}/back", f"{place}/{name}"],
                   check=True, capture_output=True, timeout=180)
    path = f"{place}/back/{os.path.splitext(name)[0]}{'-' + sheet if sheet else ''}.csv"
    with open(path, encoding="utf-8-sig", newline="") as f:
        return list(csv.reader(f))


@downloads.with_server("large programs")
def _(m):
    u = downloads.User(m, "reader")
    downloads.archive(m, u.uid, "q1", "二氧化碳?")
    relevant = int(sql(m, "SELECT COUNT(*) FROM search_result WHERE relevant = 1")[0][0])
    said, written = biber(u.file("q1", "bib").content)
    equal((said, written), ([], relevant), "biber reads all entries without complaint")
    file = u.file("q1", "csv", "all")
    rows, mine = libreoffice(file.content), downloads.rows_of(file)
    equal(len(rows), len(mine), "LibreOffice has a row for each paper")
    same = sum(a == b for a, b in zip(rows, mine))
    equal(same, len(mine), "with the same text in every cell",
          [x for x in zip(rows, mine) if x[0] != x[1]][:2])
    ok(any("是" in cell for row in rows for cell in row), "Chinese text is intact")

    downloads.add_hostile(m)
    downloads.archive(m, u.uid, "h1", "x", "DOI LIKE '10.5555/_' OR DOI LIKE 'made-up/0123%'")
    file = u.file("h1", "csv", "all")
    rows, mine = libreoffice(file.content), downloads.rows_of(file)
    equal(rows, mine, "hostile entries are shown as they are, and are no formulas")


# The sample of xlsx_test.c: texts that are no formulas, numbers and dates.
TEXTS = ["plain", "=1+1", "+SUM(A1:A2)", "-2+3", "@x", "a \"b\" <c> & 'd'", "  spaces  ", "中文，标点",
         "𝛼 and 😀", "two\nlines", "007", "1e5", "TRUE", "2026-01-31", "comma, here"]


@test("a workbook")
def _():
    place = folder()
    program = os.path.join(os.path.dirname(BIN), "corpus_xlsx_test")
    subprocess.run([program, f"{place}/in.xlsx"], check=True, timeout=60)
    with zipfile.ZipFile(f"{place}/in.xlsx") as z:
        equal(z.testzip(), None, "Python's zipfile finds every checksum right")
        for name in z.namelist():
            ElementTree.fromstring(z.read(name))
        equal(len(z.namelist()), 7, "and every file in it is XML")
    want = [["text", "integer", "real", "flag", "day", "空"]] + [
        [text, str(i - 3), f"{i / 8:g}", "TRUE" if i % 2 else "FALSE", "2026-01-31", ""]
        for i, text in enumerate(TEXTS)]
    equal(shown(place, "in.xlsx"), want, "LibreOffice shows the cells that were written")


FIELDS = [{"name": "dose", "type": "number", "unit": "mg", "required": True},
          {"name": "drugs", "type": "list", "of": "text"}, {"name": "结论", "type": "text"},
          {"name": "start", "type": "date"}]
FOUND = ["The dose was 5.2 mg. Drugs: aspirin, heparin. The start was 2020-05-04. 结论：有效。\n",
         "The dose was 7 mg. Drugs: warfarin.\n"]


@with_tasks("the table of an extraction")
def _(m, sim):
    """From a template to a file: what was found, and what was changed by hand since."""
    ada = person(m, "ada")
    documents = [upload(ada, text, f"{i}.txt") for i, text in enumerate(FOUND, 1)]
    task = start(ada, template(ada, FIELDS), documents)
    ok(ended(ada, task), "a task is done")
    for version, (field, value) in enumerate([("dose", 6.25), ("结论", "=1+1, \"改\"")], 1):
        r = ada("PUT", f"/api/tasks/{task}/rows/2",
                {"version": version, "field": field, "value": value})
        equal(r.status, 200, f"{field} is changed", r)
    place = folder()
    file = urllib.request.Request(f"http://127.0.0.1:{m.port}/api/tasks/{task}/file?type=xlsx",
                                  headers={"Authorization": f"Bearer {ada.token}"})
    with urllib.request.urlopen(file, timeout=60) as r, open(f"{place}/task.xlsx", "wb") as f:
        f.write(r.read())
    head, *rows = shown(place, "task.xlsx", "Results")
    table = [dict(zip(head, row)) for row in rows]
    dose = next(name for name in head if name.startswith("dose"))
    equal([[x[name] for name in (dose, "drugs", "结论", "start", "edited")] for x in table],
          [["5.2", "aspirin; heparin", "有效", "2020-05-04", ""],
           ["6.25", "warfarin", "=1+1, \"改\"", "", "dose; 结论"]],
          "LibreOffice shows values, days, and what was changed, which is no formula", table)
    head, *rows = shown(place, "task.xlsx", "Quotes")
    quotes = [dict(zip(head, row)) for row in rows]
    equal([(x["row"], x["field"], x["value"], x["quote"]) for x in quotes
           if x["field"] == "start"],
          [("1", "start", "2020-05-04", "The start was 2020-05-04")], "and the quotes", quotes)


run_tests()
