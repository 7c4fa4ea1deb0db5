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
    b->done[b->done_count++] = (struct init_done){f, digest};
}

struct str init_file_key(struct arena *a, struct str journal, struct str name)
{
    return str_printf(a, "%.*s/%.*s", STR_ARG(journal), STR_ARG(name)); /* no name has a '/' */
}

/* How the numbers of a block change. */
struct change {
    struct str journal;
    int64_t year, papers, digest, bare;
};

struct storing {
    struct init_batch *batch;
    const struct map *files;
    struct map *changes; /* block -> struct change */
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
    if (map_get(s->files, owner) && comes_first(stored, &mine->paper))
        return INIT_DUPLICATE;
    return INIT_UPDATED;
}

static void note_change(struct task *t, struct storing *s, const struct paper *p, int64_t papers,
                        int64_t digest, int64_t bare)
{
    struct arena *a = task_arena(t);
    struct str name = str_printf(a, "%.*s/%lld", STR_ARG(p->journal), (long long)p->year);
    struct change *c = map_get(s->changes, name);
    if (!c) {
        c = ARENA_NEW(a, struct change);
        c->journal = p->journal;
        c->year = p->year;
        map_set(s->changes, name, c);
    }
    c->papers += papers;
    c->digest ^= digest;
    c->bare += bare;
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
            note_change(t, s, &stored, -1, paper_digest(&stored),
                        -(int64_t)init_is_bare(task_arena(t), s->reader, &stored));
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
        note_change(t, s, &p->paper, 1, p->digest, p->bare);
    }
    return sql_bulk(t, c, "INSERT INTO paperinfo (DOI, Bib) VALUES",
                    "ON DUPLICATE KEY UPDATE Bib = VALUES(Bib)", 2, n, cells, NULL);
}

static int write_changes(struct task *t, struct sql *c, struct storing *s)
{
    size_t n = 0, at = 0;
    struct str name;
    void *v;
    bool shrunk = false;
    size_t most = map_count(s->changes) + 1;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, most * 4);
    struct sql_value *bare = ARENA_ARRAY(task_arena(t), struct sql_value, most * 5);
    while (map_next(s->changes, &at, &name, &v)) {
        const struct change *d = v;
        if (!d->papers && !d->digest)
            continue; /* the same papers, now in another file */
        shrunk = shrunk || d->papers < 0;
        const struct sql_value row[] = {sql_text(d->journal), sql_int(d->year), sql_int(d->papers),
                                        sql_int(d->digest)};
        memcpy(bare + n * 5, row, sizeof row);
        bare[n * 5 + 4] = sql_int(d->bare);
        memcpy(cells + n++ * 4, row, sizeof row);
    }
    /* The same changes as below: a row that was of the block as it is stays so, and one of a block
     * that was never counted does not become one. */
    int err = sql_bulk(t, c, "INSERT INTO corpus_bare (journal, year, papers, digest, bare) VALUES",
                       "ON DUPLICATE KEY UPDATE papers = papers + VALUES(papers),"
                       " digest = digest ^ VALUES(digest), bare = bare + VALUES(bare)",
                       5, n, bare, NULL);
    if (!err && shrunk)
        err = sql_on(t, c, NULL, "DELETE FROM corpus_bare WHERE papers = 0");
    if (!err)
        err = sql_bulk(t, c, "INSERT INTO corpus_block (journal, year, papers, digest) VALUES",
                       "ON DUPLICATE KEY UPDATE papers = papers + VALUES(papers),"
                       " digest = digest ^ VALUES(digest)",
                       4, n, cells, NULL);
    return err || !shrunk ? err : sql_on(t, c, NULL, "DELETE FROM corpus_block WHERE papers = 0");
}

static int write_done(struct task *t, struct sql *c, const struct init_batch *b)
{
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, b->done_count * 5 + 1);
    for (size_t i = 0; i < b->done_count; i++) {
        const struct init_file *f = b->done[i].file;
        const struct sql_value row[] = {sql_text(f->journal), sql_text(f->name), sql_int(f->bytes),
                                        sql_int(f->changed_ns), sql_int(b->done[i].digest)};
        memcpy(cells + i * 5, row, sizeof row);
    }
    return sql_bulk(t, c,
                    "INSERT INTO corpus_file (journal, file, bytes, changed_ns, digest) VALUES",
                    "ON DUPLICATE KEY UPDATE bytes = VALUES(bytes),"
                    " changed_ns = VALUES(changed_ns), digest = VALUES(digest)",
                    5, b->done_count, cells, NULL);
}

/* Runs again after a deadlock, so it resets what it collects. */
static int store(struct task *t, struct sql *c, void *arg)
{
    struct storing *s = arg;
    map_free(s->changes);
    s->changes = map_new();
    int err = s->batch->count ? judge_all(t, c, s) : 0;
    if (!err)
        err = write_papers(t, c, s);
    if (!err)
        err = write_changes(t, c, s);
    return err ? err : write_done(t, c, s->batch);
}

int init_batch_store(struct task *t, struct sql_pool *sql, struct init_batch *b,
                     const struct map *files, struct map *blocks_changed)
{
    struct storing s = {
        .batch = b, .files = files, .changes = map_new(), .reader = bibtex_new(NULL, NULL)};
    int err = sql_tx(t, sql, store, &s);
    size_t at = 0;
    struct str name;
    void *v;
    while (!err && map_next(s.changes, &at, &name, &v)) {
        const struct change *d = v;
        if (d->papers || d->digest)
            map_add(blocks_changed, name);
    }
    map_free(s.changes);
    bibtex_free(s.reader);
    return err;
}
