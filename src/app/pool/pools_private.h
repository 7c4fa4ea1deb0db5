/* pools_private.h -- what the files of pools know of each other.
 *
 *   pools.c   the groups that this node remembers
 *   pop.c     pops that wait, and the task that serves them
 *   direct.c  handed out by MySQL
 *   fill.c    numbering, mending
 *   usable.c  where usable items are
 *   runs.c    which items have which numbers
 *   push.c    from MySQL to the list
 *   limit.c   how far a list may go; marks; settling
 *   round.c   the roles
 *   count.c   what there is
 *   import.h  items from files and to files */
#ifndef APP_POOL_POOLS_PRIVATE_H
#define APP_POOL_POOLS_PRIVATE_H

#include "app/pool/pools.h"
#include "base/buf.h"
#include "base/list.h"
#include "loop/sync.h"
#include "wire/redis.h"
#include "wire/sql.h"

#define POOL_NAME_BYTES 17 /* of a list: 16 random digits and a NUL */
#define POOL_BATCH_POPS 64 /* in one call */

/* Batches of a group that may have usable items, newest first. */
#define POOL_PLACES_MAX 64
struct pool_spot {
    int64_t batch, next_id, last_id;
};
struct pool_places {
    int64_t found_ms;          /* 0: not known */
    int64_t newest, newest_id; /* the newest batch then, and its last id */
    size_t count;
    struct pool_spot list[POOL_PLACES_MAX];
};

/* A group as this node knows it: hints, by which it saves work. What is true is in the stores. */
struct pool {
    struct list link; /* of pools.all, used last at the end */
    struct pools *pools;
    struct pool_id id;
    struct arena arena;                   /* of the names */
    struct str key, list, state, filling; /* key: in the map; then names in Redis */
    struct list waiting;                  /* struct pop, in order */
    bool popping, has_rows;               /* a task serves the waiting; its rows are in MySQL */
    bool fills, fills_soon, raises, raises_soon; /* a task does so, or will */
    struct lock lock;                            /* on filling */
    bool locked;                                 /* it is held */
    struct waitq filled, raised;                 /* it has ended */
    uint64_t fill_count, pushes;                 /* that have ended */
    int fill_err;                                /* what came of the last one */
    int64_t others_ms;                           /* until then another node fills */
    char name[POOL_NAME_BYTES];                  /* of the list, as seen last; "": not known */
    int64_t first, limit, marked, length;        /* likewise; first 0: not known */
    int64_t popped_ms, unmarked_ms;     /* the last pop; the first that is not marked; 0: none */
    int64_t pace_ms, pace_items, per_s; /* pops of this node: since when; how many; so many/s */
    int64_t raised_ms, ahead;           /* the last raise of the limit; how far it went */
    int64_t dry_ms;                     /* nothing is usable, until then it is not asked */
    int64_t adopted_ms; /* when items that a program made usable again were looked for; 0: never */
    int64_t item_bytes; /* of an item, on average; 0: not known */
    struct pool_places places;
    size_t busy; /* tasks that hold it */
};

struct pools {
    struct pools_options options;
    struct map *by_key;
    struct list all;
    int64_t distrust_ms;  /* until then Redis is not asked: it hangs */
    struct arena counted; /* of levels */
    struct pool_levels levels;
    int64_t counted_ms, count_ms; /* when, of the loop; how long that took; 0: not yet */
    bool counting;
    struct waitq count_done;
    int64_t round_ms, low_ms, low_took_ms; /* the last round of filling; likewise, groups that are
                                              low: when they were looked for, and how long */
    int64_t *pops, *items, *direct, *numbered, *marks, *unseen, *mended, *behind, *low;
    struct histogram *fill_seconds;
};

struct pop {
    struct list link;
    struct task *task;
    const struct pool_wish *wish;
    struct pool_items *out;
    bool taken, done; /* by the task that serves; served, or failed with err */
    int err;
    const char *why; /* in its task's arena */
};

/* pools.c. Held until pool_put: it stays where it is, and waits may follow. */
struct pool *pool_get(struct pools *p, struct pool_id id);
void pool_put(struct pool *x);
struct str pool_label(struct arena *a, struct pool_id id); /* "titles/7", for people */
/* The values of `type = ? AND group_id = ?`. */
#define POOL_VALUES(id) sql_text(str_of((id).type->name)), sql_int((id).group)
/* Ids of rows as a table j (place, id), from a JSON array: one value, however many they are. */
#define POOL_IDS "JSON_TABLE(?, '$[*]' COLUMNS (place FOR ORDINALITY, id BIGINT PATH '$')) AS j"
/* Makes its rows in pool_group and pool_list. */
MUST_CHECK int pool_make_rows(struct task *t, struct sql_pool *sql, struct pool_id id);
MUST_CHECK int pool_ensure(struct task *t, struct pool *x); /* the same, once */

