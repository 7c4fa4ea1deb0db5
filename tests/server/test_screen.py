"""Screening over HTTP, with a simulated AI beside it: runs, workers, pauses, money, and nodes that
go away."""
import contextlib
import json
import os
import signal
import socket
import threading
import time
from urllib.parse import quote

from client import cli
from harness import crowd, equal, http, note, ok, redis_link, run_tests, sql, test, wait_for
from hook import Hook
from screening import (QUESTION, Sim, act, audited, charged, inflight, journals, papers_of, person,
                       reaches, results, server, submit, view, with_screening)


def metric(m, name):
    return " ".join(
        l.split()[-1] for l in m.get("/metrics").body.decode().splitlines() if l.startswith(name))


def events(m, api, qid, seconds):
    """[(event, data)] until the stream ends."""
    s = socket.create_connection(("127.0.0.1", m.port), seconds)
    s.sendall(f"GET /api/queries/{qid}/events HTTP/1.1\r\nHost: t\r\n"
              f"Authorization: Bearer {api.token}\r\n\r\n".encode())
    data = b""
    with contextlib.suppress(TimeoutError):
        while True:
            piece = s.recv(65536)
            data += piece
            if not piece or b"\r\n0\r\n\r\n" in data:
                break
    s.close()
    text = data.decode()
    found = []
    for block in text.split("event: ")[1:]:
        name, _, rest = block.partition("\n")
        found.append((name.strip(), json.loads(rest.split("data: ", 1)[1].split("\n")[0])))
    return text, found


