#include "engine/ai/embedding.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "corpus/prose/tokens.h"
#include "engine/ai/ai.h"
#include "engine/ai/embedding_reply.h"
#include "engine/ai/permits.h"
#include "engine/setup/endpoint.h"
#include "loop/backoff.h"
#include "loop/sync.h"

#define AGAIN_MS     250 /* before texts with bad vectors are asked for again */
#define AGAIN_MS_MAX 2000

/* How the service is asked for vectors. */
enum form { FORM_UNKNOWN, FORM_BASE64, FORM_NUMBERS };

struct embedding {
    struct arena arena; /* of the strings */
    struct ai *ai;
    struct permits *permits;
    struct str model;
    struct str heads[2]; /* of requests, up to the first text: for numbers, for base64 */
    enum form form;
    size_t dimensions; /* 0: any */
    size_t batch_texts;
    int64_t batch_tokens;
    bool other_model;
    int64_t *texts_ok, *texts_failed, *halved;
};

/* --- making --- */

/* Whether the settings leave this member to millrace. */
static bool is_ours(const struct json *params, const char *name)
{
    return !json_get(params, name);
}

/* The request up to the first text. */
static void write_head(const struct embedding_options *o, const struct json *params, bool base64,
                       struct buf *out)
{
    struct json_writer w;
    jw_init(&w, out);
    jw_object(&w);
    if (is_ours(params, "model"))
        jw_put_str(&w, "model", str_of(o->model));
    if (o->dimensions && is_ours(params, "dimensions"))
        jw_put_int(&w, "dimensions", o->dimensions);
    if (base64)
        jw_put_str(&w, "encoding_format", STR("base64"));
    json_each (j, params) {
        if (j->type == JSON_NULL)
            continue;
        jw_key(&w, j->key);
        jw_json(&w, j);
    }
    jw_key(&w, STR("input"));
    buf_add_char(out, '[');
}

static void write_text(struct str text, bool first, struct buf *out)
{
    buf_add_str(out, first ? STR("\"") : STR(",\""));
    json_escape(out, text);
    buf_add_char(out, '"');
}

static const struct json *params_of(struct arena *a, const struct embedding_options *o)
{
    return o->params ? endpoint_params(a, o->params) : NULL;
}

void embedding_write(struct arena *a, const struct embedding_options *o, struct str text,
                     struct buf *out)
{
    write_head(o, params_of(a, o), false, out);
    write_text(text, true, out);
    buf_add_lit(out, "]}");
}

static struct str head_of(struct arena *a, const struct embedding_options *o, bool base64)
{
    struct buf b;
    buf_init(&b);
    write_head(o, params_of(a, o), base64, &b);
    struct str head = str_dup(a, buf_str(&b));
    buf_release(&b);
    return head;
}

static int64_t *count_texts(struct metrics *m, const char *labels)
{
    return metric(m, METRIC_COUNTER, "millrace_embedding_texts_total", labels,
                  "Texts that were to become vectors.");
}

struct embedding *embedding_new(const struct embedding_options *o)
{
    check(o->batch_texts > 0 && o->batch_tokens > 0);
    if (!o->ai)
        return NULL;
    struct embedding *e = check_memory(calloc(1, sizeof *e));
    arena_init(&e->arena);
    e->ai = o->ai;
    e->permits = o->permits;
    e->model = str_dup(&e->arena, str_of(o->model));
    e->dimensions = (size_t)o->dimensions;
    e->batch_texts = (size_t)o->batch_texts;
    e->batch_tokens = o->batch_tokens;
    e->other_model = o->other_model;
    bool ours = is_ours(params_of(&e->arena, o), "encoding_format");
    e->form = ours ? FORM_UNKNOWN : FORM_NUMBERS;
    e->heads[false] = head_of(&e->arena, o, false);
    e->heads[true] = head_of(&e->arena, o, ours);
    e->texts_ok = count_texts(o->metrics, "outcome=\"ok\"");
    e->texts_failed = count_texts(o->metrics, "outcome=\"failed\"");
    e->halved = metric(o->metrics, METRIC_COUNTER, "millrace_embedding_batches_halved_total", "",
                       "Batches of texts that the embedding service has refused as a whole.");
    return e;
}

