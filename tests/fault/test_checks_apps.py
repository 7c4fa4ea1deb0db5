"""Can the fault suite see what it looks for? Its checks of plans, extraction, posts and papers on
stores that are wrong."""
import base64
import copy
import json
import os
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "server"))
import checks
import checks_extract
import checks_papers
import checks_posts
import embedder
from checks import Day, MadePlan, PlanTask
from checks_extract import Call, Document, Extraction
from checks_papers import Indexed, Paper, Unit, owner
from checks_posts import Chunk, Known, Post
from harness import equal, run_tests, test

# --- plans ---

def plan_world():
    """A user who had three plans made: one was, one failed, one was cancelled."""
    days = {f"2027-03-{d:02}": Day(1, "legs") for d in range(1, 8)}
    days["2027-03-02"] = Day(3, "mine")
    tasks = [PlanTask("1-a", 1, "training", "completed", "", "1-ta", 1, 100, [100]),
             PlanTask("1-b", 1, "nutrition", "failed", "no plan", "", 1, 100, []),
             PlanTask("1-c", 1, "training", "cancelled", "", "", 1, 100, [])]
    cached = {
        "user:1:plans": {"run": "g", "version": "4", "counts": True},
        "training_plan:1-ta": {"seen": "4", "version": "3"},
        "training_plan:1-ta:schedule:2027-03-02": {"seen": "4", "version": "3",
                                                   "focus_area": "mine"},
        "training_plan:1-ta:schedule:2027-03-03": {"seen": "3", "version": "9",
                                                   "focus_area": "old, and counts no more"},
        "training_plan:1:active": "1-ta", "generation_task:1-a": {"status": "completed"},
        "user:1:pending_tasks": set()}
    return {"tasks": tasks, "plans": [MadePlan("1-ta", 1, "training", 3, 1, days)],
            "seen": {"1-a": "completed", "1-b": "generating", "1-c": "cancelled"},
            "cancelled": {"1-c"}, "reserved": [], "cached": cached,
            "days": {("1-ta", "2027-03-02"): {1: {"legs"}, 2: {"", "x"}, 3: {"mine"},
                                              4: {"", "y"}}},
            "owners": {1: (4, 0, {"training": "1-ta", "nutrition": ""})},
            "active": {(1, "training"): {"1-ta"}}}


def plan_found(change=lambda w: None):
    w = plan_world()
    change(w)
    said = {"ended": checks.plan_tasks_ended(w["tasks"]), "paid": checks.plans_paid(w["tasks"]),
            "whole": checks.plans_whole(w["tasks"], w["plans"]),
            "told": checks.plans_told(w["tasks"], w["seen"], w["cancelled"]),
            "reserved": checks.plans_reserved(w["tasks"], w["reserved"]),
            "changed": checks.plans_changed(w["plans"], w["days"]),
            "active": checks.plans_active(w["owners"], w["plans"], w["active"]),
            "caches": checks.plan_caches(w["cached"], w["tasks"], w["plans"], w["owners"])}
    return sorted(name for name, lines in said.items() if list(lines))


def day(w, date="2027-03-02"):
    return w["plans"][0].days[date]


