#include "app/pool/pool_fixture.h"

#include "app/pool/import.h"

/* --- order --- */

static void test_order(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 3);
    add_items(t, &n, 7, 2, 2);
    add_items(t, &n, 8, 9, 1);
    is_str(pop_texts(t, &n, 7, 1), STR("2-1"), "the newest batch comes first");
    is_str(pop_texts(t, &n, 7, 3), STR("2-2 1-1 1-2"), "then by id, then the batch before");
    is_int(pop(t, &n, 7, 5, &items), 0, "fewer than asked for are better than none");
    is_int(items.count, 1, "and are counted");
    ok(!items.direct, "by Redis");
    is_int(pop(t, &n, 7, 1, &items), ERR_CONFLICT, "nothing is left: %s", task_error(t));
    is_int(pop(t, &n, 99, 1, &items), ERR_NOT_FOUND, "there never was anything: %s", task_error(t));
    is_str(pop_texts(t, &n, 8, 1), STR("9-1"), "groups are by themselves");
    add_items(t, &n, 7, 3, 1);
    check(task_sleep(t, 600) == 0);
    is_str(pop_texts(t, &n, 7, 1), STR("3-1"), "a group that was empty appears again");
    close_node(t, &n);
}

static void test_json(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    open_empty(t, &n);
    check(sql_call(t, n.sql, NULL, "INSERT INTO contents (group_id, content) VALUES (1, ?)",
                   sql_text(STR("a \"quote\",\n\\ 正文 \x01 😀"))) == 0);
    struct pool_wish w = {.pool = {pool_type_find(STR("contents")), 1}, .count = 1, .uid = 1};
    is_int(pool_pop(t, n.pools, &w, &items), 0, "contents are handed out, too");
    is_str(texts(t, &items), STR("a \"quote\",\n\\ 正文 \x01 😀"), "byte for byte");
    ok(!pool_type_find(STR("words")), "there are no other types");
    close_node(t, &n);
}

/* --- pops at once --- */

#define CROWD        10 /* clients that begin together */
#define CROWD_ROUNDS 20 /* pops of each */

static void crowd_task(struct task *t, void *arg)
{
    for (int i = 0; i < CROWD_ROUNDS; i++) {
        struct task_scope s = task_scope(t);
        struct pool_items items;
        check(pop(t, arg, 7, 1, &items) == 0);
        task_scope_end(t, s);
    }
}

static int64_t calls_of_rpop(struct task *t, struct node *n)
{
    const struct redis_reply *r;
    int64_t calls;
    check(redis_call(t, n->redis, STR_NULL, &r, STR("INFO"), STR("commandstats")) == 0);
    struct str begin = STR("cmdstat_rpop:calls="), rest = r->str;
    ptrdiff_t at = str_find(rest, begin);
    check(at >= 0);
    rest = str_skip(rest, (size_t)at + begin.n);
    check(str_to_i64(str_cut(&rest, ','), &calls));
    return calls;
}

/* Two crowds, the second of which comes while the first is served: were the next call made at once,
 * they would take turns for ever. */
static void test_crowds(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct group g;
    struct pool_items items;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 2000);
    for (int i = 0; i < 6; i++) /* until the limit goes far ahead */
        check(pop(t, &n, 7, POOL_COUNT_MAX, &items) == 0);
    struct pool *x = pool_get(n.pools, titles(7));
    int64_t before = calls_of_rpop(t, &n);
    group_init(&g, task_loop(t));
    for (int i = 0; i < 2 * CROWD; i++) {
        while (i == CROWD && !(x->popping && list_empty(&x->waiting)))
            check(task_yield(t) == 0);
        check(task_go(&g, "client", crowd_task, &n) == 0);
    }
    check(group_join(t, &g) == 0);
    int64_t calls = calls_of_rpop(t, &n) - before;
    ok(calls < 3 * CROWD_ROUNDS / 2, "both are served by one call: %lld calls for %d rounds",
       (long long)calls, CROWD_ROUNDS);
    pool_put(x);
    close_node(t, &n);
}

/* --- the list --- */