def one_run(m, sim):
    api = person(m, "alice", permission=20)
    chosen, total = journals(api, 400)
    estimate = api("POST", "/api/estimate",
                   {"journals": chosen, "year_from": 1900, "year_to": 2100}).body
    qid, _ = submit(api, 400)
    text, found = events(m, api, qid, 60)
    ok("text/event-stream" in text, "its events", text[:300])
    states = [d["state"] for name, d in found if name == "state"]
    ok(states[-1] == "DONE" and states[0] in ("QUEUED", "RUNNING"), "the states, to the end",
       states)
    progress = [d for name, d in found if name == "progress"]
    ok(len(progress) > 2 and
       [p["finished"] for p in progress] == sorted(p["finished"] for p in progress), "progress",
       len(progress))
    middle = progress[len(progress) // 2]
    ok(middle["papers_per_second"] > 10 and
       0 <= middle["seconds_left_min"] <= middle["seconds_left_max"] < 60 and
       middle["workers"] > 0, "with rate, time left and workers", middle)
    _, again = events(m, api, qid, 10)
    equal([name for name, _ in again], ["state"],
          "a run that is over sends its state, and ends the stream")

    v = view(api, qid)
    equal((v["papers"], v["finished"], v["failed"]), (total, total, 0),
          "all of its papers, none failed")
    equal(v["cost"], estimate["cost"], "it costs what was estimated")
    found = results(m, api, qid)
    equal(set(found), papers_of(m, chosen), "every paper has one result")
    equal(sum(r["ai_result"]["relevant"] for r in found.values()), v["relevant"],
          "the relevant ones")
    ok(0 < v["relevant"] < total and
       all(r["block_key"].startswith("meta:") for r in found.values()),
       "some are, some are not; each knows its block")
    equal(sim.stats()["requests"], total, "one call for each paper")
    row = f"SELECT status, end_time IS NOT NULL FROM query_log WHERE query_id = '{qid}'"
    equal(wait_for(lambda: sql(m, row), 5), [["DONE", "1"]], "its row says so")
    spent = round((100000 - float(api.me().body["balance"])) * 100)
    equal(f"{spent / 100:.2f}", v["cost"], "the balance is less by that much")
    wait_for(lambda: charged(m, qid) == spent, 10)
    equal(charged(m, qid), spent, "and so says billing_log")
    equal(inflight(m), {}, "nothing is in flight")
    ok(wait_for(lambda: redis_link(m)("HLEN", "sys:running") == 0, 5), "no run is listed any more")
    equal(act(api, qid, "retry_failed").error[:2], (409, "conflict"), "there is nothing to retry")
    equal(act(api, qid, "pause").error[:2], (409, "conflict"), "nor to pause")
    other = person(m, "bob")
    for what in ["pause", "resume", "terminate", "retry_failed"]:
        equal(act(other, qid, what).status, 404, f"{what}: not another's run")
    equal(http(m.port, f"/api/queries/{qid}/events",
               headers=[f"Authorization: Bearer {other.token}"]).status, 404, "nor its events")


def workers(m, sim):
    api = person(m, "carol", permission=6)
    sim.reset()
    first, _ = submit(api, 200)
    second, _ = submit(api, 200)
    wait_for(lambda: view(api, first)["workers"] == 6, 10)
    equal((view(api, first)["workers"], view(api, second)["state"]), (6, "QUEUED"),
          "the first run has all of them, the second waits")
    nodes = lambda: sorted(
        json.loads(v)["workers"] for v in redis_link(m)("HGETALL", "sys:nodes:info")[1::2])
    ok(wait_for(lambda: nodes() == [3, 3], 10), "spread over two nodes", nodes())
    other = person(m, "dave", permission=4)
    third, _ = submit(other, 100)
    ok(wait_for(lambda: view(other, third)["workers"] == 4, 10),
       "another user does not wait for carol's permission")
    ok(reaches(api, first, "DONE", 60) and reaches(api, second, "DONE", 60) and
       reaches(other, third, "DONE"), "all of them end")
    peak = sim.stats()["in_flight_peak"]
    ok(8 <= peak <= 10, "never more calls at once than both may have", peak)


def control(m, sim):
    api = person(m, "erin", permission=20)
    sim.reset()
    qid, total = submit(api, 600)
    wait_for(lambda: view(api, qid)["finished"] > 20, 20)
    began = time.monotonic()
    r = act(api, qid, "pause")
    equal((r.status, r.body["state"]), (200, "PAUSED"), "pause")
    wait_for(lambda: view(api, qid)["workers"] == 0, 5)
    gone = time.monotonic() - began
    ok(gone < 0.2 + 0.1 + 0.5 * crowd(),
       f"the last worker is gone after {gone:.2f} s, with 0.2 s for a call")
    asked = sim.stats()["requests"]
    equal(view(api, qid)["finished"], asked, "what was in hand was finished and charged")
    ok(wait_for(lambda: inflight(m) == {}, 3), "no unit is held", inflight(m))
    time.sleep(0.5)
    equal((view(api, qid)["finished"], sim.stats()["requests"]), (asked, asked), "nothing goes on")
    equal(act(api, qid, "pause").status, 200, "a repeat is harmless")
    equal(act(api, qid, "resume").body["state"], "RUNNING", "resume")
    ok(wait_for(lambda: view(api, qid)["finished"] > asked + 20, 20), "it goes on")
    equal(act(api, qid, "terminate").body["state"], "CANCELLED", "terminate")
    ok(wait_for(lambda: view(api, qid)["workers"] == 0, 5), "its workers are gone")
    v = view(api, qid)
    ok(v["finished"] < total, "before it was done", v)
    equal(len(results(m, api, qid)), v["finished"], "what was judged stays")
    wait_for(lambda: charged(m, qid) == round(float(v["cost"]) * 100), 10)
    equal(charged(m, qid), round(float(v["cost"]) * 100), "and was charged, and no more than that")
    equal((redis_link(m)("LLEN", f"task:{api.uid}:{qid}:pending_blocks"), inflight(m)), (0, {}),
          "its list is empty")
    equal(act(api, qid, "resume").error[:2], (409, "conflict"), "that is final")
    waiting, _ = submit(api, 100)
    later, _ = submit(api, 100)
    act(api, later, "pause")
    equal(view(api, later)["state"], "PAUSED", "a run that waits can be paused, too")
    ok(reaches(api, waiting, "DONE"), "others are not held up by it")
    act(api, later, "resume")
    ok(reaches(api, later, "DONE"), "and then it has its turn")


def no_money(m, sim):
    api = person(m, "frank", permission=5)
    qid, total = submit(api, 150)
    wait_for(lambda: view(api, qid)["finished"] > 5, 20)
    act(api, qid, "pause")
    wait_for(lambda: view(api, qid)["workers"] == 0, 5)
    taken = cli(m, "user", "deduct", "frank", f"{float(api.me().body['balance']) - 60:.2f}")
    equal((taken.returncode, api.me().body["balance"]), (0, "60.00"), "60.00 are left",
          taken.stderr)
    act(api, qid, "resume")
    ok(reaches(api, qid, "PAUSED"), "the run pauses itself")
    v = view(api, qid)
    ok("balance" in (v["reason"] or ""), "and says why", v)
    equal(v["reason_code"], "funds", "in a word for programs, too")
    ok(0 <= float(api.me().body["balance"]) < 60, "what is left is not enough for one more",
       api.me().body)
    cli(m, "user", "deduct", "frank", api.me().body["balance"])
    r = act(api, qid, "resume")
    equal(r.error, (402, "funds", None), "without money it is not resumed")
    ok("the balance is 0.00" in r.body["error"]["message"] and
       "is missing" in r.body["error"]["message"], "which says what is missing", r)
    equal(view(api, qid)["state"], "PAUSED", "it stays as it was")
    cli(m, "user", "recharge", "frank", "50000")
    equal(act(api, qid, "resume").status, 200, "after a recharge")
    ok(reaches(api, qid, "DONE"), "it goes on to its end")
    equal((view(api, qid)["finished"], view(api, qid)["reason"], view(api, qid)["reason_code"]),
          (total, None, None), "with all papers")


def streams(m, sim):
    api, other = person(m, "gina", permission=1), person(m, "hugo", permission=1)
    sim.reset()
    qid, _ = submit(api, 100)
    theirs, _ = submit(other, 100)
    act(api, qid, "pause")
    act(other, theirs, "pause")
    def stream(of, run):
        s = socket.create_connection(("127.0.0.1", m.port), 10)
        s.sendall(f"GET /api/queries/{run}/events HTTP/1.1\r\nHost: t\r\n"
                  f"Authorization: Bearer {of.token}\r\n\r\n".encode())
        return s, int(s.recv(4096).split()[1])
    open_ones = [stream(api, qid) for _ in range(25)]
    equal([status for _, status in open_ones], [200] * 20 + [429] * 5,
          "a user has twenty event streams, over all nodes")
    equal(stream(other, theirs)[1], 200, "another user has others")
    for s, _ in open_ones:
        s.close()
    ok(wait_for(lambda: stream(api, qid)[1] == 200, 20), "those that are closed count no more")
    act(api, qid, "terminate")
    act(other, theirs, "terminate")


def ends_by_itself(m, sim):
    api = person(m, "grace", permission=1)
    qid, _ = submit(api, 300)
    act(api, qid, "pause")
    sql(m,
        f"UPDATE query_log SET changed_at = changed_at - INTERVAL 8 DAY WHERE query_id = '{qid}'")
    ok(reaches(api, qid, "CANCELLED", 20), "a run that was paused for seven days is terminated")
    ok("seven days" in (view(api, qid)["reason"] or ""), "and says why", view(api, qid))
    chosen, _ = journals(api, 50)
    sql(m, f"DELETE FROM corpus_block WHERE journal = '{chosen[0]}'")
    r = api("POST", "/api/queries", {**QUESTION, "journals": chosen[:1]})
    ok(reaches(api, r.body["query_id"], "FAILED", 20), "a run without papers fails")
    ok("corpus" in (view(api, r.body["query_id"])["reason"] or ""), "and says why",
       view(api, r.body["query_id"]))


@with_screening("runs", "--latency-ms", "200")
def _(m, sim):
    for part in (one_run, workers, control, no_money, streams, ends_by_itself):
        began = time.monotonic()
        part(m, sim)
        note(f"{part.__name__}: {time.monotonic() - began:.1f} s")
    audited(m)


@with_screening("first come, first served, while the rate lasts", "--latency-ms", "200")
def _(m, sim):
    keys = int(sql(m, "SELECT COUNT(*) FROM api_list WHERE is_active")[0][0])
    # Ten workers at 200 ms use 3,000 a minute.
    sql(m, f"UPDATE api_list SET rpm_limit = {4000 // keys}")
    people = [person(m, name) for name in ("anna", "berta", "clara")]
    wait_for(lambda: "4000" in metric(m, "millrace_keyring_requests_limit"), 5)
    learning, _ = submit(people[0], 40)  # how long a call takes
    ok(reaches(people[0], learning, "DONE"), "a first run")
    wait_for(
        lambda: all(
            json.loads(v)["latency_us"] for v in redis_link(m)("HGETALL", "sys:nodes:info")[1::2]),
        5)
    runs = [(p, submit(p, 100)[0]) for p in people]
    seen = []
    while not all(view(*r)["state"] == "DONE" for r in runs) and len(seen) < 3000:
        states = tuple(view(*r)["state"] for r in runs)
        if not seen or seen[-1] != states:
            seen.append(states)
        time.sleep(0.02)
    ok(all(s[0] != "QUEUED" or s[1] == s[2] == "QUEUED" for s in seen) and
       all(s[1] != "QUEUED" or s[2] == "QUEUED" for s in seen), "nobody overtakes", seen)
    ok(("RUNNING", "QUEUED", "QUEUED") in seen and ("DONE", "RUNNING", "QUEUED") in seen,
       "who waits for the rate waits", seen)


@with_screening("each verdict is that of its own paper, however many come at once", papers=3000)
def _(m, sim):
    alone, crowd = person(m, "alice", permission=1), person(m, "bob", permission=100)
    found = []
    for api in (alone, crowd):
        qid, total = submit(api, 1500)
        ok(reaches(api, qid, "DONE", 60),
           f"{total} papers, {view(api, qid)['relevant']} are relevant")
        found.append(results(m, api, qid))
    ok(len({r["ai_result"]["reason"] for r in found[0].values()}) > 2,
       "verdicts differ from paper to paper")
    equal([d for d in found[0] if found[0][d] != found[1].get(d)], [],
          "a hundred workers find what one finds")
    equal(len(found[1]), len(found[0]), "about as many papers")


@test("papers that fail, and are tried again")
def _():
    with Sim("--fail", "0.6", "--fail-kinds", "unreadable,500") as bad, Sim() as good:
        with server(bad) as m:
            api = person(m, "alice", permission=100)
            qid, total = submit(api, 120)
            ok(reaches(api, qid, "DONE", 90), "a run is done although papers fail")
            v = view(api, qid)
            ok(0 < v["failed"] < total and v["finished"] == total, "some have", v)
            failed = {d: r for d, r in results(m, api, qid).items() if "error" in r["ai_result"]}
            ok(len(failed) == v["failed"] and
               all("AI service" in r["ai_result"]["error"] for r in failed.values()),
               "each says why",
               list(failed.items())[:2])
            cli(m, "user", "deduct", "alice", api.me().body["balance"])
            equal(act(api, qid, "retry_failed").status, 402,
                  "without money they are not tried again")
            equal(view(api, qid)["state"], "DONE", "the run stays as it was")
            cli(m, "user", "recharge", "alice", "100000")
        with server(good, data=m.data) as m:
            api.server = m
            ok(wait_for(lambda: view(api, qid)["failed"] == len(failed), 10),
               "after a restart it is as it was")
            # Each node looks for itself whether Redis can be trusted.
            r = wait_for(lambda: (r := act(api, qid, "retry_failed")).status != 503 and r, 10)
            equal((r.status, r.body.get("state")), (200, "RUNNING"), "retry", r)
            ok(reaches(api, qid, "DONE"), "it is done again")
            equal((view(api, qid)["finished"], view(api, qid)["failed"]), (total, 0),
                  "no paper is without a verdict")
            equal(good.stats()["requests"], len(failed), "only those were asked about again")
            ok(float(view(api, qid)["cost"]) > float(v["cost"]), "and charged")
            audited(m)


@with_screening("a node that is told to end gives its units back; one that is killed is missed",
                "--latency-ms", "200", papers=3000)
def _(m, sim):
    api = person(m, "alice", permission=40)
    qid, total = submit(api, 1500)
    wait_for(lambda: view(api, qid)["finished"] > 50, 20)
    nodes = m.nodes()
    os.kill(nodes[0], signal.SIGTERM)
    ok(wait_for(lambda: nodes[0] not in m.nodes(), 15), "a node ends when it is told to")
    wait_for(lambda: len(m.nodes()) == 2 and view(api, qid)["workers"] > 30, 15)
    for pid in m.nodes():
        os.kill(pid, signal.SIGKILL)
    ok(wait_for(lambda: m.ready(), 20) and reaches(api, qid, "DONE", 90),
       "the run ends whatever happens to nodes")
    v = view(api, qid)
    equal((v["finished"], v["failed"]), (total, 0), "with all of its papers")
    calls = sim.stats()["requests"]
    ok(total <= calls <= total + 2 * 40, "one that ends wastes no call, one that is killed those in"
       " flight and those that were not recorded yet", calls - total)
    equal(len(results(m, api, qid)), total, "one result each")
    wait_for(lambda: charged(m, qid) == round(float(v["cost"]) * 100), 10)
    equal(charged(m, qid), round(float(v["cost"]) * 100), "one charge each")
    equal(inflight(m), {}, "no unit is left in flight")
    audited(m)


def not_json(m, api, qid):
    """A record that is not JSON. Mended by the operator."""
    redis_link(m)("RPUSH", f"billing_queue:{api.uid}", "not JSON")
    return lambda: write_off(m, api, qid)


def not_json_any_more(m, api, qid):
    """The record of a charge that MySQL does not have yet is overwritten: the syncer waits for a
    lock meanwhile, with those before it in hand."""
    link, key = redis_link(m), f"billing_queue:{api.uid}"
    spoil = ("return redis.call('LLEN', KEYS[1]) > 20 and"
             " redis.call('LSET', KEYS[1], -1, 'not JSON')")
    hold = threading.Thread(target=sql, args=(
        m, f"BEGIN; SELECT 1 FROM user_info WHERE uid = {api.uid} FOR UPDATE; DO SLEEP(1.5);"
           " COMMIT"))
    hold.start()
    assert wait_for(lambda: link("EVAL", spoil, 1, key), 10)
    hold.join()
    return lambda: write_off(m, api, qid)


def not_json_and_restart(m, api, qid):
    """The same, in a Redis that has to load the balance anew."""
    mend = not_json(m, api, qid)
    old = m.pid_of("redis")
    os.kill(old, signal.SIGKILL)
    back = wait_for(lambda: m.pid_of("redis") not in (None, old) and m.ready(), 20)
    assert back, m.get("/readyz")
    return mend


def wrong_type(m, api, qid):
    """A key of another type: scripts fail for this user."""
    link, key = redis_link(m), f"user:{api.uid}:ledger"
    link("EVAL", "redis.call('RENAME', KEYS[1], 'kept'); redis.call('SET', KEYS[1], 'x')", 1, key)

    def mend():
        link("EVAL", "redis.call('DEL', KEYS[1]); redis.call('RENAME', 'kept', KEYS[1])", 1, key)
        r = cli(m, "user", "release", "alice")
        ok(r.returncode == 0 and "1 paused run goes on" in r.stdout, "mended and released", r)
    return mend


def write_off(m, api, qid):
    r = cli(m, "user", "release", "alice")
    ok(r.returncode == 1 and "aside: a record cannot be read: not JSON" in r.stderr and
       "--write-off" in r.stderr, "the operator sees the record", r)
    equal(api.me().body["account"], "stopped", "the user sees that the account is stopped")
    equal(cli(m, "user", "list", "--state", "stopped").stdout.split("\t")[1:2], ["alice"],
          "the operator finds it in the list")
    r = api("POST", "/api/queries", {**QUESTION, "journals": journals(api, 50)[0]})
    ok(r.status == 403 and "the account needs the operator" in str(r.body),
       "a run is not submitted", r)
    r = api("GET", f"/api/queries/{qid}/results?limit=5")
    ok(r.status == 200 and r.body["results"], "results that are there can be read", r)
    doi = quote(r.body["results"][0]["doi"], safe="")
    for path in (f"/api/queries/{qid}/paper?doi={doi}", f"/api/download_csv?query_id={qid}"):
        equal(http(m.port, path, headers=[f"Authorization: Bearer {api.token}"]).status, 200,
              f"and by {path.split('?')[0].rsplit('/', 1)[1]}")
    r = cli(m, "user", "release", "--write-off", "alice")
    ok(r.returncode == 0 and "1 record is written off\nalice is released" in r.stdout and
       "1 paused run goes on" in r.stdout, "written off and released", r)


def goes_in_vain(m, hook, sim, api, qid):
    """How many answers are lost until the run is paused, with an alert."""
    ok(reaches(api, qid, "PAUSED", 10), "the run pauses itself")
    v = view(api, qid)
    ok(v["reason_code"] in ("account", "unrecorded") and v["reason"], "and says why", v)
    hook.told(f"verdicts:{api.uid}", ["begun"], 15)
    ok(wait_for(lambda: view(api, qid)["workers"] == 0, 5), "its workers leave", view(api, qid))
    return sim.stats()["requests"] - len(results(m, api, qid))


def unpaid_again(m, api, qid):
    """A run with a verdict whose charge was written off."""
    assert wait_for(lambda: sql(
        m, f"SELECT archived FROM query_log WHERE query_id = '{qid}'") == [["1"]], 20)
    ok(wait_for(lambda: view(api, qid)["failed"] == 1, 10),
       "the paper whose charge is lost has failed", view(api, qid))
    reason = next(r["error"] for r in api(
        "GET", f"/api/queries/{qid}/results?verdict=failed").body["results"])
    ok("could not be recorded" in reason, "and says why", reason)
    equal(act(api, qid, "retry_failed").status, 200, "it is tried again")
    ok(reaches(api, qid, "DONE"), "to its end")


def unrecorded(poison, lost_max, latency_ms="50"):
    with Hook() as hook, Sim("--latency-ms", latency_ms) as sim, \
            server(sim, papers=500, MILLRACE_ALERT_WEBHOOK_URL=hook.url) as m:
        api, other = person(m, "alice", permission=10), person(m, "bob")
        qid, total = submit(api, 200)
        assert wait_for(lambda: view(api, qid)["finished"] > 20, 20)
        mend = poison(m, api, qid)
        lost = goes_in_vain(m, hook, sim, api, qid)
        ok(lost <= lost_max, f"{lost} answers of ten workers are lost", view(api, qid))
        asked = sim.stats()["requests"]
        # Each node looks for itself whether Redis can be trusted.
        wait_for(lambda: not any(other.me().body.get("degraded") for _ in range(6)), 10)
        theirs, their_total = submit(other, 50)
        ok(reaches(other, theirs, "DONE"), "others go on")
        equal(sim.stats()["requests"], asked + their_total,
              "while it is paused the AI is asked about other runs only")
        ok(act(api, qid, "resume").status in (200, 409), "resumed too early")
        time.sleep(0.5)
        ok(reaches(api, qid, "PAUSED", 10), "it is paused again")
        mend()
        ok(reaches(api, qid, "DONE"), "it goes on to its end")
        if poison is not_json_any_more:
            unpaid_again(m, api, qid)
        v = view(api, qid)
        equal((v["finished"], v["failed"], v["reason"], len(results(m, api, qid))),
              (total, 0, None, total), "with all papers")
        wait_for(lambda: charged(m, qid) == round(float(v["cost"]) * 100), 10)
        equal(charged(m, qid), round(float(v["cost"]) * 100), "each is charged once")
        again = sim.stats()["requests"] - total - their_total
        ok(again <= 2 * lost_max, f"{again} were asked about again")
        ok(wait_for(lambda: hook.events(f"verdicts:{api.uid}")[-1:] == ["ended"], 15),
           "the alert is over", *hook.got)
        audited(m)


@test("a record that cannot be read stops its user, with an alert, and no other")
def _():
    unrecorded(not_json, 2 * 10)


@test("the same with the record of a charge: its paper has failed, and can be tried again")
def _():
    unrecorded(not_json_any_more, 2 * 10, "300")  # the run lasts while the lock is held


@test("the same in a Redis that is restarted: the AI is not asked on and on")
def _():
    unrecorded(not_json_and_restart, 4 * 10)


@test("a script that fails for one user pauses its run, with an alert, and no other")
def _():
    unrecorded(wrong_type, 2 * 10)


run_tests()