WRONG_PLANS = [
    ("a task has not ended", ["ended"], lambda w: setattr(w["tasks"][1], "state", "working")),
    ("a task failed without a word", ["ended"], lambda w: setattr(w["tasks"][1], "error", "")),
    ("one that is completed is not paid", ["paid"], lambda w: w["tasks"][0].paid.clear()),
    ("or twice", ["paid"], lambda w: w["tasks"][0].paid.append(100)),
    ("or at another price", ["paid"], lambda w: setattr(w["tasks"][0], "paid", [99])),
    ("one that failed is paid", ["paid"], lambda w: w["tasks"][1].paid.append(100)),
    ("one that was cancelled is paid", ["paid"], lambda w: w["tasks"][2].paid.append(100)),
    ("a plan is not there", ["active", "caches", "whole"], lambda w: w["plans"].clear()),
    ("a plan lacks a day", ["whole"], lambda w: w["plans"][0].days.pop("2027-03-07")),
    ("a plan is another user's", ["active", "whole"], lambda w: setattr(w["plans"][0], "uid", 2)),
    ("a plan that none has asked for", ["whole"],
     lambda w: w["plans"].append(MadePlan("1-tz", 1, "training", 1, 1, {}))),
    ("a task that was accepted is not there", ["told"],
     lambda w: w["seen"].update({"1-z": "generating"})),
    ("a task that was seen to have ended has another end", ["told"],
     lambda w: w["seen"].update({"1-b": "completed"})),
    ("a task that was cancelled was made", ["told"], lambda w: w["cancelled"].add("1-a")),
    ("money stays reserved", ["reserved"], lambda w: w["reserved"].append("1-c")),
    ("a change is lost", ["caches", "changed"],
     lambda w: w["plans"][0].days.update({"2027-03-02": Day(1, "legs")})),
    ("a late change has won", ["caches", "changed"], lambda w: setattr(day(w), "mark", "x")),
    ("a day was changed by none", ["changed"],
     lambda w: w["plans"][0].days.update({"2027-03-05": Day(2, "z")})),
    ("another plan is active", ["active", "caches"],
     lambda w: w["owners"].update({1: (4, 0, {"training": "1-tz", "nutrition": ""})})),
    ("none is active", ["active", "caches"],
     lambda w: w["owners"].update({1: (4, 0, {"training": "", "nutrition": ""})})),
    ("one that was not chosen is", ["active"],
     lambda w: w["active"].update({(1, "training"): {"1-tz"}})),
    ("Redis has not heard of a change", ["caches"],
     lambda w: w["owners"].update({1: (5, 0, {"training": "1-ta", "nutrition": ""})})),
    ("and has not been told", ["caches"],
     lambda w: w["owners"].update({1: (4, 1, {"training": "1-ta", "nutrition": ""})})),
    ("Redis has an old plan", ["caches"],
     lambda w: w["cached"]["training_plan:1-ta"].update(version="2")),
    ("Redis has an old day", ["caches"],
     lambda w: w["cached"]["training_plan:1-ta:schedule:2027-03-02"].update(version="2")),
    ("Redis has another day", ["caches"],
     lambda w: w["cached"]["training_plan:1-ta:schedule:2027-03-02"].update(focus_area="x")),
    ("Redis has an old active plan", ["caches"],
     lambda w: w["cached"].update({"training_plan:1:active": "1-tz"})),
    ("Redis has a task that goes on", ["caches"],
     lambda w: w["cached"]["generation_task:1-a"].update(status="generating")),
    ("a task that has ended is pending", ["caches"],
     lambda w: w["cached"]["user:1:pending_tasks"].add("1-a")),
]


@test("plans that are not as they should be")
def _():
    equal(plan_found(), [], "nothing is wrong")
    for name, want, change in WRONG_PLANS:
        equal(plan_found(change), want, name)
    may_be = lambda w: w["plans"][0].days.update({"2027-03-02": Day(4, "y")})
    w = plan_world()
    may_be(w)
    equal(list(checks.plans_changed(w["plans"], w["days"])), [],
          "a change whose answer was lost may be there")


# --- extraction ---

def extract_world():
    """A user with two tasks: one was tried again, so it was closed twice; one was cancelled, when a
    document had been paid."""
    document = lambda state, source, value=None, **more: Document(
        **{"state": state, "error": "wrong" if state == "error" else "", "version": 1, "cents": 10,
           "paid": [10] if state == "completed" else [], "source": source, "value": value, **more})
    tasks = [Extraction("1-a", 1, "completed", 2, 3, True, {
                 1: document("completed", "d1", 7.5), 2: document("error", "d2"),
                 3: document("completed", "d3", 9.25, version=4, edits=[(3, 8.25), (4, 9.25)])}),
             Extraction("1-b", 1, "cancelled", 0, 2, True, {
                 1: document("completed", "d1", 7.5), 2: document("cancelled", "d3")})]
    calls = [Call("task-1-a-1", "1-a", 1, 2, b"x", True),
             *(Call("task-1-a-2", "1-a", 2, 1, b"y", True) for _ in range(2))]
    return {"tasks": tasks, "calls": calls, "reserved": [],
            "payments": {"1-a.1": [10], "1-a.3": [10], "1-b.1": [10]},
            "accepted": {"1-a": {"d1", "d2", "d3"}, "1-b": {"d1", "d3"}},
            "seen": {"1-a": "processing", "1-b": "cancelled"}, "cancelled": {"1-b"},
            "opened": {"1-a": (1, 0)}, "values": {"d1": 7.5, "d3": 3.5},
            "known": {("1-a", 3): {2: {3.5}, 3: {"", 8.25}, 4: {9.25}, 5: {"", 1.25}}}}


