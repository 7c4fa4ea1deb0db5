#!/usr/bin/env python3
"""Turns the tables of text_table.h into C, sorted for bsearch: embed.py OUTPUT FILE.tsv...

A row is a line of columns between tabs, a line that begins with # a comment. U+0020 in a column
stands for that character."""
import pathlib
import re
import sys
import unicodedata


def rows(path, columns):
    """The rows by name, in the order of their bytes; missing columns are empty."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        row = [re.sub(r"^U\+([0-9A-F]{4})$", lambda m: chr(int(m[1], 16)), column)
               for column in line.split("\t")]
        if not row[0] or row[0] in found or len(row) > columns:
            sys.exit(f"{path.name}: no name, a name given twice, or too many columns: {line}")
        found[row[0]] = row + [""] * (columns - len(row))
    return sorted(found.values(), key=lambda row: row[0].encode())


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def name(text):
    return f"{{{literal(text)}, {len(text.encode())}}}"


def pairs(mark, letters):
    composed = [letter + unicodedata.normalize("NFC", letter + mark) for letter in letters]
    if any(len(pair) != 2 for pair in composed):
        sys.exit(f"Unicode lacks one of {letters} with U+{ord(mark):04X}")
    return "".join(composed)


ENTRIES = {
    "command": (3, lambda n, kind, out: f"{name(n)}, TEXT_{kind.upper()}, {literal(out)}"),
    "accent": (3, lambda n, mark, letters:
               f"{name(n)}, {literal(mark)}, {literal(pairs(mark, letters))}"),
    "entity": (2, lambda n, out: f"{name(n)}, {literal(out)}"),
    "tag": (2, lambda n, kind: f"{name(n)}, TAG_{kind.upper()}"),
}


def table(path):
    columns, entry = ENTRIES[path.stem]
    entries = [f"    {{{entry(*row)}}}," for row in rows(path, columns)]
    stem = f"text_{path.stem}"
    return "\n".join([f"const struct {stem} {stem}_table[] = {{", *entries, "};",
                      f"const size_t {stem}_count = {len(entries)};"])


def main():
    output, *names = sys.argv[1:]
    parts = ['#include "corpus/text_table.h"', *(table(pathlib.Path(n)) for n in names)]
    pathlib.Path(output).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
