/* neighbours.h -- the papers that are nearest to a text, and what judging them would cost (EMB-5).
 *
 * How the list is made:
 *
 *   1. the points nearest to the text are found, some more than papers are wanted, for a long paper
 *      has several;
 *   2. each paper counts once, where its best point is;
 *   3. papers that are not in the corpus now are left out; journal and year are those that the
 *      corpus has now, and are compared with the choice once more: tags of points may be older;
 *   4. papers of journals that the catalog does not have are left out, for they have no price;
 *   5. the rest is cut. If it is too short, and there are more points, all of it is done again with
 *      more of them.
 *
 * Two lists for one text differ if the index or the corpus has changed in between: a run keeps the
 * one that it was submitted with (engine/chosen/frozen.h). */
#ifndef ENGINE_SEARCH_NEIGHBOURS_H
#define ENGINE_SEARCH_NEIGHBOURS_H

#include "engine/papers/catalog.h"
#include "engine/search/collection.h"
#include "engine/search/indexed.h"

#define NEIGHBOURS_MAX        20000
#define NEIGHBOURS_MINUTE_MAX 60 /* lists of a user in a minute, on each node */

struct neighbours_from { /* all borrowed */
    struct collections *collections;
    struct sql_pool *sql;
    const struct catalog *catalog;
};

struct neighbours_wish {
    int64_t uid; /* whose list it is */
    struct str text;
    int64_t papers;               /* at most: 1 … NEIGHBOURS_MAX */
    struct catalog_choice choice; /* journal_count 0: of all journals */
};

struct neighbours {
    struct indexed_paper *papers; /* the nearest first, in the task's arena */
    size_t count;
    /* Its rows are those of the journals that papers are of, by name; bare is not counted. */
    struct catalog_estimate cost;
    size_t journal_count;
    const char *reason; /* COLLECTION_REASONS: papers may be missing; NULL: none is */
    bool degraded;      /* prices are from MySQL, because Redis did not answer */
};
/* Two of a node at a time; others wait. What stands in the way of the search is no error but a
 * reason, with the papers that there are. ERR_NOT_FOUND with *unknown: no such journal.
 * ERR_INVALID: the text is too long. ERR_LIMIT: the cost cannot be counted. ERR_RATE: the user has
 * had NEIGHBOURS_MINUTE_MAX. ERR_BUSY: too many wait. Others are those of the stores. */
MUST_CHECK int neighbours_find(struct task *t, const struct neighbours_from *from,
                               const struct neighbours_wish *w, struct neighbours *out,
                               struct str *unknown);
#endif
