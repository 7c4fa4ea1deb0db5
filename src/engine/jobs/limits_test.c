/* Limits of users on a real Redis: exact, however many submissions there are at once. */
#include "engine/jobs/limits.h"

#include "base/log.h"
#include "engine/setup/config.h"
#include "engine/store/keys.h"
#include "tests/store.h"
#include "tests/tap.h"

#define CALLS 10000
#define TASKS 64
#define MOST  1000

static struct store_redis store;
static struct metrics *metrics;
static struct config config;

struct node {
    struct group group;
    struct redis *redis;
    struct limits *limits;
};

static void open_node(struct task *t, struct node *n)
{
    group_init(&n->group, task_loop(t));
    n->redis = redis_open(&n->group, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    check(n->redis);
    n->limits = limits_new(n->redis, metrics, &config);
}

static void open_empty(struct task *t, struct node *n)
{
    open_node(t, n);
    check(redis_call(t, n->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
}

static void close_node(struct task *t, struct node *n)
{
    limits_free(n->limits);
    redis_close(n->redis);
    group_cancel(&n->group);
    check(group_join(t, &n->group) == 0);
}

static int take(struct task *t, struct node *n, int64_t uid, enum limit_kind kind, int64_t count)
{
    struct limit_taken taken;
    int64_t retry_after_s;
    return limit_take(t, n->limits, uid, kind, count, &taken, &retry_after_s);
}

static int64_t used(struct task *t, struct node *n, int64_t uid, enum limit_kind kind,
                    enum limit_period p)
{
    struct limit_look looks[LIMIT_PERIODS];
    check(limit_look(t, n->limits, uid, kind, looks) == 0);
    return looks[p].used;
}

/* --- many at once --- */

struct crowd {
    struct node *node;
    int64_t *left, *taken, *refused, *other;
};

static void submit(struct task *t, void *arg)
{
    const struct crowd *c = arg;
    while ((*c->left)-- > 0) {
        struct task_scope scope = task_scope(t);
        int err = take(t, c->node, 7, LIMIT_TRAINING_PLAN, 1);
        *(err == 0 ? c->taken : err == ERR_RATE ? c->refused : c->other) += 1;
        task_scope_end(t, scope);
    }
}

/* The limit of the month: its end is not likely to come meanwhile. */
static void test_crowd(struct task *t, void *arg)
{
    (void)arg;
    struct node nodes[2];
    struct crowd crowds[2];
    struct group g;
    int64_t left = CALLS, taken = 0, refused = 0, other = 0;
    config.limit_training_plan = (struct config_limits){.month = MOST};
    open_empty(t, &nodes[0]);
    open_node(t, &nodes[1]);
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < 2; i++)
        crowds[i] = (struct crowd){&nodes[i], &left, &taken, &refused, &other};
    for (size_t i = 0; i < TASKS; i++)
        check(task_go(&g, "submit", submit, &crowds[i % 2]) == 0);
    check(group_join(t, &g) == 0);
    is_int(taken, MOST, "%d calls of %d tasks on two nodes: as many as the limit", CALLS, TASKS);
    is_int(refused, CALLS - MOST, "all others are refused");
    is_int(other, 0, "and none failed otherwise");
    is_int(used(t, &nodes[1], 7, LIMIT_TRAINING_PLAN, LIMIT_MONTH), MOST, "so many are counted");
    is_int(*metric(metrics, METRIC_COUNTER, "millrace_limit_rejections_total",
                   "kind=\"training_plan\",period=\"month\"", ""),
           CALLS - MOST, "and so many refusals");
    is_int(used(t, &nodes[0], 7, LIMIT_NUTRITION_PLAN, LIMIT_MONTH), 0, "of this kind alone");
    is_int(take(t, &nodes[0], 8, LIMIT_TRAINING_PLAN, 1), 0, "another user may go on");
    close_node(t, &nodes[0]);
    close_node(t, &nodes[1]);
}

/* --- all or none --- */

static void test_all_or_none(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct limit_taken taken;
    int64_t retry_after_s = 0;
    config.limit_training_plan = (struct config_limits){.day = 3, .month = 5};
    open_empty(t, &n);
    is_int(take(t, &n, 7, LIMIT_TRAINING_PLAN, 4), ERR_RATE, "more at once than a day may have");
    ok(strstr(task_error(t), "3 training plans in a day, and these are 4"), "says so: %s",
       task_error(t));
    is_int(limit_take(t, n.limits, 7, LIMIT_TRAINING_PLAN, 2, &taken, &retry_after_s), 0, "two");
    is_int(take(t, &n, 7, LIMIT_TRAINING_PLAN, 2), ERR_RATE, "two more are one too many");
    is_int(used(t, &n, 7, LIMIT_TRAINING_PLAN, LIMIT_DAY), 2, "refused ones are not counted");
    is_int(used(t, &n, 7, LIMIT_TRAINING_PLAN, LIMIT_MONTH), 2, "nor in the period with room");
    is_int(take(t, &n, 7, LIMIT_TRAINING_PLAN, 1), 0, "a single one fits");
    is_int(limit_take(t, n.limits, 7, LIMIT_TRAINING_PLAN, 1, &taken, &retry_after_s), ERR_RATE,
           "the day is full");
    ok(strstr(task_error(t), "3 of the 3 training plans that you may start in a day; the next day "
                             "begins at 20"),
       "the sentence names limit and end: %s", task_error(t));
    ok(retry_after_s > 0 && retry_after_s <= 86400, "and a repeat may come then: %lld s",
       (long long)retry_after_s);
    limit_return(t, n.limits, &taken);
    is_int(used(t, &n, 7, LIMIT_TRAINING_PLAN, LIMIT_DAY), 1, "given back: one is left of three");
    is_int(take(t, &n, 7, LIMIT_TRAINING_PLAN, 2), 0, "and there is room again");
    config.limit_training_plan = (struct config_limits){0};
    is_int(take(t, &n, 7, LIMIT_TRAINING_PLAN, 100000), 0, "without limits any number");
    const struct redis_reply *r;
    struct str key = key_user_limits(task_arena(t), 7);
    check(redis_call(t, n.redis, key, &r, STR("TTL"), key) == 0);
    is_int(r->integer, -1, "no native TTL: it cannot be evicted");
    close_node(t, &n);
}

/* --- Redis away --- */

static void test_away(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct limit_taken taken;
    int64_t retry_after_s;
    config.limit_training_plan = (struct config_limits){.day = 3};
    open_empty(t, &n);
    check(limit_take(t, n.limits, 7, LIMIT_TRAINING_PLAN, 1, &taken, &retry_after_s) == 0);
    store_redis_kill(&store);
    is_int(take(t, &n, 7, LIMIT_TRAINING_PLAN, 1), ERR_UNAVAILABLE, "nothing is free meanwhile");
    (void)task_fail(t, ERR_FUNDS, "the balance is too low");
    limit_return(t, n.limits, &taken);
    is_str(str_of(task_error(t)), STR("the balance is too low"), "the cause stays what it was");
    close_node(t, &n);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(test_crowd, NULL, true);
    tap_task(test_all_or_none, NULL, true);
    tap_task(test_away, NULL, true);
    metrics_close(metrics);
    store_redis_stop(&store);
    return tap_done();
}