def extract_found(change=lambda w: None):
    w = extract_world()
    change(w)
    tasks, c = w["tasks"], checks_extract
    said = {"ended": c.ended(tasks), "tried": c.tried_again(tasks, ("wrong",)),
            "paid": c.paid(tasks, w["payments"]), "reserved": c.reserved(tasks, w["reserved"]),
            "told": c.told(tasks, w["accepted"], w["seen"], w["cancelled"]),
            "closed": c.closed(tasks, w["opened"]),
            "values": c.values_right(tasks, w["values"], w["known"]),
            "edited": c.edited(tasks, w["known"]),
            "hooks": c.hooks_told(tasks, w["calls"], {"1-a", "1-b"})}
    return sorted(name for name, lines in said.items() if list(lines))


def row(w, task, place, **change):
    for name, value in change.items():
        setattr(w["tasks"][task].rows[place], name, value)


WRONG_EXTRACTS = [
    ("a document waits", ["ended"], lambda w: row(w, 1, 2, state="pending")),
    ("a document is worked on", ["ended"], lambda w: row(w, 0, 2, state="extracting")),
    ("an error without a word", ["ended", "tried"], lambda w: row(w, 0, 2, error="")),
    ("an error that is not the document's own", ["tried"],
     lambda w: row(w, 0, 2, error="it was killed")),
    ("a document is cancelled, its task is not", ["ended"],
     lambda w: row(w, 0, 2, state="cancelled")),
    ("a task is open", ["closed", "ended"],
     lambda w: setattr(w["tasks"][0], "status", "processing")),
    ("a document is not there", ["ended", "told"], lambda w: w["tasks"][0].rows.pop(2)),
    ("one that is completed is not paid", ["paid"], lambda w: row(w, 0, 1, paid=[])),
    ("or twice", ["paid"], lambda w: row(w, 0, 1, paid=[10, 10])),
    ("or at another price", ["paid"], lambda w: row(w, 0, 1, paid=[9])),
    ("an error is paid", ["paid"], lambda w: row(w, 0, 2, paid=[10])),
    ("one that was cancelled is paid", ["paid"], lambda w: row(w, 1, 2, paid=[10])),
    ("what is in no task is paid", ["paid"], lambda w: w["payments"].update({"1-c.1": [10]})),
    ("money stays reserved", ["reserved"], lambda w: w["reserved"].append("1-b.2")),
    ("or for what is not there", ["reserved"], lambda w: w["reserved"].append("1-c.1")),
    ("a task that was accepted is not there", ["told"],
     lambda w: w["accepted"].update({"1-z": {"d1"}})),
    ("a task is there twice", ["told"], lambda w: w["accepted"].pop("1-b")),
    ("a task has other documents", ["told"], lambda w: w["accepted"].update({"1-b": {"d1", "d2"}})),
    ("one document twice", ["told"], lambda w: row(w, 1, 2, source="d1")),
    ("a task that was seen to have ended has another end", ["told"],
     lambda w: w["seen"].update({"1-a": "cancelled"})),
    ("a task that was cancelled is not", ["told"], lambda w: w["cancelled"].add("1-a")),
    ("a task was closed twice", ["closed"], lambda w: w["opened"].clear()),
    ("or too seldom", ["closed"], lambda w: w["opened"].update({"1-a": (2, 5)})),
    ("one that was cancelled was closed", ["closed", "hooks"],
     lambda w: setattr(w["tasks"][1], "closed", 1)),
    ("a value is another document's", ["values"], lambda w: row(w, 0, 1, value=9.5)),
    ("there is none", ["values"], lambda w: row(w, 1, 1, value=None)),
    ("an edit is lost", ["edited"],
     lambda w: row(w, 0, 3, version=3, value=8.25, edits=[(3, 8.25)])),
    ("a late edit has won", ["edited"], lambda w: row(w, 0, 3, value=8.25)),
    ("an edit is noted twice", ["edited"],
     lambda w: row(w, 0, 3, edits=[(3, 8.25), (4, 9.25), (4, 9.25)])),
    ("an edit is not noted", ["edited"], lambda w: row(w, 0, 3, edits=[(3, 8.25)])),
    ("none has edited it", ["edited", "values"], lambda w: w["known"].clear()),
    ("a closing is not told", ["hooks"], lambda w: w["calls"].pop(0)),
    ("a closing that was none is told", ["hooks"],
     lambda w: w["calls"].append(Call("task-1-b-1", "1-b", 1, 1, b"z", True))),
    ("a task without a webhook is told of", ["hooks"],
     lambda w: setattr(w["tasks"][0], "webhook", False)),
    ("a task that is not there is told of", ["hooks"],
     lambda w: w["calls"].append(Call("task-1-z-1", "1-z", 1, 1, b"z", True))),
    ("a repeat says something else", ["hooks"], lambda w: setattr(w["calls"][2], "body", b"z")),
    ("a call is signed by another", ["hooks"], lambda w: setattr(w["calls"][0], "signed", False)),
    ("a call counts wrong", ["hooks"], lambda w: setattr(w["calls"][1], "success", 3)),
]


