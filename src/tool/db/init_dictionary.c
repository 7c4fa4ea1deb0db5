/* Step 3, the end: a dictionary to compress papers with, trained on the papers loaded now. */
#include <stdio.h>
#include <stdlib.h>

#include "corpus/pack.h"
#include "tool/db/init.h"

#define PAPERS_MIN    500        /* fewer are too few to train on */
#define GROWTH        4          /* trained again with this many times more papers */
#define SAMPLES       10000      /* papers to train on */
#define SAMPLE_MAX    (16 << 10) /* bytes of one: a few long ones must not dominate */
#define SAMPLES_BYTES (16 << 20)

struct samples {
    struct buf text;
    size_t sizes[SAMPLES];
    unsigned count;
};

static int is_due(struct task *t, struct sql_pool *sql, int64_t *papers, bool *due)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT CAST(COALESCE((SELECT SUM(papers) FROM corpus_block), 0) AS SIGNED),"
                       " (SELECT papers FROM zstd_dictionary ORDER BY sequence DESC LIMIT 1)");
    if (err)
        return err;
    const struct sql_value *row = sql_row(&r, 0);
    *papers = row[0].i;
    *due = *papers >= PAPERS_MIN && (row[1].type == SQL_NULL || *papers >= GROWTH * row[1].i);
    return 0;
}

static void add_sample(struct arena *a, struct samples *s, struct str doi, struct str json)
{
    struct paper p;
    if (s->count == SAMPLES || s->text.len >= SAMPLES_BYTES || paper_read_json(a, doi, json, &p))
        return;
    struct str text = paper_bibtex(a, &p);
    size_t n = text.n < SAMPLE_MAX ? text.n : SAMPLE_MAX;
    buf_add(&s->text, text.p, n);
    s->sizes[s->count++] = n;
}

/* The same number of papers of every block, so that no journal is left out; with more blocks than
 * samples, of every n-th block. Deterministic. */
static int gather(struct task *t, struct sql_pool *sql, struct samples *s)
{
    struct sql_rows blocks, r;
    int err = sql_call(t, sql, &blocks,
                       "SELECT journal, year FROM corpus_block WHERE papers > 0"
                       " ORDER BY journal, year");
    if (err)
        return err;
    size_t step = blocks.count / SAMPLES + 1;
    int64_t each = (int64_t)(SAMPLES / (blocks.count / step + 1)) + 1;
    for (size_t i = 0; i < blocks.count && !err; i += step) {
        const struct sql_value *block = sql_row(&blocks, i);
        struct task_scope scope = task_scope(t);
        err = sql_call(t, sql, &r,
                       "SELECT DOI, Bib FROM paperinfo WHERE journal = ? AND year = ?"
                       " ORDER BY DOI LIMIT ?",
                       block[0], block[1], sql_int(each));
        for (size_t j = 0; !err && j < r.count; j++)
            add_sample(task_arena(t), s, sql_row(&r, j)[0].s, sql_row(&r, j)[1].s);
        task_scope_end(t, scope);
    }
    return err;
}

static int save(struct task *t, struct sql_pool *sql, struct str dictionary, int64_t papers)
{
    return sql_call(t, sql, NULL,
                    "INSERT INTO zstd_dictionary (id, sequence, papers, dictionary)"
                    " SELECT ?, COALESCE(MAX(sequence), 0) + 1, ?, ? FROM zstd_dictionary",
                    sql_int(pack_number(dictionary)), sql_int(papers), sql_blob(dictionary));
}

static int train(struct task *t, struct init *in, int64_t papers)
{
    struct samples *s = check_memory(calloc(1, sizeof *s));
    struct str dictionary;
    buf_init(&s->text);
    int err = gather(t, in->db->sql, s);
    bool worth =
        !err && !pack_train(task_arena(t), buf_str(&s->text), s->sizes, s->count, &dictionary);
    buf_release(&s->text);
    free(s);
    if (err || !worth) /* papers too similar for a dictionary */
        return err;
    err = save(t, in->db->sql, dictionary, papers);
    if (err == ERR_EXISTS) /* trained before, on the same papers */
        return 0;
    if (!err)
        in->report->totals.dictionary = pack_number(dictionary);
    return err;
}

int init_dictionary(struct task *t, struct init *in)
{
    int64_t papers;
    bool due;
    int err = is_due(t, in->db->sql, &papers, &due);
    return err || !due ? err : train(t, in, papers);
}
