/* What a run is about, and what judged it (SCR-15): for its page, and as a file beside its
 * results. */
#include "engine/runs/scope.h"

#include "app/screen/screen.h"
#include "corpus/paper.h"
#include "engine/api/run.h"
#include "engine/judge/prompt.h"

static void put_number(struct json_writer *w, const char *name, const struct json *value)
{
    int64_t n;
    jw_key(w, str_of(name));
    if (json_int(value, &n))
        jw_int(w, n);
    else
        jw_null(w);
}

static void put_journals(struct json_writer *w, const struct json *journals)
{
    jw_key(w, STR("journals"));
    jw_array(w);
    json_each (j, journals) {
        struct str name = json_str(json_get(j, "name"));
        if (!name.p)
            continue;
        jw_object(w);
        jw_put_str(w, "name", name);
        put_number(w, "price", json_get(j, "price"));
        put_number(w, "papers", json_get(j, "papers"));
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void put_judges(struct json_writer *w, const struct scope *s)
{
    jw_key(w, STR("judged_by"));
    jw_array(w);
    for (size_t i = 0; i < s->judge_count; i++) {
        const struct scope_judge *j = &s->judges[i];
        jw_object(w);
        jw_put_str(w, "model", j->model);
        jw_put_bool(w, "simulated", j->simulated);
        jw_put_str(w, "prompt_digest", j->digest);
        jw_put_str(w, "prompt", j->prompt);
        api_put_time(w, "since", j->since_ms);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void put_original(struct task *t, struct json_writer *w, const struct run_row *original)
{
    jw_key(w, STR("distilled_from"));
    if (!original->qid.p) {
        jw_null(w);
        return;
    }
    jw_object(w);
    jw_put_str(w, "query_id", original->qid);
    jw_put_str(w, "question", run_row_question(t, original));
    jw_put_int(w, "papers", original->papers);
    jw_put_int(w, "relevant", original->relevant);
    jw_put_bool(w, "simulated", original->simulated);
    jw_end_object(w);
}

int screen_scope(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct scope s;
    int err =
        scope_read(t, c->node->runs, (struct run_id){c->session.uid, http_param(c->x, "id")}, &s);
    if (err)
        return err;
    struct run_view v = run_row_view(t, &s.row);
    jw_put_str(w, "query_id", s.row.qid);
    jw_put_str(w, "question", v.question);
    jw_put_bool(w, "is_distillation", v.is_distillation);
    put_original(t, w, &s.original);
    api_put_nearest(w, &v.nearest, v.papers, json_get(s.params, "chosen"));
    put_journals(w, json_get(s.params, "journals"));
    put_number(w, "year_from", json_get(s.params, "year_from"));
    put_number(w, "year_to", json_get(s.params, "year_to"));
    jw_put_int(w, "papers", v.papers);
    put_number(w, "without_abstract", json_get(s.params, "without_abstract"));
    jw_put_bool(w, "simulated", v.simulated);
    put_judges(w, &s);
    api_put_time(w, "created_at", v.created_ms);
    api_put_time(w, "start_time", v.started_ms);
    api_put_time(w, "end_time", v.ended_ms);
    return 0;
}

#define COUNT .most = INT32_MAX

static const struct api_field journal_fields[] = {
    {"name", API_TEXT, .most = PAPER_NAME_BYTES_MAX, .about = "as in the catalog"},
    {"price", API_INT, .optional = true, COUNT,
     .about = "points for each paper when the run was submitted; a distillation costs a tenth"},
    {"papers", API_INT, .optional = true, COUNT, .about = "of it in the run"},
    API_END,
};
static const struct api_field judge_fields[] = {
    {"model", API_TEXT, .most = 255, .about = "as the AI service calls it"},
    {"simulated", API_BOOL, .about = "it was the simulated AI, whose verdicts mean nothing"},
    {"prompt_digest", API_TEXT, .least = 64, .most = 64, .about = "of the prompt: SHA-256"},
    {"prompt", API_TEXT, .most = PROMPT_FILE_BYTES_MAX,
     .about = "how it was instructed; the question stands at {{question}}"},
    {"since", API_TIME, .about = "when it gave its first verdict"},
    API_END,
};
static const struct api_field original_fields[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names that run"},
    {"question", API_TEXT, .most = INT32_MAX, .about = "what it asked"},
    {"papers", API_INT, COUNT, .about = "in it"},
    {"relevant", API_INT, COUNT, .about = "of those, now"},
    {"simulated", API_BOOL, .about = "verdicts of it are of the simulated AI"},
    API_END,
};
const struct api_field screen_scope_reply[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the run"},
    {"question", API_TEXT, .most = INT32_MAX, .about = "what the AI was asked"},
    {"is_distillation", API_BOOL, .about = "it judges the relevant papers of another run"},
    {"distilled_from", API_OBJECT, .optional = true, .fields = original_fields,
     .about = "that other run"},
    {"nearest", API_OBJECT, .optional = true, .fields = api_nearest_of_run,
     .about = "its papers are those nearest to a text"},
    {"journals", API_OBJECTS, .fields = journal_fields, .about = "that papers are from"},
    {"year_from", API_INT, .optional = true, COUNT, .about = "the first year; null: no such limit"},
    {"year_to", API_INT, .optional = true, COUNT, .about = "the last year, included"},
    {"papers", API_INT, COUNT, .about = "in the run"},
    {"without_abstract", API_INT, .optional = true, COUNT,
     .about = "of those, when the run was submitted; null: not counted"},
    {"simulated", API_BOOL, .about = "verdicts of it are of the simulated AI, and mean nothing"},
    {"judged_by", API_OBJECTS, .fields = judge_fields,
     .about =
         "in order of time; more than one if the AI was a simulated one for some time, or, of runs "
         "submitted before model and prompt were frozen, if the operator changed them; "
         "empty before the first verdict, and for runs before this was kept"},
    {"created_at", API_TIME, .about = "when it was submitted"},
    {"start_time", API_TIME, .optional = true, .about = "when it began to run"},
    {"end_time", API_TIME, .optional = true, .about = "when it ended"},
    API_END,
};
