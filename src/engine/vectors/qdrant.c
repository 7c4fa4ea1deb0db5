#include "engine/vectors/qdrant.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "engine/setup/endpoint.h"
#include "engine/vectors/qdrant_reply.h"
#include "engine/vectors/qdrant_request.h"
#include "loop/offload.h"
#include "loop/sync.h"
#include "wire/http_client.h"

#define WRITERS     4 /* bodies of some megabytes at a time */
#define LISTS       4 /* the same of searches with long lists */
#define LONG_LIST   10000
#define TEND_MS     10000
#define MODEL_BYTES 256

struct qdrant {
    struct points_store store; /* first: they are cast */
    struct http_client *client;
    struct arena arena;               /* of the strings */
    const char *aliases, *collection; /* URLs */
    const char *name, *alias;
    struct str key_line; /* n == 0: none */
    bool papers;
    int64_t timeout_ms;
    struct sem writing, listing;
    /* What the server has said of the collection. A space never changes, so it is asked once, and
     * again when it answers that it is another one. */
    bool known, indexed;
    size_t dimension;
    char model[MODEL_BYTES]; /* "": not said */
    int64_t tended_ms;
};

static struct qdrant *qdrant_of(struct points_store *s)
{
    return (struct qdrant *)s;
}

/* --- one request --- */

struct request {
    const char *method, *url;
    struct str body; /* p == NULL: none */
    bool writes;     /* then what was sent may have been done; all of them can be repeated */
    size_t hits;     /* that are asked for */
};

/* What a request ends with that may have reached the server. */
static int lost(const struct request *r)
{
    return r->writes ? ERR_UNCERTAIN : ERR_UNAVAILABLE;
}

static bool says(struct str words, const char *what)
{
    return str_find(words, str_of(what)) >= 0;
}

static int refused_as_wrong(struct task *t, struct str words)
{
    if (says(words, "already exists"))
        return task_fail(t, ERR_EXISTS, "vectors: Qdrant: %.*s", STR_ARG(words));
    if (says(words, "dimension") || says(words, "expected dim"))
        return task_fail(t, ERR_CONFLICT, "vectors: the collection is of another dimension: %.*s",
                         STR_ARG(words));
    return task_fail(t, ERR_REFUSED, "vectors: Qdrant refuses a request: %.*s", STR_ARG(words));
}

/* A reply whose status is none of 2xx. */
static int refused(struct task *t, const struct request *r, const struct http_response *reply)
{
    struct str words = qdrant_reply_error(task_arena(t), reply->body);
    const char *colon = words.n ? ": " : "";
    int status = reply->status;
    switch (status) {
    case 400:
    case 409:
    case 422:
        return refused_as_wrong(t, words);
    case 401:
    case 403:
        return task_fail(t, ERR_UNAVAILABLE,
                         "vectors: Qdrant refuses the key, with status %d%s%.*s; see "
                         "vectors.api_key",
                         status, colon, STR_ARG(words));
    case 404:
        if (words.n)
            return task_fail(t, ERR_NOT_FOUND, "vectors: Qdrant: %.*s", STR_ARG(words));
        return task_fail(t, ERR_UNAVAILABLE,
                         "vectors: what answers is no Qdrant (status 404); see vectors.url");
    case 413:
        return task_fail(t, ERR_REFUSED,
                         "vectors: Qdrant, or a proxy before it, takes no request of %zu bytes",
                         r->body.n);
    case 429:
        return task_fail(t, ERR_UNAVAILABLE, "vectors: Qdrant limits requests%s%.*s", colon,
                         STR_ARG(words));
    }
    if (status == 507 || says(words, "No space left"))
        return task_fail(t, lost(r), "vectors: the disk of the Qdrant server is full%s%.*s", colon,
                         STR_ARG(words));
    if (status == 408 || status >= 500)
        return task_fail(t, lost(r), "vectors: Qdrant answers with status %d%s%.*s", status, colon,
                         STR_ARG(words));
    return task_fail(t, ERR_UNAVAILABLE,
                     "vectors: what answers is no Qdrant (status %d); see "
                     "vectors.url",
                     status);
}

static int unsent(struct task *t, const struct request *r, int err)
{
    const char *why = arena_strdup(task_arena(t), task_error(t));
    switch (err) {
    case ERR_TIMEOUT:
        if (!r->writes && task_time_left_ms(t) <= 0)
            return err;
        return task_fail(t, lost(r), "vectors: Qdrant does not answer in time");
    case ERR_UNCERTAIN:
    case ERR_PROTO:
    case ERR_LIMIT:
        return task_fail(t, lost(r), "vectors: Qdrant: %s", why);
    case ERR_CANCELED:
        return err;
    default:
        return task_fail(t, err, "vectors: Qdrant: %s", why);
    }
}

