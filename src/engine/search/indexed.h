/* indexed.h -- which paper an owner's number stands for.
 *
 * Reads the table embedding_paper, which the application that indexes papers writes
 * (app/embed/paper/paper.h). Whether a paper is in the corpus now, the corpus says. */
#ifndef ENGINE_SEARCH_INDEXED_H
#define ENGINE_SEARCH_INDEXED_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct sql_pool;
struct task;

struct indexed_paper {
    uint64_t owner;
    struct str doi, journal;
    int64_t year;
};

/* The papers of these owners that are indexed, in the order of owners: *found of them, in papers,
 * which has room for count; texts in the task's arena. Owners that are not known are left out; any
 * number may be asked for. Errors are those of MySQL. */
MUST_CHECK int indexed_find(struct task *t, struct sql_pool *sql, const uint64_t *owners,
                            size_t count, struct indexed_paper *papers, size_t *found);
#endif
