/* Stores and nodes that die: no item is handed out twice, and few are used up unseen. */
#include <stdio.h>

#include "app/pool/pool_fixture.h"

#define CLIENTS 16

static void save_redis(struct task *t, struct node *n)
{
    check(redis_call(t, n->redis, STR_NULL, NULL, STR("SAVE")) == 0);
}

/* Used, but in no answer. */
static int64_t unseen(struct task *t, struct node *n, const struct tally *y)
{
    struct role_turn turn = {.locked = false};
    check(pools_fill_role(t, n->pools, &turn) == 0);
    check(pools_mark_role(t, n->pools, &turn) == 0);
    return of_status(t, n, 0) - y->items;
}

/* Pops until count items have been handed out; false: an error. */
static bool pop_some(struct task *t, struct node *n, struct tally *y, int64_t count, int64_t each)
{
    for (int64_t end = y->items + count; y->items < end;) {
        struct pool_items items;
        struct task_scope s = task_scope(t);
        int err = pop(t, n, 7, each, &items);
        if (!err)
            tally_items(t, y, &items);
        task_scope_end(t, s);
        if (err)
            return false;
    }
    return true;
}

/* One that is under way would give numbers to what is added next. */
static void await_fill(struct task *t, struct node *n, int64_t group)
{
    struct pool *x = pool_get(n->pools, titles(group));
    while (x->fills || x->fills_soon)
        check(task_sleep(t, 2) == 0);
    pool_put(x);
}

/* --- Redis is lost --- */

static void test_older(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct tally y = {.ids = map_new()};
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 10000);
    ok(pop_some(t, &n, &y, 700, 7), "items are handed out");
    save_redis(t, &n);
    ok(pop_some(t, &n, &y, 1500, 7), "and more, which Redis will forget");
    kill_redis(t, &n);
    revive_redis(t, &n);
    int64_t first = state_of(t, &n, 7, "first");
    ok(first > 0 && first < 1000, "Redis is back, and older: %lld", (long long)first);
    ok(list_length(t, &n, 7) > 1000, "with items in its list that were handed out");
    struct client c = {.node = &n, .tally = &y, .group = 7, .count = 10};
    client_task(t, &c);
    is_int(y.twice, 0, "none is handed out again");
    int64_t lost = unseen(t, &n, &y);
    ok(lost > 0 && lost <= POOL_AHEAD_MAX, "%lld of 10000 are used up unseen", (long long)lost);
    is_int(y.items + lost, 10000, "all others were handed out");
    is_int(of_status(t, &n, 0), 10000, "nothing is left");
    ok(sql_number(t, &n, "SELECT unseen FROM pool_group WHERE group_id = ?", 7) >= lost,
       "at least so many are noted");
    map_free(y.ids);
    close_node(t, &n);
}

static void test_emptied(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct tally y = {.ids = map_new()};
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 5000);
    for (int i = 0; i < 3; i++) {
        ok(pop_some(t, &n, &y, 400, 3), "items are handed out");
        check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    }
    struct client c = {.node = &n, .tally = &y, .group = 7, .count = 10};
    client_task(t, &c);
    is_int(y.twice, 0, "a Redis that was emptied hands out none again");
    int64_t lost = unseen(t, &n, &y);
    ok(lost <= 3 * POOL_AHEAD_MAX, "%lld are used up unseen", (long long)lost);
    is_int(y.items + lost, 5000, "all others were handed out");
    map_free(y.ids);
    close_node(t, &n);
}

/* A group at rest loses nothing, nor does an orderly stop. */
static void test_rest(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct role_turn turn = {.locked = false};
    struct tally y = {.ids = map_new()};
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 3000);
    ok(pop_some(t, &n, &y, 500, 5), "items are handed out");
    is_int(pools_mark_role(t, n.pools, &turn), 0, "a round");
    ok(limit_of(t, &n, 7) > 500, "a group at work may go on");
    check(task_sleep(t, 350) == 0);
    is_int(pools_mark_role(t, n.pools, &turn), 0, "a later round");
    is_int(limit_of(t, &n, 7), 500, "takes the limit back to what was handed out");
    ok(pop_some(t, &n, &y, 500, 5), "and it goes on when asked");
    pools_part(t, n.pools);
    is_int(limit_of(t, &n, 7), 1000, "so does the end of a node");
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    ok(pop_some(t, &n, &y, 2000, 5), "Redis is lost");
    is_int(y.twice, 0, "none is handed out twice");
    is_int(unseen(t, &n, &y), 0, "none is used up unseen");
    map_free(y.ids);
    close_node(t, &n);
}

