/* The steps of a job that change rows of papers. Each is a transaction that locks the row of the
 * unit first, and does nothing if that is not in the version that is worked on any more; only what
 * was stored already is told then (overtaken). */
#include <stdlib.h>

#include "app/embed/paper/papers_private.h"
#include "base/log.h"

#define AT_ONCE 256 /* papers, in a transaction */

int paper_dies(struct task *t, const struct paper_work *w, const char *step)
{
    return w->papers->dies ? w->papers->dies(t, step) : 0;
}

int paper_work_check(struct task *t, struct sql *c, struct paper_work *w)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT 1 FROM embedding_unit" PAPER_OF_THIS " FOR UPDATE",
                     sql_text(w->job->id), sql_int(w->job->version));
    w->final = !err && r.count == 0;
    return err;
}

/* --- against the corpus --- */

static int by_owner(const void *key, const void *element)
{
    uint64_t owner = *(const uint64_t *)key;
    const struct paper_doc *d = element;
    return (owner > d->owner) - (owner < d->owner);
}

static struct paper_doc *doc_of(const struct paper_work *w, uint64_t owner)
{
    return w->count ? bsearch(&owner, w->docs, w->count, sizeof *w->docs, by_owner) : NULL;
}

/* Rows of the unit: each is a paper's, or that paper has left. */
static int compare_unit(struct task *t, struct paper_work *w, uint64_t **gone, size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, w->papers->node->sql, &r,
                       "SELECT owner, version, space FROM embedding_paper WHERE journal = ?"
                       " AND year = ? AND owner % ? = ? ORDER BY owner",
                       sql_text(w->unit.journal), sql_int(w->unit.year), sql_int(w->unit.slices),
                       sql_int(w->unit.slice));
    if (err)
        return err;
    *gone = ARENA_ARRAY(task_arena(t), uint64_t, r.count + 1);
    *count = 0;
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        struct paper_doc *d = doc_of(w, (uint64_t)cell[0].i);
        if (!d) {
            (*gone)[(*count)++] = (uint64_t)cell[0].i;
        } else if (cell[1].i == d->digest) {
            d->known = true;
            d->space = cell[2].i;
        }
    }
    return 0;
}

int paper_compare(struct task *t, struct paper_work *w, uint64_t **gone, size_t *count)
{
    for (size_t i = 0; i < w->count; i++) {
        w->docs[i].known = false;
        w->docs[i].space = 0;
    }
    return compare_unit(t, w, gone, count);
}

/* --- overtaken --- */

/* What was stored or removed is not what later work on these papers has found: they are embedded
 * once more. */
static int spoil(struct task *t, struct sql *c, const uint64_t *owners, size_t count)
{
    int err =
        sql_on_list(t, c, "UPDATE embedding_paper SET space = 0 WHERE version >= 0 AND owner IN",
                    "", NULL, 0, owners, count, NULL);
    if (err)
        return err;
    return sql_on_list(t, c,
                       "UPDATE embedding_unit u JOIN (SELECT DISTINCT journal, year FROM"
                       " embedding_paper WHERE owner IN",
                       ") x ON x.journal = u.journal AND x.year = u.year SET u.state = 'pending',"
                       " u.version = u.version + 1, u.error = NULL, u.error_code = NULL,"
                       " u.changed_at = UTC_TIMESTAMP(3)",
                       NULL, 0, owners, count, NULL);
}

struct change {
    struct paper_work *work;
    const uint64_t *owners;
    size_t count;
    int64_t space;
    bool overtaken;
    /* Of those that are written. */
    struct paper_doc *const *docs;
};

/* A job of the same version that another node has ended meanwhile has done the same. */
static int check_overtaken(struct task *t, struct sql *c, struct change *g)
{
    struct paper_work *w = g->work;
    struct sql_rows r;
    int err = paper_work_check(t, c, w);
    g->overtaken = false;
    if (err || !w->final)
        return err;
    err = sql_on(t, c, &r, "SELECT 1 FROM embedding_unit WHERE id = ? AND version = ?",
                 sql_text(w->job->id), sql_int(w->job->version));
    if (err || r.count)
        return err;
    g->overtaken = true;
    return spoil(t, c, g->owners, g->count);
}