void embedding_free(struct embedding *e)
{
    if (!e)
        return;
    arena_release(&e->arena);
    free(e);
}

/* --- a call --- */

struct halves { /* of a refused batch */
    size_t texts, good;
};

struct batch {
    size_t from, count; /* a part of the call's order */
    int tries;          /* so far, of texts with bad vectors */
    struct halves *of;  /* NULL: it is whole */
};

struct call {
    struct embedding *e;
    const struct str *texts;
    size_t count;
    const int64_t *tokens; /* of each text */
    const bool *asks;
    struct sem *calls;   /* NULL: no limit */
    struct arena *arena; /* of the caller, who waits */
    struct embedding_answer *out;
    float *vectors;      /* of all texts; NULL: none has come */
    size_t *order;       /* the texts to ask for */
    struct batch *queue; /* a stack; batches have no text in common */
    size_t queued;
    size_t good, refused; /* texts; refused: alone */
    bool numbers;         /* base64 was refused, and numbers, too: these are safer */
    bool changed;         /* the model */
    int err;              /* of the whole call; 0: none */
    const char *why;
};

static void push(struct call *c, struct batch b)
{
    c->queue[c->queued++] = b;
}

static void set_error(struct call *c, size_t text, int err, const char *why)
{
    struct embedding_item *item = &c->out->items[text];
    item->err = err;
    item->why = arena_strdup(c->arena, why);
    c->out->failed++;
}

/* Errors of texts that no service takes; the others are put in order. */
static size_t line_up(struct call *c, size_t count)
{
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        struct str s = c->texts[i];
        bool blank = true;
        for (size_t k = 0; k < s.n && blank; k++)
            blank = (unsigned char)s.p[k] <= ' ';
        if (blank)
            set_error(c, i, ERR_INVALID, "the text is empty");
        else if (s.n > EMBEDDING_TEXT_BYTES_MAX)
            set_error(c, i, ERR_LIMIT, "the text is too long");
        else
            c->order[wanted++] = i;
    }
    return wanted;
}

static void make_batches(struct call *c, size_t wanted)
{
    const struct embedding *e = c->e;
    size_t end = wanted;
    while (end > 0) { /* the first one lies on top of the stack */
        size_t from = end;
        int64_t tokens = 0;
        while (from > 0 && end - from < e->batch_texts) {
            int64_t more = c->tokens[c->order[from - 1]];
            if (from < end && tokens + more > e->batch_tokens)
                break;
            tokens += more;
            from--;
        }
        push(c, (struct batch){.from = from, .count = end - from});
        end = from;
    }
}

/* --- one request --- */

struct request {
    struct call *call;
    const struct batch *batch;
    bool base64;
};

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    (void)t;
    const struct request *q = arg;
    const struct call *c = q->call;
    const size_t *order = &c->order[q->batch->from];
    *tokens = 0;
    buf_clear(body);
    buf_add_str(body, c->e->heads[q->base64]);
    for (size_t i = 0; i < q->batch->count; i++) {
        write_text(c->texts[order[i]], i == 0, body);
        *tokens += c->tokens[order[i]];
    }
    buf_add_lit(body, "]}");
    return 0;
}

/* Completes "the service sent …"; NULL: the reply can be used. */
static const char *problem_of(struct task *t, const struct request *q,
                              const struct embedding_reply *r)
{
    size_t count = q->batch->count, wanted = q->call->e->dimensions;
    if (count > 1 && r->wrong == count) /* one text alone may be beyond the model */
        return r->vectors[0].why;
    if (wanted && r->dimensions && r->dimensions != wanted)
        return arena_printf(task_arena(t), "vectors of %zu numbers instead of %zu", r->dimensions,
                            wanted);
    return NULL;
}

/* The model and dimensions of a call are those of its first vectors. False: these are others. */
static bool is_same_model(struct call *c, const struct embedding_reply *r)
{
    struct embedding_answer *out = c->out;
    struct str model = r->model.n ? r->model : c->e->model;
    if (c->vectors)
        return out->dimensions == r->dimensions && str_eq(out->model, model);
    out->dimensions = r->dimensions;
    out->model = str_dup(c->arena, model);
    c->vectors = arena_alloc(c->arena, c->count * r->dimensions * sizeof *c->vectors);
    return true;
}

