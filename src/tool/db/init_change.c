#include "tool/db/init_change.h"

#define MARKS_16         "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"
#define JOURNALS_AT_ONCE 16

void init_changes_init(struct init_changes *c)
{
    *c = (struct init_changes){.blocks = map_new()};
}

void init_changes_release(struct init_changes *c)
{
    map_free(c->blocks);
    c->blocks = NULL;
}

struct init_fact init_fact_of(struct arena *a, struct bibtex *reader, const struct paper *stored)
{
    return (struct init_fact){stored->doi, stored->journal, stored->year, paper_digest(stored),
                              init_is_bare(a, reader, stored)};
}

static struct init_change *block_of(struct task *t, struct init_changes *c,
                                    const struct init_fact *p)
{
    struct arena *a = task_arena(t);
    struct str name = str_printf(a, "%.*s/%lld", STR_ARG(p->journal), (long long)p->year);
    struct init_change *b = map_get(c->blocks, name);
    if (!b) {
        b = ARENA_NEW(a, struct init_change);
        b->journal = p->journal;
        b->year = p->year;
        map_set(c->blocks, name, b);
    }
    return b;
}

static struct init_change *count(struct task *t, struct init_changes *c, const struct init_fact *p,
                                 int64_t net)
{
    struct init_change *b = block_of(t, c, p);
    b->papers += net;
    b->digest ^= p->digest;
    b->bare += p->bare ? net : 0;
    return b;
}

void init_changes_text(struct task *t, struct init_changes *c, const struct init_fact *p,
                       int64_t net)
{
    (void)count(t, c, p, net);
}

void init_changes_add(struct task *t, struct init_changes *c, const struct init_fact *p,
                      int64_t net)
{
    struct init_change *b = count(t, c, p, net);
    b->members = true;
    c->moves = init_room(task_arena(t), c->moves, c->move_count, sizeof *c->moves);
    c->moves[c->move_count++] = (struct init_move){b, p->doi, net};
}

/* False: the same papers, now in another file. */
static bool is_changed(const struct init_change *b)
{
    return b->papers || b->digest || b->members;
}

void init_changes_name(const struct init_changes *c, struct map *names)
{
    size_t at = 0;
    struct str name;
    void *v;
    while (map_next(c->blocks, &at, &name, &v))
        if (is_changed(v))
            map_add(names, name);
}

/* --- blocks --- */

/* The same changes as those of corpus_block: a row that was of the block as it is stays so, and one
 * of a block that was never counted does not become one. */
static int write_bare(struct task *t, struct sql *c, const struct init_changes *x)
{
    struct sql_value *cells =
        ARENA_ARRAY(task_arena(t), struct sql_value, map_count(x->blocks) * 5 + 1);
    size_t n = 0, at = 0;
    bool shrunk = false;
    struct str name;
    void *v;
    while (map_next(x->blocks, &at, &name, &v)) {
        const struct init_change *b = v;
        if (!is_changed(b))
            continue;
        shrunk = shrunk || b->papers < 0;
        const struct sql_value row[] = {sql_text(b->journal), sql_int(b->year), sql_int(b->papers),
                                        sql_int(b->digest), sql_int(b->bare)};
        memcpy(cells + n++ * 5, row, sizeof row);
    }
    int err = sql_bulk(t, c, "INSERT INTO corpus_bare (journal, year, papers, digest, bare) VALUES",
                       "ON DUPLICATE KEY UPDATE papers = papers + VALUES(papers),"
                       " digest = digest ^ VALUES(digest), bare = bare + VALUES(bare)",
                       5, n, cells, NULL);
    return err || !shrunk ? err : sql_on(t, c, NULL, "DELETE FROM corpus_bare WHERE papers = 0");
}

/* A block that has lost its last paper keeps its row: see schema/0014_loads.sql. */
static int write_blocks(struct task *t, struct sql *c, const struct init_changes *x, int64_t load)
{
    struct sql_value *cells =
        ARENA_ARRAY(task_arena(t), struct sql_value, map_count(x->blocks) * 6 + 1);
    size_t n = 0, at = 0;
    struct str name;
    void *v;
    while (map_next(x->blocks, &at, &name, &v)) {
        const struct init_change *b = v;
        if (!is_changed(b))
            continue;
        const struct sql_value row[] = {sql_text(b->journal),
                                        sql_int(b->year),
                                        sql_int(b->papers),
                                        sql_int(b->digest),
                                        sql_int(b->members ? load : 0),
                                        sql_int(load)};
        memcpy(cells + n++ * 6, row, sizeof row);
    }
    return sql_bulk(t, c,
                    "INSERT INTO corpus_block (journal, year, papers, digest, load_no, since)"
                    " VALUES",
                    "ON DUPLICATE KEY UPDATE papers = papers + VALUES(papers),"
                    " digest = digest ^ VALUES(digest),"
                    " load_no = GREATEST(load_no, VALUES(load_no))",
                    6, n, cells, NULL);
}

