#include "engine/jobs/limits.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/time.h"
#include "engine/setup/config.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define REPLY_HEAD  2
#define REPLY_ITEMS (REPLY_HEAD + 2 * LIMIT_PERIODS)

static const struct {
    const char *name, *noun;
    size_t at; /* of its struct config_limits */
} kinds[] = {
    [LIMIT_TRAINING_PLAN] = {"training_plan", "training plans",
                             offsetof(struct config, limit_training_plan)},
    [LIMIT_NUTRITION_PLAN] = {"nutrition_plan", "nutrition plans",
                              offsetof(struct config, limit_nutrition_plan)},
    [LIMIT_EXTRACTION] = {"extraction", "documents", offsetof(struct config, limit_extraction)},
    [LIMIT_EMBEDDING] = {"embedding", "posts", offsetof(struct config, limit_embedding)},
};
_Static_assert(sizeof kinds / sizeof *kinds == LIMIT_KINDS, "a row for each kind");

static const char *const periods[LIMIT_PERIODS] = {"minute", "day", "month"};

struct limits {
    struct redis *redis;
    const struct config *config;
    int64_t *rejections[LIMIT_KINDS][LIMIT_PERIODS];
};

const char *limit_kind_name(enum limit_kind k)
{
    return kinds[k].name;
}

const char *limit_period_name(enum limit_period p)
{
    return periods[p];
}

struct limits *limits_new(struct redis *r, struct metrics *m, const struct config *c)
{
    struct limits *l = check_memory(calloc(1, sizeof *l));
    struct arena a;
    l->redis = r;
    l->config = c;
    arena_init(&a);
    for (size_t k = 0; k < LIMIT_KINDS; k++)
        for (size_t p = 0; p < LIMIT_PERIODS; p++)
            l->rejections[k][p] =
                metric(m, METRIC_COUNTER, "millrace_limit_rejections_total",
                       arena_printf(&a, "kind=\"%s\",period=\"%s\"", kinds[k].name, periods[p]),
                       "Submissions that were refused because a limit of their user was reached.");
    arena_release(&a);
    return l;
}

void limits_free(struct limits *l)
{
    free(l);
}

int64_t limit_most(const struct limits *l, enum limit_kind kind, enum limit_period p)
{
    const struct config_limits *c =
        (const struct config_limits *)((const char *)l->config + kinds[kind].at);
    return p == LIMIT_MINUTE ? c->minute : p == LIMIT_DAY ? c->day : c->month;
}

/* --- counting --- */

static int64_t number(const struct redis_reply *r, size_t i)
{
    return r->items[i]->integer;
}

static int count_jobs(struct task *t, struct limits *l, const struct limit_taken *what,
                      const struct redis_reply **r)
{
    struct arena *a = task_arena(t);
    struct str most[LIMIT_PERIODS];
    for (size_t p = 0; p < LIMIT_PERIODS; p++)
        most[p] = str_int(a, limit_most(l, what->kind, (enum limit_period)p));
    int err = SCRIPT(t, l->redis, limit_count, r, .limits = key_user_limits(a, what->uid),
                     .kind = str_of(kinds[what->kind].name), .count = str_int(a, what->count),
                     .taken = str_int(a, what->at_s), .most = {most, LIMIT_PERIODS});
    if (!err && ((*r)->type != REDIS_ARRAY || (*r)->count != REPLY_ITEMS))
        err = task_fail(t, ERR_PROTO, "script limit_count returned something else");
    return err;
}

static int refuse(struct task *t, struct limits *l, const struct limit_taken *what,
                  const struct redis_reply *r, int64_t *retry_after_s)
{
    size_t p = (size_t)number(r, 0) - 1;
    check(p < LIMIT_PERIODS);
    int64_t used = number(r, REPLY_HEAD + 2 * p), ends_s = number(r, REPLY_HEAD + 2 * p + 1);
    int64_t most = limit_most(l, what->kind, (enum limit_period)p);
    char ends[TIME_ISO_BYTES];
    time_iso(ends_s * 1000000, ends);
    *retry_after_s = ends_s - number(r, 1);
    metric_add(l->rejections[what->kind][p], 1);
    if (what->count > most)
        return task_fail(t, ERR_RATE,
                         "you may start %" PRId64 " %s in a %s, and these are %" PRId64, most,
                         kinds[what->kind].noun, periods[p], what->count);
    return task_fail(t, ERR_RATE,
                     "you have started %" PRId64 " of the %" PRId64 " %s that you may start in a "
                     "%s; the next %s begins at %.19sZ",
                     used, most, kinds[what->kind].noun, periods[p], periods[p], ends);
}

int limit_take(struct task *t, struct limits *l, int64_t uid, enum limit_kind kind, int64_t count,
               struct limit_taken *out, int64_t *retry_after_s)
{
    check(count > 0);
    struct limit_taken what = {.uid = uid, .count = count, .kind = kind};
    const struct redis_reply *r;
    int err = count_jobs(t, l, &what, &r);
    if (err == ERR_UNCERTAIN) /* counted, perhaps, but not started */
        return task_fail(t, ERR_UNAVAILABLE, "%s", arena_strdup(task_arena(t), task_error(t)));
    if (err)
        return err;
    if (number(r, 0))
        return refuse(t, l, &what, r, retry_after_s);
    what.at_s = number(r, 1);
    *out = what;
    return 0;
}

void limit_return(struct task *t, struct limits *l, const struct limit_taken *taken)
{
    struct limit_taken back = *taken;
    const struct redis_reply *r;
    const char *text = arena_strdup(task_arena(t), task_error(t));
    back.count = -taken->count;
    if (count_jobs(t, l, &back, &r))
        (void)task_fail(t, 0, "%s", text); /* they stay counted until their periods end */
}

int limit_look(struct task *t, struct limits *l, int64_t uid, enum limit_kind kind,
               struct limit_look out[LIMIT_PERIODS])
{
    struct limit_taken what = {.uid = uid, .kind = kind};
    const struct redis_reply *r;
    int err = count_jobs(t, l, &what, &r);
    for (size_t p = 0; !err && p < LIMIT_PERIODS; p++)
        out[p] = (struct limit_look){.used = number(r, REPLY_HEAD + 2 * p),
                                     .most = limit_most(l, kind, (enum limit_period)p),
                                     .ends_ms = number(r, REPLY_HEAD + 2 * p + 1) * 1000};
    return err;
}
