"""Everything dies, again and again, while runs go on; then every paper has its result, and every
cent its place.

    fault.py [--seconds N] [--seed N] [--kinds node,redis,...] [--pace X] [--keep FOLDER] [--logs]

The same seed gives the same faults at the same times and the same wishes of the same people; what
the machine makes of it differs a little. On a failure logs and events are kept, and it is said
where."""
import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import checks
import checks_extract
import checks_papers
import checks_posts
import disk
import extracts
import files
import harness
import papers
import plans
import points
import pools
import posters
import queues
import schedule
import snapshot
from embedder import Embedder
from harness import equal, note, ok, redis_link, run, run_tests, sql, test, wait_for
from people import Extractor, Person, Plan, Planner, Poster
from sim import certificate
from stores import Server, Sim, Stores, World
from watcher import Permits, Watcher

SAMPLE = 30000
PAPERS_MINUTE = 20000  # submitted in a minute of faults, at least
PEOPLE = {"ada": ("20000.00", 40), "ben": ("3000.00", 30), "cai": ("8000.00", 30),
          "dora": ("5000.00", 30), "eva": ("12000.00", 20)}
PLANNER = {"flo": ("20.00", 10)}
EXTRACTORS = {"gus": ("4000.00", 20), "hal": ("4000.00", 10)}
POSTERS = {name: ("500.00", 10) for name in ("jan", "kim", "nia")}
SEEKERS = {"leo": ("0.00", 1), "mia": ("0.00", 1)}
AI_MS, AI_FAIL, EXTRACT_FAULT, EMBED_FAULT = 50, 0.05, 0.3, 0.1
FIRST_S = 120  # until everybody has runs that are archived, before anything dies
SETTLE_S = 120  # until all runs have ended, once nothing dies any more
QUIET_S = 20  # until all money is in MySQL after that
ARCHIVE_S = 45  # until all runs are: whoever held the lock may be dead
PROGRAMS, PROGRAM_PAUSE_S = 4, 0.1  # that take items out of pools
ADMIN_PAUSE_S = 3  # between two pauses of a queue
QUEUE_LOOK_S = 0.1
ASKS = 2  # about a document, on average, at most
QUEUES_S = 20  # until they are empty: a lease may have to end
PAPERS_S = 90  # until papers are loaded and embedded: units wait longer with each try
LIKE_PAPERS = 10
SEEN_S = 20  # until all indexes have what MySQL has
ASKED_ABOUT = 15  # posts that are searched for by each user, in the end: so many a minute allows
TOLD_S = 20  # until Redis has heard of what became of plans, and webhooks of tasks
MARKED_S = 20  # until all that they took is noted in MySQL


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument(
        "--seed", type=int, default=int(
            os.environ.get("MILLRACE_FAULT_SEED") or random.SystemRandom().randrange(10**6)))
    p.add_argument(
        "--kinds",
        help="only these faults, by commas: " + ", ".join([*schedule.FAULTS, *schedule.ONCE]))
    p.add_argument("--pace", type=float, default=1, help="so many times as often")
    p.add_argument("--papers", type=int, help="to submit at least")
    p.add_argument("--keep", default="build-test/fault", help="folder for the logs of a failed run")
    p.add_argument("--logs", action="store_true", help="keep them also if all is well")
    return p.parse_args()


def none(problems, name, most=20):
    found = list(problems)
    more = [f"... and {len(found) - most} more"] if len(found) > most else []
    return ok(not found, name, *found[:most], *more)


def settle(people, events):
    """Nothing dies any more; from here on there are only users, who want their runs to end."""
    events("test", "the faults are over")
    began = time.monotonic()
    for p in people:
        p.move("recharge", 100000)
    while not all([p.settle()
                   for p in people]) and time.monotonic() - began < SETTLE_S * harness.SCALE:
        time.sleep(0.5)  # people look again
    note(f"runs have ended {time.monotonic() - began:.1f} s after the last fault")


