/* search_private.h -- what the files of the search share. */
#ifndef APP_EMBED_SEARCH_SEARCH_PRIVATE_H
#define APP_EMBED_SEARCH_SEARCH_PRIVATE_H

#include "app/embed/paper/paper.h"
#include "app/embed/post/post.h"
#include "app/embed/search/search.h"
#include "base/metrics.h"
#include "engine/search/journal.h"
#include "engine/search/often.h"
#include "engine/search/words.h"
#include "engine/setup/node.h"
#include "loop/sync.h"

#define SEARCH_REASON_COUNT 7

/* Where hits and rows come from; tests have others. */
struct search_sources {
    int (*meaning)(struct task *t, struct collections *c, enum collection which,
                   struct str question, const struct points_query *q,
                   struct collection_answer *out);
    int (*like)(struct task *t, struct collections *c, enum collection which, uint64_t owner,
                const struct points_query *q, struct collection_answer *out);
    int (*words)(struct task *t, struct words *w, enum collection which, struct str question,
                 const struct point_filter *filter, size_t limit, struct words_hit **hits,
                 size_t *count);
    int (*hidden)(struct task *t, struct sql_pool *sql, int64_t uid, uint64_t **ids, size_t *count);
    int (*posts)(struct task *t, struct sql_pool *sql, const int64_t *ids, size_t count,
                 struct post_row *rows, size_t *found);
    int (*papers)(struct task *t, const struct node *n, const uint64_t *owners, size_t count,
                  struct paper_row *rows, size_t *found);
    int (*journals)(struct task *t, struct sql_pool *sql, const struct str *names, size_t count,
                    uint16_t *numbers);
    int (*posts_there)(struct task *t, struct sql_pool *sql, struct embed_extent *open,
                       struct embed_extent *hidden);
    int (*hidden_there)(struct task *t, struct sql_pool *sql, int64_t uid,
                        struct embed_extent *out);
    int (*papers_there)(struct task *t, struct sql_pool *sql, const struct papers_filter *f,
                        struct embed_extent *out);
};

/* What all searches of a node share, counted every now and then. */
struct search_extents {
    bool known, counting;
    int64_t until_us; /* it is fresh */
    struct embed_extent open, hidden, papers;
};

struct searches {
    struct node *node;
    struct words *words;
    struct search_sources sources;
    struct search_extents extents;
    struct often often;
    struct sem turns;
    size_t waiting;
    int64_t *asked[2]; /* searches, and those for what is alike */
    int64_t *degraded[SEARCH_REASON_COUNT];
    struct histogram *seconds;
};

/* find.c */
struct search_found {
    struct order order;
    const char *reason; /* NULL: not degraded */
};
int search_find(struct task *t, struct searches *s, const struct search_wish *w,
                struct search_found *out);
/* What is searched: posts have neither journal nor year. */
bool search_asks(const struct search_wish *w, enum order_kind kind);
int search_find_like(struct task *t, struct searches *s, struct search_caller who,
                     enum order_kind kind, uint64_t owner, struct search_found *out);

/* hits.c: the hits of an order from *at on that the caller may see; *at: where to go on. */
int search_hits(struct task *t, struct searches *s, struct search_caller who, struct str question,
                const struct order *o, size_t *at, size_t limit, struct search_page *out);
/* ERR_NOT_FOUND: there is no such post or paper, or the caller may not see it. */
int search_may_see(struct task *t, struct searches *s, struct search_caller who,
                   enum order_kind kind, uint64_t owner);

/* extent.c: only ERR_CANCELED; what cannot be counted is not known. */
int search_count(struct task *t, struct searches *s, const struct search_wish *w,
                 struct search_extent out[ORDER_KINDS]);

/* pages.c: an order that was made for a page is kept for the following ones. */
#define PAGES_MS         (10 * 60 * 1000)
#define PAGES_ID_CHARS   32
#define PAGES_DIGEST_HEX 32 /* digits: of what was asked for */
struct search_place {
    struct str id; /* of the order; p == NULL: none was kept */
    size_t at;
};
/* ERR_INVALID: it is no cursor. */
int search_place_read(struct task *t, struct str cursor, struct search_place *out);
struct str search_place_write(struct arena *a, const struct search_place *p);
/* What tells this search from others: question and filters. */
struct str search_digest(struct arena *a, const struct search_wish *w);
/* Keeps it: *id, p == NULL if Redis does not answer. */
void search_keep(struct task *t, struct searches *s, const struct search_wish *w,
                 const struct search_found *f, struct str *id);
/* ERR_NOT_FOUND: it is gone, or Redis is away. ERR_INVALID: it is of another search. */
int search_kept(struct task *t, struct searches *s, const struct search_wish *w, struct str id,
                struct search_found *out);
#endif
