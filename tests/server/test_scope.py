"""What a run says of itself (SCR-15, SCR-18): its scope, what judged it, and that verdicts of the
simulated AI are marked wherever they go. The simulated AI needs no key."""
import csv
import hashlib
import io
import json
import pathlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from client import PASSWORD, Api, cli
from harness import Millrace, equal, folder, http, ok, redis_link, run_tests, sql, test, wait_for
from screening import act, audited, person, reaches, server, submit, view

JOURNAL, YEARS = "BARE J", (2020, 2021)
TEXT = "title = {%s}, abstract = {%s}, "
PAPERS = [TEXT % ("Graphene membranes", "We split water."), TEXT % ("Oak trees", "They grow."),
          TEXT % ("Sea ice", "About graphene."), "title = {Graphene alone}, ",
          "title = {Nothing to add}, ", "", "title = {}, abstract = { }, ", "author = {Doe, J.}, "]
BLANK, BARE, PRICE = 3, 5, 2
WISH = {"question": "What is it about: graphene?", "journals": [JOURNAL], "year_from": YEARS[0],
        "year_to": YEARS[1]}


def collection():
    top = pathlib.Path(folder())
    (top / "Data" / JOURNAL).mkdir(parents=True)
    (top / "PaperAndTagInfo").mkdir()
    (top / "PaperAndTagInfo" / "InfoList.Paper.csv").write_text(
        "Name,FullName,DataRange,UpdateDate,Price\n"
        f"{JOURNAL},A Journal,2020-2021,1/1/2026,{PRICE}\n")
    entries = [f"@article{{k{i}, {text}doi = {{10.1000/{i}}}, year = {YEARS[i % 2]}}}\n"
               for i, text in enumerate(PAPERS)]
    (top / "Data" / JOURNAL / "a.bib").write_text("\n".join(entries))
    return top


def load(m, top):
    for command in (["init", "--data", str(top)], ["warm"]):
        done = cli(m, "db", *command)
        assert done.returncode == 0, done


def file_of(api, qid, kind):
    made = api("POST", "/api/download/create", {"query_id": qid, "type": kind, "scope": "all"})
    at = f"task_id={made.body['task_id']}"
    wait_for(lambda: api("GET", f"/api/download/status?{at}").body["state"] == "READY")
    return http(api.server.port, f"/api/download/file?{at}",
                headers=[f"Authorization: Bearer {api.token}"]).body.decode("utf-8-sig")


def check_counts(api, qid, when):
    v = view(api, qid)
    equal([v[n] for n in ("papers", "finished", "relevant", "failed", "not_judged", "cost")],
          [8, 8, 3, 0, BLANK, f"{(8 - BLANK) * PRICE}.00"],
          f"what can be judged is judged and paid, the rest is not, {when}")
    ok(v["simulated"], "the run is marked")
    listed = api("GET", "/api/queries").body["queries"][0]
    equal([listed[n] for n in ("failed", "not_judged", "simulated")], [0, BLANK, True],
          f"so it is in the history, {when}")
    rows = {r["doi"]: r for r in api("GET", f"/api/queries/{qid}/results?limit=50").body["results"]}
    blank = [r for r in rows.values() if r["not_judged"]]
    equal(sorted((r["relevant"], r["error"], r["simulated"]) for r in blank),
          [(None, "the paper has neither title nor abstract", False)] * BLANK,
          f"papers with nothing to judge say so, {when}")
    judged = [r for r in rows.values() if not r["not_judged"]]
    ok(len(judged) == 5 and all(r["simulated"] for r in judged), f"each verdict is marked, {when}")
    ok(not any("about'" in r["reason"].lower() for r in judged), "no reason names a stop word")
    paper = api("GET", f"/api/queries/{qid}/paper?doi=10.1000/0").body
    ok(paper["simulated"] and not paper["not_judged"], "so does a single paper")


def check_scope(api, qid):
    s = api("GET", f"/api/queries/{qid}/scope").body
    equal([s[n] for n in ("question", "journals", "year_from", "year_to", "papers",
                          "without_abstract", "distilled_from", "simulated")],
          [WISH["question"], [{"name": JOURNAL, "price": PRICE, "papers": 8}], *YEARS, 8, BARE,
           None, True], "its scope")
    equal([(j["model"], j["simulated"]) for j in s["judged_by"]], [("default", True)],
          "what judged it")
    judge = s["judged_by"][0]
    ok("{{question}}" in judge["prompt"] and
       hashlib.sha256(judge["prompt"].encode()).hexdigest() == judge["prompt_digest"],
       "the prompt, and its digest")
    ok(s["created_at"] <= s["start_time"] <= judge["since"] <= s["end_time"], "its times", s)
    again = {n: s[n] for n in ("question", "year_from", "year_to")}
    again["journals"] = [j["name"] for j in s["journals"]]
    equal(again, WISH, "it can be screened again from there")


