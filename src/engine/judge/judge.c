#include "engine/judge/judge.h"

#include <stdlib.h>

#include "base/sha256.h"
#include "corpus/paper.h"
#include "engine/ai/ai.h"
#include "engine/judge/judge_private.h"
#include "engine/judge/verdict.h"
#include "engine/papers/block.h"
#include "engine/setup/config.h"
#include "engine/setup/endpoint.h"

#define PROMPT_MARK_CHARS 12

struct judge {
    struct arena arena; /* of the strings */
    struct ai *ai;
    struct blocks *blocks;
    /* The way of a paper to the prompt. One for all workers: no task waits in between, and what a
     * thousand share stays in the processor's cache. */
    struct bibtex *reader;
    struct arena scratch;
    struct prompt_model model;
    const char *prompt_file;
    struct arena prompt_arena;
    struct str prompt_text;
    char prompt_digest[SHA256_HEX_BYTES];
    char prompt_mark[PROMPT_MARK_CHARS + 1];
};

const char *judge_config_problem(struct arena *a, const struct config *c)
{
    struct prompt checked;
    const char *why = NULL;
    return prompt_load(a, c->ai_prompt_file, &checked, &why) ? why : NULL;
}

static void take_prompt(struct judge *j, const struct prompt *p)
{
    struct arena old = j->prompt_arena;
    arena_init(&j->prompt_arena);
    struct arena *a = &j->prompt_arena;
    j->prompt_text = str_printf(a, "%.*s{{question}}%.*s", STR_ARG(p->before), STR_ARG(p->after));
    sha256_hex(j->prompt_text, j->prompt_digest);
    memcpy(j->prompt_mark, j->prompt_digest, PROMPT_MARK_CHARS);
    arena_release(&old);
}

int judge_reload(struct arena *a, struct judge *j, const char **why)
{
    struct prompt fresh;
    int err = prompt_load(a, j->prompt_file, &fresh, why);
    if (!err)
        take_prompt(j, &fresh);
    return err;
}

const char *judge_prompt_mark(const struct judge *j)
{
    return j->prompt_mark;
}

int judge_new(struct arena *a, const struct judge_options *o, struct judge **out, const char **why)
{
    const struct config *c = o->config;
    struct prompt checked;
    int err = prompt_load(a, c->ai_prompt_file, &checked, why);
    if (err)
        return err;
    struct judge *j = check_memory(calloc(1, sizeof *j));
    arena_init(&j->arena);
    arena_init(&j->prompt_arena);
    arena_init(&j->scratch);
    j->ai = o->ai;
    j->blocks = o->blocks;
    j->reader = bibtex_new(NULL, NULL);
    j->model = (struct prompt_model){
        .name = arena_strdup(&j->arena, c->ai_model),
        .temperature_milli = c->ai_temperature_milli,
        .max_tokens = c->ai_max_tokens,
        .params = endpoint_params(&j->arena, arena_strdup(&j->arena, c->ai_params))};
    j->prompt_file = arena_strdup(&j->arena, c->ai_prompt_file);
    take_prompt(j, &checked);
    *out = j;
    return 0;
}

void judge_free(struct judge *j)
{
    if (!j)
        return;
    bibtex_free(j->reader);
    arena_release(&j->scratch);
    arena_release(&j->prompt_arena);
    arena_release(&j->arena);
    free(j);
}

struct judge_origin judge_now(const struct judge *j)
{
    return (struct judge_origin){.model = str_of(j->model.name),
                                 .prompt = j->prompt_text,
                                 .digest = str_of(j->prompt_digest)};
}

