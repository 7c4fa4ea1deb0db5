/* Searches. What stands in their way makes them degraded, and has a word for it. */
#include <stdlib.h>

#include "base/log.h"
#include "engine/ai/ai.h"
#include "engine/ai/embedding.h"
#include "engine/search/collection_private.h"
#include "engine/setup/config.h"

#define LIKE_PARTS_MAX 1000 /* of one owner; further ones are not looked at */

static int degraded(struct shelf *s, struct collection_answer *out, const char *reason)
{
    if (!out->degraded)
        metric_add(s->degraded, 1);
    out->degraded = true;
    out->reason = reason;
    return 0;
}

/* Errors of a store that is away. */
static bool is_passing(int err)
{
    return err_may_pass(err) || err == ERR_IO || err == ERR_CLOSED || err == ERR_REFUSED;
}

const char *collection_lacks(const struct shelf *s, const struct space *x, int err, int64_t now_ms)
{
    bool late = s->behind_since_ms && now_ms - s->behind_since_ms > BEHIND_MS;
    if (!x->at.complete || (err && !is_passing(err)))
        return COLLECTION_REBUILT;
    return err || late ? COLLECTION_AWAY : NULL;
}

/* --- the store --- */

static int ask_store(struct task *t, struct shelf *s, struct space *x, const struct points_query *q,
                     struct collection_answer *out)
{
    struct points_answer answer = {.count = 0};
    struct points_query query = *q;
    query.space = (struct points_space){x->model, (size_t)x->dimension};
    if (q->k < 1 || q->k > POINTS_HITS_MAX)
        return task_fail(t, ERR_INVALID, "a search is for 1 to %d points", POINTS_HITS_MAX);
    out->hits = ARENA_ARRAY(task_arena(t), struct point_hit, q->k);
    int64_t begun_us = loop_now_us(task_loop(t));
    int err = x->store->ops->search(t, x->store, &query, out->hits, &answer);
    histogram_add_us(s->all->seconds, loop_now_us(task_loop(t)) - begun_us);
    out->count = err ? 0 : answer.count;
    if (!err && answer.detached)
        space_found(t, s, x, ERR_NOT_FOUND);
    if (!err && answer.detached)
        return degraded(s, out, COLLECTION_REBUILT);
    return err;
}

/* *again: the store is not there, perhaps because another space is active by now. Then the question
 * is another one, too. */
static int search_in(struct task *t, struct shelf *s, struct space *x, const struct points_query *q,
                     struct collection_answer *out, bool *again)
{
    int err = ask_store(t, s, x, q, out);
    if (err == ERR_CANCELED || err == ERR_INVALID || err == ERR_LIMIT)
        return err;
    if (err)
        space_found(t, s, x, err);
    *again = err && !is_passing(err) && shelf_look(t, s) == 0 && s->active && s->active != x;
    const char *lacks = collection_lacks(s, x, err, loop_now_ms(task_loop(t)));
    return lacks ? degraded(s, out, lacks) : 0;
}

/* The active space, with a reference; NULL: there is none, *out says why. */
static int active_space(struct task *t, struct shelf *s, struct collection_answer *out,
                        struct space **x)
{
    *x = NULL;
    *out = (struct collection_answer){.count = 0};
    int err = shelf_know(t, s);
    if (err == ERR_CANCELED)
        return err;
    if (err)
        return degraded(s, out, COLLECTION_AWAY);
    if (!s->active && shelf_look(t, s) == ERR_CANCELED)
        return ERR_CANCELED;
    if (!s->active)
        return degraded(s, out,
                        s->all->options.embedding ? COLLECTION_EMPTY : COLLECTION_NO_SERVICE);
    *x = space_get(s->active);
    return 0;
}

/* --- questions --- */

/* By the model of the space: that of the settings, or one that was in the settings. */
static struct embedding *service_of(struct shelf *s, struct space *x)
{
    const struct collections_options *o = &s->all->options;
    const struct config *c = o->config;
    if (strcmp(x->asked, c->ai_embedding_model) == 0 &&
        x->asked_dimensions == c->ai_embedding_dimensions)
        return o->embedding;
    if (!x->embedding && o->ai)
        x->embedding =
            embedding_new(&(struct embedding_options){.ai = o->ai,
                                                      .permits = o->permits,
                                                      .metrics = o->metrics,
                                                      .model = x->asked,
                                                      .params = c->ai_embedding_params,
                                                      .dimensions = x->asked_dimensions,
                                                      .batch_texts = c->ai_embedding_batch_max,
                                                      .batch_tokens = c->ai_embedding_batch_tokens,
                                                      .other_model = true});
    return x->embedding;
}

static struct space *space_of(struct shelf *s, const struct embedding_answer *a)
{
    list_each (it, &s->spaces) {
        struct space *x = list_entry(it, struct space, link);
        if (str_eq(str_of(x->model), a->model) && x->dimension == (int64_t)a->dimensions)
            return x;
    }
    return NULL;
}

/* The question as a vector of *x. A service that answers by the next model under the name of this
 * one has its vector looked for in the space that is being built. */
