/* Units on a real Redis: leases, and that only the holder of a lease can finish its unit. */
#include "engine/runs/units.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/store/keys.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct store_redis store;

struct node {
    struct group links;
    struct redis *redis;
    uint64_t incarnation, number;
};

static void open_node(struct task *t, struct node *n, uint64_t incarnation)
{
    *n = (struct node){.incarnation = incarnation};
    group_init(&n->links, task_loop(t));
    n->redis =
        redis_open(&n->links, &(struct redis_options){.url = store.url_unix, .name = "test"});
    check(n->redis && redis_call(t, n->redis, STR_NULL, NULL, STR("PING")) == 0);
}

static void close_node(struct task *t, struct node *n)
{
    redis_close(n->redis);
    check(group_join(t, &n->links) == 0);
}

static const struct run_id run = {42, {"run", 3}};

#define say(t, n, ...) check(redis_call((t), (n)->redis, STR_NULL, NULL, __VA_ARGS__) == 0)

static void begin(struct task *t, struct node *n, size_t count)
{
    struct str units[1000];
    say(t, n, STR("FLUSHALL"));
    say(t, n, STR("HSET"), key_query_status(task_arena(t), run.uid, run.qid), STR("state"),
        STR("QUEUED"));
    for (size_t i = 0; i < count; i++)
        units[i] = str_printf(task_arena(t), "u%zu", i);
    check(units_put(t, n->redis, run, units, count) == 0);
}

static enum unit_found take(struct task *t, struct node *n, struct unit *u)
{
    enum unit_found found;
    struct unit_claim c = {n->incarnation, ++n->number, false};
    check(unit_take(t, n->redis, run, &c, &found, u) == 0);
    return found;
}

static enum unit_holder only_this_one(const void *arg, uint64_t incarnation, uint64_t number)
{
    const struct unit *u = arg;
    char lease[UNIT_LEASE_BYTES];
    snprintf(lease, sizeof lease, "%016" PRIx64 ":%" PRIu64, incarnation, number);
    return strcmp(lease, u->lease) == 0 ? UNIT_LEFT_IN_VAIN : UNIT_HELD;
}

/* Its worker has left: how many went back. */
static int64_t leave(struct task *t, struct node *n, const struct unit *u)
{
    int64_t returned = -1;
    check(units_reap(t, n->redis, run, only_this_one, u, &returned) == 0);
    return returned;
}

static struct str field(struct task *t, struct node *n, const char *name)
{
    const struct redis_reply *r;
    struct str key = key_query_status(task_arena(t), run.uid, run.qid);
    check(redis_call(t, n->redis, key, &r, STR("HGET"), key, str_of(name)) == 0);
    return r->type == REDIS_STRING ? r->str : STR("");
}

static int64_t count(struct task *t, struct node *n, const char *word, struct str key)
{
    const struct redis_reply *r;
    check(redis_call(t, n->redis, key, &r, str_of(word), key) == 0);
    return r->integer;
}

static void test_life(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit a, b, c;
    bool last = true;
    open_node(t, &n, 1);
    begin(t, &n, 2);
    is_str(field(t, &n, "state"), STR("RUNNING"), "a run with units runs");
    struct str other = STR("x");
    ok(units_put(t, n.redis, run, &other, 1) == 0 &&
           count(t, &n, "LLEN", key_pending(task_arena(t), run.uid, run.qid)) == 2,
       "it is split once");
    ok(take(t, &n, &a) == UNIT_FOUND && str_eq(a.name, STR("u0")), "the first unit");
    ok(a.fresh, "of whose papers none can have a result");
    ok(take(t, &n, &b) == UNIT_FOUND && str_eq(b.name, STR("u1")), "the second");
    is_int(take(t, &n, &c), UNIT_NONE, "no more");
    is_int(leave(t, &n, &a), 1, "one goes back");
    is_int(leave(t, &n, &a), 0, "once");
    ok(unit_finish(t, n.redis, run, &b, &last) == 0 && !last, "the other is finished");
    is_int(unit_finish(t, n.redis, run, &b, &last), ERR_CONFLICT, "once");
    ok(take(t, &n, &c) == UNIT_FOUND && str_eq(c.name, STR("u0")), "what came back is taken again");
    ok(!c.fresh, "and its papers may have results");
    is_int(unit_finish(t, n.redis, run, &a, &last), ERR_CONFLICT, "not under the old lease");
    ok(unit_finish(t, n.redis, run, &c, &last) == 0 && last, "but under the new one: the last");
    is_str(field(t, &n, "state"), STR("DONE"), "so the run is done");
    is_int(take(t, &n, &c), UNIT_TERMINATED, "and gives out nothing");
    is_int(units_put(t, n.redis, run, &other, 1), ERR_CONFLICT, "nor can it start");
    close_node(t, &n);
}

