#!/usr/bin/env python3
"""Turns the scripts that Redis runs into C: scripts.py OUTPUT.c OUTPUT.h PRELUDE... -- FILE.lua...

A script declares what it takes in its head comment, a line each, in order:

    --   key NAME            a key
    --   keys NAME           any number of further keys
    --   arg NAME: what      an argument
    --   args NAME: what     any number of further arguments

and names them: KEYS.NAME and ARGV.NAME; FIRST.NAME is the index of the first one of keys or args.
A PRELUDE is what several scripts begin with: a script that has its name in capitals gets it.
GENERATION is the run id of the server, which the client sends along (wire/redis.h), PERIODS a
function. The caller names keys and arguments, too (engine/store/script.h):

    SCRIPT(t, redis, lock_keep, &reply, .lock = key, .token = token, .ms = ms)

Fails on a name that is not declared, or is not used, and on a .lua file that no meson.build
names."""
import pathlib
import re
import sys

DECLARED = re.compile(r"^--   (keys?|args?) ([a-z][a-z0-9_]*)(?::|$)")
USED = re.compile(r"\b(KEYS|ARGV|FIRST)\.([a-z][a-z0-9_]*)")


class Script:
    def __init__(self, path, preludes):
        self.path, self.name = path, path.stem
        if not re.fullmatch(r"[a-z][a-z0-9_]*\.lua", path.name):
            self.fail("expected is some_name.lua")
        self.source = path.read_bytes().decode("ascii").removesuffix("\n").split("\n")
        self.declare()
        body = [self.number(line) for line in self.source if not line.startswith("--")]
        for kind, name in self.names:
            if name not in self.used and kind in ("key", "arg"):
                self.fail(f"{name} is declared, and not used")
        text = "\n".join(body)
        self.generation = "GENERATION" in text
        self.text = sum((lines for name, lines in preludes.items() if name in text), []) + body

    def fail(self, why):
        sys.exit(f"{self.path}: {why}")

    def declare(self):
        """Keys, then further keys, then arguments, then further arguments."""
        order = ["key", "keys", "arg", "args"]
        found = [m for m in map(DECLARED.match, self.source) if m]
        self.names = [(m[1], m[2]) for m in found]
        kinds = [kind for kind, _ in self.names]
        if kinds != sorted(kinds,
                           key=order.index) or kinds.count("keys") > 1 or kinds.count("args") > 1:
            self.fail("declare keys before arguments, and at most one list of each, last")
        if len({name for _, name in self.names}) != len(self.names) or not kinds:
            self.fail("declare each key and argument once")
        if kinds[0] not in ("key", "keys"):
            self.fail("a script has a key: it says where the script runs")
        self.used = set()

    def of(self, *kinds):
        return [name for kind, name in self.names if kind in kinds]

    def number(self, line):
        def index(match):
            where, name = match[1], match[2]
            self.used.add(name)
            kinds = {"KEYS": ("key",), "ARGV": ("arg",), "FIRST": ("keys", "args")}[where]
            if name not in self.of(*kinds):
                self.fail(f"{match[0]} is not declared")
            if where == "FIRST":
                return str(len(self.of("key" if name in self.of("keys") else "arg")) + 1)
            return f"{where}[{self.of(*kinds).index(name) + 1}]"
        return USED.sub(index, line)

    def constant(self):
        lines = ['    "' + l.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for l in self.text]
        run_id = "true" if self.generation else "false"
        redis = f'{{"{self.name}", {{{self.name}_text, sizeof({self.name}_text) - 1}}, {run_id}}}'
        further = ["true" if self.of(kind) else "false" for kind in ("keys", "args")]
        value = f"{{{redis}, {len(self.of('key'))}, {len(self.of('arg'))}, {', '.join(further)}}}"
        return "\n".join([f"static const char {self.name}_text[] =", *lines, "    ;",
                          f"const struct script script_{self.name} = {value};"])

    def declaration(self):
        members = [f"    struct str {name};" for name in self.of("key") + self.of("arg")]
        members += [f"    struct script_list {name};" for name in self.of("keys") + self.of("args")]
        return "\n".join([f"struct script_{self.name}_call {{", *members, "};",
                          f"extern const struct script script_{self.name};"])


def prelude(path):
    lines = path.read_text(encoding="ascii").removesuffix("\n").split("\n")
    return [line for line in lines if not line.startswith("--")]


def main():
    c_file, h_file, *files = sys.argv[1:]
    end = files.index("--")
    begins = [pathlib.Path(name) for name in files[:end]]
    preludes = {path.stem.upper(): prelude(path) for path in begins}
    scripts = sorted((Script(pathlib.Path(n), preludes) for n in files[end + 1:]),
                     key=lambda s: s.name)
    root = pathlib.Path(__file__).resolve().parents[2]
    forgotten = {p.name for p in root.rglob("*.lua")} - {s.path.name for s in scripts} - {
        path.name for path in begins}
    if forgotten:
        sys.exit(f"not in a meson.build: {', '.join(sorted(forgotten))}")
    every = "".join(f"&script_{s.name}, " for s in scripts)
    parts = ['#include "engine/store/scripts.h"', *(s.constant() for s in scripts),
             f"const struct script *const scripts_all[] = {{{every}NULL}};"]
    pathlib.Path(c_file).write_text("\n\n".join(parts) + "\n", encoding="ascii")
    parts = ["/* scripts.h -- what each script takes, by name."
             " Generated by scripts.py from the .lua files. */\n"
             "#ifndef ENGINE_STORE_SCRIPTS_H\n#define ENGINE_STORE_SCRIPTS_H\n\n"
             '#include "engine/store/script.h"', *(s.declaration() for s in scripts),
             "extern const struct script *const scripts_all[]; /* up to NULL */", "#endif"]
    pathlib.Path(h_file).write_text("\n\n".join(parts) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