static void test_fill(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool *x;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 20000);
    x = pool_get(n.pools, titles(7));
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "a list is filled");
    is_int(list_length(t, &n, 7), 500, "at first with few: it is not known how large they are");
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "then");
    is_int(list_length(t, &n, 7), POOL_LIST_ITEMS, "to the brim");
    is_int(of_status(t, &n, 2), POOL_LIST_ITEMS, "MySQL has them as numbered");
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "a full one");
    is_int(of_status(t, &n, 2), POOL_LIST_ITEMS, "stays as it is");
    is_str(pop_texts(t, &n, 7, 2), STR("1-1 1-2"), "in order");
    is_int(sql_number(t, &n, "SELECT COUNT(DISTINCT number) FROM titles WHERE status = ?", 2),
           POOL_LIST_ITEMS, "each has a number of its own");
    pool_put(x);
    close_node(t, &n);
}

static void fill_task(struct task *t, void *arg)
{
    struct node *n = arg;
    struct pool *x = pool_get(n->pools, titles(7));
    for (int i = 0; i < 5; i++)
        (void)!pool_fill(t, x, POOL_LIST_ITEMS);
    pool_put(x);
}

/* Without the lock: it only saves work. */
static void test_two_fillers(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    struct group g;
    open_empty(t, &n[0]);
    open_node(t, &n[1]);
    add_items(t, &n[0], 7, 1, 20000);
    struct pool *x = pool_get(n[0].pools, titles(7));
    is_int(pool_fill(t, x, 1000), 0, "a list is there");
    check(redis_call(t, n[0].redis, x->filling, NULL, STR("SET"), x->filling, STR("dead"),
                     STR("PX"), STR("50000")) == 0);
    group_init(&g, task_loop(t));
    for (int i = 0; i < 2; i++)
        check(task_go(&g, "fill", fill_task, &n[i]) == 0);
    check(group_join(t, &g) == 0);
    is_int(list_length(t, &n[0], 7), POOL_LIST_ITEMS, "two fillers do not fill it twice");
    is_int(of_status(t, &n[0], 2), POOL_LIST_ITEMS, "nor number too many");
    struct tally y = {.ids = map_new()};
    struct client c = {.node = &n[1], .tally = &y, .group = 7, .count = 100};
    check(task_go(&g, "client", client_task, &c) == 0);
    check(group_join(t, &g) == 0);
    is_int(y.items, 20000, "all items are handed out");
    is_int(y.twice, 0, "none twice");
    map_free(y.ids);
    pool_put(x);
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

/* As fast as one client can: the list is filled block after block meanwhile. */
static void test_busy(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    int64_t last = 0, pops = 0, longest = 0, in_order = 0, whole = 0;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 30000);
    int64_t below = sql_number(t, &n, "SELECT MIN(id) - 1 FROM titles WHERE group_id = ?", 7);
    struct pool *x = pool_get(n.pools, titles(7));
    for (int err = 0; !err; pops++) {
        struct task_scope s = task_scope(t);
        struct pool_items items = {.count = 0};
        const struct json *list;
        x->per_s = 50000;
        err = pop(t, &n, 7, 100, &items);
        if (!err)
            check(json_parse(task_arena(t), items.json, &list, NULL) == 0);
        json_each (it, err ? NULL : list) {
            int64_t id = 0;
            check(json_int(json_get(it, "id"), &id));
            in_order += id == ++last + below;
        }
        int64_t length = list_length(t, &n, 7);
        longest = length > longest ? length : longest;
        whole += items.count == 100;
        task_scope_end(t, s);
    }
    is_int(in_order, 30000, "all are handed out, in order");
    is_int(whole, 300, "as many to each pop as it asks for");
    is_int(pops, 301, "until nothing is left");
    ok(longest <= POOL_LIST_ITEMS, "the list is never too long: %lld", (long long)longest);
    is_int(state_of(t, &n, 7, "pushed"), 30000, "each was pushed once");
    pool_put(x);
    close_node(t, &n);
}

struct short_pop {
    struct node *node;
    int64_t got;
    int err;
};

