"""Papers that leave the folder that `millrace db init` loads: which are counted, which --prune
withdraws, and which must stay."""
import os
import shutil
import threading

from harness import equal, ok, run, run_tests, wait_for
from loading import BLOCKS, CHANGES, LOADS, Database, counts, entry, tree, with_server


@with_server("papers that left the folder")
def _(server):
    papers = {i: entry(i, f"10.5555/{i}", 2001, more="x = {1}") for i in "abcdef"}
    top = tree({"Data/A/1.bib": papers["a"] + papers["b"] + papers["c"],
                "Data/B/1.bib": papers["b"] + papers["d"], "Data/C/1.bib": papers["e"],
                "Data/C/2.bib": papers["f"]})
    db = Database(server)
    db.init(top)
    kept = lambda: [row[0][8:] for row in db.ask("SELECT DOI FROM paperinfo ORDER BY 1")]
    (top / "Data/A/1.bib").write_text(papers["a"])
    (top / "Data/C/2.bib").rename(top / "2.bib")
    said, report = db.init(top)
    equal((report["papers_left"], kept()), (3, list("abcdef")), "they stay, and are counted")
    ok("3 papers are not in the files any more that they came from" in said and "--prune" in said,
       "it is said", said)
    _, report = db.init(top)
    equal(report["papers_left"], 3, "the next load knows the number, and reads no file again")
    equal(report["files"]["read"], 0, "none")
    said, report = db.init(top, "--prune")
    equal((report["papers_withdrawn"], report["papers_left"]), (2, 0), "with --prune they go")
    equal(kept(), list("abde"), "but for one that another file has")
    equal(db.ask("SELECT journal FROM paperinfo WHERE DOI = '10.5555/b'"), [["B"]],
          "whose it is now")
    equal(db.ask(CHANGES), [["A", "2001", "4", "10.5555/b", "withdrawn", "-1"],
                            ["A", "2001", "4", "10.5555/c", "withdrawn", "-1"],
                            ["B", "2001", "4", "10.5555/b", "added", "1"],
                            ["C", "2001", "4", "10.5555/f", "withdrawn", "-1"]], "all is noted")
    equal(db.ask(LOADS)[3], ["4", "1", "0", "1", "2"], "and counted")
    equal(dict(db.ask("SELECT Name, YearNumberJson FROM contentlist_year_number")),
          {"A": '{"2001":1}', "B": '{"2001":2}', "C": '{"2001":1}'}, "and the catalog shows it")
    digest = lambda d: d.ask(
        "SELECT journal, year, papers, digest FROM corpus_block WHERE papers > 0 ORDER BY 1, 2")
    fresh = Database(server)
    fresh.init(top)
    equal(digest(db), digest(fresh), "the blocks are those of a fresh load")
    equal(db.ask("SELECT * FROM corpus_bare"), fresh.ask("SELECT * FROM corpus_bare"),
          "and the papers without an abstract")
    (top / "2.bib").rename(top / "Data/C/2.bib")
    (top / "Data/C/1.bib").rename(top / "1.bib")
    db.init(top, "--prune")
    equal(kept(), list("abdf"), "a file that comes back is read, one that is gone is not")
    shutil.rmtree(top / "Data/C")
    db.init(top, "--prune")
    equal(db.ask(BLOCKS + " LIMIT 2, 1"), [["C", "2001", "0", "6", "1"]],
          "a block without papers is remembered")
    ok(["C"] not in db.ask("SELECT Name FROM contentlist_year_number"), "but not in the catalog")
    shutil.rmtree(top / "Data/A"), shutil.rmtree(top / "Data/B")
    done = run("db", "init", "--prune", "--data", str(top), env=db.env)
    ok(done.returncode == 1 and "would withdraw all papers" in done.stderr,
       "a folder without papers is taken for a mistake", done.stderr)
    equal(kept(), list("abd"), "and nothing is withdrawn")