static void tell_overtaken(const struct change *g)
{
    if (!g->overtaken)
        return;
    metric_add(g->work->papers->overtaken, 1);
    log_info("papers", "unit %.*s was worked on in a later version meanwhile: it is done again",
             STR_ARG(g->work->job->id));
}

/* --- the fence --- */

static bool is_as_read(const struct sql_rows *r, const struct paper_as_read *x)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct sql_value *v = sql_row(r, i);
        if ((uint64_t)v[0].i == x->owner)
            return v[1].i == x->version && v[3].i == x->unit->year &&
                   str_eq(v[2].s, x->unit->journal);
    }
    return false;
}

/* By the key, whatever the table's size: a scan would lock the rows of all other papers, too. */
int paper_fence_may(struct task *t, struct sql *c, void *arg, bool *may)
{
    const struct papers_as_read *x = arg;
    uint64_t *owners = ARENA_ARRAY(task_arena(t), uint64_t, x->count);
    struct sql_rows r;
    for (size_t i = 0; i < x->count; i++)
        owners[i] = x->list[i].owner;
    int err = sql_on_list(
        t, c,
        "SELECT owner, version, journal, year FROM embedding_paper FORCE INDEX (PRIMARY)"
        " WHERE owner IN",
        " FOR UPDATE", NULL, 0, owners, x->count, &r);
    for (size_t i = 0; i < x->count && !err; i++)
        may[i] = is_as_read(&r, &x->list[i]);
    return err;
}

/* --- what leaves --- */

/* Those of the owners whose rows say that this unit is removing them. */
static int leaving(struct task *t, struct sql *c, struct change *g, uint64_t **owners,
                   size_t *count)
{
    const struct paper_unit *u = &g->work->unit;
    struct sql_value first[] = {sql_int(PAPER_LEAVING), sql_text(u->journal), sql_int(u->year)};
    struct sql_rows r;
    int err = sql_on_list(t, c,
                          "SELECT owner FROM embedding_paper WHERE version = ? AND journal = ?"
                          " AND year = ? AND owner IN",
                          "", first, 3, g->owners, g->count, &r);
    *count = err ? 0 : r.count;
    *owners = ARENA_ARRAY(task_arena(t), uint64_t, *count + 1);
    for (size_t i = 0; i < *count; i++)
        (*owners)[i] = (uint64_t)r.cells[i].i;
    return err;
}

struct removal {
    struct change change;
    uint64_t *owners; /* those that another unit has not taken over meanwhile */
    size_t count;
};

static int mark_body(struct task *t, struct sql *c, void *arg)
{
    struct removal *m = arg;
    struct change *g = &m->change;
    struct paper_work *w = g->work;
    int err = paper_work_check(t, c, w);
    if (err || w->final)
        return err;
    struct sql_value first[] = {sql_int(PAPER_LEAVING), sql_text(w->unit.journal),
                                sql_int(w->unit.year)};
    err = sql_on_list(t, c,
                      "UPDATE embedding_paper SET version = ?, space = 0 WHERE journal = ?"
                      " AND year = ? AND owner IN",
                      "", first, 3, g->owners, g->count, NULL);
    return err ? err : leaving(t, c, g, &m->owners, &m->count);
}

static int remove_body(struct task *t, struct sql *c, void *arg)
{
    struct change *g = arg;
    uint64_t *owners;
    size_t count;
    int err = check_overtaken(t, c, g);
    if (err || g->work->final)
        return err;
    err = leaving(t, c, g, &owners, &count);
    if (err || count == 0)
        return err;
    err = words_drop(t, c, COLLECTION_PAPERS, owners, count);
    return err ? err
               : sql_on_list(t, c, "DELETE FROM embedding_paper WHERE owner IN", "", NULL, 0,
                             owners, count, NULL);
}