/* A text without a usable vector gets the reason, and no error yet. */
static void take_vector(struct call *c, size_t text, const struct embedding_vector *v)
{
    size_t n = c->out->dimensions;
    float *into = c->vectors + text * n;
    c->out->items[text].why = v->why;
    if (v->why)
        return;
    for (size_t i = 0; i < n; i++)
        into[i] = (float)((double)v->v[i] * v->scale);
    c->out->items[text].vector = into;
    c->good++;
}

static int read_reply(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    const struct request *q = arg;
    struct call *c = q->call;
    struct embedding_reply r;
    const char *problem;
    if (embedding_reply_read(task_arena(t), body, q->batch->count, &r, &problem))
        return task_fail(t, ERR_PROTO, "%s", problem);
    problem = problem_of(t, q, &r);
    if (problem)
        return task_fail(t, ERR_PROTO, "%s", problem);
    *tokens_used = r.tokens;
    c->changed = c->changed || (r.dimensions && !is_same_model(c, &r));
    for (size_t i = 0; i < q->batch->count && !c->changed; i++)
        take_vector(c, c->order[q->batch->from + i], &r.vectors[i]);
    return 0;
}

static int ask(struct task *t, struct call *c, const struct batch *b, bool base64)
{
    struct request q = {c, b, base64};
    struct ai_hand hand = {.busy = false};
    struct ai_answer answer = {.tokens = 0};
    int err = c->calls ? sem_get(t, c->calls) : 0;
    if (err)
        return err;
    err = ai_ask(t, c->e->ai,
                 &(struct ai_request){.write = write_request,
                                      .read = read_reply,
                                      .arg = &q,
                                      .other_model = c->e->other_model,
                                      .asks = c->asks},
                 &hand, &answer);
    if (c->calls)
        sem_put(c->calls);
    c->out->tokens += answer.tokens;
    c->out->calls++;
    return err;
}

/* The same, in the form that the service knows. */
static int ask_in_form(struct task *t, struct call *c, const struct batch *b)
{
    struct embedding *e = c->e;
    bool base64 = e->form != FORM_NUMBERS && !c->numbers;
    int err = ask(t, c, b, base64);
    if (!err && base64)
        e->form = FORM_BASE64;
    if (err != ERR_REFUSED || !base64 || e->form != FORM_UNKNOWN)
        return err;
    c->numbers = true;
    err = ask(t, c, b, false);
    if (err || e->form != FORM_UNKNOWN)
        return err;
    e->form = FORM_NUMBERS;
    log_info("ai", "the embedding service refuses encoding_format base64: it is asked for "
                   "numbers");
    return 0;
}

/* --- one batch --- */

/* Leaves the texts with bad vectors in the batch's part of the order; how many they are. */
static size_t keep_bad(struct call *c, const struct batch *b)
{
    size_t *order = &c->order[b->from], bad = 0;
    for (size_t i = 0; i < b->count; i++)
        if (!c->out->items[order[i]].vector)
            order[bad++] = order[i];
    return bad;
}

/* Both halves of a batch that was refused have worked: it was too long. */
static void learn(struct embedding *e, const struct halves *of)
{
    size_t texts = (of->texts + 1) / 2;
    if (texts >= e->batch_texts)
        return;
    log_warn("ai",
             "the embedding service refuses %zu texts at once: it gets at most %zu from now on; "
             "set ai.embedding.batch_max or ai.embedding.batch_tokens",
             of->texts, texts);
    e->batch_texts = texts;
}

static int finish(struct task *t, struct call *c, const struct batch *b)
{
    size_t bad = keep_bad(c, b);
    if (!bad && b->of && ++b->of->good == 2)
        learn(c->e, b->of);
    if (!bad)
        return 0;
    if (b->tries + 1 == EMBEDDING_TRIES) {
        for (size_t i = 0; i < bad; i++) {
            size_t text = c->order[b->from + i];
            set_error(
                c, text, ERR_PROTO,
                arena_printf(task_arena(t), "the AI service sent %s", c->out->items[text].why));
        }
        return 0;
    }
    struct backoff backoff = {.ms = AGAIN_MS << b->tries, .ms_max = AGAIN_MS_MAX};
    int err = backoff_wait(t, &backoff);
    if (!err)
        push(c, (struct batch){.from = b->from, .count = bad, .tries = b->tries + 1});
    return err;
}

