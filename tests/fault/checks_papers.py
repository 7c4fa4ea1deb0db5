"""What must be true of papers that are indexed when all is over; like checks.py, of which this is a
part.

Paper     as the folder has it that was loaded last
Indexed   a row of embedding_paper, with what the other tables have of it
Unit      a row of embedding_unit
Call      of the service for embeddings
"""
import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field

from checks_posts import NEAR

TOKEN = re.compile(r"\bp[0-9a-f]{12}\b")  # of each title and sentence: no two have the same


@dataclass
class Paper:
    doi: str
    journal: str
    year: int
    title: str
    abstract: str

    @property
    def text(self):
        return "\n\n".join(x for x in (self.title, self.abstract) if x)


@dataclass
class Indexed:
    doi: str
    journal: str
    year: int
    version: int
    space: int
    chunks: list = field(default_factory=list)
    tags: tuple = None  # journal and year, as its points have them; None: it has none
    words: tuple = None  # the same of its words


@dataclass
class Unit:
    journal: str
    year: int
    slices: int
    state: str
    error: str
    papers: int
    bare: int
    done: int
    embedded: int
    refused: int


@dataclass
class Call:
    sent: float  # s
    ended: float
    texts: list
    good: set  # those whose vectors came, and can be used


def owner(doi):
    return int.from_bytes(hashlib.sha256(doi.encode()).digest()[:8], "big") & (2**63 - 1) or 1


def blank(paper):
    return not paper.text


def loaded(papers, corpus):
    """corpus: {DOI: (journal, year)}. The corpus is as the folder."""
    want = {p.doi: (p.journal, p.year) for p in papers.values()}
    for what, dois in (("lack", want.keys() - corpus.keys()), ("keep", corpus.keys() - want.keys()),
                       ("have elsewhere", {d for d in want.keys() & corpus.keys()
                                           if want[d] != corpus[d]})):
        if dois:
            yield f"the journals {what} {len(dois)} papers: {sorted(dois)[:3]}"


def ended(units):
    for u in units:
        if u.state != "completed":
            yield f"the unit {u.journal} {u.year} is {u.state}: {u.error}"


def counts(units, papers):
    """What units say of themselves is there."""
    for block in sorted({(u.journal, u.year) for u in units}):
        mine = [u for u in units if (u.journal, u.year) == block]
        there = [p for p in papers.values() if (p.journal, p.year) == block]
        bare, total = sum(blank(p) for p in there), len(there)
        got = [sum(getattr(u, name) for u in mine)
               for name in ("papers", "bare", "done", "embedded", "refused")]
        want = [total, bare, total - bare, total - bare, 0]
        if got != want or len(mine) != mine[0].slices:
            yield (f"{len(mine)} units of {block} count {got}, {want} were expected: papers, bare,"
                   " done, embedded, refused")


def rows(papers, indexed):
    """There is a row for each paper that has a text, at its place, and no other."""
    want = {owner(p.doi): p for p in papers.values() if not blank(p)}
    for i, p in sorted(want.items()):
        x = indexed.get(i)
        if x is None:
            yield f"{p.doi} is not indexed"
        elif (x.doi, x.journal, x.year) != (p.doi, p.journal, p.year) or x.version <= 0:
            yield f"{p.doi} is of {p.journal} {p.year}, and indexed as {x.doi}: {x}"
    for i in sorted(indexed.keys() - want.keys()):
        yield f"{indexed[i].doi} is indexed, and is not there, or has no text"


