#include "tool/db/init_batch.h"

#include <stdlib.h>

struct init_batch *init_batch_new(void)
{
    struct init_batch *b = check_memory(calloc(1, sizeof *b));
    arena_init(&b->arena);
    b->papers = ARENA_ARRAY(&b->arena, struct init_paper, INIT_BATCH_PAPERS);
    return b;
}

void init_batch_free(struct init_batch *b)
{
    arena_release(&b->arena);
    free(b);
}

void init_batch_add_done(struct init_batch *b, const struct init_file *f, int64_t digest)
{
    b->done = init_room(&b->arena, b->done, b->done_count, sizeof *b->done);
    b->done[b->done_count++] = (struct init_done){f, true, digest};
}

void init_batch_add_begun(struct init_batch *b, const struct init_file *f)
{
    b->done = init_room(&b->arena, b->done, b->done_count, sizeof *b->done);
    b->done[b->done_count++] = (struct init_done){f, false, 0};
}

struct storing {
    struct init_batch *batch;
    const struct init_store *store;
    struct init_changes changes;
    struct map *regained; /* key of a file that is gone -> papers that had left with it */
    struct bibtex *reader;
};

/* --- ownership --- */

static bool comes_first(const struct paper *a, const struct paper *b)
{
    int c = str_compare(a->journal, b->journal);
    return c ? c < 0 : str_compare(a->file, b->file) < 0;
}

static bool same_place(const struct paper *a, const struct paper *b)
{
    return str_eq(a->journal, b->journal) && str_eq(a->file, b->file);
}

static enum init_outcome judge(struct task *t, const struct storing *s, struct init_paper *mine,
                               const struct paper *stored)
{
    mine->owner_journal = stored->journal;
    mine->owner_file = stored->file;
    if (same_place(&mine->paper, stored))
        return paper_digest(stored) == mine->digest ? INIT_UNCHANGED : INIT_UPDATED;
    struct str owner = init_file_key(task_arena(t), stored->journal, stored->file);
    const struct init_read *r = s->store->read;
    bool has_it =
        map_get(r->files, owner) && !init_read_lacks(r, task_arena(t), owner, stored->doi);
    return has_it && comes_first(stored, &mine->paper) ? INIT_DUPLICATE : INIT_UPDATED;
}

static bool same_block(const struct paper *a, const struct paper *b)
{
    return a->year == b->year && str_eq(a->journal, b->journal);
}

static struct init_fact fact_of(const struct init_paper *p)
{
    return (struct init_fact){p->paper.doi, p->paper.journal, p->paper.year, p->digest, p->bare};
}

/* What replacing one paper by the other changes. */
static void note_update(struct task *t, struct storing *s, const struct paper *stored,
                        const struct init_paper *mine)
{
    struct init_fact old = init_fact_of(task_arena(t), s->reader, stored), new = fact_of(mine);
    bool stays = same_block(stored, &mine->paper);
    (stays ? init_changes_text : init_changes_add)(t, &s->changes, &old, -1);
    (stays ? init_changes_text : init_changes_add)(t, &s->changes, &new, 1);
    s->changes.changed++;
    struct str owner = init_file_key(task_arena(t), stored->journal, stored->file);
    int64_t n = 0;
    if (!map_get(s->store->read->files, owner)) {
        (void)map_get_int(s->regained, owner, &n);
        map_set_int(s->regained, owner, n + 1);
    }
}

/* --- the steps of the transaction --- */

static int read_stored(struct task *t, struct sql *c, const struct init_batch *b,
                       struct sql_rows *out)
{
    struct arena *a = task_arena(t);
    struct sql_value *dois = ARENA_ARRAY(a, struct sql_value, INIT_BATCH_PAPERS);
    /* A fixed number of placeholders, so that the statement is prepared once. */
    for (size_t i = 0; i < INIT_BATCH_PAPERS; i++)
        dois[i] = sql_text(b->papers[i < b->count ? i : 0].paper.doi);
    static const char head[] = "SELECT DOI, Bib FROM paperinfo WHERE DOI IN (";
    char *query = arena_alloc(a, sizeof head + INIT_BATCH_PAPERS * 2 + sizeof " FOR UPDATE");
    char *at = query;
    memcpy(at, head, sizeof head - 1);
    at += sizeof head - 1;
    for (size_t i = 0; i < INIT_BATCH_PAPERS; i++, at += 2)
        memcpy(at, "?,", 2);
    memcpy(at - 1, ") FOR UPDATE", sizeof ") FOR UPDATE");
    return sql_on_argv(t, c, query, INIT_BATCH_PAPERS, dois, out);
}

/* The outcome in an empty database. Papers come in the order of their files, so the first one of a
 * DOI is its owner within the batch. */
static void judge_alone(struct init_paper *p, struct map *mine)
{
    const struct init_paper *first = map_get(mine, p->paper.doi);
    p->outcome = first ? INIT_DUPLICATE : INIT_STORED;
    if (first) {
        p->owner_journal = first->paper.journal;
        p->owner_file = first->paper.file;
    } else {
        map_set(mine, p->paper.doi, p);
    }
}