static void short_pop_task(struct task *t, void *arg)
{
    struct short_pop *p = arg;
    struct pool_items items = {.count = 0};
    p->err = pop(t, p->node, 7, 100, &items);
    p->got = items.count;
}

/* A fill that has pushed some, and goes on. */
static void test_short(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    struct group g;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 150);
    check(pop(t, &n, 7, 100, &items) == 0);
    struct pool *x = pool_get(n.pools, titles(7));
    while (x->fills || x->fills_soon)
        check(task_sleep(t, 1) == 0);
    struct short_pop p = {.node = &n};
    group_init(&g, task_loop(t));
    x->fills = true;
    check(task_go(&g, "pop", short_pop_task, &p) == 0);
    check(task_sleep(t, 100) == 0);
    x->pushes++;
    waitq_wake_all(&x->filled);
    check(task_sleep(t, 200) == 0);
    is_int(p.got, 0, "a list that is being filled gives no pop less than it asks for");
    x->fills = false;
    x->fill_count++;
    waitq_wake_all(&x->filled);
    check(group_join(t, &g) == 0);
    is_int(p.err, 0, "when the fill has ended");
    is_int(p.got, 50, "the rest is all there is");
    pool_put(x);
    close_node(t, &n);
}

/* A filler that died between the COMMIT and its push. */
static void test_dead_filler(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 20);
    struct pool *x = pool_get(n.pools, titles(7));
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "a list is there");
    add_items(t, &n, 7, 2, 3);
    sql_do(t, &n,
           "UPDATE titles SET status = 2, number = 20 + CAST(SUBSTRING(title, 3) AS SIGNED)"
           " WHERE batch_id = ?",
           2);
    sql_do(t, &n, "UPDATE pool_group SET numbered = numbered + ? WHERE group_id = 7", 3);
    is_int(list_length(t, &n, 7), 20, "numbered, but not pushed");
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "the next fill");
    is_int(list_length(t, &n, 7), 23, "pushes them");
    struct str all = pop_texts(t, &n, 7, 100);
    ok(str_ends(all, STR("1-20 2-1 2-2 2-3")), "in the order of numbers");
    pool_put(x);
    close_node(t, &n);
}

/* One that is under way would find the list lost. */
static void await_quiet(struct task *t, const struct pool *x)
{
    while (x->fills || x->fills_soon)
        check(task_sleep(t, 1) == 0);
}

/* Rows that an operator deleted while they were numbered. */
static void test_gaps(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 10);
    is_str(pop_texts(t, &n, 7, 2), STR("1-1 1-2"), "a list is there");
    struct pool *x = pool_get(n.pools, titles(7));
    await_quiet(t, x);
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    sql_do(t, &n, "UPDATE pool_list SET handed_limit = ?", 2); /* it was settled */
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "it is begun anew");
    add_items(t, &n, 7, 1, 3);
    sql_do(t, &n,
           "UPDATE titles SET status = 2, number = (SELECT numbered FROM pool_group) + id -"
           " (SELECT m FROM (SELECT MAX(id) AS m FROM titles) AS z) + ?"
           " WHERE status = 1",
           3);
    sql_do(t, &n, "UPDATE pool_group SET numbered = numbered + ?", 3);
    sql_do(t, &n, "DELETE FROM titles WHERE number = (SELECT numbered FROM pool_group) - ?", 1);
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "a gap is noticed, and mended");
    struct tally y = {.ids = map_new()};
    struct client c = {.node = &n, .tally = &y, .group = 7, .count = 3};
    client_task(t, &c);
    is_int(y.items, 10, "what is left is handed out");
    is_int(y.twice, 0, "once each");
    map_free(y.ids);
    pool_put(x);
    close_node(t, &n);
}

