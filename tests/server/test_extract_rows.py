"""Rows of extraction one by one (EXT-2): why each failed or waits, by a word; one that is tried
again alone, paid once, its task closed once more."""
import zlib
from concurrent.futures import ThreadPoolExecutor

from admins import admin
from extraction import make_task
from harness import Millrace, equal, ok, redis_link, run_tests, sql, test, wait_for
from receiver import Receiver
from screening import audited, person, server
from sim import Sim, certificate
from tasks import (ended, money, paid, pdf, pdf_of, rows, start, states, status, submit, template,
                   upload, uploads, with_tasks)
from unwell import unwell, words

ENCRYPTED = ("/ID [(abcd) (abcd)] /Encrypt << /Filter /Standard /V 1 /R 2"
             " /O (owner-owner-owner-owner-owner-12) /U (user--user--user--user--user--12)"
             " /P -4 >>")
LONG = "Nothing is said here of what was given to whom, nor how much of it there was. " * 60


def row(api, task, place):
    r = api("GET", f"/api/tasks/{task}/rows/{place}")
    assert r.status == 200, r
    return {k: v for k, v in r.body.items() if k != "success"}


def retry(api, task, place):
    return api("POST", f"/api/tasks/{task}/rows/{place}/retry")


def closed(m, task):
    return int(sql(m, f"SELECT closed FROM extraction_task WHERE id = '{task}'")[0][0])


# --- why they failed, or wait ---

@with_tasks("what is wrong with a document, by a word", MILLRACE_EXTRACT_PDF_PAGES="1",
            MILLRACE_EXTRACT_PART_TOKENS="500")
def _(m, sim):
    ada = person(m, "ada")
    made = [("a.pdf", b"%PDF-1.4 broken", "pdf_damaged", "cannot be read"),
            ("b.pdf", pdf("secret", trailer=ENCRYPTED), "pdf_locked", "password"),
            ("c.pdf", pdf("one", "two"), "pdf_pages", "more than 1 pages"),
            ("d.pdf", pdf(""), "no_text", "no text"),
            ("e.txt", " \n \n", "no_text", "no text"),
            ("f.txt", "The dose is not told.", "bad_answer", "fits the template"),
            ("g.txt", LONG, "field_missing", "dose was found in no part"),
            ("h.txt", "The dose was 5.5 mg.", None, None)]
    ids = [upload(ada, data, name) for name, data, *_ in made]
    task = start(ada, template(ada), ids)
    ok(ended(ada, task, seconds=60), "a task of them is closed", status(ada, task))
    for place, (name, _, word, sentence) in enumerate(made, 1):
        x = row(ada, task, place)
        equal((x["reason_code"], x["state"]), (word, "error" if word else "completed"),
              f"{name}: {word}", x["error"])
        ok(not word or sentence in x["error"], "with its sentence", x["error"])
    listed = ada("GET", "/api/documents").body["documents"]
    equal({d["name"]: d["reason_code"] for d in listed if d["reason_code"]},
          {"a.pdf": "pdf_damaged", "b.pdf": "pdf_locked", "c.pdf": "pdf_pages", "d.pdf": "no_text"},
          "documents without a text say so themselves")
    second = start(ada, "pico", ids[1:3])
    ok(ended(ada, second), "another task reads no file again")
    equal([x["reason_code"] for x in rows(ada, second)], ["pdf_locked", "pdf_pages"],
          "and has the same words")
    sql(m, f"DELETE FROM document WHERE id = '{ids[0]}'")
    equal(retry(ada, task, 1).status, 200, "one whose document is gone is tried again")
    ok(wait_for(lambda: row(ada, task, 1)["reason_code"] == "document_gone", 20), "it says so",
       row(ada, task, 1))
    equal(paid(m, ada), 1, "only what is completed was paid")


