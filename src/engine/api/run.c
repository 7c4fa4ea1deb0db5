#include "engine/api/run.h"

#include "corpus/paper.h"
#include "engine/money/ledger.h"
#include "engine/store/amount.h"
#include "engine/watch/standing.h"

#define COUNT .most = INT32_MAX

int api_request_id(struct task *t, struct api_call *c, struct str *out)
{
    struct str id = api_text(c, "request_id");
    if (id.p && !ledger_request_id_fine(id))
        return api_refuse(t, c, "request_id", "must be 1 to %d visible ASCII characters",
                          LEDGER_REQUEST_BYTES_MAX);
    *out = id;
    return 0;
}

/* --- what can be spent --- */

void api_put_reserve(struct task *t, struct json_writer *w, const struct reserve *r)
{
    jw_put_str(w, "reserved", r->known ? amount_decimal(task_arena(t), r->reserved) : STR_NULL);
    jw_put_str(w, "free", r->known ? amount_decimal(task_arena(t), r->free) : STR_NULL);
}

int api_put_free(struct task *t, struct api_call *c, struct json_writer *w, int64_t cents)
{
    struct reserve r;
    int err = reserve_look(t, c->node->runs, c->session.uid, &r);
    if (ledger_is_stopped(err)) /* a submission says so */
        r = (struct reserve){.known = false};
    else if (err)
        return err;
    c->degraded |= r.degraded;
    jw_put_str(w, "free", r.known ? amount_decimal(task_arena(t), r.free) : STR_NULL);
    jw_key(w, STR("suffices"));
    if (r.known)
        jw_bool(w, r.free >= cents);
    else
        jw_null(w);
    return 0;
}

/* --- why it does not move --- */

static void put_count(struct json_writer *w, const char *name, int64_t v)
{
    if (v)
        api_put_known(w, name, true, v);
}

static void put_text(struct json_writer *w, const char *name, struct str v)
{
    jw_key(w, str_of(name));
    jw_str(w, v);
}

static void put_facts(struct json_writer *w, const struct reason *r)
{
    jw_object(w);
    put_count(w, "position", r->position);
    put_count(w, "of", r->of);
    put_count(w, "others", r->others);
    if (r->code == REASON_QUEUED || r->code == REASON_NO_PERMISSION)
        jw_put_int(w, "permission", r->permission);
    put_count(w, "nodes", r->nodes);
    if (r->code == REASON_NO_KEY || r->code == REASON_KEYS_RESTING)
        jw_put_int(w, "keys", r->keys);
    put_count(w, "limit", r->limit);
    if (r->since_ms)
        api_put_time(w, "since", r->since_ms);
    if (r->until_ms)
        api_put_time(w, "until", r->until_ms);
    if (r->cause.n)
        put_text(w, "cause", r->cause);
    if (r->words.n)
        put_text(w, "words", r->words);
    jw_end_object(w);
}

void api_put_reason(struct json_writer *w, const char *code, const struct reason *r)
{
    jw_put_str(w, "reason_code", code ? str_of(code) : STR_NULL);
    jw_key(w, STR("reason_facts"));
    if (r->code == REASON_NONE)
        jw_null(w);
    else
        put_facts(w, r);
}

void api_put_seconds(struct json_writer *w, const char *least, const char *most,
                     const struct run_view *v)
{
    api_put_known(w, least, v->seconds_known, v->seconds_min);
    api_put_known(w, most, v->seconds_known, v->seconds_max);
}

/* --- one run --- */

static int64_t reserved_of(const struct run_view *v)
{
    return run_state_final(v->state) || v->ceiling < v->cents ? 0 : v->ceiling - v->cents;
}

void api_put_progress(struct task *t, struct json_writer *w, const struct run_view *v)
{
    jw_put_str(w, "state", str_of(run_state_name(v->state)));
    const char *code = run_reason_code(v->reason);
    struct str text = v->reason.n ? v->reason : reason_text(task_arena(t), &v->why);
    jw_put_str(w, "reason", text.n ? text : STR_NULL);
    api_put_reason(w, code ? code : reason_word(v->why.code), &v->why);
    jw_put_int(w, "papers", v->papers);
    jw_put_int(w, "finished", v->finished);
    jw_put_int(w, "relevant", v->relevant);
    jw_put_int(w, "failed", v->failed - v->unjudged.not_judged - v->unjudged.withdrawn);
    jw_put_int(w, "not_judged", v->unjudged.not_judged);
    jw_put_int(w, "withdrawn", v->unjudged.withdrawn);
    jw_put_str(w, "cost", amount_decimal(task_arena(t), v->cents));
    jw_put_str(w, "reserved", amount_decimal(task_arena(t), reserved_of(v)));
    jw_put_int(w, "workers", v->workers);
    api_put_seconds(w, "seconds_left_min", "seconds_left_max", v);
}

