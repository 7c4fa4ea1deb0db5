"""Screenings of the papers nearest to a text (EMB-5): what they cost, what they are over, and that
a list stays as it was when it was submitted."""
import csv
import io
import pathlib

from admins import admin
from client import cli
from harness import equal, folder, http, ok, redis_link, run_tests, sql, test, wait_for
from screening import act, audited, person, reaches, results, server, view
from sim import Sim

PRICES = {"DRY J": 1, "WET J": 3}
NEAR = [f"10.1000/near{i}" for i in range(10)]
FAR = [f"10.1000/far{i}" for i in range(20)]
TEXT = "graphene membranes that filter salt water"
YEARS = {"year_from": 1900, "year_to": 2100}
WISH = {**YEARS, "question": "What is it about: graphene?", "nearest": {"q": TEXT, "n": 10}}
SCREEN = {n: WISH[n] for n in WISH if n != "question"}


def entry(doi, number):
    about = "oak trees that grow in cold northern forests"
    about = f"{TEXT} {TEXT}" if doi in NEAR else about
    return (f"@article{{k{number}, title = {{Sample {number}: {about}}},"
            f" abstract = {{We study {about}, sample {number}.}}, doi = {{{doi}}},"
            f" year = {2000 + number % 10}}}\n")


def collection(top, without=()):
    """Six of the near papers are in the cheap journal, four in the other one."""
    (top / "PaperAndTagInfo").mkdir(exist_ok=True)
    (top / "PaperAndTagInfo" / "InfoList.Paper.csv").write_text(
        "Name,FullName,DataRange,UpdateDate,Price\n" +
        "".join(f"{name},A Journal,2000-2009,1/1/2026,{PRICES[name]}\n" for name in PRICES))
    for name, papers in ("DRY J", NEAR[:6] + FAR[:10]), ("WET J", NEAR[6:] + FAR[10:]):
        (top / "Data" / name).mkdir(parents=True, exist_ok=True)
        (top / "Data" / name / "a.bib").write_text(
            "\n".join(entry(p, (NEAR + FAR).index(p)) for p in papers if p not in without))


def load(m, top, *options):
    for command in (["init", "--data", str(top), *options], ["warm"]):
        done = cli(m, "db", *command)
        assert done.returncode == 0, done


def index(m, api, *names):
    r = api("POST", "/api/admin/embedding/papers", {"journals": list(names)})
    assert r.status == 202, r
    left = "SELECT COUNT(*) FROM embedding_unit WHERE state IN ('pending', 'working')"
    assert wait_for(lambda: sql(m, left) == [["0"]], 60), sql(m, "SELECT * FROM embedding_unit")


def estimate(api, **wish):
    return api("POST", "/api/estimate", {**SCREEN, **wish})


def submit(api, **wish):
    return api("POST", "/api/queries", {**WISH, **wish})


def frozen(m, qid):
    return [r[0] for r in sql(m, "SELECT doi FROM distill_paper WHERE query_id ="
                                 f" '{qid}' ORDER BY number")]


def rows_of_file(api, qid):
    made = api("POST", "/api/download/create", {"query_id": qid, "type": "csv", "scope": "all"})
    at = f"task_id={made.body['task_id']}"
    wait_for(lambda: api("GET", f"/api/download/status?{at}").body["state"] == "READY")
    text = http(api.server.port, f"/api/download/file?{at}",
                headers=[f"Authorization: Bearer {api.token}"]).body.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def check_refusals(api):
    r = submit(api)
    equal(r.error[:2], (409, "conflict"), "nothing is indexed: no run", r)
    ok("indexed" in r.body["error"]["message"], "it says so", r)
    e = estimate(api).body
    equal((e["papers"], e["cost"], e["per_journal"], e["nearest"]),
          (0, "0.00", [], {"found": 0, "reason": "nothing_embedded"}), "nor an estimate of any")
    whole = {n: WISH[n] for n in WISH if n != "nearest"}
    equal(api("POST", "/api/queries", whole).body["error"]["message"], "journals: is missing",
          "without journals there must be a text")
    for field, wish in [("nearest.n", {"nearest": {"q": TEXT, "n": 0}}),
                        ("nearest.n", {"nearest": {"q": TEXT, "n": 20001}}),
                        ("nearest.q", {"nearest": {"q": "", "n": 3}}),
                        ("nearest.q", {"nearest": {"q": " \u3000\n", "n": 3}}),
                        ("nearest.q", {"nearest": {"q": "x" * 4001, "n": 3}}),
                        ("nearest.q", {"nearest": {"n": 3}}),
                        ("nearest.k", {"nearest": {"q": TEXT, "n": 3, "k": 1}}),
                        ("nearest", {"nearest": None}),
                        ("journals", {"journals": ["NO J"]}),
                        ("journals", {"journals": ["DRY J", "DRY J"]}),
                        ("year_to", {"year_from": 2020, "year_to": 2019})]:
        got = [(r.status, r.body["error"].get("field")) for r in
               (estimate(api, **wish), submit(api, **wish))]
        equal(got, [(400, field)] * 2, f"refused: {str(wish)[:80]}")


