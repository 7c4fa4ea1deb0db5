/* catalog.h -- what there is to choose from: tags, journals, prices, papers per year.
 *
 * Owns sys:tags:info, sys:tag_journals:*, sys:journals:*, sys:catalog and
 * contentlist_year_number:*. They have no TTL. Loading replaces all of them in one step, so that a
 * reader sees the old catalog or the new one, and drops keys of tags and journals that are gone. */
#ifndef ENGINE_PAPERS_CATALOG_H
#define ENGINE_PAPERS_CATALOG_H

#include "engine/store/cache.h"
#include "wire/redis.h"
#include "wire/sql.h"

struct catalog_size {
    int64_t tags, journals, pairs, years; /* pairs: journals with tags */
};

/* MySQL to Redis. One load runs at a time over all nodes; a second one waits and then loads again,
 * because the tables may have changed since the first one read them. */
MUST_CHECK int catalog_load(struct task *t, struct redis *r, struct sql_pool *sql,
                            struct catalog_size *out);

/* --- reading: from Redis; from MySQL while Redis has no catalog or does not answer ---
 *
 * Both give the same answers, but for papers without an abstract: those are counted in Redis only.
 * *degraded: from MySQL, because Redis did not answer. If a load ends
 * between two commands, a journal that only one of the two catalogs has is left out. */

struct catalog {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct cache *cache; /* tells whether Redis can be trusted; NULL: whenever it answers */
};

#define CATALOG_TAGS_MAX     64   /* in one question */
#define CATALOG_JOURNALS_MAX 5000 /* chosen at once */

struct catalog_tag {
    struct str tag, type;
    int64_t journals;
};
/* All of them, by type and then tag. In the task's arena, as everything below. */
MUST_CHECK int catalog_tags(struct task *t, const struct catalog *c, struct catalog_tag **out,
                            size_t *count, bool *degraded);

struct catalog_year {
    int64_t year, papers;
};
struct catalog_journal {
    struct str name, full_name, data_range, update_date; /* the last three may have p == NULL */
    int64_t price;                                       /* points for each paper */
    size_t year_count;
    struct catalog_year *years; /* in order */
};
/* Journals that have all of the tags, or any of them; without tags, all journals. By name. A tag
 * that does not exist has no journals. */
MUST_CHECK int catalog_journals(struct task *t, const struct catalog *c, const struct str *tags,
                                size_t tag_count, bool any, struct catalog_journal **out,
                                size_t *count, bool *degraded);

struct catalog_choice {
    const struct str *journals;
    size_t journal_count;       /* at least 1 */
    int64_t year_from, year_to; /* in order, of four digits */
};
struct catalog_estimate_row {
    struct str journal;
    int64_t papers, price, cents;
    int64_t bare; /* papers without an abstract; -1: not counted */
};
struct catalog_estimate {
    int64_t papers, cents;
    int64_t bare;                      /* likewise, of all */
    int64_t load;                      /* the papers are those at the end of this load; 0: before
                                        * loads were numbered (schema/0014_loads.sql) */
    struct catalog_estimate_row *rows; /* one for each journal, in the order of the choice */
};
/* What the chosen papers cost: one round trip for any number of journals. ERR_NOT_FOUND with
 * *unknown: a journal that does not exist. ERR_LIMIT: the sum is too large for an int64_t. */
MUST_CHECK int catalog_price(struct task *t, const struct catalog *c,
                             const struct catalog_choice *choice, struct catalog_estimate *out,
                             struct str *unknown, bool *degraded);
/* Works out the cents of a row, whose papers and price are set, and adds it to the sums: for papers
 * that were chosen in another way. ERR_LIMIT. */
MUST_CHECK int catalog_add_up(struct task *t, struct catalog_estimate *e,
                              struct catalog_estimate_row *row);
#endif