static int embed(struct task *t, struct shelf *s, struct space **x, struct str question,
                 struct collection_answer *out, const float **vector)
{
    struct embedding_answer a;
    *vector = NULL;
    struct embedding *e = service_of(s, *x);
    if (!e)
        return degraded(s, out, COLLECTION_NO_SERVICE);
    int err = embedding_ask(t, e, &question, 1, &ai_for_run, &a);
    if (!err && a.items[0].err)
        err = task_fail(t, a.items[0].err, "%s", a.items[0].why);
    if (err == ERR_CANCELED || err == ERR_INVALID || err == ERR_LIMIT)
        return err == ERR_LIMIT ? task_fail(t, ERR_INVALID, "the question is too long") : err;
    if (err)
        return degraded(s, out,
                        e != s->all->options.embedding && err == ERR_REFUSED
                            ? COLLECTION_OTHER
                            : COLLECTION_NO_ANSWER);
    struct space *of = space_of(s, &a);
    if (!of)
        return degraded(s, out, COLLECTION_OTHER);
    questions_keep(s->all->questions, of->number, question, a.items[0].vector, a.dimensions);
    *vector = a.items[0].vector;
    if (of == *x)
        return 0;
    space_put(*x);
    *x = space_get(of);
    return degraded(s, out, COLLECTION_OTHER);
}

static int vector_of(struct task *t, struct shelf *s, struct space **x, struct str question,
                     struct collection_answer *out, const float **vector)
{
    size_t n = (size_t)(*x)->dimension;
    float *kept = ARENA_ARRAY(task_arena(t), float, n);
    if (question.n > EMBEDDING_TEXT_BYTES_MAX)
        return task_fail(t, ERR_INVALID, "the question is too long");
    if (!questions_find(s->all->questions, (*x)->number, question, n, kept))
        return embed(t, s, x, question, out, vector);
    *vector = kept;
    return 0;
}

static int search_once(struct task *t, struct shelf *s, struct str question,
                       const struct points_query *q, struct collection_answer *out, bool *again)
{
    struct space *x;
    const float *vector = NULL;
    *again = false;
    int err = active_space(t, s, out, &x);
    if (err || !x)
        return err;
    err = vector_of(t, s, &x, question, out, &vector);
    if (!err && vector) {
        struct points_query query = *q;
        query.vector = vector;
        err = search_in(t, s, x, &query, out, again);
    }
    space_put(x);
    return err;
}

int collection_search(struct task *t, struct collections *c, enum collection which,
                      struct str question, const struct points_query *q,
                      struct collection_answer *out)
{
    struct shelf *s = shelf_of(c, which);
    bool again;
    int err = search_once(t, s, question, q, out, &again);
    return !err && again ? search_once(t, s, question, q, out, &again) : err;
}

/* --- more like this --- */

/* The mean of its vectors, which are of length one; NULL: it has none. */
static int mean_of(struct task *t, struct shelf *s, const struct space *x, uint64_t owner,
                   float **mean, size_t *parts)
{
    struct sql_rows r;
    size_t n = (size_t)x->dimension;
    int err = sql_call(t, s->all->options.sql, &r,
                       "SELECT vector FROM point_vector WHERE space = ? AND owner = ?"
                       " ORDER BY part LIMIT ?",
                       sql_int(x->number), sql_int((int64_t)owner), sql_int(LIKE_PARTS_MAX));
    if (err)
        return err;
    *mean = r.count ? ARENA_ARRAY(task_arena(t), float, n) : NULL;
    *parts = r.count;
    for (size_t i = 0; i < r.count; i++) {
        struct str v = sql_row(&r, i)[0].s;
        if (v.n != n * sizeof(float))
            return task_fail(t, ERR_INTERNAL, "vectors of %lld in MySQL are not of their space",
                             (long long)owner);
        for (size_t k = 0; k < n; k++) {
            float one;
            memcpy(&one, v.p + k * sizeof one, sizeof one);
            (*mean)[k] += one;
        }
    }
    return 0;
}

static void leave_out(struct collection_answer *out, uint64_t owner, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < out->count; i++)
        if (out->hits[i].point.owner != owner && n < most)
            out->hits[n++] = out->hits[i];
    out->count = n;
}

static int like_once(struct task *t, struct shelf *s, uint64_t owner, const struct points_query *q,
                     struct collection_answer *out, bool *again)
{
    struct space *x;
    float *mean = NULL;
    size_t parts = 0;
    *again = false;
    int err = active_space(t, s, out, &x);
    if (err || !x)
        return err;
    struct points_query query = *q;
    err = mean_of(t, s, x, owner, &mean, &parts);
    if (!err && !mean) {
        err = task_fail(t, ERR_NOT_FOUND, "it has not been embedded");
    } else if (!err) {
        query.vector = mean;
        query.k = q->k + parts < POINTS_HITS_MAX ? q->k + parts : POINTS_HITS_MAX;
        err = search_in(t, s, x, &query, out, again);
        leave_out(out, owner, q->k);
    } else if (is_passing(err)) {
        err = degraded(s, out, COLLECTION_AWAY);
    }
    space_put(x);
    return err;
}

int collection_like(struct task *t, struct collections *c, enum collection which, uint64_t owner,
                    const struct points_query *q, struct collection_answer *out)
{
    struct shelf *s = shelf_of(c, which);
    bool again;
    if (q->k < 1 || q->k > POINTS_HITS_MAX)
        return task_fail(t, ERR_INVALID, "a search is for 1 to %d points", POINTS_HITS_MAX);
    int err = like_once(t, s, owner, q, out, &again);
    return !err && again ? like_once(t, s, owner, q, out, &again) : err;
}