def check_files(api, qid):
    rows = list(csv.DictReader(io.StringIO(file_of(api, qid, "csv"))))
    equal(sorted((r["verdict"], r["simulated"]) for r in rows),
          [("not judged", "")] * BLANK + [("not relevant", "yes")] * 2 + [("relevant", "yes")] * 3,
          "CSV has a column")
    equal(file_of(api, qid, "bib").count("% the verdict on the next entry is simulated"), 5,
          "BibTeX a comment before each entry")
    equal(file_of(api, qid, "ris").count("\nN1  - The verdict is simulated"), 5, "RIS a note")


def check_distillation(api, qid):
    wish = {"original_query_id": qid, "question": "Which membranes?"}
    made = api("POST", "/api/distill", wish)
    ok(reaches(api, made.body["query_id"], "DONE"), "a distillation")
    s = api("GET", f"/api/queries/{made.body['query_id']}/scope").body
    equal([s["is_distillation"], s["year_from"], s["papers"], s["distilled_from"]],
          [True, None, 3, {"query_id": qid, "question": WISH["question"], "papers": 8,
                           "relevant": 3, "simulated": True}], "says what it was distilled from")


def user(m):
    added = cli(m, "user", "add", "ada", "--balance", "1000.00", "--permission", "5",
                stdin=PASSWORD + "\n")
    assert added.returncode == 0, added
    api = Api(m)
    assert api.login("ada").status == 200
    return api


@test("a run of the simulated AI")
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "0", "MILLRACE_NODES": "1"}) as m:
        load(m, collection())
        equal(sql(m, "SELECT COUNT(*) FROM api_list"), [["0"]], "there is no key at all")
        api = user(m)
        e = api("POST", "/api/estimate", {n: WISH[n] for n in WISH if n != "question"}).body
        equal((e["papers"], e["without_abstract"], e["simulated"]), (8, BARE, True),
              "the estimate counts papers without an abstract, and says that the AI is simulated")
        qid = api("POST", "/api/queries", WISH).body["query_id"]
        ok(reaches(api, qid, "DONE"), "and a run is judged to its end")
        equal(api("POST", f"/api/queries/{qid}/retry_failed").error[0], 409,
              "nothing has failed that could be tried again")
        check_counts(api, qid, "before it is archived")
        check_scope(api, qid)
        check_files(api, qid)
        wait_for(lambda: sql(m, "SELECT archived FROM query_log") == [["1"]])
        check_counts(api, qid, "and after")
        equal(sql(m, "SELECT COUNT(*) FROM search_result WHERE relevant IS NULL"), [[str(BLANK)]],
              "they have no verdict in MySQL")
        check_distillation(api, qid)
        waits(m, api)
        uncounted(m, api)


def waits(m, api):
    """No verdict is recorded before it is noted what judges the run."""
    sql(m, "RENAME TABLE query_judge TO away")
    qid = api("POST", "/api/queries", WISH).body["query_id"]
    said = wait_for(lambda: f"run {qid}: the model that judges it is not written" in m.log())
    time.sleep(0.5)
    v = view(api, qid)
    sql(m, "RENAME TABLE away TO query_judge")
    ok(said and v["finished"] == v["not_judged"] <= BLANK, "verdicts wait, and the log says why", v)
    ok(reaches(api, qid, "DONE"), "the run goes on by itself")
    v = view(api, qid)
    equal((v["failed"], v["relevant"], v["simulated"]), (0, 3, True), "and no paper has failed")


def uncounted(m, api):
    """A corpus that was loaded before there was such a count."""
    sql(m, "DELETE FROM corpus_bare")
    assert cli(m, "db", "warm").returncode == 0
    choice = {n: WISH[n] for n in WISH if n != "question"}
    for years in ({}, {"year_from": 1900, "year_to": 2100}):
        e = api("POST", "/api/estimate", {**choice, **years}).body
        equal(e.get("without_abstract"), None, "what was not counted is not told")
    load(m, collection())
    for years in ({}, {"year_from": 1900, "year_to": 2100}):
        e = api("POST", "/api/estimate", {**choice, **years}).body
        equal(e.get("without_abstract"), BARE, "the next db init counts")
    link = redis_link(m)
    link("DEL", "sys:journals:price")
    e = api("POST", "/api/estimate", choice).body
    equal((e["papers"], e.get("without_abstract")), (8, None), "without Redis it is not known")


