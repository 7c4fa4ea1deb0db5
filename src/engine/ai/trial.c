#include "engine/ai/trial.h"

#include "base/json.h"
#include "engine/ai/reply.h"
#include "wire/http_client.h"

#define TOKENS_MAX 16

struct question {
    const char *service, *model;
};

static int write_question(struct task *t, void *arg, struct str *out)
{
    const struct question *q = arg;
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_str(&w, "model", str_of(q->model));
    if (!ai_is_chat(q->service)) {
        jw_put_str(&w, "input", STR("yes"));
        *out = jw_finish(&w, task_arena(t));
        return 0;
    }
    jw_put_int(&w, "max_tokens", TOKENS_MAX);
    jw_put_array(&w, "messages");
    jw_object(&w);
    jw_put_str(&w, "role", STR("user"));
    jw_put_str(&w, "content", STR("Answer with one word: yes."));
    jw_end_object(&w);
    jw_end_array(&w);
    *out = jw_finish(&w, task_arena(t));
    return 0;
}

/* Services that are out of money say so with 402, or with 429 and a code of their own. */
static bool is_out_of_money(int status, struct str body)
{
    static const char *const signs[] = {"insufficient_quota", "insufficient_balance",
                                        "billing_not_active"};
    for (size_t i = 0; status == 429 && i < sizeof signs / sizeof *signs; i++)
        if (str_find(body, str_of(signs[i])) >= 0)
            return true;
    return status == 402;
}

static bool is_answer(struct arena *a, const char *service, struct str body)
{
    int64_t tokens;
    const struct json *j = ai_reply_parse(a, body, &tokens);
    return j && json_get(j, ai_is_chat(service) ? "choices" : "data");
}

const char *ai_trial_outcome(struct arena *a, const char *service, int status, struct str body)
{
    if (status / 100 == 2)
        return is_answer(a, service, body) ? "works" : "failed";
    if (status == 401 || status == 403)
        return "refused";
    if (is_out_of_money(status, body))
        return "no_money";
    return status == 429 ? "limited" : "failed";
}

/* The service may repeat the key. */
static struct str without_key(struct str words, struct str api_key)
{
    return str_find(words, api_key) < 0 ? words : STR("its answer repeats the key");
}

int ai_try_key(struct task *t, const struct ai *ai, const char *service, struct str api_key,
               const char *model, struct ai_trial *out)
{
    struct question q = {service, model};
    struct http_response r = {.status = 0};
    int64_t start_us = loop_now_us(task_loop(t));
    int64_t old = task_deadline(t, AI_TRIAL_MS);
    int err = ai_call(t, ai, api_key, write_question, &q, &r);
    task_deadline_restore(t, old);
    if (err == ERR_CANCELED)
        return err;
    *out = (struct ai_trial){.latency_ms = (loop_now_us(task_loop(t)) - start_us) / 1000};
    if (err) {
        const char *why = err == ERR_TIMEOUT ? "it does not answer in time"
                          : *task_error(t)   ? task_error(t)
                                             : err_name(err);
        out->outcome = "unreachable";
        out->words = without_key(str_dup(task_arena(t), str_of(why)), api_key);
        return 0;
    }
    out->status = r.status;
    out->outcome = ai_trial_outcome(task_arena(t), service, r.status, r.body);
    if (strcmp(out->outcome, "works") != 0)
        out->words = without_key(ai_complaint(task_arena(t), r.body), api_key);
    return 0;
}
