/* The model of Redis against Redis itself: both are told the same, in commands and in scripts, by
 * chance from a seed, and must answer the same. */
#include "tests/redis_model.h"

#include <stdio.h>

#include "base/log.h"
#include "engine/store/scripts.h"
#include "tests/store.h"
#include "tests/tap.h"

#define ROUNDS 4000
#define SEED   7

static struct store_redis store;
static struct redis_model *model;

/* --- both --- */

static bool same(const struct redis_reply *a, const struct redis_reply *b)
{
    bool alike = a->type == b->type && a->integer == b->integer && a->count == b->count;
    if (alike && (a->type == REDIS_STRING || a->type == REDIS_STATUS))
        alike = str_eq(a->str, b->str);
    for (size_t i = 0; alike && a->type == REDIS_ARRAY && i < a->count; i++)
        alike = same(a->items[i], b->items[i]);
    return alike;
}

static void show(const char *who, const struct redis_reply *r, int depth)
{
    printf("# %s%*s%d %lld \"%.*s\"\n", who, 2 * depth, " ", r->type, (long long)r->integer,
           STR_ARG(r->str));
    for (size_t i = 0; r->type == REDIS_ARRAY && i < r->count; i++)
        show(who, r->items[i], depth + 1);
}

static bool agree(const struct redis_reply *theirs, const struct redis_reply *ours, size_t argc,
                  const struct str *argv)
{
    if (same(theirs, ours))
        return true;
    for (size_t i = 0; i < argc; i++)
        printf("# %.*s\n", STR_ARG(argv[i]));
    show("Redis", theirs, 1);
    show("model", ours, 1);
    return false;
}

static bool say(struct task *t, struct redis *r, size_t argc, const struct str *argv)
{
    const struct redis_reply *reply;
    check(redis_argv(t, r, argv[1], argc, argv, &reply) == 0);
    return agree(reply, redis_model_argv(model, task_arena(t), argc, argv), argc, argv);
}

static bool run(struct task *t, struct redis *r, const struct redis_script *s, size_t keys,
                size_t argc, const struct str *argv)
{
    const struct redis_reply *reply;
    check(redis_script_run(t, r, s, argv[0], keys, argc, argv, &reply) == 0);
    return agree(reply, redis_model_script(model, task_arena(t), s, keys, argc, argv), argc, argv);
}

/* --- by chance --- */

static struct str word(struct task *t, const char *of, uint64_t count)
{
    uint64_t n = loop_random(task_loop(t)) % count;
    return str_printf(task_arena(t), "%s%llu", of, (unsigned long long)n);
}

static struct str small(struct task *t)
{
    return str_int(task_arena(t), (int64_t)(loop_random(task_loop(t)) % 9) - 3);
}

/* Collections in an order of their own are asked one by one. */
static bool one(struct task *t, struct redis *r)
{
    struct str k = word(t, "", 2), m = word(t, "m", 5), n = word(t, "m", 5);
    struct arena *a = task_arena(t);
    struct str s = STR_JOIN(a, STR("s"), k), h = STR_JOIN(a, STR("h"), k);
    struct str l = STR_JOIN(a, STR("l"), k), z = STR_JOIN(a, STR("z"), k);
    struct str e = STR_JOIN(a, STR("e"), k);
    const struct str commands[][6] = {
        {STR("SET"), s, small(t)},
        {STR("SET"), s, small(t), STR("NX"), STR("PX"), STR("100000")},
        {STR("GET"), s},
        {STR("INCRBY"), s, small(t)},
        {STR("DECRBY"), s, small(t)},
        {STR("EXISTS"), word(t, "l", 2)},
        {STR("DEL"), word(t, "s", 2)},
        {STR("UNLINK"), h, z},
        {STR("PEXPIRE"), l, STR("100000")},
        {STR("PEXPIRE"), s, STR("100000"), STR("NX")},
        {STR("PERSIST"), s},
        {STR("HSET"), h, m, small(t)},
        {STR("HSET"), h, m, small(t), n, small(t)},
        {STR("HGET"), h, m},
        {STR("HMGET"), h, m, n, STR("none")},
        {STR("HDEL"), h, m, n},
        {STR("HEXISTS"), h, m},
        {STR("HINCRBY"), h, m, small(t)},
        {STR("HLEN"), h},
        {STR("LPUSH"), l, m, n},
        {STR("RPUSH"), l, m, n},
        {STR("LPOP"), l},
        {STR("LLEN"), l},
        {STR("LRANGE"), l, small(t), small(t)},
        {STR("SADD"), e, m, n},
        {STR("SREM"), e, m},
        {STR("SISMEMBER"), e, m},
        {STR("SMISMEMBER"), e, m, n},
        {STR("ZADD"), z, small(t), m},
        {STR("ZADD"), z, STR("NX"), small(t), m},
        {STR("ZADD"), z, STR("GT"), small(t), m},
        {STR("ZREM"), z, m, n},
        {STR("ZRANGE"), z, small(t), small(t)},
        {STR("ZRANGE"), z, small(t), small(t), STR("WITHSCORES")},
        {STR("ZRANGEBYSCORE"), z, STR("-inf"), small(t)},
        {STR("ZSCORE"), z, m},
    };
    const struct str *c =
        commands[loop_random(task_loop(t)) % (sizeof commands / sizeof *commands)];
    size_t argc = 0;
    while (argc < 6 && c[argc].p)
        argc++;
    return say(t, r, argc, c);
}

