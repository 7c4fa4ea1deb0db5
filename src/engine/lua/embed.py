#!/usr/bin/env python3
"""Turns the scripts into C constants: embed.py OUTPUT FILE.lua...

Fails when a .lua file below src/ was not passed: a script that meson.build forgets would be one that
nobody can run."""
import pathlib
import re
import sys


def literal(line):
    return '    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def constant(path):
    if not re.fullmatch(r"[a-z][a-z0-9_]*\.lua", path.name):
        sys.exit(f"{path.name}: expected is some_name.lua")
    text = path.read_bytes().decode("ascii").removesuffix("\n")
    lines = [literal(line) for line in text.split("\n")]
    return "\n".join([f"static const char {path.stem}_text[] =", *lines, "    ;",
                      f'const struct redis_script script_{path.stem} = {{"{path.stem}", '
                      f"{{{path.stem}_text, sizeof({path.stem}_text) - 1}}}};"])


def main():
    output, *names = sys.argv[1:]
    paths = sorted((pathlib.Path(n) for n in names), key=lambda p: p.name)
    src = pathlib.Path(__file__).resolve().parents[2]
    forgotten = {p.name for p in src.rglob("*.lua")} - {p.name for p in paths}
    if forgotten:
        sys.exit(f"not in meson.build: {', '.join(sorted(forgotten))}")
    parts = ['#include "engine/scripts.h"', *map(constant, paths)]
    pathlib.Path(output).write_text("\n\n".join(parts) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
