"""`millrace db init` on a real MariaDB: what it loads, what it refuses, and that it may be cut off
anywhere."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import time

from harness import equal, folder, freeze, note, ok, run, run_tests, test, wait_for
from loading import (BLOCKS, CHANGES, LOADS, Database, counts, entry, sample, same_tables, tree,
                     with_server)

REAL = pathlib.Path(__file__).resolve().parents[3] / "shared" / "corpus"


@test("command line")
def _():
    r = run("db", "init", "--help")
    ok(r.returncode == 0 and r.stdout.startswith("usage: millrace db init"), "--help", r.stderr)
    r = run("db", "init")
    ok(r.returncode == 2 and "--data DIR is missing" in r.stderr, "without a folder", r.stderr)
    r = run("db", "init", "--data", "/nonexistent")
    ok(r.returncode == 1 and "start that first" in r.stderr, "without a database", r.stderr)


@with_server("a sample")
def _(server):
    top, one, two = sample(), Database(server), Database(server)
    said, report = one.init(top)
    equal(counts(report), {"read": 3000, "stored": 3000}, "every paper is stored")
    whole = one.dump()
    equal(len(whole["paperinfo"]), 3000, "and is in the table")
    ok(one.counted("paperinfo") > 2000, "the server knows how many, and can be stopped")
    listed = {row[0] for row in whole["contentlist"]}
    equal({row[0] for row in whole["contentlist_year_number"]}, listed, "all journals have numbers")
    years = {(n, int(y)): c for n, text in whole["contentlist_year_number"]
             for y, c in json.loads(text).items()}
    equal(years, {(j, int(y)): int(n) for j, y, n in
                  one.ask("SELECT journal, year, COUNT(*) FROM paperinfo GROUP BY 1, 2")},
          "which are the papers' own")
    blocks = one.ask("SELECT journal, year, papers FROM corpus_block")
    equal(years, {(j, int(y)): int(n) for j, y, n in blocks}, "and those of the blocks")
    equal(len(whole["zstd_dictionary"]), 1, "a dictionary was trained")
    said2, report = one.init(top)
    equal((counts(report), report["files"]["read"], report["blocks_changed"], report["keys"]["new"],
           report["catalog"]["journals_changed"], report["catalog"]["tags_changed"],
           report["catalog"]["pairs_changed"]), ({}, 0, 0, 0, 0, 0, 0), "again: nothing is read")
    same_tables(one.dump(), whole, "and nothing changes")
    two.init(top)
    same_tables(two.dump(), whole, "another empty database: identical tables")
    keys = [
        k for k in (top / "APIKey" / "sample.txt").read_text().split("\n") if k.startswith("sk-")]
    ok(len(keys) > 0 and {row[1] for row in whole["api_list"]} == set(keys), "the keys are stored")
    ok(not any(k in said + said2 + json.dumps(report) for k in keys), "and never shown")
    for path in (top / "Data").rglob("*.bib"):
        os.utime(path, (1, 1))
    _, report = one.init(top)
    equal((report["files"]["read"], counts(report)), (0, {}),
          "new times on the same bytes: not read")
    equal({row[3] for row in one.dump()["corpus_file"]}, {str(10 ** 9)}, "but remembered")


@with_server("what changed")
def _(server):
    top, db = sample(), Database(server)
    db.init(top)
    before = db.dump()
    journal = sorted(p.name for p in (top / "Data").iterdir())[5]
    (top / "Data" / journal / "more.bib").write_text(
        "\n".join(entry(f"k{i}", f"10.5555/more.{i}", 2031) for i in range(3)))
    _, report = db.init(top)
    equal((counts(report), report["files"]["read"], report["blocks_changed"]),
          ({"read": 3, "stored": 3}, 1, 1), "one more file: only that is read")
    after = db.dump()
    equal([r for r in after["paperinfo"] if r not in before["paperinfo"]],
          [r for r in after["paperinfo"] if r[0].startswith("10.5555/more.")], "three rows more")
    equal(json.loads(dict(after["contentlist_year_number"])[journal])["2031"], 3, "and counted")
    equal(
        [r for r in after["contentlist_year_number"] if r not in before["contentlist_year_number"]],
        [[journal, dict(after["contentlist_year_number"])[journal]]],
        "of other journals nothing changed")
    path = sorted((top / "Data" / journal).glob(f"{journal}*.bib"))[0]
    old = path.read_text(encoding="utf-8")
    number = old.count("\n@") + 1
    path.write_text(re.sub(r"(?m)^(\s*abstract\s*=\s*[{\"])", r"\1Corrected. ", old, count=1),
                    encoding="utf-8")
    _, report = db.init(top)
    equal((counts(report), report["blocks_changed"]),
          ({"read": number, "updated": 1, **({"unchanged": number - 1} if number > 1 else {})}, 1),
          "a corrected abstract: one row, one block")
    digest = lambda d: {tuple(r[:2]): r[3] for r in d["corpus_block"]}
    changed = {k for k, v in digest(db.dump()).items() if digest(after).get(k) != v}
    equal(len(changed), 1, "whose digest is another", changed)
    path.write_text(old, encoding="utf-8")
    db.init(top)
    equal(digest(db.dump()), digest(after), "taken back: the digest is as it was")


@with_server("one DOI in several places")
def _(server):
    a, b = entry("a", "10.5555/X", 2001, "From A"), entry("b", "https://doi.org/10.5555/x.", 2002,
                                                          "From B")
    both = tree({"Data/A/z.bib": a, "Data/B/a.bib": b,
                 "Data/B/c.bib": entry("c", "10.5555/x", 2003, "From C")})
    db, other = Database(server), Database(server)
    _, report = db.init(both)
    equal(counts(report), {"read": 3, "stored": 1, "duplicate": 2}, "is stored once")
    want = [["A", "2001"]]
    equal(db.ask("SELECT journal, year FROM paperinfo"), want, "as the first journal has it")
    places = [p for p in report["problems"] if "10.5555/x" in p["about"]]
    equal(sorted((p["file"], p["line"], p["lost"]) for p in places),
          [("Data/B/a.bib", 1, False), ("Data/B/c.bib", 1, False)], "the others are named")
    late = tree({"Data/B/c.bib": (both / "Data/B/c.bib").read_bytes()})
    other.init(late)
    equal(other.ask("SELECT journal, year FROM corpus_block"), [["B", "2003"]],
          "where only the last is there")
    shutil.copytree(both / "Data", late / "Data", dirs_exist_ok=True)
    _, report = other.init(late)
    equal(other.ask("SELECT journal, year FROM paperinfo"), want,
          "the first takes over when it comes")
    equal(other.ask("SELECT journal, year, papers, digest FROM corpus_block WHERE papers > 0"),
          db.ask("SELECT journal, year, papers, digest FROM corpus_block"), "and the blocks follow")
    equal(other.ask("SELECT * FROM contentlist_year_number"), [["A", '{"2001":1}']],
          "and the numbers")
    shutil.rmtree(late / "Data" / "A")
    (late / "Data/B/a.bib").write_text(b + "\n")
    _, report = other.init(late)
    equal(other.ask("SELECT journal, year FROM paperinfo"), [["B", "2002"]],
          "a file that is gone owns nothing any more")
    twice = tree({"Data/J/f.bib": a + "\n\n" + a.replace("From A", "Again")})
    db = Database(server)
    _, report = db.init(twice)
    equal(counts(report), {"read": 2, "stored": 1, "duplicate": 1}, "twice in one file")
    equal([(p["line"], p["about"]) for p in report["problems"] if p["file"] == "Data/J/f.bib"],
          [(8, "10.5555/x")], "the second is the duplicate, with its line")
    ok("From A" in list(db.papers().values())[0]["bib"], "the first is stored")


@with_server("what real exports contain")
def _(server):
    bad = "\n".join([entry("good1", "10.5555/1"), "@article{broken,", "  title = {never closed,",
                     entry("good2", "10.5555/2"),
                     entry("noyear", "10.5555/3", "in press"),
                     entry("nodoi", None, 2019, "Editorial", more="pages = {1--2}"),
                     entry("nodoi2", None, 2019, "Editorial", more="pages = {3--4}"),
                     '@string{jx = "Journal of X"}',
                     entry("macro", "10.5555/4", more="journal = jx # { B}")])
    chinese = entry("zh", "10.5555/zh", 2021, "深度学习在医学影像中的应用研究", "本文讨论了深度学习方法。")
    french = entry("fr", "10.5555/fr", 2021, "Étude générale", "Où l'été passe à Genève.")
    top = tree({
        "Data/MIX/bad.bib": bad, "Data/MIX/empty.bib": "", "Data/MIX/crlf.bib": b"\xef\xbb\xbf" +
        entry("bom", "10.5555/bom").replace("\n", "\r\n").encode(),
        "Data/中文期刊/gbk.bib": chinese.encode("gbk"), "Data/FR/latin1.bib": french.encode("latin-1"),
        "Data/FR/notes.txt": "not BibTeX",
        "Data/FR/utf16.bib": entry("u", "10.5555/u").encode("utf-16")})
    db = Database(server)
    said, report = db.init(top)
    papers = db.papers()
    equal(counts(report), {"read": 11, "stored": 9, "rejected": 2},
          "good ones are stored, bad ones counted", said)
    lost = [(p["file"], p["line"], p["about"]) for p in report["problems"] if p["lost"]]
    equal(lost, [("Data/MIX/bad.bib", 7, "broken"), ("Data/MIX/bad.bib", 15, "noyear")],
          "what was lost is named by file and line", report["problems"])
    ok("Data/MIX/bad.bib:7: " in said, "for people, too", said)
    made_up = [d for d in papers if d.startswith("made-up/")]
    equal(len(made_up), 2, "two editorials without a DOI are two papers")
    equal(papers["10.5555/zh"]["bib"], chinese, "GBK comes out as UTF-8")
    equal(papers["10.5555/zh"]["journal"], "中文期刊", "in its own folder")
    equal(papers["10.5555/fr"]["bib"], french, "so does Latin-1")
    equal(papers["10.5555/bom"]["bib"],
          entry("bom", "10.5555/bom").replace("\n", "\r\n"), "CRLF stays as it was")
    equal(papers["10.5555/4"]["strings"], '@string{jx = "Journal of X"}\n',
          "the @string an entry needs is with it")
    converted = {
        (p["file"], p["about"]) for p in report["problems"] if p["reason"] == "converted to UTF-8"}
    equal(converted, {("Data/中文期刊/gbk.bib", "from GB18030"),
                      ("Data/FR/latin1.bib", "from Windows-1252"),
                      ("Data/FR/utf16.bib", "from UTF-16LE")}, "and it is said")
    equal(sorted(db.ask("SELECT Name, Price FROM contentlist")),
          [["FR", "1"], ["MIX", "1"], ["中文期刊", "1"]], "journals without a row cost one point")


@with_server("tables and keys")
def _(server):
    info = "PaperAndTagInfo/InfoList."
    files = {
        info + "Paper.csv": b"\xef\xbb\xbf" +
        'Price,Name,FullName,DataRange,UpdateDate\r\n2,"A, J","Full ""A""",'
        '2016-2025,10/31/2025\r\n3,B,,,\r\n,C,,,\r\n'.encode(),
        info + "Tag.csv": "Tag,TagType\n医学,一级分类\n儿科学,二级分类\n".encode("gbk"),
        info + "PaperWithTag.csv": 'Name,Tag\n"A, J",医学\n"A, J",儿科学\nB,医学\nB,法学\nZ,医学\n'.encode(
            "gbk"),
        "APIKey/one.txt": "\ufeffsk-aaaaaaaaaaaa\r\n# a comment\r\n\r\nsk-bbbbbbbbbbbb\r\n",
        "APIKey/two.txt": "sk-bbbbbbbbbbbb\nbad key with spaces\nsk-cccccccccccc",
        "Data/A, J/x.bib": entry("a", "10.5555/1")}
    top, db = tree(files), Database(server)
    said, report = db.init(top)
    equal(db.ask("SELECT Name, FullName, DataRange, UpdateDate, Price FROM contentlist"),
          [["A, J", 'Full "A"', "2016-2025", "10/31/2025", "2"], ["B", "B", "NULL", "NULL", "3"]],
          "BOM, quotes, CRLF, columns in any order", said)
    equal(db.ask("SELECT Tag, TagType FROM info_tag"), [["儿科学", "二级分类"], ["医学", "一级分类"]], "GBK")
    equal(db.ask("SELECT Name, Tag FROM info_paper_with_tag ORDER BY id"),
          [["A, J", "医学"], ["A, J", "儿科学"], ["B", "医学"]], "pairs of known ones, in their order")
    equal(db.ask("SELECT api_key, api_name FROM api_list ORDER BY api_index"),
          [["sk-aaaaaaaaaaaa", "one"], ["sk-bbbbbbbbbbbb", "one"], ["sk-cccccccccccc", "two"]],
          "each key once")
    lost = sorted((p["file"], p["line"]) for p in report["problems"] if p["lost"])
    equal(lost, [("APIKey/two.txt", 2), (info + "Paper.csv", 4), (info + "PaperWithTag.csv", 5),
                 (info + "PaperWithTag.csv", 6)], "lines that are no good are named")
    ok("sk-" not in said + json.dumps(report) and "bad key" not in said + json.dumps(report),
       "nothing of the keys is shown", said)
    db.ask("UPDATE api_list SET rpm_limit = 7, is_active = 0")
    (top / (info + "Tag.csv")).write_text("Tag,TagType\n医学,学科\n", encoding="utf-8")
    (top / (info + "PaperWithTag.csv")).write_text("Name,Tag\nB,医学\n", encoding="utf-8")
    _, report = db.init(top)
    equal(db.ask("SELECT Tag, TagType FROM info_tag"), [["医学", "学科"]], "tags are synchronised")
    equal(db.ask("SELECT Name, Tag FROM info_paper_with_tag"), [["B", "医学"]], "and their journals")
    equal(db.ask("SELECT DISTINCT rpm_limit, is_active FROM api_list"), [["7", "0"]],
          "what an operator has set for a key stays")