/* --- papers --- */

/* Takes up to JOURNALS_AT_ONCE journals out of left, and adds to old the names of their blocks that
 * are older than this load. */
static int find_old(struct task *t, struct sql *c, struct map *left, int64_t load, struct map *old)
{
    struct sql_value argv[JOURNALS_AT_ONCE + 1];
    struct str journals[JOURNALS_AT_ONCE];
    struct sql_rows r;
    size_t n = 0, at = 0;
    void *v;
    for (struct str name; n < JOURNALS_AT_ONCE && map_next(left, &at, &name, &v); n++)
        journals[n] = str_dup(task_arena(t), name);
    argv[0] = sql_int(load);
    for (size_t i = 0; i < JOURNALS_AT_ONCE; i++)
        argv[i + 1] = i < n ? sql_text(journals[i]) : sql_null(); /* which equals nothing */
    _Static_assert(JOURNALS_AT_ONCE == 16, "as many marks as journals");
    int err = sql_on_argv(t, c,
                          "SELECT journal, year FROM corpus_block WHERE since < ?"
                          " AND journal IN (" MARKS_16 ")",
                          JOURNALS_AT_ONCE + 1, argv, &r);
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        map_add(old,
                str_printf(task_arena(t), "%.*s/%lld", STR_ARG(row[0].s), (long long)row[1].i));
    }
    for (size_t i = 0; i < n; i++)
        map_del(left, journals[i]);
    return err;
}

static int find_old_blocks(struct task *t, struct sql *c, const struct init_changes *x,
                           int64_t load, struct map *old)
{
    struct map *journals = map_new();
    int err = 0;
    for (size_t i = 0; i < x->move_count; i++)
        map_add(journals, x->moves[i].block->journal);
    while (!err && map_count(journals) > 0)
        err = find_old(t, c, journals, load, old);
    map_free(journals);
    return err;
}

/* The first change of a paper in a load stays the first: a block may be read half way. */
static int write_moves(struct task *t, struct sql *c, const struct init_changes *x, int64_t load,
                       const struct map *old)
{
    struct arena *a = task_arena(t);
    struct sql_value *cells = ARENA_ARRAY(a, struct sql_value, x->move_count * 6 + 1);
    size_t n = 0;
    for (size_t i = 0; i < x->move_count; i++) {
        const struct init_move *m = &x->moves[i];
        struct str journal = m->block->journal;
        if (!map_get(old, str_printf(a, "%.*s/%lld", STR_ARG(journal), (long long)m->block->year)))
            continue;
        const struct sql_value row[] = {sql_text(journal),
                                        sql_int(m->block->year),
                                        sql_int(load),
                                        sql_text(m->doi),
                                        sql_text(m->net > 0 ? STR("added") : STR("withdrawn")),
                                        sql_int(m->net)};
        memcpy(cells + n++ * 6, row, sizeof row);
    }
    return sql_bulk(t, c,
                    "INSERT INTO corpus_change (journal, year, load_no, doi, kind, net) VALUES",
                    "ON DUPLICATE KEY UPDATE net = net + VALUES(net)", 6, n, cells, NULL);
}

int init_changes_write(struct task *t, struct sql *c, const struct init_changes *x, int64_t load)
{
    struct map *old = map_new();
    int err = write_bare(t, c, x);
    if (!err)
        err = write_blocks(t, c, x, load);
    if (!err)
        err = find_old_blocks(t, c, x, load, old);
    if (!err && map_count(old))
        err = write_moves(t, c, x, load, old);
    map_free(old);
    if (!err && (x->added || x->changed || x->withdrawn))
        err = sql_on(t, c, NULL,
                     "UPDATE corpus_load SET added = added + ?, changed = changed + ?,"
                     " withdrawn = withdrawn + ? WHERE load_no = ?",
                     sql_int(x->added), sql_int(x->changed), sql_int(x->withdrawn), sql_int(load));
    return err;
}
