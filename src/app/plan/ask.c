/* What the AI is asked for a plan, and how its answer is read. */
#include "app/plan/plans_private.h"
#include "corpus/prose/tokens.h"
#include "engine/ai/ai.h"
#include "engine/ai/permits.h"
#include "engine/ai/reply.h"
#include "engine/judge/prompt.h"
#include "engine/judge/verdict.h"
#include "engine/setup/config.h"
#include "engine/setup/endpoint.h"

struct asking {
    struct plans *plans;
    const struct plan_question *question;
    struct plan_answer *out;
};

/* The last answer itself is not repeated: it may be as long as a plan, and would be paid for. */
static struct str user_message(struct task *t, const struct plan_question *q)
{
    if (!q->complaint.p)
        return q->prompt;
    return STR_JOIN(task_arena(t), q->prompt,
                    STR("\n\nYour last answer could not be used.\nComplaint: "), q->complaint,
                    STR("\nAnswer once more, with the whole plan, and without this mistake."));
}

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    const struct asking *x = arg;
    const struct config *c = x->plans->node->config;
    struct prompt_model m = {.name = str_z(task_arena(t), x->question->model),
                             .temperature_milli = c->ai_temperature_milli,
                             .max_tokens = c->plan_max_tokens,
                             .params = endpoint_params(task_arena(t), c->ai_params)};
    struct str said = user_message(t, x->question);
    struct json_writer w;
    buf_clear(body);
    jw_init(&w, body);
    jw_object(&w);
    prompt_put_members(&w, &m);
    jw_put_array(&w, "messages");
    jw_object(&w);
    jw_put_str(&w, "role", STR("user"));
    jw_put_str(&w, "content", said);
    jw_end_object(&w);
    jw_end_array(&w);
    jw_end_object(&w);
    *tokens = tokens_estimate(said) + prompt_answer_tokens(&m);
    return 0;
}

/* A reply without a text is the service's fault, a text that is no plan is the model's. */
static int read_reply(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    const struct asking *x = arg;
    struct arena *a = task_arena(t);
    const char *problem = NULL;
    int64_t tokens;
    struct str text = ai_reply_text(a, body, tokens_used, &problem);
    if (!text.p)
        return task_fail(t, ERR_PROTO, "%s", problem);
    const struct json *reply = ai_reply_parse(a, body, &tokens);
    x->out->simulated =
        str_eq(json_str(json_get(reply, "system_fingerprint")), STR(VERDICT_SIMULATED));
    const char *complaint = NULL;
    int err = plan_shape_read(a, &x->question->frame, text, &x->out->shape, &complaint);
    x->out->complaint = err ? complaint : NULL;
    return 0;
}

static void seen(void *arg, struct str text)
{
    const struct asking *x = arg;
    x->question->seen(x->question->arg, plan_days_seen(text));
}

static int no_key(struct task *t, struct plan_answer *out)
{
    out->reason = PLAN_NO_KEY;
    return task_fail(t, ERR_UNAVAILABLE, "there is no active key of the AI service");
}

int plan_ask(struct task *t, struct plans *p, const struct plan_question *q,
             struct plan_answer *out)
{
    struct asking x = {p, q, out};
    if (permits_none(p->node->permits)) /* ai_ask would wait for one until the deadline */
        return no_key(t, out);
    struct ai_hand hand = {.busy = false};
    struct ai_answer answer;
    struct ai_request request = {.write = write_request,
                                 .read = read_reply,
                                 .arg = &x,
                                 .seen = seen,
                                 .asks = q->asks,
                                 .other_model =
                                     !str_eq(q->model, str_of(p->node->config->ai_model))};
    int err = ai_ask(t, p->node->ai, &request, &hand, &answer);
    return err == ERR_TIMEOUT && permits_none(p->node->permits) ? no_key(t, out) : err;
}