@with_server("bad folders change nothing")
def _(server):
    db = Database(server)
    for what, top, text in [
        ("none", "/nonexistent", "/nonexistent"),
        ("an empty one", tree({"x": ""}), "it has neither Data/, PaperAndTagInfo/ nor APIKey/"),
        ("a table without its column",
         tree({"PaperAndTagInfo/InfoList.Paper.csv": "Name\nA\n",
               "APIKey/k.txt": "sk-aaaaaaaaaaaa"}), "Price"),
        ("a broken header", tree({"PaperAndTagInfo/InfoList.Tag.csv": '"Tag,TagType\n'}),
         "InfoList.Tag.csv")]:
        r = run("db", "init", "--data", str(top), env=db.env)
        ok(r.returncode == 1 and text in r.stderr, what, r.stderr, r.stdout)
    equal(db.ask("SHOW TABLES"), [], "not one table was made")
    top = tree({"Data/J/ok.bib": entry("a", "10.5555/1"), "Data/J/gone.bib": ""})
    (top / "Data/J/gone.bib").unlink()
    os.symlink("/nonexistent", top / "Data/J/gone.bib")
    r = run("db", "init", "--data", str(top), "--report", "/nonexistent/r.json", env=db.env)
    ok(r.returncode == 1 and "gone.bib" in r.stdout and "/nonexistent/r.json" in r.stderr,
       "a file that cannot be read, a report that cannot be written", r.stdout, r.stderr)
    equal(db.ask("SELECT DOI FROM paperinfo"), [["10.5555/1"]], "the others are loaded")