@test("tasks of extraction that are not as they should be")
def _():
    equal(extract_found(), [], "nothing is wrong")
    for name, want, change in WRONG_EXTRACTS:
        equal(extract_found(change), want, name)
    maybe = lambda w: w["opened"].update({"1-a": (0, 1)})
    equal(extract_found(maybe), [], "a retry whose answer was lost may have been made")
    later = lambda w: row(w, 0, 3, version=5, value=1.25,
                          edits=[(3, 8.25), (4, 9.25), (5, 1.25)])
    equal(extract_found(later), [], "an edit, too")


# --- posts ---

def post_world():
    """Two users: a post of two chunks that was changed, one that is hidden, one that is empty, and
    one that was deleted. The second post was embedded by hand, which may have been done twice."""
    one, two = "About iron: t00000000000a. \n\n t00000000000b", "About bees: t00000000000c."
    posts = [Post(7, 1, "iron", one, False, 3, 2, "completed", "", 100, "7.4", False, 2,
                  chunks=[Chunk(2, 0, 2, one[:28]), Chunk(2, 1, 2, one[28:])],
                  tags=("iron", False), words=False),
             Post(8, 1, "bees", two, True, 1, 1, "completed", "", 100, "8.6", False, 2,
                  chunks=[Chunk(2, 0, 1, two)], tags=("bees", True), words=True),
             Post(9, 2, "none", " \n", False, 2, 2, "completed", "", 0, "", False, 0)]
    known = {7: Known(1, {3: [("iron", one, False)], 4: [("steel", one, False)]}, wishes=2),
             8: Known(1, {1: [("bees", two, True)]}, wishes=1, perhaps=2),
             9: Known(2, {2: [("none", " \n", False)]}, wishes=1),
             5: Known(2, {1: [("gone", "x", False)]}, deleted=True, wishes=1)}
    return {"posts": posts, "known": known, "unclear": [], "space": 2, "reserved": [],
            "payments": {"7.1": [100], "7.4": [100], "8.2": [100], "8.6": [100], "5.3": [100]},
            "owners": {"point_vector": {7, 8}, "point_owner": {7, 8}, "post_words": {7, 8}},
            "answers": [("an admin", 0, {7: [7, 8], 8: [8]}, {7: [8], 8: [7]}, set()),
                        ("ann", 1, {7: [7, 8]}, {7: [8]}, set()),
                        ("ben", 2, {7: [7]}, {7: []}, set())],
            "rows": [("a", 2, 9, 9, True), ("b", 2, 9, 9, True)], "points": {2: 3},
            "counted": {1: 3, 2: 3}}


def post_found(change=lambda w: None):
    w = post_world()
    change(w)
    posts, c = w["posts"], checks_posts
    said = {"ended": c.ended(posts), "written": c.written(posts, w["known"], w["unclear"]),
            "vectors": c.vectors(posts, w["space"]), "else": c.nothing_else(posts, w["owners"]),
            "tagged": c.tagged(posts), "reserved": c.reserved(posts, w["reserved"]),
            "paid": c.paid(posts, w["payments"], w["known"], w["unclear"]),
            "found": c.found(posts, w["answers"]),
            "stores": c.stores(w["rows"], w["points"], w["counted"])}
    return sorted(name for name, lines in said.items() if list(lines))