/* A run that tries its failed papers again, or was brought back from MySQL, is split while it has
 * results. */
static void test_split_anew(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit u;
    open_node(t, &n, 1);
    begin(t, &n, 1);
    struct str status = key_query_status(task_arena(t), run.uid, run.qid), unit = STR("u0");
    say(t, &n, STR("HDEL"), status, STR("total_blocks"));
    say(t, &n, STR("HSET"), status, STR("finished"), STR("1"));
    check(units_put(t, n.redis, run, &unit, 1) == 0);
    ok(take(t, &n, &u) == UNIT_FOUND && !u.fresh,
       "split while there are results: nothing is fresh");
    close_node(t, &n);
}

static void test_signals(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit u, v;
    bool last;
    open_node(t, &n, 1);
    begin(t, &n, 3);
    struct arena *a = task_arena(t);
    struct str pause = key_pause_signal(a, run.uid, run.qid);
    struct str end = key_terminate_signal(a, run.uid, run.qid);
    struct str status = key_query_status(a, run.uid, run.qid);
    check(take(t, &n, &u) == UNIT_FOUND);
    say(t, &n, STR("SET"), pause, STR("1"));
    is_int(take(t, &n, &v), UNIT_PAUSED, "a pause signal");
    is_int(leave(t, &n, &u), 1, "what is in hand can go back");
    say(t, &n, STR("DEL"), pause);
    check(take(t, &n, &u) == UNIT_FOUND);
    say(t, &n, STR("HSET"), status, STR("state"), STR("PAUSED"));
    is_int(take(t, &n, &v), UNIT_PAUSED, "a paused state");
    say(t, &n, STR("SET"), end, STR("1"));
    is_int(take(t, &n, &v), UNIT_TERMINATED, "terminate outranks pause");
    ok(unit_finish(t, n.redis, run, &u, &last) == 0, "a unit that was ready all the same counts");
    say(t, &n, STR("DEL"), end);
    say(t, &n, STR("HSET"), status, STR("state"), STR("RUNNING"));
    check(take(t, &n, &u) == UNIT_FOUND);
    say(t, &n, STR("HSET"), status, STR("state"), STR("CANCELLED"));
    is_int(unit_finish(t, n.redis, run, &u, &last), ERR_CONFLICT,
           "a cancelled run finishes nothing");
    int64_t waiting = count(t, &n, "LLEN", key_pending(a, run.uid, run.qid));
    is_int(leave(t, &n, &u), 1, "what was held is let go");
    is_int(count(t, &n, "LLEN", key_pending(a, run.uid, run.qid)), waiting,
           "and does not come back");
    say(t, &n, STR("DEL"), status);
    is_int(take(t, &n, &u), UNIT_TERMINATED, "a run that is gone");
    close_node(t, &n);
}

/* A reply that was lost: the script ran, and the worker asks again under the same number. */
static void test_again(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit u, v;
    enum unit_found found;
    open_node(t, &n, 1);
    begin(t, &n, 3);
    check(take(t, &n, &u) == UNIT_FOUND);
    struct unit_claim c = {n.incarnation, n.number, true};
    ok(unit_take(t, n.redis, run, &c, &found, &v) == 0 && found == UNIT_FOUND &&
           str_eq(u.name, v.name),
       "finds what it has");
    c.number++;
    ok(unit_take(t, n.redis, run, &c, &found, &v) == 0 && found == UNIT_FOUND &&
           !str_eq(u.name, v.name),
       "or takes one, if it had none");
    is_int(count(t, &n, "HLEN", key_inflight(task_arena(t), run.uid, run.qid)), 2, "no third");
    close_node(t, &n);
}

static enum unit_holder lives(const void *dead, uint64_t incarnation, uint64_t number)
{
    (void)number;
    return incarnation == *(const uint64_t *)dead ? UNIT_LEFT : UNIT_HELD;
}

static void test_reaper(struct task *t, void *arg)
{
    (void)arg;
    struct node live, dead;
    struct unit mine, lost, again;
    int64_t returned;
    bool last;
    open_node(t, &live, 0xabc);
    open_node(t, &dead, 0xabcd);
    begin(t, &live, 2);
    check(take(t, &live, &mine) == UNIT_FOUND && take(t, &dead, &lost) == UNIT_FOUND);
    uint64_t none = 1;
    ok(units_reap(t, live.redis, run, lives, &none, &returned) == 0 && returned == 0,
       "the living keep theirs");
    ok(units_reap(t, live.redis, run, lives, &dead.incarnation, &returned) == 0 && returned == 1,
       "of the dead it goes back");
    ok(take(t, &live, &again) == UNIT_FOUND && str_eq(again.name, lost.name), "to another worker");
    is_int(unit_finish(t, dead.redis, run, &lost, &last), ERR_CONFLICT,
           "a worker that was only slow cannot finish it");
    is_int(leave(t, &dead, &lost), 0, "nor give it back");
    ok(unit_finish(t, live.redis, run, &again, &last) == 0 && !last, "the new holder can");
    ok(unit_finish(t, live.redis, run, &mine, &last) == 0 && last, "and ends the run");
    close_node(t, &dead);
    close_node(t, &live);
}