def check_estimates(api):
    # A node that has not seen yet that the first index is complete says so, for half a second.
    all_ten = lambda: all(estimate(api).body["nearest"] == {"found": 10, "reason": None}
                          for _ in range(8))
    ok(wait_for(all_ten, 10), "ten are found, on every node")
    e = estimate(api).body
    equal((e["papers"], e["cost"], e["nearest"]), (10, "18.00", {"found": 10, "reason": None}),
          "the nearest ten, at the prices of their journals")
    equal(e["per_journal"],
          [{"journal": "DRY J", "papers": 6, "price": 1, "cost": "6.00"},
           {"journal": "WET J", "papers": 4, "price": 3, "cost": "12.00"}], "journal by journal")
    e = estimate(api, journals=["WET J"]).body
    equal((e["papers"], e["cost"]), (10, "30.00"), "of one journal alone, ten more or less near")
    e = estimate(api, year_from=2003, year_to=2003).body
    equal((e["papers"], e["nearest"]["found"]), (3, 3), "of one year there are but three")
    e = estimate(api, year_to=1950).body
    equal((e["papers"], e["nearest"]), (0, {"found": 0, "reason": None}), "of others none")
    r = submit(api, year_to=1950)
    equal((r.status, r.body["error"]["field"]), (400, "nearest"), "of which there is no run", r)


def check_run(m, api):
    r = submit(api, request_id="one")
    equal(r.status, 202, "submitted", r)
    qid = r.body["query_id"]
    equal(submit(api, request_id="one").body["query_id"], qid, "a repeat is the same run")
    equal(submit(api, request_id="one", nearest={"q": TEXT, "n": 9}).error[:2], (409, "conflict"),
          "another list is not")
    equal(sorted(frozen(m, qid)), sorted(NEAR), "the near papers are frozen, and no other one")
    ok(reaches(api, qid, "DONE"), "it is judged")
    v = view(api, qid)
    equal([v[n] for n in ("papers", "finished", "failed", "cost", "estimate", "is_distillation")],
          [10, 10, 0, "18.00", "18.00", False], "all of it, for what was estimated")
    over = {"q": TEXT, "n": 10, "found": 10}
    equal(v["nearest"], over, "the run says what it is over")
    equal(api("GET", "/api/queries").body["queries"][0]["nearest"], over, "and so does the history")
    s = api("GET", f"/api/queries/{qid}/scope").body
    equal([s[n] for n in ("nearest", "question", "year_from", "year_to", "papers",
                          "distilled_from")],
          [over, WISH["question"], 1900, 2100, 10, None], "and its scope")
    equal(s["journals"], [{"name": "DRY J", "price": 1, "papers": 6},
                          {"name": "WET J", "price": 3, "papers": 4}], "with the journals")
    equal(set(results(m, api, qid)), set(NEAR), "its results")
    equal(sorted(r["doi"] for r in rows_of_file(api, qid)), sorted(NEAR), "and its file")
    return qid


def check_filtered(m, api):
    qid = submit(api, journals=["WET J"], nearest={"q": TEXT, "n": 4}).body["query_id"]
    equal(sorted(frozen(m, qid)), NEAR[6:], "of one journal")
    over = api("GET", f"/api/queries/{qid}/scope").body["nearest"]
    equal(over, {"q": TEXT, "n": 4, "found": 4, "journals": ["WET J"]}, "as its scope says")
    ok(reaches(api, qid, "DONE") and view(api, qid)["cost"] == "12.00", "at its price")