static int judge_all(struct task *t, struct sql *c, struct storing *s)
{
    struct sql_rows rows;
    struct init_batch *b = s->batch;
    int err = read_stored(t, c, b, &rows);
    if (err)
        return err;
    struct map *mine = map_new();
    for (size_t i = 0; i < b->count; i++)
        judge_alone(&b->papers[i], mine);
    for (size_t i = 0; i < rows.count && !err; i++) {
        const struct sql_value *row = sql_row(&rows, i);
        struct init_paper *p = map_get(mine, row[0].s);
        struct paper stored;
        err = paper_read_json(task_arena(t), row[0].s, row[1].s, &stored);
        if (err) {
            err = task_fail(t, err, "paperinfo: the row of %.*s was not written by millrace",
                            STR_ARG(row[0].s));
            break;
        }
        check(p);
        p->outcome = judge(t, s, p, &stored);
        if (p->outcome == INIT_UPDATED)
            note_update(t, s, &stored, p);
    }
    map_free(mine);
    return err;
}

static int write_papers(struct task *t, struct sql *c, struct storing *s)
{
    const struct init_batch *b = s->batch;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, b->count * 2);
    size_t n = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct init_paper *p = &b->papers[i];
        if (p->outcome != INIT_STORED && p->outcome != INIT_UPDATED)
            continue;
        cells[n * 2] = sql_text(p->paper.doi);
        cells[n * 2 + 1] = sql_text(p->json);
        n++;
        if (p->outcome == INIT_STORED) {
            struct init_fact fact = fact_of(p);
            init_changes_add(t, &s->changes, &fact, 1);
            s->changes.added++;
        }
    }
    return sql_bulk(t, c, "INSERT INTO paperinfo (DOI, Bib) VALUES",
                    "ON DUPLICATE KEY UPDATE Bib = VALUES(Bib)", 2, n, cells, NULL);
}

/* How many papers have left a file is not known until all of it has been compared (init_left.c);
 * but none can have if it is new. */
static int write_done(struct task *t, struct sql *c, const struct storing *s)
{
    const struct init_batch *b = s->batch;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, b->done_count * 6 + 1);
    for (size_t i = 0; i < b->done_count; i++) {
        const struct init_done *d = &b->done[i];
        const struct init_file *f = d->file;
        struct str key = init_file_key(task_arena(t), f->journal, f->name);
        bool none_left = d->whole && !map_get(s->store->read->known, key);
        const struct sql_value row[] = {
            sql_text(f->journal),   sql_text(f->name),  sql_int(d->whole ? f->bytes : INIT_BEGUN),
            sql_int(f->changed_ns), sql_int(d->digest), none_left ? sql_int(0) : sql_null()};
        memcpy(cells + i * 6, row, sizeof row);
    }
    return sql_bulk(
        t, c,
        "INSERT INTO corpus_file (journal, file, bytes, changed_ns, digest, left_papers)"
        " VALUES",
        "ON DUPLICATE KEY UPDATE left_papers = CASE WHEN digest = VALUES(digest)"
        " AND bytes = VALUES(bytes) THEN left_papers ELSE VALUES(left_papers) END,"
        " bytes = VALUES(bytes), changed_ns = VALUES(changed_ns),"
        " digest = VALUES(digest)",
        6, b->done_count, cells, NULL);
}

/* Papers of files that are gone were counted once, and some have come back in other files. */
static int write_regained(struct task *t, struct sql *c, const struct storing *s)
{
    size_t at = 0;
    struct str name;
    void *v;
    int err = 0;
    while (!err && map_next(s->regained, &at, &name, &v)) {
        int64_t n = 0;
        (void)map_get_int(s->regained, name, &n);
        struct str journal = str_cut(&name, '/');
        err = sql_on(t, c, NULL,
                     "UPDATE corpus_file SET left_papers = GREATEST(left_papers - ?, 0)"
                     " WHERE journal = ? AND file = ? AND bytes = ?",
                     sql_int(n), sql_text(journal), sql_text(name), sql_int(INIT_GONE));
    }
    return err;
}

/* Runs again after a deadlock, so it resets what it collects. */
static int store(struct task *t, struct sql *c, void *arg)
{
    struct storing *s = arg;
    init_changes_release(&s->changes);
    init_changes_init(&s->changes);
    map_free(s->regained);
    s->regained = map_new();
    int err = init_load_check(t, c, s->store->load);
    if (!err && s->batch->count)
        err = judge_all(t, c, s);
    if (!err)
        err = write_papers(t, c, s);
    if (!err)
        err = init_changes_write(t, c, &s->changes, s->store->load);
    if (!err)
        err = write_regained(t, c, s);
    return err ? err : write_done(t, c, s);
}

int init_batch_store(struct task *t, struct sql_pool *sql, struct init_batch *b,
                     const struct init_store *o)
{
    struct storing s = {
        .batch = b, .store = o, .regained = map_new(), .reader = bibtex_new(NULL, NULL)};
    init_changes_init(&s.changes);
    int err = sql_tx(t, sql, store, &s);
    if (!err)
        init_changes_name(&s.changes, o->blocks_changed);
    init_changes_release(&s.changes);
    map_free(s.regained);
    bibtex_free(s.reader);
    return err;
}