/* A usable item, in the order of the index. */
#define POOL_USABLE " number = 0 AND status = 1"
/* The number of an item that was handed out without one: behind all others. */
#define POOL_UNNUMBERED "4611686018427387904"

/* usable.c. The next usable items, newest batch_id first, then by id: number, id, text. In a
 * transaction that has locked the group and takes all of them: their places in pool_batch are
 * behind them afterwards. Takes time by the number of batches, and by that of items that were
 * taken otherwise. */
#define POOL_USABLE_COLUMNS 3
MUST_CHECK int pool_find_usable(struct task *t, struct sql *c, struct pool *x, int64_t wanted,
                                struct sql_rows *out);
/* In a transaction that has locked the group, where items become usable again: places go back to
 * them. rows: batch_id, the smallest id. */
MUST_CHECK int pool_places_back(struct task *t, struct sql *c, struct pool_id id,
                                const struct sql_rows *rows);
/* Batches that may have usable items, as a table l (batch_id, next_id, last_id): none below
 * next_id. By first and last entry of each batch in the index; with BETWEEN or =, MariaDB reads all
 * entries. */
#define POOL_PLACES                                                                                \
    "(SELECT b.batch_id, COALESCE(p.next_id, 0) AS next_id, b.last_id FROM"                        \
    " (SELECT batch_id, MAX(id) AS last_id FROM $table FORCE INDEX (in_order)"                     \
    "  WHERE group_id > ? AND group_id < ? GROUP BY group_id, batch_id) AS b"                      \
    " LEFT JOIN pool_batch AS p ON p.type = ? AND p.group_id = ? AND p.batch_id = b.batch_id"      \
    " WHERE p.next_id IS NULL OR p.next_id <= b.last_id) AS l"
#define POOL_PLACES_VALUES(id) sql_int((id).group - 1), sql_int((id).group + 1), POOL_VALUES(id)

/* runs.c. Items whose numbers and ids both follow each other. */
struct pool_run {
    int64_t number, id, items;
};
struct pool_runs {
    struct pool_run *list; /* by number; in the task's arena */
    size_t count;
    int64_t items;
    bool whole; /* all numbers that were asked for are in it */
};
void pool_runs_init(struct task *t, struct pool_runs *runs, size_t most);
void pool_runs_add(struct pool_runs *runs, int64_t number, int64_t id, int64_t items);
bool pool_runs_long(const struct pool_runs *runs); /* a statement for each run is quick */
/* In the transaction that gives the numbers. */
MUST_CHECK int pool_runs_note(struct task *t, struct sql *c, struct pool_id id,
                              const struct pool_runs *runs);
MUST_CHECK int pool_runs_find(struct task *t, struct sql *c, struct pool_id id, int64_t from,
                              int64_t to, struct pool_runs *out);
MUST_CHECK int pool_runs_look(struct task *t, struct sql_pool *sql, struct pool_id id, int64_t from,
                              int64_t to, struct pool_runs *out);
/* A statement about items i, of which those of the runs are looked at, or, if these are not whole,
 * all of the group: begin, the items, end. Its condition must name group and numbers itself. The
 * first value, at the place of the items, is pool_runs_value. */
const char *pool_runs_sql(struct task *t, struct pool_id id, const struct pool_runs *runs,
                          const char *begin, const char *end);
struct sql_value pool_runs_value(struct task *t, const struct pool_runs *runs);

/* In a transaction that changes items: first of all. */
struct pool_numbers {
    int64_t numbered; /* the last number that an item got */
    int64_t marked;   /* no number up to this one is of status 2 */
};
MUST_CHECK int pool_lock_group(struct task *t, struct sql *c, struct pool_id id,
                               struct pool_numbers *out);
/* In the same transaction: so many more were handed out. */
MUST_CHECK int pool_note_handed(struct task *t, struct sql *c, struct pool_id id, int64_t items);
/* Numbers up to this are marked, and so many items by that. */
MUST_CHECK int pool_note_marked(struct task *t, struct sql_pool *sql, struct pool_id id,
                                int64_t last, int64_t items);

/* Redis answers, and has not just hung. */
bool pool_redis(const struct pool *x);

