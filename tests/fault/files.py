"""Files that users download, whatever goes on around them; and what is wrong with one."""
import base64
import csv
import io
import json
import re
import time
from dataclasses import dataclass

from harness import sql

KINDS, SCOPES = ("csv", "bib", "ris"), ("relevant", "all")
FILE_S = 300  # so long is one that is READY held
VERDICTS = {"relevant": True, "not relevant": False, "failed": None, "not judged": None}


@dataclass
class File:
    uid: int
    qid: str
    kind: str
    scope: str
    sure: bool  # the run was archived when it was asked for, and has not gone on since
    task: str = None  # None: it came with the answer
    losses: int = 0  # of Redis, when it was asked for
    asked: float = 0
    state: str = "PENDING"  # READY, FAILED, GONE in the end
    body: bytes = None

    @property
    def ended(self):
        return self.state in ("FAILED", "GONE") or self.body is not None

    def __str__(self):
        return (f"{self.kind} of {self.scope} of run {self.qid} of user {self.uid}, "
                f"{self.task or 'at once'}")


class Downloads:
    """Those of a person."""

    def __init__(self, person):
        self.person, self.world = person, person.world
        self.files = []

    def ask(self, qid, kind, scope, sure):
        f = File(self.person.uid, qid, kind, scope, sure, losses=self.world.redis_losses,
                 asked=time.monotonic())
        r = self.person.ask("POST", "/api/download/create",
                            {"query_id": qid, "type": kind, "scope": scope})
        if not r or r.status != 200:
            return None
        f.task = r.body["task_id"]
        self.files.append(f)
        return f

    def at_once(self, qid, kind, scope, sure):
        r = self.person.fetch(f"/api/download_{kind}?query_id={qid}&scope={scope}")
        if r and r.status == 200:
            self.files.append(
                File(self.person.uid, qid, kind, scope, sure, state="READY", body=r.body))

    def may_be_gone(self, f):
        return f.losses != self.world.redis_losses or time.monotonic() - f.asked > FILE_S

    def gone(self, f, why):
        f.state = "GONE"
        if not self.may_be_gone(f):
            self.person.problem(f"{f} is gone, and Redis has lost nothing: {why}")

    def look(self, f):
        """One step towards its end."""
        r = self.person.ask("GET", f"/api/download/status?task_id={f.task}", may_be_gone=True)
        if r and r.status == 404:
            self.gone(f, r.body)
        if not r or r.status != 200:
            return
        if (r.body["query_id"], r.body["type"], r.body["scope"]) != (f.qid, f.kind, f.scope):
            self.person.problem(f"{f} is another: {r.body}")
        f.state = r.body["state"]
        if f.state == "FAILED" and not r.body["error"]:
            self.person.problem(f"{f} FAILED without a word")
        if f.state == "READY":
            self.fetch(f, r.body.get("bytes"))

    def fetch(self, f, size):
        r = self.person.fetch(f"/api/download/file?task_id={f.task}")
        if r and r.status == 404:
            self.gone(f, r.body)
        if not r or r.status != 200:
            return
        f.body = r.body
        if size is not None and len(f.body) != size:
            self.person.problem(f"{f} has {len(f.body)} bytes, {size} were told")

    def open(self):
        return [f for f in self.files if not f.ended]

    def changes(self, qid):
        """A run goes on: its files need not be those of the end any more."""
        for f in self.files:
            f.sure = f.sure and f.qid != qid


# --- what is in one ---

class Corpus:
    """Entries as they are stored. key: what BibTeX knows one by."""

    def __init__(self, stores):
        self.by_key, self.bib = {}, {}
        for doi, text in sql(stores,
                             "SELECT DOI, REPLACE(TO_BASE64(Bib), '\\n', '') FROM paperinfo"):
            bib = json.loads(base64.b64decode(text))["bib"].encode()
            self.bib[doi] = bib
            self.by_key.setdefault(bib.partition(b",")[0], []).append(doi)


