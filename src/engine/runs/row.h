/* row.h -- a row of query_log, between the files of a run. */
#ifndef ENGINE_RUNS_ROW_H
#define ENGINE_RUNS_ROW_H

#include "engine/runs/run.h"

struct run_row {
    int64_t uid;
    struct str qid;
    enum run_state state;
    int64_t changed_ms, created_ms, started_ms, ended_ms;
    struct str reason, params; /* reason "" if none */
    struct str original_query_id;
    bool is_distillation;
    int64_t papers, finished, relevant, failed, cents;
    int64_t ceiling;              /* cents; -1: the row has none, see run_row_ceiling */
    struct run_unjudged unjudged; /* of those that failed; where run_count_unjudged was asked */
    bool archived;
    bool simulated; /* some verdicts are */
};

#define RUN_ROW_COLUMNS                                                                            \
    "uid, query_id, status, CAST(UNIX_TIMESTAMP(changed_at) * 1000 AS SIGNED),"                    \
    " CAST(UNIX_TIMESTAMP(created_at) * 1000 AS SIGNED),"                                          \
    " CAST(UNIX_TIMESTAMP(start_time) * 1000 AS SIGNED),"                                          \
    " CAST(UNIX_TIMESTAMP(end_time) * 1000 AS SIGNED), reason, search_params, original_query_id,"  \
    " is_distillation, total_papers, finished_papers, relevant_papers, failed_papers,"             \
    " CAST(total_cost * 100 AS SIGNED), archived, simulated, ceiling"
/* ERR_PROTO: a status that is none. */
MUST_CHECK int run_row_read(struct task *t, const struct sql_value *cells, struct run_row *out);

struct str run_row_question(struct task *t, const struct run_row *row); /* "" if there is none */
struct run_prices {
    int64_t cheapest, dearest; /* paper, in cents */
    int64_t all;               /* papers, as they were counted at submission */
};
/* As they were frozen; false: the parameters have none, as those of the system before millrace. */
bool run_row_prices(struct task *t, const struct run_row *row, struct run_prices *out);
/* What the run costs at most. One that was submitted before rows had it: by the prices in its
 * parameters; 0 where these say nothing. */
int64_t run_row_ceiling(struct task *t, const struct run_row *row);
struct run_view run_row_view(struct task *t, const struct run_row *row);

/* ERR_NOT_FOUND: the user has no such run. */
MUST_CHECK int run_row_find(struct task *t, struct sql_pool *sql, struct run_id id,
                            struct run_row *out);
/* ERR_CONFLICT: it is not DONE or CANCELLED, or not archived yet; what: "distilled". */
MUST_CHECK int run_row_settled(struct task *t, const struct run_row *row, const char *what);
/* The same as run_row_find with its lock, in a transaction. */
MUST_CHECK int run_row_lock(struct task *t, struct sql *c, struct run_id id, struct run_row *out);

/* not_judged.c: how many of the failed papers the AI was not asked about. */
MUST_CHECK int run_count_unjudged(struct task *t, struct redis *redis, struct sql_pool *sql,
                                  struct run_id id, bool archived, int64_t failed,
                                  struct run_unjudged *out);

/* The run waits for workers in the queue, unless it has them; not works: it leaves the queue.
 * created: as the status has it, ms. Idempotent. */
MUST_CHECK int run_line_up(struct task *t, struct redis *r, struct str name, struct str created,
                           bool works);
/* Wakes dispatcher and workers: something about the run has changed. */
MUST_CHECK int run_publish(struct task *t, struct redis *r, struct str name);
/* Writes the row to Redis, queues the run, and publishes it to dispatcher and workers. Idempotent.
 * ERR_UNAVAILABLE: partly done. */
MUST_CHECK int run_announce(struct task *t, const struct runs *r, const struct run_row *row);
/* Writes this version of the row to Redis. *told: it was new there. */
MUST_CHECK int run_row_tell(struct task *t, struct redis *r, const struct run_row *row, bool *told);
#endif
