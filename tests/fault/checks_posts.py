"""What must be true of posts when all is over; like checks.py, of which this is a part.

Post    a row of tb_post, with what the other tables have of it
Chunk   a row of point_vector
Known   what its writer knows of a post: what it may be
"""
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

TOKEN = r"\bt[0-9a-f]{12}\b"  # of each paragraph of a content: no two have the same
NEAR = 1e-5  # two vectors that were made of the same text


@dataclass
class Chunk:
    space: int
    part: int
    version: int
    text: str
    off: float = 0.0  # the largest difference to what the service makes of the text


@dataclass
class Post:
    id: int
    uid: int
    title: str
    content: str
    hide: bool
    version: int
    content_version: int
    status: str
    error: str
    cents: int
    paid_as: str  # "": nothing is paid
    tags_due: bool
    space: int
    deleted: bool = False
    chunks: list = field(default_factory=list)
    tags: tuple = None  # title, hide: as its points have them; None: it has none
    words: bool = None  # hide, as its words have it; None: it has none


@dataclass
class Known:
    uid: int
    versions: dict  # version: [(title, content, hide)] that it may have
    deleted: bool = False  # surely
    perhaps_deleted: bool = False
    wishes: int = 0  # that cost something, surely
    perhaps: int = 0  # and others


def blank(content):
    return not content.strip(" \t\n\r\f\v")


def there(posts):
    return [p for p in posts if not p.deleted]


def ended(posts):
    """Each post is embedded, and so is what is left to do after that."""
    for p in posts:
        if p.deleted:
            yield f"post {p.id} is deleted, and its row is there: {p.status} {p.error}"
        elif p.status != "completed":
            yield f"post {p.id} is {p.status}: {p.error}"
        elif p.tags_due:
            yield f"post {p.id}: title and visibility are not told"


def written(posts, known, unclear):
    """Rows are as their writers know them, and no other is there. unclear: contents of new posts
    whose answer was lost."""
    by_id, unclear = {p.id: p for p in there(posts)}, set(unclear)
    for i, k in sorted(known.items()):
        p = by_id.pop(i, None)
        if p is None:
            if not k.deleted and not k.perhaps_deleted:
                yield f"post {i} was written, and is not there"
        elif k.deleted:
            yield f"post {i} was deleted, and is there"
        elif (p.title, p.content, p.hide) not in k.versions.get(p.version, ()) or p.uid != k.uid:
            yield (f"post {i}, version {p.version}, is {p.title!r}, {p.content[:40]!r},"
                   f" {p.hide}; its writer knows {sorted(k.versions)}:"
                   f" {[(t, c[:40], h) for t, c, h in k.versions.get(p.version, [])]}")
    for i, p in sorted(by_id.items()):
        if p.content not in unclear:
            yield f"post {i} was written by none: {p.content[:60]!r}"
        unclear.discard(p.content)


def vectors(posts, space):
    """space: that searches use. A post that has a text has the vectors of its last content, each
    part once, all of it, and no others; one that has none has no vectors."""
    for p in there(posts):
        name, parts = f"post {p.id}", [c.part for c in p.chunks]
        if blank(p.content):
            if p.chunks:
                yield f"{name} is empty, and has {len(parts)} vectors"
            continue
        if {c.space for c in p.chunks} != {space} or p.space != space:
            yield f"{name} is of space {p.space}, its vectors are of {[c.space for c in p.chunks]}"
        if parts != list(range(len(parts))) or not parts:
            yield f"{name} has parts {parts}"
        if {c.version for c in p.chunks} - {p.content_version}:
            yield (f"{name} has version {p.content_version}, its vectors"
                   f" {[c.version for c in p.chunks]}")
        want = set(re.findall(TOKEN, p.content))
        got = set(re.findall(TOKEN, "\n".join(c.text for c in p.chunks)))
        if want != got:
            yield (f"{name} lacks vectors of {len(want - got)} paragraphs, and has those of"
                   f" {len(got - want)} others")
        if any(c.off > NEAR for c in p.chunks):
            yield f"{name} has vectors that are not of their texts: {[c.off for c in p.chunks]}"