def quiet(stores):
    """Whatever Redis has of money is in MySQL, and of runs that have ended, too."""
    began = time.monotonic()
    waiting = lambda: [uid for (uid,) in sql(stores, "SELECT uid FROM user_info")
                       if redis_link(stores)("LLEN", f"billing_queue:{uid}")]
    outbox = lambda: sql(stores, "SELECT uid FROM ledger_outbox")
    wait_for(lambda: not waiting() and not outbox(), QUIET_S)
    none([f"user {uid} has records that wait" for uid in waiting()] +
         [f"the outbox has {row}" for row in outbox()], "all money is in MySQL")
    note(f"money is in MySQL after {time.monotonic() - began:.1f} s")
    waits = lambda: sql(stores, "SELECT query_id, status FROM query_log WHERE archived = 0")
    wait_for(lambda: not waits(), ARCHIVE_S)
    note(f"runs are archived after {time.monotonic() - began:.1f} s")
    none([f"run {qid}, {state}, is not archived" for qid, state in waits()],
         "all runs are archived")


def check_stores(world, corpus, people, watcher):
    stores, by_uid = world.stores, {p.uid: p for p in people}

    def show(uid, qid):
        r = by_uid[uid].ask("GET", f"/api/queries/{qid}")
        return r.body if r else {}
    runs, moves = snapshot.runs(stores, corpus, show), snapshot.movements(stores)
    none(checks.ended(runs), "every run has ended")
    none(checks.not_failed(runs), "no run FAILED")
    none(checks.complete(runs), "every paper of a run that is DONE has one result or one failure")
    none(checks.frozen(runs,
                       set().union(*(p.changed for p in people))),
         "distillations have the papers that were relevant")
    none(checks.retried(runs), "papers that failed were judged when they were tried again")
    none(checks.charged_once(runs, moves), "every verdict was paid for once, and nothing else was")
    none(checks.reversals(moves), "every reversal gives back one charge")
    made, extracted = plans.tasks(stores), extracts.spent(stores)
    embedded = posters.spent(stores)
    nothing = lambda: {"recharge": 0, "deduct": 0}  # of users who have no money
    moved = collections.defaultdict(nothing)
    for p in people:
        paid = sum(sum(x.paid) for x in made if x.uid == p.uid)
        paid += extracted.get(p.uid, 0) + embedded.get(p.uid, 0)
        moved[p.uid] = {**p.moved, "deduct": p.moved["deduct"] + paid}
    none(checks.balances(snapshot.balances(stores), moves, moved),
         "balances are what was moved")
    none(checks.never_negative(watcher.lowest), "no balance was ever below zero")
    none(checks.counts(runs), "runs say of themselves what is there")
    pages = {r.qid: by_uid[r.uid].results(r.qid) for r in runs}
    none(checks.handed_out(runs, pages), "users get the results that are there")
    check_files(people, pages, files.Corpus(stores))
    none(
        checks.promises(runs,
                        set().union(*(p.accepted for p in people)),
                        set().union(*(p.terminated for p in people))), "what users were told is so")
    none(checks.nothing_left(runs, *snapshot.units(stores)),
         "no unit, and no run that has ended, is left behind")
    return runs, moves


def ask_again(people):
    """The same files, now that nothing goes wrong any more: {(qid, kind, scope): bytes}."""
    again, asked = {}, set()
    for p in people:
        mine = [f for f in p.downloads.files if f.sure and f.body is not None]
        for f in mine:
            if (key := (f.qid, f.kind, f.scope)) in asked:
                continue
            asked.add(key)
            if later := p.downloads.ask(*key, sure=True):
                wait_for(lambda: p.downloads.look(later) or later.ended, 20)
                again[key] = later.body
    return again


def check_files(people, pages, corpus):
    during = [f for p in people for f in p.downloads.files]
    again = ask_again(people)
    every = [f for p in people for f in p.downloads.files]
    none(files.problems(every, pages, corpus),
         "files that were asked for have an end, and are right")
    none(files.differing(during, again),
         "files of archived runs are the same, byte for byte, later on")
    states = {s: sum(f.state == s for f in during) for s in sorted({f.state for f in during})}
    note(f"{len(during)} files {states}, {sum(f.sure for f in during)} of archived runs, "
         f"{sum(f.task is None for f in during)} at once; "
         f"{sum(len(f.body or b'') for f in during)} bytes")


