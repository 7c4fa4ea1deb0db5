"""docs/performance.md from bench/performance.md.in and the figures. What stands between {{rows}},
{{matrix}} or {{growth}} and {{end}} is a table of what to show; see there."""
import re
from statistics import median

QUEUES = ("bullmq", "pgboss", "celery", "rq")  # a job for each paper
WHO = {
    "millrace": "**millrace**", "bun": "a loop on Bun, no queue",
    "node": "a loop on Node, no queue", "node-h2": "a loop on Node over HTTP/2, no queue",
    "bullmq": "BullMQ", "bullmq-blocks": "BullMQ, 100 papers a job", "pgboss": "pg-boss",
    "celery": "Celery", "celery-blocks": "Celery, 100 papers a job", "rq": "RQ",
    "nginx": "nginx, static", "fastify": "Fastify + ioredis", "btparse": "libbtparse",
    "retorquere": "@retorquere/bibtex-parser", "pybtex": "pybtex", "bibtexparser": "bibtexparser",
    "curl": "libcurl, multi", "http2": "node:http2", "undici": "undici, HTTP/1.1",
    "redis-benchmark": "redis-benchmark -P 64", "node-script": "a script on Node",
    "python-script": "a script in Python", "json": "plain JSON",
    "seed": "Fastify: RPOP, rows marked one by one", "redis": "Fastify: RPOP alone",
    "locked": "Fastify: SKIP LOCKED", "bare": "bare, no sandbox",
     "langchain": "@langchain/textsplitters",
     "limits+seccomp": "limits and seccomp alone", "hnswlib": "hnswlib, M 16",
     "faiss-flat": "faiss flat", "faiss-sq8": "faiss SQ8"}
LESS_IS_BETTER = ("µs", "ms", "s", "MB", "B")


# --- figures ---

def grouped(figures):
    """"screen/zero/per_s" → {who: figure}, millrace first, the others as WHO has them."""
    found = {}
    for f in figures:
        what, _, who = f["name"].rpartition("/")
        found.setdefault(what, {})[who] = f
    order = list(WHO)
    place = lambda who: (order.index(who) if who in order else len(order), who)
    return {
        what: dict(sorted(g.items(), key=lambda item: place(item[0]))) for what, g in found.items()}


def middle(f):
    return median(f["values"])


def better(ours, theirs):
    """How many times as good ours is."""
    a, b = middle(ours), middle(theirs)
    if ours["unit"] in LESS_IS_BETTER:
        a, b = b, a
    return a / b if b else float("inf")


def best(group, names=None):
    """The one that is hardest to beat."""
    others = {w: f for w, f in group.items() if w != "millrace" and (names is None or w in names)}
    return min(others, key=lambda w: better(group["millrace"], others[w])) if others else None


def missed(group):
    """The goals that are not reached, and whether there are any at all. None: there is nothing to
    compare with."""
    ours, bad = group["millrace"], []
    goals = [g.strip() for g in ours["goal"].split(",") if g.strip()]
    for goal in goals:
        sign, number, times, whom = re.fullmatch(r"([<>]=) ([\d.]+)(x?) ?(\S*)", goal).groups()
        value = middle(ours)
        if times:
            names = {"": None, "queue": QUEUES}.get(whom, (whom,))
            rival = best(group, names)
            if rival is None:
                continue
            value = better(ours, group[rival])
        if value < float(number) if sign == ">=" else value > float(number):
            bad.append(goal)
    return bad, bool(goals)


# --- words ---

def number(v):
    """Three digits that count."""
    if v and abs(v) < 1000:
        text = f"{v:.3g}"
        return f"{v:.0f}" if "e" in text else text
    digits = len(str(int(abs(v)))) - 3
    return f"{round(v, -digits if digits > 0 else 0):,.0f}"


def with_unit(text, unit):
    return text + ("" if not unit else unit if unit == "/s" else " " + unit)


def cell(f):
    text, low, high = with_unit(number(middle(f)),
                                f["unit"]), number(min(f["values"])), number(max(f["values"]))
    return text + (f" ({low}–{high})" if low != high else "")


def goal_words(goal):
    words = []
    for g in (g.strip() for g in goal.split(",") if g.strip()):
        sign, value, times, whom = re.fullmatch(r"([<>]=) ([\d.]+)(x?) ?(\S*)", g).groups()
        sign = "≥" if sign == ">=" else "≤"
        value = f"{float(value):,g}"
        who = {"": "the best",
               "queue": "the best queue, a paper a job"}.get(whom, WHO.get(whom, whom))
        words.append(f"{sign} {value} × {who}" if times else f"{sign} {value}")
    return ", ".join(words)


