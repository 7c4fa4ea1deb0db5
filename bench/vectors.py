"""Measures the embedded index of vectors, beside faiss and hnswlib, in turns. Ten nearest of
vectors of length one, each on one thread. Parts:

small   100,000 vectors of 256 dimensions, beside faiss flat and SQ8, and hnswlib (M 16, 200 while
        it is built, and the smallest of several search lists that reaches our recall)
large   1,000,000 of 256, beside faiss SQ8
wide    1,000,000 of 768, beside faiss SQ8

Vectors are of real texts (FILE.bib, else made-up papers) and mixtures of them: see the head of
bench/vectors.c. Times are the CPU time of the thread, which what else runs on the machine changes
little; wall times are printed beside them. filter: one row in twenty. Prints a table, and a line of
JSON.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from statistics import median

from figures import figure

OURS, PEERS = os.path.abspath(os.environ["BENCH_VECTORS"]), os.environ["PEERS_DIR"]
PARTS = {"small": (100_000, 256), "large": (1_000_000, 256), "wide": (1_000_000, 768)}
ROUNDS_OF_QUERIES = {"small": 10, "large": 3, "wide": 2}
SHOWN = ("recall", "p50_ms", "p99_ms", "wall_p50_ms", "wall_p99_ms")
GOALS = {
    "small": {"search_recall": ">= 0.99", "filter_recall": ">= 0.98", "exact_recall": ">= 0.999",
              "search_p50_ms": ">= 6.667x faiss-flat, >= 0.667x hnswlib",
              "build_s": ">= 40x hnswlib",
              "add_1000_ms": ">= 50x hnswlib", "bytes": ">= 3.334x hnswlib", "open_ms": "<= 5",
              "seen_max_ms": "<= 50", "p99_to_p50": "<= 2"},
    "large": {"search_recall": ">= 0.99", "filter_recall": ">= 0.98", "exact_recall": ">= 0.999",
              "search_p50_ms": ">= 10x faiss-sq8", "open_ms": "<= 5", "p99_to_p50": "<= 2"},
    "wide": {"search_recall": ">= 0.99", "filter_recall": ">= 0.98", "search_p99_ms": "<= 15",
             "open_ms": "<= 5", "p99_to_p50": "<= 2"}}
UNITS = {"_ms": "ms", "_s": "s", "bytes": "B"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {program} {words}: {done.stderr[-2000:]}")
    return json.loads(done.stdout) if done.stdout else {}


def load():
    return os.getloadavg()[0]


def make_data(options, name, folder):
    rows, dimension = PARTS[name]
    if not os.path.exists(f"{folder}/base.f32"):
        say(f"{name}: making {rows} vectors of {dimension} dimensions")
        run(OURS, "make", folder, rows, dimension, *options.files)
    if not os.path.exists(f"{folder}/truth5-{rows}.bin"):
        run(OURS, "truth", folder, rows, dimension)


def measure(name, folder):
    """One round: {who: {what: value}}."""
    rows, dimension = PARTS[name]
    where, times = (folder, rows, dimension), ROUNDS_OF_QUERIES[name]
    ours = run(OURS, "build", *where)
    ours |= run(OURS, "search", *where, times)
    ours["p99_to_p50"] = round(ours["search_p99_ms"] / ours["search_p50_ms"], 3)
    found = {"millrace": ours}
    if name == "small":
        found["hnswlib"] = run(f"{PEERS}/hnsw", *where, times, ours["search_recall"])
        found["faiss-flat"] = run(f"{PEERS}/faiss", *where, times, "flat")
    found["faiss-sq8"] = run(f"{PEERS}/faiss", *where, max(1, times // 3), "sq8")
    ours |= run(OURS, "change", *where)
    return found


def unit_of(what):
    return next((u for end, u in UNITS.items() if what.endswith(end)), "")


def tell(name, rounds, loads):
    """rounds: {who: {what: [values]}}."""
    line = {"bench": "vectors", "part": name, "load": loads}
    whats = list(dict.fromkeys(w for found in rounds.values() for w in found))
    print(f"\n{name}: {PARTS[name][0]:,} x {PARTS[name][1]}, load average {loads}")
    print(f"{'':22}" + "".join(f"{who:>14}" for who in rounds))
    for what in whats:
        cells = [f"{median(found[what]):14.4g}" if what in found else f"{'':14}"
                 for found in rounds.values()]
        print(f"{what:22}" + "".join(cells))
        for who, found in rounds.items():
            if what in found:
                line[f"{what}/{who}"] = round(median(found[what]), 4)
                figure(f"vectors/{name}/{what}/{who}", unit_of(what), found[what],
                       GOALS[name].get(what, "") if who == "millrace" else "")
    print(json.dumps(line), flush=True)


def main():
    p = argparse.ArgumentParser(prog="bench/vectors", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS) + "; default: small")
    p.add_argument("--rounds", type=int, default=3, help="(default 3)")
    p.add_argument("--folder", help="where vectors are kept for the next time (10 GB)")
    p.add_argument("--files", nargs="+", default=[], metavar="FILE.bib")
    options = p.parse_args()
    unknown = [x for x in options.parts if x not in PARTS]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    with contextlib.ExitStack() as stack:
        place = options.folder or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-bench.", dir="/tmp"))
        if not options.files:
            subprocess.run(["build/millrace", "sample", "--papers", "8000", f"{place}/sample"],
                           check=True, stdout=subprocess.DEVNULL)
            options.files = [os.path.join(top, f) for top, _, files in os.walk(f"{place}/sample")
                             for f in files if f.endswith(".bib")]
        for name in options.parts or ["small"]:
            folder = f"{place}/{PARTS[name][0]}x{PARTS[name][1]}"
            os.makedirs(folder, exist_ok=True)
            make_data(options, name, folder)
            rounds, loads = {}, []
            for i in range(options.rounds):
                say(f"{name}, round {i + 1}")
                for who, found in measure(name, folder).items():
                    for what, value in found.items():
                        rounds.setdefault(who, {}).setdefault(what, []).append(value)
                loads.append(round(load(), 1))
            tell(name, rounds, loads)


if __name__ == "__main__":
    main()