def bomb(megabytes, line):
    """A page of so much content, all the same lines."""
    z = zlib.compressobj(1)
    piece = line * (2**20 // len(line))
    packed = b"".join(z.compress(piece) for _ in range(megabytes)) + z.flush()
    return pdf_of(packed, "/Filter /FlateDecode")


@with_tasks("a PDF that takes too much, by a word", MILLRACE_EXTRACT_PDF_SECONDS="2",
            MILLRACE_EXTRACT_PDF_MEMORY_MB="128", MILLRACE_NODES="1")
def _(m, sim):
    ada = person(m, "ada")
    made = [("a.pdf", bomb(500, b"q 1 0 0 1 0 0 cm Q\n"), "pdf_time", "more than 2 seconds"),
            ("b.pdf", bomb(64, b"BT /F1 12 Tf 72 720 Td (boom) Tj ET\n"), "pdf_memory",
             "more than 128 MB of memory"),
            ("c.pdf", pdf("changed"), "not_pdf", "not a PDF"),
            ("d.pdf", pdf("The dose was 5.5 mg."), None, None)]
    ids = [upload(ada, data, name) for name, data, *_ in made]
    sql(m, "UPDATE document_piece p JOIN document d ON d.number = p.document SET p.bytes ="
           f" REPEAT('x', LENGTH(p.bytes)) WHERE d.id = '{ids[2]}'")
    task = start(ada, template(ada), ids)
    ok(ended(ada, task, seconds=60), "a task of them is closed", status(ada, task))
    for place, (name, _, word, sentence) in enumerate(made, 1):
        x = row(ada, task, place)
        equal((x["reason_code"], x["state"]), (word, "error" if word else "completed"),
              f"{name}: {word}", x["error"])
        ok(not word or sentence in x["error"], "with its sentence", x["error"])
    equal(paid(m, ada), 1, "only what is completed was paid")
    r = ada("POST", "/api/documents?name=e.pdf", raw=b"<html>no</html>")
    equal(r.error[:2], (400, "invalid"), "what is called .pdf and is none is not taken", r)


@with_tasks("what is wrong with a paper, by a word")
def _(m, sim):
    ada = person(m, "ada")
    (journal, year, doi), = sql(m, "SELECT journal, year, DOI FROM paperinfo ORDER BY DOI LIMIT 1")
    (theirs, since, broken), = sql(m, "SELECT journal, year, DOI FROM paperinfo ORDER BY DOI DESC"
                                      " LIMIT 1")
    sql(m, f"UPDATE paperinfo SET Bib = JSON_SET(Bib, '$.bib', 'no entry') WHERE DOI = '{broken}'")
    redis_link(m)("DEL", f"meta:{theirs}:{since}")
    task = make_task(m, ada.uid, [("Beta", "it failed")] * 3, [{"name": "a", "type": "text"}])
    sql(m, f"UPDATE extraction_result SET block_key = IF(place = 3, 'meta:{theirs}:{since}',"
           f" 'meta:{journal}:{year}'), doi = CASE place WHEN 1 THEN '{doi}' WHEN 3 THEN"
           f" '{broken}' ELSE doi END WHERE id LIKE '{task}.%'")
    r = ada("POST", f"/api/tasks/{task}/retry")
    equal(r.status, 200, "three papers are tried again", r)
    ok(ended(ada, task), "closed", status(ada, task))
    got = rows(ada, task)
    equal([(x["state"], x["reason_code"]) for x in got],
          [("completed", None), ("error", "paper_gone"), ("error", "paper_damaged")],
          "one is not in the corpus any more, one is damaged", got)
    equal(got[2]["error"], "the paper cannot be read", "with its sentence")


@test("an AI that refuses, and a reader of PDFs that does not end, by a word")
def _():
    with unwell(0, 400, words("max_tokens is not supported")) as ai, server(
            ai, papers=200, MILLRACE_EXTRACT_PDF_COMMAND="/usr/bin/yes") as m:
        ada = person(m, "ada")
        task = start(ada, template(ada), uploads(ada, 2) + [upload(ada, pdf("x"), "a.pdf")])
        ok(ended(ada, task), "closed", status(ada, task))
        got = rows(ada, task)
        equal([(x["state"], x["reason_code"]) for x in got],
              [("error", "refused")] * 2 + [("error", "too_much_text")], "all are errors", got)
        ok("refuses the request: max_tokens is not supported" in got[0]["error"],
           "in the words of the service", got[0])
        ok("more than 20 MB of text" in got[2]["error"], "and of the limit", got[2])
        equal((paid(m, ada), ai.calls), (0, 2), "asked once each, and not paid")


@with_tasks("an AI that is too slow, by a word", "--latency-ms", "30000",
            MILLRACE_AI_TIMEOUT_MS="60000", MILLRACE_EXTRACT_DEADLINE_MS="1000",
            MILLRACE_EXTRACT_TRIES="0")
def _(m, sim):
    ada = person(m, "ada")
    task = start(ada, template(ada), uploads(ada, 1))
    ok(ended(ada, task), "closed", status(ada, task))
    x = row(ada, task, 1)
    equal((x["state"], x["reason_code"]), ("error", "too_slow"), "an error", x)
    equal(paid(m, ada), 0, "and not paid")


@with_tasks("what a row waits for, by a word", "--latency-ms", "5000", MILLRACE_NODES="1",
            MILLRACE_AI_TIMEOUT_MS="20000")
def _(m, sim):
    root, ada, bob = admin(m, "root"), person(m, "ada", "0.30", permission=1), person(m, "bob")
    mine, ids = template(ada), uploads(ada, 2)
    of_ada = f"/api/admin/users/{ada.uid}"
    words = lambda task: {x["reason_code"] for x in rows(ada, task)}
    says = lambda task, api=ada: (status(api, task)["reason_code"], status(api, task)["message"])
    task = start(ada, mine, ids)
    ok(wait_for(lambda: "permission_used" in words(task), 20),
       "of two documents and one permission one waits", rows(ada, task))
    ok(ended(ada, task), "both are extracted", status(ada, task))
    equal((words(task), says(task)), ({None}, (None, None)), "with nothing to say")
    theirs = start(bob, "pico", uploads(bob, 1))
    ok(wait_for(lambda: sim.stats()["in_flight"] == 1, 20), "another one is asked about")
    sql(m, "UPDATE api_list SET is_active = 0")
    ok(wait_for(lambda: says(theirs, bob)[0] == "no_key", 20),
       "the task says so when the node has no key", says(theirs, bob))
    equal([x["reason_code"] for x in rows(bob, theirs)], [None], "before its row does")
    task = start(ada, mine, ids[:1])
    ok(wait_for(lambda: says(task)[0] == "no_key", 30) and "no active key" in says(task)[1],
       "there is no key", says(task))
    ok(wait_for(lambda: words(task) == {"no_key"}, 30), "so says its row", rows(ada, task))
    permit = lambda n: root("POST", of_ada + "/permission", {"permission": n}).status
    equal(permit(0), 200, "the permission is taken")
    ok(wait_for(lambda: words(task) == {"no_permission"}, 60), "that comes first", rows(ada, task))
    equal((permit(1), root("POST", of_ada + "/deduct", {
        "amount": "0.05", "request_id": "half"}).status), (200, 200), "then some of the money")
    sql(m, "UPDATE api_list SET is_active = 1")
    ok(wait_for(lambda: words(task) == {"no_money"}, 60), "the balance is too low", rows(ada, task))
    equal(says(task)[0], "no_money", "its task says so, too")
    equal(ada("POST", f"/api/tasks/{task}/cancel").status, 200, "it is cancelled")
    equal((words(task), says(task)), ({None}, (None, None)), "and waits no more")
    ok(audited(m), "every cent is where it belongs")


@test("an AI, or a reader of PDFs, that is away, by a word")
def _():
    with Sim() as sim:
        port = sim.port
        with server(sim, papers=200, MILLRACE_EXTRACT_PDF_COMMAND="/nonexistent/reader") as m:
            ada = person(m, "ada")
            texts, file = uploads(ada, 1), upload(ada, pdf("The dose was 5.5 mg."), "a.pdf")
            sim.kill()
            task = start(ada, template(ada), texts + [file])
            words = lambda: [x["reason_code"] for x in rows(ada, task)]
            ok(wait_for(lambda: words() == ["service_down", "pdf_reader"], 60), "both wait",
               rows(ada, task))
            x = row(ada, task, 2)
            ok("no program /nonexistent/reader" in x["message"] and x["error"] is None,
               "with a sentence", x)
            ok(status(ada, task)["reason_code"] in words(), "the task says one of them")
            with Sim(port=port):
                ok(wait_for(lambda: row(ada, task, 1)["state"] == "completed", 60),
                   "the AI is back", rows(ada, task))
            equal(words(), [None, "pdf_reader"], "the other one waits on")


# --- one is tried again ---

@test("one row is tried again")
def _():
    cert = certificate("hook")
    wrong = ("--extract-fault", "1", "--extract-fault-kinds", "types", "--extract-fault-stays")
    with Receiver(cert) as hook, Sim(*wrong) as sim:
        port = sim.port
        with server(sim, papers=200, MILLRACE_WEBHOOK_ALLOW="127.0.0.0/8",
                    MILLRACE_WEBHOOK_CA_FILE=cert[0], MILLRACE_LIMIT_EXTRACTION_DAY="5") as m:
            ada, root = person(m, "ada", "0.30"), admin(m, "root")
            told = lambda: sorted(h["Webhook-Id"] for h, _ in hook.got)
            charge = lambda what, amount: root(
                "POST", f"/api/admin/users/{ada.uid}/{what}",
                {"amount": amount, "request_id": what}).status
            task = submit(ada, template(ada), uploads(ada, 3), webhook=hook.url).body["taskId"]
            ok(ended(ada, task), "closed", status(ada, task))
            equal([(x["state"], x["reason_code"]) for x in rows(ada, task)],
                  [("error", "bad_answer")] * 3, "three errors")
            ok(wait_for(lambda: told() == [f"task-{task}-1"], 20), "told once", told())
            before = rows(ada, task)
            sim.kill()
            with Sim(port=port):
                with ThreadPoolExecutor(2) as pool:
                    got = sorted(pool.map(lambda _: retry(ada, task, 2).status, range(2)))
                equal(got, [200, 409], "one is tried again, once")
                ok(wait_for(lambda: row(ada, task, 2)["state"] == "completed", 30), "it succeeds",
                   row(ada, task, 2))
                ok(ended(ada, task), "closed again", status(ada, task))
                now = rows(ada, task)
                equal((now[0], now[2], now[1]["version"]), (before[0], before[2], 2),
                      "the others are as they were")
                ok(wait_for(lambda: told() == [f"task-{task}-1", f"task-{task}-2"], 20),
                   "told once more, by another id", told())
                equal((paid(m, ada), money(ada), closed(m, task)), (1, ("0.20", "0.00"), 2),
                      "paid once")
                equal(retry(ada, task, 2).error, (409, "conflict", None), "it is in error no more")
                equal(charge("deduct", "0.15"), 200, "some of the money goes")
                equal(retry(ada, task, 1).error, (402, "funds", None), "too little is left")
                equal((row(ada, task, 1), status(ada, task)["status"], closed(m, task)),
                      (before[0], "completed", 2), "so nothing is changed")
                equal(charge("recharge", "0.15"), 200, "it comes back")
                r = retry(ada, task, 1)
                equal((r.status, r.body["status"], r.body["progress"]["failed"]),
                      (200, "processing", 1), "the next one", r)
                ok(ended(ada, task), "closed", status(ada, task))
                equal((states(m, task), paid(m, ada), closed(m, task)),
                      ({"completed": 2, "error": 1}, 2, 3), "likewise")
                equal(retry(ada, task, 3).error[:2], (429, "rate"), "no more documents that day")
                equal(retry(ada, task, 2).error, (409, "conflict", None), "which counts errors")
            ok(audited(m), "every cent is where it belongs")


@with_tasks("a row is tried again while others are worked on", "--latency-ms", "2500",
            MILLRACE_EXTRACT_PDF_PAGES="1")
def _(m, sim):
    ada = person(m, "ada")
    task = start(ada, template(ada), [upload(ada, pdf("one", "two"), "a.pdf")] + uploads(ada, 1))
    ok(wait_for(lambda: row(ada, task, 1)["state"] == "error", 20), "one failed", rows(ada, task))
    equal((retry(ada, task, 2).error, retry(ada, task, 1).status), ((409, "conflict", None), 200),
          "it is tried again, the other one goes on")
    ok(ended(ada, task), "closed", status(ada, task))
    equal((states(m, task), closed(m, task), row(ada, task, 1)["version"]),
          ({"completed": 1, "error": 1}, 1, 2), "once, when both have ended")
    sql(m, f"UPDATE extraction_task SET status = 'cancelled' WHERE id = '{task}'")
    equal(retry(ada, task, 1).error, (409, "conflict", None), "not in a task that was cancelled")
    ok(audited(m), "every cent is where it belongs")


# --- whose values they are ---

@test("the simulated AI")
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "200"}) as m:
        ok(wait_for(m.ready, 40), "without an address of an AI")
        ada = person(m, "ada")
        mine, ids = template(ada), uploads(ada, 1)
        wish = {"template_id": mine, "document_ids": ids}
        equal(ada("POST", "/api/tasks/estimate", wish).body["simulated"], True, "the estimate says")
        task = start(ada, mine, ids)
        first = lambda: ada("GET", "/api/tasks").body["tasks"][0]
        equal(first()["simulated"], False, "a task without values")
        ok(ended(ada, task), "completed")
        equal((first()["simulated"], row(ada, task, 1)["simulated"]), (True, True), "and with some")
    with Sim() as sim, server(sim, papers=200) as m:
        ada = person(m, "ada")
        wish = {"template_id": "pico", "document_ids": uploads(ada, 1)}
        equal(ada("POST", "/api/tasks/estimate", wish).body["simulated"], False, "with an address")


run_tests()