void api_put_run(struct task *t, struct json_writer *w, struct str qid, const struct run_view *v)
{
    jw_put_str(w, "query_id", qid);
    api_put_progress(t, w, v);
    jw_put_str(w, "question", v->question);
    jw_put_str(w, "estimate", amount_decimal(task_arena(t), v->ceiling));
    api_put_time(w, "created_at", v->created_ms);
    api_put_time(w, "start_time", v->started_ms);
    api_put_time(w, "end_time", v->ended_ms);
    jw_put_bool(w, "is_distillation", v->is_distillation);
    jw_put_str(w, "original_query_id", v->original_query_id);
    api_put_nearest(w, &v->nearest, v->papers, NULL);
    jw_put_bool(w, "simulated", v->simulated);
}

void api_put_nearest(struct json_writer *w, const struct run_nearest *n, int64_t found,
                     const struct json *chosen)
{
    if (!n->text.p) {
        jw_put_str(w, "nearest", STR_NULL);
        return;
    }
    jw_put_object(w, "nearest");
    jw_put_str(w, "q", n->text);
    jw_put_int(w, "n", n->papers);
    jw_put_int(w, "found", found);
    if (chosen) {
        jw_put_array(w, "journals");
        json_each (name, chosen)
            jw_str(w, json_str(name));
        jw_end_array(w);
    }
    jw_end_object(w);
}

/* --- all of them --- */