def check_pools(world, programs, stock):
    """Now that nothing dies any more: as it is, and when all of the rest was taken, too."""
    losses, answers = world.redis_losses // 2, lambda: [a for p in programs for a in p.answers]
    for p in programs:
        p.finish()
    cut = lambda: {name: sum(p.cut[name] for p in programs) for name in pools.GROUPS}
    for when in ("", ", to the last"):
        wait_for(lambda: pools.settled(world.stores), MARKED_S)
        now = pools.look(world.stores)
        none(checks.handed_once(answers()), f"no item of a pool is in two answers{when}")
        none(checks.repeats_alike(answers(), world.redis_troubled),
             f"repeats get the same items{when}")
        none(checks.items_accounted(now, answers()),
             f"every item is usable, in a list, or used{when}")
        none(checks.in_order(now, answers()), f"items are handed out in their order{when}")
        none(checks.unseen_bounded(now, answers(), cut(), losses),
             f"no more items are used up unseen than may be{when}")
        none(checks.imported(now, stock.texts), f"what was put in is there once{when}")
        if not when:
            note_pools(now, answers(), cut(), losses, stock, world.redis_troubled)
            pools.rest(programs[0])
    none([f"{p.name}: {i} is not used" for p in now for i, x in p.items.items() if x[0] != 0],
         "in the end all items are used")


def check_queues(world, admin, watcher):
    wait_for(lambda: queues.empty(world.stores), QUEUES_S)
    watcher.stopped.set()
    watcher.join()
    every = [q for samples in watcher.samples.values() for q in samples]
    none((line for q in every for line in checks.queue_sound(q)),
         "a job is in one place of its queue, and counted for its user, at any moment")
    none((line for samples in watcher.samples.values()
          for line in checks.first_come(samples, world.troubled)), "jobs are taken in their order")
    none((line for samples in watcher.samples.values()
          for line in checks.pauses_kept(samples, admin.paused)), "paused queues stand still")
    link = redis_link(world.stores)
    none((line for name in queues.QUEUES for line in checks.queue_empty(queues.look(link, name))),
         "nothing is left in a queue")
    order = sum(len(checks.taken(*pair)) for samples in watcher.samples.values()
                for pair in checks.in_view(samples, world.troubled))
    note(f"queues were looked at {watcher.looks} times, {len(every)} of them differ; at most "
         f"{max((len(q.jobs) for q in every), default=0)} jobs at once; the order of {order} was"
         f" seen; "
         f"{len(admin.paused)} pauses; {sum(bool(q.held) for q in every)} times some were held")


def check_plans(world, people):
    stores, mine = world.stores, [p.plans for p in people]
    told = lambda: not list(checks.plan_caches(plans.cached(stores), plans.tasks(stores),
                                               plans.plans(stores), plans.owners(stores)))
    wait_for(told, TOLD_S)
    tasks, made, owners = plans.tasks(stores), plans.plans(stores), plans.owners(stores)
    seen = {i: status for m in mine for i, status in m.tasks.items()}
    none(checks.plan_tasks_ended(tasks), "every plan was made, failed with a reason, or cancelled")
    none(checks.plans_paid(tasks), "plans that were made are paid for once, others are not")
    none(checks.plans_whole(tasks, made), "there is a plan for each task, with all of its days")
    none(checks.plans_told(tasks, seen, set().union(*(m.cancelled for m in mine))),
         "what users were told of plans is so")
    none(checks.plans_reserved(tasks, plans.reserved(stores)), "nothing is reserved for plans")
    none(checks.plans_changed(made, {k: v for m in mine for k, v in m.days.items()}),
         "days are as they were changed, and late changes have not won")
    none(checks.plans_active(owners, made, {(m.person.uid, kind): ids for m in mine
                                            for kind, ids in m.active.items()}),
         "the plans that were chosen are active")
    none(checks.plan_caches(plans.cached(stores), tasks, made, owners),
         "Redis has of plans what MySQL has")
    states = {s: sum(x.state == s for x in tasks) for s in sorted({x.state for x in tasks})}
    note(f"{len(tasks)} plans {states}, {len(plans.cached(stores))} keys in Redis;"
         f" {sum(len(v) - 1 for m in mine for v in m.days.values())} changes of days,"
         f" {sum(m.stale for m in mine)} too late")
    for why in sorted({x.error for x in tasks if x.state == "failed"}):
        note(f"  failed: {why}")


