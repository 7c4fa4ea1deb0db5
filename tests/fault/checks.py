"""What must be true when all is over. Pure functions on what was read: each yields a line for
everything wrong.

Run          as query_log, paperinfo and the results say
Movement     a row of billing_log
"""
from collections import Counter, defaultdict
from dataclasses import dataclass, field

FINAL = ("DONE", "CANCELLED", "FAILED")


@dataclass
class Run:
    uid: int
    qid: str
    state: str
    # DOI: cents that a verdict costs; all of its journals and years in paperinfo, or those that
    # were frozen.
    papers: dict
    results: dict = field(default_factory=dict)  # DOI: True relevant, False not, None failed
    shown: dict = field(default_factory=dict)  # GET /api/queries/<qid>; empty: not asked
    original: str = None  # a distillation: the run that it distils


@dataclass
class Movement:
    uid: int
    kind: str  # opening, charge, recharge, deduction, reversal
    number: int
    cents: int
    qid: str = None
    doi: str = None
    reversed: bool = False  # a charge: ledger_reversal names it


def ended(runs):
    for r in runs:
        if r.state not in FINAL:
            yield f"run {r.qid} of user {r.uid} is still {r.state}"


def not_failed(runs):
    for r in runs:
        if r.state == "FAILED":
            yield f"run {r.qid} of user {r.uid} FAILED: {r.shown.get('reason')}"


def complete(runs):
    """Every paper of a run that is DONE has a result or a failure; nobody has one that is not of
    the run."""
    for r in runs:
        lost = sorted(r.papers.keys() - r.results.keys())
        if r.state == "DONE" and lost:
            yield (f"run {r.qid} of user {r.uid} is DONE, {len(lost)} of {len(r.papers)} papers"
                   f" have no result: {lost[:3]}")
        foreign = sorted(r.results.keys() - r.papers.keys())
        if foreign:
            yield (f"run {r.qid} of user {r.uid} has {len(foreign)} results of papers that are"
                   f" not in it: {foreign[:3]}")


def frozen(runs, changed):
    """A distillation has the papers that are relevant in its original. changed: originals that went
    on after it was submitted, or may have: more may be relevant there now."""
    by_qid = {r.qid: r for r in runs}
    for r in runs:
        if r.original is None:
            continue
        original = by_qid.get(r.original)
        if not original or original.uid != r.uid or original.state not in ("DONE", "CANCELLED"):
            yield f"run {r.qid} of user {r.uid} distils {r.original}, {original and original.state}"
            continue
        relevant = {doi for doi, verdict in original.results.items() if verdict}
        lost, foreign = relevant - r.papers.keys(), r.papers.keys() - relevant
        if foreign or (lost and r.original not in changed):
            yield (f"run {r.qid} of user {r.uid} distils {r.original}: {len(lost)} relevant papers"
                   f" are not in it, {len(foreign)} others are: {sorted(lost | foreign)[:3]}")


def retried(runs):
    """Users have tried papers again that had failed, when the AI was of use: none is left."""
    for r in runs:
        failed = sorted(doi for doi, verdict in r.results.items() if verdict is None)
        if r.state == "DONE" and failed:
            yield (f"run {r.qid} of user {r.uid}: {len(failed)} papers have failed,"
                   f" and were tried again: {failed[:3]}")


def charged_once(runs, movements):
    """A verdict was paid for once, net of reversals, at its price; a failure, and a paper without a
    result, not at all."""
    standing = defaultdict(list)
    for m in movements:
        if m.kind == "charge" and not m.reversed:
            standing[m.uid, m.qid, m.doi].append(m.cents)
    for r in runs:
        wrong = Counter()
        example = {}
        for doi in r.papers.keys() | r.results.keys():
            got = standing.pop((r.uid, r.qid, doi), [])
            verdict = r.results.get(doi) is not None
            want = [r.papers.get(doi, 0)] if verdict else []
            if got != want:
                what = ("paid for " +
                        ("never", "at another price", "twice or more")[min(len(got), 2)]
                        if verdict else "paid for, and " +
                        ("failed" if doi in r.results else "without a result"))
                wrong[what] += 1
                example[what] = (doi, got, want)
        for what, count in sorted(wrong.items()):
            yield f"run {r.qid} of user {r.uid} ({r.state}): {count} papers {what}: {example[what]}"
    for (uid, qid, doi), cents in standing.items():
        yield (f"user {uid} paid {cents} for {doi} of run {qid},"
               " which is no paper of a run of theirs")


