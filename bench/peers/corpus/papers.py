"""pybtex and bibtexparser, as Debian has them.   papers.py PARSER read FILE…: prints "MB/s entries"
papers.py PARSER load FOLDER SOCKET: every .bib below FOLDER as plain JSON into Redis, a hash per
journal and year; prints "papers/s papers" """
import json
import os
import re
import sys
import time


def with_pybtex(text):
    from pybtex.database import parse_string
    found = parse_string(text, "bibtex").entries
    return [(e.fields.get("doi", k),
             {**dict(e.fields), "author": [str(p) for p in e.persons.get("author", [])]})
            for k, e in found.items()]


def with_bibtexparser(text):
    import bibtexparser
    from bibtexparser.bparser import BibTexParser
    found = bibtexparser.loads(text, BibTexParser(common_strings=True)).entries
    return [(e.get("doi", e["ID"]), e) for e in found]


def read(entries, files):
    texts = []
    for path in files:
        with open(path, encoding="utf-8") as f:
            texts.append(f.read())
    entries(texts[0][:texts[0].index("\n@", 1)])  # loads the modules, and is not counted
    began = time.monotonic()
    count = sum(len(entries(t)) for t in texts)
    print(f"{sum(len(t.encode()) for t in texts) / (time.monotonic() - began) / 1e6:.3f} {count}")


def load(entries, folder, path):
    import redis
    entries("@article{a, title = {b}}")  # loads the modules, and is not counted
    store, began, count = redis.Redis(unix_socket_path=path), time.monotonic(), 0
    for place, _, names in os.walk(folder):
        for name in (n for n in names if n.endswith(".bib")):
            with open(os.path.join(place, name), encoding="utf-8") as f:
                found = entries(f.read())
            if found:
                block = "meta:" + re.sub(r"-(\d+)$", r":\1", name.removesuffix(".bib"))
                store.hset(block,
                           mapping={doi: json.dumps(e, ensure_ascii=False) for doi, e in found})
            count += len(found)
    print(f"{count / (time.monotonic() - began):.1f} {count}")


PARSERS = {"pybtex": with_pybtex, "bibtexparser": with_bibtexparser}
if sys.argv[2] == "read":
    read(PARSERS[sys.argv[1]], sys.argv[3:])
else:
    load(PARSERS[sys.argv[1]], *sys.argv[3:])