def check_extracts(world, people):
    stores, mine = world.stores, [p.extracts for p in people]
    wait_for(lambda: extracts.hurry(stores), TOLD_S)
    tasks, union = extracts.tasks(stores), lambda name: {
        k: v for m in mine for k, v in getattr(m, name).items()}
    known, secrets = union("known"), union("secrets")
    calls = extracts.calls(world.hook, secrets)
    none(checks_extract.ended(tasks),
         "every document of a task is completed, ended in an error with a reason, or is cancelled")
    none(checks_extract.tried_again(tasks, extracts.OWN_ERRORS),
         "documents that failed were completed when they were tried again")
    none(checks_extract.paid(tasks, extracts.payments(stores)),
         "documents that are completed are paid for once, others are not")
    none(checks_extract.reserved(tasks, extracts.reserved(stores)),
         "nothing is reserved for documents")
    none(checks_extract.told(tasks, union("accepted"), union("tasks"),
                             set().union(*(m.cancelled for m in mine))),
         "what users were told of tasks is so")
    none(checks_extract.closed(tasks, union("opened")), "tasks are closed once, each time")
    none(checks_extract.values_right(tasks, union("values"), known),
         "values are those of their documents")
    none(checks_extract.edited(tasks, known),
         "values are as they were edited, and late edits have not won")
    none(checks_extract.hooks_told(tasks, calls, {i for i, s in secrets.items() if s}),
         "webhooks are told of each closing, with one id, signed")
    note_extracts(world, tasks, mine, calls)
    return sum(len(x.rows) for x in tasks)


def note_extracts(world, tasks, mine, calls):
    rows = [d for x in tasks for d in x.rows.values()]
    count = lambda words: {w: words.count(w) for w in sorted(set(words))}
    note(f"{len(tasks)} tasks {count([x.status for x in tasks])} of {len(rows)} documents"
         f" {count([d.state for d in rows])}, {sum(max(0, x.total - 100) for x in tasks)} of lower"
         f" priority; {sum(max(0, x.closed - 1) for x in tasks)} were tried again,"
         f" {sum(m.repeats for m in mine)} requests repeated;"
         f" {sum(m.edits for m in mine)} edits, {sum(m.stale for m in mine)} too late;"
         f" {world.pdf_children} children that read PDFs were killed")
    note(f"{len(calls)} calls of webhooks with {len({c.id for c in calls})} ids,"
         f" {world.hook.statuses.count} of them were refused")
    for why, times in sorted(count([d.error for d in rows if d.state == "error"]).items()):
        note(f"  error: {why[:150]}: {times}")


def check_posts(world, people, seekers):
    stores, mine = world.stores, [p.posts for p in people]
    known = {i: k for m in mine for i, k in m.known.items()}
    unclear = [content for m in mine for content in m.unclear]
    over = lambda: not sql(stores, "SELECT id FROM tb_post WHERE rag_status <> 'completed'"
                                   " OR tags_due = 1 OR deleted IS NOT NULL")
    wait_for(over, QUEUES_S)
    every = posters.posts(stores, world.embedder)
    none(checks_posts.ended(every), "every post is embedded, and nothing is left to do")
    none(checks_posts.written(every, known, unclear), "posts are as their writers know them")
    none(checks_posts.vectors(every, points.space(stores, posters.COLLECTION)),
         "posts have the vectors of their last content, and no others")
    none(checks_posts.nothing_else(
        every, points.owners(stores, posters.COLLECTION, posters.WORDS)),
         "nothing is left of posts that are gone")
    none(checks_posts.tagged(every), "points and words have the last title and visibility")
    none(checks_posts.paid(every, posters.payments(stores), known, unclear),
         "posts are paid for once, and not oftener than their writers wished")
    none(checks_posts.reserved(every, posters.reserved(stores)), "nothing is reserved for posts")
    check_indexes(world, posters.COLLECTION, "every index of posts")
    return every, seekers


def check_indexes(world, collection, what):
    stores = world.stores
    wrong = lambda: list(checks_posts.stores(
        points.store_rows(stores, collection), points.store_points(stores, collection),
        {s.port: points.counted(s, collection) for s in world.servers}))
    wait_for(lambda: not wrong(), SEEN_S)
    none(wrong(), f"{what} has all changes, and all points")


def check_found(world, people, seekers, every, admin):
    """A search of all that there is, on every machine: by an admin, a writer, and another user."""
    who = {"an admin": (0, admin.token)}
    for p in (*[p for p in people if p.posts.known][:1], seekers[0]):
        who[p.name] = (p.uid, p.token)
    none(checks_posts.found(every, posters.answers(world.servers, who, every, ASKED_ABOUT)),
         "searches find what their users may see, on every machine, and nothing else")
    total = {}
    for p in people:
        for what, n in p.posts.count.items():
            total[what] = total.get(what, 0) + n
    note(f"{len(every)} posts with {sum(len(p.chunks) for p in every)} vectors, {total};"
         f" {sum(len(c) for c in posters.payments(world.stores).values())} payments;"
         f" others looked {sum(s.looks for s in seekers)} times for what is hidden, and found"
         f" {sum(s.hits for s in seekers)} things")


