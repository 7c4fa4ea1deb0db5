/* collection_private.h -- what a node has of a collection: its spaces, as last read from MySQL. */
#ifndef ENGINE_SEARCH_COLLECTION_PRIVATE_H
#define ENGINE_SEARCH_COLLECTION_PRIVATE_H

#include "engine/search/collection.h"
#include "engine/search/often.h"
#include "engine/search/question.h"
#include "loop/sync.h"
#include "wire/sql.h"

#define SPACES_MAX       8   /* of a collection; further ones are not looked at */
#define CHANGES_MAX      256 /* of the log, in one transaction */
#define BEHIND_MS        3000
#define OWNER_MAX        INT64_MAX
#define CURSOR_TO_CREATE (-1)
#define LISTS_MAX        2 /* of neighbours at a time: some tens of megabytes each */

/* How far a store is: its row of vector_store. */
struct progress {
    bool known; /* there is a row */
    bool complete;
    int64_t applied, cursor, builds, copied, total;
};

/* A space, and its store at this place. */
struct space {
    struct list link; /* of its shelf */
    int refs;         /* of the shelf, and of calls under way */
    int64_t number;
    char *model, *asked; /* as replies name it; as it is asked for */
    int64_t dimension, asked_dimensions;
    bool active;
    struct points_store *store;
    struct embedding *embedding; /* of its own model; NULL: not made */
    struct progress at;
    int64_t published;     /* its build that was published by this node */
    int64_t damaged_build; /* its build in which damage was found; 0: none */
    bool away;             /* the store has not answered lately */
};

struct shelf { /* of one collection */
    struct collections *all;
    enum collection which;
    struct list spaces;
    struct space *active, *building; /* of spaces; NULL: none */
    bool known;                      /* they were read once */
    int64_t head;                    /* the number of the last change */
    int64_t behind_since_ms;         /* 0: its stores have all changes */
    struct sem calls;                /* calls_max of them */
    struct sem turn;                 /* for tasks of this node; the file for other nodes */
    int turn_fd, tend_fd;            /* -1: not opened yet */
    bool tends;                      /* this node looks after the stores of this machine */
    int64_t counted_ms, seen_ms, swept_ms;
    int64_t *points, *bytes, *rebuilds, *degraded, *behind;
};

struct collections {
    struct collections_options options;
    char *place; /* NULL: not known yet */
    struct shelf shelves[COLLECTION_COUNT];
    struct questions *questions;
    struct histogram *seconds;
    int64_t places;   /* that were seen lately, this one included */
    struct sem lists; /* neighbours.h */
    size_t lists_waiting;
    struct often lists_often;
};

static inline struct shelf *shelf_of(struct collections *c, enum collection which)
{
    check(which < COLLECTION_COUNT);
    return &c->shelves[which];
}

static inline struct str shelf_name(const struct shelf *s)
{
    return str_of(collection_name(s->which));
}

/* --- collection_store.c --- */

MUST_CHECK int place_know(struct task *t, struct collections *c);
struct points_store *store_new(const struct collections *c, enum collection which, int64_t space);
/* A store that keeps titles and texts. */
bool store_has_payload(const struct points_store *s);
bool store_is_local(const struct points_store *s);

/* The right to write to the stores of a collection at this place: one task at a time of all nodes.
 * wait false: ERR_BUSY at once. */
MUST_CHECK int turn_get(struct task *t, struct shelf *s, bool wait);
void turn_put(struct shelf *s);
/* The right to look after them, which takes longer; false: another node does. */
bool tending_get(struct task *t, struct shelf *s);

/* --- collection_space.c --- */

/* Reads the rows: afterwards s->active, s->building and their rows are as MySQL has them now. */
MUST_CHECK int shelf_look(struct task *t, struct shelf *s);
/* The same if it was never done. */
MUST_CHECK int shelf_know(struct task *t, struct shelf *s);
void shelf_clear(struct shelf *s);
/* applied, cursor_owner, builds, copied, total */
struct progress progress_read(const struct sql_value *row, bool known);
struct space *space_get(struct space *x); /* a reference; x may be NULL */
void space_put(struct space *x);
struct space *shelf_find(struct shelf *s, int64_t number);
/* The space of a model that has just answered, with a reference; made if it is new. ERR_BUSY: the
 * service changes to and fro. */
MUST_CHECK int space_of_answer(struct task *t, struct shelf *s, struct str model, size_t dimension,
                               struct space **out);

/* --- collection_search.c --- */

/* What a store lacks, that has answered with err when it was asked last: a reason, or NULL. */
const char *collection_lacks(const struct shelf *s, const struct space *x, int err, int64_t now_ms);

/* --- collection_apply.c --- */

/* Brings the stores of all spaces up to this change. 0 also if one is being made anew: it will have
 * it. Errors are those of the store or of MySQL. */
MUST_CHECK int shelf_apply(struct task *t, struct shelf *s, int64_t upto);
/* The same of one space, in the turn, and a part of making it anew, if that is due. *more: there is
 * more to do. */
MUST_CHECK int space_apply(struct task *t, struct shelf *s, struct space *x, bool *more);
/* What a search or a verification has found. */
void space_found(struct task *t, struct shelf *s, struct space *x, int err);
#endif