const struct judge_question *judge_question_new(struct arena *a, const struct judge *j,
                                                const struct judge_origin *from,
                                                struct str question)
{
    struct judge_origin now = judge_now(j);
    struct prompt prompt;
    struct prompt_model model = j->model;
    from = from ? from : &now;
    char digest[SHA256_HEX_BYTES];
    sha256_hex(from->prompt, digest);
    if (!str_eq(str_of(digest), from->digest) || prompt_read(from->prompt, &prompt))
        return NULL;
    model.name = str_z(a, from->model);
    struct judge_question *q = prompt_question(a, &prompt, &model, question);
    q->origin = (struct judge_origin){.model = str_of(model.name),
                                      .prompt = str_dup(a, from->prompt),
                                      .digest = str_dup(a, from->digest)};
    return q;
}

const struct judge_origin *judge_question_origin(const struct judge_question *q)
{
    return &q->origin;
}

/* --- one paper that can be shown --- */

struct judging {
    const struct judge_question *question;
    const struct judge_source *source;
    struct verdict *out;
};

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    const struct judging *x = arg;
    struct prompt_paper p;
    int err = x->source->read(t, x->source->arg, &p);
    if (err)
        return err;
    buf_clear(body);
    *tokens = prompt_write(x->question, &p, body);
    return 0;
}

static int read_reply(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    const struct judging *x = arg;
    struct verdict_reply r;
    verdict_read(task_arena(t), body, &r);
    *tokens_used = r.tokens;
    if (!r.readable)
        return task_fail(t, ERR_PROTO, "%s", r.problem);
    *x->out =
        (struct verdict){.relevant = r.relevant, .simulated = r.simulated, .reason = r.reason};
    return 0;
}

int judge_shown(struct task *t, struct judge *j, const struct judge_question *q,
                const struct judge_source *s, struct ai_hand *hand, struct verdict *out)
{
    struct judging x = {q, s, out};
    struct ai_answer answer;
    struct ai_request request = {.write = write_request,
                                 .read = read_reply,
                                 .arg = &x,
                                 .asks = &ai_for_run,
                                 .other_model = !str_eq(q->origin.model, str_of(j->model.name))};
    return ai_ask(t, j->ai, &request, hand, &answer);
}

/* --- one that is packed --- */

struct packed_paper {
    struct judge *judge;
    struct str doi, packed;
    struct str bibtex;
    struct prompt_paper *shown;
    bool blank; /* it has neither title nor abstract */
    int err;
};

static void read_shown(void *arg)
{
    struct packed_paper *p = arg;
    struct judge *j = p->judge;
    p->err =
        paper_read_shown(&j->scratch, j->reader, p->bibtex, &p->shown->title, &p->shown->abstract);
}

static int read_packed(struct task *t, void *arg, struct prompt_paper *out)
{
    struct packed_paper *p = arg;
    struct judge *j = p->judge;
    out->doi = p->doi;
    p->shown = out;
    if (!p->packed.p)
        return task_fail(t, ERR_PROTO, "the paper is not in the corpus any more");
    arena_reset(&j->scratch, (struct arena_mark){0});
    int err = block_unpack(t, j->blocks, &j->scratch, p->packed, &p->bibtex);
    if (!err)
        task_aside(t, read_shown, p);
    if (!err && p->err)
        err = task_fail(t, ERR_PROTO, "the paper cannot be read");
    p->blank = !err && str_trim(out->title).n == 0 && str_trim(out->abstract).n == 0;
    if (p->blank)
        err = task_fail(t, ERR_PROTO, "the paper has neither title nor abstract");
    return err == ERR_NOT_FOUND ? ERR_PROTO : err;
}

int judge_paper(struct task *t, struct judge *j, const struct judge_question *q, struct str doi,
                struct str packed, struct ai_hand *hand, struct verdict *out)
{
    struct packed_paper p = {.judge = j, .doi = doi, .packed = packed};
    int err = judge_shown(t, j, q, &(struct judge_source){read_packed, &p}, hand, out);
    if (err != ERR_PROTO || !p.blank)
        return err;
    *out = (struct verdict){.not_judged = true,
                            .reason = STR("the paper has neither title nor abstract")};
    return 0;
}
