/* limits.h -- how many jobs of a kind a user may start in a minute, a day and a month (LIM-1).
 *
 * The limits are settings, the same for all users; 0 is none. A submission counts its jobs before
 * it promises them, and gives them back if it fails afterwards:
 *
 *     struct limit_taken taken;
 *     int err = api_limit_take(t, c, LIMIT_TRAINING_PLAN, 1, &taken);   (engine/api/limit.h)
 *     if (!err) {
 *         err = promise the job …
 *         if (err && err != ERR_UNCERTAIN)
 *             limit_return(t, n->limits, &taken);
 *     }
 *
 * Always true:
 *   - periods are those of the calendar, UTC, on Redis' clock, over all nodes;
 *   - in no period are more jobs counted than its limit, however many are submitted at once: one
 *     script counts all jobs of a submission in all three periods, or none (limit_count.lua);
 *   - what is given back counts no more in the periods in which it was taken, and in no other;
 *   - while Redis is away nothing can be taken. A call whose reply was lost may have been counted,
 *     and stays so: never too few.
 * A Redis that comes back older, or empty, has counted fewer than were started: the limits keep
 * costs and load in bounds, they are no account. Limits per API key are in engine/ai/permits.h. */
#ifndef ENGINE_JOBS_LIMITS_H
#define ENGINE_JOBS_LIMITS_H

#include "base/metrics.h"
#include "wire/redis.h"

struct config;
struct limits;

/* One row of the table in limits.c, and three settings, each. */
enum limit_kind {
    LIMIT_TRAINING_PLAN,
    LIMIT_NUTRITION_PLAN,
    LIMIT_EXTRACTION,
    LIMIT_EMBEDDING,
    LIMIT_KINDS
};
enum limit_period { LIMIT_MINUTE, LIMIT_DAY, LIMIT_MONTH, LIMIT_PERIODS };

const char *limit_kind_name(enum limit_kind k);     /* "training_plan" */
const char *limit_period_name(enum limit_period p); /* "minute" */
#define LIMIT_KIND_NAMES   "training_plan|nutrition_plan|extraction|embedding"
#define LIMIT_PERIOD_NAMES "minute|day|month"

/* All borrowed; c must last. Metric: millrace_limit_rejections_total{kind,period}. */
struct limits *limits_new(struct redis *r, struct metrics *m, const struct config *c);
void limits_free(struct limits *l);

/* Jobs that were counted. */
struct limit_taken {
    int64_t uid, count, at_s;
    enum limit_kind kind;
};

/* Counts so many jobs of a user. ERR_RATE: a limit would be passed, nothing was counted;
 * task_error names it and says when it ends, *retry_after_s is the time until then.
 * ERR_UNAVAILABLE: Redis is away. */
MUST_CHECK int limit_take(struct task *t, struct limits *l, int64_t uid, enum limit_kind kind,
                          int64_t count, struct limit_taken *out, int64_t *retry_after_s);
/* Gives them back, once: they were not started. Never fails: while Redis is away they stay counted.
 * task_error stays as it is. */
void limit_return(struct task *t, struct limits *l, const struct limit_taken *taken);

/* What is counted now. */
struct limit_look {
    int64_t used, most; /* most: 0: any number */
    int64_t ends_ms;    /* of the period, since 1970 */
};
MUST_CHECK int limit_look(struct task *t, struct limits *l, int64_t uid, enum limit_kind kind,
                          struct limit_look out[LIMIT_PERIODS]);
/* The limit alone; 0: any number. */
int64_t limit_most(const struct limits *l, enum limit_kind kind, enum limit_period p);
#endif