/* What Redis has of a group. */
struct pool_look {
    struct str list;   /* its name; "": none that counts */
    struct str stored; /* the name that is stored, whether it counts or not */
    struct str was;    /* its name before it was settled */
    int64_t first, limit, marked, length, bytes;
};
MUST_CHECK int pool_look(struct task *t, struct pool *x, struct pool_look *out);

/* Remembers it. What is older than what is remembered, of the same list, changes nothing. */
void pool_note(struct pool *x, const struct pool_look *look);

/* fill.c. Fills the list if it has fewer than low items, mends it first if it must be. One at a
 * time on this node: others wait for the same. ERR_BUSY: another node does. */
MUST_CHECK int pool_fill(struct task *t, struct pool *x, int64_t low);
void pool_fill_soon(struct pool *x); /* in a task of its own, unless one does */
/* Until something was pushed. *whole: the fill has ended, or there was none. */
MUST_CHECK int pool_fill_some(struct task *t, struct pool *x, bool *whole);
void pool_unlock(struct task *t, struct pool *x);
/* In a transaction: gives the list another name, so that it counts no more. What it may have handed
 * out is used afterwards, all else is usable. seen: its name, if that matters; ERR_BUSY: it has
 * another one. */
struct pool_taken {
    int64_t first;  /* number that follows */
    int64_t unseen; /* numbers that became used by this */
};
MUST_CHECK int pool_take_back(struct task *t, struct sql *c, struct pool_id id, struct str seen,
                              struct str fresh, struct pool_taken *out);

/* Items that are usable, and that pool_find_usable does not find, are found afterwards. Reads all
 * items of the group. */
MUST_CHECK int pool_adopt(struct task *t, struct pool *x);

/* push.c. Rows (number, id, text) that go to a list, by a task of their own. */
struct pool_push {
    struct pool *pool; /* both borrowed */
    struct str list;   /* its name */
    int64_t number;    /* of the first item */
    size_t count;      /* 0: nothing is pushed */
    size_t *ends;      /* of each, in json */
    struct buf json;
    struct group tasks;
    int err;
    char why[160];
};
/* Rows are copied. pool_push_end must follow; it waits. */
void pool_push_begin(struct task *t, struct pool_push *p, const struct sql_rows *rows,
                     int64_t number);
MUST_CHECK int pool_push_end(struct task *t, struct pool_push *p); /* 0 also if nothing was begun */

/* How few items are few: at a high pace more than POOL_LOW_ITEMS. */
int64_t pool_low(const struct pool *x);

/* limit.c. Raises the limit, so that numbers from x->first on can be handed out; in x->name. Others
 * wait for the same. ERR_CONFLICT: the list does not count any more. */
MUST_CHECK int pool_raise(struct task *t, struct pool *x);
void pool_raise_soon(struct pool *x);
/* Numbers below first are used. */
MUST_CHECK int pool_mark(struct task *t, struct pool *x, int64_t first);
/* Takes back what the list may still hand out, if x->first is its next number still. */
MUST_CHECK int pool_settle(struct task *t, struct pool *x);

/* A list that Redis has under a new name, and MySQL under the old one. */
MUST_CHECK int pool_settled(struct task *t, struct pool *x, struct str name, struct str fresh,
                            int64_t first);

/* low.c. Notes in Redis which groups run out. Seldom if that takes long. */
MUST_CHECK int pool_find_low(struct task *t, struct pools *p);
void pool_low_fades(struct pools *p, int64_t now_ms); /* the metric, once another node fills */

/* direct.c. By MySQL, for the pops of a batch, in their order. Those for which nothing is usable
 * still wait: they are the first *count of the batch afterwards. The others are gone. */
MUST_CHECK int pool_direct(struct task *t, struct pool *x, struct pop **batch, size_t *count);
/* When nothing is usable: 0: there are items in the list, or on their way to it. ERR_CONFLICT: all
 * are used. ERR_NOT_FOUND: there never were any. */
MUST_CHECK int pool_left(struct task *t, struct pool *x);
/* Requests that MySQL has answered before: likewise. */
MUST_CHECK int pool_recall(struct task *t, struct pool *x, struct pop **batch, size_t *count);
/* Ends a pop with the items of these ids, in their order. */
void pool_items_of(struct task *t, struct pool *x, struct str ids, struct pop *out);

/* pop.c. Ends a pop. Items are written [{…},…] into the arena of its task. */
void pool_pop_done(struct pop *w, struct str json, int64_t count, bool direct);
void pool_pop_fail(struct pop *w, int err, const char *why);
#endif
