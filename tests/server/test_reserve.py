"""What unfinished runs may still cost is reserved (SCR-1): no money is promised twice, a request
that is repeated makes one run, and what is shown adds up."""
import json
import random
import threading

from client import cli
from harness import equal, ok, run_tests, sql, test, wait_for
from screening import (QUESTION, act, audited, journals, person, reaches, server, submit, view,
                       with_screening)
from unwell import Service, words

AT_ONCE = 6


def cents(amount):
    whole, _, part = amount.partition(".")
    return int(whole) * 100 + int(part)


def money(n):
    return f"{n // 100}.{n % 100:02}"


def wish_of(api, papers):
    """A wish for about so many papers, and what they cost."""
    wish = {**QUESTION, "journals": journals(api, papers)[0]}
    choice = {n: wish[n] for n in ("journals", "year_from", "year_to")}
    return wish, cents(api("POST", "/api/estimate", choice).body["cost"])


def at_once(api, path, bodies):
    """Sends all of them at the same moment; the replies in the order of bodies."""
    replies, barrier = [None] * len(bodies), threading.Barrier(len(bodies))

    def send(i):
        barrier.wait()
        replies[i] = api("POST", path, bodies[i])

    threads = [threading.Thread(target=send, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def seen(api):
    me = api.me().body
    return {n: me[n] and cents(me[n]) for n in ("balance", "reserved", "free")}


def pay_in(m, name, amount):
    done = cli(m, "user", "recharge", name, money(amount))
    assert done.returncode == 0, done


def six_at_once(m, api, wish, cost):
    pay_in(m, "alice", 2 * cost)
    replies = at_once(api, "/api/queries", [wish] * AT_ONCE)
    equal(sorted(r.status for r in replies), [202] * 2 + [402] * 4,
          "six at once, and money for two: two are accepted")
    r = next(r for r in replies if r.status == 402)
    equal(r.error, (402, "funds", None), "the others are told so")
    text = r.body["error"]["message"]
    equal(text, f"the run costs {money(cost)}: the balance is {money(2 * cost)}, "
          f"{money(2 * cost)} of it reserved for unfinished work, 0.00 free", "with all amounts")
    runs = [r.body["query_id"] for r in replies if r.status == 202]
    ok(all(reaches(api, qid, "DONE", 60) for qid in runs), "both come to their end")
    equal([cents(view(api, qid)["cost"]) for qid in runs], [cost] * 2, "and are paid in full")
    equal(seen(api), {"balance": 0, "reserved": 0, "free": 0}, "nothing is left, or reserved")


def one_request(m, api, wish, cost):
    pay_in(m, "alice", 2 * cost)
    named = {**wish, "request_id": "click-1~!"}
    replies = at_once(api, "/api/queries", [named] * AT_ONCE)
    equal({(r.status, r.body.get("query_id")) for r in replies},
          {(202, replies[0].body["query_id"])}, "one request six times: six equal answers")
    qid = replies[0].body["query_id"]
    equal(seen(api)["reserved"] + cents(view(api, qid)["cost"]), cost, "one run is paid for")
    ok(reaches(api, qid, "DONE", 60), "it is done")
    cli(m, "user", "deduct", "alice", money(seen(api)["balance"]))
    r = api("POST", "/api/queries", named)
    equal((r.status, r.body["query_id"]), (202, qid), "again, without any money")
    turned = {**named, "journals": wish["journals"][::-1]}
    equal(api("POST", "/api/queries", turned).body["query_id"], qid,
          "journals in another order are the same")
    other = {"another question": {"question": "Which ones do not?"}, "another year":
             {"year_from": 1901}, "fewer journals": {"journals": wish["journals"][1:]}}
    for name, change in other.items():
        r = api("POST", "/api/queries", {**named, **change})
        equal(r.error, (409, "conflict", None), f"409: {name}")
        ok("click-1~!" in r.body["error"]["message"], "with the id", r)
    distilled = {"original_query_id": qid, "question": wish["question"], "request_id": "click-1~!"}
    equal(api("POST", "/api/distill", distilled).error[:2], (409, "conflict"), "409: another kind")
    for bad in ("", "x" * 65, "a b", "a\n", "é", 7, ["a"], {}):
        equal(api("POST", "/api/queries", {**wish, "request_id": bad}).error,
              (400, "invalid", "request_id"), f"400: {bad!r}")
    equal(api("POST", "/api/queries", {**wish, "request_id": "x" * 64}).status, 402,
          "64 characters are fine, but there is no money")
    bob = person(m, "bob")
    r = bob("POST", "/api/queries", named)
    ok(r.status == 202 and r.body["query_id"] != qid, "another user's request is another one", r)


@with_screening("six submissions at once")
def _(m, sim):
    api = person(m, "alice", balance="0.00")
    wish, cost = wish_of(api, 150)
    ok(len(wish["journals"]) > 1 and cost > 0, "a choice", wish, cost)
    six_at_once(m, api, wish, cost)
    one_request(m, api, wish, cost)
    audited(m)


def adds_up(api, runs):
    """Of me and of the runs, which are read one after the other: until both agree."""
    def agrees():
        s, parts = seen(api), [view(api, qid) for qid in runs]
        each = sum(cents(v["reserved"]) for v in parts)
        return (s == seen(api) and s["reserved"] == each and
                s["balance"] == s["reserved"] + s["free"])
    return wait_for(agrees, 10)


def listed(m, api):
    """The same in the operator's list, once MySQL has the last charges."""
    shown = lambda: json.loads(cli(m, "user", "list", "--json").stdout)["users"][0]
    same = lambda u: {n: cents(u[n]) for n in ("balance", "reserved", "free")} == seen(api)
    ok(wait_for(lambda: same(shown()), 10), "millrace user list shows the same", shown())
    kept = sql(m, "SELECT query_id, ceiling FROM query_log")
    sql(m, "UPDATE query_log SET ceiling = NULL")
    equal((shown()["reserved"], shown()["free"]), (None, None), "but for runs without an estimate")
    equal(cli(m, "user", "list").stdout.split("\t")[4:6], ["-", "-"], "in lines, too")
    for qid, ceiling in kept:
        sql(m, f"UPDATE query_log SET ceiling = {ceiling} WHERE query_id = '{qid}'")


@with_screening("what is reserved while runs work, pause and end", "--latency-ms", "200")
def _(m, sim):
    api = person(m, "alice", balance="0.00", permission=6)
    wish, cost = wish_of(api, 200)
    pay_in(m, "alice", 3 * cost)
    choice = {n: wish[n] for n in ("journals", "year_from", "year_to")}
    estimate = lambda: api("POST", "/api/estimate", choice).body
    equal((estimate()["free"], estimate()["suffices"]), (money(3 * cost), True), "before")
    equal(seen(api), {"balance": 3 * cost, "reserved": 0, "free": 3 * cost}, "nothing is reserved")
    runs = [submit(api, 200)[0] for _ in range(2)]
    free = lambda: seen(api)["free"]
    equal(free(), cost, "two runs are reserved for")
    equal({cents(view(api, qid)["estimate"]) for qid in runs}, {cost}, "each says what it may cost")
    wait_for(lambda: view(api, runs[0])["finished"] > 20, 20)
    ok(seen(api)["balance"] < 3 * cost and free() == cost, "papers that are paid change nothing",
       seen(api))
    act(api, runs[0], "pause")
    ok(wait_for(lambda: view(api, runs[0])["workers"] == 0, 10), "a pause")
    ok(adds_up(api, runs[:1]) or adds_up(api, runs), "the sum is that of the runs", seen(api))
    equal(free(), cost, "changes nothing either")
    listed(m, api)
    act(api, runs[1], "terminate")
    ok(wait_for(lambda: free() == 2 * cost - cents(view(api, runs[1])["cost"]), 10),
       "a run that is ended frees the rest", seen(api))
    equal(view(api, runs[1])["reserved"], "0.00", "and says so")
    cli(m, "user", "deduct", "alice", money(seen(api)["balance"] - 100))
    equal((free(), estimate()["free"], estimate()["suffices"]), (0, "0.00", False),
          "an admin may take what is reserved")
    equal(api("POST", "/api/queries", wish).error[:2], (402, "funds"), "402: nothing is free")
    pay_in(m, "alice", 2 * cost)
    ok(free() >= cost and estimate()["suffices"], "a recharge is free", seen(api))
    equal(act(api, runs[0], "resume").status, 200, "resume needs nothing but what it has")
    ok(reaches(api, runs[0], "DONE", 60), "it is done")
    s = seen(api)
    ok(s["reserved"] == 0 and s["free"] == s["balance"], "nothing is reserved any more", s)
    audited(m)


def distillation(m, api):
    wish, cost = wish_of(api, 120)
    pay_in(m, "alice", 3 * cost)
    first, _ = submit(api, 120)
    ok(reaches(api, first, "DONE", 60), "a run")
    ask = lambda: api("POST", "/api/distill/estimate", {"original_query_id": first})
    price = wait_for(lambda: (r := ask()).status == 200 and r.body, 20)
    equal((price["suffices"], cents(price["free"])), (True, seen(api)["free"]), "what is free")
    cli(m, "user", "deduct", "alice", money(seen(api)["free"] - cost))
    holder, _ = submit(api, 120)
    act(api, holder, "pause")
    wait_for(lambda: view(api, holder)["workers"] == 0, 10)
    body = {"original_query_id": first, "question": "Is it about light?"}
    equal((ask().body["free"], ask().body["suffices"]), ("0.00", False), "all of it is reserved")
    equal(api("POST", "/api/distill", body).error[:2], (402, "funds"), "402: a distillation")
    pay_in(m, "alice", cents(price["cost"]))
    replies = at_once(api, "/api/distill", [{**body, "request_id": "d"}] * AT_ONCE)
    equal({(r.status, r.body.get("query_id")) for r in replies},
          {(202, replies[0].body.get("query_id"))}, "with its money it is accepted, once")
    qid = replies[0].body["query_id"]
    equal(api("POST", "/api/distill", body).status, 402, "but no second one")
    again = {**body, "question": "Is it?", "request_id": "d"}
    equal(api("POST", "/api/distill", again).error[:2], (409, "conflict"), "409: another question")
    ok(reaches(api, qid, "DONE", 60), "it is done")
    equal(view(api, qid)["cost"], price["cost"], "and paid")
    equal(act(api, holder, "resume").status, 200, "what was reserved is there still")
    ok(reaches(api, holder, "DONE", 60), "to the end")
    equal(seen(api), {"balance": 0, "reserved": 0, "free": 0}, "and nothing is left")
    audited(m)


@with_screening("distillations reserve, too", "--latency-ms", "20")
def _(m, sim):
    distillation(m, person(m, "alice", balance="0.00"))


def refuses_half(chance):
    """An AI service that refuses every other call on average, each time in other words: then it is
    the paper, and one that is refused twice has failed."""
    def answer(_headers):
        if chance.random() < 0.5:
            return 400, words(f"not with number {chance.random()}")
        verdict = json.dumps({"relevant": True, "reason": "it splits water"})
        return 200, json.dumps({"choices": [{"message": {"content": verdict}}],
                                "usage": {"total_tokens": 100}}).encode()
    return answer


@test("papers that fail free what they would have cost; to retry them needs it again")
def _():
    with Service(refuses_half(random.Random(7))) as service, server(service) as m:
        failures(m)


def failures(m):
    api = person(m, "alice", balance="0.00", permission=100)
    wish, cost = wish_of(api, 50)
    pay_in(m, "alice", cost)
    qid, total = submit(api, 50)
    ok(reaches(api, qid, "DONE", 90), "a run with failures")
    v = view(api, qid)
    ok(0 < v["failed"] < total and cents(v["cost"]) < cost, "does not reach its ceiling", v)
    equal((v["estimate"], v["reserved"]), (money(cost), "0.00"), "which frees the rest")
    left = cost - cents(v["cost"])
    equal(seen(api), {"balance": left, "reserved": 0, "free": left}, "for its user, too")
    pay_in(m, "alice", cost - left)
    holder, _ = submit(api, 50)
    act(api, holder, "pause")
    wait_for(lambda: view(api, holder)["workers"] == 0, 10)
    spent = cost - seen(api)["balance"]
    r = act(api, qid, "retry_failed")
    equal(r.error[:2], (402, "funds"), "402: the money is reserved for another run")
    text = r.body["error"]["message"]
    ok(f"the balance is {money(cost - spent)}, {money(cost - spent)} of it reserved" in text and
       "0.00 free" in text and "is missing" in text, "and what is missing", text)
    act(api, holder, "terminate")
    ok(wait_for(lambda: seen(api)["reserved"] == 0, 10), "it frees its money")
    equal(act(api, qid, "retry_failed").body.get("state"), "RUNNING", "then they are tried again")
    ok(reaches(api, qid, "DONE", 90), "to an end")
    audited(m)


run_tests()
