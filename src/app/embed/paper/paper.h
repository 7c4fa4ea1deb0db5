/* paper.h -- papers as points: which are indexed, and what an owner's number stands for.
 *
 * Owns the tables embedding_unit and embedding_paper. The owner of a paper's points and words is a
 * hash of its DOI (collection_paper_owner); embedding_paper has the DOI of each owner that is
 * indexed, its journal and year, and the digest of what was indexed. */
#ifndef APP_EMBED_PAPER_PAPER_H
#define APP_EMBED_PAPER_PAPER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct node;
struct task;

struct paper_row {
    uint64_t owner;
    struct str doi, journal;
    struct str title, text; /* plain text: title and abstract; p == NULL: it has none */
    int64_t year;
};
#define PAPER_ROWS_MAX 1000 /* in one question */

/* The papers of these owners that are in the corpus, in the order of owners: *found of them, in
 * rows, which has room for count. Owners that are not known, or whose paper has left, are left out.
 * Texts are in the task's arena. ERR_UNAVAILABLE, ERR_BUSY: a store does not answer. */
MUST_CHECK int paper_rows(struct task *t, const struct node *n, const uint64_t *owners,
                          size_t count, struct paper_row *rows, size_t *found);
#endif