def post(w, at, **change):
    for name, value in change.items():
        setattr(w["posts"][at], name, value)


def stranger(w, content):
    w["posts"].append(Post(6, 2, "x", content, False, 1, 1, "completed", "", 0, "", False, 0))


def answer(w, who, part, at, ids):
    w["answers"][who][part][at] = ids


WRONG_POSTS = [
    ("a post waits", ["ended"], lambda w: post(w, 0, status="pending")),
    ("a post failed", ["ended"], lambda w: post(w, 0, status="failed", error="no")),
    ("a post that is deleted stays", ["else", "ended", "found", "written"],
     lambda w: post(w, 0, deleted=True)),
    ("its title is to be told", ["ended"], lambda w: post(w, 0, tags_due=True)),
    ("a post is lost", ["else", "found", "written"], lambda w: w["posts"].pop(0)),
    ("a change is lost", ["written"], lambda w: post(w, 0, version=2)),
    ("a change that none has made", ["tagged", "written"], lambda w: post(w, 0, title="x")),
    ("a content that none has written", ["vectors", "written"],
     lambda w: post(w, 0, content="t0000000000ff.")),
    ("a post is seen that was hidden", ["found", "tagged", "written"],
     lambda w: post(w, 1, hide=False)),
    ("a post is another user's", ["found", "written"], lambda w: post(w, 1, uid=2)),
    ("one that was deleted is there", ["written"], lambda w: w["known"][9].__dict__.update(
        deleted=True)),
    ("one that none has written", ["written"], lambda w: stranger(w, " ")),
    ("vectors are those of an earlier content", ["vectors"],
     lambda w: post(w, 0, content_version=3)),
    ("there are none", ["vectors"], lambda w: post(w, 0, chunks=[])),
    ("of an empty one", ["tagged", "vectors"], lambda w: post(
        w, 2, chunks=[Chunk(2, 0, 2, "")])),
    ("a part is lost", ["vectors"], lambda w: w["posts"][0].chunks.pop()),
    ("a part is there twice", ["vectors"],
     lambda w: w["posts"][0].chunks.append(Chunk(2, 1, 2, ""))),
    ("a part is of another text", ["vectors"],
     lambda w: setattr(w["posts"][0].chunks[0], "text", "t00000000000c")),
    ("a vector is of another text", ["vectors"],
     lambda w: setattr(w["posts"][0].chunks[0], "off", 0.1)),
    ("vectors are of another model", ["vectors"], lambda w: w.update(space=3)),
    ("of both", ["vectors"], lambda w: w["posts"][0].chunks.extend(
        [Chunk(1, 0, 2, "")])),
    ("vectors of one that is gone", ["else"], lambda w: w["owners"]["point_vector"].add(5)),
    ("words of one that is gone", ["else"], lambda w: w["owners"]["post_words"].add(5)),
    ("points have the former title", ["tagged"], lambda w: post(w, 0, tags=("x", False))),
    ("points are not hidden", ["tagged"], lambda w: post(w, 1, tags=("bees", False))),
    ("words are not hidden", ["tagged"], lambda w: post(w, 1, words=False)),
    ("one has no words", ["tagged"], lambda w: post(w, 0, words=None)),
    ("an empty one has words", ["tagged"], lambda w: post(w, 2, words=False)),
    ("the last content is not paid", ["paid"], lambda w: w["payments"].pop("7.4")),
    ("or twice", ["paid"], lambda w: w["payments"].update({"7.4": [100, 100]})),
    ("or at another price", ["paid"], lambda w: w["payments"].update({"7.4": [99]})),
    ("one is paid oftener than was wished", ["paid"],
     lambda w: w["payments"].update({"7.9": [100]})),
    ("and one that may have been", ["paid"], lambda w: w["payments"].update(
        {"8.8": [100], "8.9": [100]})),
    ("one that none has written is paid", ["paid"], lambda w: w["payments"].update({"6.9": [100]})),
    ("money stays reserved", ["reserved"], lambda w: w["reserved"].append("7")),
    ("or for one that is gone", ["reserved"], lambda w: w["reserved"].append("5")),
    ("a post is not found by its words", ["found"], lambda w: answer(w, 0, 2, 7, [8])),
    ("a hidden one is found by others", ["found"], lambda w: answer(w, 2, 2, 7, [7, 8])),
    ("or is like what they see", ["found"], lambda w: answer(w, 2, 3, 7, [8])),
    ("an index lacks a post", ["found"], lambda w: answer(w, 0, 3, 7, [])),
    ("an index has a post twice", ["found"], lambda w: answer(w, 0, 3, 7, [8, 8])),
    ("an index has one that is gone", ["found"], lambda w: answer(w, 0, 3, 7, [8, 5])),
    ("not all were looked for", ["found"], lambda w: w["answers"][0][2].pop(8)),
    ("a search is degraded", ["found"], lambda w: w["answers"][1][4].add("index_rebuilt")),
    ("a store is behind", ["stores"], lambda w: w["rows"].append(("c", 2, 8, 9, True))),
    ("a store is not complete", ["stores"], lambda w: w["rows"].append(("c", 2, 9, 9, False))),
    ("an index has too many points", ["stores"], lambda w: w["counted"].update({2: 4})),
    ("an index cannot be asked", ["stores"], lambda w: w["counted"].update({2: None})),
    ("a former model's vectors are left", ["stores"], lambda w: (
        w["points"].update({1: 0}))),
]