@with_server("cut off anywhere")
def _(server):
    seed = random.randrange(10 ** 9)
    note(f"seed {seed}")
    chance = random.Random(seed)
    papers, (top, whole) = 15000, (sample(15000, 5), Database(server))
    whole.init(top)
    want, partly = whole.dump(), 0
    for i in range(2):
        db = Database(server)
        for k in range(5):
            p = db.launch(top)
            time.sleep(chance.random() * 0.1)
            # The first kill may come before there are tables, the others are spread over the
            # papers.
            if k:
                wait_for(lambda: p.poll() is not None or db.stored() >= papers *
                         (k - chance.random()) / 5)
            p.kill()
            p.wait()
            tables = {row[0] for row in db.ask("SHOW TABLES")}
            if "corpus_block" in tables:
                stored, blocks = db.ask(
                    "SELECT (SELECT COUNT(*) FROM paperinfo), COALESCE((SELECT SUM(papers)"
                    " FROM corpus_block), 0)")[0]
                partly += 0 < int(stored) < papers
                if stored != blocks:
                    ok(False, "blocks and papers always agree", stored, blocks)
        db.init(top)
        same_tables(db.dump(), want,
                    f"killed five times (round {i}): in the end it is all the same")
    ok(partly > 0, "some of the kills hit the papers", partly)
    db = Database(server)
    p = db.launch(top)
    wait_for(lambda: db.ask("SHOW TABLES LIKE 'corpus_block'") and
             db.ask("SELECT COUNT(*) > 2000 FROM paperinfo") == [["1"]])
    os.kill(server.pid_of("mariadb"), signal.SIGKILL)
    ok(p.wait(60) != 0, "MariaDB killed meanwhile: it ends with an error")
    wait_for(server.ready, 60)
    db.init(top)
    same_tables(db.dump(), want, "and the next run completes it")


