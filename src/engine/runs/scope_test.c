/* What a run says of its judges, also if the operator changes them while it goes on; and how many
 * of its papers there was nothing to judge of. */
#include "engine/runs/scope.h"

#include "base/sha256.h"
#include "engine/runs/results_fixture.h"

static struct runs runs_of(const struct node *n)
{
    return (struct runs){.redis = n->redis, .sql = n->sql};
}

static void note(struct task *t, const struct runs *r, struct run_id id, const char *model,
                 const char *prompt, bool simulated)
{
    char digest[SHA256_HEX_BYTES];
    sha256_hex(str_of(prompt), digest);
    struct scope_judge j = {.model = str_of(model),
                            .prompt = str_of(prompt),
                            .digest = str_of(digest),
                            .simulated = simulated};
    check(scope_note_judge(t, r, id, &j) == 0);
    check(task_sleep(t, 2) == 0); /* since is of milliseconds */
}

static struct scope scope_of(struct task *t, const struct runs *r, struct run_id id)
{
    struct scope s;
    check(scope_read(t, r, id, &s) == 0);
    return s;
}

static void test_judges(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct scope s;
    open_node(t, &n);
    struct runs r = runs_of(&n);
    struct run_id id = new_run(t, &n), other = new_run(t, &n);
    s = scope_of(t, &r, id);
    ok(s.judge_count == 0 && !s.row.simulated, "before its first verdict nobody judges a run");
    for (int i = 0; i < 3; i++)
        note(t, &r, id, "large", "Judge: {{question}}", false);
    s = scope_of(t, &r, id);
    is_int((int64_t)s.judge_count, 1, "each node notes it, and it is there once");
    ok(!s.row.simulated && !s.judges[0].simulated, "a real AI");
    is_str(s.judges[0].model, STR("large"), "by its name");
    is_str(s.judges[0].prompt, STR("Judge: {{question}}"), "with its prompt");
    note(t, &r, id, "large", "Judge: {{question}}", true);
    ok(scope_of(t, &r, id).row.simulated, "a run goes on with the simulated AI: it is marked");
    note(t, &r, id, "larger", "Judge again: {{question}}", false);
    s = scope_of(t, &r, id);
    ok(s.row.simulated, "and stays so when a real one takes over");
    is_int((int64_t)s.judge_count, 3, "all three are told");
    ok(!s.judges[0].simulated && s.judges[1].simulated && !s.judges[2].simulated &&
           s.judges[0].since_ms <= s.judges[1].since_ms &&
           s.judges[1].since_ms < s.judges[2].since_ms,
       "in their order");
    ok(scope_of(t, &r, other).judge_count == 0 && !scope_of(t, &r, other).row.simulated,
       "another run has nothing of it");
    is_int(scope_read(t, &r, (struct run_id){id.uid + 1000, id.qid}, &s), ERR_NOT_FOUND,
           "nor has another user");
    close_node(t, &n);
}

/* A failure to money, and no verdict. */
static void skip(struct task *t, struct node *n, struct run_id id, int i, bool withdrawn)
{
    struct charge c = verdict_of(t, id, i, 'f');
    struct result r = {.block_key = key_block_name(task_arena(t), STR("Zoo"), 2000),
                       .outcome = OUTCOME_FAILED,
                       .not_judged = !withdrawn,
                       .withdrawn = withdrawn,
                       .reason = STR("nothing there")};
    struct buf json;
    buf_init(&json);
    result_write(&json, &r);
    c.result = str_dup(task_arena(t), buf_str(&json));
    buf_release(&json);
    check(pay(t, n, c) == CHARGE_DONE);
}

static struct run_unjudged unjudged(struct task *t, struct node *n, struct run_id id, bool archived)
{
    struct run_unjudged count;
    check(run_count_unjudged(t, n->redis, n->sql, id, archived, 1000, &count) == 0);
    return count;
}

