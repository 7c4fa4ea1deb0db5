#include "engine/papers/warm.h"

#include <stdio.h>

#include "base/json.h"
#include "engine/papers/catalog_private.h"
#include "loop/loop.h"

#define LOOK_AT_ONCE 500 /* blocks in one round trip */

/* Shared by the tasks that fill blocks. */
struct filling {
    const struct warm_options *options;
    struct warm_progress *progress;
    const struct block_name *names;
    const bool *fresh;
    size_t count;
    size_t first; /* random: nodes that warm at the same time start at different blocks */
    size_t next;  /* from first */
    int err;
    char problem[sizeof((struct warm_progress *)0)->problem];
};

static void remember(struct filling *f, struct task *t, int err)
{
    if (f->err)
        return;
    f->err = err;
    snprintf(f->problem, sizeof f->problem, "%s", *task_error(t) ? task_error(t) : err_name(err));
}

static void fill_one(struct task *t, struct filling *f, size_t i)
{
    const struct block_name *n = &f->names[i];
    struct warm_progress *p = f->progress;
    bool built = false;
    int err =
        block_refresh(t, f->options->blocks, n->journal, n->year, f->options->rebuild_all, &built);
    if (err && err != ERR_NOT_FOUND) { /* its papers may have moved since the list was read */
        remember(f, t, err);
        return;
    }
    p->blocks_ready += n->version.papers > 0;
    p->papers_ready += n->version.papers;
    p->blocks_built += built;
    p->papers_built += built ? n->version.papers : 0;
}

static void fill_some(struct task *t, void *arg)
{
    struct filling *f = arg;
    while (f->next < f->count && !f->err) {
        size_t i = (f->first + f->next++) % f->count;
        if (f->fresh[i])
            continue;
        struct task_scope s = task_scope(t);
        fill_one(t, f, i);
        task_scope_end(t, s);
    }
}

/* Also those that have no papers any more: Redis may still have them. */
static int list_blocks(struct task *t, const struct warm_options *o, struct warm_progress *p,
                       struct block_name **out, size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, o->sql, &r,
                       "SELECT journal, year, papers, digest, " CATALOG_LOAD ", load_no"
                       " FROM corpus_block ORDER BY journal, year");
    if (err)
        return err;
    struct block_name *names = ARENA_ARRAY(task_arena(t), struct block_name, r.count);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        names[i] =
            (struct block_name){row[0].s, row[1].i, {row[2].i, row[3].i, row[4].i, row[5].i}};
        p->papers += row[2].i;
        p->blocks += row[2].i > 0;
    }
    *count = r.count;
    *out = names;
    return 0;
}

static int find_stale(struct task *t, struct filling *f, bool *fresh)
{
    for (size_t i = 0; i < f->count; i += LOOK_AT_ONCE) {
        size_t n = f->count - i < LOOK_AT_ONCE ? f->count - i : LOOK_AT_ONCE;
        struct task_scope s = task_scope(t);
        int err = blocks_look(t, f->options->blocks, f->names + i, n, fresh + i);
        task_scope_end(t, s);
        if (err)
            return err;
        for (size_t j = i; j < i + n; j++) {
            f->progress->blocks_ready += fresh[j] && f->names[j].version.papers > 0;
            f->progress->papers_ready += fresh[j] ? f->names[j].version.papers : 0;
        }
    }
    return 0;
}

static int fill_blocks(struct task *t, const struct warm_options *o, struct warm_progress *p)
{
    struct block_name *names;
    size_t count;
    int err = list_blocks(t, o, p, &names, &count);
    if (err)
        return err;
    struct filling f = {.options = o, .progress = p, .names = names, .count = count};
    bool *fresh = ARENA_ARRAY(task_arena(t), bool, f.count + 1);
    f.fresh = fresh;
    if (!o->rebuild_all)
        err = find_stale(t, &f, fresh);
    if (err || !f.count)
        return err;
    f.first = (size_t)(loop_random(task_loop(t)) % f.count);
    struct group g;
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < o->tasks && !err; i++)
        err = task_go(&g, "warm", fill_some, &f);
    int joined = group_join(t, &g);
    if (!err)
        err = joined;
    return err || !f.err ? err : task_fail(t, f.err, "%s", f.problem);
}

static int run(struct task *t, const struct warm_options *o, struct warm_progress *p)
{
    p->state = WARM_CATALOG;
    int err = catalog_load(t, o->redis, o->sql, &p->catalog);
    if (err)
        return err;
    p->catalog_loaded = true;
    p->state = WARM_BLOCKS;
    err = blocks_learn(t, o->blocks);
    return err ? err : fill_blocks(t, o, p);
}

int warm_run(struct task *t, const struct warm_options *o, struct warm_progress *p)
{
    check(o->tasks > 0);
    *p = (struct warm_progress){.catalog_loaded = p->catalog_loaded};
    struct task_scope s = task_scope(t);
    int err = run(t, o, p);
    p->state = err ? WARM_FAILED : WARM_DONE;
    if (err)
        snprintf(p->problem, sizeof p->problem, "%s",
                 *task_error(t) ? task_error(t) : err_name(err));
    task_scope_end(t, s);
    return err;
}

const char *warm_state_name(enum warm_state s)
{
    static const char *const names[] = {"waiting", "catalog", "blocks", "done", "failed"};
    return names[s];
}