static int drop_leaving(struct task *t, const struct change *g)
{
    struct papers *p = g->work->papers;
    struct paper_as_read *list = ARENA_ARRAY(task_arena(t), struct paper_as_read, g->count);
    struct papers_as_read x = {list, g->count};
    struct collection_fence fence = {paper_fence_may, &x};
    for (size_t i = 0; i < g->count; i++)
        list[i] = (struct paper_as_read){&g->work->unit, g->owners[i], PAPER_LEAVING};
    return p->drop(t, p->node->collections, COLLECTION_PAPERS, g->owners, g->count, &fence);
}

static int remove_some(struct task *t, struct paper_work *w, const uint64_t *owners, size_t count)
{
    struct papers *p = w->papers;
    struct removal m = {.change = {.work = w, .owners = owners, .count = count}};
    struct change g = {.work = w};
    int err = sql_tx(t, p->node->sql, mark_body, &m);
    if (err || w->final || m.count == 0)
        return err;
    g.owners = m.owners;
    g.count = m.count;
    err = paper_dies(t, w, "mark");
    if (!err)
        err = drop_leaving(t, &g);
    if (!err)
        err = paper_dies(t, w, "drop");
    if (!err)
        err = sql_tx(t, p->node->sql, remove_body, &g);
    if (err)
        return err;
    tell_overtaken(&g);
    if (!w->final)
        metric_add(p->dropped, (int64_t)g.count);
    return paper_dies(t, w, "remove");
}

int paper_remove(struct task *t, struct paper_work *w, const uint64_t *gone, size_t count)
{
    int err = 0;
    for (size_t at = 0; at < count && !err && !w->final; at += AT_ONCE) {
        struct task_scope scope = task_scope(t);
        err = remove_some(t, w, gone + at, count - at < AT_ONCE ? count - at : AT_ONCE);
        task_scope_end(t, scope);
    }
    return err;
}

/* --- words, and rows --- */

/* A row that its old unit is removing is not taken over. The version comes last: what is compared
 * before it is the row as it was. */
#define LEAVES_ELSEWHERE "(version = -1 AND (journal <> VALUES(journal) OR year <> VALUES(year)))"
#define KEEP(column)     column " = IF(" LEAVES_ELSEWHERE ", " column ", VALUES(" column "))"

static int insert_rows(struct task *t, struct sql *c, const struct change *g)
{
    const struct paper_unit *u = &g->work->unit;
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, 6 * g->count);
    for (size_t i = 0; i < g->count; i++) {
        const struct paper_doc *d = g->docs[i];
        const struct sql_value row[] = {sql_int((int64_t)d->owner), sql_text(d->doi),
                                        sql_text(u->journal),       sql_int(u->year),
                                        sql_int(d->digest),         sql_int(0)};
        memcpy(v + 6 * i, row, sizeof row);
    }
    return sql_bulk(
        t, c, "INSERT INTO embedding_paper (owner, doi, journal, year, version, space) VALUES",
        "ON DUPLICATE KEY UPDATE " KEEP("space") ", " KEEP("journal") ", " KEEP("year") ", " KEEP(
            "version"),
        6, g->count, v, NULL);
}

static int put_words(struct task *t, struct sql *c, const struct change *g)
{
    struct words_text *texts = ARENA_ARRAY(task_arena(t), struct words_text, g->count);
    for (size_t i = 0; i < g->count; i++) {
        const struct paper_doc *d = g->docs[i];
        texts[i] = (struct words_text){.owner = d->owner,
                                       .tags = g->work->tags,
                                       .title = d->title.p ? d->title : STR(""),
                                       .text = d->text.p ? d->text : STR("")};
    }
    return words_put(t, c, COLLECTION_PAPERS, texts, g->count);
}

