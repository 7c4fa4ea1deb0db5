"""`millrace db split`: one exported file becomes folders, which db init loads."""
import pathlib
import signal
import subprocess

from harness import BIN, environment, equal, folder, ok, run, run_tests, test, wait_for
from loading import Database, with_server

EXPORT = b"""\xef\xbb\xbf@string{jn = {Nature}}
@string{pre = {Proceedings of } # jn}
@string{unused = {Nothing}}

@article{one,
  title = {First}, journal = jn, year = 2001, doi = {10.1/one}, abstract = {A.}
}
Text between entries.
@ARTICLE{two,
\ttitle = "Second",\r
\tjournal = {NATURE},
\tyear = {2003}, doi = {10.1/two}
}
@inproceedings{three, title={Third}, booktitle = pre, year=2002, doi={10.1/three}}
@book{four, title = {Fourth}, year = 1999, doi = {10.1/four}}
@article{five, title = {Fifth}, journal = {../../etc/{\\"U}ber}, year = 2005, doi = {10.1/five}}
@article{six, title = {broken
@article{seven, title = {Seventh}, journal = {Science}, year = 2007, doi = {10.1/seven}}
@article{eight, title = {Eighth}, journal = {=cmd()}, year = 2008, doi = {10.1/eight}}
"""
FOLDERS = {"Nature": 2, "Proceedings of Nature": 1, "_unsorted": 1, "-..-etc-\u00dcber": 1,
           "Science": 1, "=cmd()": 1}


def split(*args, status=0, name="a split"):
    done = run("db", "split", *map(str, args), timeout=60)
    ok(done.returncode == status, name, done.stdout, done.stderr)
    return done


def export(content=EXPORT, name="export.bib"):
    path = pathlib.Path(folder()) / name
    path.write_bytes(content)
    return path


def files(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in pathlib.Path(top).rglob("*")
            if p.is_file()}


@test("one file becomes a folder per journal")
def _():
    path, out = export(), pathlib.Path(folder()) / "out"
    done = split(path, "--out", out)
    found = files(out / "Data")
    equal({p.split("/")[0]: t.count(b"doi") for p, t in found.items()}, FOLDERS,
          "every entry is in the folder of its journal")
    equal({p.split("/")[1] for p in found}, {"export.bib"}, "under the name of the file")
    nature = found["Nature/export.bib"]
    ok(b"""@ARTICLE{two,\n\ttitle = "Second",\r\n\tjournal = {NATURE},\n""" in nature,
       "byte for byte", nature)
    ok(nature.count(b"@string") == 1 and nature.index(b"@string{jn") < nature.index(b"@article"),
       "with the @string that it uses", nature)
    ok(b"@string{pre" in found["Proceedings of Nature/export.bib"] and
       b"@string" not in found["Science/export.bib"], "and no other")
    ok("_unsorted  (neither journal nor booktitle)" in done.stdout and
       "7 entries read, 7 into 6 folders" in done.stdout and "1 could not be read" in done.stdout,
       "the report counts them", done.stdout)
    ok(f"{path}:17: not closed" in done.stderr, "and names the entry that is broken", done.stderr)
    table = (out / "PaperAndTagInfo/InfoList.Paper.csv").read_text(encoding="utf-8-sig")
    ok("Nature,Nature,2001-2003,,1" in table and "'=cmd()" in table,
       "there is a table to set prices in", table)
    refuses(path, out)


def refuses(path, out):
    before = files(out)
    done = split(path, "--out", out, status=1, name="no second split into the same folders")
    ok("is there already" in done.stderr, "it says so", done.stderr)
    equal(files(out), before, "and changes nothing")
    (out / "PaperAndTagInfo/InfoList.Paper.csv").write_text("Name,Price\nNature,7\n")
    done = split(export(name="more.txt"), "--out", out, "--journal", "nature", "--journal=Science",
                 name="another file, and some journals only")
    new = files(out)
    equal(sorted(set(new) - set(before)), ["Data/Nature/more.txt.bib", "Data/Science/more.txt.bib"],
          "only those are written")
    ok("4 of other journals left out" in done.stdout and "is unchanged" in done.stdout,
       "the report says so", done.stdout)
    equal(new["PaperAndTagInfo/InfoList.Paper.csv"], b"Name,Price\nNature,7\n",
          "a table that is there stays")


@test("what cannot be split leaves nothing")
def _():
    out = pathlib.Path(folder()) / "out"
    for content, words, args in (
            (b"no entries here", "no such entries", ()),
            (EXPORT, "no such entries", ("--journal", "Cell")),
            ("@article{a, journal={X}}".encode("utf-16"), "is UTF-16", ())):
        done = split(export(content), "--out", out, *args, status=1, name=f"refused: {words}")
        ok(words in done.stderr and not out.exists(), "and nothing is made", done.stderr)
    done = split("/nowhere.bib", "--out", out, status=1, name="a file that is not there")
    ok("/nowhere.bib: No such file" in done.stderr and not out.exists(), "is named", done.stderr)
    equal(split(export(), status=2, name="no folder given").stdout, "", "is refused")
    big = export(b"".join(b"@article{k%d, journal={J%d}, title={%s}}\n" % (i, i % 50, b"x" * 400)
                          for i in range(50_000)))
    p = subprocess.Popen([BIN, "db", "split", big, "--out", out], env=environment(), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ok(wait_for(lambda: out.exists() and any(out.iterdir()), 10), "one is under way")
    p.send_signal(signal.SIGINT)
    printed, said = p.communicate(timeout=30)
    ok(p.returncode == 1 and "interrupted" in said and not out.exists(),
       "a signal ends it, and nothing is left", printed, said)


@with_server("db init loads it")
def _(m):
    out = pathlib.Path(folder()) / "out"
    split(export(), "--out", out)
    database = Database(m)
    database.init(out)
    journals = database.ask("SELECT journal, COUNT(*) FROM paperinfo GROUP BY journal")
    equal({name: int(n) for name, n in journals}, FOLDERS, "each paper is in its journal")
    equal(database.ask("SELECT DataRange, Price FROM contentlist WHERE Name = 'Nature'"),
          [["2001-2003", "1"]], "with the price of the table")


run_tests()
