#!/usr/bin/env python3
"""Turns the migrations into a C table: embed.py OUTPUT FILE.sql...

Fails when a number is missing or taken twice, or when a file of the folder was not passed: a
migration that meson.build forgets would be one that nobody applies."""
import hashlib
import pathlib
import re
import sys


def literal(line):
    return '    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def entry(number, path):
    found = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", path.name)
    if not found or int(found[1]) != number:
        sys.exit(f"{path.name}: expected is {number:04}_some_name.sql")
    text = path.read_bytes()
    lines = [literal(line) for line in text.decode("ascii").removesuffix("\n").split("\n")]
    checksum = hashlib.sha256(text).hexdigest()
    return "\n".join([f'    {{{number}, "{found[2]}", "{checksum}",', *lines, "    },"])


def main():
    output, *names = sys.argv[1:]
    paths = sorted((pathlib.Path(n) for n in names), key=lambda p: p.name)
    forgotten = {p.name for p in paths[0].parent.glob("*.sql")} - {p.name for p in paths}
    if forgotten:
        sys.exit(f"not in meson.build: {', '.join(sorted(forgotten))}")
    entries = [entry(number, path) for number, path in enumerate(paths, 1)]
    table = ['#include "engine/setup/schema_migrations.h"', "",
             "const struct schema_migration schema_migrations[] = {", *entries, "};",
             f"const size_t schema_migration_count = {len(entries)};", ""]
    pathlib.Path(output).write_text("\n".join(table), encoding="ascii")


if __name__ == "__main__":
    main()