def nothing_else(posts, owners):
    """owners: {table: owners that it has something of}. Nothing is left of a post that is gone."""
    ids = {p.id for p in there(posts)}
    for table, found in sorted(owners.items()):
        if found - ids:
            yield f"{table} has {len(found - ids)} posts that are gone: {sorted(found - ids)[:3]}"


def tagged(posts):
    """Points and words have the last title and visibility."""
    for p in there(posts):
        if p.chunks and p.tags != (p.title, p.hide):
            yield f"post {p.id} is {p.title!r}, {p.hide}; its points are {p.tags}"
        if blank(p.content) and p.words is not None:
            yield f"post {p.id} is empty, and has words"
        if not blank(p.content) and p.words != p.hide:
            yield f"post {p.id} is hidden: {p.hide}; by its words: {p.words}"


def paid(posts, payments, known, unclear):
    """payments: {id of a payment: cents of each}. Each once, at the price; a post that is completed
    has paid for its last content; nothing was paid oftener than its writer wished."""
    by_post = Counter(int(i.partition(".")[0]) for i in payments)
    for i, cents in sorted(payments.items()):
        if len(cents) != 1:
            yield f"{i} was paid {len(cents)} times: {cents}"
    for p in there(posts):
        want = [p.cents] if p.paid_as and p.cents else []
        if p.status == "completed" and payments.get(p.paid_as, []) != want:
            yield (f"post {p.id} is completed, costs {p.cents}, and {payments.get(p.paid_as)}"
                   f" was paid for {p.paid_as!r}")
    strangers = {i for i in by_post if i not in known}
    if len(strangers) > len(unclear):
        yield (f"{len(strangers)} posts that none knows are paid, {len(unclear)} may have been"
               " written")
    for i, n in sorted(by_post.items()):
        k = known.get(i)
        if k and n > k.wishes + k.perhaps:
            yield f"post {i} was paid {n} times; {k.wishes} were wished, perhaps {k.perhaps} more"


def reserved(posts, ids):
    """ids: in job_reserve."""
    status = {str(p.id): p.status for p in posts}
    for i in ids:
        if status.get(i) not in ("pending", "processing"):
            yield f"money is reserved for post {i}, which is {status.get(i)}"


def found(posts, answers):
    """answers: [(who and where, uid, {post: ids that its own words found}, {post: those alike},
    reasons why something may be missing)]; uid 0: an admin. Each finds what it may see and no more,
    by words and by vectors, and nothing is missing."""
    for where, uid, by_words, alike, reasons in answers:
        if reasons:
            yield f"{where}: searches lack something: {sorted(reasons)}"
        sees = {p.id for p in there(posts)
                if not blank(p.content) and (not p.hide or uid in (0, p.uid))}
        if uid == 0 and sees != by_words.keys():
            yield f"{where}: {len(by_words)} posts were looked for, {len(sees)} are there"
        for i, ids in sorted(by_words.items()):
            if i not in ids:
                yield f"{where}: post {i} is not found by its own words"
            if set(ids) - sees:
                yield f"{where}: the words of {i} find {sorted(set(ids) - sees)[:3]}"
        for i, ids in sorted(alike.items()):
            if sorted(ids) != sorted(sees - {i}):
                twice = [n for n, count in Counter(ids).items() if count > 1]
                yield (f"{where}: like {i} are {len(ids)} posts, {len(sees) - 1} were expected;"
                       f" missing {sorted(sees - {i} - set(ids))[:3]},"
                       f" too many {sorted(set(ids) - sees)[:3]}, twice {twice[:3]}")


def stores(rows, points, counted):
    """rows: [(place, space, applied, head, complete)] of vector_store; points: {space: how many
    MySQL has}; counted: {server: how many its index has}. Each store has all changes."""
    for place, space, applied, head, complete in rows:
        if applied != head or not complete:
            yield (f"the store of space {space} at {place} has changes up to {applied} of {head},"
                   f" complete: {complete}")
    want = sum(points.values())
    for server, count in sorted(counted.items()):
        if count != want:
            yield f"the index of {server} has {count} points, MySQL {want}"
    if len(points) > 1:
        yield f"there are vectors of {len(points)} spaces"


def by_post(rows):
    """rows: (post, anything). {post: [anything]}"""
    into = defaultdict(list)
    for post, what in rows:
        into[post].append(what)
    return into