/* The node dies after it gave numbers to items, before it pushes them. */
static void test_half_filled(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct role_turn turn = {.locked = false};
    struct tally y = {.ids = map_new()};
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 3000);
    ok(pop_some(t, &n, &y, 500, 5), "items are handed out");
    is_int(pools_fill_role(t, n.pools, &turn), 0, "a round");
    is_int(list_length(t, &n, 7), 2500, "the rest is in the list");
    add_items(t, &n, 7, 2, 100);
    sql_do(t, &n,
           "UPDATE titles SET status = 2, number = 3000 + SUBSTR(title, 3)"
           " WHERE batch_id = ?",
           2);
    sql_do(t, &n, "UPDATE pool_group SET numbered = numbered + ?", 100);
    is_int(pools_fill_role(t, n.pools, &turn), 0, "the next round");
    is_int(list_length(t, &n, 7), 2600, "pushes what has numbers, though the list is not low");
    ok(pop_some(t, &n, &y, 2600, 5), "all are handed out");
    is_int(y.twice, 0, "none twice");
    is_int(unseen(t, &n, &y), 0, "none is used up unseen");
    map_free(y.ids);
    close_node(t, &n);
}

/* The node dies after it gave numbers to all items, and holds the lock on filling. */
static void test_dead_filler(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct tally y = {.ids = map_new()};
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 300);
    ok(pop_some(t, &n, &y, 100, 5), "items are handed out");
    await_fill(t, &n, 7);
    struct pool *x = pool_get(n.pools, titles(7));
    check(redis_call(t, n.redis, x->list, NULL, STR("DEL"), x->list) == 0);
    struct str ms = str_int(task_arena(t), POOL_LOCK_MS);
    check(redis_call(t, n.redis, x->filling, NULL, STR("SET"), x->filling, STR("its"), STR("PX"),
                     ms) == 0);
    x->dry_ms = 0;
    pool_put(x);
    ok(pop_some(t, &n, &y, 200, 5), "pops wait until the lock counts as a dead node's");
    is_int(y.twice, 0, "none is handed out twice");
    is_int(unseen(t, &n, &y), 0, "none is used up unseen");
    map_free(y.ids);
    close_node(t, &n);
}

/* The node dies after the list was renamed in Redis, before MySQL has it. */
static void test_half_settled(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct tally y = {.ids = map_new()};
    int64_t rests = 0;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 3000);
    ok(pop_some(t, &n, &y, 500, 5), "items are handed out");
    struct pool *x = pool_get(n.pools, titles(7));
    check(SCRIPT_NUMBER(t, n.redis, pool_settle, &rests, .state = x->state, .list = x->list,
                        .name = str_of(x->name), .fresh = STR("0123456789abcdef"),
                        .ms = STR("600000"), .first = str_int(task_arena(t), x->first)) == 0);
    is_int(rests, 1, "it is renamed in Redis alone");
    pool_put(x);
    close_node(t, &n);
    open_node(t, &n);
    ok(pop_some(t, &n, &y, 2500, 5), "another node goes on");
    is_int(y.twice, 0, "none is handed out twice");
    is_int(unseen(t, &n, &y), 0, "none is used up unseen");
    map_free(y.ids);
    close_node(t, &n);
}

