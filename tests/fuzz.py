#!/usr/bin/env python3
"""Runs every fuzz target of a build, one per core at a time: fuzz.py BUILD SECONDS. Prints TAP.

Inputs that once broke something are kept under tests/corpus/<target>/ and are always run first.
New finds are left in the build folder, with the command that repeats them."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(target, build, seconds):
    name = target.name.removesuffix("_fuzz")
    kept = ROOT / "tests" / "corpus" / name
    grown = build / "fuzz-corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    folders = [str(grown)] + ([str(kept)] if kept.is_dir() else [])
    command = [str(target), f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
               "-max_len=16384", f"-artifact_prefix={grown}-", "-print_final_stats=1", *folders]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=seconds * 4 + 120)
    runs = [line.split(":")[-1].strip() for line in done.stdout.splitlines()
            if line.startswith("stat::number_of_executed_units")]
    return done.returncode == 0, runs[0] if runs else "no", done.stdout


def main():
    build, seconds = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    targets = sorted(build.glob("*_fuzz"))
    sources = list((ROOT / "src").rglob("*_fuzz.c"))
    number = 0
    # They wait for their processes.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda target: run(target, build, seconds), targets)
    for target, (held, runs, output) in zip(targets, results):
        number += 1
        print(f"{'' if held else 'not '}ok {number} - {target.name}: {runs} inputs", flush=True)
        if not held:
            print("# " + "\n# ".join(output.splitlines()[-40:]))
    number += 1
    held = len(targets) == len(sources) > 0
    print(
        f"{'' if held else 'not '}ok {number} - all {len(sources)} fuzz targets were built and run")
    print(f"1..{number}")


if __name__ == "__main__":
    main()
