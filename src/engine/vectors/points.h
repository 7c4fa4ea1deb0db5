/* points.h -- what a store of vectors keeps and answers, whichever it is: the embedded index
 * (index.h), or a server such as Qdrant.
 *
 * A point is a vector and what it belongs to: part `part` of `owner`, a post or a paper. The pair
 * is its id, so a point that is stored again takes the place of the former one. What searches
 * filter on is kept with it: small numbers whose meaning is the caller's. Titles and texts are the
 * rows' of MySQL, and answers are made from those; a server keeps a copy for those who look into it
 * with tools of its own, the embedded index keeps none. */
#ifndef ENGINE_VECTORS_POINTS_H
#define ENGINE_VECTORS_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define POINTS_DIMENSION_MIN 8
#define POINTS_DIMENSION_MAX 4096
#define POINTS_HITS_MAX      32000
#define POINTS_CHANGE_MAX    4096   /* points of one change */
#define POINTS_OWNERS_MAX    200000 /* in one filter, in each of its lists */

struct point_tags {
    uint32_t flags; /* the caller's, such as: hidden */
    uint16_t journal;
    uint16_t year;
};

struct point {
    uint64_t owner;
    uint64_t version; /* of the content it was made of: tells what must be embedded again */
    uint32_t part;
    struct point_tags tags;
};

struct point_payload { /* for stores that keep it */
    struct str title, text;
    struct str key; /* what owner stands for, where that is a hash: a DOI; p == NULL: nothing */
};

/* What vectors are of: those of another model or dimension cannot be compared. A collection may be
 * replaced by one of another model at any time, so each call says what it brings: ERR_CONFLICT. */
struct points_space {
    const char *model; /* NULL: any of that dimension */
    size_t dimension;
};

/* One visible step: no point of these owners is left but those that come with it. Vectors are of
 * any length but zero; cosines are what counts. */
struct points_change {
    struct points_space space;
    const uint64_t *gone; /* owners without points from now on */
    size_t gone_count;
    const struct point *points;           /* their owners' former points go, too */
    const float *vectors;                 /* one behind the other */
    const struct point_payload *payloads; /* one for each point; NULL: none */
    size_t count;
};

/* What a point must be; zeros and NULLs ask for nothing. */
struct point_filter {
    uint32_t without;       /* none of these flags is set … */
    const uint64_t *unless; /* … except on points of these owners */
    size_t unless_count;
    uint16_t year_from, year_to; /* year_to 0: to the latest */
    const uint16_t *journals;
    size_t journal_count;
    const uint64_t *owners; /* of these alone; a list that is empty, but not NULL, finds nothing */
    size_t owner_count;
};

struct points_query {
    struct points_space space;
    const float *vector;
    size_t k;                          /* 1 … POINTS_HITS_MAX */
    const struct point_filter *filter; /* may be NULL */
    bool exact;                        /* whatever it costs */
};

struct point_hit {
    struct point point;
    float score; /* cosine; the best come first */
};

/* What else a search found out. */
struct points_answer {
    size_t count;     /* of hits */
    size_t among;     /* points that the filter left; Qdrant does not say: count */
    bool approximate; /* not all of those were compared exactly */
    bool detached;    /* the file is gone from its place: as of then; it must be made anew */
};

/* What a store says of itself. */
struct points_look {
    size_t dimension;
    uint64_t points;
    uint64_t bytes; /* on the disk; 0: not known */
};

/* A store, whichever it is: the points of one space of one collection. Its calls may wait; the text
 * of an error is the task's (task_fail). ERR_NOT_FOUND: there is no such store, ERR_PROTO: it is
 * damaged; the caller makes it anew (create) from its rows. ERR_CONFLICT: it is of another space.
 * ERR_INVALID, ERR_LIMIT: what was passed. ERR_REFUSED: a server does not take it. ERR_UNAVAILABLE,
 * ERR_BUSY, ERR_TIMEOUT: nothing was done; ERR_UNCERTAIN: repeat it, all calls are idempotent. */
struct task;
struct points_store {
    const struct points_ops *ops;
};

struct points_ops {
    const char *name; /* "embedded", "qdrant" */
    /* Makes it, empty: whatever was there is gone. */
    int (*create)(struct task *t, struct points_store *s, const struct points_space *space);
    /* Removes it. 0 also if it is not there. */
    int (*drop)(struct task *t, struct points_store *s);
    /* The collection's own name means this store from now on, for those who look into a server with
     * tools of their own; again after create, which drops the name. */
    int (*publish)(struct task *t, struct points_store *s);
    int (*look)(struct task *t, struct points_store *s, struct points_look *out);
    int (*put)(struct task *t, struct points_store *s, const struct points_change *c);
    /* title: p == NULL: as it is. */
    int (*tag)(struct task *t, struct points_store *s, uint64_t owner, struct point_tags tags,
               struct str title);
    int (*search)(struct task *t, struct points_store *s, const struct points_query *q,
                  struct point_hit *hits, struct points_answer *answer);
    /* What was put before survives a power failure: before a row says that it is done. */
    int (*settle)(struct task *t, struct points_store *s);
    /* One round of upkeep, of some milliseconds: verifies a part, compacts when it is time. */
    int (*tend)(struct task *t, struct points_store *s);
    void (*free)(struct points_store *s);
};
#endif