/* Two servers behind one address, each with a node that sees it alone. */
static void test_two_redis(struct task *t, void *arg)
{
    (void)arg;
    struct store_redis second;
    struct node n[2];
    struct group g;
    struct tally y = {.ids = map_new()};
    store_redis_start(&second, NULL);
    open_empty(t, &n[0]);
    open_node_on(t, &n[1], &second);
    add_items(t, &n[0], 7, 1, 6000);
    struct client clients[CLIENTS];
    group_init(&g, task_loop(t));
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.node = &n[i % 2], .tally = &y, .group = 7, .count = 3};
        check(task_go(&g, "client", client_task, &clients[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    is_int(y.twice, 0, "two servers at once hand out nothing twice");
    ok(y.items > 1000, "and %lld in all", (long long)y.items);
    map_free(y.ids);
    close_node(t, &n[1]);
    close_node(t, &n[0]);
    store_redis_stop(&second);
}

/* --- Redis is away --- */

static void test_away(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    struct tally y = {.ids = map_new()};
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 600);
    ok(pop_some(t, &n, &y, 100, 10), "items are handed out");
    await_fill(t, &n, 7);
    kill_redis(t, &n);
    add_items(t, &n, 7, 2, 400);
    int64_t usable = of_status(t, &n, 1);
    is_int(pop(t, &n, 7, 10, &items), 0, "without Redis MySQL hands out");
    ok(items.direct, "and says so");
    tally_items(t, &y, &items);
    is_int(of_status(t, &n, 1), usable - 10, "what was in no list");
    while (pop(t, &n, 7, 100, &items) == 0)
        tally_items(t, &y, &items);
    is_int(pop(t, &n, 7, 1, &items), ERR_UNAVAILABLE, "what is in the list has to wait");
    is_int(y.items, 100 + usable, "all else was handed out");
    is_int(y.twice, 0, "once each");
    revive_redis(t, &n);
    struct client c = {.node = &n, .tally = &y, .group = 7, .count = 10};
    client_task(t, &c);
    is_int(y.twice, 0, "and what was in the list follows");
    int64_t lost = unseen(t, &n, &y);
    ok(lost <= POOL_AHEAD_MAX && y.items + lost == 1000, "but for %lld", (long long)lost);
    map_free(y.ids);
    close_node(t, &n);
}

static void thaw_later(struct task *t, void *arg)
{
    (void)arg;
    check(task_sleep(t, 3500) == 0);
    check(kill(store.pid, SIGCONT) == 0);
}

/* It hangs: a pop that may have been done is not done again elsewhere. */
static void test_hangs(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    struct group g;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 3000);
    check(pop(t, &n, 7, 1, &items) == 0);
    group_init(&g, task_loop(t));
    check(kill(store.pid, SIGSTOP) == 0 && task_go(&g, "thaw", thaw_later, NULL) == 0);
    is_int(pop(t, &n, 7, 1, &items), ERR_UNCERTAIN, "Redis hangs: the outcome is not known");
    is_int(pop(t, &n, 7, 1, &items), 0, "the next pop");
    ok(items.direct, "is served by MySQL");
    check(group_join(t, &g) == 0);
    while (pop(t, &n, 7, 1, &items) || items.direct)
        check(task_sleep(t, 50) == 0);
    is_int(items.count, 1, "Redis hands out again when it answers");
    close_node(t, &n);
}

/* --- request ids --- */

static bool same_items(struct task *t, struct node *n, const char *request,
                       const struct pool_items *as)
{
    struct pool_items items = {.count = 0};
    int err = pop_as(t, n, 7, as->count, 1, request, &items);
    return !err && str_eq(texts(t, &items), texts(t, as));
}

static void test_requests(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    struct pool_items a, b;
    open_empty(t, &n);
    open_node(t, &other);
    add_items(t, &n, 7, 1, 3000);
    is_int(pop_as(t, &n, 7, 3, 1, "one", &a), 0, "a request with an id");
    ok(same_items(t, &n, "one", &a), "is given the same when it is repeated");
    ok(same_items(t, &other, "one", &a), "on any node");
    is_int(pop_as(t, &n, 7, 3, 2, "one", &b), 0, "another user's request of that id");
    ok(!str_eq(texts(t, &a), texts(t, &b)), "is another one");
    is_int(pop_as(t, &n, 7, 3, 1, "two", &b), 0, "and so is another id");
    ok(!str_eq(texts(t, &a), texts(t, &b)), "of the same user");
    struct str key = key_pool_request(task_arena(t), "titles", 7, 1, STR("one"));
    const struct redis_reply *r;
    check(redis_call(t, n.redis, key, &r, STR("PTTL"), key) == 0);
    ok(r->integer > POOL_REQUEST_MS - 30000 && r->integer <= POOL_REQUEST_MS, "for ten minutes");
    close_node(t, &other);
    close_node(t, &n);
}

struct repeat {
    struct node *node;
    struct str got;
    struct arena arena;
};

static void repeat_task(struct task *t, void *arg)
{
    struct repeat *r = arg;
    struct pool_items items;
    int err = pop_as(t, r->node, 7, 2, 1, "same", &items);
    r->got = str_dup(&r->arena, err ? str_of(err_name(err)) : texts(t, &items));
}

