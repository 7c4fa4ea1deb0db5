#include "engine/store/role.h"

#include "base/buf.h"
#include "base/log.h"
#include "tests/store.h"
#include "tests/tap.h"

#define EACH_MS 20
#define LOCK_MS 10000 /* long: a test that waits for its end would fail */

static struct store_redis store;
static const struct str lock_key = {"the:role", 8};

/* One of two nodes that have the same role. */
struct side {
    struct group connection, group;
    struct redis *redis;
    struct roles *roles;
    bool draining;
    int result; /* of its rounds */
    int rounds, elsewhere;
};

static int count_round(struct task *t, void *arg, struct role_turn *turn)
{
    struct side *s = arg;
    s->rounds++;
    check(turn->locked);
    return s->result < 0 ? task_fail(t, s->result, "the store is away") : s->result;
}

static void note_elsewhere(void *arg)
{
    ((struct side *)arg)->elsewhere++;
}

static void open_side(struct task *t, struct side *s)
{
    *s = (struct side){.result = 0};
    group_init(&s->connection, task_loop(t));
    group_init(&s->group, task_loop(t));
    s->redis =
        redis_open(&s->connection, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    check(s->redis);
    s->roles = roles_new(s->redis, &s->draining);
}

static void start(struct side *s)
{
    const struct role role = {.name = "counter",
                              .round = count_round,
                              .arg = s,
                              .each_ms = EACH_MS,
                              .lock = &lock_key,
                              .lock_ms = LOCK_MS,
                              .complaint = "nothing is counted",
                              .elsewhere = note_elsewhere};
    roles_go(s->roles, &s->group, &role);
}

static void end(struct task *t, struct side *s)
{
    group_cancel(&s->group);
    check(group_join(t, &s->group) == 0);
    roles_part(t, s->roles);
}

static void close_side(struct task *t, struct side *s)
{
    roles_free(s->roles);
    redis_close(s->redis);
    check(group_join(t, &s->connection) == 0);
}

static int64_t times(struct str text, struct str words)
{
    int64_t n = 0;
    for (ptrdiff_t at; (at = str_find(text, words)) >= 0; n++)
        text = str_from(text.p + at + 1, text.n - (size_t)at - 1);
    return n;
}

/* Up to a second, which is far less than the lock lasts. */
static bool wait_rounds(struct task *t, const struct side *s, int count)
{
    for (int i = 0; i < 100 && s->rounds < count; i++)
        check(task_sleep(t, 10) == 0);
    return s->rounds >= count;
}

static void clear(struct task *t, struct side *s)
{
    check(redis_call(t, s->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
}

/* The first has the lock, the second waits for it. */
static void open_two(struct task *t, struct side *one, struct side *two)
{
    open_side(t, one);
    open_side(t, two);
    clear(t, one);
    start(one);
    check(wait_rounds(t, one, 2));
    start(two);
    check(task_sleep(t, 5 * EACH_MS) == 0);
}

static void close_two(struct task *t, struct side *one, struct side *two)
{
    end(t, one);
    end(t, two);
    close_side(t, one);
    close_side(t, two);
}

static void test_one_at_a_time(struct task *t, void *arg)
{
    (void)arg;
    struct side one, two;
    open_two(t, &one, &two);
    is_int(two.rounds, 0, "a role with a lock runs on one node");
    ok(two.elsewhere > 0, "the other one is told that it is elsewhere");
    int before = one.rounds;
    ok(wait_rounds(t, &one, before + 3), "the holder keeps the lock from round to round");
    close_two(t, &one, &two);
}

static void test_failure(struct task *t, void *arg)
{
    (void)arg;
    struct side one, two;
    struct buf lines;
    buf_init(&lines);
    open_two(t, &one, &two);
    log_capture(&lines);
    one.result = ERR_UNAVAILABLE;
    ok(wait_rounds(t, &two, 1), "a round that fails lets the lock go, and another node goes on");
    one.result = 0;
    end(t, &two);
    int before = one.rounds;
    ok(wait_rounds(t, &one, before + 1), "and back");
    log_capture(NULL);
    is_int(times(buf_str(&lines), STR("nothing is counted: the store is away")), 1,
           "the log says once that it fails");
    is_int(times(buf_str(&lines), STR("works again")), 1, "and once that it works again");
    buf_release(&lines);
    close_two(t, &one, &two);
}

/* Rounds that try nothing, between those that fail. */
static void test_idle(struct task *t, void *arg)
{
    (void)arg;
    struct side one;
    struct buf lines;
    buf_init(&lines);
    open_side(t, &one);
    clear(t, &one);
    log_capture(&lines);
    start(&one);
    for (int i = 0; i < 3; i++) {
        one.result = ERR_UNAVAILABLE;
        check(wait_rounds(t, &one, one.rounds + 2));
        one.result = ROLE_IDLE;
        check(wait_rounds(t, &one, one.rounds + 2));
    }
    is_int(times(buf_str(&lines), STR("the store is away")), 1, "they are no success: one line");
    is_int(times(buf_str(&lines), STR("works again")), 0, "and none that it works again");
    one.result = 0;
    check(wait_rounds(t, &one, one.rounds + 2));
    log_capture(NULL);
    is_int(times(buf_str(&lines), STR("works again")), 1, "until it does");
    buf_release(&lines);
    end(t, &one);
    close_side(t, &one);
}

static void test_drain(struct task *t, void *arg)
{
    (void)arg;
    struct side one, two;
    open_two(t, &one, &two);
    one.draining = true;
    ok(wait_rounds(t, &two, 1), "a node that drains lets the lock go");
    int before = one.rounds;
    check(task_sleep(t, 5 * EACH_MS) == 0);
    is_int(one.rounds, before, "and does no more rounds");
    close_two(t, &one, &two);
}

static void test_end(struct task *t, void *arg)
{
    (void)arg;
    struct side one, two;
    open_two(t, &one, &two);
    end(t, &one);
    ok(wait_rounds(t, &two, 1), "a node that ends lets the lock go");
    end(t, &one); /* again: nothing is held, the other one's lock stays */
    int before = two.rounds;
    ok(wait_rounds(t, &two, before + 2), "and does not take it from the next holder");
    close_two(t, &one, &two);
}

/* Redis dies, and comes back with the lock that it had. */
static void test_restart(struct task *t, void *arg)
{
    (void)arg;
    struct side one;
    const struct redis_reply *token;
    char answer[8];
    open_side(t, &one);
    clear(t, &one);
    start(&one);
    check(wait_rounds(t, &one, 2));
    check(redis_call(t, one.redis, lock_key, &token, STR("GET"), lock_key) == 0);
    const char *line =
        arena_printf(task_arena(t), "SET %s %.*s PX %d", lock_key.p, STR_ARG(token->str), LOCK_MS);
    store_redis_kill(&store);
    one.result = ERR_UNAVAILABLE;
    check(wait_rounds(t, &one, one.rounds + 1));
    check(task_sleep(t, 3 * EACH_MS) == 0);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    check(store_redis_say(&store, line, answer, sizeof answer)); /* the loop does not run yet */
    one.result = 0;
    int before = one.rounds;
    ok(wait_rounds(t, &one, before + 2), "its holder goes on, and does not wait for its end");
    end(t, &one);
    ok(store_redis_say(&store, "EXISTS the:role", answer, sizeof answer) && answer[1] == '0',
       "and lets it go in the end");
    close_side(t, &one);
}

static void test_more(struct task *t, void *arg)
{
    (void)arg;
    struct side one;
    open_side(t, &one);
    clear(t, &one);
    one.result = ROLE_MORE;
    start(&one);
    check(wait_rounds(t, &one, 1));
    int before = one.rounds;
    check(task_sleep(t, 5 * EACH_MS) == 0);
    ok(one.rounds > before + 20, "more that waits is not kept waiting: %d rounds",
       one.rounds - before);
    end(t, &one);
    close_side(t, &one);
}

int main(void)
{
    log_setup(LOG_INFO, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    tap_task(test_one_at_a_time, NULL, true);
    tap_task(test_failure, NULL, true);
    tap_task(test_idle, NULL, true);
    tap_task(test_drain, NULL, true);
    tap_task(test_end, NULL, true);
    tap_task(test_restart, NULL, true);
    tap_task(test_more, NULL, true);
    store_redis_stop(&store);
    return tap_done();
}
