#include "engine/store/lock.h"

#include "base/log.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct store_redis store;

struct fixture {
    struct group group;
    struct redis *redis;
};

static void open_redis(struct task *t, struct fixture *f)
{
    group_init(&f->group, task_loop(t));
    f->redis = redis_open(&f->group, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    check(f->redis && redis_call(t, f->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
}

static void close_redis(struct task *t, struct fixture *f)
{
    redis_close(f->redis);
    check(group_join(t, &f->group) == 0);
}

static int64_t ask(struct task *t, struct redis *r, const char *word, struct str key)
{
    const struct redis_reply *reply;
    check(redis_call(t, r, key, &reply, str_of(word), key) == 0);
    return reply->integer;
}

static const struct str key = {"the:lock", 8};

static void test_take(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_redis(t, &f);
    struct lock one, two = {.key = STR("untouched")};
    is_int(lock_take(t, f.redis, key, 20000, &one), 0, "a free lock is taken");
    is_int((int64_t)lock_token(&one).n, LOCK_TOKEN_BYTES - 1, "with a token");
    int64_t left = ask(t, f.redis, "PTTL", key);
    ok(left > 15000 && left <= 20000, "it ends by itself");
    is_int(lock_take(t, f.redis, key, 20000, &two), ERR_BUSY, "a taken one is not");
    ok(str_find(str_of(task_error(t)), key) >= 0, "and says which: %s", task_error(t));
    is_str(two.key, STR("untouched"), "*out is left alone");
    is_int(lock_keep(t, &one, 60000), 0, "its holder keeps it");
    ok(ask(t, f.redis, "PTTL", key) > 50000, "for longer");
    lock_drop(t, &one);
    is_int(ask(t, f.redis, "EXISTS", key), 0, "and lets go");
    lock_drop(t, &one);
    is_int(lock_take(t, f.redis, key, 20000, &two), 0, "then it can be taken");
    ok(!str_eq(lock_token(&one), lock_token(&two)), "with another token");
    close_redis(t, &f);
}

static void test_expired(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_redis(t, &f);
    struct lock slow, next;
    check(lock_take(t, f.redis, key, 30, &slow) == 0);
    check(task_sleep(t, 60) == 0);
    is_int(lock_keep(t, &slow, 1000), ERR_CONFLICT, "an expired lock cannot be kept");
    is_int(ask(t, f.redis, "EXISTS", key), 0, "nor comes back by that");
    check(lock_take(t, f.redis, key, 20000, &next) == 0);
    is_int(lock_keep(t, &slow, 90000), ERR_CONFLICT, "nor can one that has another holder");
    ok(ask(t, f.redis, "PTTL", key) <= 20000, "whose lease stays as it was");
    lock_drop(t, &slow);
    is_int(ask(t, f.redis, "EXISTS", key), 1, "nor dropped");
    is_int(lock_keep(t, &next, 1000), 0, "its holder has it still");
    close_redis(t, &f);
}

static void test_unavailable(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_redis(t, &f);
    struct lock l;
    check(lock_take(t, f.redis, key, 20000, &l) == 0);
    store_redis_kill(&store);
    check(redis_call(t, f.redis, STR_NULL, NULL, STR("PING")) != 0);
    ok(lock_keep(t, &l, 1000) == ERR_UNAVAILABLE, "without Redis nothing is kept");
    (void)task_fail(t, ERR_INVALID, "the first thing that went wrong");
    lock_drop(t, &l);
    is_str(str_of(task_error(t)), STR("the first thing that went wrong"),
           "a lock that cannot be dropped hides nothing");
    close_redis(t, &f);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    tap_task(test_take, NULL, true);
    tap_task(test_expired, NULL, true);
    tap_task(test_unavailable, NULL, true);
    store_redis_stop(&store);
    return tap_done();
}
