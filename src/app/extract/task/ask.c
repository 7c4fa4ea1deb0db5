/* What the AI is asked about a part of a document, and how its answer is read. */
#include "app/extract/task/extract_private.h"
#include "app/extract/fields/prompt.h"
#include "engine/ai/ai.h"
#include "engine/ai/permits.h"
#include "engine/ai/reply.h"
#include "engine/judge/verdict.h"
#include "engine/setup/config.h"

struct asking {
    const struct extract_query *query;
    struct extract_answer *out;
};

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    const struct extract_query *q = ((struct asking *)arg)->query;
    struct extract_asked asked = {.text = q->part,
                                  .number = q->reading.part + 1,
                                  .count = q->count,
                                  .complaint =
                                      q->complaint.p ? str_z(task_arena(t), q->complaint) : NULL};
    buf_clear(body);
    *tokens = extract_prompt_write(q->question, &asked, body);
    return 0;
}

/* A reply without a text is the service's fault, values that do not fit are the model's. */
static int read_reply(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    const struct asking *x = arg;
    struct arena *a = task_arena(t);
    const char *problem = NULL, *complaint = NULL;
    const struct json *reply = ai_reply_parse(a, body, tokens_used);
    struct str text = ai_reply_text_in(a, reply, &problem);
    if (!text.p)
        return task_fail(t, ERR_PROTO, "%s", problem);
    x->out->simulated =
        str_eq(json_str(json_get(reply, "system_fingerprint")), STR(VERDICT_SIMULATED));
    int err = extract_reply_read(a, &x->query->reading, text, &x->out->values, &complaint);
    x->out->complaint = err ? complaint : NULL;
    return 0;
}

static int no_key(struct task *t, struct extract_answer *out)
{
    out->reason = EXTRACT_NO_KEY;
    return task_fail(t, ERR_UNAVAILABLE, "there is no active key of the AI service");
}

int extract_ask(struct task *t, struct extract *x, const struct extract_query *q,
                struct extract_answer *out)
{
    struct asking asking = {q, out};
    if (permits_none(x->node->permits)) /* ai_ask would wait for one until the deadline */
        return no_key(t, out);
    struct ai_hand hand = {.busy = false};
    struct ai_answer answer = {.tokens = 0};
    struct ai_request request = {.write = write_request,
                                 .read = read_reply,
                                 .arg = &asking,
                                 .asks = q->asks,
                                 .other_model =
                                     !str_eq(q->model, str_of(x->node->config->ai_model))};
    int err = ai_ask(t, x->node->ai, &request, &hand, &answer);
    out->tokens = answer.tokens;
    return err == ERR_TIMEOUT && permits_none(x->node->permits) ? no_key(t, out) : err;
}