def reversals(movements):
    """Each reversal gives back what one charge took."""
    back, taken = Counter(), Counter()
    for m in movements:
        if m.kind == "reversal":
            back[m.uid, m.qid, m.doi, m.cents] += 1
        elif m.kind == "charge" and m.reversed:
            taken[m.uid, m.qid, m.doi, m.cents] += 1
    for key in sorted(back.keys() | taken.keys()):
        if back[key] != taken[key]:
            yield (f"{key}: {taken[key]} charges are marked as reversed,"
                   f" {back[key]} reversals were made")


def balances(found, movements, moved):
    """found: {uid: (cents in MySQL, cents in Redis or None)}. moved: {uid: {"recharge": cents,
    "deduct": cents}} that surely were."""
    due, log = Counter(), Counter()
    for m in movements:
        due[m.uid] += m.cents if m.kind in ("opening", "recharge", "reversal") else -m.cents
        log[m.uid, m.kind] += m.cents
    for uid, (mysql, redis) in sorted(found.items()):
        if mysql != due[uid]:
            yield f"user {uid} has {mysql} cents in MySQL, {due[uid]} by billing_log"
        if redis is not None and redis != mysql:
            yield f"user {uid} has {redis} cents in Redis, {mysql} in MySQL"
        for asked, kind in (("recharge", "recharge"), ("deduct", "deduction")):
            if moved[uid][asked] != log[uid, kind]:
                yield (f"user {uid}: {asked} of {moved[uid][asked]} cents in all was acknowledged,"
                       f" billing_log has {log[uid, kind]}")


def never_negative(samples):
    """samples: {(where, uid): lowest cents seen}."""
    for (where, uid), cents in sorted(samples.items()):
        if cents < 0:
            yield f"user {uid} had {cents} cents in {where}"


def counts(runs):
    """What a run says of itself is what is there."""
    for r in runs:
        if not r.shown:
            continue
        there = list(r.results.values())
        cents = sum(
            r.papers.get(doi, 0) for doi, verdict in r.results.items() if verdict is not None)
        want = {"state": r.state, "papers": len(r.papers), "finished": len(there),
                "relevant": there.count(True), "failed": there.count(None),
                "cost": f"{cents // 100}.{cents % 100:02}"}
        wrong = {k: (r.shown.get(k), v) for k, v in want.items() if r.shown.get(k) != v}
        if wrong:
            yield f"run {r.qid} of user {r.uid} ({r.state}) says, and has: {wrong}"


def handed_out(runs, pages):
    """pages: {qid: [(DOI, relevant or None), ...]}, as GET /api/queries/<qid>/results gives them:
    each paper once."""
    for r in runs:
        got = sorted(pages[r.qid], key=str)
        want = sorted(r.results.items(), key=str)
        if got != want:
            wrong = sorted(set(got) ^ set(want), key=str)
            yield (f"run {r.qid} of user {r.uid} ({r.state}) has {len(want)} results,"
                   f" {len(got)} are handed out; {wrong[:3]}")


def promises(runs, acknowledged, terminated):
    """What a caller was told: submitted runs are there, terminated ones stay so."""
    state = {r.qid: r.state for r in runs}
    for qid in sorted(acknowledged - state.keys()):
        yield f"run {qid} was accepted, and is not there"
    for qid in sorted(terminated):
        if state.get(qid) not in (None, "CANCELLED"):
            yield f"run {qid} was CANCELLED, its user was told, and is {state[qid]}"


def nothing_left(runs, inflight, pending, running, queue):
    """inflight, pending: {"<uid>:<qid>": number}. running, queue: names "<uid>:<qid>"."""
    final = {f"{r.uid}:{r.qid}" for r in runs if r.state in FINAL}
    for name, number in sorted(inflight.items()):
        if number:
            yield f"run {name} has {number} units in flight"
    for name, number in sorted(pending.items()):
        if number and name in final:
            yield f"run {name} has ended, and {number} units wait"
    for what, names in (("sys:running", running), ("sys:queue", queue)):
        for name in sorted(final.intersection(names)):
            yield f"run {name} has ended, and is in {what}"


# AI calls that a fault may cost: the papers in hand, or those that were judged in the seconds that
# Redis has lost.
IN_HAND, LOST = 300, 3000


def calls_bounded(calls, movements, runs, kinds):
    """calls: to an AI that fails now and then. kinds: of all faults. A paper that has a result is
    not judged again (SCR-5)."""
    judged = sum(m.kind == "charge" for m in movements) + sum(
        v is None for r in runs for v in r.results.values())
    most = judged * 1.2 + sum(LOST if k in ("older", "empty") else IN_HAND for k in kinds) + IN_HAND
    if calls > most:
        yield (f"the AI was asked {calls} times, for {judged} verdicts and {len(kinds)} faults;"
               f" {most:.0f} at most were expected")