/* A program gives items that were used status 1, and no more. */
static void test_used_again(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 5);
    is_str(pop_texts(t, &n, 7, 3), STR("1-1 1-2 1-3"), "three are taken");
    struct pool *x = pool_get(n.pools, titles(7));
    is_int(pool_mark(t, x, x->first), 0, "and marked");
    while (x->fills || x->fills_soon)
        check(task_sleep(t, 1) == 0);
    sql_do(t, &n, "UPDATE titles SET status = 1 WHERE group_id = ? AND title IN ('1-1', '1-2')", 7);
    x->adopted_ms = x->dry_ms = 0; /* as a minute later */
    is_str(pop_texts(t, &n, 7, 3), STR("1-4 1-5"), "the rest of the list");
    is_str(pop_texts(t, &n, 7, 5), STR("1-1 1-2"), "then what was given back");
    struct pool_items items;
    is_int(pop(t, &n, 7, 1, &items), ERR_CONFLICT, "once more each, and not twice");
    pool_put(x);
    close_node(t, &n);
}

/* --- where usable items are --- */

/* More batches than are remembered at once; ids of one group with those of another between them. */
static void test_many_batches(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    for (int i = 1; i <= 3; i++)
        sql_do(t, &n,
               "INSERT INTO titles (group_id, batch_id, title)"
               " SELECT 7 + seq MOD 2, seq DIV 2, CONCAT(seq DIV 2, '-', ?) FROM seq_2_to_201",
               i);
    struct pool *x = pool_get(n.pools, titles(7));
    struct str all = pop_texts(t, &n, 7, 7);
    is_str(all, STR("100-1 100-2 100-3 99-1 99-2 99-3 98-1"), "the newest batches go first");
    is_int(list_length(t, &n, 7), 293, "all others are in the list");
    for (int i = 0; i < 2; i++)
        (void)pop_texts(t, &n, 7, 100);
    all = pop_texts(t, &n, 7, 100);
    ok(str_ends(all, STR("2-1 2-2 2-3 1-1 1-2 1-3")) && list_length(t, &n, 7) == 0,
       "up to the oldest");
    is_int(pool_mark(t, x, x->first), 0, "they are marked");
    is_int(of_status(t, &n, 0), 300, "all of them, and none of the other group");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM pool_run WHERE group_id = ?", 7), 0,
           "what is marked is not remembered by number");
    pool_put(x);
    close_node(t, &n);
}

/* Items of a newer batch go before those of the batch that is being taken. */
static void test_newer_batch(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, POOL_LIST_ITEMS + 100);
    struct pool *x = pool_get(n.pools, titles(7));
    x->item_bytes = 30; /* so that it is filled at once */
    is_int(pool_fill(t, x, POOL_LOW_ITEMS), 0, "a list is filled");
    is_int(list_length(t, &n, 7), POOL_LIST_ITEMS, "as long as it may be");
    add_items(t, &n, 7, 2, 3);
    for (int i = 0; i < POOL_LIST_ITEMS / 100; i++)
        (void)pop_texts(t, &n, 7, 100);
    is_str(pop_texts(t, &n, 7, 4), STR("2-1 2-2 2-3 1-5001"), "then what is newer, and the rest");
    pool_put(x);
    close_node(t, &n);
}

/* Another program has committed items later than others of the batch that have larger ids. */
static void test_late_commit(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 10);
    int64_t low = sql_number(t, &n, "SELECT MIN(id) FROM titles WHERE group_id = ?", 7);
    sql_do(t, &n, "UPDATE titles SET group_id = 8 WHERE id <= ?", low + 1);
    is_str(pop_texts(t, &n, 7, 8), STR("1-3 1-4 1-5 1-6 1-7 1-8 1-9 1-10"), "items are taken");
    struct pool *x = pool_get(n.pools, titles(7));
    await_quiet(t, x);
    sql_do(t, &n, "UPDATE titles SET group_id = 7 WHERE id <= ?", low + 1);
    x->adopted_ms = x->dry_ms = 0; /* as a minute later */
    is_str(pop_texts(t, &n, 7, 5), STR("1-1 1-2"), "those before them are found as well");
    pool_put(x);
    close_node(t, &n);
}