static void halve(struct call *c, const struct batch *b, bool refused)
{
    struct halves *of = NULL;
    if (refused && b->tries == 0) {
        of = ARENA_NEW(c->arena, struct halves);
        of->texts = b->count;
    }
    size_t half = b->count / 2;
    push(c, (struct batch){b->from + half, b->count - half, b->tries, of});
    push(c, (struct batch){b->from, half, b->tries, of});
    metric_add(c->e->halved, 1);
}

static int work_on(struct task *t, struct call *c, const struct batch *b)
{
    int err = ask_in_form(t, c, b);
    if (!err && c->changed)
        return task_fail(t, ERR_CONFLICT,
                         "the AI service answers with another model than a moment ago");
    if (!err)
        return finish(t, c, b);
    if (err != ERR_REFUSED && err != ERR_PROTO)
        return err;
    if (b->count > 1) {
        halve(c, b, err == ERR_REFUSED);
        return 0;
    }
    set_error(c, c->order[b->from], err, task_error(t));
    c->refused += err == ERR_REFUSED;
    return c->refused >= EMBEDDING_REFUSED_MAX && c->good == 0 ? ERR_REFUSED : 0;
}

/* --- all of them --- */

struct crew { /* tasks that share a call: each has an arena for requests and replies */
    struct call *call;
    struct group group;
};

static void work(struct task *t, void *arg)
{
    struct crew *w = arg;
    struct call *c = w->call;
    while (c->queued && !c->err) {
        struct task_scope scope = task_scope(t);
        struct batch b = c->queue[--c->queued];
        int err = work_on(t, c, &b);
        if (err && !c->err) {
            c->err = err;
            c->why = arena_strdup(c->arena, task_error(t));
            group_cancel(&w->group);
        }
        task_scope_end(t, scope);
    }
}

static int work_all(struct task *t, struct call *c)
{
    struct crew crew = {.call = c};
    size_t tasks = c->queued < EMBEDDING_BATCHES_MAX ? c->queued : EMBEDDING_BATCHES_MAX;
    int err = 0;
    group_init(&crew.group, task_loop(t));
    for (size_t i = 0; i < tasks && !err; i++)
        err = task_go(&crew.group, "embedding", work, &crew);
    if (err)
        group_cancel(&crew.group);
    int joined = group_join(t, &crew.group);
    err = err ? err : joined;
    return err || !c->err ? err : task_fail(t, c->err, "%s", c->why);
}

static bool has_no_key(const struct embedding *e)
{
    return e->permits && permits_none(e->permits);
}

static int no_key(struct task *t)
{
    return task_fail(t, ERR_UNAVAILABLE, "there is no active key of the embedding service");
}

int embedding_ask(struct task *t, struct embedding *e, const struct str *texts, size_t count,
                  const bool *asks, struct embedding_answer *out)
{
    return embedding_ask_within(t, e, texts, count, asks, NULL, out);
}

int embedding_ask_within(struct task *t, struct embedding *e, const struct str *texts, size_t count,
                         const bool *asks, struct sem *calls, struct embedding_answer *out)
{
    struct arena *a = task_arena(t);
    check(count <= EMBEDDING_TEXTS_MAX);
    if (has_no_key(e)) /* ai_ask would wait for one until the deadline */
        return no_key(t);
    *out = (struct embedding_answer){.model = e->model};
    out->items = ARENA_ARRAY(a, struct embedding_item, count);
    int64_t *tokens = ARENA_ARRAY(a, int64_t, count);
    for (size_t i = 0; i < count; i++)
        tokens[i] = tokens_estimate(texts[i]);
    struct call c = {.e = e,
                     .texts = texts,
                     .count = count,
                     .tokens = tokens,
                     .asks = asks,
                     .calls = calls,
                     .arena = a,
                     .out = out,
                     .order = ARENA_ARRAY(a, size_t, count),
                     .queue = ARENA_ARRAY(a, struct batch, count)};
    make_batches(&c, line_up(&c, count));
    int err = work_all(t, &c);
    metric_add(e->texts_ok, (int64_t)c.good);
    metric_add(e->texts_failed, (int64_t)out->failed);
    return err == ERR_TIMEOUT && has_no_key(e) ? no_key(t) : err;
}
