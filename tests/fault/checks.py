"""What must be true when all is over. Pure functions on what was read: each yields a line for
everything wrong.

Run          as query_log, paperinfo and the results say
Movement     a row of billing_log
Pool         a group of items, as both stores have it
Answer       what a program was given out of one
Queue, Job   a queue of jobs at one moment, as Redis has it
PlanTask     a row of generation_task, with what was paid for it
MadePlan     a row of training_plan or nutrition_plan, with its days
"""
import re
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


@dataclass
class Pool:
    name: str  # "titles/7"
    items: dict  # id: (status, number, text) in MySQL
    listed: list  # ids in Redis, in the order in which they will be handed out
    unseen: int = 0  # items that count as used since a Redis was lost, by pool_group


@dataclass
class Answer:
    group: str
    ids: list
    sent: float  # when the request was first sent, s
    got: float  # and when this answer came
    asked: int  # items
    request: str = None  # its id, if it had one
    program: str = None

    @property
    def key(self):
        """Repeats have the same; an answer without a request id is alone."""
        return (self.group, self.program, self.request) if self.request else id(self)


@dataclass
class Job:
    version: int
    tries: int
    priority: int
    order: int
    uid: int
    since: int
    lease: str = "-"
    next: str = "-"


@dataclass
class Queue:
    name: str
    asked: float  # it was looked at between these two, s
    told: float
    generation: str  # of Redis
    waiting: dict  # id: score
    delays: set
    leases: set
    held: dict  # id: uid
    probes: set  # uids
    aside: set  # jobs whose row cannot be written
    jobs: dict  # id: Job
    users: dict  # uid: number of jobs
    state: dict
    given: str = ""  # changes when a job is given back at once, or one comes where none waits


@dataclass
class PlanTask:
    id: str
    uid: int
    kind: str
    state: str
    error: str
    plan: str  # "": none
    weeks: int
    cents: int
    paid: list  # cents of each payment


@dataclass
class Day:
    version: int
    mark: str  # words of the user, or of the AI


@dataclass
class MadePlan:
    id: str
    uid: int
    kind: str
    version: int
    weeks: int
    days: dict  # date: Day


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


# --- pools ---

POOL_AHEAD_MAX = 1000  # items that may be used up unseen when Redis is lost, per group


def handed_once(answers):
    """No item is in two answers, but for repeats of a request."""
    first = {}
    for a in answers:
        for i in a.ids:
            before = first.setdefault((a.group, i), a)
            if before.key != a.key:
                yield (f"item {i} of {a.group} was given to {before.program} and to {a.program}:"
                       f" requests {before.request} and {a.request}")
        if len(set(a.ids)) != len(a.ids):
            yield f"{a.program} was given an item of {a.group} twice in one answer: {a.ids}"


def repeats_alike(answers, troubled):
    """A repeat of a request is given the same items. troubled(a, b): Redis may have forgotten, or
    may not have answered, between these times."""
    first = {}
    for a in answers:
        before = first.setdefault(a.key, a)
        if before.ids != a.ids and not troubled(before.sent, a.got):
            yield (f"request {a.request} of {a.program} was given {before.ids[:3]} of {a.group},"
                   f" and again {a.ids[:3]}")


def items_accounted(pools, answers):
    """Every item is usable, in a list, or used; what is in a list follows the numbers; what was
    given is used."""
    for p in pools:
        given = {i for a in answers if a.group == p.name for i in a.ids}
        listed = set(p.listed)
        for what, ids in (
                ("given, and none of the group", given - p.items.keys()),
                ("of no known status", {i for i, x in p.items.items() if x[0] not in (0, 1, 2)}),
                ("given, and not used", {i for i in given if p.items.get(i, (0,))[0] != 0}),
                ("given, and in the list", given & listed),
                ("numbered, and in no list",
                 {i for i, x in p.items.items() if x[0] == 2} - listed),
                ("in the list, and not numbered",
                 {i for i in listed if p.items.get(i, (0,))[0] != 2})):
            if ids:
                yield f"{p.name}: {len(ids)} items are {what}: {sorted(ids)[:5]}"
        numbers = [p.items[i][1] for i in p.listed if i in p.items]
        if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            yield f"{p.name}: the list is not in the order of numbers: {numbers[:10]}"