/* Numbers that pool_run does not have: those of a node of an older version. */
static void test_no_runs(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 50);
    is_str(pop_texts(t, &n, 7, 3), STR("1-1 1-2 1-3"), "items are taken");
    struct pool *x = pool_get(n.pools, titles(7));
    await_quiet(t, x);
    sql_do(t, &n, "DELETE FROM pool_run WHERE group_id = ?", 7);
    is_int(pool_mark(t, x, x->first), 0, "they are marked");
    is_int(of_status(t, &n, 0), 3, "though they are found by no run");
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    sql_do(t, &n, "UPDATE pool_list SET handed_limit = ?", 3); /* it was settled */
    is_str(pop_texts(t, &n, 7, 3), STR("1-4 1-5 1-6"), "and those of a lost list are usable");
    pool_put(x);
    close_node(t, &n);
}

static void test_budget(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 5);
    n.pools->options.lists_bytes_max = 1000;
    check(redis_call(t, n.redis, key_pools, NULL, STR("HSET"), key_pools, STR("bytes"),
                     STR("1000")) == 0);
    is_int(pop(t, &n, 7, 2, &items), 0, "where Redis has no room for lists, MySQL hands out");
    is_int(list_length(t, &n, 7), 0, "no list is filled");
    is_int(of_status(t, &n, 0), 2, "the items are used at once");
    close_node(t, &n);
}

/* --- the limit --- */

static void test_limit(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 4000);
    for (int i = 0; i < 25; i++) {
        check(pop(t, &n, 7, 100, &items) == 0);
        /* Redis first: the limit may be advanced meanwhile, in MySQL before Redis. */
        int64_t redis = state_of(t, &n, 7, "limit"), first = state_of(t, &n, 7, "first");
        int64_t limit = limit_of(t, &n, 7);
        if (limit < first - 1 || limit - (first - 1) > POOL_AHEAD_MAX || redis > limit)
            ok(false, "MySQL has %lld, Redis %lld, handed out are %lld", (long long)limit,
               (long long)redis, (long long)first - 1);
    }
    is_int(state_of(t, &n, 7, "first"), 2501, "no pop passes the limit, which MySQL has first");
    mariadb_stop(&server);
    int64_t popped = 0;
    int err = 0;
    while (!err) {
        err = pop(t, &n, 7, 50, &items);
        popped += err ? 0 : items.count;
    }
    is_int(err, ERR_UNAVAILABLE, "without MySQL pops end at the limit");
    ok(popped > 0 && popped <= POOL_AHEAD_MAX, "which was ahead: %lld", (long long)popped);
    mariadb_restart(&server);
    while (pop(t, &n, 7, 1, &items))
        check(task_sleep(t, 20) == 0);
    is_int(items.count, 1, "and go on when it is back");
    close_node(t, &n);
}

/* Raised for a list that was replaced meanwhile. */
static void test_late_limit(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    int64_t told = -1;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 2000);
    check(pop(t, &n, 7, 1, &items) == 0);
    struct pool *x = pool_get(n.pools, titles(7));
    char old[POOL_NAME_BYTES];
    memcpy(old, x->name, sizeof old);
    check(redis_call(t, n.redis, x->state, NULL, STR("DEL"), x->state) == 0);
    check(pop(t, &n, 7, 1, &items) == 0);
    ok(strcmp(old, x->name) != 0, "a list that was lost has another name");
    check(SCRIPT_NUMBER(t, n.redis, pool_limit, &told, .state = x->state, .name = str_of(old),
                        .limit = STR("999999")) == 0);
    is_int(told, 0, "a limit for the old one is not taken");
    memcpy(x->name, old, sizeof old);
    is_int(pool_raise(t, x), ERR_CONFLICT, "nor raised in MySQL: %s", task_error(t));
    is_int(pop(t, &n, 7, 100, &items), 0, "pops go on");
    pool_put(x);
    close_node(t, &n);
}

/* --- marks --- */

