#!/usr/bin/env python3
"""Turns the words of the sample into C tables: words.py OUTPUT FILE...

A .txt file has [headings] and lists below them: an item per line or between bars ( | ), where an
indented line continues the one before it and # begins a comment. A .tsv file has a row per journal,
with the names of the columns in the first. What becomes of a heading is decided by its file."""
import csv
import pathlib
import sys

TOPIC_LISTS = ["subjects", "factors", "outcomes"]
SENTENCE_LISTS = ["titles", "openings", "aims", "methods", "results", "endings"]


def sections(path):
    """The heading's words and the items below it, one after the other."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            found.append((line.strip("[]").split(), []))
        elif line[0] == " ":
            found[-1][1][-1] += " " + line.strip()
        else:
            found[-1][1].extend(line.split(" | "))
    return found


def text(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


def words(items):
    return "SAMPLE_LIST(" + ", ".join(map(text, items)) + ")"


def read_fields(path):
    fields = {}
    for heading, items in sections(path):
        if heading[0] == "field":
            name, language, tag = heading[1:]
            target = fields[name] = {"language": language, "tag": tag, "topics": {}}
        elif heading[0] == "topic":
            target = fields[name]["topics"][heading[1]] = {}
        else:
            target[heading[0]] = items
    return fields


def write_field(name, f):
    yield f"static const struct sample_topic topics_{name}[] = {{"
    for tag, lists in f["topics"].items():
        yield f"{{{text(tag)}, {', '.join(words(lists[k]) for k in TOPIC_LISTS)}}},"
    yield "};"
    yield (f"static const struct sample_field field_{name} = {{{text(f['tag'])}, "
           f"SAMPLE_{f['language'].upper()}, topics_{name}, {len(f['topics'])}, "
           f"{words(f['methods'])}, {words(f['materials'])}}};")


def write_journals(path, fields):
    yield "const struct sample_journal sample_journals[] = {"
    with path.open(encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))
    for r in rows:
        tags = list(fields[r["field"]]["topics"])
        topics = sum(1 << tags.index(tag) for tag in r["topics"].split(","))
        yield (f"{{{text(r['name'])}, {text(r['full_name'])}, {text(r['code'])}, "
               f"&field_{r['field']}, {topics}, {r['price']}, {r['weight']}, {r['first_year']}}},")
    yield "};"
    yield f"const int sample_journal_count = {len(rows)};"


def write_names(path):
    for heading, items in sections(path):
        yield f"const char *const sample_{heading[0]}[] = {{{', '.join(map(text, items))}, NULL}};"


def write_sentences(path):
    lists = {tuple(heading): words(items) for heading, items in sections(path)}
    for language in dict.fromkeys(heading[0] for heading in lists):
        parts = ", ".join(lists[language, kind] for kind in SENTENCE_LISTS)
        yield f"const struct sample_sentences sample_{language} = {{{parts}}};"


def main():
    output, *names = sys.argv[1:]
    paths = {pathlib.Path(n).name: pathlib.Path(n) for n in names}
    fields = read_fields(paths["fields.txt"])
    parts = ['#include "tool/sample/sample_words.h"']
    for name, f in fields.items():
        parts += write_field(name, f)
    parts += write_journals(paths["journals.tsv"], fields)
    parts += write_names(paths["names.txt"])
    parts += write_sentences(paths["sentences.txt"])
    pathlib.Path(output).write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
