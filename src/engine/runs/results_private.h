/* results_private.h -- what the files of the results share. */
#ifndef ENGINE_RUNS_RESULTS_PRIVATE_H
#define ENGINE_RUNS_RESULTS_PRIVATE_H

#include "engine/runs/results.h"

#define RESULTS_RANKS                                                                              \
    RESULTS_ALL /* relevant = 1, relevant = 0, relevant IS NULL: the final order */

/* Arrivals that are looked at for one page, at most: more wait for the next. */
#define RESULTS_LOOKED_AT_MAX 5000

#define RESULTS_OFFSET_MAX   1000000000
#define RESULTS_CURSOR_BYTES 32

/* Where a page begins. */
struct results_place {
    bool archived;
    int64_t offset;         /* in Redis: of the list */
    enum results_kind rank; /* in MySQL: behind the row with this id, which had this rank */
    int64_t id;             /* 0: at the start */
};
struct str results_cursor(struct arena *a, enum results_kind kind, const struct results_place *p);
/* False: no cursor of ours. */
bool results_cursor_read(struct str cursor, enum results_kind kind, struct results_place *out);

/* ERR_PROTO: its block is none. */
MUST_CHECK int results_row(struct task *t, struct str doi, struct result r, struct result_row *out);

/* Where the results of a run are. */
struct results_home {
    bool archived; /* in MySQL; else in Redis */
    bool away;     /* MySQL does not answer: they are read from Redis, which may have lost some */
};

/* A page. *whole stays true unless Redis lacks something that its list names. out->degraded: MySQL
 * is away, the ledger is not asked. */
MUST_CHECK int results_redis_page(struct task *t, const struct results *r, struct run_id id,
                                  enum results_kind kind, const struct results_place *from,
                                  int64_t limit, struct results_page *out, bool *whole);
/* Of RESULTS_ALL or RESULTS_HIT: those have lists. */
MUST_CHECK int results_redis_count(struct task *t, const struct results *r, struct run_id id,
                                   enum results_kind kind, int64_t *out);
/* One of them. ERR_NOT_FOUND */
MUST_CHECK int results_redis_find(struct task *t, const struct results *r, struct run_id id,
                                  struct str doi, bool away, struct result_row *out);
/* *there: their list and the results themselves. */
MUST_CHECK int results_redis_there(struct task *t, const struct results *r, struct run_id id,
                                   bool *there);
MUST_CHECK int results_mysql_find(struct task *t, const struct results *r, struct run_id id,
                                  struct str doi, struct result_row *out);
/* ERR_INVALID: the run has no row with that id. */
MUST_CHECK int results_mysql_page(struct task *t, const struct results *r, struct run_id id,
                                  enum results_kind kind, const struct results_place *from,
                                  int64_t limit, struct results_page *out);
#endif