static void test_marks(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    struct pool_items items;
    struct role_turn turn = {.locked = false};
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 9000);
    for (int i = 0; i < 45; i++)
        check(pop(t, &n, 7, 100, &items) == 0);
    is_int(pools_mark_role(t, n.pools, &turn), 0, "a round of marks");
    is_int(of_status(t, &n, 0), 4500, "marks what was handed out");
    is_int(sql_number(t, &n, "SELECT handed FROM pool_group WHERE group_id = ?", 7), 4500,
           "which is counted");
    ok(sql_number(t, &n, "SELECT MIN(used_at) FROM titles WHERE status = ?", 0) > 0, "and dated");
    check(pop(t, &n, 7, 10, &items) == 0);
    struct pool *x = pool_get(n.pools, titles(7));
    while (x->fills || x->fills_soon)
        check(task_sleep(t, 1) == 0);
    pool_put(x);
    close_node(t, &n); /* it dies before its marks */
    open_node(t, &other);
    is_int(pools_fill_role(t, other.pools, &turn), 0, "a round of filling");
    is_int(of_status(t, &other, 0), 4510, "marks what a dead node handed out");
    is_int(of_status(t, &other, 1) + list_length(t, &other, 7), 4490, "the rest is there");
    close_node(t, &other);
}

struct beside {
    struct node *node;
    struct pool *pool;
    struct group group;
    int64_t marked;
    int err;
};

static void mark_task(struct task *t, void *arg)
{
    struct beside *b = arg;
    b->err = pool_mark(t, b->pool, b->pool->first);
}

static int mark_beside(struct task *t, struct sql *c, void *arg)
{
    struct beside *b = arg;
    int err = pool_lock_group(t, c, b->pool->id, NULL);
    check(task_go(&b->group, "mark", mark_task, b) == 0);
    for (int i = 0; i < 500 && b->marked < 100; i++) {
        check(task_sleep(t, 10) == 0);
        b->marked = of_status(t, b->node, 0);
    }
    return err;
}

static void test_marks_beside(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct pool_items items;
    open_empty(t, &n);
    add_items(t, &n, 7, 1, 1000);
    check(pop(t, &n, 7, 100, &items) == 0);
    struct pool *x = pool_get(n.pools, titles(7));
    while (x->fills || x->fills_soon)
        check(task_sleep(t, 1) == 0);
    struct beside b = {.node = &n, .pool = x};
    group_init(&b.group, task_loop(t));
    is_int(sql_tx(t, n.sql, mark_beside, &b), 0, "while the group is locked, to be filled");
    is_int(b.marked, 100, "items are marked");
    check(group_join(t, &b.group) == 0);
    is_int(b.err, 0, "and how far that went is noted afterwards");
    is_int(pool_mark(t, x, x->first), 0, "once more");
    is_int(sql_number(t, &n, "SELECT handed FROM pool_group WHERE group_id = ?", 7), 100,
           "counts nothing twice");
    is_int(pool_mark(t, x, 50), 0, "a late one");
    is_int(sql_number(t, &n, "SELECT marked FROM pool_group WHERE group_id = ?", 7), 100,
           "takes nothing back");
    pool_put(x);
    close_node(t, &n);
}

static void test_fill_role(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct role_turn turn = {.locked = false};
    open_empty(t, &n);
    for (int64_t group = 1; group <= 5; group++)
        add_items(t, &n, group, 1, 700);
    for (int i = 0; i < 2; i++)
        is_int(pools_fill_role(t, n.pools, &turn), 0, "a round of filling");
    int64_t listed = 0;
    for (int64_t group = 1; group <= 5; group++)
        listed += list_length(t, &n, group);
    is_int(listed, 3500, "fills all groups before anything was asked for");
    close_node(t, &n);
}

/* --- what runs out --- */

/* Of a group: so many were handed out in the last seconds, and it has so many left. */
static void hand_out(struct task *t, struct node *n, int64_t group, int64_t items, int64_t seconds,
                     int64_t left)
{
    if (left)
        add_items(t, n, group, 1, left);
    check(sql_call(t, n->sql, NULL,
                   "REPLACE INTO pool_group (type, group_id, handed, since_at, next_at)"
                   " VALUES ('titles', ?, ?, UNIX_TIMESTAMP() - ?, UNIX_TIMESTAMP() - ?)",
                   sql_int(group), sql_int(items), sql_int(seconds), sql_int(seconds)) == 0);
}