@test("posts that are not as they should be")
def _():
    equal(post_found(), [], "nothing is wrong")
    for name, want, change in WRONG_POSTS:
        equal(post_found(change), want, name)
    lost = lambda w: (stranger(w, " \t"), w["unclear"].append(" \t"),
                      w["payments"].update({"6.9": [100]}))
    equal(post_found(lost), [], "a post whose answer was lost may be there, and paid")
    maybe = lambda w: post(w, 0, version=4, title="steel", tags=("steel", False))
    equal(post_found(maybe), [], "a change, too")
    paid = lambda w: w["payments"].update({"8.8": [100]})
    equal(post_found(paid), [], "a wish, too")


# --- papers ---

A1, A2, A3 = (f"On catalogued iron p{i * 12}" for i in "123")
LONG = "Something is said by p444444444444.", "And something else by p555555555555."


def paper_world():
    """Two of a year, one of them with two vectors; one of another; and one that has no text."""
    papers = {p.doi: p for p in (Paper("d1", "A", 2020, A1, ""), Paper("d2", "A", 2020, A2,
                                                                       " ".join(LONG)),
                                 Paper("d3", "B", 2021, A3, ""), Paper("d4", "B", 2021, "", ""))}
    row = lambda p, *texts: Indexed(p.doi, p.journal, p.year, 77, 9,
                                    [Chunk(9, i, 1, text) for i, text in enumerate(texts)],
                                    (p.journal, p.year), (p.journal, p.year))
    of = lambda doi, *texts: (owner(doi), row(papers[doi], *texts))
    indexed = dict([of("d1", A1), of("d2", f"{A2}\n\n{LONG[0]}", LONG[1]), of("d3", A3)])
    by_block = {("A", 2020, "q"): ["d2", "d1"], ("B", 2021, "q"): ["d3"], ("d1", "", "p1"): ["d1"]}
    return {"papers": papers, "indexed": indexed, "asked": {"A", "B"},
            "corpus": {d: (p.journal, p.year) for d, p in papers.items()},
            "units": [Unit("A", 2020, 2, "completed", "", 1, 0, 1, 1, 0),
                      Unit("A", 2020, 2, "completed", "", 1, 0, 1, 1, 0),
                      Unit("B", 2021, 1, "completed", "", 2, 1, 1, 1, 0)],
            "owners": {"point_vector": set(indexed), "point_owner": set(indexed),
                       "paper_words": set(indexed)},
            "answers": [["here", by_block, {"d1": ["d3", "d2"]}, set()],
                        ["there", copy.deepcopy(by_block), {"d3": ["d1", "d2"]}, set()]]}