static int words_body(struct task *t, struct sql *c, void *arg)
{
    struct change *g = arg;
    struct sql_rows r;
    int err = paper_work_check(t, c, g->work);
    if (err || g->work->final)
        return err;
    err = insert_rows(t, c, g);
    if (!err)
        err = sql_on_list(t, c, "SELECT 1 FROM embedding_paper WHERE version = -1 AND owner IN",
                          " LIMIT 1", NULL, 0, g->owners, g->count, &r);
    if (!err && r.count)
        return task_fail(t, ERR_UNAVAILABLE, "papers are just being removed from another year");
    return err ? err : put_words(t, c, g);
}

static int write_some(struct task *t, struct paper_work *w, struct paper_doc **list, size_t count)
{
    uint64_t *owners = ARENA_ARRAY(task_arena(t), uint64_t, count);
    struct change g = {.work = w, .owners = owners, .count = count, .docs = list};
    for (size_t i = 0; i < count; i++)
        owners[i] = list[i]->owner;
    int err = sql_tx(t, w->papers->node->sql, words_body, &g);
    if (err || w->final)
        return err;
    for (size_t i = 0; i < count; i++)
        list[i]->known = true;
    metric_add(w->papers->worded, (int64_t)count);
    return paper_dies(t, w, "words");
}

int paper_write_words(struct task *t, struct paper_work *w)
{
    struct paper_doc *list[AT_ONCE];
    int err = 0;
    for (size_t i = 0, n = 0; i < w->count && !err && !w->final; i++) {
        if (!w->docs[i].known)
            list[n++] = &w->docs[i];
        if (n == 0 || (n < AT_ONCE && i + 1 < w->count))
            continue;
        struct task_scope scope = task_scope(t);
        err = write_some(t, w, list, n);
        task_scope_end(t, scope);
        n = 0;
    }
    return err;
}

/* --- vectors --- */

/* Those whose rows are of what was embedded; the others (n of them) are behind them. */
static int sort_out(struct task *t, struct sql *c, const struct change *g, uint64_t *owners,
                    size_t *same)
{
    const struct paper_unit *u = &g->work->unit;
    struct sql_value first[] = {sql_text(u->journal), sql_int(u->year)};
    struct sql_rows r;
    size_t others = g->count;
    int err =
        sql_on_list(t, c,
                    "SELECT owner, version FROM embedding_paper WHERE journal = ? AND year = ?"
                    " AND owner IN",
                    "", first, 2, g->owners, g->count, &r);
    *same = 0;
    for (size_t i = 0; i < r.count && !err; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        const struct paper_doc *d = doc_of(g->work, (uint64_t)cell[0].i);
        if (d && d->digest == cell[1].i)
            owners[(*same)++] = d->owner;
    }
    for (size_t i = g->count; i-- > 0 && others > *same;) {
        bool is = false;
        for (size_t k = 0; k < *same && !is; k++)
            is = owners[k] == g->owners[i];
        if (!is)
            owners[--others] = g->owners[i];
    }
    return err;
}

static int space_body(struct task *t, struct sql *c, void *arg)
{
    struct change *g = arg;
    struct sql_value space = sql_int(g->space);
    uint64_t *owners = ARENA_ARRAY(task_arena(t), uint64_t, g->count);
    size_t same = 0;
    int err = check_overtaken(t, c, g);
    if (err || g->overtaken)
        return err;
    err = sort_out(t, c, g, owners, &same);
    if (!err && same)
        err = sql_on_list(t, c, "UPDATE embedding_paper SET space = ? WHERE owner IN", "", &space,
                          1, owners, same, NULL);
    g->overtaken = !err && same < g->count;
    return g->overtaken ? spoil(t, c, owners + same, g->count - same) : err;
}

int paper_write_space(struct task *t, struct paper_work *w, struct paper_doc *const *list,
                      size_t count, int64_t space)
{
    uint64_t *owners = ARENA_ARRAY(task_arena(t), uint64_t, count + 1);
    struct change g = {.work = w, .owners = owners, .count = count, .space = space};
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        owners[i] = list[i]->owner;
    int err = sql_tx(t, w->papers->node->sql, space_body, &g);
    if (!err)
        tell_overtaken(&g);
    return err;
}