def rows_of_csv(body):
    """[(DOI, verdict)]"""
    if not body.startswith(b"\xef\xbb\xbf") or not body.endswith(b"\r\n"):
        raise ValueError("it does not begin, or end, as a CSV file of ours")
    rows = list(csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True))
    if rows[0][0] != "doi" or {len(r) for r in rows} != {9}:
        raise ValueError("its columns are others")
    return [(r[0], VERDICTS[r[5]]) for r in rows[1:]]


MARK = b"% the verdict on the next entry is simulated: "


def rows_of_bib(body, corpus):
    """[(DOI,)]: every byte belongs to an entry as it is stored, or stands between two, or to the
    mark of a verdict of the simulated AI."""
    found, at = [], 0
    while True:
        while body[at:at + 1].isspace():
            at += 1
        if body.startswith(MARK, at):
            at = body.index(b"\n", at) + 1
        if at == len(body):
            return found
        dois = corpus.by_key.get(body[at:body.find(b",", at)], ())
        doi = next((d for d in dois if body.startswith(corpus.bib[d], at)), None)
        if doi is None:
            raise ValueError(f"no stored entry is at {at}: {body[at:at + 60]}")
        found.append((doi,))
        at += len(corpus.bib[doi])


def rows_of_ris(body):
    """[(DOI,)]; those that were made up are not in it."""
    text = body.decode()
    if text and not text.rstrip().endswith("ER  -"):
        raise ValueError("its last record has no end")
    if len(re.findall(r"^TY  - ", text, re.M)) != len(re.findall(r"^ER  -", text, re.M)):
        raise ValueError("a record has no beginning, or no end")
    return [(doi,) for doi in re.findall(r"^DO  - (\S+)", text, re.M)]


def rows_of(f, corpus):
    return rows_of_csv(f.body) if f.kind == "csv" else rows_of_bib(
        f.body, corpus) if f.kind == "bib" else rows_of_ris(f.body)


def known(f, results):
    """What a file can say of these results: [(DOI, verdict or None if failed)]."""
    if f.kind == "csv":
        return list(results)
    return [(doi,) for doi, _ in results if f.kind == "bib" or not doi.startswith("made-up/")]


def wrong(f, results, corpus):
    """What is wrong with a file; results: [(DOI, verdict)] of the run in their order, at the end.
    None: nothing."""
    try:
        rows = rows_of(f, corpus)
    except (ValueError, KeyError, IndexError, csv.Error) as e:
        return f"{e}"
    want = known(f, [r for r in results if f.scope == "all" or r[1]])
    if f.sure:
        return None if rows == want else (f"{len(rows)} rows, {len(want)} expected; "
                                          f"{sorted(set(rows) ^ set(want), key=str)[:3]}")
    if len(set(rows)) != len(rows):
        return "a paper is in it twice"
    # Of a run that went on: papers that had failed may have been judged since, what was lost may
    # not have come back.
    verdicts = dict(results)
    for row in rows:
        if row[0] not in corpus.bib:
            return f"{row[0]} is no paper"
        if f.scope == "relevant" and len(row) > 1 and not row[1]:
            return f"{row[0]} is not relevant"
        if len(row) > 1 and row[1] is not None and verdicts.get(row[0], row[1]) != row[1]:
            return f"{row[0]} is {row[1]}, the run says {verdicts[row[0]]}"
    return None


def problems(files, pages, corpus):
    """pages: {qid: [(DOI, verdict)]} as they are handed out."""
    for f in files:
        if not f.ended:
            yield (f"{f} is {f.state} for ever" if f.state != "READY" else
                   f"{f} is READY, and cannot be had")
        elif f.body is not None and (what := wrong(f, pages[f.qid], corpus)):
            yield f"{f}: {what}"


def differing(files, again):
    """again: {(qid, kind, scope): bytes} of files asked for when all was calm: the same, byte for
    byte."""
    for f in files:
        same = again.get((f.qid, f.kind, f.scope))
        if f.sure and f.body is not None and f.body != same:
            yield f"{f} has {len(f.body)} bytes, later {len(same) if same is not None else None}"
