/* init_batch.h -- up to INIT_BATCH_PAPERS papers that are stored in one transaction.
 *
 * When several files hold a DOI, the owner does not depend on the order of loading: it is the first
 * by journal, then file, of those in the folder now. Files are read in that order, so a file that
 * has lost the paper and was read by this load is known to lack it. */
#ifndef TOOL_DB_INIT_BATCH_H
#define TOOL_DB_INIT_BATCH_H

#include "tool/db/init_change.h"
#include "tool/db/init_read.h"

#define INIT_BATCH_PAPERS 2000
#define INIT_BATCH_BYTES  (8 << 20) /* of entries; one may be larger */

enum init_outcome { INIT_STORED, INIT_UPDATED, INIT_UNCHANGED, INIT_DUPLICATE };

struct init_paper {
    struct paper paper; /* all of it in the batch's arena */
    struct str json;
    int64_t digest;
    bool bare; /* it has no abstract */
    const struct init_file *file;
    int64_t line;
    struct init_counts *counts; /* of its journal */
    /* Set when the batch is stored: */
    enum init_outcome outcome;
    struct str owner_journal,
        owner_file; /* INIT_DUPLICATE, INIT_UPDATED; in the arena of the task */
};

struct init_done { /* a file with papers in this batch or an earlier one */
    const struct init_file *file;
    bool whole; /* its last one is among them */
    int64_t digest;
};

struct init_batch {
    struct arena arena;
    struct init_paper *papers;
    size_t count, bytes;
    struct init_done *done;
    size_t done_count;
};

struct init_batch *init_batch_new(void);
void init_batch_free(struct init_batch *b);
void init_batch_add_done(struct init_batch *b, const struct init_file *f, int64_t digest);
/* Papers of f that are stored belong to a file that later loads know, whatever becomes of it. */
void init_batch_add_begun(struct init_batch *b, const struct init_file *f);

/* What is the same for all batches of a load. */
struct init_store {
    int64_t load;
    const struct init_read *read;
    struct map *blocks_changed; /* their names are added */
};

/* Stores new and changed papers, updates the numbers of their blocks, and marks files as done or
 * begun. Sets every outcome. */
MUST_CHECK int init_batch_store(struct task *t, struct sql_pool *sql, struct init_batch *b,
                                const struct init_store *o);
#endif