@with_server("when Redis is out of date")
def _(server):
    top, db = tree({"Data/A/1.bib": entry("a", "10.5555/a")}), Database(server)
    hint = "Redis is not up to date yet"
    ok(hint in db.init(top)[0], "papers are new: it is said")
    ok(hint not in db.init(top)[0], "nothing is: it is not")
    for title in "Another", "A title":  # of the same papers, so the catalog stays as it is
        (top / "Data/A/1.bib").write_text(entry("a", "10.5555/a", title=title))
        with db.locked("contentlist_year_number"):
            p = db.launch(top)
            ok(wait_for(lambda: title in str(db.papers())), "all is stored")
            p.kill()
            p.wait()
        ok(hint in db.init(top)[0], "by a load that was killed then: the next one says it")
        ok(hint not in db.init(top)[0], "once")
    db.ask("DELETE FROM contentlist_year_number")
    ok(hint in db.init(top)[0], "only the catalog changes: it is said")


@with_server("two at once")
def _(server):
    top, db, one = sample(4000, 9), Database(server), Database(server)
    one.init(top)
    both = [db.launch(top), db.launch(top)]
    statuses = [p.wait(120) for p in both]
    ok(0 in statuses, "at least one of them completes", statuses)
    db.init(top)
    same_tables(db.dump(), one.dump(), "and the tables are right")
    db = Database(server)
    first = db.launch(top)
    wait_for(lambda: db.ask("SHOW TABLES LIKE 'corpus_load'") and
             db.ask("SELECT COUNT(*) FROM corpus_load") == [["1"]])
    freeze(first.pid)
    second = run("db", "init", "--data", str(top), env=db.env, timeout=60)
    ok(second.returncode == 1 and "another \"millrace db init\" is loading papers" in second.stderr,
       "a second one is refused", second.stderr)
    equal(db.ask("SELECT COUNT(*) FROM corpus_load"), [["1"]], "and takes no number")
    # As if the connection of the lock alone were lost: the first one does not know.
    kill = re.search(r"Connection (\d+) of MySQL holds its lock: if .* (KILL \1) ends it",
                     second.stderr)
    ok(kill, "which connection holds the lock is said", second.stderr)
    db.ask(kill[2])
    db.init(top)
    equal(db.ask("SELECT load_no, ended_at IS NOT NULL FROM corpus_load"), [["1", "0"], ["2", "1"]],
          "the next one has the next number")
    os.kill(first.pid, signal.SIGCONT)
    ok(first.wait(60) == 1, "the first one finds that it was overtaken")
    equal(db.ask("SELECT ended_at IS NOT NULL FROM corpus_load"), [["0"], ["1"]], "it does not end")
    same_tables(db.dump(), one.dump(), "and has changed nothing after that")


