/* results_private.h -- what the files of the results share. */
#ifndef ENGINE_RESULTS_PRIVATE_H
#define ENGINE_RESULTS_PRIVATE_H

#include "engine/results.h"

/* relevant = 1, relevant = 0, relevant IS NULL: the final order. */
enum results_rank { RESULTS_RELEVANT, RESULTS_NOT, RESULTS_FAILED };
#define RESULTS_RANKS 3

#define RESULTS_OFFSET_MAX   1000000000
#define RESULTS_CURSOR_BYTES 32

/* Where a page begins. */
struct results_place {
    bool archived;
    int64_t offset;         /* in Redis: of the list */
    enum results_rank rank; /* in MySQL: behind the row with this id, which had this rank */
    int64_t id;             /* 0: at the start */
};
struct str results_cursor(struct arena *a, bool relevant, const struct results_place *p);
/* False: no cursor of ours. */
bool results_cursor_read(struct str cursor, bool relevant, struct results_place *out);

/* ERR_PROTO: its block is none. */
MUST_CHECK int results_row(struct task *t, struct str doi, struct result r, struct result_row *out);

/* A page. *whole stays true unless Redis lacks something that its list names. */
MUST_CHECK int results_redis_page(struct task *t, const struct results *r, struct run_id id,
                                  bool relevant, const struct results_place *from, int64_t limit,
                                  struct results_page *out, bool *whole);
MUST_CHECK int results_redis_count(struct task *t, const struct results *r, struct run_id id,
                                   bool relevant, int64_t *out);
/* One of them. ERR_NOT_FOUND */
MUST_CHECK int results_redis_find(struct task *t, const struct results *r, struct run_id id,
                                  struct str doi, struct result_row *out);
MUST_CHECK int results_mysql_find(struct task *t, const struct results *r, struct run_id id,
                                  struct str doi, struct result_row *out);
/* ERR_INVALID: the run has no row with that id. */
MUST_CHECK int results_mysql_page(struct task *t, const struct results *r, struct run_id id,
                                  bool relevant, const struct results_place *from, int64_t limit,
                                  struct results_page *out);
#endif
