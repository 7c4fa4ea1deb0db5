#!/usr/bin/env python3
"""The made-up collection as a whole program: its files, and what it refuses. Prints TAP.
MILLRACE_BIN is the program."""
import csv
import hashlib
import os
import pathlib
import re
import resource
import subprocess
import tempfile

from harness import BIN, equal as same, finish, ok

PAPERS = 6000
FIELD = re.compile(r'^\s*(\w+)\s*=\s*(?:[{"]+(.*?)[}"]+|(\w+)),?$')


def run(*args, **more):
    return subprocess.run([BIN, "sample", *map(str, args)], capture_output=True, text=True,
                          timeout=120, **more)


def tree_hash(top):
    """Of names and contents."""
    h = hashlib.sha256()
    for path in sorted(p for p in top.rglob("*") if p.is_file()):
        h.update(str(path.relative_to(top)).encode() + b"\0" + path.read_bytes() + b"\0")
    return h.hexdigest()


def table(top, name):
    with open(top / "PaperAndTagInfo" / f"InfoList.{name}.csv", newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f, strict=True))


def balanced(text):
    """Braces outside of LaTeX's escaped ones."""
    text = re.sub(r"\\[{}]", "", text)
    return text.count("{") == text.count("}")


def entries(top):
    """(journal, year, entry as a dict) of every paper."""
    for path in sorted((top / "Data").rglob("*.bib")):
        year = path.stem.rsplit("-", 1)[1]
        for text in path.read_text(encoding="utf-8", errors="strict").split("\n\n"):
            if not text.strip():
                continue
            lines = text.split("\n")
            paper = {"key": re.fullmatch(r"@article\{([^,{}]+),", lines[0], re.I)[1],
                     "balanced": balanced(text) and lines[-1] == "}"}
            for line in lines[1:-1]:
                found = FIELD.match(line)
                paper[found[1].lower()] = found[2] if found[2] is not None else found[3]
            yield path.parent.name, int(year), paper


def test_tables(top):
    journals = {row["Name"]: row for row in table(top, "Paper")}
    tags = {row["Tag"]: row["TagType"] for row in table(top, "Tag")}
    links = [(row["Name"], row["Tag"]) for row in table(top, "PaperWithTag")]
    ok(len(journals) >= 30 and len(journals) == len(table(top, "Paper")),
       "30 journals or more, each once")
    same(list(table(top, "Paper")[0]), ["Name", "FullName", "DataRange", "UpdateDate", "Price"],
         "the columns of the catalog")
    ok(all(1 <= int(row["Price"]) <= 5 for row in journals.values()), "prices of 1 to 5 points")
    ok(all(re.fullmatch(r"20\d\d-20\d\d", row["DataRange"]) for row in journals.values()),
       "ranges of years")
    same(set(tags.values()), {"一级分类", "二级分类"}, "tags of two levels")
    ok(sum(kind == "一级分类" for kind in tags.values()) >= 6, "six disciplines or more")
    ok(all(name in journals for name, _ in links), "every journal that has a tag exists")
    ok(all(tag in tags for _, tag in links), "every tag that a journal has exists")
    same(len(links), len(set(links)), "no pair comes twice")
    for kind in ("一级分类", "二级分类"):
        same({name for name, tag in links if tags[tag] == kind}, set(journals),
             f"every journal has a {kind}")
    return journals


def test_papers(top, journals):
    papers = list(entries(top))
    same(len(papers), PAPERS, "as many papers as were asked for")
    ok(all(p["balanced"] for _, _, p in papers), "braces balance and every entry ends")
    ok(all(j in journals for j, _, _ in papers), "every folder is in the catalog")
    ok(all(p["journal"] == journals[j]["FullName"] for j, _, p in papers),
       "papers name their journal")
    ok(all(p["year"] == str(year) for _, year, p in papers), "papers are in the file of their year")
    spans = {j: tuple(map(int, row["DataRange"].split("-"))) for j, row in journals.items()}
    ok(all(spans[j][0] <= year <= spans[j][1] for j, year, _ in papers),
       "years are in the journal's range")
    ok(len({year for _, year, _ in papers}) >= 14, "about fifteen years")
    wanted = {"author", "title", "volume", "number", "pages", "month", "abstract"}
    ok(all(wanted <= set(p) for _, _, p in papers), "no field is missing")
    same(len({p["key"] for _, _, p in papers}), PAPERS, "keys are unique")
    dois = [p["doi"] for _, _, p in papers if "doi" in p]
    same(len(set(dois)), len(dois), "DOIs are unique")
    ok(all(doi.startswith("10.5555/") for doi in dois), "and have the prefix for tests")
    ok(PAPERS / 400 < PAPERS - len(dois) < PAPERS / 100,
       f"{PAPERS - len(dois)} papers have none: about 1 in 200")
    return [p for _, _, p in papers]


