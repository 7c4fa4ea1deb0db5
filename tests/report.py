#!/usr/bin/env python3
"""Adds up the results of ./test: report.py FOLDER with *.tap files and meson's *.json logs.

Every assertion counts. A program that crashed, hung or printed no plan counts as a failure of
its own, so nothing can pass by not running.

Suites run several programs at a time, and some check how soon something happens. So a few programs
that failed may be run again, each by itself: `report.py --again FOLDER` names them, and their
second results are in FOLDER/again. A program that passes then counts as passed, and is printed as
unsteady with what it said first. What time does not explain has no second run: a sanitizer's
report, a failed check(), a crash, more than a few programs."""
import json
import pathlib
import re
import sys

ASSERTION = re.compile(r"^(not )?ok\b(?P<rest>.*)$")
PLAN = re.compile(r"^1\.\.(\d+)")
SAID_MAX, COLUMNS_MAX = 30, 300
SUITES_AGAIN, AGAIN_MAX = ("unit.json", "server.json", "smoke.tap"), 4
CRASHES = ("Sanitizer", "runtime error:", "check failed:", "Segmentation fault")


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


def results(path):
    """(name, output, whether the runner was content, whether it crashed) of every program."""
    text = path.read_text(errors="replace")
    if path.suffix == ".tap":
        yield path.stem, text, True, shows_crash(text)
        return
    for line in text.splitlines():
        test = json.loads(line)
        result, output = test["result"], test.get("stdout", "")
        crashed = result != "TIMEOUT" and test.get("returncode", 0) < 0
        crashed = crashed or shows_crash(output + test.get("stderr", ""))
        yield test["name"], output, result == "OK", crashed


def shows_crash(text):
    return any(trace in text for trace in CRASHES)


def programs(folder):
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        yield from results(path)


def print_end(lines):
    """The last lines: a log that was printed may be long, and its end says why."""
    if len(lines) > SAID_MAX:
        print(f"    ({len(lines) - SAID_MAX} lines before)")
    for line in lines[-SAID_MAX:]:
        print("   ", line[:COLUMNS_MAX])


def judge(name, output, content):
    """How many assertions held, and the failures: (text, what was said about it)."""
    passed, failed, plan = count(output)
    failures = [(f"{name}: {text}", said) for text, said in failed]
    if plan is None or plan != passed + len(failed):
        failures.append((f"{name}: ended before its plan was done", output.splitlines()))
    elif not content and not failed:
        failures.append((f"{name}: failed outside its assertions (see the log)", []))
    return passed, failures


def run_again(folder):
    """The programs, as `meson test` knows them, that are run a second time."""
    names = []
    for path in [folder / name for name in SUITES_AGAIN if (folder / name).exists()]:
        for name, output, content, crashed in results(path):
            if judge(name, output, content)[1]:
                if crashed:
                    return []
                names.append(name.split(" / ")[-1])
    return names if len(names) <= AGAIN_MAX else []


def main(folder):
    again = {}
    if (folder / "again").exists():
        again = {name: judge(name, *rest) for name, *rest, _ in programs(folder / "again")}
    total_passed, failures, unsteady = 0, [], []
    for name, output, content, _ in programs(folder):
        passed, failed = judge(name, output, content)
        if failed and name in again and not again[name][1]:
            unsteady += failed
            passed, failed = again[name]
        total_passed += passed
        failures += failed
    if total_passed == 0:
        failures.append(("nothing was tested", []))
    for kind, found in (("unsteady, passed by itself", unsteady), ("failed", failures)):
        for text, said in found:
            print(f"{kind}:", text)
            print_end(said)
    print(f"{total_passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1] == "--again":
        print(*run_again(pathlib.Path(sys.argv[2])))
        sys.exit(0)
    sys.exit(main(pathlib.Path(sys.argv[1])))