/* *cut: the connection was lost on the way. */
static int call_once(struct task *t, struct qdrant *q, const struct request *r,
                     struct http_response *reply, bool *cut)
{
    const struct str headers[] = {STR("Content-Type: application/json"), q->key_line};
    int64_t old = task_deadline(t, q->timeout_ms);
    int err = http_call(t, q->client,
                        &(struct http_call){.method = r->method,
                                            .url = r->url,
                                            .headers = headers,
                                            .header_count = q->key_line.n ? 2 : 1,
                                            .body = r->body,
                                            .reply_bytes_max = QDRANT_REPLY_BYTES_MAX +
                                                               r->hits * QDRANT_HIT_BYTES_MAX},
                        reply);
    task_deadline_restore(t, old);
    *cut = err == ERR_UNCERTAIN;
    if (err)
        return unsent(t, r, err);
    return reply->status >= 200 && reply->status < 300 ? 0 : refused(t, r, reply);
}

/* The connection may be an old one that the server has closed: once more, then. */
static int call(struct task *t, struct qdrant *q, const struct request *r, struct str *body)
{
    struct http_response reply = {.status = 0};
    bool cut;
    int err = call_once(t, q, r, &reply, &cut);
    if (err && cut) {
        err = call_once(t, q, r, &reply, &cut);
        err = err == ERR_UNAVAILABLE || err == ERR_BUSY ? lost(r) : err;
    }
    if (err == ERR_NOT_FOUND || err == ERR_CONFLICT)
        q->known = false;
    *body = reply.body;
    return err;
}

static int unreadable(struct task *t, const struct request *r, const char *problem)
{
    return task_fail(t, lost(r), "vectors: Qdrant sent %s", problem);
}

/* A request that changes points. */
static int change(struct task *t, struct qdrant *q, const char *method, const char *path,
                  struct str json)
{
    struct request r = {.method = method,
                        .url = arena_printf(task_arena(t), "%s%s", q->collection, path),
                        .body = json,
                        .writes = true};
    struct str body;
    const char *problem;
    bool done;
    int err = call(t, q, &r, &body);
    if (err)
        return err;
    if (qdrant_reply_change(task_arena(t), body, &done, &problem))
        return unreadable(t, &r, problem);
    return done ? 0 : task_fail(t, ERR_UNCERTAIN, "vectors: Qdrant has not applied a change yet");
}

/* One that changes collections or aliases. */
static int manage(struct task *t, struct qdrant *q, const char *method, const char *url,
                  struct str json)
{
    struct request r = {.method = method, .url = url, .body = json, .writes = true};
    struct str body;
    const char *problem;
    bool yes;
    int err = call(t, q, &r, &body);
    if (!err && qdrant_reply_switch(task_arena(t), body, &yes, &problem))
        err = unreadable(t, &r, problem);
    return err;
}

/* --- the collection --- */

static int ask_info(struct task *t, struct qdrant *q)
{
    struct request r = {.method = "GET", .url = q->collection};
    struct qdrant_info info;
    struct str body;
    const char *problem;
    int err = call(t, q, &r, &body);
    if (err)
        return err;
    if (qdrant_reply_info(task_arena(t), body, &info, &problem))
        return unreadable(t, &r, problem);
    q->dimension = info.dimension;
    q->indexed = info.indexed;
    snprintf(q->model, sizeof(q->model), "%.*s", (int)info.model.n,
             info.model.p ? info.model.p : "");
    q->known = true;
    return 0;
}

/* ERR_CONFLICT: it is of another space. */
static int know(struct task *t, struct qdrant *q, const struct points_space *space)
{
    int err = q->known ? 0 : ask_info(t, q);
    if (err)
        return err;
    bool same_model =
        !space->model || !q->model[0] || strncmp(space->model, q->model, MODEL_BYTES - 1) == 0;
    if (space->dimension == q->dimension && same_model)
        return 0;
    q->known = false;
    return task_fail(t, ERR_CONFLICT, "vectors: %s is of another model or dimension", q->name);
}

static int make_indexes(struct task *t, struct qdrant *q)
{
    int err = 0;
    for (size_t i = 0; i < QDRANT_FIELDS && !err; i++) {
        struct buf b;
        buf_init(&b);
        qdrant_write_field(&qdrant_fields[i], &b);
        err = change(t, q, "PUT", "/index?wait=true", buf_str(&b));
        buf_release(&b);
    }
    q->indexed = !err;
    return err;
}

static int drop(struct task *t, struct points_store *s)
{
    struct qdrant *q = qdrant_of(s);
    q->known = false;
    int err = manage(t, q, "DELETE", q->collection, STR_NULL);
    return err == ERR_NOT_FOUND ? 0 : err;
}