def goal_cell(group):
    bad, any_goal = missed(group)
    text = goal_words(group["millrace"]["goal"])
    return text if not any_goal else f"**{text}, missed**" if bad else text


# --- tables ---

def lines_of(block):
    """The cells of a table in the words, without its outer bars."""
    return [[c.strip() for c in line.strip().strip("|").split("|")]
            for line in block.strip().splitlines() if line.strip()]


def table(rows):
    return "\n".join(
        "| " + " | ".join(r) + " |" for r in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def rows_table(block, groups):
    """| what | command | figure |: a row each, with all others beside millrace."""
    rows = [["what", "command", "millrace", "beside it", "ratio", "goal"]]
    for what, command, name in lines_of(block):
        group = groups.get(name)
        if not group or "millrace" not in group:
            rows.append([what, command, "not measured", "", "", ""])
            continue
        others = [w for w in group if w != "millrace"]
        rows.append([what, command,
                     cell(group["millrace"]),
                     "; ".join(f"{WHO.get(w, w)}: {cell(group[w])}" for w in others),
                     ", ".join(number(better(group["millrace"], group[w])) for w in others),
                     goal_cell(group)])
    return table(rows)


def matrix_table(block, groups):
    """| heading | figure |: a column each, a row for everybody, then the best of the others and the
    goal."""
    columns = [(heading, groups.get(name, {})) for heading, name in lines_of(block)]
    who = [w for w in WHO if any(w in g for _, g in columns)]
    rows = [["", *(h for h, _ in columns)]]
    rows += [[WHO[w], *(cell(g[w]) if w in g else "–" for _, g in columns)] for w in who]
    rated = lambda g, names: (number(better(g["millrace"], g[best(g, names)]))
                              if "millrace" in g and best(g, names) else "–")
    rows.append(["times the best queue, a paper a job", *(rated(g, QUEUES) for _, g in columns)])
    rows.append(["times the best of all", *(rated(g, None) for _, g in columns)])
    rows.append(["goal", *(goal_cell(g) if "millrace" in g else "" for _, g in columns)])
    return table(rows)


def growth_table(block, groups):
    """| what | figure |: a row each, a column for every size."""
    lines = [(what, groups.get(name, {})) for what, name in lines_of(block)]
    sizes = sorted({int(s) for _, g in lines for s in g})
    rows = [["", *(f"{s:,}" for s in sizes)]]
    rows += [[what, *(cell(g[str(s)]) if str(s) in g else "–" for s in sizes)] for what, g in lines]
    return table(rows)


TABLES = {"rows": rows_table, "matrix": matrix_table, "growth": growth_table}


def machine_words(kept):
    m = kept["machine"]
    if not m:
        return "Nothing has been measured yet."
    dates = sorted(set(kept["measured"].values()))
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (f"{m['cores']} cores ({m['cpu']}), {m['memory_gb']} GB, {m['system']}, "
            f"Linux {m['kernel']}; measured {when}")


def expand(words, kept):
    groups = grouped(kept["figures"])
    words = re.sub(r"<!--.*?-->\n", "", words, flags=re.S)
    text = re.sub(r"\{\{(rows|matrix|growth)\}\}\n(.*?)\{\{end\}\}", lambda m: TABLES[m[1]]
                  (m[2], groups), words, flags=re.S)
    text = text.replace("{{machine}}", machine_words(kept))
    value = lambda m: cell(groups[m[1]][m[2]]) if m[2] in groups.get(m[1], {}) else "(not measured)"
    return re.sub(r"\{\{([\w/]+)/([\w-]+)\}\}", value, text)


def terminal(figures):
    """One table for people who look at a terminal."""
    rows = [("figure", "who", "median", "least – most", "times the best", "goal")]
    for what, group in grouped(figures).items():
        for who, f in group.items():
            spread = f"{number(min(f['values']))} – {number(max(f['values']))}" if len(
                f["values"]) > 1 else ""
            ours = who == "millrace"
            rival = best(group) if ours else None
            goal = goal_words(
                f["goal"]) + (" MISSED" if ours and missed(group)[0] else "") if ours else ""
            rows.append((what, who, with_unit(number(middle(f)), f["unit"]), spread,
                         number(better(f, group[rival])) if rival else "", goal))
    widths = [max(len(r[i]) for r in rows) for i in range(6)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in rows)
