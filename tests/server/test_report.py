"""What the end of ./test counts, and which programs it runs a second time."""
import json
import os
import subprocess
import sys

from harness import equal, folder, ok, run_tests, test

REPORT = os.path.join(os.path.dirname(__file__), "..", "report.py")
GOOD, BAD = "ok 1 - a\nok 2 - b\n1..2\n", "ok 1 - a\nnot ok 2 - b\n# too late\n1..2\n"


def program(name, output, result="OK", code=0, errors=""):
    return {"name": f"millrace:server / {name}", "stdout": output, "stderr": errors,
            "result": result, "returncode": code}


def bad(name, output=BAD, **more):
    return program(name, output, result="FAIL", **more)


def place(data, first, again=()):
    for path, programs in ((data, first), (f"{data}/again", again)):
        os.makedirs(path, exist_ok=True)
        with open(f"{path}/server.json", "w") as f:
            f.writelines(json.dumps(found) + "\n" for found in programs)
    return data


def report(*args):
    done = subprocess.run([sys.executable, REPORT, *args], stdout=subprocess.PIPE, text=True,
                          timeout=30)
    lines = done.stdout.splitlines()
    return done.returncode, lines[-1] if lines else "", done.stdout


def asked_again(*programs):
    return report("--again", place(folder(), programs))[1].split()


@test("a second run")
def _():
    equal(asked_again(program("a", GOOD), bad("b")), ["b"], "what failed runs again")
    equal(asked_again(program("a", GOOD)), [], "what passed does not")
    equal(asked_again(program("a", "ok 1 - a\n", result="TIMEOUT", code=-15)), ["a"],
          "what was too slow runs again")
    equal(asked_again(bad("a", code=-6)), [], "what crashed does not")
    equal(asked_again(bad("a", errors="ERROR: AddressSanitizer: heap")), [],
          "nor what a sanitizer complained of")
    equal(asked_again(bad("a", BAD + "# x.c:1: y: check failed: z\n")), [],
          "nor what a server's check() stopped")
    equal(asked_again(bad("a", code=-6), bad("b")), [], "nor anything beside such a program")
    equal(asked_again(*[bad(f"p{i}") for i in range(4)]), ["p0", "p1", "p2", "p3"],
          "four run again")
    equal(asked_again(*[bad(f"p{i}") for i in range(5)]), [], "five do not")
    data = place(folder(), [program("a", GOOD)])
    for name, text in (("tidy", BAD), ("fuzz", BAD), ("smoke", BAD)):
        with open(f"{data}/{name}.tap", "w") as f:
            f.write(text)
    equal(report("--again", data)[1], "smoke", "of other suites, Chromium alone")


@test("the sum")
def _():
    status, line, _ = report(place(folder(), [program("a", GOOD), program("b", GOOD)]))
    equal((status, line), (0, "4 passed, 0 failed"), "all assertions are counted")
    status, line, _ = report(place(folder(), [program("a", GOOD), bad("b")]))
    equal((status, line), (1, "3 passed, 1 failed"), "one that failed fails all")
    status, line, text = report(place(folder(), [program("a", GOOD), bad("b")],
                                      [program("b", GOOD)]))
    equal((status, line), (0, "4 passed, 0 failed"), "a second run counts for the first")
    ok("unsteady, passed by itself: millrace:server / b: 2 - b" in text and "too late" in text,
       "and what failed first is told", text)
    status, line, _ = report(place(folder(), [program("a", GOOD), bad("b")], [bad("b")]))
    equal((status, line), (1, "3 passed, 1 failed"), "what fails twice has failed")
    status, line, _ = report(place(folder(), [program("a", GOOD), bad("b")],
                                   [program("b", "ok 1 - a\n")]))
    equal((status, line), (1, "3 passed, 1 failed"), "what ends early the second time has failed")
    status, line, _ = report(place(folder(), [program("a", "ok 1 - a\n")]))
    equal((status, line), (1, "1 passed, 1 failed"), "a program without a plan has failed")
    status, line, _ = report(place(folder(), [program("a", GOOD, result="ERROR")]))
    equal((status, line), (1, "2 passed, 1 failed"), "so has one that its runner calls so")
    status, line, _ = report(place(folder(), []))
    equal((status, line), (1, "0 passed, 1 failed"), "nothing tested is a failure")


run_tests()