static int create(struct task *t, struct points_store *s, const struct points_space *space)
{
    struct qdrant *q = qdrant_of(s);
    struct buf b;
    if (space->dimension < POINTS_DIMENSION_MIN || space->dimension > POINTS_DIMENSION_MAX)
        return task_fail(t, ERR_INVALID, "vectors: a collection cannot have this dimension");
    buf_init(&b);
    qdrant_write_create(space, &b);
    int err = ERR_EXISTS;
    /* It may exist because a request that was lost has been done. */
    for (int i = 0; i < 2 && err == ERR_EXISTS; i++) {
        err = drop(t, s);
        if (!err)
            err = manage(t, q, "PUT", q->collection, buf_str(&b));
    }
    buf_release(&b);
    if (err == ERR_EXISTS)
        return task_fail(t, ERR_BUSY, "vectors: %s is made by another node", q->name);
    return err ? err : make_indexes(t, q);
}

static int publish(struct task *t, struct points_store *s)
{
    struct qdrant *q = qdrant_of(s);
    struct buf b;
    int err = ask_info(t, q); /* else the alias would be lost */
    if (err)
        return err;
    buf_init(&b);
    qdrant_write_alias(q->alias, q->name, &b);
    err = manage(t, q, "POST", q->aliases, buf_str(&b));
    buf_release(&b);
    if (err == ERR_EXISTS)
        err = task_fail(t, ERR_REFUSED,
                        "vectors: the Qdrant server has a collection \"%s\" of another program, "
                        "where the alias should be",
                        q->alias);
    return err;
}

static int look(struct task *t, struct points_store *s, struct points_look *out)
{
    struct qdrant *q = qdrant_of(s);
    struct request r = {.method = "POST",
                        .url = arena_printf(task_arena(t), "%s/points/count", q->collection),
                        .body = STR("{\"exact\":true}")};
    struct str body;
    const char *problem;
    uint64_t count;
    int err = ask_info(t, q);
    size_t dimension = q->dimension;
    if (!err)
        err = call(t, q, &r, &body);
    if (err)
        return err;
    if (qdrant_reply_count(task_arena(t), body, &count, &problem))
        return unreadable(t, &r, problem);
    *out = (struct points_look){.dimension = dimension, .points = count};
    return 0;
}

static int settle(struct task *t, struct points_store *s)
{
    (void)t, (void)s;
    return 0;
}

/* Whether it is there, and has its indexes: a node may have died between making the two. */
static int tend(struct task *t, struct points_store *s)
{
    struct qdrant *q = qdrant_of(s);
    int64_t now = loop_now_ms(task_loop(t));
    if (q->tended_ms && now - q->tended_ms < TEND_MS)
        return 0;
    int err = ask_info(t, q);
    if (!err && q->dimension && !q->indexed)
        err = make_indexes(t, q);
    q->tended_ms = err ? 0 : now;
    return err;
}

/* --- points --- */

struct writing { /* of a body, on a helper thread */
    const struct points_change *change;
    const struct points_query *query;
    bool papers;
    size_t from; /* of points */
    struct buf body;
    int err;
    const char *why;
};

static int write_aside(struct task *t, void (*fn)(void *arg), struct writing *w)
{
    buf_clear(&w->body);
    int err = offload(t, fn, w);
    if (err)
        return err;
    return w->err ? task_fail(t, w->err, "vectors: %s", w->why) : 0;
}

static void do_check(void *arg)
{
    struct writing *w = arg;
    w->err = qdrant_check_change(w->change, &w->why);
}

static void do_points(void *arg)
{
    struct writing *w = arg;
    w->from = qdrant_write_points(w->change, w->papers, w->from, &w->body);
}

static void do_delete(void *arg)
{
    struct writing *w = arg;
    qdrant_write_delete(w->change, &w->body);
}

static void do_query(void *arg)
{
    struct writing *w = arg;
    w->err = qdrant_check_query(w->query, &w->why);
    if (!w->err)
        qdrant_write_query(w->query, &w->body);
}

/* See qdrant.h for what a search may find meanwhile. */
static int put_all(struct task *t, struct qdrant *q, struct writing *w, bool *begun)
{
    const struct points_change *c = w->change;
    int err = c->count ? know(t, q, &c->space) : 0;
    if (!err)
        err = write_aside(t, do_check, w);
    while (!err && w->from < c->count) {
        err = write_aside(t, do_points, w);
        if (!err)
            err = change(t, q, "PUT", "/points?wait=true", buf_str(&w->body));
        *begun = *begun || !err;
    }
    if (!err && (c->count || c->gone_count)) {
        err = write_aside(t, do_delete, w);
        if (!err)
            err = change(t, q, "POST", "/points/delete?wait=true", buf_str(&w->body));
    }
    return err;
}

