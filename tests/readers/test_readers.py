"""What large programs make of downloaded files: biber of BibTeX, LibreOffice of CSV. Debian's
packages of both are needed, about 100 MB, so this is not part of the default suites; pybtex,
bibutils and Python's csv are in test_download.py."""
import csv
import os
import re
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import harness
import test_download as downloads
from harness import equal, folder, ok, run_tests, sql

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
    subprocess.run(["soffice", "--headless", f"-env:UserInstallation=file://{place}/profile",
                    "--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76,1",
                    "--outdir", f"{place}/back", f"{place}/in.ods"],
                   check=True, capture_output=True, timeout=180)
    with open(f"{place}/back/in.csv", encoding="utf-8-sig", newline="") as f:
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


run_tests()
