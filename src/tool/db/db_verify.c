/* db warm --verify: every paper in Redis, unpacked, against what MySQL says of its block. */
#include <stdio.h>

#include "corpus/paper.h"
#include "tool/db/db_verify.h"

struct verifying {
    struct blocks *blocks;
    struct bibtex *reader;
    struct verify_result *result;
};

/* The digest of one paper as Redis has it. */
static int digest_of(struct task *t, struct verifying *v, const struct block_name *n,
                     const struct block_paper *p, int64_t *digest)
{
    struct str text;
    struct paper paper = {.doi = p->doi, .journal = n->journal, .year = n->year};
    struct task_scope s = task_scope(t);
    int err = block_unpack(t, v->blocks, task_arena(t), p->packed, &text);
    if (!err)
        err = paper_split_bibtex(task_arena(t), v->reader, text, &paper.strings, &paper.bib);
    if (!err)
        *digest = paper_digest(&paper);
    task_scope_end(t, s);
    return err;
}

static int verify_block(struct task *t, struct verifying *v, const struct block_name *n)
{
    struct block block;
    int err = block_fetch(t, v->blocks, n->journal, n->year, &block);
    int64_t all = 0;
    for (size_t i = 0; !err && i < block.count; i++) {
        int64_t one;
        int bad = digest_of(t, v, n, &block.papers[i], &one);
        if (bad == ERR_PROTO || bad == ERR_NOT_FOUND) /* damaged; counted below */
            one = 0;
        else
            err = bad;
        all ^= one;
    }
    if (err)
        return err;
    v->result->papers += (int64_t)block.count;
    if (all == n->version.digest && (int64_t)block.count == n->version.papers)
        return 0;
    v->result->bad_blocks++;
    fprintf(stderr, "millrace db warm: %.*s %lld is not in Redis as it is in MySQL\n",
            STR_ARG(n->journal), (long long)n->year);
    return 0;
}

int db_verify(struct task *t, struct sql_pool *sql, struct blocks *blocks,
              struct verify_result *out)
{
    struct verifying v = {.blocks = blocks, .reader = bibtex_new(NULL, NULL), .result = out};
    struct sql_rows r;
    *out = (struct verify_result){0};
    int err = sql_call(t, sql, &r,
                       "SELECT journal, year, papers, digest FROM corpus_block WHERE papers > 0"
                       " ORDER BY journal, year");
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct block_name n = {row[0].s, row[1].i, {row[2].i, row[3].i}};
        struct task_scope s = task_scope(t);
        err = verify_block(t, &v, &n);
        task_scope_end(t, s);
    }
    bibtex_free(v.reader);
    return err;
}