static void test_commands(struct task *t, struct redis *r)
{
    bool held = true;
    for (int i = 0; held && i < ROUNDS; i++) {
        struct task_scope scope = task_scope(t);
        held = one(t, r);
        task_scope_end(t, scope);
    }
    ok(held, "%d commands by chance are answered as Redis answers them", ROUNDS);
}

/* --- scripts --- */

static const char numbers[] =
    "local a = redis.call('HSET', KEYS[1], 'n', 12, 'f', 1.5, 'b', 2^60)\n"
    "local t = redis.call('HMGET', KEYS[1], 'n', 'f', 'b', 'none')\n"
    "return {a, 3.99, -3.99, t[1], t[2], t[3], t[4], true, t, 'x', nil, 1}";
static const struct redis_script numbers_script = {"numbers", {numbers, sizeof numbers - 1}, false};

static const char states[] =
    "redis.call('SET', KEYS[1], 'x')\n"
    "return {redis.call('SET', KEYS[1], 'y').ok, redis.call('GET', KEYS[2]) == false,\n"
    "        tonumber(redis.call('INCRBY', KEYS[3], 5)) + 1, #redis.call('LRANGE', KEYS[2], 0, "
    "-1)}";
static const struct redis_script script_states = {"states", {states, sizeof states - 1}, false};

static const char sums[] = "local v, next = struct.unpack('>I4', ARGV[1], 3)\n"
                           "return {bit.tohex(bit.bxor(v, 4503599627370498 % 4294967296)), next,\n"
                           "        bit.bxor(struct.unpack('>I4', ARGV[1], 1), 1), bit.tohex(0)}";
static const struct redis_script script_sums = {"sums", {sums, sizeof sums - 1}, false};

static void test_values(struct task *t, struct redis *r)
{
    const struct str key[] = {STR("script"), STR("none"), STR("count")};
    ok(run(t, r, &numbers_script, 1, 1, key), "numbers and tables come out as Redis has them");
    const struct str other[] = {STR("another"), STR("none"), STR("count")};
    ok(run(t, r, &script_states, 3, 3, other), "and so do states, absence and what is computed");
    const struct str bytes[] = {STR("any"), STR("\xff\x00\xfe\x01\x02\x80")};
    ok(run(t, r, &script_sums, 1, 2, bytes), "and checksums");
}

/* A struct script begins with its struct redis_script; some are one themselves. */
#define REAL(name) ((const struct redis_script *)(const void *)&script_##name)

static struct str any_state(struct task *t)
{
    static const char *const names[] = {"QUEUED", "RUNNING", "PAUSED", "DONE", "CANCELLED"};
    return str_of(names[loop_random(task_loop(t)) % 5]);
}

/* Units of one run, as workers and users have them. */
static bool one_script(struct task *t, struct redis *r)
{
    const struct str status = STR("status"), pending = STR("pending"), inflight = STR("inflight");
    struct str unit = word(t, "u", 6), lease = word(t, "w", 3), other = word(t, "w", 3);
    switch (loop_random(task_loop(t)) % 8) {
    case 0:
        return run(t, r, REAL(units_put), 3, 6,
                   (const struct str[]){status, pending, inflight, STR("u0"), STR("u1"), unit});
    case 1:
        return run(t, r, REAL(unit_give_back), 4, 10,
                   (const struct str[]){status, pending, inflight, STR("vain"), unit, lease,
                                        STR("1"), STR("u1"), other, STR("0")});
    case 2:
        return run(t, r, REAL(run_line_up), 2, 5,
                   (const struct str[]){STR("queue"), STR("running"), word(t, "r", 2), small(t),
                                        word(t, "", 2)});
    case 3:
        return run(t, r, REAL(run_admit), 2, 4,
                   (const struct str[]){STR("queue"), STR("running"), word(t, "r", 2), small(t)});
    case 4:
        return run(t, r, REAL(workers_claim), 1, 10,
                   (const struct str[]){STR("workers"), STR("5"), lease, STR("runs"), STR("2"),
                                        STR("w0"), STR("w1"), STR("q"), word(t, "", 3),
                                        word(t, "", 6)});
    case 5:
        return say(t, r, 4, (const struct str[]){STR("HSET"), status, STR("state"), any_state(t)});
    case 6:
        return say(t, r, 4, (const struct str[]){STR("HSET"), inflight, unit, lease});
    default:
        return say(t, r, 4, (const struct str[]){STR("LRANGE"), pending, STR("0"), STR("-1")});
    }
}

