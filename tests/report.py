#!/usr/bin/env python3
"""Adds up the results of ./test: report.py FOLDER with *.tap files and meson's *.json logs.

Every assertion counts. A program that crashed, hung or printed no plan counts as a failure of
its own, so nothing can pass by not running."""
import json
import pathlib
import re
import sys

ASSERTION = re.compile(r"^(not )?ok\b(?P<rest>.*)$")
PLAN = re.compile(r"^1\.\.(\d+)")
SAID_MAX, COLUMNS_MAX = 30, 300


def count(text):
    """Assertions that held, those that failed (as text, with what was said about them), and the
    plan or None."""
    passed, failed, plan = 0, [], None
    said = []  # of the assertion before, if it failed
    for line in text.splitlines():
        if found := ASSERTION.match(line):
            said = []
            if found[1]:
                failed.append((found["rest"].strip(), said))
            else:
                passed += 1
        elif found := PLAN.match(line):
            plan = int(found[1])
        elif line.startswith("#"):
            said.append(line)
    return passed, failed, plan


def programs(folder):
    """(name, output, whether the runner was content) of everything that ran."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".tap":
            yield path.stem, path.read_text(errors="replace"), True
        else:
            for line in path.read_text(errors="replace").splitlines():
                test = json.loads(line)
                yield test["name"], test.get("stdout", ""), test["result"] == "OK"


def print_end(lines):
    """The last lines: a log that was printed may be long, and its end says why."""
    if len(lines) > SAID_MAX:
        print(f"    ({len(lines) - SAID_MAX} lines before)")
    for line in lines[-SAID_MAX:]:
        print("   ", line[:COLUMNS_MAX])


def main():
    total_passed, failures = 0, []
    for name, output, content in programs(pathlib.Path(sys.argv[1])):
        passed, failed, plan = count(output)
        total_passed += passed
        failures += [(f"{name}: {text}", said) for text, said in failed]
        if plan is None or plan != passed + len(failed):
            failures.append((f"{name}: ended before its plan was done", output.splitlines()))
        elif not content and not failed:
            failures.append((f"{name}: failed outside its assertions (see the log)", []))
    if total_passed == 0:
        failures.append(("nothing was tested", []))
    for text, said in failures:
        print("failed:", text)
        print_end(said)
    print(f"{total_passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