@with_server("loads")
def _(server):
    one, two, three = (entry(f"a{i}", f"10.5555/a{i}", 2001) for i in (1, 2, 3))
    other = entry("b", "10.5555/b", 2005)
    top = tree({"Data/A/1.bib": one + "\n" + two, "Data/B/1.bib": other})
    file, db = top / "Data/A/1.bib", Database(server)
    db.init(top)
    equal(db.ask(LOADS), [["1", "1", "3", "0", "0"]], "the first load")
    equal(db.ask(BLOCKS), [["A", "2001", "2", "1", "1"], ["B", "2005", "1", "1", "1"]],
          "its blocks")
    equal(db.ask(CHANGES), [], "it notes no paper: it made the blocks")
    file.write_text(
        "\n".join([one.replace("A title", "Another"), two.replace("2001", "2002"), three]))
    _, report = db.init(top)
    equal(db.ask(LOADS)[1], ["2", "1", "1", "2", "0"], "added, changed, moved to another year")
    equal(db.ask(CHANGES), [["A", "2001", "2", "10.5555/a2", "withdrawn", "-1"],
                            ["A", "2001", "2", "10.5555/a3", "added", "1"]],
          "those that came and left are noted, but not in the block that is new")
    equal(db.ask(BLOCKS), [["A", "2001", "2", "2", "1"], ["A", "2002", "1", "2", "2"],
                           ["B", "2005", "1", "1", "1"]], "blocks have the load that changed them")
    equal((report["load"], report["papers_left"]), (2, 0), "the report has its number")
    noted, blocks = db.ask(CHANGES), db.ask(BLOCKS)
    file.write_text(file.read_text().replace("Another", "A third"))
    db.init(top)
    db.init(top)
    equal((db.ask(CHANGES), db.ask(BLOCKS)), (noted, blocks), "another text is no other paper")
    equal(db.ask(LOADS)[2:], [["3", "1", "0", "1", "0"], ["4", "1", "0", "0", "0"]],
          "every load has a number")