/* Names of what the alerts are told, "~" before what only lasts. */
static struct str told(struct task *t, struct node *n)
{
    struct role_turn turn = {.locked = false};
    struct alerts_fact *facts;
    size_t count;
    struct buf b;
    check(pools_fill_role(t, n->pools, &turn) == 0);
    n->pools->low_ms = 0; /* the next round looks again, however long this one took */
    check(pools_low_look(t, n->pools, &facts, &count) == 0);
    buf_init(&b);
    for (size_t i = 0; i < count; i++)
        buf_printf(&b, "%s%.*s ", facts[i].lasts ? "~" : "", STR_ARG(facts[i].name));
    struct str out = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return out;
}

static void test_low(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct alerts_fact *facts;
    size_t count;
    int64_t dropped;
    open_empty(t, &n);
    check(redis_call(t, n.redis, key_pools, NULL, STR("DEL"), key_pools) == 0);
    is_int(pools_low_look(t, n.pools, &facts, &count), ERR_NOT_FOUND, "nothing is known at first");
    hand_out(t, &n, 1, 60, 3600, 500);
    hand_out(t, &n, 2, 600, 600, 5100); /* one a second: of more than a list */
    hand_out(t, &n, 3, 600, 600, 3000);
    hand_out(t, &n, 4, 10, 30, 5);
    hand_out(t, &n, 5, 100, 7200, 5);
    hand_out(t, &n, 6, 100, 7200, 0);
    hand_out(t, &n, 7, 10, 600, 79);
    is_str(told(t, &n), STR("pool:titles/6 pool:titles/3 ~pool:titles/7 ~pool:titles/2 "),
           "low by its pace; neither a burst, nor what rests; but what is empty");
    is_int(*n.pools->low, 2, "those that run out within an hour are a metric");
    check(pools_low_look(t, n.pools, &facts, &count) == 0);
    struct str pace = facts[1].text, begin = STR("pool titles/3 runs out within an hour: 3000 items"
                                                 " are left, and ");
    int64_t per_hour = 0;
    ok(str_starts(pace, begin), "in words: %.*s", STR_ARG(pace));
    pace = str_from(pace.p + begin.n, pace.n - begin.n);
    ok(str_to_i64(str_cut(&pace, ' '), &per_hour) && per_hour > 3540 && per_hour <= 3600,
       "one a second, or a little less, for this took a while: %lld", (long long)per_hour);
    is_str(pace, STR("an hour are handed out; import more, or drop the group"), "what to do");
    is_str(facts[0].text, STR("pool titles/6 is empty; import more items, or drop the group"),
           "an empty one, too");
    add_items(t, &n, 3, 2, 3000);
    check(pool_drop(t, n.pools, (struct pool_id){pool_type_find(STR("titles")), 6}, &dropped) == 0);
    is_str(told(t, &n), STR("~pool:titles/7 ~pool:titles/2 "), "until it is filled, or dropped");
    pool_low_fades(n.pools, loop_now_ms(task_loop(t)) + 61000);
    is_int(*n.pools->low, 0, "the metric of a node that fills no more fades");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_order, NULL, true);
    tap_task(test_json, NULL, true);
    tap_task(test_crowds, NULL, true);
    tap_task(test_fill, NULL, true);
    tap_task(test_two_fillers, NULL, true);
    tap_task(test_busy, NULL, true);
    tap_task(test_short, NULL, true);
    tap_task(test_dead_filler, NULL, true);
    tap_task(test_gaps, NULL, true);
    tap_task(test_used_again, NULL, true);
    tap_task(test_many_batches, NULL, true);
    tap_task(test_newer_batch, NULL, true);
    tap_task(test_late_commit, NULL, true);
    tap_task(test_no_runs, NULL, true);
    tap_task(test_budget, NULL, true);
    tap_task(test_limit, NULL, true);
    tap_task(test_late_limit, NULL, true);
    tap_task(test_marks, NULL, true);
    tap_task(test_marks_beside, NULL, true);
    tap_task(test_fill_role, NULL, true);
    tap_task(test_low, NULL, true);
    return stop_stores();
}