def in_order(pools, answers):
    """Numbers follow each other within an answer; and an answer that had come when another was
    asked for has the lower ones. Items that MySQL hands out itself have none."""
    items = {p.name: p.items for p in pools}
    begun, ended_, first = [], [], set()
    for a in answers:
        numbers = [items[a.group][i][1] for i in a.ids if i in items[a.group]]
        if any(numbers) and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            yield (f"{a.program} was given items of {a.group} that do not follow each other:"
                   f" numbers {numbers}")
        elif any(numbers) and (a.key, *a.ids) not in first:
            first.add((a.key, *a.ids))
            begun.append((a.sent, a.group, numbers[0], a))
            ended_.append((a.got, a.group, numbers[-1]))
    ended_.sort()
    highest, at = Counter(), 0
    for sent, group, number, a in sorted(begun, key=lambda x: x[0]):
        while at < len(ended_) and ended_[at][0] < sent:
            highest[ended_[at][1]] = max(highest[ended_[at][1]], ended_[at][2])
            at += 1
        if number < highest[group]:
            yield (f"{a.program} was given number {number} of {group} after {highest[group]} had"
                   " been handed out")


def unseen(pool, answers):
    """How many items are used, and in no answer."""
    given = {i for a in answers if a.group == pool.name for i in a.ids}
    return sum(status == 0 and i not in given for i, (status, _, _) in pool.items.items())


def unseen_bounded(pools, answers, cut, losses):
    """cut: {group: items that answers had which were cut off}; losses: of Redis."""
    for p in pools:
        count = unseen(p, answers)
        if p.unseen > POOL_AHEAD_MAX * losses:
            yield (f"{p.name}: {p.unseen} items count as used since Redis was lost {losses} times,"
                   f" {POOL_AHEAD_MAX} each time at most were expected")
        if count > cut[p.name] + p.unseen:
            yield (f"{p.name}: {count} items are used and were given to none; {cut[p.name]} were in"
                   f" answers that were cut off, {p.unseen} were lost with Redis")


def imported(pools, texts):
    """texts: {group: those that were put in}: each is there once."""
    for p in pools:
        there = Counter(t for _, _, t in p.items.values())
        lost = [t for t in texts[p.name] if not there[t]]
        twice = [t for t, n in there.items() if n > 1]
        if lost or twice:
            yield (f"{p.name}: {len(lost)} items were put in and are not there, {len(twice)} are"
                   f" there twice: {(lost + twice)[:3]}")


# --- jobs ---

SHORTEST_DELAY_S = 1.0  # half of the shortest backoff of all kinds: jobs_end.c


def queue_sound(q):
    """What is true of a queue at any moment: a job is in one place, and counted for its user."""
    places = Counter([*q.waiting, *q.delays, *q.leases, *q.held, *q.aside])
    for what, ids in (
            ("in no place", q.jobs.keys() - places.keys()),
            ("in two places", {i for i, n in places.items() if n > 1}),
            ("in a place, and not there", places.keys() - q.jobs.keys()),
            ("leased to none", {i for i in q.leases & q.jobs.keys() if q.jobs[i].lease == "-"}),
            ("leased, and not in work",
             {i for i, j in q.jobs.items() if j.lease != "-" and i not in q.leases}),
            ("at another place of the line",
             {i for i, score in q.waiting.items() if i in q.jobs and
              score != place(q.jobs[i])}),
            ("held, and their user is not looked at again",
             {i for i, uid in q.held.items() if uid not in q.probes})):
        if ids:
            yield f"queue {q.name} at {q.told:.2f}: {len(ids)} jobs are {what}: {sorted(ids)[:3]}"
    counted = dict(Counter(j.uid for j in q.jobs.values()))
    if counted != q.users:
        yield f"queue {q.name} at {q.told:.2f} counts {q.users} for its users, {counted} are there"


