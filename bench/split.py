"""Cuts posts into chunks of 500 tokens with an overlap of 100, beside @langchain/textsplitters, in
turns, three rounds:

split    plain text that was Markdown: megabytes of it per second
both     Markdown, cleaned and cut: megabytes of Markdown per second

A second is one of CPU time, with all threads that a program has: one core's.

The peer gets the same plain text, with the separators that it has for Markdown and the same
estimate of tokens. Posts are made of titles and abstracts of BibTeX files, with headings, lists,
tables, links and emphasis, 32 MB in English and 32 MB in Chinese. Prints a line of JSON.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
from statistics import median

from figures import figure

BENCH, DIR = os.environ["BENCH_SPLIT"], os.environ["PEERS_DIR"]
GOALS = {"split": ">= 400", "both": ""}
HAN = re.compile(r"[\u4e00-\u9fff]")


def field(entry, name):
    found = re.search(rf"\b{name}\s*=\s*[{{\"](.*?)[}}\"],?\s*\n", entry, re.S)
    return " ".join(found[1].split()) if found else ""


def papers(paths):
    """(title, abstract), English ones and Chinese ones."""
    found = {"english": [], "chinese": []}
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as f:
            for entry in re.split(r"\n@", f.read()):
                title, abstract = field(entry, "title"), field(entry, "abstract")
                if title and abstract:
                    chinese = len(HAN.findall(abstract)) > len(abstract) / 4
                    found["chinese" if chinese else "english"].append((title, abstract))
    return found


def paragraph(text, number):
    words = text.split(" ")
    if len(words) > 9:
        words[4] = f"**{words[4]}**"
        words[7] = f"[{words[7]}](https://example.org/{number} \"more\")"
    return " ".join(words)


def post(r, having):
    out = ["# " + r.choice(having)[0]]
    for i in range(r.randint(3, 12)):
        title, abstract = r.choice(having)
        out.append("## " + title)
        sentences, some = re.split(r"(?<=[.。] )|(?<=。)", abstract), r.randint(2, 5)
        out += [paragraph("".join(sentences[j:j + some]).strip(), j)
                for j in range(0, len(sentences), some)]
        if i % 3 == 1:
            out.append("\n".join(f"- *{r.choice(having)[0]}*, see `item_{k}`" for k in range(4)))
        if i % 4 == 2:
            out.append("| name | value |\n|---|---:|\n" +
                       "\n".join(f"| row {k} | {k * 7} |" for k in range(5)))
    return "\n\n".join(x for x in out if x) + "\n"


def make(path, having, size):
    r, n = random.Random(1), 0
    with open(path, "w", encoding="utf-8") as f:
        while n < size:
            text = post(r, having) + "\n\x1e\n"
            f.write(text)
            n += len(text.encode())


def run(*command):
    done = subprocess.run(command, cwd=DIR, check=True, stdout=subprocess.PIPE, text=True)
    speed, chunks = done.stdout.split()
    return float(speed), int(chunks)


def main():
    p = argparse.ArgumentParser(prog="bench/split", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+", metavar="FILE.bib")
    p.add_argument("--rounds", type=int, default=3)
    options = p.parse_args()
    found, line, having = {}, {"bench": "split"}, papers(options.files)
    texts = {language: f"{DIR}/{language}" for language, some in having.items() if some}
    for language, path in texts.items():
        make(path + ".md", having[language], 32e6)
        with open(path + ".txt", "wb") as f:
            subprocess.run([BENCH, "clean", path + ".md"], check=True, stdout=f)
    for _ in range(options.rounds):
        for language, path in texts.items():
            turns = {f"split/{language}/mb_s/millrace": (BENCH, "split", path + ".txt"),
                     f"split/{language}/mb_s/langchain": ("node", "split.mjs", path + ".txt"),
                     f"both/{language}/mb_s/millrace": (BENCH, "both", path + ".md")}
            for name, command in turns.items():
                speed, chunks = run(*command)
                found.setdefault(name, []).append(speed)
                line[name.replace("mb_s", "chunks")] = chunks
                print(f"{name}: {speed} MB/s, {chunks} chunks", file=sys.stderr, flush=True)
    for name, values in found.items():
        goal = GOALS[name.split("/")[0]] if name.endswith("millrace") else ""
        figure("split/" + name, "MB/s", values, goal)
        line[name] = round(median(values), 1)
    for language in texts:
        line[f"ratio_{language}"] = round(line[f"split/{language}/mb_s/millrace"] /
                                          line[f"split/{language}/mb_s/langchain"], 1)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
