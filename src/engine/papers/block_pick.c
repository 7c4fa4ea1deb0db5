/* Papers of many blocks at once: one round trip for all that Redis has. A block that is not whole
 * is built, and read again. */
#include <stdlib.h>

#include "engine/papers/block_private.h"
#include "engine/store/keys.h"

#define PICKED_AT_ONCE 2000 /* papers: more would fill the pipeline that all tasks share */
#define ASKS_MAX       3    /* of a block that is damaged each time after it was built */

#define MARKS_16       "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"
#define LOOKED_AT_ONCE 64 /* papers, in one statement */

enum { COMMANDS = 3 }; /* for each block */

/* The papers wanted of one block: a run of an array that is sorted by block. */
struct part {
    struct block_pick **wants;
    size_t count;
    struct str key;
    bool done;
};

static int in_order(const void *a, const void *b)
{
    const struct block_pick *x = *(struct block_pick *const *)a,
                            *y = *(struct block_pick *const *)b;
    int c = str_compare(x->journal, y->journal);
    return c ? c : (x->year > y->year) - (x->year < y->year);
}

static struct part *cut(struct arena *a, struct block_pick *wants, size_t count, size_t *parts)
{
    struct block_pick **all = ARENA_ARRAY(a, struct block_pick *, count);
    struct part *out = ARENA_ARRAY(a, struct part, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        all[i] = &wants[i];
    qsort(all, count, sizeof *all, in_order);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || in_order(&all[i - 1], &all[i]) != 0)
            out[n++] =
                (struct part){.wants = all + i, .key = key_block(a, all[i]->journal, all[i]->year)};
        out[n - 1].count++;
    }
    *parts = n;
    return out;
}

static void ask(struct redis_batch *batch, const struct part *p)
{
    struct arena *a = task_arena(batch->task);
    struct str *argv = ARENA_ARRAY(a, struct str, p->count + 3);
    argv[0] = STR("HMGET");
    argv[1] = p->key;
    argv[2] = STR(BLOCK_HEADER);
    for (size_t i = 0; i < p->count; i++)
        argv[i + 3] = p->wants[i]->doi;
    redis_batch_argv(batch, p->key, p->count + 3, argv);
    redis_batch_add(batch, p->key, STR("HLEN"), p->key);
    redis_batch_add(batch, p->key, STR("PEXPIRE"), p->key,
                    str_int(a, block_ttl_ms(task_loop(batch->task))));
}

/* replies: of the commands above. p is done unless the block is missing. */
static int take(struct task *t, struct blocks *b, struct part *p,
                const struct redis_reply *const *replies)
{
    const struct redis_reply *values = replies[0];
    struct block_version v;
    int err = block_read_problem(t, values);
    if (!err)
        err = block_read_problem(t, replies[1]);
    if (err || values->type != REDIS_ARRAY || values->count != p->count + 1 ||
        values->items[0]->type != REDIS_STRING || replies[1]->type != REDIS_INT ||
        !block_header_read(values->items[0]->str, replies[1]->integer, &v))
        return err;
    for (size_t i = 0; i < p->count; i++)
        if (values->items[i + 1]->type == REDIS_STRING)
            p->wants[i]->packed = values->items[i + 1]->str;
    p->done = true;
    metric_add(b->hits, 1);
    return 0;
}

static int ask_all(struct task *t, struct blocks *b, struct part *parts, size_t count)
{
    struct redis_batch batch;
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, b->redis);
    for (size_t i = 0; i < count; i++)
        if (!parts[i].done)
            ask(&batch, &parts[i]);
    int err = batch.count ? redis_batch_run(&batch, &replies) : 0;
    for (size_t i = 0, k = 0; !err && i < count; i++)
        if (!parts[i].done)
            err = take(t, b, &parts[i], replies + COMMANDS * k++);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* idempotent */
}