def check_papers(world, librarian):
    """Without any help papers have their vectors, but for those that the service refused: all
    journals are asked for once more, as an admin does; then, again, nothing is left to ask it
    for."""
    stores, embedder, there = world.stores, world.embedder, librarian.papers
    began = time.monotonic()
    ok(librarian.settle(PAPERS_S), "papers are loaded, and all their units are done",
       *checks_papers.ended(papers.units(stores)))
    note(f"papers are embedded after {time.monotonic() - began:.1f} s")
    now, space = papers.indexed(stores, embedder), points.space(stores, papers.COLLECTION)
    none(checks_papers.lacking(there, now, papers.units(stores), librarian.asked),
         "papers lack vectors only if the service gave none")
    done = {d: p for d, p in there.items() if (x := now.get(checks_papers.owner(d))) and x.space}
    none(checks_papers.vectors(done, now, space), "others have those of their present text")
    ok(librarian.ask_all(PAPERS_S), "all are asked for again, and done")
    during, before = embedder.asked(), papers.indexed(stores, embedder)
    ok(during, "it is known what the service was asked for")
    ok(librarian.ask_all(PAPERS_S), "asked for once more, they are done again")
    none([f"{text[:100]!r}" for c in embedder.asked()[len(during):] for text in c.texts],
         "but not embedded again")
    now, units = papers.indexed(stores, embedder), papers.units(stores)
    ok(now == before, "nor changed")
    none(checks_papers.loaded(there, papers.corpus(stores)), "papers are as they were loaded")
    none(checks_papers.ended(units), "every unit of papers is done")
    none(checks_papers.counts(units, there), "units of papers count what is there")
    none(checks_papers.rows(there, now), "every paper that has a text is indexed once")
    none(checks_papers.vectors(there, now, space),
         "papers have the vectors of their present text, and no others")
    none(checks_papers.tagged(there, now), "points and words of papers have their place")
    none(checks_papers.nothing_else(
        there, points.owners(stores, papers.COLLECTION, papers.WORDS)),
         "nothing is left of papers that are gone")
    check_indexes(world, papers.COLLECTION, "every index of papers")
    none(checks_papers.found(there, papers.answers(
        world.servers, librarian.token, there, librarian.random, LIKE_PAPERS)),
         "searches find the papers that are there, on every machine, and nothing else")
    note_papers(world, librarian, during)


def note_papers(world, librarian, calls):
    there = librarian.papers.values()
    mine = [checks_papers.Call(c.sent, c.ended, *(type(x)(
        t for t in x if checks_papers.TOKEN.search(t)) for x in (c.texts, c.good))) for c in calls]
    mine = [c for c in mine if c.texts]
    asked = [t for c in mine for t in c.texts]
    again, calm = checks_papers.repeats(mine, world.troubled)
    note(f"{len(there)} papers, {sum(map(checks_papers.blank, there))} without a text;"
         f" {librarian.count}")
    early = sum(len(c.texts) for c in mine if c.sent < librarian.over)
    note(f"the service was asked {len(mine)} times for {len(asked)} texts of papers, {early} of"
         f" them during the faults; {len(set(asked))} are different;"
         f" {sum(len(c.texts) - len(c.good) for c in mine)} got no vector; {again} were asked for"
         f" again after they had one, {len(calm)} of these without a fault in between")
    for text, before, c in calm[:10]:
        note(f"  {text[:60]!r} at {before.sent:.2f} to {before.ended:.2f}, with"
             f" {len(before.texts)}, {len(before.good)} of them good, and at {c.sent:.2f}")


def note_pools(now, answers, cut, losses, stock, troubled):
    for p in now:
        mine = [a for a in answers if a.group == p.name]
        repeats = len(mine) - len({a.key for a in mine})
        direct = [a for a in mine if all(p.items[i][1] == 0 for i in a.ids)]
        calm = sum(not troubled(a.sent, a.got) for a in direct)
        note(f"pool {p.name}: {len(p.items)} items, {len(mine)} answers ({repeats} repeats,"
             f" {len(direct)} by MySQL, {calm} of them without trouble of Redis); used up unseen"
             f" {checks.unseen(p, answers)}: {cut[p.name]} in answers cut off, {p.unseen} lost with"
             f" Redis, {losses} times")
    note(f"{stock.batch - 1} imports each, {stock.tries} tries")


