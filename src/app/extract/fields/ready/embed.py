#!/usr/bin/env python3
"""Turns the ready templates into a C table: embed.py OUTPUT FILE.json...

The name of a file is the id of its template. Fails when a file of the folder was not passed: a
template that meson.build forgets would not be there."""
import json
import pathlib
import sys


def literal(text):
    """A struct str, with the text in one line of C for each 80 bytes of it, or so."""
    pieces = [text[i:i + 80] for i in range(0, len(text), 80)]
    quoted = [p.replace("\\", "\\\\").replace('"', '\\"') for p in pieces]
    lines = [f'            "{q}"' for q in quoted]
    return "{\n" + "\n".join(lines) + f",\n            {len(text.encode())}}}"


def side(path, language, given):
    if set(given) != {"name", "fields"}:
        sys.exit(f"{path.name}: {language} must have a name and fields")
    fields = json.dumps(given["fields"], ensure_ascii=False, separators=(",", ":"))
    return f"        .{language} = {{{literal(given['name'])}, {literal(fields)}}},"


def entry(path):
    given = json.loads(path.read_text(encoding="utf-8"))
    if set(given) != {"en", "zh"}:
        sys.exit(f"{path.name}: expected are the members en and zh")
    if len(given["en"]["fields"]) != len(given["zh"]["fields"]):
        sys.exit(f"{path.name}: en and zh differ in the number of fields")
    return "\n".join(["    {", f"        .id = {literal(path.stem)},",
                      *(side(path, language, given[language]) for language in ("en", "zh")),
                      "    },"])


def main():
    output, *names = sys.argv[1:]
    paths = [pathlib.Path(n) for n in names]
    forgotten = {p.name for p in paths[0].parent.glob("*.json")} - {p.name for p in paths}
    if forgotten:
        sys.exit(f"not in meson.build: {', '.join(sorted(forgotten))}")
    table = ['#include "app/extract/fields/template.h"', "",
             "const struct extract_ready extract_ready_table[] = {", *map(entry, paths), "};",
             f"const size_t extract_ready_count = {len(paths)};", ""]
    pathlib.Path(output).write_text("\n".join(table), encoding="utf-8")


if __name__ == "__main__":
    main()
