#include "engine/vectors/embedded.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/vectors/index.h"
#include "loop/offload.h"
#include "loop/sync.h"

struct embedded {
    struct points_store store; /* first: they are cast */
    char *path;
    struct index *index;         /* NULL: not opened yet */
    struct index_writer *writer; /* the same */
    struct sem opening, writing; /* one task at a time */
};

/* A call, on the stack of the task that waits for it. */
struct call {
    struct embedded *e;
    int err;
    const char *why;
    const struct points_change *change;
    uint64_t owner;
    struct point_tags tags;
    const struct points_query *query;
    struct point_hit *hits;
    struct points_answer *answer;
};

static struct embedded *embedded_of(struct points_store *s)
{
    return (struct embedded *)s;
}

static int run(struct task *t, void (*fn)(void *arg), struct call *c)
{
    c->why = "";
    int err = offload(t, fn, c);
    if (err)
        return err;
    return c->err ? task_fail(t, c->err, "vectors: %s", c->why) : 0;
}

/* --- on a helper thread --- */

static void do_open(void *arg)
{
    struct call *c = arg;
    c->err = index_open(c->e->path, &c->e->index, &c->why);
}

static void do_search(void *arg)
{
    struct call *c = arg;
    c->err = index_search(c->e->index, c->query, c->hits, c->answer, &c->why);
}

static bool has_writer(struct call *c)
{
    c->err = c->e->writer ? 0 : index_writer_open(c->e->path, &c->e->writer, &c->why);
    return !c->err;
}

static void do_put(void *arg)
{
    struct call *c = arg;
    if (has_writer(c))
        c->err = index_put(c->e->writer, c->change, EMBEDDED_WAIT_MS, &c->why);
}

static void do_tag(void *arg)
{
    struct call *c = arg;
    if (has_writer(c))
        c->err = index_tag(c->e->writer, c->owner, c->tags, EMBEDDED_WAIT_MS, &c->why);
}

static void do_settle(void *arg)
{
    struct call *c = arg;
    if (has_writer(c))
        c->err = index_sync(c->e->writer, &c->why);
}

/* --- tasks --- */

static int search(struct task *t, struct points_store *s, const struct points_query *q,
                  struct point_hit *hits, struct points_answer *answer)
{
    struct embedded *e = embedded_of(s);
    struct call c = {.e = e, .query = q, .hits = hits, .answer = answer};
    if (!e->index) {
        int err = sem_get(t, &e->opening);
        if (err)
            return err;
        if (!e->index) /* another task may have opened it meanwhile */
            err = run(t, do_open, &c);
        sem_put(&e->opening);
        if (err)
            return err;
    }
    return run(t, do_search, &c);
}

static int write_by(struct task *t, void (*fn)(void *arg), struct call *c)
{
    int err = sem_get(t, &c->e->writing);
    if (err)
        return err;
    err = run(t, fn, c);
    sem_put(&c->e->writing);
    return err;
}

static int put(struct task *t, struct points_store *s, const struct points_change *change)
{
    struct call c = {.e = embedded_of(s), .change = change};
    return write_by(t, do_put, &c);
}

/* Titles are not kept here. */
static int tag(struct task *t, struct points_store *s, uint64_t owner, struct point_tags tags,
               struct str title)
{
    (void)title;
    struct call c = {.e = embedded_of(s), .owner = owner, .tags = tags};
    return write_by(t, do_tag, &c);
}

static int settle(struct task *t, struct points_store *s)
{
    struct call c = {.e = embedded_of(s)};
    return write_by(t, do_settle, &c);
}

static void embedded_free(struct points_store *s)
{
    struct embedded *e = embedded_of(s);
    if (!e)
        return;
    index_close(e->index);
    index_writer_close(e->writer);
    free(e->path);
    free(e);
}

static const struct points_ops ops = {.name = "embedded",
                                      .put = put,
                                      .tag = tag,
                                      .search = search,
                                      .settle = settle,
                                      .free = embedded_free};

struct points_store *embedded_new(const char *path)
{
    struct embedded *e = check_memory(calloc(1, sizeof(*e)));
    e->store.ops = &ops;
    e->path = check_memory(strdup(path));
    sem_init(&e->opening, 1);
    sem_init(&e->writing, 1);
    return &e->store;
}