static void test_scripts(struct task *t, struct redis *r)
{
    bool held = true;
    for (int i = 0; held && i < ROUNDS; i++) {
        struct task_scope scope = task_scope(t);
        held = one_script(t, r);
        if (i % 50 == 0) /* a run that has units is not given any */
            held = held &&
                   say(t, r, 3, (const struct str[]){STR("DEL"), STR("status"), STR("pending")});
        task_scope_end(t, scope);
    }
    ok(held, "%d scripts by chance are answered as Redis answers them", ROUNDS);
}

static void test_mutation(struct arena *a)
{
    const struct str key[] = {STR("mutant"), STR("none"), STR("count")};
    redis_model_mutate(model, "states", "+ 1", "+ 100");
    const struct redis_reply *mutant = redis_model_script(model, a, &script_states, 3, 3, key);
    redis_model_mutate(model, "states", NULL, NULL);
    const struct redis_reply *self = redis_model_script(model, a, &script_states, 3, 3, key);
    is_int(mutant->items[2]->integer - self->items[2]->integer, 94,
           "a script is another, and back");
}

static void test_stream(struct task *t)
{
    struct arena *a = task_arena(t);
    redis_model_clock(model, 1000);
    const struct str add[] = {STR("XADD"), STR("news"), STR("MAXLEN"), STR("~"),
                              STR("2"),    STR("*"),    STR("run"),    STR("r")};
    for (int i = 0; i < 3; i++)
        (void)redis_model_argv(model, a, 8, add);
    const struct redis_reply *r = redis_model_call(model, a, STR("XRANGE"), STR("news"), STR("-"),
                                                   STR("+"), STR("COUNT"), STR("10"));
    is_int((int64_t)r->count, 2, "a stream is cut");
    is_str(r->items[1]->items[0]->str, STR("1000-2"), "its ids grow within a millisecond");
    r = redis_model_call(model, a, STR("XRANGE"), STR("news"), STR("(1000-1"), STR("+"),
                         STR("COUNT"), STR("10"));
    is_int((int64_t)r->count, 1, "and is read from behind one of them");
}

static void test_time(struct task *t)
{
    struct arena *a = task_arena(t);
    redis_model_clock(model, 5000);
    (void)redis_model_call(model, a, STR("SET"), STR("lock"), STR("x"), STR("PX"), STR("100"));
    redis_model_clock(model, 5099);
    ok(redis_model_call(model, a, STR("EXISTS"), STR("lock"))->integer == 1, "a key lives");
    redis_model_clock(model, 5100);
    ok(redis_model_call(model, a, STR("EXISTS"), STR("lock"))->integer == 0, "until its time");
}

static void test_restart(struct task *t)
{
    struct arena *a = task_arena(t);
    redis_model_clear(model, 1);
    ok(!redis_model_restore(model, 2), "nothing was saved");
    (void)redis_model_call(model, a, STR("RPUSH"), STR("l"), STR("a"), STR("b"));
    redis_model_save(model);
    (void)redis_model_call(model, a, STR("LPOP"), STR("l"));
    (void)redis_model_call(model, a, STR("SET"), STR("s"), STR("1"));
    ok(redis_model_restore(model, 3), "what was saved comes back");
    is_int(redis_model_call(model, a, STR("LLEN"), STR("l"))->integer, 2, "as it was");
    is_int(redis_model_call(model, a, STR("EXISTS"), STR("s"))->integer, 0, "and nothing else");
    is_str(redis_model_run_id(model), STR("0000000000000000000000000000000000000003"),
           "in another server");
}

static void test(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    group_init(&g, task_loop(t));
    struct redis *r =
        redis_open(&g, &(struct redis_options){.url = store.url_unix, .name = "test"});
    test_commands(t, r);
    test_values(t, r);
    test_scripts(t, r);
    test_mutation(task_arena(t));
    test_stream(t);
    test_time(t);
    test_restart(t);
    redis_close(r);
    check(group_join(t, &g) == 0);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    model = redis_model_new();
    struct loop *l = loop_new(&(struct loop_options){.seed = SEED});
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "test", test, NULL) == 0);
    loop_run(l);
    loop_free(l);
    redis_model_free(model);
    store_redis_stop(&store);
    return tap_done();
}