/* *missing: how many were built and must be read again. */
static int build_missing(struct task *t, struct blocks *b, struct part *parts, size_t count,
                         size_t *missing)
{
    int err = 0;
    *missing = 0;
    for (size_t i = 0; !err && i < count; i++) {
        struct part *p = &parts[i];
        if (p->done)
            continue;
        metric_add(b->misses, 1);
        err = block_refresh(t, b, p->wants[0]->journal, p->wants[0]->year, false, NULL);
        p->done = err == ERR_NOT_FOUND; /* no such block: no such papers */
        if (p->done)
            err = 0;
        *missing += !err && !p->done;
    }
    return err;
}

static int pick(struct task *t, struct blocks *b, struct block_pick *wants, size_t count)
{
    size_t parts, missing = 1;
    struct part *all = cut(task_arena(t), wants, count, &parts);
    for (int i = 0; i < ASKS_MAX && missing; i++) {
        int err = ask_all(t, b, all, parts);
        if (!err)
            err = build_missing(t, b, all, parts, &missing);
        if (err)
            return err;
    }
    return missing ? task_fail(t, ERR_UNAVAILABLE,
                               "a block was gone or damaged %d times, just after it had been built",
                               ASKS_MAX)
                   : 0;
}

/* --- papers that their blocks do not have --- */

/* A row that cannot be packed is as good as none: the build of its block reports it. */
static void take_row(struct task *t, struct block_packer *packer, const struct sql_value *row,
                     struct block_pick *const *missing, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena *a = task_arena(t);
        struct str packed;
        if (str_eq(missing[i]->doi, row[0].s) &&
            !block_pack(packer, a, a, row[0].s, row[1].s, &packed))
            missing[i]->packed = packed;
    }
}

/* count: at most LOOKED_AT_ONCE. */
static int look_in_mysql(struct task *t, struct blocks *b, struct block_pick *const *missing,
                         size_t count)
{
    struct sql_value argv[LOOKED_AT_ONCE];
    struct sql_rows r;
    for (size_t i = 0; i < LOOKED_AT_ONCE; i++)
        argv[i] = i < count ? sql_text(missing[i]->doi) : sql_null(); /* which equals nothing */
    _Static_assert(LOOKED_AT_ONCE == 64, "as many marks as papers");
    int err = sql_argv(t, b->sql,
                       "SELECT DOI, Bib FROM paperinfo WHERE DOI IN (" MARKS_16 "," MARKS_16
                       "," MARKS_16 "," MARKS_16 ")",
                       LOOKED_AT_ONCE, argv, &r);
    if (!err && r.count && !b->dictionaries.answered)
        err = blocks_learn(t, b);
    if (err || !r.count)
        return err;
    struct block_packer *packer = block_packer_get(b);
    for (size_t i = 0; i < r.count; i++)
        take_row(t, packer, sql_row(&r, i), missing, count);
    block_packer_put(b, packer);
    return 0;
}

static int pick_missing(struct task *t, struct blocks *b, struct block_pick *wants, size_t count)
{
    struct block_pick *missing[LOOKED_AT_ONCE];
    size_t n = 0;
    int err = 0;
    for (size_t i = 0; !err && i < count; i++) {
        if (!wants[i].packed.p)
            missing[n++] = &wants[i];
        if (n == LOOKED_AT_ONCE || (n && i + 1 == count)) {
            err = look_in_mysql(t, b, missing, n);
            n = 0;
        }
    }
    return err;
}

int blocks_pick_packed(struct task *t, struct blocks *b, struct block_pick *wants, size_t count)
{
    int err = 0;
    for (size_t i = 0; i < count; i++)
        wants[i].packed = STR_NULL;
    for (size_t at = 0; !err && at < count; at += PICKED_AT_ONCE)
        err = pick(t, b, wants + at, count - at < PICKED_AT_ONCE ? count - at : PICKED_AT_ONCE);
    return err ? err : pick_missing(t, b, wants, count);
}

int blocks_pick(struct task *t, struct blocks *b, struct block_pick *wants, size_t count)
{
    int err = blocks_pick_packed(t, b, wants, count), bad = 0;
    for (size_t i = 0; i < count; i++) {
        wants[i].bibtex = STR_NULL;
        if (!bad && wants[i].packed.p)
            bad = block_unpack(t, b, task_arena(t), wants[i].packed, &wants[i].bibtex);
    }
    return err ? err : bad;
}
