/* catalog.h -- what there is to choose from: tags, journals, prices, papers per year.
 *
 * Owns sys:tags:info, sys:tag_journals:*, sys:journals:* and contentlist_year_number:*. They have
 * no TTL. Loading replaces all of them in one step, so that a reader sees the old catalog or the
 * new one, and drops keys of tags and journals that are gone. */
#ifndef ENGINE_CATALOG_H
#define ENGINE_CATALOG_H

#include "wire/redis.h"
#include "wire/sql.h"

struct catalog_size {
    int64_t tags, journals, pairs, years; /* pairs: journals with tags */
};

/* MySQL to Redis. One at a time over all nodes: who comes second waits and does it again, because
 * the tables may have changed since the first one read them. */
MUST_CHECK int catalog_load(struct task *t, struct redis *r, struct sql_pool *sql,
                            struct catalog_size *out);
#endif