def vectors(papers, indexed, space):
    """space: that searches use. Each paper has the vectors of its present text, each part once, all
    of it, and no others."""
    for p in papers.values():
        x = indexed.get(owner(p.doi))
        if blank(p) or x is None:
            continue
        parts = [c.part for c in x.chunks]
        if x.space != space or {c.space for c in x.chunks} - {space}:
            yield f"{p.doi} is of space {x.space}, its vectors are of {[c.space for c in x.chunks]}"
        if parts != list(range(len(parts))) or not parts:
            yield f"{p.doi} has parts {parts}"
        got = "\n".join(c.text for c in x.chunks)
        if set(TOKEN.findall(p.text)) != set(TOKEN.findall(got)):
            yield f"{p.doi} says {p.text[:60]!r}, its vectors are of {got[:60]!r}"
        if len(parts) == 1 and got != p.text:
            yield f"{p.doi} says {p.text[:200]!r}, its vector is of {got[:200]!r}"
        if any(c.off > NEAR for c in x.chunks):
            yield f"{p.doi} has vectors that are not of their texts: {[c.off for c in x.chunks]}"


def lacking(papers, indexed, units, asked):
    """asked: journals that an admin has asked for. Of these, before anybody asks again, papers lack
    vectors only if the service gave none for them."""
    for block in sorted({(u.journal, u.year) for u in units if u.journal in asked}):
        without = [x for p in papers.values() if (p.journal, p.year) == block and not blank(p) and
                   not ((x := indexed.get(owner(p.doi))) and x.space and x.chunks)]
        refused = sum(u.refused for u in units if (u.journal, u.year) == block)
        if len(without) != refused or any(x and x.chunks for x in without):
            yield (f"{len(without)} papers of {block} have no vectors, {refused} were refused:"
                   f" {without[:3]}")
    there = {u.journal for u in units}
    for journal in sorted(asked - there):
        yield f"{journal} was asked for, and has no units"


def tagged(papers, indexed):
    """Points and words have the journal and year."""
    for p in papers.values():
        x = indexed.get(owner(p.doi))
        if x and not blank(p) and {x.tags, x.words} != {(p.journal, p.year)}:
            yield f"{p.doi} is of {p.journal} {p.year}, its points of {x.tags}, words of {x.words}"


def nothing_else(papers, owners):
    """owners: {table: owners that it has something of}."""
    want = {owner(p.doi) for p in papers.values() if not blank(p)}
    for table, found_ in sorted(owners.items()):
        if found_ != want:
            yield (f"{table} has {len(found_ - want)} papers that are not there, and lacks"
                   f" {len(want - found_)}")


def found(papers, answers):
    """answers: [(who and where, {(journal, year, question): DOIs} and {(DOI, "", word of it
    alone): DOIs}, {DOI: DOIs that are alike}, reasons why something may be missing)]. Searches find
    what is there, where it is, and nothing else."""
    texts = {d for d, p in papers.items() if not blank(p)}
    for where, by_block, alike, reasons in answers:
        if reasons:
            yield f"{where}: searches lack something: {sorted(reasons)}"
        for (journal, year, q), dois in sorted(by_block.items()):
            want = ([journal] if year == "" else
                    sorted(d for d in texts
                           if (papers[d].journal, papers[d].year) == (journal, year)))
            if sorted(dois) != want:
                yield (f"{where}: {q!r} in {journal} {year} finds {len(dois)} papers, {len(want)}"
                       f" are there; missing {sorted(set(want) - set(dois))[:3]}, too many"
                       f" {sorted(set(dois) - set(want))[:3]}")
        for doi, dois in sorted(alike.items()):
            if (set(dois) - texts or doi in dois or max(Counter(dois).values(), default=1) > 1 or
                    len(dois) != min(100, len(texts) - 1)):
                yield (f"{where}: like {doi} are {len(dois)}, {len(set(dois))} different, of these"
                       f" {sorted(set(dois) - texts)[:3]} are not there")


def repeats(calls, troubled):
    """(texts that were asked for again although their vectors had come, those of these where
    nothing went wrong from that call to 10 s after its end)."""
    again, calm, good = 0, [], {}
    for c in sorted(calls, key=lambda c: c.sent):
        for text in c.texts:
            before = good.get(text)
            if before and before.ended < c.sent:
                again += 1
                if not troubled(before.sent, min(before.ended + 10, c.sent)):
                    calm.append((text, before, c))
            if text in c.good:
                good[text] = c
    return again, calm