static void test_at_once(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct group g;
    struct repeat all[8];
    bool same = true;
    open_empty(t, &n[0]);
    open_node(t, &n[1]);
    add_items(t, &n[0], 7, 1, 3000);
    group_init(&g, task_loop(t));
    for (int i = 0; i < 8; i++) {
        all[i] = (struct repeat){.node = &n[i % 2]};
        arena_init(&all[i].arena);
        check(task_go(&g, "repeat", repeat_task, &all[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    for (int i = 0; i < 8; i++)
        same &= str_starts(all[i].got, STR("1-")) && str_eq(all[i].got, all[0].got);
    ok(same, "repeats that come at the same time are given the same: %.*s", STR_ARG(all[7].got));
    for (int i = 0; i < 8; i++)
        arena_release(&all[i].arena);
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

/* A task that goes on with other work as soon as it has its items. */
struct busy {
    struct node *node;
    char request[16];
    struct arena *arena;
    struct str got;
};

static void busy_pop(struct task *t, struct busy *b)
{
    struct pool_items items;
    int err = pop_as(t, b->node, 7, 2, 1, b->request, &items);
    b->got = str_dup(b->arena, err ? str_of(err_name(err)) : texts(t, &items));
}

static void __attribute__((noinline)) use_stack(void)
{
    volatile char stack[16384];
    for (size_t i = 0; i < sizeof stack; i++)
        stack[i] = 0;
}

static void busy_task(struct task *t, void *arg)
{
    busy_pop(t, arg);
    use_stack();
}

/* Several requests in one call, answered by MySQL one after the other. */
static void test_served_in_turn(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct busy all[2][12];
    bool same = true;
    struct pool_items one;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 6000);
    check(pop(t, &n, 7, 1, &one) == 0);
    await_fill(t, &n, 7);
    kill_redis(t, &n);
    for (int round = 0; round < 2; round++) {
        struct group g;
        group_init(&g, task_loop(t));
        for (int i = 0; i < 12; i++) {
            all[round][i] = (struct busy){.node = &n, .arena = task_arena(t)};
            snprintf(all[round][i].request, sizeof all[round][i].request, "r%d",
                     round ? i : i % 11);
            check(task_go(&g, "busy", busy_task, &all[round][i]) == 0);
        }
        check(group_join(t, &g) == 0);
    }
    for (int i = 0; i < 11; i++)
        same &= str_starts(all[0][i].got, STR("1-")) && str_eq(all[0][i].got, all[1][i].got);
    ok(same, "each repeat is given the same");
    ok(str_starts(all[1][11].got, STR("1-")), "and one that is new its own: %.*s",
       STR_ARG(all[1][11].got));
    revive_redis(t, &n);
    close_node(t, &n);
}

/* Two nodes, one request: MySQL is about to answer it, when the other one asks the list. */
static void test_marked(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items a, b;
    int64_t left = 0;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 9000);
    is_int(pop(t, &n, 7, 1, &a), 0, "the list is there");
    await_fill(t, &n, 7);
    struct pool *x = pool_get(n.pools, titles(7));
    struct str key = key_pool_request(task_arena(t), "titles", 7, 1, STR("marked"));
    const struct redis_reply *r;
    check(SCRIPT(t, n.redis, pool_asked, &r, .state = x->state, .requests = {&key, 1},
                 .ms = STR("600000")) == 0);
    ok(r->items[0]->str.n == 0, "no list has answered it");
    int64_t before = list_length(t, &n, 7);
    is_int(pop_as(t, &n, 7, 2, 1, "marked", &a), 0, "a request that another node has marked");
    is_int(list_length(t, &n, 7), before, "is not answered by the list");
    ok(same_items(t, &n, "marked", &a), "but by MySQL, once");
    sql_do(t, &n, "UPDATE titles SET status = 0 WHERE status = ?", 1);
    key = key_pool_request(task_arena(t), "titles", 7, 1, STR("late"));
    check(SCRIPT(t, n.redis, pool_asked, &r, .state = x->state, .requests = {&key, 1},
                 .ms = STR("600000")) == 0);
    is_int(pop_as(t, &n, 7, 2, 1, "late", &a), 0, "where MySQL has nothing");
    is_int(list_length(t, &n, 7), before - 2, "the list answers it after all");
    check(SCRIPT(t, n.redis, pool_asked, &r, .state = x->state, .requests = {&key, 1},
                 .ms = STR("600000")) == 0);
    ok(r->items[0]->str.n > 0, "of which MySQL is told");
    check(SCRIPT_NUMBER(t, n.redis, pool_unasked, &left, .requests = {&key, 1}) == 0);
    is_int(left, 0, "and which stays");
    is_int(pop_as(t, &n, 7, 2, 1, "late", &b), 0, "a repeat");
    ok(str_eq(texts(t, &a), texts(t, &b)), "is given the same");
    pool_put(x);
    close_node(t, &n);
}

static void test_requests_and_mysql(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items a, b, c;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 9000);
    is_int(pop_as(t, &n, 7, 2, 1, "kept", &a), 0, "a request that Redis answers");
    kill_redis(t, &n);
    is_int(pop_as(t, &n, 7, 3, 1, "away", &b), 0, "one while Redis is away");
    ok(b.direct, "is answered by MySQL");
    ok(same_items(t, &n, "away", &b), "the same when it is repeated");
    revive_redis(t, &n);
    ok(same_items(t, &n, "away", &b), "also when Redis is back");
    is_int(pop_as(t, &n, 7, 2, 1, "kept", &c), 0, "what an emptied Redis has forgotten");
    ok(!str_eq(texts(t, &a), texts(t, &c)), "gets other items, and the first are no one else's");
    /* A list that is empty while Redis answers. */
    n.pools->options.lists_bytes_max = 1;
    check(redis_call(t, n.redis, key_pools, NULL, STR("HSET"), key_pools, STR("bytes"), STR("1")) ==
          0);
    struct str key = key_pool(task_arena(t), "titles", 7);
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("DEL"), key) == 0);
    sql_do(t, &n, "UPDATE titles SET status = 0 WHERE status = ?", 2);
    sql_do(t, &n, "UPDATE pool_group SET numbered = ?", state_of(t, &n, 7, "first") - 1);
    struct str state = key_pool_state(task_arena(t), "titles", 7);
    check(redis_call(t, n.redis, state, NULL, STR("HDEL"), state, STR("asks")) == 0);
    is_int(pop_as(t, &n, 7, 2, 1, "empty", &a), 0, "one that finds the list empty");
    n.pools->options.lists_bytes_max = 0;
    struct pool *x = pool_get(n.pools, titles(7));
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "and is repeated when it is filled");
    ok(list_length(t, &n, 7) > 0 && same_items(t, &n, "empty", &a), "is given the same");
    pool_put(x);
    close_node(t, &n);
}