int api_list_runs(struct task *t, struct api_call *c, struct json_writer *w, int64_t uid,
                  int64_t limit_default)
{
    struct node *n = c->node;
    struct history h = {n->redis, n->sql, n->cache};
    struct history_page page;
    int64_t limit = limit_default;
    api_int(c, "limit", &limit);
    int err = history_list(t, &h, uid, api_text(c, "cursor"), limit, &page);
    if (err == ERR_INVALID)
        return api_refuse(t, c, "cursor", "%s", task_error(t));
    if (err)
        return err;
    cache_touch(t, n->cache, uid); /* history_list may have filled Redis */
    c->degraded = c->degraded || page.degraded;
    struct run_id *ids = ARENA_ARRAY(task_arena(t), struct run_id, page.count + 1);
    struct run_view *views = ARENA_ARRAY(task_arena(t), struct run_view, page.count + 1);
    for (size_t i = 0; i < page.count; i++) {
        ids[i] = (struct run_id){uid, page.runs[i].qid};
        views[i] = run_row_view(t, &page.runs[i]);
    }
    standing_tell(t, n->standing, ids, views, page.count);
    jw_put_array(w, "queries");
    for (size_t i = 0; i < page.count; i++) {
        jw_object(w);
        api_put_run(t, w, ids[i].qid, &views[i]);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_put_str(w, "next", page.next);
    return 0;
}

/* --- the tables --- */

const struct api_field api_reason_fields[] = {
    {"position", API_INT, .optional = true, COUNT, .about = "queued: in the queue, from 1 on"},
    {"of", API_INT, .optional = true, COUNT, .about = "queued: how many are in the queue"},
    {"others", API_INT, .optional = true, COUNT,
     .about = "queued: workers that other runs of the same user have"},
    {"permission", API_INT, .optional = true, COUNT,
     .about = "queued, no_permission: workers that the user may have"},
    {"nodes", API_INT, .optional = true, COUNT, .about = "drained: all of them"},
    {"keys", API_INT, .optional = true, COUNT,
     .about = "no_key, keys_resting: keys of the AI service that cannot be used"},
    {"limit", API_INT, .optional = true, COUNT, .about = "rate_limit: requests of a minute"},
    {"since", API_TIME, .optional = true, .about = "service_down: since when"},
    {"until", API_TIME, .optional = true,
     .about = "keys_resting, no_key: when the first key may be used again"},
    {"cause", API_TEXT, .optional = true, .most = INT32_MAX,
     .about = "no_key: none, refused, off, capped or mixed; service_down: proxy, refused, dns, "
              "tls, timeout, status_500, …; repairing: queue, account or redis"},
    {"words", API_TEXT, .optional = true, .most = INT32_MAX,
     .about = "service_down, refused, unrecorded: what the service or the ledger said"},
    API_END,
};
const struct api_field api_nearest_of_run[] = {
    {"q", API_TEXT, .most = INT32_MAX, .about = "the text that its papers are nearest to"},
    {"n", API_INT, COUNT, .about = "papers that were asked for"},
    {"found", API_INT, COUNT, .about = "papers that there were"},
    {"journals", API_TEXTS, .optional = true, .most = CATALOG_JOURNALS_MAX,
     .item_most = PAPER_NAME_BYTES_MAX,
     .about = "that it was limited to; absent: it was not, or in answers other than the scope"},
    API_END,
};
const struct api_field api_run_fields[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the run"},
    {"state", API_TEXT, .choices = API_RUN_STATES, .about = "what it does now"},
    {"reason", API_TEXT, .optional = true, .most = RUN_REASON_BYTES_MAX,
     .about = "why it does not move, is paused, was ended by an admin, or failed"},
    API_REASON_FIELDS("the same for programs; funds: the balance is used up, resume after a "
                      "recharge; queued and rate_limit: nothing is wrong"),
    {"question", API_TEXT, .most = INT32_MAX, .about = "what the AI was asked"},
    {"papers", API_INT, COUNT, .about = "in the run"},
    {"finished", API_INT, COUNT, .about = "judged, failed, not judged or withdrawn so far"},
    {"relevant", API_INT, COUNT, .about = "of those"},
    {"failed", API_INT, COUNT,
     .about = "of those: the AI gave no verdict, and nothing was charged"},
    {"not_judged", API_INT, COUNT,
     .about = "of those: they have neither title nor abstract, the AI was not asked, and nothing "
              "was charged"},
    {"withdrawn", API_INT, COUNT,
     .about = "of those: they had left the corpus when their turn came, the AI was not asked, and "
              "nothing was charged"},
    {"cost", API_MONEY, .about = "charged so far"},
    {"estimate", API_MONEY, .about = "what it costs at most, as it was when it was submitted"},
    {"reserved", API_MONEY,
     .about = "of the balance for this run: estimate less cost, until it "
              "ends"},
    {"workers", API_INT, COUNT, .about = "that judge its papers now; 0 in lists"},
    {"seconds_left_min", API_INT, .optional = true, COUNT,
     .about = "it will take so long at least; null: it does not move, or that is not known"},
    {"seconds_left_max", API_INT, .optional = true, COUNT, .about = "and so long at most"},
    {"created_at", API_TIME, .about = "when it was submitted"},
    {"start_time", API_TIME, .optional = true, .about = "when it began to run"},
    {"end_time", API_TIME, .optional = true, .about = "when it ended"},
    {"is_distillation", API_BOOL, .about = "it judges the relevant papers of another run"},
    {"original_query_id", API_TEXT, .optional = true, .most = 64, .about = "that other run"},
    {"nearest", API_OBJECT, .optional = true, .fields = api_nearest_of_run,
     .about = "it judges the papers nearest to a text; null: whole journals, or another run's"},
    {"simulated", API_BOOL,
     .about = "verdicts of it are of the simulated AI, and mean nothing; each result tells"},
    {"distillations", API_TEXTS, .optional = true, .most = RUN_DISTILLATIONS_MAX, .item_most = 64,
     .about = "runs that judge the relevant papers of this one, newest first; not in lists"},
    API_END,
};
const struct api_field api_runs_reply[] = {
    {"queries", API_OBJECTS, .about = "newest first", .fields = api_run_fields},
    {"next", API_TEXT, .optional = true, .most = 128,
     .about = "cursor of the next page; null: none"},
    API_END,
};
const struct api_field api_state_reply[] = {
    {"state", API_TEXT, .choices = API_RUN_STATES, .about = "what it does now"},
    API_END,
};