def test_texts(papers):
    is_chinese = lambda p: re.search("[\u4e00-\u9fff]", p["title"])
    chinese = [p for p in papers if is_chinese(p)]
    english = [p for p in papers if not is_chinese(p)]
    words = [len(p["abstract"].split()) for p in english]
    ok(min(words) >= 120 and max(words) <= 250, f"abstracts of {min(words)} to {max(words)} words")
    ok(len(chinese) > PAPERS / 50, f"{len(chinese)} papers in Chinese")
    ok(all(len(p["abstract"]) >= 150 for p in chinese), "with abstracts that are not short")
    ok(not any("@" in p["abstract"] + p["title"] for p in papers), "no slot was left open")
    ok(len({p["abstract"] for p in papers}) == PAPERS, "no abstract comes twice")
    ok(any(r'{\"u}' in p["author"] for p in papers), "some names have LaTeX accents")
    for asked in (("perovskite", "stability"), ("childhood obesity",), ("钙钛矿", "稳定性")):
        found = sum(all(w in p["abstract"] for w in asked) for p in papers)
        ok(0 < found < PAPERS / 20, f"{' '.join(asked)}: {found} papers")


def test_keys(top):
    keys = (top / "APIKey" / "sample.txt").read_text().split("\n")
    ok(len(keys) > 2 and keys[-1] == "" and
       all(re.fullmatch(r"sk-sample-[0-9a-f]{32}", k) for k in keys[:-1]), "keys, one per line")


def test_same_bytes(tmp, first):
    for name, args, equal in (("again", [], True), ("seed", ["--seed", 8], False)):
        r = run("--papers", PAPERS, "--seed", 7, *args, tmp / name)
        same(r.returncode, 0, f"{name}: made")
        part = "." if equal else "Data"
        same(tree_hash(tmp / name / part) == tree_hash(first / part), equal,
             "the same seed gives the same bytes" if equal else "another seed gives others")


def test_sizes(tmp):
    for papers in (1, 7, 999):
        top = tmp / f"size{papers}"
        run("--papers", papers, top)
        same(sum(1 for _ in entries(top)), papers, f"{papers} papers")


def test_refusals(tmp, first):
    before = tree_hash(first)
    r = run("--papers", PAPERS, "--seed", 7, first)
    ok(r.returncode == 0 and "nothing was replaced" in r.stdout,
       "the same sample again: said, not made")
    r = run("--papers", 50, first)
    ok(r.returncode == 1 and "--force" in r.stderr, "another one in its place is refused")
    same(tree_hash(first), before, "and nothing has changed")

    alien = tmp / "alien"
    alien.mkdir()
    (alien / "thesis.tex").write_text("mine")
    for args in ([], ["--force"]):
        r = run(*args, alien)
        ok(r.returncode == 1 and str(alien) in r.stderr,
           f"a directory of somebody else is refused {args}")
    same([p.name for p in alien.iterdir()], ["thesis.tex"], "and not touched")

    r = run("--papers", 50, "--seed", 7, "--force", first)
    same(r.returncode, 0, "--force makes a sample anew")
    run("--papers", 50, "--seed", 7, tmp / "fifty")
    same(tree_hash(first), tree_hash(tmp / "fifty"), "and leaves nothing of the old one")
    empty = tmp / "empty"
    empty.mkdir()
    same(run("--papers", 5, empty).returncode, 0, "an empty directory will do")


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


def test_errors(tmp):
    (tmp / "file").write_text("")
    for path in (tmp / "file", tmp / "file" / "below", tmp / "no" / "such"):
        r = run("--papers", 5, path)
        ok(r.returncode == 1 and f"{path}: " in r.stderr, r.stderr.strip()[-60:])
    r = run("--papers", 20000, tmp / "full", preexec_fn=limit_file_size)
    ok(r.returncode == 1 and re.search(r"\.bib: File too large", r.stderr),
       f"cannot write: {r.stderr.strip()[-60:]}")
    r = run("--papers", 20000, tmp / "full")
    ok(r.returncode == 1 and "unfinished" in r.stderr, "what was broken off is known for it")
    same(run("--papers", 200, "--force", tmp / "full").returncode, 0, "and can be made anew")
    for args in ([], ["a", "b"], ["--papers", "0", tmp / "x"], ["--papers", "x", tmp / "x"],
                 ["--paper", "5", tmp / "x"]):
        same(run(*args).returncode, 2, f"wrong command line: {' '.join(map(str, args))[:30]}")
    ok(not (tmp / "x").exists(), "a wrong command line makes nothing")
    r = run("--help")
    ok(r.returncode == 0 and "millrace sample --papers 1000000" in r.stdout, "--help has examples")


def main():
    with tempfile.TemporaryDirectory(prefix="millrace-sample-") as name:
        tmp = pathlib.Path(name)
        first = tmp / "first"
        r = run("--papers", PAPERS, "--seed", 7, first)
        same((r.returncode, r.stderr), (0, ""), "a sample is made")
        ok(f"{PAPERS} papers" in r.stdout, "and the report counts them")
        journals = test_tables(first)
        test_texts(test_papers(first, journals))
        test_keys(first)
        test_same_bytes(tmp, first)
        test_sizes(tmp)
        test_refusals(tmp, first)
        test_errors(tmp)
    finish()


if __name__ == "__main__":
    main()