/* --- everything at once, from a printed seed --- */

static void test_chaos(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct group g;
    struct tally y = {.ids = map_new()};
    struct client clients[CLIENTS];
    bool stop = false;
    int64_t lost_redis = 0;
    open_empty(t, &n[0]);
    open_node(t, &n[1]);
    add_items(t, &n[0], 7, 1, 30000);
    for (int round = 0; round < 6; round++) {
        stop = false;
        group_init(&g, task_loop(t));
        for (int i = 0; i < 2; i++) {
            role_in(&n[i].tasks, pools_mark_role, n[i].pools, 50);
            role_in(&n[i].tasks, pools_fill_role, n[i].pools, 200);
        }
        for (int i = 0; i < CLIENTS; i++) {
            clients[i] = (struct client){
                .node = &n[i % 2], .tally = &y, .group = 7, .count = 1 + i % 3, .stop = &stop};
            check(task_go(&g, "client", client_task, &clients[i]) == 0);
        }
        check(task_sleep(t, 100 + (int64_t)(loop_random(task_loop(t)) % 300)) == 0);
        if (round % 3 == 0)
            check(redis_call(t, n[0].redis, STR_NULL, NULL, STR("BGSAVE")) == 0);
        check(task_sleep(t, 50 + (int64_t)(loop_random(task_loop(t)) % 200)) == 0);
        if (round % 2) {
            kill_redis(t, &n[0]);
            lost_redis++;
            check(task_sleep(t, 100) == 0);
            revive_redis(t, &n[0]);
        }
        check(task_sleep(t, 200) == 0);
        stop = true;
        check(group_join(t, &g) == 0);
        close_node(t, &n[round % 2]);
        open_node(t, &n[round % 2]);
    }
    for (int i = 0; i < 2; i++)
        await_redis(t, &n[i]);
    struct client last = {.node = &n[0], .tally = &y, .group = 7, .count = 50};
    client_task(t, &last);
    int64_t lost = unseen(t, &n[0], &y);
    is_int(y.twice, 0, "no item is handed out twice");
    ok(lost <= y.failed * 3 + lost_redis * POOL_AHEAD_MAX,
       "%lld are used up unseen, Redis was lost %lld times, %lld pops failed", (long long)lost,
       (long long)lost_redis, (long long)y.failed);
    is_int(y.items + lost, 30000, "all others were handed out");
    map_free(y.ids);
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

int main(void)
{
    start_stores();
    tap_task(test_older, NULL, true);
    tap_task(test_emptied, NULL, true);
    tap_task(test_rest, NULL, true);
    tap_task(test_half_filled, NULL, true);
    tap_task(test_dead_filler, NULL, true);
    tap_task(test_half_settled, NULL, true);
    tap_task(test_two_redis, NULL, true);
    tap_task(test_away, NULL, true);
    tap_task(test_hangs, NULL, true);
    tap_task(test_requests, NULL, true);
    tap_task(test_at_once, NULL, true);
    tap_task(test_served_in_turn, NULL, true);
    tap_task(test_marked, NULL, true);
    tap_task(test_requests_and_mysql, NULL, true);
    tap_task(test_chaos, NULL, true);
    return stop_stores();
}