class Service:
    """An AI that keeps which model and which prompt it was asked with. It may lose a model."""

    def __enter__(self):
        service = self
        self.asked, self.gone = [], None

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append((body["model"], body["messages"][0]["content"]))
                if body["model"] == service.gone:
                    return self.answer(404, {"error": {"message": "no such model: first"}})
                time.sleep(0.05)
                verdict = json.dumps({"relevant": True, "reason": "so"})
                reply = {"choices": [{"message": {"role": "assistant", "content": verdict},
                                      "finish_reason": "stop"}], "usage": {"total_tokens": 9}}
                self.answer(200, reply)

            def answer(self, status, reply):
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def used(self, question):
        """Models and beginnings of prompts of that question; those before are forgotten."""
        asked, self.asked = self.asked, []
        return {(model, prompt[:3]) for model, prompt in asked if question in prompt}


def judges(api, qid):
    return [(j["model"], j["prompt"][:3]) for j in
            api("GET", f"/api/queries/{qid}/scope").body["judged_by"]]


def paused(api, question):
    qid, total = submit(api, 150, question=question)
    assert wait_for(lambda: 0 < view(api, qid)["finished"] < total, 20), view(api, qid)
    assert act(api, qid, "pause").status == 200
    assert wait_for(lambda: view(api, qid)["workers"] == 0, 10)
    return qid


def forget_judge(m, api, qid):
    """As a run was that is older than this."""
    sql(m, "UPDATE query_log SET search_params = JSON_REMOVE(search_params, '$.judge')"
        f" WHERE query_id = '{qid}'")
    key = f"query:{api.uid}:{qid}:info"
    params = json.loads(redis_link(m)("HGET", key, "search_params"))
    del params["judge"]
    redis_link(m)("HSET", key, "search_params", json.dumps(params))


@test("a run keeps the model and the prompt that it was submitted with")
def _():
    path = f"{folder()}/prompt.txt"
    pathlib.Path(path).write_text("New prompt: {{question}}")
    with Service() as ai:
        with server(ai, papers=600, MILLRACE_AI_MODEL="first") as m:
            api = person(m, "alice", permission=4)
            mine, old, gone = (paused(api, f"Is it {x}?") for x in ("mine", "old", "gone"))
            forget_judge(m, api, old)
            equal(ai.used("Is it mine?"), {("first", "You")}, "before")
            sql(m, "RENAME TABLE prompt_text TO away")
        with server(ai, data=m.data, MILLRACE_AI_MODEL="second", MILLRACE_AI_PROMPT_FILE=path) as m:
            api.server = m
            r = wait_for(lambda: (r := act(api, mine, "resume")).status != 503 and r, 10)
            equal(r.status, 200, "resumed by a server with another model and prompt")
            before = view(api, mine)["finished"]
            ok(wait_for(lambda: f"run {mine}: the prompt that was frozen with it cannot be read"
                        in m.log(), 20), "while its prompt is missing it waits")
            v = view(api, mine)
            equal((v["finished"], v["failed"], v["state"]), (before, 0, "RUNNING"),
                  "and no paper fails")
            equal(ai.used("Is it mine?"), set(), "nothing is asked")
            sql(m, "RENAME TABLE away TO prompt_text")
            ok(reaches(api, mine, "DONE", 60), "then it goes on by itself")
            equal(view(api, mine)["failed"], 0, "without failures")
            equal(ai.used("Is it mine?"), {("first", "You")}, "asking its own model, its own way")
            equal(judges(api, mine), [("first", "You")], "as its scope says")
            act(api, old, "resume")
            ok(reaches(api, old, "DONE", 60), "a run that has none of its own")
            equal(ai.used("Is it old?"), {("second", "New")}, "is judged as the settings say")
            equal(judges(api, old), [("first", "You"), ("second", "New")], "and its scope has both")
            new, _ = submit(api, 60, question="Is it new?")
            ok(reaches(api, new, "DONE", 60), "a new run")
            equal(ai.used("Is it new?"), {("second", "New")}, "has the new ones")
            ai.gone = "first"
            act(api, gone, "resume")
            ok(reaches(api, gone, "PAUSED", 60), "a service without that model pauses the run")
            v = view(api, gone)
            ok(v["reason_code"] == "refused" and "no such model: first" in v["reason"],
               "in the words of the service", v)
            still, _ = submit(api, 60, question="Is it still there?")
            ok(reaches(api, still, "DONE", 60), "and no other: the service is not down for that")
            ok("the AI service does not work" not in m.log(), "nor said to be")
            distilled = {"original_query_id": mine, "question": "Is it distilled?"}
            made = wait_for(lambda: (r := api("POST", "/api/distill", distilled)).status == 202
                            and r, 20)
            params = json.loads(sql(m, "SELECT search_params FROM query_log WHERE query_id ="
                                    f" '{made.body['query_id']}'")[0][0])
            equal(params["judge"]["model"], "second", "so has a distillation")
            ok(reaches(api, made.body["query_id"], "DONE", 60), "to its end")
            audited(m)


run_tests()
