/* collection.h -- texts as points that can be searched by meaning: the posts, and the papers.
 *
 * Owns the tables vector_* and point_*, and the stores of points (vectors/points.h): the embedded
 * index, one file per space under the data directory, or Qdrant. MySQL has every vector; a store of
 * points is a copy of them that answers quickly, made anew from MySQL when it is damaged, lost or
 * too far behind. collection_apply.c has the story: the order of writes, and what is true when any
 * process dies.
 *
 * A space is what vectors are comparable in: a model, by the name that its replies give it, and a
 * dimension; numbered, a row of vector_space. One space of a collection is active: searches use it.
 * When the service answers with another model or dimension, a second one is built beside it:
 *
 *   1. An answer of the new model, and two more to make sure, make a row of vector_space, state
 *      building, and an empty store for it. From then on collection_space() says its number, and
 *      collection_put writes to it; the active one answers searches as before, its questions
 *      embedded by its own model.
 *   2. The application has all documents whose row names another space embedded again, at its
 *      lowest priority, and calls collection_complete when there are none left.
 *   3. That makes the new space active, on all nodes; the store and the vectors of the old one go.
 *
 * A document is embedded by a job of its application, in this order:
 *   1. collection_put: asks the service; writes vectors to MySQL, in one transaction; brings the
 *      store up to that change, and settles it. All of it is idempotent.
 *   2. The application brings its row to completed, if it is of the same version still, with the
 *      space that collection_put has returned.
 * A document that goes is a job, too: its row says so in a later version; the job calls
 * collection_drop and then deletes the row. So what the store has agrees with the rows in the end,
 * whatever dies when: a job whose row is not final is done again.
 *
 * Always true:
 *   - a search never returns a point that its store has not verified. What is stale (an owner that
 *     has gone a moment ago, a hidden flag) is the caller's to check against its rows;
 *   - a store that is damaged, missing or behind is noticed, by searches and by collection_role;
 *     while it is made anew the answer is `degraded`, never an error of the program. */
#ifndef ENGINE_SEARCH_COLLECTION_H
#define ENGINE_SEARCH_COLLECTION_H

#include "base/metrics.h"
#include "base/str.h"
#include "engine/store/role.h"
#include "engine/vectors/points.h"

struct ai;
struct collections;
struct config;
struct embedding;
struct http_client;
struct permits;
struct sql;
struct sql_pool;

enum collection { COLLECTION_POSTS, COLLECTION_PAPERS, COLLECTION_COUNT };

#define POINT_HIDDEN 1u /* point_tags.flags: of a post that its owner and admins find alone */

const char *collection_name(enum collection c); /* "blog_posts", "papers" */

/* The owner of a paper's points: 63 bits of a hash of its DOI. A post's owner is its id. */
uint64_t collection_paper_owner(struct str doi);

struct collections_options {
    const struct config *config; /* all borrowed */
    struct sql_pool *sql;
    struct embedding *embedding; /* NULL: there is no such service: nothing can be embedded */
    struct metrics *metrics;
    /* Of the embedding service: what embeds questions for a space whose model is not that of the
     * settings is made from these, when it is needed. */
    struct ai *ai;
    struct permits *permits;    /* may be NULL */
    struct http_client *qdrant; /* NULL: vectors are in files below data_dir */
    /* Requests of collection_put that this node has under way at once; 0: as many as come. */
    int64_t calls_max[COLLECTION_COUNT];
};
struct collections *collections_new(const struct collections_options *o);
void collections_free(struct collections *c);

/* --- embedding documents --- */

struct collection_chunk {
    struct str text; /* what is embedded */
};
struct collection_document {
    uint64_t owner;
    uint64_t version; /* of the content */
    struct point_tags tags;
    struct str title;         /* payload, where the store keeps one */
    struct str key;           /* what owner stands for, where that is a hash: a DOI; or p == NULL */
    const struct str *chunks; /* texts; none: the owner has no points from then on */
    size_t chunk_count;
};
struct collection_outcome { /* of one document */
    /* 0: its vectors are in MySQL, and its points in the store and settled; if the store is away or
     * being made anew, they will be, without anything more from the caller. ERR_CONFLICT: a later
     * version is stored, or another call for this owner has begun since (its drop, perhaps). Others
     * as embedding.h has them for single texts. */
    int err;
    const char *why; /* for users, in the task's arena */
};
/* Embeds and stores documents: outcomes has room for count. *space: the number that their rows
 * shall name. Errors are those of all documents, and all may be repeated: ERR_UNAVAILABLE (the
 * service or MySQL is away, slow or full), ERR_UNCERTAIN, ERR_REFUSED (the service refuses all, or
 * its vectors cannot be stored), ERR_CANCELED, ERR_TIMEOUT.
 * asks: as in ai.h, of the job. At most POINTS_CHANGE_MAX chunks in all; no owner twice. */
MUST_CHECK int collection_put(struct task *t, struct collections *c, enum collection which,
                              const struct collection_document *docs, size_t count,
                              const bool *asks, struct collection_outcome *outcomes,
                              int64_t *space);