def paper_found(change=lambda w: None):
    """Names of the checks that have something to say after a change."""
    w = paper_world()
    change(w)
    said = {"loaded": checks_papers.loaded(w["papers"], w["corpus"]),
            "ended": checks_papers.ended(w["units"]),
            "counts": checks_papers.counts(w["units"], w["papers"]),
            "rows": checks_papers.rows(w["papers"], w["indexed"]),
            "vectors": checks_papers.vectors(w["papers"], w["indexed"], 9),
            "lacking": checks_papers.lacking(w["papers"], w["indexed"], w["units"], w["asked"]),
            "tagged": checks_papers.tagged(w["papers"], w["indexed"]),
            "nothing_else": checks_papers.nothing_else(w["papers"], w["owners"]),
            "found": checks_papers.found(w["papers"], w["answers"])}
    return sorted(name for name, lines in said.items() if list(lines))


def at(w, doi):
    return w["indexed"][owner(doi)]


def unit(w, i, **change):
    for name, value in change.items():
        setattr(w["units"][i], name, value)


WRONG_PAPERS = [
    ("a paper was not loaded", ["loaded"], lambda w: w["corpus"].pop("d1")),
    ("a paper was not withdrawn", ["loaded"], lambda w: w["corpus"].update(d9=("A", 2020))),
    ("a paper was not moved", ["loaded"], lambda w: w["corpus"].update(d1=("A", 2021))),
    ("a unit waits", ["ended"], lambda w: unit(w, 0, state="pending")),
    ("a unit failed", ["ended"], lambda w: unit(w, 0, state="failed")),
    ("a unit counts a paper that has left", ["counts"], lambda w: unit(w, 2, papers=3)),
    ("a unit counts vectors that there are not", ["counts"], lambda w: unit(w, 0, embedded=2)),
    ("a unit has a paper that was refused", ["counts", "lacking"],
     lambda w: unit(w, 0, embedded=0, refused=1)),
    ("a journal that was asked for has no units", ["lacking"], lambda w: w["asked"].add("C")),
    ("a unit is missing", ["counts"],
     lambda w: (w["units"].pop(0), unit(w, 0, papers=2, done=2, embedded=2))),
    ("a paper is not indexed", ["lacking", "rows"], lambda w: w["indexed"].pop(owner("d1"))),
    ("one without a text is", ["rows"], lambda w: w["indexed"].update(
        {owner("d4"): Indexed("d4", "B", 2021, 1, 0)})),
    ("one that was withdrawn is", ["rows"], lambda w: w["indexed"].update(
        {owner("d9"): Indexed("d9", "B", 2021, 1, 0)})),
    ("a paper is indexed where it was before", ["rows"],
     lambda w: setattr(at(w, "d1"), "year", 2019)),
    ("a paper is being removed", ["rows"], lambda w: setattr(at(w, "d1"), "version", -1)),
    ("an owner stands for another", ["rows"], lambda w: setattr(at(w, "d1"), "doi", "d2")),
    ("a paper has no vectors", ["lacking", "vectors"], lambda w: at(w, "d1").chunks.clear()),
    ("a part is missing", ["vectors"], lambda w: at(w, "d2").chunks.pop(0)),
    ("a part of its end is missing", ["vectors"], lambda w: at(w, "d2").chunks.pop()),
    ("a part is there twice", ["vectors"], lambda w: at(w, "d1").chunks.append(
        Chunk(9, 0, 1, A1))),
    ("a vector is of a former text", ["vectors"],
     lambda w: setattr(at(w, "d1").chunks[0], "text", "On catalogued iron p999999999999")),
    ("a vector is of a former text with the same words", ["vectors"],
     lambda w: setattr(at(w, "d1").chunks[0], "text", A1.replace("iron", "bread"))),
    ("a vector is not of its text", ["vectors"],
     lambda w: setattr(at(w, "d3").chunks[0], "off", 0.1)),
    ("a vector is of a former model", ["vectors"],
     lambda w: setattr(at(w, "d1").chunks[0], "space", 8)),
    ("a row is of a former model", ["lacking", "vectors"],
     lambda w: setattr(at(w, "d1"), "space", 0)),
    ("points have a former year", ["tagged"], lambda w: setattr(at(w, "d1"), "tags", ("A", 2019))),
    ("words have a former journal", ["tagged"],
     lambda w: setattr(at(w, "d1"), "words", ("B", 2020))),
    ("there are no words", ["tagged"], lambda w: setattr(at(w, "d1"), "words", None)),
    ("vectors of one that is gone are left", ["nothing_else"],
     lambda w: w["owners"]["point_vector"].add(3)),
    ("words are missing", ["nothing_else"], lambda w: w["owners"]["paper_words"].pop()),
    ("a paper is not found", ["found"], lambda w: w["answers"][1][1]["A", 2020, "q"].pop()),
    ("a paper is found twice", ["found"],
     lambda w: w["answers"][1][1]["A", 2020, "q"].append("d1")),
    ("a paper is found where it was before", ["found"],
     lambda w: w["answers"][1][1]["A", 2020, "q"].append("d3")),
    ("its own word finds another", ["found"],
     lambda w: w["answers"][0][1].update({("d1", "", "p1"): ["d2"]})),
    ("one that is gone is alike", ["found"],
     lambda w: w["answers"][0][2].update(d1=["d3", "d9"])),
    ("one is alike twice", ["found"], lambda w: w["answers"][0][2].update(d1=["d3", "d3"])),
    ("one is not alike", ["found"], lambda w: w["answers"][0][2].update(d1=["d3"])),
    ("a search lacks something", ["found"], lambda w: w["answers"][0][3].add("index_rebuilt")),
]