def queue_empty(q):
    """When all is done nothing is left of jobs."""
    left = {"jobs": q.jobs, "waiting": q.waiting, "delays": q.delays, "leases": q.leases,
            "held": q.held, "probes": q.probes, "aside": q.aside, "users": q.users,
            "state": {f for f in q.state if re.fullmatch(r"c\d+", f)}}
    for what, there in left.items():
        if there:
            yield f"queue {q.name}: {len(there)} are left in {what}: {sorted(there)[:3]}"
    if q.state.get("run") != q.generation:
        yield f"queue {q.name} is not filled after a restart of Redis"
    if q.state.get("paused") == "1":
        yield f"queue {q.name} is paused, and was resumed"


def taken(before, after):
    """Jobs that a node took between two looks."""
    return {i for i in after.leases if i in after.jobs and
            (i not in before.jobs or before.jobs[i].lease != after.jobs[i].lease)}


def place(job):
    return job.priority * 2**45 + job.order


def in_view(samples, troubled):
    """Pairs of looks between which no job can have been taken and given back so that it is where,
    and as, it was before."""
    for before, after in zip(samples, samples[1:]):
        if (before.generation == after.generation and before.given == after.given and
                after.told - before.asked < SHORTEST_DELAY_S and
                not troubled(before.asked, after.told)):
            yield before, after


def first_come(samples, troubled):
    """A job that waits is not overtaken by one that is behind it, but for those that are held. A
    job may have moved forward before it was taken, by a later version that is more urgent: its
    place is that of when it was taken. troubled(a, b): jobs may have been given back, to their old
    place, between these times."""
    for before, after in in_view(samples, troubled):
        held = before.probes | after.probes
        left = [i for i, score in before.waiting.items()
                if after.waiting.get(i) == score and before.jobs[i] == after.jobs[i] and
                before.jobs[i].uid not in held]
        first = min(left, key=before.waiting.get, default=None)
        for i in sorted(taken(before, after)):
            if (first is not None and after.jobs[i].uid not in held and
                    place(after.jobs[i]) > before.waiting[first]):
                yield (f"queue {before.name} at {after.told:.2f}: {i} was taken at"
                       f" {place(after.jobs[i])}, and {first} before it waits at"
                       f" {before.waiting[first]}")


def pauses_kept(samples, paused):
    """paused: [queue, from, to]. Nothing is taken out of a queue that is paused."""
    for before, after in zip(samples, samples[1:]):
        for name, begin, end in paused if before.generation == after.generation else ():
            if name == before.name and begin <= before.asked and (end is None or after.told <= end):
                for i in sorted(taken(before, after)):
                    yield (f"queue {name} was paused at {begin:.2f}, and {i} was taken before"
                           f" {after.told:.2f}")


# --- plans ---

PLAN_ENDS = ("completed", "failed", "cancelled")


def plan_tasks_ended(tasks):
    for x in tasks:
        if x.state not in PLAN_ENDS:
            yield f"task {x.id} is still {x.state}: {x.error}"
        elif x.state == "failed" and not x.error:
            yield f"task {x.id} failed without a reason"


def plans_paid(tasks):
    """One that is completed was paid for once, at its price; others were not."""
    for x in tasks:
        if x.paid != ([x.cents] if x.state == "completed" else []):
            yield f"task {x.id} is {x.state}, costs {x.cents}, and {x.paid} was paid for it"


def plans_whole(tasks, plans):
    """There is a plan for each task that is completed, with all of its days, and no other."""
    by_id = {p.id: p for p in plans}
    for x in tasks:
        p = by_id.pop(x.plan, None)
        if (x.state == "completed") != (p is not None):
            yield f"task {x.id} is {x.state}, its plan is {p and p.id}"
        elif p and (p.uid, p.kind, p.weeks, len(p.days)) != (x.uid, x.kind, x.weeks, x.weeks * 7):
            yield (f"plan {p.id} of user {p.uid}, {p.kind}, has {p.weeks} weeks and {len(p.days)}"
                   f" days; task {x.id} of user {x.uid} was {x.kind} of {x.weeks} weeks")
    for i in sorted(by_id):
        yield f"plan {i} was made by no task"