if REAL.is_dir():
    @with_server("real papers")
    def _(server):
        top = pathlib.Path(folder())
        texts = {p.stem: p.read_bytes().decode("utf-8") for p in sorted(REAL.glob("*.bib"))}
        for name in texts:
            (top / "Data" / name).mkdir(parents=True)
            shutil.copy(REAL / f"{name}.bib", top / "Data" / name)
        db = Database(server)
        _, report = db.init(top)
        heads = {n: len(re.findall(r"(?m)^@\w+\{", t)) for n, t in texts.items()}
        equal({j["name"]: j["stored"] for j in report["journals"]}, heads, "every entry is stored")
        want = {
            d.strip().lower().replace("\\", "").replace("https://doi.org/", "")
            for t in texts.values() for d in re.findall(r"(?im)^\s*doi\s*=\s*[{\"]+([^}\"]*)", t)}
        papers = db.papers()
        got = {d for d in papers if not d.startswith("made-up/")}
        equal((len(got), got ^ want), (len(want), set()), "under its own DOI")
        pieces = {n: re.split(r"(?m)^(?=@\w+\{)", t)[1:] for n, t in texts.items()}
        raw = {n: {p.rstrip() for p in ps} for n, ps in pieces.items()}
        wrong = [d for d, p in papers.items() if p["bib"] not in raw[p["journal"]]]
        equal((len(papers), wrong[:3]), (sum(heads.values()), []), "byte for byte")


if __name__ == "__main__":
    run_tests()