def check_distillation(api, qid):
    wish = {"original_query_id": qid, "question": "Which membranes?"}
    ask = lambda: api("POST", "/api/distill/estimate", {"original_query_id": qid})
    assert wait_for(lambda: ask().status == 200, 20), ask()
    relevant = view(api, qid)["relevant"]
    ok(relevant == 10 and ask().body["cost"] == "1.80", "a tenth of the price", ask())
    made = api("POST", "/api/distill", wish)
    ok(reaches(api, made.body["query_id"], "DONE"), "it can be distilled")
    v = view(api, made.body["query_id"])
    equal((v["papers"], v["cost"], v["nearest"]), (10, "1.80", None), "which is no list of its own")


def check_changes(m, api, root, top):
    """Paused, while index and corpus change and Redis loses its units; one paper comes back."""
    qid = submit(api).body["query_id"]
    assert act(api, qid, "pause").status == 200
    last = frozen(m, qid)[-1]
    collection(top, without=[last])
    load(m, top, "--prune")
    index(m, root, *PRICES)
    e = estimate(api).body
    ok(e["papers"] == 10 and estimate(api, nearest={"q": TEXT, "n": 30}).body["papers"] == 29,
       "another list would have another paper", e)
    link = redis_link(m)
    units = [k for k in link("KEYS", f"*{qid}*") if b"distill_chunk" in k]
    for key in units:
        link("DEL", key)
    assert act(api, qid, "resume").status == 200
    ok(reaches(api, qid, "DONE"), "it goes on")
    v = view(api, qid)
    equal([v[n] for n in ("papers", "finished", "withdrawn", "failed")], [10, 10, 1, 0],
          "over the papers that it was submitted with; the one that has left is withdrawn")
    cost = 18 - (3 if last in NEAR[6:] else 1)
    equal(v["cost"], f"{cost}.00", "and costs nothing")
    collection(top)
    load(m, top)
    assert wait_for(lambda: sql(m, f"SELECT archived FROM query_log WHERE query_id = '{qid}'")
                    == [["1"]], 20)
    equal(act(api, qid, "retry_failed").status, 200, "what failed is tried again")
    ok(wait_for(lambda: view(api, qid)["state"] == "DONE" and view(api, qid)["withdrawn"] == 0, 20),
       "the paper that is back is judged", view(api, qid))
    equal(view(api, qid)["cost"], "18.00", "and paid, once")


def check_service_away(api, words):
    words.kill()
    other = {"q": "a text that was not asked for before", "n": 3}
    e = estimate(api, nearest=other).body
    equal((e["papers"], e["nearest"]["reason"]), (0, "embedding_service_away"),
          "without the embedding service nothing can be estimated")
    r = submit(api, nearest=other)
    equal(r.error[:2], (409, "conflict"), "nor submitted", r)
    ok("embedding service" in r.body["error"]["message"], "it says why", r)


@test("the papers nearest to a text")
def _():
    with Sim("--latency-ms", "100") as sim, Sim() as words:
        env = {"MILLRACE_AI_EMBEDDING_URL": words.url, "MILLRACE_NODES": "2"}
        with server(sim, 0, **env) as m:
            sql(m, "INSERT INTO api_list (api_key, service, rpm_limit, tpm_limit) VALUES"
                   " ('sk-embedding', 'embedding', 1000000, 1000000000),"
                   " ('sk-chat', 'chat', 1000000, 1000000000)")
            top = pathlib.Path(folder())
            collection(top)
            load(m, top)
            root, api, poor = admin(m, "ada"), person(m, "alice"), person(m, "bob", "17.99")
            check_refusals(api)
            index(m, root, *PRICES)
            check_estimates(api)
            r = submit(poor)
            equal(r.error[:2], (402, "funds"), "17.99 are not 18.00", r)
            equal(sql(m, "SELECT COUNT(*) FROM distill_paper"), [["0"]], "and nothing is frozen")
            qid = check_run(m, api)
            check_filtered(m, api)
            check_distillation(api, qid)
            check_changes(m, api, root, top)
            check_service_away(api, words)
            audited(m)


if __name__ == "__main__":
    run_tests()