@with_server("what cannot be read has not left")
def _(server):
    papers = {i: entry(i, f"10.5555/{i}", 2001) for i in "abcdef"}
    top = tree({"Data/A/1.bib": papers["a"], "Data/A/2.bib": papers["b"] + papers["c"],
                "Data/B/1.bib": papers["d"], "Data/C/1.bib": papers["e"]})
    db = Database(server)
    db.init(top)
    kept = lambda: "".join(row[0][8:] for row in db.ask("SELECT DOI FROM paperinfo ORDER BY 1"))
    shutil.rmtree(top / "Data/C")
    for what, path in ("file", "Data/A/2.bib"), ("journal", "Data/B"):
        (top / path).rename(top / "away")
        (top / path).symlink_to("/nonexistent/volume")
        said, report = db.init(top, "--prune", status=1)
        equal((kept(), report["papers_withdrawn"]), ("abcde", 0),
              f"a {what} that cannot be accessed: nothing is withdrawn")
        equal((report["prune_skipped"], report["files"]["failed"]), (True, 1), "and it is said",
              said)
        (top / path).unlink()
        (top / "away").rename(top / path)
    (top / "Data/A/notes").symlink_to("/nonexistent")
    (top / "Data/A/2.bib").write_text(papers["b"] + papers["c"][:-1])
    said, report = db.init(top, "--prune")
    equal((kept(), report["papers_withdrawn"]), ("abcd", 1),
          "a file that ends too soon loses no paper, one that is gone does")
    equal((report["papers_kept"], report["papers_left"]), (1, 0), "which is counted")
    ok("1 papers that files with damaged entries lack" in said and
       "Data/A/2.bib: entries were left out, so papers that it lacks stay (1 papers)" in said,
       "and said", said)
    (top / "Data/A/2.bib").write_text(papers["b"] + papers["f"].replace("2001", "soon"))
    db.init(top)
    equal(db.ask("SELECT file, left_papers FROM corpus_file WHERE journal = 'A' ORDER BY 1"),
          [["1.bib", "0"], ["2.bib", "NULL"]], "how many have left it is not known")
    _, report = db.init(top, "--prune")
    equal((kept(), report["papers_kept"]), ("abcd", 1), "an entry without a year may be any paper")
    (top / "Data/A/2.bib").write_text(papers["b"])
    _, report = db.init(top, "--prune")
    equal((kept(), report["papers_kept"], report["papers_withdrawn"]), ("abd", 0, 1),
          "a file that is mended loses what it lacks")


@with_server("papers that move to another file")
def _(server):
    papers = {i: entry(i, f"10.5555/{i}", 2001) for i in "abcdef"}
    top = tree({"Data/A/1.bib": papers["a"] + papers["b"] + papers["c"],
                "Data/A/2.bib": papers["d"], "Data/B/1.bib": papers["e"] + papers["f"]})
    first, db = top / "Data/A/1.bib", Database(server)
    db.init(top)
    place = lambda doi: db.ask("SELECT journal, JSON_VALUE(Bib, '$.file') FROM paperinfo"
                               f" WHERE DOI = '10.5555/{doi}'")[0]
    first.write_text(papers["a"])
    (top / "Data/A/2.bib").write_text(papers["d"] + papers["b"].replace("A title", "Moved"))
    (top / "Data/C").mkdir()
    (top / "Data/C/new.bib").write_text(papers["c"].replace("A title", "Moved"))
    _, report = db.init(top)
    equal((counts(report), report["papers_left"]),
          ({"read": 4, "updated": 2, "unchanged": 2}, 0),
          "a later file has them now: no duplicates, and none has left")
    equal((place("b"), place("c")), (["A", "2.bib"], ["C", "new.bib"]), "they are those files'")
    ok(all("Moved" in db.papers()[f"10.5555/{i}"]["bib"] for i in "bc"), "with their new text")
    first.write_text(papers["a"].replace("2001", "soon"))
    (top / "Data/A/2.bib").write_text(papers["d"] + papers["b"] + papers["a"])
    _, report = db.init(top)
    equal((place("a"), report["papers_kept"]), (["A", "1.bib"], 1),
          "a file with a damaged entry may still have it")
    first.write_text(papers["a"])
    (top / "Data/B/1.bib").unlink()
    _, report = db.init(top)
    equal(report["papers_left"], 2, "a file is gone, with two papers")
    (top / "Data/C/more.bib").write_text(papers["e"])
    said, report = db.init(top)
    equal((place("e"), report["papers_left"]), (["C", "more.bib"], 1), "one of them comes back")
    ok("not been compared yet" not in said and report["files_unknown"] == 0, "all is known", said)
    db.ask("UPDATE corpus_file SET left_papers = NULL WHERE journal = 'A'")
    said, report = db.init(top)
    equal((report["papers_left"], report["files_unknown"]), (1, 2), "as an earlier version left it")
    ok("2 files have not been compared yet" in said, "which is said", said)
    _, report = db.init(top, "--prune")
    equal((report["papers_withdrawn"], report["papers_left"], report["files_unknown"]), (1, 0, 0),
          "--prune compares all")


