/* search.h -- posts and papers that are found by meaning and by words (EMB-4).
 *
 * A search, in five steps:
 *
 *   1. find.c asks for the points nearest to the question (engine/search/collection.h) and for the
 *      texts that have its words (engine/search/words.h), of posts and of papers, and makes one
 *      order of them (order.h): at most ORDER_HITS_MAX.
 *   2. hits.c reads the rows of the first of them, and decides by these: a post that is hidden now
 *      is its owner's and the admins' alone, whatever the index says; what is deleted, or was found
 *      by a point of an earlier version alone, is passed over.
 *   3. snippet.h shows the nearest part of the text, with the words of the question marked.
 *   4. extent.c says how much there is to be found, so that nothing found is told from nothing
 *      indexed.
 *   5. pages.c keeps the order in Redis for PAGES_MS: the following pages go on in it, so that
 *      nothing is told twice or left out when the index changes meanwhile. The rows decide at each
 *      page anew. An order that is gone is made again.
 *
 * Always true: what stands in the way of one way of searching makes the answer degraded, with the
 * hits of the other; ERR_UNAVAILABLE if there is neither. */
#ifndef APP_EMBED_SEARCH_SEARCH_H
#define APP_EMBED_SEARCH_SEARCH_H

#include "app/embed/extent.h"
#include "app/embed/search/order.h"
#include "app/embed/search/snippet.h"
#include "base/err.h"
#include "engine/search/collection.h"

struct node;
struct searches;

#define SEARCH_QUESTION_CHARS_MAX 1000
#define SEARCH_PAGE_MAX           100
#define SEARCH_PAGE               20
#define SEARCH_JOURNALS_MAX       100
#define SEARCH_MINUTE_MAX         120 /* searches of a user in a minute, on each node */

/* Why an answer is degraded: besides those of collection.h. */
#define SEARCH_NO_WORDS "words_index_away"
#define SEARCH_REASONS  COLLECTION_REASONS "|" SEARCH_NO_WORDS

struct searches *searches_new(struct node *n); /* borrowed, with its collections */
void searches_free(struct searches *s);

struct search_caller {
    int64_t uid; /* 0: an admin, */
    bool admin;  /* who sees hidden posts of all */
};

struct search_wish {
    struct search_caller who;
    struct str question;
    bool kinds[ORDER_KINDS];
    const struct str *journals; /* of papers; posts have neither journal nor year */
    size_t journal_count;
    int64_t year_from, year_to; /* 0: any */
    size_t limit;
    struct str cursor; /* p == NULL: the first page */
};

struct search_hit {
    enum order_kind kind;
    int64_t id;              /* of a post */
    struct str doi, journal; /* of a paper */
    int64_t year;            /* 0: none that is known */
    struct str title;
    struct snippet snippet;
    double score;
    bool hide, mine; /* of a post */
};

/* How many of a kind there are that the caller may find, by the filters of the wish. Some seconds
 * old. */
struct search_extent {
    bool asked; /* this kind was searched */
    bool known; /* false: MySQL did not say */
    struct embed_extent of;
};

struct search_page {
    struct search_hit *hits; /* the best first, in the task's arena */
    size_t count;
    struct str next;    /* cursor; p == NULL: nothing more */
    const char *reason; /* the answer is degraded; NULL: it is not */
    struct search_extent extents[ORDER_KINDS];
};

/* ERR_RATE: the user has searched too often, *retry_after_s. ERR_INVALID: the cursor is of another
 * search, or none. ERR_BUSY: too many search now. ERR_UNAVAILABLE: neither way works. */
MUST_CHECK int search_page(struct task *t, struct searches *s, const struct search_wish *w,
                           struct search_page *out, int64_t *retry_after_s);
/* What is like a post or a paper, itself left out, of its kind; snippets without marks.
 * ERR_NOT_FOUND: it is not there, is hidden, or has no points yet. */
MUST_CHECK int search_like(struct task *t, struct searches *s, struct search_caller who,
                           enum order_kind kind, uint64_t owner, size_t limit,
                           struct search_page *out, int64_t *retry_after_s);
#endif