static int64_t not_judged(struct task *t, struct node *n, struct run_id id, bool archived)
{
    return unjudged(t, n, id, archived).not_judged;
}

static void test_not_judged(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n);
    judge_all(t, &n, id, 1, "nrfrf");
    is_int(not_judged(t, &n, id, false), 0, "failures are no such papers");
    for (int i = 100; i < 750; i++)
        skip(t, &n, id, i, false);
    is_int(not_judged(t, &n, id, false), 650, "those with nothing to judge are counted");
    judge(t, &n, id, 100, 'r');
    is_int(not_judged(t, &n, id, false), 649, "until one has a verdict");
    struct results r = results_of(&n);
    struct result_row row;
    bool degraded;
    check(results_find(t, &r, id, doi_of(t, 101), &row, &degraded) == 0);
    ok(row.result.not_judged && row.result.outcome == OUTCOME_FAILED, "its result says so");
    is_str(row.result.reason, STR("nothing there"), "and why");
    skip(t, &n, id, 902, true);
    struct run_unjudged now = unjudged(t, &n, id, false);
    ok(now.not_judged == 649 && now.withdrawn == 1, "papers that left the corpus are others");
    check(results_find(t, &r, id, doi_of(t, 902), &row, &degraded) == 0);
    ok(row.result.withdrawn && !row.result.not_judged && row.result.outcome == OUTCOME_FAILED,
       "their results say so");
    check(sql_call(t, n.sql, NULL,
                   "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result)"
                   " VALUES (1, ?, 'a', 'meta:Zoo:2000', NULL, '{\"not_judged\":\"x\"}'),"
                   " (1, ?, 'b', 'meta:Zoo:2000', NULL, '{\"error\":\"not_judged\"}'),"
                   " (1, ?, 'c', 'meta:Zoo:2000', NULL, NULL),"
                   " (1, ?, 'd', 'meta:Zoo:2000', NULL, '{\"withdrawn\":\"x\"}')",
                   sql_text(id.qid), sql_text(id.qid), sql_text(id.qid), sql_text(id.qid)) == 0);
    now = unjudged(t, &n, id, true);
    ok(now.not_judged == 1 && now.withdrawn == 1, "both also in the archive");
    check(run_count_unjudged(t, n.redis, n.sql, id, true, 1, &now) == 0);
    ok(now.not_judged == 1 && now.withdrawn == 0, "never more than have failed");
    close_node(t, &n);
}

static void test_frozen(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct judge_origin from = {.model = STR("m \"1\""), .prompt = STR("New: {{question}}")}, out;
    const struct json *params;
    struct buf b;
    struct json_writer w;
    struct str text;
    char digest[SHA256_HEX_BYTES];
    open_node(t, &n);
    sha256_hex(from.prompt, digest);
    from.digest = str_of(digest);
    jw_begin(&w, &b);
    scope_put_judge(&w, NULL);
    check(json_parse(task_arena(t), jw_finish(&w, task_arena(t)), &params, NULL) == 0);
    ok(!scope_frozen(params, &out), "a run without a judge");
    jw_begin(&w, &b);
    scope_put_judge(&w, &from);
    check(json_parse(task_arena(t), jw_finish(&w, task_arena(t)), &params, NULL) == 0);
    ok(scope_frozen(params, &out) && str_eq(out.model, from.model) &&
           str_eq(out.digest, from.digest),
       "its judge is in its parameters");
    is_int(scope_find_prompt(t, n.sql, from.digest, &text), ERR_NOT_FOUND, "no such prompt");
    ok(scope_keep_prompt(t, n.sql, &from) == 0 && scope_keep_prompt(t, n.sql, &from) == 0,
       "a prompt is kept, also twice");
    ok(scope_find_prompt(t, n.sql, from.digest, &text) == 0 && str_eq(text, from.prompt),
       "and found");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_judges, NULL, true);
    tap_task(test_not_judged, NULL, true);
    tap_task(test_frozen, NULL, true);
    return stop_stores();
}