@with_server("a --prune that is skipped")
def _(server):
    blanks, latest = b"\n" * (65 << 20), entry("b", "10.5555/b").encode()
    top = tree({"Data/A/1.bib": entry("a", "10.5555/a"), "Data/B/1.bib": latest + blanks,
                "Data/C/1.bib": entry("c", "10.5555/c")})
    large, db = top / "Data/B/1.bib", Database(server)
    db.init(top)
    (top / "Data/C/1.bib").unlink()
    over = threading.Event()

    def touch():
        while not over.wait(0.002):
            os.utime(top / "Data/A/1.bib")
    toucher = threading.Thread(target=touch)
    toucher.start()
    (top / "Data/A/1.bib").write_text(entry("a", "10.5555/a", 2002))
    said, report = db.init(top, "--prune", status=1)
    over.set()
    toucher.join()
    equal((report["prune_skipped"], report["files"]["failed"], db.stored()), (True, 0, 3),
          "a file changes meanwhile: nothing is withdrawn, and the exit status tells")
    ok("none: a file could not be read, or changed meanwhile" in said and
       "Data/A/1.bib: changed while it was read" in said, "which file is said", said)
    # It looks as it did, so only the search for papers that have left opens it: no UTF-8 any more,
    # and too large to be converted.
    times = large.stat()
    large.write_bytes(latest + blanks[:-1] + b"\xff")
    os.utime(large, ns=(times.st_atime_ns, times.st_mtime_ns))
    said, report = db.init(top, "--prune", status=1)
    equal((report["prune_skipped"], report["files"]["failed"], db.stored()), (True, 1, 3),
          "a file that cannot be read when papers are looked for elsewhere: the same")
    ok("Data/B/1.bib: this file could not be read (too large" in said, "it is named", said)


@with_server("a new file compares nothing")
def _(server):
    files = {f"Data/{j}/1.bib": entry(j, f"10.5555/{j}1") for j in "ABC"}
    top, db = tree(files), Database(server)
    db.init(top)
    compared = lambda: int(db.ask("SELECT COUNT(*) FROM mysql.general_log WHERE command_type ="
                                  " 'Execute' AND argument LIKE '%$.file%'")[0][0])
    db.ask("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = 1")
    for j in "ABC":
        (top / f"Data/{j}/2.bib").write_text(entry(j, f"10.5555/{j}2"))
    db.init(top)
    equal((db.stored(), compared()), (6, 0), "a new file in each journal: none is compared")
    equal(db.ask("SELECT DISTINCT left_papers FROM corpus_file"), [["0"]], "no paper left them")
    (top / "Data/A/2.bib").write_text(entry("a", "10.5555/a3"))
    (top / "Data/B/2.bib").unlink()
    _, report = db.init(top)
    equal((report["papers_left"], compared()), (2, 2), "only journals of files that changed")
    db.ask("SET GLOBAL general_log = 0")


@with_server("a file that was never read to its end")
def _(server):
    top = tree({"Data/J/big.bib": "\n".join(entry(f"k{i}", f"10.5555/{i}") for i in range(20000)),
                "Data/K/1.bib": entry("k", "10.5555/k")})
    db = Database(server)
    p = db.launch(top)
    wait_for(lambda: p.poll() is not None or db.stored() >= 2000)
    p.kill()
    p.wait()
    stored = db.stored()
    ok(0 < stored < 20000, "killed in the middle of a file", stored)
    equal(db.ask("SELECT file, left_papers FROM corpus_file"), [["big.bib", "NULL"]], "it is known")
    (top / "Data/J/big.bib").rename(top / "big.bib")
    _, report = db.init(top)
    equal(report["papers_left"], stored, "the file is gone: its papers are counted")
    (top / "big.bib").rename(top / "Data/J/big.bib")
    _, report = db.init(top)
    equal((db.stored(), report["papers_left"]), (20001, 0), "it is back: it is read again")
    (top / "Data/J/big.bib").unlink()
    _, report = db.init(top, "--prune")
    equal((db.stored(), report["papers_withdrawn"]), (1, 20000), "and withdrawn")


if __name__ == "__main__":
    run_tests()
