/* words.h -- texts that can be found by their words: a full-text index of MySQL over words that are
 * made here, so that MariaDB and MySQL find the same, Chinese too.
 *
 * Owns the tables post_words and paper_words: the words of a text (corpus/prose/words.h), with
 * blanks between, under a FULLTEXT key. Rows are written and deleted in the transaction of the
 * caller; searches find what was committed.
 *
 * How a question is answered, in boolean mode, where InnoDB ranks as in its natural one (by how
 * often a word stands in a text, at most three times as it is written here, twice more if the title
 * has it; and by how rare it is), but can ask for all words:
 *
 *   1. The words of the question, each once; those beyond the 24th are left out.
 *   2. A question of up to eight words: texts that have all of them.
 *   3. If these are fewer than ten: texts that have any, behind them.
 *
 * InnoDB reads every text that has a word, some microseconds for each. So in tables of hundreds of
 * thousands of texts, words that very many of them have are passed over: they say least, and rare
 * ones come first. How common words are is learnt from a sample of rows, every ten minutes.
 *
 * Always true: a search takes no longer than WORDS_MS: then the server ends its statement. */
#ifndef ENGINE_SEARCH_WORDS_H
#define ENGINE_SEARCH_WORDS_H

#include "base/err.h"
#include "base/str.h"
#include "engine/search/collection.h"

struct sql;
struct sql_pool;
struct task;
struct words; /* what a node knows of the tables */

#define WORDS_MS       2500
#define WORDS_LIST_MAX 1000 /* of a filter's list; of longer ones the best 10,000 are filtered */

struct words *words_new(struct sql_pool *sql); /* borrowed */
void words_free(struct words *w);

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
    double score; /* comparable among those that have all words, and among the others */
};
/* The best first, at most limit. No error if the question has no words, or only such that very many
 * texts have: no hits. ERR_TIMEOUT: it took too long; ERR_UNAVAILABLE and others: there is no
 * answer. */
MUST_CHECK int words_search(struct task *t, struct words *w, enum collection which,
                            struct str question, const struct point_filter *filter, size_t limit,
                            struct words_hit **hits, size_t *count);
#endif