@test("papers that are not as they should be")
def _():
    equal(paper_found(), [], "nothing is wrong")
    for name, want, change in WRONG_PAPERS:
        equal(paper_found(change), want, name)
    w = paper_world()
    x, block = at(w, "d1"), w["units"][0]
    x.space, x.chunks, block.embedded, block.refused = 0, [], 0, 1
    lacking = lambda asked="AB": len(list(checks_papers.lacking(
        w["papers"], w["indexed"], w["units"], set(asked))))
    equal(lacking(), 0, "one that was refused has none")
    x.chunks = [Chunk(9, 0, 1, A1)]
    equal((lacking(), lacking("B")), (1, 0), "nor may it have former ones")


@test("what the service for embeddings is asked for again")
def _():
    call = lambda at_, texts, good: checks_papers.Call(at_, at_ + 1, list(texts), set(good))
    count = lambda *calls, troubled=lambda a, b: False: tuple(
        n if isinstance(n, int) else len(n) for n in checks_papers.repeats(calls, troubled))
    equal(count(call(1, "ab", "ab"), call(3, "cd", "cd")), (0, 0), "each once")
    equal(count(call(1, "ab", "a"), call(3, "b", "b")), (0, 0), "one that got no vector")
    equal(count(call(1, "ab", "ab"), call(3, "bc", "bc")), (1, 1), "one that had")
    equal(count(call(3, "bc", "bc"), call(1, "ab", "ab")), (1, 1), "in whatever order they ended")
    equal(count(call(1, "a", "a"), call(1.5, "a", "a")), (0, 0), "while that was under way")
    equal(count(call(1, "a", "a"), call(3, "a", "a"), troubled=lambda a, b: a < 2 < b), (1, 0),
          "after a fault")
    vector = lambda *v: base64.b64encode(struct.pack(f"<{len(v)}f", *v)).decode()
    usable = lambda *data: sorted(embedder.usable(["a", "b", "c"], json.dumps(
        {"data": [{"index": i, "embedding": v} for i, v in data]})))
    good = [(i, vector(1, i)) for i in range(3)]
    equal(usable(*good), ["a", "b", "c"], "a reply is read")
    for name, bad in (("NaN", vector(1, float("nan"))), ("none", None), ("zero", vector(0, 0)),
                      ("no base64", "?")):
        equal(usable(good[0], (1, bad), good[2]), ["a", "c"], f"a vector that is wrong: {name}")
    equal((usable(*good[:2]), usable(*good, good[0]), usable(good[0], (1, vector(1)), good[2])),
          ([], [], []), "one is missing, there twice, or shorter: none is used")
    equal(embedder.usable(["a"], b"no JSON"), set(), "no reply at all")
    message = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
    equal(embedder.split(message * 2 + message[:-1]),
          ([(b"post / http/1.1", b"abc")] * 2, message[:-1]), "messages are told apart")


if __name__ == "__main__":
    run_tests()
