#include "engine/ai/judge.h"

#include <stdlib.h>

#include "base/sha256.h"
#include "engine/ai/ai.h"
#include "engine/ai/judge_private.h"
#include "engine/setup/config.h"

#define PROMPT_MARK_CHARS 12

struct judge {
    struct arena arena; /* of the strings */
    struct ai *ai;
    struct ai_model model;
    const char *prompt_file;
    struct arena prompt_arena;
    struct ai_prompt prompt;
    char prompt_mark[PROMPT_MARK_CHARS + 1];
};

const char *judge_config_problem(struct arena *a, const struct config *c)
{
    struct ai_prompt checked;
    const char *why = NULL;
    return ai_prompt_load(a, c->ai_prompt_file, &checked, &why) ? why : NULL;
}

static void take_prompt(struct judge *j, const struct ai_prompt *p)
{
    struct arena old = j->prompt_arena;
    char hex[SHA256_HEX_BYTES];
    arena_init(&j->prompt_arena);
    struct arena *a = &j->prompt_arena;
    j->prompt = (struct ai_prompt){str_dup(a, p->before), str_dup(a, p->after)};
    struct str both = str_printf(a, "%.*s{{}}%.*s", STR_ARG(p->before), STR_ARG(p->after));
    sha256_hex(both, hex);
    memcpy(j->prompt_mark, hex, PROMPT_MARK_CHARS);
    arena_release(&old);
}

int judge_reload(struct arena *a, struct judge *j, const char **why)
{
    struct ai_prompt fresh;
    int err = ai_prompt_load(a, j->prompt_file, &fresh, why);
    if (!err)
        take_prompt(j, &fresh);
    return err;
}

const char *judge_prompt_mark(const struct judge *j)
{
    return j->prompt_mark;
}

int judge_new(struct arena *a, struct ai *ai, const struct config *c, struct judge **out,
              const char **why)
{
    struct ai_prompt checked;
    int err = ai_prompt_load(a, c->ai_prompt_file, &checked, why);
    if (err)
        return err;
    struct judge *j = check_memory(calloc(1, sizeof *j));
    arena_init(&j->arena);
    arena_init(&j->prompt_arena);
    j->ai = ai;
    j->model = (struct ai_model){.name = arena_strdup(&j->arena, c->ai_model),
                                 .temperature_milli = c->ai_temperature_milli,
                                 .max_tokens = c->ai_max_tokens};
    j->prompt_file = arena_strdup(&j->arena, c->ai_prompt_file);
    take_prompt(j, &checked);
    *out = j;
    return 0;
}

void judge_free(struct judge *j)
{
    if (!j)
        return;
    arena_release(&j->prompt_arena);
    arena_release(&j->arena);
    free(j);
}

const struct ai_question *judge_question_new(struct arena *a, const struct judge *j,
                                             struct str question)
{
    return ai_prompt_question(a, &j->prompt, &j->model, question);
}

/* --- one paper --- */

struct judging {
    const struct ai_question *question;
    const struct ai_source *source;
    struct ai_verdict *out;
};

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    const struct judging *x = arg;
    struct ai_paper p;
    int err = x->source->read(t, x->source->arg, &p);
    if (err)
        return err;
    buf_clear(body);
    *tokens = ai_prompt_write(x->question, &p, body);
    return 0;
}

static int read_verdict(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    const struct judging *x = arg;
    struct ai_reply r;
    ai_verdict_read(task_arena(t), body, &r);
    *tokens_used = r.tokens;
    if (!r.readable)
        return task_fail(t, ERR_PROTO, "a reply that has no verdict in it");
    *x->out = (struct ai_verdict){r.relevant, r.reason};
    return 0;
}

int judge_paper(struct task *t, struct judge *j, const struct ai_question *q,
                const struct ai_source *s, bool *in_hand, struct ai_verdict *out)
{
    struct judging x = {q, s, out};
    struct ai_answer answer;
    return ai_ask(t, j->ai, &(struct ai_request){write_request, read_verdict, &x}, in_hand,
                  &answer);
}
