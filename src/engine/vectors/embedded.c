#include "engine/vectors/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/vectors/index.h"
#include "loop/offload.h"
#include "loop/sync.h"

#define VERIFIED_ROWS 2048 /* in one round of upkeep: some milliseconds */

struct embedded {
    struct points_store store; /* first: they are cast */
    char *path;
    struct index *index;         /* NULL: not opened yet */
    struct index_writer *writer; /* the same */
    struct sem opening, writing; /* one task at a time */
    uint32_t verified;           /* the row that is verified next */
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
    const struct points_space *space;
    struct points_look *look;
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

static void do_create(void *arg)
{
    struct call *c = arg;
    struct index_spec spec = {.model = c->space->model, .dimension = (uint32_t)c->space->dimension};
    c->err = index_create(c->e->path, &spec, &c->why);
    c->e->verified = 0;
}

/* Writers that are at work on it find that it is gone. */
static void do_drop(void *arg)
{
    static const char *const ends[] = {"", ".compact", ".lock"};
    struct call *c = arg;
    char name[INDEX_PATH_BYTES_MAX + 16];
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends) && !c->err; i++) {
        snprintf(name, sizeof(name), "%s%s", c->e->path, ends[i]);
        if (unlink(name) && errno != ENOENT) {
            c->err = ERR_IO;
            c->why = "the file of the index cannot be removed";
        }
    }
}

/* A process that has mapped the file goes on with it: that it is gone must not go unnoticed. */
static bool is_there(struct call *c)
{
    struct stat st;
    if (stat(c->e->path, &st) == 0 || errno != ENOENT)
        return true;
    c->err = ERR_NOT_FOUND;
    c->why = "there is no such index";
    return false;
}

static void do_look(void *arg)
{
    struct call *c = arg;
    struct index_info info;
    if (is_there(c))
        c->err = index_info(c->e->index, &info, &c->why);
    if (!c->err)
        *c->look = (struct points_look){
            .dimension = info.dimension, .points = info.points, .bytes = info.bytes};
}

/* By a writer of its own: changes go on meanwhile. */
static void compact(struct call *c)
{
    struct index_writer *w;
    c->err = index_writer_open(c->e->path, &w, &c->why);
    if (c->err)
        return;
    c->err = index_compact(w, EMBEDDED_WAIT_MS, &c->why);
    index_writer_close(w);
    c->e->verified = 0;
}

static void do_tend(void *arg)
{
    struct call *c = arg;
    struct embedded *e = c->e;
    struct index_info info;
    if (is_there(c))
        c->err = index_verify(e->index, &e->verified, VERIFIED_ROWS, &c->why);
    if (!c->err)
        c->err = index_info(e->index, &info, &c->why);
    if (!c->err && info.wants_compaction)
        compact(c);
}

/* --- tasks --- */

static int opened(struct task *t, struct embedded *e)
{
    if (e->index)
        return 0;
    struct call c = {.e = e};
    int err = sem_get(t, &e->opening);
    if (err)
        return err;
    if (!e->index) /* another task may have opened it meanwhile */
        err = run(t, do_open, &c);
    sem_put(&e->opening);
    return err;
}

static int search(struct task *t, struct points_store *s, const struct points_query *q,
                  struct point_hit *hits, struct points_answer *answer)
{
    struct embedded *e = embedded_of(s);
    struct call c = {.e = e, .query = q, .hits = hits, .answer = answer};
    int err = opened(t, e);
    return err ? err : run(t, do_search, &c);
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

static int create(struct task *t, struct points_store *s, const struct points_space *space)
{
    struct call c = {.e = embedded_of(s), .space = space};
    return write_by(t, do_create, &c);
}

static int drop(struct task *t, struct points_store *s)
{
    struct call c = {.e = embedded_of(s)};
    return write_by(t, do_drop, &c);
}

/* Nothing but this program looks into the file. */
static int publish(struct task *t, struct points_store *s)
{
    (void)t;
    (void)s;
    return 0;
}

static int look(struct task *t, struct points_store *s, struct points_look *out)
{
    struct call c = {.e = embedded_of(s), .look = out};
    int err = opened(t, c.e);
    return err ? err : run(t, do_look, &c);
}

static int tend(struct task *t, struct points_store *s)
{
    struct call c = {.e = embedded_of(s)};
    int err = opened(t, c.e);
    return err ? err : run(t, do_tend, &c);
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
                                      .create = create,
                                      .drop = drop,
                                      .publish = publish,
                                      .look = look,
                                      .put = put,
                                      .tag = tag,
                                      .search = search,
                                      .settle = settle,
                                      .tend = tend,
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
