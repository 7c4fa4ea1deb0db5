"""Figures of a benchmark for bench/run: a line of JSON each, added to the file that BENCH_JSON
names.

A name has three parts or more, "screen/zero/per_s/millrace": what, and who did it. A goal is ">=
50000", "<= 40", or beside the others in the same figure: ">= 7x" (the best of them), ">= 7x queue"
(the best of bullmq, pgboss, celery, rq), ">= 2.5x fastify".
"""
import json
import os


def figure(name, unit, values, goal=""):
    path = os.environ.get("BENCH_JSON")
    if path:
        with open(path, "a", encoding="utf-8") as f:
            f.write(json.dumps({"name": name, "unit": unit, "values": list(values), "goal": goal},
                               ensure_ascii=False) + "\n")
