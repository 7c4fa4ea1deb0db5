"""Measures AI calls over TLS: the same calls to the same simulated AI at 200 ms, by millrace's HTTP
client, libcurl's multi interface, node:http2 (HTTP/2 alone) and undici (HTTP/1.1 alone), in turns.

h2_1000   1,000 calls in flight over HTTP/2
h2_10000  10,000
h1_1000   1,000 over HTTP/1.1, a connection each
h1_10000  10,000

Connections are opened and closed within the time: of 1,000 calls in flight each makes twenty, of
10,000 each makes four over HTTP/2 and two over HTTP/1.1.
"""
import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from figures import figure

DIR, CERT = os.environ["PEERS_DIR"], os.environ["CERT"]
BIN, CALLS = os.environ["MILLRACE_BIN"], os.environ["MILLRACE_CALLS"]
LATENCY_MS = 200
ROUND_S = 300
NODE = [f"{DIR}/node_modules/.bin/node", f"{DIR}/calls.mjs"]
SCENES = {"h2_1000": (1000, 20, True), "h2_10000": (10000, 4, True), "h1_1000": (1000, 20, False),
          "h1_10000": (10000, 2, False)}
# What is asked of millrace; the others have no goals.
GOALS = {("h2_10000", "rss_mb"): "<= 150"}


def command(who, url, in_flight, rounds):
    count, body = [str(in_flight), str(rounds)], f"{DIR}/body.json"
    if who == "millrace":
        return [CALLS, url, *count, f"{CERT}.crt"]
    start = [f"{DIR}/curl_multi"] if who == "curl" else [*NODE, who]
    return [*start, url, *count, f"{CERT}.crt", body]


@contextlib.contextmanager
def simulator(h2):
    """Yields the address of a simulated AI that speaks TLS."""
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as log:
        p = subprocess.Popen([BIN, "sim", "--listen", "127.0.0.1:0", "--latency-ms",
                              str(LATENCY_MS), "--tls-cert", f"{CERT}.crt", "--tls-key",
                              f"{CERT}.key", *([] if h2 else ["--http1"])],
                             stdout=log, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + 10
            while not (found := re.search(r"listens at (https://\S+?)/?\n", open(log.name).read())):
                if time.monotonic() > until or p.poll() is not None:
                    sys.exit(f"error: the simulator does not start: {open(log.name).read()}")
                time.sleep(0.05)
            yield found[1]
        finally:
            p.terminate()
            p.wait()


def measure(who, scene):
    in_flight, rounds, h2 = SCENES[scene]
    with simulator(h2) as url:
        done = subprocess.run(
            command(who, f"{url}/v1/chat/completions", in_flight, rounds), timeout=ROUND_S,
            stdout=subprocess.PIPE, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(f"error: {who} has ended with {done.returncode} and said nothing")
    got = json.loads(done.stdout)
    return {"cpu_us": got["cpu_us_per_call"], "per_s": got["answered"] / got["seconds"],
            "rss_mb": got["peak_rss_mb"], "failed": got["failed"]}


def main():
    p = argparse.ArgumentParser(prog="bench/calls", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("scenes", nargs="*", metavar="SCENE", help="default: all")
    p.add_argument("--rounds", type=int, default=3)
    options = p.parse_args()
    unknown = [s for s in options.scenes if s not in SCENES]
    if unknown:
        p.error("there is no " + ", ".join(unknown))
    units = {"cpu_us": "µs", "per_s": "/s", "rss_mb": "MB", "failed": ""}
    bad = []
    for scene in options.scenes or SCENES:
        everyone = ["millrace", "curl", "http2" if SCENES[scene][2] else "undici"]
        got = {who: [] for who in everyone}
        for i in range(options.rounds):
            for who in everyone:
                got[who].append(measure(who, scene))
                print(json.dumps({"bench": "calls", "scene": scene, "round": i + 1, "who": who,
                                  **{k: round(v, 1) for k, v in got[who][-1].items()}}), flush=True)
        for who, rounds in got.items():
            for name, unit in units.items():
                figure(f"calls/{scene}/{name}/{who}", unit, [r[name] for r in rounds],
                       GOALS.get((scene, name), "") if who == "millrace" else "")
        if any(r["failed"] for r in got["millrace"]):
            bad.append(scene)
    if bad:
        sys.exit(f"error: calls by millrace have failed: {', '.join(bad)}")


if __name__ == "__main__":
    main()