def audit(stores):
    done = run("audit", "--json", env=stores.settings(), timeout=60)
    drift = None
    with contextlib.suppress(ValueError):
        drift = json.loads(done.stdout)["drift_cents"]
    ok(done.returncode == 0 and drift == 0, "millrace audit finds nothing", done.returncode,
       done.stdout[:3000], done.stderr)


def tell(world, runs, moves, people, watcher, chaos, documents):
    kinds = [f.kind for f in chaos.schedule]
    states = {s: sum(r.state == s for r in runs) for s in sorted({r.state for r in runs})}
    papers, judged = sum(len(r.papers) for r in runs), sum(len(r.results) for r in runs)
    failed = sum(v is None for r in runs for v in r.results.values())
    calls = world.sim.calls + world.sim.stats()["requests"]
    none(checks.calls_bounded(calls - world.sim.wasted - documents * ASKS, moves, runs, kinds),
         "papers that have a result are not judged again")
    note(f"{len(runs)} runs {states} of {papers} papers; {judged} judged, {failed} of them failed")
    by_qid = {r.qid: r for r in runs}
    distilled = [r for r in runs if r.original]
    note(f"{len(distilled)} of them distillations, "
         f"{sum(by_qid[r.original].original is not None for r in distilled)} of those of "
         f"distillations; {sum(len(r.papers) for r in distilled)} papers")
    note(f"{calls} AI calls, {calls / max(1, judged):.2f} for each paper that was judged")
    note("faults: " + ", ".join(f"{k} {kinds.count(k)}" for k in sorted(set(kinds))))
    note(f"{sum(m.kind == 'charge' for m in moves)} charges, "
         f"{sum(m.kind == 'reversal' for m in moves)} reversals; "
         f"balances were looked at {watcher.looks}")
    for (what, answer), count in sorted(
            sum((p.told for p in people), start=type(people[0].told)()).items()):
        note(f"  {what}: {answer}: {count}")


def keep_logs(opts, world, events):
    where = os.path.join(os.path.abspath(opts.keep), str(opts.seed))
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, "events"), "w") as f:
        f.write("\n".join(events.lines) + "\n")
    for i, server in enumerate(world.servers):
        shutil.copy(os.path.join(server.cwd, "err"),
                    os.path.join(where, f"server-{i}-{server.port}.log"))
    for name in ("redis", "mariadb"):
        shutil.copy(f"{world.stores.data}/log/{name}.log", where)
    note(f"logs and events: {where}")


def chaos_and_people(opts, world, corpus, events):
    kinds = opts.kinds.split(",") if opts.kinds else [*schedule.FAULTS, *schedule.ONCE]
    if not world.stores.disks:
        kinds = [k for k in kinds if k not in schedule.DISK]
        note(f"no disk can be mounted here: without {', '.join(schedule.DISK)}")
    if not extracts.PDFS:
        kinds = [k for k in kinds if k != "pdf_child"]
        note("there is no pdftotext here: without pdf_child")
    papers = opts.papers or int(PAPERS_MINUTE * opts.seconds / 60)
    plan = Plan(corpus, papers, opts.seconds, len(PEOPLE), pause_s=0.4)
    people = [Person(name, plan, world, opts.seed, events) for name in PEOPLE]
    people += [Planner(name, plan, world, opts.seed, events) for name in PLANNER]
    people += [Extractor(name, plan, world, opts.seed, events) for name in EXTRACTORS]
    people += [Poster(name, plan, world, opts.seed, events) for name in POSTERS]
    began = time.monotonic()
    for p in people:
        p.log_in()
    while not all([p.prepare() for p in people]):
        assert time.monotonic() - began < FIRST_S * harness.SCALE, "the first runs are not archived"
        time.sleep(0.5)  # people look again
    note(f"everybody has runs that are archived after {time.monotonic() - began:.1f} s")
    watcher = Watcher(world.stores, [p.uid for p in people])
    chaos = schedule.Chaos(world, schedule.make(opts.seed, opts.seconds, kinds, opts.pace), events)
    permits = Permits(world.stores)
    others = Others(opts, world, people, events)
    redis_link(world.stores)("CONFIG", "SET", "aof-timestamp-enabled", "yes")
    for thread in (watcher, permits, others.watcher, chaos, *people, *others.callers):
        thread.start()
    time.sleep(opts.seconds)
    chaos.finish()
    for thread in (*people, *others.callers):
        thread.stopped.set()
    for thread in (*people, *others.callers):
        thread.join()
    wait_for(permits.look, 10)
    permits.stopped.set()
    permits.join()
    return people, others, watcher, chaos


