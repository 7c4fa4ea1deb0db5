"""Runs the benchmarks of the project, prints one table, and writes docs/performance.md and
docs/plots/ from it.

Figures are kept in docs/performance.json: parts that are named are measured anew, all others stay
as they were. What is compared is measured in turns, round 1 of all, round 2 of all, round 3 of all;
a figure is the median, with the least and the most beside it. The page's words are in
bench/performance.md.in, the goals in the benchmarks.
"""
import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time

import page
import plot

# What takes long and is measured once in a run of its script is run three times.
PARTS = {
    "http": {"full": ["bench/http"], "quick": ["bench/http", "1"],
             "about": "one Redis read over HTTP, beside nginx and Fastify"},
    "api": {"full": ["bench/api"], "quick": ["bench/api", "1"],
            "about": "reads of the API, beside nginx and Fastify"},
    "plan": {"full": ["bench/plan"], "quick": ["bench/plan", "1"],
             "about": "a day of a plan beside GET /api/me, and storing twelve weeks"},
    "bibtex": {"full": ["bench/bibtex"], "quick": ["bench/bibtex"],
               "about": "reading BibTeX, beside four other readers"},
    "corpus": {"full": ["bench/corpus", "300000"], "quick": ["bench/corpus", "50000"], "times": 3,
               "about": "loading papers and what they take in Redis, beside plain JSON"},
    "paper": {"full": ["bench/paper"], "quick": ["bench/paper", "3"], "times": 3,
              "about": "a paper in a worker, without network and stores"},
    "reply": {"full": ["bench/reply"], "quick": ["bench/reply", "201"], "times": 3,
              "about": "an AI's answer about a document, checked against its template"},
    "redis_charge": {"full": ["bench/redis_charge"], "quick": ["bench/redis_charge", "100000"],
                     "about": "our Redis client, beside redis-benchmark"},
    "ai_calls": {"full": ["bench/ai_calls"], "quick": ["bench/ai_calls", "10000", "1"], "times": 3,
                 "about": "10,000 AI calls in flight"},
    "calls": {"full": ["bench/calls"], "quick": ["bench/calls", "--rounds", "1"],
              "about": "AI calls over TLS, beside libcurl, node:http2 and undici"},
    "handshakes": {"full": ["bench/handshakes"], "quick": ["bench/handshakes", "500"], "times": 3,
                   "about": "TLS handshakes of a client, and how late its loop is"},
    "idle_tasks": {"full": ["bench/idle_tasks"], "quick": ["bench/idle_tasks"], "times": 3,
                   "about": "memory of 10,000 idle tasks"},
    "sim": {"full": ["bench/sim"], "quick": ["bench/sim", "1"], "about": "the simulated AI"},
    "results": {"full": ["bench/results"], "quick": ["bench/results"], "times": 3,
                "about": "files, archive, history, distillation"},
    "screen": {
        "full": ["bench/screen"], "about": "screening end to end",
        "quick": ["bench/screen", "--papers", "60000", "--rounds", "1", "--rate-minutes", "1",
                  "--pauses", "5"]},
    "peers": {
        "full": ["bench/screen_peers"],
        "about": "screening, beside BullMQ, pg-boss, Celery, RQ and bare loops",
        "quick": ["bench/screen_peers", "--rounds", "1", "--seconds", "3", "--papers", "90000"]},
    "jobs": {"full": ["bench/jobs"], "quick": ["bench/jobs", "--quick"],
             "about": "queues of jobs, beside BullMQ and pg-boss"},
    "pool": {"full": ["bench/pool"], "quick": ["bench/pool", "--rounds", "1", "--seconds", "2"],
             "about": "items handed out once each, beside three ways on Fastify"},
    "extract": {"full": ["bench/extract"], "quick": ["bench/extract", "--quick"],
                "about": "fields out of documents, beside BullMQ and pg-boss"},
    "embed": {"full": ["bench/embed"], "quick": ["bench/embed", "--quick"],
              "about": "posts and papers as vectors, beside BullMQ"},
    "split": {"full": ["bench/split"], "quick": ["bench/split", "--rounds", "1"],
              "about": "texts cut into chunks, beside @langchain/textsplitters"},
    "pdf": {"full": ["bench/pdf"], "quick": ["bench/pdf", "1"],
            "about": "the sandbox in which PDFs are read, beside bare pdftotext"},
    "vectors": {"full": ["bench/vectors", "small", "large", "wide"],
                "quick": ["bench/vectors", "--rounds", "1"],
                "about": "the embedded index of vectors, beside faiss and hnswlib"},
    "growth": {
        "full": ["bench/growth"], "quick": ["bench/growth", "--quick"],
        "about": "how cost grows; the plots"},
}
JSON, PAGE = "docs/performance.json", "docs/performance.md"
WORDS, PLOTS = "bench/performance.md.in", "docs/plots"


