/* Step 3: counts the papers without an abstract of blocks whose row in corpus_bare is missing, or
 * of another version. init_batch.c keeps the rows up to date: this is for blocks that were loaded
 * before there were any. */
#include "tool/db/init.h"

#define AT_ONCE 1000 /* papers */

bool init_is_bare(struct arena *a, struct bibtex *reader, const struct paper *p)
{
    struct bibtex_entry e;
    size_t used;
    bibtex_reset(reader);
    return bibtex_next(reader, paper_bibtex(a, p), true, &e, &used) != BIBTEX_ENTRY ||
           e.abstract.n == 0;
}

static int count_page(struct task *t, struct sql_pool *sql, struct bibtex *reader,
                      const struct sql_value *block, struct buf *after, int64_t *bare, bool *more)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT DOI, Bib FROM paperinfo WHERE journal = ? AND year = ? AND DOI > ?"
                       " ORDER BY DOI LIMIT ?",
                       block[0], block[1], sql_text(buf_str(after)), sql_int(AT_ONCE));
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct paper p;
        err = paper_read_json(task_arena(t), row[0].s, row[1].s, &p);
        if (!err)
            *bare += init_is_bare(task_arena(t), reader, &p);
        if (i + 1 == r.count) {
            buf_clear(after);
            buf_add_str(after, row[0].s);
        }
    }
    *more = !err && r.count == AT_ONCE;
    return err;
}

static int count_block(struct task *t, struct sql_pool *sql, struct bibtex *reader,
                       const struct sql_value *block)
{
    struct buf after;
    int64_t bare = 0;
    int err = 0;
    buf_init(&after);
    for (bool more = true; !err && more;) {
        struct task_scope s = task_scope(t);
        err = count_page(t, sql, reader, block, &after, &bare, &more);
        task_scope_end(t, s);
    }
    buf_release(&after);
    if (err)
        return err;
    return sql_call(t, sql, NULL,
                    "REPLACE INTO corpus_bare (journal, year, papers, digest, bare)"
                    " VALUES (?, ?, ?, ?, ?)",
                    block[0], block[1], block[2], block[3], sql_int(bare));
}

int init_bare(struct task *t, struct init *in)
{
    struct sql_rows r;
    int err = sql_call(t, in->db->sql, &r,
                       "SELECT b.journal, b.year, b.papers, b.digest FROM corpus_block b"
                       " LEFT JOIN corpus_bare n ON n.journal = b.journal AND n.year = b.year"
                       " AND n.papers = b.papers AND n.digest = b.digest"
                       " WHERE b.papers > 0 AND n.bare IS NULL ORDER BY b.journal, b.year");
    struct bibtex *reader = bibtex_new(NULL, NULL);
    for (size_t i = 0; !err && i < r.count; i++)
        err = count_block(t, in->db->sql, reader, sql_row(&r, i));
    bibtex_free(reader);
    return err;
}