/* No point of these owners is left, in any space, nor any vector. Idempotent. ERR_UNAVAILABLE: the
 * store is away; it will have none once it is back, but the caller should repeat this. */
MUST_CHECK int collection_drop(struct task *t, struct collections *c, enum collection which,
                               const uint64_t *owners, size_t count);
/* A fence against callers that stand still: between its look at its row and the change of vectors
 * another one may have worked on a later version of the same document. `may` is called in the
 * transaction that changes vectors, looks at the rows of the documents, and locks them; may[i] is
 * false for those that this caller may not change any more. It may be called again, if the
 * transaction is. Such documents get ERR_CONFLICT from a put, and are left alone by a drop. */
struct collection_fence {
    int (*may)(struct task *t, struct sql *c, void *arg, bool *may); /* all are true at first */
    void *arg;
};
MUST_CHECK int collection_put_fenced(struct task *t, struct collections *c, enum collection which,
                                     const struct collection_document *docs, size_t count,
                                     const bool *asks, const struct collection_fence *fence,
                                     struct collection_outcome *outcomes, int64_t *space);
MUST_CHECK int collection_drop_fenced(struct task *t, struct collections *c, enum collection which,
                                      const uint64_t *owners, size_t count,
                                      const struct collection_fence *fence);
/* The points of an owner get other tags (and payload title, if title.p), without embedding; 0 also
 * if it has none. They last until the next collection_put of that owner, and win over one that is
 * under way. */
MUST_CHECK int collection_tag(struct task *t, struct collections *c, enum collection which,
                              uint64_t owner, struct point_tags tags, struct str title);

/* The space that rows of completed documents must name; 0: none yet, or not known yet. *building:
 * it is not active yet: documents of another space are to be embedded again. As read by the last
 * round of the role, or by the last collection_put. */
int64_t collection_space(const struct collections *c, enum collection which, bool *building);
/* All documents are in this space: it becomes the active one. Idempotent. ERR_CONFLICT: it has been
 * given up, for another model answers. ERR_UNAVAILABLE: its store is not complete yet; later. */
MUST_CHECK int collection_complete(struct task *t, struct collections *c, enum collection which,
                                   int64_t space);

/* --- searching --- */

struct collection_answer {
    struct point_hit *hits; /* the best first, in the task's arena */
    size_t count;
    bool degraded;      /* the store is being made anew, or behind: hits may be missing */
    const char *reason; /* a word for it: see COLLECTION_REASONS; NULL: not degraded */
};
#define COLLECTION_NO_SERVICE "no_embedding_service" /* no ai.embedding.url */
#define COLLECTION_NO_ANSWER  "embedding_service_away"
#define COLLECTION_EMPTY      "nothing_embedded"        /* no space yet */
#define COLLECTION_REBUILT    "index_rebuilt"           /* it is made anew from MySQL just now */
#define COLLECTION_AWAY       "vector_store_away"       /* or MySQL, or it is behind */
#define COLLECTION_OTHER      "embedding_model_changed" /* no question by the active one's model */
#define COLLECTION_REASONS                                                                         \
    COLLECTION_NO_SERVICE "|" COLLECTION_NO_ANSWER "|" COLLECTION_EMPTY "|" COLLECTION_REBUILT     \
                          "|" COLLECTION_AWAY "|" COLLECTION_OTHER

/* The points nearest to a text; q->space and q->vector are filled in here. Questions that were
 * asked lately are not embedded again. What stands in the way of a search is no error but a
 * degraded answer, with the hits that there are; ERR_CANCELED and ERR_INVALID are errors. */
MUST_CHECK int collection_search(struct task *t, struct collections *c, enum collection which,
                                 struct str question, const struct points_query *q,
                                 struct collection_answer *out);
/* The points nearest to those of an owner ("more like this"), itself left out. ERR_NOT_FOUND: it
 * has no points. */
MUST_CHECK int collection_like(struct task *t, struct collections *c, enum collection which,
                               uint64_t owner, const struct points_query *q,
                               struct collection_answer *out);

/* --- for admins --- */

struct collection_look {
    const char *name, *store; /* "embedded", "qdrant" */
    struct str model;         /* of the active space; p == NULL: there is none */
    int64_t dimension, points, bytes;
    struct str building; /* model of the space that is built; p == NULL: none is */
    bool degraded;
    const char *reason;
    int64_t rebuilt, rebuild_total; /* points of a store that is made anew; 0: none is */
};
#define COLLECTION_MACHINES "several_machines" /* a reason, but not degraded: see below */
MUST_CHECK int collection_look(struct task *t, struct collections *c, enum collection which,
                               struct collection_look *out);

/* Looks after the stores: changes of space that other nodes have made, the log of changes,
 * verification bit by bit, compaction, and making anew. On every node; what one node at a time does
 * is guarded by locks on files, and on rows of MySQL. */
role_fn collection_role; /* arg: a struct collections */

/* How many machines have had nodes with embedded stores in the last minute. Each has a copy of its
 * own, which costs disk and memory, and is a second behind the others: more than one should use
 * Qdrant. 0: there is no such store, or it is not known yet. */
int64_t collection_machines(const struct collections *c);
#define COLLECTION_EACH_MS 500
#endif
