#include "app/distill/routes.h"

#include "app/distill/distill.h"
#include "engine/api/run.h"
#include "engine/judge/prompt.h"
#include "engine/store/amount.h"

static struct run_id original_of(const struct api_call *c)
{
    return (struct run_id){c->session.uid, api_text(c, "original_query_id")};
}

static int estimate(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct distill_estimate e;
    int err = distill_estimate(t, c->node->runs, original_of(c), &e);
    if (err)
        return err;
    jw_put_int(w, "papers", e.papers);
    jw_put_str(w, "cost", amount_decimal(task_arena(t), e.cents));
    return api_put_free(t, c, w, e.cents);
}

static int submit(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str question = run_question(api_text(c, "question")), request_id;
    char qid[RUN_ID_BYTES];
    if (question.n == 0)
        return api_refuse(t, c, "question", "must not be empty");
    int err = api_request_id(t, c, &request_id);
    if (!err)
        err = distill_submit(t, c->node->runs, original_of(c), question, request_id, qid);
    if (err)
        return err;
    jw_put_str(w, "query_id", str_of(qid));
    return 0;
}

#define ORIGINAL                                                                                   \
    "original_query_id", API_TEXT, .least = 1, .most = 64,                                         \
                                   .about = "a run that is DONE or CANCELLED, and archived"

static const struct api_field estimate_body[] = {{ORIGINAL}, API_END};
static const struct api_field estimate_reply[] = {
    {"papers", API_INT, .most = INT32_MAX, .about = "of the run that are relevant"},
    {"cost", API_MONEY, .about = "of judging them: a tenth of the price of each"},
    API_FREE_FIELDS,
    API_END,
};
static const struct api_field submit_body[] = {
    {ORIGINAL},
    {"question", API_TEXT, .least = 1, .most = PROMPT_QUESTION_CHARS_MAX,
     .about = "what the AI shall find out about each paper"},
    {API_REQUEST_ID_FIELD},
    API_END,
};
static const struct api_field submit_reply[] = {
    {"query_id", API_TEXT, .most = 64, .about = "names the new run"},
    API_END,
};

const struct api_route distill_routes[] = {
    {"POST", "/api/distill/estimate", API_USER, estimate, "What distilling a run would cost",
     .body = estimate_body, .reply = estimate_reply},
    {"POST", "/api/distill", API_USER, submit, "Judge the relevant papers of a run again",
     .body = submit_body, .reply = submit_reply, .status = 202},
    {.method = NULL},
};