/* Asks that may have cost something are counted while no paper of the unit gets a result. */
static void test_vain(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit u;
    open_node(t, &n, 7);
    begin(t, &n, 1);
    check(take(t, &n, &u) == UNIT_FOUND);
    ok(u.vain == 0 && unit_opened(t, n.redis, run, &u, 5) == 0 && u.vain == 0,
       "a unit that was never given back");
    for (int i = 1; i <= 3; i++) {
        check(leave(t, &n, &u) == 1 && take(t, &n, &u) == UNIT_FOUND &&
              unit_opened(t, n.redis, run, &u, 5) == 0);
        is_int(u.vain, i, "left in vain %d times", i);
    }
    int64_t returned;
    ok(units_reap(t, n.redis, run, lives, &n.incarnation, &returned) == 0 && returned == 1 &&
           take(t, &n, &u) == UNIT_FOUND && u.vain == 3,
       "not counted where no call was made");
    ok(leave(t, &n, &u) == 1 && take(t, &n, &u) == UNIT_FOUND &&
           unit_opened(t, n.redis, run, &u, 4) == 0 && u.vain == 2,
       "one of its papers has a result: the count begins anew");
    ok(leave(t, &n, &u) == 1 && take(t, &n, &u) == UNIT_FOUND &&
           unit_opened(t, n.redis, run, &u, 4) == 0 && u.vain == 3,
       "for the next one");
    close_node(t, &n);
}

struct hand {
    struct node *node;
    int *finished, *lasts;
};

static void work(struct task *t, void *arg)
{
    struct hand *h = arg;
    struct unit u;
    bool last;
    while (take(t, h->node, &u) == UNIT_FOUND) {
        if (task_yield(t) || unit_finish(t, h->node->redis, run, &u, &last))
            return;
        ++*h->finished;
        *h->lasts += last;
    }
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct group g;
    int finished = 0, lasts = 0;
    open_node(t, &n[0], 1);
    open_node(t, &n[1], 2);
    begin(t, &n[0], 500);
    struct hand hands[40];
    group_init(&g, task_loop(t));
    for (int i = 0; i < 40; i++) {
        hands[i] = (struct hand){&n[i % 2], &finished, &lasts};
        check(task_go(&g, "work", work, &hands[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    is_int(finished, 500, "forty workers of two nodes: every unit once");
    is_int(lasts, 1, "and one of them was the last");
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

/* Redis may have lost results of the unit, and kept its lease: its worker cannot know. */
static void test_restart(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct unit u, again;
    bool last = false;
    open_node(t, &n, 1);
    begin(t, &n, 2);
    check(take(t, &n, &u) == UNIT_FOUND);
    store_redis_kill(&store);
    store_redis_spawn(&store, durable);
    store_redis_await(&store);
    close_node(t, &n);
    open_node(t, &n, 1);
    n.number = 1; /* numbers are used once */
    is_int(count(t, &n, "HLEN", key_inflight(task_arena(t), run.uid, run.qid)), 1,
           "a restarted Redis still has its lease");
    is_int(unit_finish(t, n.redis, run, &u, &last), ERR_CONFLICT,
           "but what was taken before is not finished");
    ok(take(t, &n, &again) == UNIT_FOUND && !again.fresh,
       "and papers of any unit may have results: it may have come back to the list");
    check(unit_finish(t, n.redis, run, &again, &last) == 0);
    is_int(leave(t, &n, &u), 1, "it goes back");
    ok(take(t, &n, &again) == UNIT_FOUND && unit_finish(t, n.redis, run, &again, &last) == 0 &&
           last,
       "and the worker that takes it then can finish it");
    close_node(t, &n);
}

int main(void)
{
    store_redis_start(&store, durable);
    tap_task(test_life, NULL, true);
    tap_task(test_split_anew, NULL, true);
    tap_task(test_signals, NULL, true);
    tap_task(test_again, NULL, true);
    tap_task(test_reaper, NULL, true);
    tap_task(test_vain, NULL, true);
    tap_task(test_many, NULL, true);
    tap_task(test_restart, NULL, true);
    store_redis_stop(&store);
    return tap_done();
}