static int put(struct task *t, struct points_store *s, const struct points_change *c)
{
    struct qdrant *q = qdrant_of(s);
    struct writing w = {.change = c, .papers = q->papers};
    bool begun = false;
    int err = sem_get(t, &q->writing);
    if (err)
        return err;
    buf_init(&w.body);
    err = put_all(t, q, &w, &begun);
    buf_release(&w.body);
    sem_put(&q->writing);
    return begun && (err == ERR_UNAVAILABLE || err == ERR_BUSY || err == ERR_TIMEOUT)
               ? ERR_UNCERTAIN
               : err;
}

static int tag(struct task *t, struct points_store *s, uint64_t owner, struct point_tags tags,
               struct str title)
{
    struct qdrant *q = qdrant_of(s);
    struct buf b;
    buf_init(&b);
    qdrant_write_tag(owner, tags, title, q->papers, &b);
    int err = change(t, q, "POST", "/points/payload?wait=true", buf_str(&b));
    buf_release(&b);
    return err;
}

struct reading { /* of hits, on a helper thread: there may be thousands */
    struct str body;
    size_t k, count;
    struct point_hit *hits;
    const char *problem; /* a constant */
    int err;
};

static void do_hits(void *arg)
{
    struct reading *r = arg;
    struct arena a;
    arena_init(&a);
    r->err = qdrant_reply_hits(&a, r->body, r->k, r->hits, &r->count, &r->problem);
    arena_release(&a);
}

static int ask_points(struct task *t, struct qdrant *q, struct writing *w, struct point_hit *hits,
                      size_t *count)
{
    struct request r = {.method = "POST",
                        .url = arena_printf(task_arena(t), "%s/points/query", q->collection),
                        .hits = w->query->k};
    struct reading reading = {.k = w->query->k, .hits = hits};
    int err = write_aside(t, do_query, w);
    if (err)
        return err;
    const struct point_filter *f = w->query->filter;
    if (f && f->owners && !f->owner_count) {
        *count = 0; /* among none */
        return 0;
    }
    r.body = buf_str(&w->body);
    err = call(t, q, &r, &reading.body);
    if (!err)
        err = offload(t, do_hits, &reading);
    if (!err && reading.err)
        err = unreadable(t, &r, reading.problem);
    *count = reading.count;
    return err;
}

static int search(struct task *t, struct points_store *s, const struct points_query *query,
                  struct point_hit *hits, struct points_answer *answer)
{
    struct qdrant *q = qdrant_of(s);
    struct writing w = {.query = query};
    const struct point_filter *f = query->filter;
    bool lists = f && f->owner_count + f->unless_count > LONG_LIST;
    size_t count = 0;
    int err = know(t, q, &query->space);
    if (!err && lists)
        err = sem_get(t, &q->listing);
    if (err)
        return err;
    buf_init(&w.body);
    err = ask_points(t, q, &w, hits, &count);
    buf_release(&w.body);
    if (lists)
        sem_put(&q->listing);
    if (!err)
        *answer =
            (struct points_answer){.count = count, .among = count, .approximate = !query->exact};
    return err;
}

/* --- making --- */

static void qdrant_free(struct points_store *s)
{
    struct qdrant *q = qdrant_of(s);
    if (!q)
        return;
    arena_release(&q->arena);
    free(q);
}

static const struct points_ops ops = {.name = "qdrant",
                                      .create = create,
                                      .drop = drop,
                                      .publish = publish,
                                      .look = look,
                                      .put = put,
                                      .tag = tag,
                                      .search = search,
                                      .settle = settle,
                                      .tend = tend,
                                      .free = qdrant_free};

static const char *problem_of(const struct qdrant_options *o)
{
    struct arena a;
    arena_init(&a);
    const char *problem = endpoint_base_problem(&a, o->url);
    if (!problem)
        problem = endpoint_plain_key_problem(&a, o->api_key);
    arena_release(&a);
    return problem; /* a constant */
}

struct points_store *qdrant_new(const struct qdrant_options *o, const char **why)
{
    const char *problem = problem_of(o);
    if (problem) {
        *why = problem;
        return NULL;
    }
    struct qdrant *q = check_memory(calloc(1, sizeof(*q)));
    struct arena *a = &q->arena;
    q->store.ops = &ops;
    arena_init(a);
    q->client = o->client;
    q->papers = o->papers;
    q->timeout_ms = o->timeout_ms;
    q->alias = arena_strdup(a, o->collection);
    q->name = arena_printf(a, "%s_%lld", o->collection, (long long)o->space);
    q->aliases = endpoint_url(a, o->url, "/collections/aliases");
    q->collection = endpoint_url(a, o->url, arena_printf(a, "/collections/%s", q->name));
    if (*o->api_key)
        q->key_line = str_printf(a, "api-key: %s", o->api_key);
    sem_init(&q->writing, WRITERS);
    sem_init(&q->listing, LISTS);
    return &q->store;
}