class Others:
    """Besides people: programs that take items out of pools, what puts them in, admins, and users
    who look for hidden posts."""

    def __init__(self, opts, world, people, events):
        pools.put(world.stores)
        self.programs = [pools.Program(f"program-{i}", world, opts.seed, events, PROGRAM_PAUSE_S)
                         for i in range(PROGRAMS)]
        for i, p in enumerate(self.programs):
            p.get_tokens(people[i % len(people)])
        self.stock = pools.Stock(world, events)
        self.admin = queues.Admin(world, opts.seed, events, ADMIN_PAUSE_S)
        self.admin.log_in()
        self.watcher = queues.QueueWatcher(world.stores, QUEUE_LOOK_S)
        self.seekers = [posters.Seeker(name, world, opts.seed, events,
                                       [p.posts for p in people if isinstance(p, Poster)])
                        for name in SEEKERS]
        for s in self.seekers:
            s.log_in()
        self.librarian = papers.Librarian(world, opts.seed, events)
        self.librarian.prepare(self.admin.token)
        self.callers = [*self.programs, self.stock, self.admin, *self.seekers, self.librarian]


def suite(opts):
    events = schedule.Events()
    with contextlib.ExitStack() as stack:
        users = PEOPLE | PLANNER | EXTRACTORS | POSTERS | SEEKERS
        stores = stack.enter_context(Stores(SAMPLE, users, small_disks=disk.separate()))
        sim = stack.enter_context(Sim(opts.seed, AI_MS, AI_FAIL, EXTRACT_FAULT))
        embedder = stack.enter_context(
            Embedder(opts.seed, AI_MS, AI_FAIL, embed_fault=EMBED_FAULT))
        trusted = certificate("hook")
        hook = stack.enter_context(extracts.Hook(trusted, random.Random(f"{opts.seed} hook")))
        settings = {**plans.LIMITS, **extracts.SETTINGS, **posters.SETTINGS,
                    "MILLRACE_AI_EMBEDDING_URL": embedder.url,
                    "MILLRACE_WEBHOOK_ALLOW": "127.0.0.0/8",
                    "MILLRACE_WEBHOOK_CA_FILE": trusted[0]}
        servers = [stack.enter_context(Server(stores, sim, **settings)) for _ in range(2)]
        world = World(stores, servers, sim, hook, embedder)
        try:
            ready = wait_for(lambda: all(s.ready() for s in servers), 60)
            assert ready, "the servers are not ready"
            corpus = snapshot.corpus(stores)
            people, others, watcher, chaos = chaos_and_people(opts, world, corpus, events)
            none(chaos.problems, "all faults could be made")
            settle(people, events)
            quiet(stores)
            watcher.stopped.set()
            watcher.join()
            runs, moves = check_stores(world, corpus, people, watcher)
            check_plans(world, people)
            documents = check_extracts(world, people)
            embedder.stop()
            embedder.start("--fail", "0")
            every, seekers = check_posts(world, people, others.seekers)
            check_found(world, people, seekers, every, others.admin)
            check_papers(world, others.librarian)
            check_queues(world, others.admin, others.watcher)
            check_pools(world, others.programs, others.stock)
            audit(stores)
            callers = [*people, *others.programs, others.admin, others.librarian, *others.seekers]
            none([line for p in callers for line in p.problems],
                 "users were answered as they may be")
            tell(world, runs, moves, callers, watcher, chaos, documents)
        finally:
            if opts.logs or harness._failed or sys.exc_info()[0]:
                keep_logs(opts, world, events)


def main():
    opts = options()
    sys.argv[1:] = []
    note(f"seed {opts.seed}, {opts.seconds:.0f} s: "
         f"./test fault {opts.seconds:.0f} --seed {opts.seed}")
    test("faults")(lambda: suite(opts))
    run_tests()


if __name__ == "__main__":
    main()