def plans_told(tasks, seen, cancelled):
    """seen: {task: status that its user was told}."""
    state = {x.id: x.state for x in tasks}
    for i, status in sorted(seen.items()):
        if i not in state:
            yield f"task {i} was accepted, and is not there"
        elif status != state[i] and status in PLAN_ENDS:
            yield f"task {i} was {status}, its user was told, and is {state[i]}"
    for i in sorted(cancelled):
        if state.get(i) != "cancelled":
            yield f"task {i} was cancelled, and is {state.get(i)}"


def plans_reserved(tasks, reserved):
    """reserved: ids in job_reserve. Nothing is, once a task has ended."""
    state = {x.id: x.state for x in tasks}
    for i in reserved:
        if state.get(i) not in ("pending", "working"):
            yield f"money is reserved for task {i}, which is {state.get(i)}"


def plans_changed(plans, days):
    """days: {(plan, date): {version: marks that it may have; "": it may not be there}}. A change
    that was acknowledged is there, or one that came after it; no other is."""
    for p in plans:
        for date, day in p.days.items():
            known = days.get((p.id, date), {1: {day.mark}})
            sure = max((v for v, marks in known.items() if "" not in marks), default=1)
            if day.version < sure or day.mark not in known.get(day.version, ()):
                yield (f"plan {p.id}, {date}: version {day.version} has {day.mark!r}, its user"
                       f" knows {known}")


def plans_active(owners, plans, active):
    """owners: {uid: (version, untold, {kind: plan, or ""})}. active: {(uid, kind): plans that may
    be it; None: any}. A user who has plans of a kind has an active one of them."""
    mine = defaultdict(set)
    for p in plans:
        mine[p.uid, p.kind].add(p.id)
    for uid, (_, _, chosen) in sorted(owners.items()):
        for kind, plan in chosen.items():
            may_be = active.get((uid, kind), {None})
            if (plan or None) is None and not mine[uid, kind]:
                continue
            if plan not in mine[uid, kind] or not ({None, plan} & may_be):
                yield f"user {uid}: {plan!r} is the active {kind} plan, expected {may_be}"


def plan_caches(cached, tasks, plans, owners):
    """What Redis has, and counts, is what MySQL has."""
    fences = {uid: cached.get(f"user:{uid}:plans", {}) for uid in owners}
    rows = {p.id: p for p in plans}
    state = {x.id: x.state for x in tasks}
    for uid, fence in sorted(fences.items()):
        version, untold, chosen = owners[uid]
        if untold or (fence.get("counts") and int(fence["version"]) != version):
            yield f"user {uid}: Redis knows plans of {fence}, MySQL has {version}, untold {untold}"
        for kind in chosen:
            there = cached.get(f"{kind}_plan:{uid}:active")
            if fence.get("counts") and there is not None and there != chosen[kind]:
                yield f"user {uid}: Redis has {there} active, MySQL {chosen[kind]!r}"
    for key, value in sorted(cached.items(), key=lambda x: x[0]):
        name, _, rest = key.partition(":")
        if name == "generation_task" and value.get("status") != state.get(rest):
            yield f"{key} is {value.get('status')} in Redis, {state.get(rest)} in MySQL"
        elif key.endswith(":pending_tasks"):
            for i in sorted(value):
                if state.get(i) in PLAN_ENDS:
                    yield f"{i} is in {key}, and is {state[i]}"
        elif isinstance(value, dict) and "seen" in value:
            plan, _, date = rest.partition(":schedule:")
            if name == "daily_nutrition":
                plan, date = value["plan_id"], rest.partition(":")[2]
            row = rows.get(plan)
            fence = fences.get(int(rest.split(":")[0].split("-")[0]), {})
            if not fence.get("counts") or value["seen"] != fence["version"]:
                continue
            want = row and (row.days[date].version if date else row.version)
            if not row or int(value["version"]) != want:
                yield f"{key} has version {value['version']} in Redis, {want} in MySQL"
            elif date and "focus_area" in value and value["focus_area"] != row.days[date].mark:
                yield f"{key} has {value['focus_area']!r} in Redis, {row.days[date]} in MySQL"
