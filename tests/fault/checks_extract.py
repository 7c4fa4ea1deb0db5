"""What must be true of extraction when all is over; like checks.py, of which this is a part.

Extraction   a row of extraction_task, with the documents of it
Document     a row of extraction_result, with what was paid for it
Call         of a webhook, as it came in
"""
from collections import Counter, defaultdict
from dataclasses import dataclass, field

ENDS = ("completed", "error", "cancelled")


@dataclass
class Document:
    state: str
    error: str
    version: int
    cents: int
    paid: list  # cents of each payment
    source: str  # id of the document, or a DOI
    value: object = None  # of the field that users edit
    edits: list = field(default_factory=list)  # versions that extraction_edit has, and their values


@dataclass
class Extraction:
    id: str
    uid: int
    status: str
    closed: int  # times
    total: int
    webhook: bool
    rows: dict  # place: Document


@dataclass
class Call:
    id: str
    task: str
    success: int
    failed: int
    body: bytes
    signed: bool  # with the secret that the user was told


def documents(tasks):
    """(id, task, Document) of all."""
    return [(f"{x.id}.{place}", x, d) for x in tasks for place, d in sorted(x.rows.items())]


def ended(tasks):
    """Every document has an end, and so has every task, which fits those of its documents."""
    for i, x, d in documents(tasks):
        if d.state not in ENDS:
            yield f"document {i} is still {d.state}: {d.error}"
        elif d.state == "error" and not d.error:
            yield f"document {i} ended in an error without a reason"
        elif d.state == "cancelled" and x.status != "cancelled":
            yield f"document {i} is cancelled, its task is {x.status}"
    for x in tasks:
        if x.status not in ("completed", "cancelled"):
            yield f"task {x.id} is still {x.status}"
        if sorted(x.rows) != list(range(1, x.total + 1)):
            yield f"task {x.id} has {x.total} documents, {len(x.rows)} are there"


def tried_again(tasks, own):
    """own: beginnings of errors that a document may have for good. Users have tried all errors
    again, when nothing died any more: no other is left, but in tasks that were cancelled."""
    for i, x, d in documents(tasks):
        if d.state == "error" and x.status == "completed" and not d.error.startswith(own):
            yield f"document {i} was tried again, and ended in an error: {d.error}"


def paid(tasks, payments):
    """payments: {id of a document: cents of each payment}. One that is completed was paid for once,
    at its price; others were not, and nothing else was."""
    known = set()
    for i, _, d in documents(tasks):
        known.add(i)
        if d.paid != ([d.cents] if d.state == "completed" else []):
            yield f"document {i} is {d.state}, costs {d.cents}, and {d.paid} was paid for it"
    for i in sorted(payments.keys() - known):
        yield f"{payments[i]} was paid for {i}, which is no document of a task"


def reserved(tasks, ids):
    """ids: in job_reserve."""
    state = {i: d.state for i, _, d in documents(tasks)}
    for i in ids:
        if state.get(i) not in ("pending", "extracting"):
            yield f"money is reserved for document {i}, which is {state.get(i)}"


def told(tasks, accepted, seen, cancelled):
    """accepted: {task: sources of its documents}; seen: {task: status that its user was told}."""
    by_id = {x.id: x for x in tasks}
    for i, sources in sorted(accepted.items()):
        x = by_id.get(i)
        if x is None:
            yield f"task {i} was accepted, and is not there"
        elif sources != {d.source for d in x.rows.values()} or len(sources) != x.total:
            yield f"task {i} was accepted with other documents: {len(sources)}, now {x.total}"
    for i in sorted(by_id.keys() - accepted.keys()):
        yield f"task {i} was asked for by none"
    for i, status in sorted(seen.items()):
        if i in by_id and status in ("completed", "cancelled") and status != by_id[i].status:
            yield f"task {i} was {status}, its user was told, and is {by_id[i].status}"
    for i in sorted(cancelled):
        if i in by_id and by_id[i].status != "cancelled":
            yield f"task {i} was cancelled, and is {by_id[i].status}"


def closed(tasks, opened):
    """opened: {task: (surely tried again after it was closed, perhaps)} times. It was closed once
    for each, and once besides unless it was cancelled."""
    for x in tasks:
        sure, perhaps = opened.get(x.id, (0, 0))
        least = sure + (x.status == "completed")
        if not least <= x.closed <= least + perhaps:
            yield (f"task {x.id}, {x.status}, was closed {x.closed} times; it was tried again"
                   f" {sure} times, and perhaps {perhaps} more")


def values_right(tasks, values, known):
    """values: {document: what its text has}. known: as edited() has it; others were not edited."""
    for x in tasks:
        for place, d in sorted(x.rows.items()):
            want = values.get(d.source)
            if (d.state == "completed" and want is not None and d.value != want and
                    (x.id, place) not in known):
                yield f"document {x.id}.{place}, {d.source}, has {want}; {d.value} was found"


def edited(tasks, known):
    """known: {(task, place): {version: values that it may have; "": it may not be there}}. An edit
    that was acknowledged is there, or one that came after it; no other is. Each is noted once."""
    for x in tasks:
        for place, d in sorted(x.rows.items()):
            name, versions = f"document {x.id}.{place}", [v for v, _ in d.edits]
            if len(set(versions)) != len(versions):
                yield f"{name} has two edits of one version: {sorted(versions)}"
            if d.edits and max(d.edits) != (d.version, d.value):
                yield f"{name}: version {d.version} has {d.value!r}, its edits: {sorted(d.edits)}"
            mine = known.get((x.id, place))
            if mine is None:
                if d.edits:
                    yield f"{name} was edited by none, and has {d.edits}"
                continue
            sure = max((v for v, values in mine.items() if "" not in values), default=1)
            if d.version < sure or d.value not in mine.get(d.version, ()):
                yield f"{name}: version {d.version} has {d.value!r}, its user knows {mine}"


def hooks_told(tasks, calls, tested):
    """Each closing of a task that has a webhook is told at least once, with an id of its own;
    nothing else is, and what is told is so. tested: tasks whose secret is known."""
    by_id, got = defaultdict(list), Counter()
    for c in calls:
        by_id[c.task].append(c)
        got[c.id] += 1
        if c.task in tested and not c.signed:
            yield f"call {c.id} is not signed with the secret of its task"
    bodies = defaultdict(set)
    for c in calls:
        bodies[c.id].add(c.body)
    for i, several in sorted(bodies.items()):
        if len(several) > 1:
            yield f"calls {i} differ: {sorted(several)}"
    for x in tasks:
        want = {f"task-{x.id}-{n}" for n in range(1, x.closed + 1)} if x.webhook else set()
        there = {c.id for c in by_id.pop(x.id, [])}
        if want != there:
            yield (f"task {x.id} was closed {x.closed} times, webhook {x.webhook}: not told of"
                   f" {sorted(want - there)}, told of {sorted(there - want)}")
        success = sum(d.state == "completed" for d in x.rows.values())
        for c in calls:
            if (c.id == f"task-{x.id}-{x.closed}" and x.status == "completed" and
                    (c.success, c.failed) != (success, x.total - success)):
                yield f"call {c.id} says {c.success} and {c.failed}, {success} of {x.total} are"
    for i in sorted(by_id):
        yield f"a call tells of task {i}, which is not there"
