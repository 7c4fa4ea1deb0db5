/* catalog_private.h -- reading the catalog from MySQL, and what it shares with reading from Redis.
 *
 * A year is four digits. Other names among the years, and numbers below zero, are ignored in both
 * stores. */
#ifndef ENGINE_PAPERS_CATALOG_PRIVATE_H
#define ENGINE_PAPERS_CATALOG_PRIVATE_H

#include "engine/papers/catalog.h"

/* The last load that ended, in any statement: it changes in one step with the numbers of years. */
#define CATALOG_LOAD                                                                               \
    "(SELECT COALESCE(MAX(load_no), 0) FROM corpus_load WHERE ended_at IS NOT NULL)"

#define CATALOG_YEAR_MIN 1000
#define CATALOG_YEAR_MAX 9999

/* Tags and journals come in any order. On an error the outputs are unchanged. */
MUST_CHECK int catalog_mysql_tags(struct task *t, struct sql_pool *sql, struct catalog_tag **out,
                                  size_t *count);
MUST_CHECK int catalog_mysql_journals(struct task *t, struct sql_pool *sql, const struct str *tags,
                                      size_t tag_count, bool any, struct catalog_journal **out,
                                      size_t *count);
MUST_CHECK int catalog_mysql_price(struct task *t, struct sql_pool *sql,
                                   const struct catalog_choice *choice,
                                   struct catalog_estimate *out, struct str *unknown);

bool catalog_is_year(struct str name, int64_t *year);
/* Inserts in order into j->years, which has room. */
void catalog_add_year(struct catalog_journal *j, int64_t year, int64_t papers);
/* Adds papers to a sum. ERR_LIMIT. */
MUST_CHECK int catalog_add_papers(struct task *t, int64_t *sum, int64_t papers);
#endif
