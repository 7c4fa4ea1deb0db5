/* words.h -- texts that can be found by their words: a full-text index of MySQL over words that are
 * made here, so that MariaDB and MySQL find the same, Chinese too.
 *
 * Owns the tables post_words and paper_words: the words of a text (corpus/prose/words.h), with
 * blanks between, under a FULLTEXT key. Rows are written and deleted in the transaction of the
 * caller. */
#ifndef ENGINE_SEARCH_WORDS_H
#define ENGINE_SEARCH_WORDS_H

#include "base/err.h"
#include "base/str.h"
#include "engine/search/collection.h"

struct sql;
struct sql_pool;
struct task;

struct words_text {
    uint64_t owner;
    struct point_tags tags; /* as those of its points */
    struct str title, text; /* of both the words are made; plain text */
};
/* In a transaction of the caller's. Rows of the same owners are replaced. */
MUST_CHECK int words_put(struct task *t, struct sql *c, enum collection which,
                         const struct words_text *texts, size_t count);
MUST_CHECK int words_drop(struct task *t, struct sql *c, enum collection which,
                          const uint64_t *owners, size_t count);

struct words_hit {
    uint64_t owner;
    double score;
};
/* The best first, at most limit. No error if the question has no words: no hits. */
MUST_CHECK int words_search(struct task *t, struct sql_pool *sql, enum collection which,
                            struct str question, const struct point_filter *filter, size_t limit,
                            struct words_hit **hits, size_t *count);
#endif