def say(text):
    print(text, file=sys.stderr, flush=True)


def machine():
    cpu = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo", encoding="utf-8").read())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    release = dict(
        line.split("=", 1)
        for line in open("/etc/os-release", encoding="utf-8").read().splitlines() if "=" in line)
    return {"cpu": cpu[1] if cpu else platform.machine(), "cores": os.cpu_count(),
            "memory_gb": round(memory), "system": release.get("PRETTY_NAME", "").strip('"'),
            "kernel": platform.release()}


def measure(name, quick):
    """The figures of one part, and whether all went well. Figures that came several times are one
    with all values."""
    part = PARTS[name]
    command = part["quick" if quick else "full"]
    found, good = {}, True
    times = 1 if quick else part.get("times", 1)
    for i in range(times):
        with tempfile.NamedTemporaryFile("r", suffix=".json", encoding="utf-8") as f:
            say(f"{name}{f', {i + 1} of {times}' if times > 1 else ''}: {' '.join(command)}")
            began = time.monotonic()
            child = subprocess.Popen(command, env={**os.environ, "BENCH_JSON": f.name},
                                     stdout=sys.stderr)
            try:
                good = child.wait() == 0 and good
            finally:
                if child.poll() is None:
                    child.terminate()
                    child.wait()
            say(f"{name}: {time.monotonic() - began:.0f} s"
                f"{'' if good else ', not all of it went well'}")
            for line in f.read().splitlines():
                figure = json.loads(line)
                found.setdefault(
                    figure["name"],
                    {**figure, "values": [], "part": name})["values"] += figure["values"]
    return found, good


def load():
    try:
        with open(JSON, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {"machine": {}, "measured": {}, "figures": []}


def save(kept, path):
    """A figure on a line: a change of one is a change of one line."""
    lines = ",\n".join("  " + json.dumps(f, ensure_ascii=False) for f in kept["figures"])
    head = json.dumps({k: v for k, v in kept.items() if k != "figures"}, ensure_ascii=False,
                      indent=1)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'{head[:-2]},\n "figures": [\n{lines}\n ]\n}}\n')


def merge(kept, part, found, good):
    """What failed to come keeps what it had."""
    old = [
        f for f in kept["figures"] if f["name"] not in found and not (good and f["part"] == part)]
    kept["figures"] = sorted(old + list(found.values()), key=lambda f:
                             (list(PARTS).index(f["part"]), f["name"]))
    kept["machine"] = machine()
    kept["measured"][part] = time.strftime("%Y-%m-%d")


def write_page(kept):
    with open(WORDS, encoding="utf-8") as f:
        text = page.expand(f.read(), kept)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(text)
    os.makedirs(PLOTS, exist_ok=True)
    for name, svg in plot.plots(kept["figures"]).items():
        with open(f"{PLOTS}/{name}.svg", "w", encoding="utf-8") as f:
            f.write(svg)


def main():
    parts = "\n".join(f"  {name:13}{part['about']}" for name, part in PARTS.items())
    p = argparse.ArgumentParser(prog="bench/run", description=__doc__, epilog="parts:\n" + parts,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", metavar="PART", help="default: all")
    p.add_argument("--quick", action="store_true",
                   help="a short pass: one round of everything; docs/ stays as it is")
    p.add_argument("--page", action="store_true",
                   help="measure nothing, write the page from the figures that are kept")
    options = p.parse_args()
    unknown = [x for x in options.parts if x not in PARTS]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = [] if options.page else options.parts or list(PARTS)
    kept = {"machine": {}, "measured": {}, "figures": []} if options.quick else load()
    failed = []
    for i, name in enumerate(names):
        say(f"[{i + 1}/{len(names)}] {PARTS[name]['about']}")
        found, good = measure(name, options.quick)
        merge(kept, name, found, good)
        failed += [] if good else [name]
        if not options.quick:
            save(kept, JSON)  # an interrupted run keeps what it has
    if not kept["figures"]:
        sys.exit(f"error: there are no figures in {JSON}; measure some first")
    print(page.terminal([f for f in kept["figures"] if not names or f["part"] in names]))
    if not options.quick:
        write_page(kept)
        say(f"{PAGE} is written")
    if failed:
        sys.exit(f"error: not all of it went well: {', '.join(failed)}")


if __name__ == "__main__":
    main()
