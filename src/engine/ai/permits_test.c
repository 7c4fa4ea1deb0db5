#include "engine/ai/permits_fixture.h"

static int64_t now_us(struct task *t)
{
    return loop_now_us(task_loop(t));
}

/* --- caps --- */

struct
try {
    struct node *node;
    int64_t taken;
};

static void take_until_timeout(struct task *t, void *arg)
{
    struct try *x = arg;
    (void)task_deadline(t, 700);
    struct permit p;
    while (permits_take(t, x->node->permits, PERMITS_RUNS, 1, &p) == 0)
        x->taken++;
}

static int64_t take_what_is_there(struct task *t, struct node *a, struct node *b)
{
    struct try x = {.node = a}, y = {.node = b};
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 20; i++) {
        check(task_go(&g, "try", take_until_timeout, &x) == 0);
        check(task_go(&g, "try", take_until_timeout, &y) == 0);
    }
    check(group_join(t, &g) == 0);
    return x.taken + y.taken;
}

static struct str text_of(struct task *t, struct node *n, const char *period)
{
    const struct redis_reply *r;
    struct str key = key_api_limit(task_arena(t), 1, period);
    check(redis_call(t, n->redis, key, &r, STR("GET"), key) == 0);
    return r->type == REDIS_STRING ? r->str : STR_NULL;
}

static void set_text(struct task *t, struct node *n, const char *period, struct str text)
{
    struct str key = key_api_limit(task_arena(t), 1, period);
    check(redis_call(t, n->redis, key, NULL, STR("SET"), key, text) == 0);
}

static void open_two(struct task *t, struct node *a, struct node *b)
{
    open_node(t, a, SLOT_MS);
    open_node(t, b, SLOT_MS);
    while (loop_wall_ms(task_loop(t)) % 60000 > 57000)
        pause_ms(t, 100); /* not over the end of a minute */
}

static void test_cap(struct task *t, void *arg)
{
    const char *period = arg;
    int64_t start = 0, period_s = str_eq(str_of(period), STR("minute")) ? 60 : 86400;
    struct node a, b;
    empty_stores(t);
    add_key(t, 1, 1000000, 1000000000);
    make_node(t, &a, SLOT_MS);
    sql_do(t, &a, str_printf(task_arena(t), "UPDATE api_list SET %s_cap = 123", period).p);
    close_node(t, &a);
    open_two(t, &a, &b);
    is_int(take_what_is_there(t, &a, &b), 123, "the cap of the %s is exact", period);
    struct str text = text_of(t, &a, period), rest = text;
    ok(str_ends(text, STR(" 123")), "it is where it belongs: %.*s", STR_ARG(text));
    ok(str_to_i64(str_cut(&rest, ' '), &start) && start % period_s == 0,
       "with the start of the period");
    set_text(t, &a, period, str_printf(task_arena(t), "%lld 123", (long long)(start - period_s)));
    is_int(take_what_is_there(t, &a, &b), 123, "a new %s begins at 0", period);
    close_node(t, &a);
    close_node(t, &b);
}

/* --- rest, refusal, change --- */

static int64_t key_of_next(struct task *t, struct node *n, int64_t tokens)
{
    struct permit p = {0};
    int64_t old = task_deadline(t, 300);
    int err = permits_take(t, n->permits, PERMITS_RUNS, tokens, &p);
    task_deadline_restore(t, old);
    return err ? err : p.key_id;
}

static bool uses_only(struct task *t, struct node *n, int64_t key_id, int count)
{
    for (int i = 0; i < count; i++)
        if (key_of_next(t, n, 1) != key_id)
            return false;
    return true;
}

static void test_rest(struct task *t, void *arg)
{
    (void)arg;
    struct node a, b;
    empty_stores(t);
    add_key(t, 1, 100000, 1000000);
    add_key(t, 2, 1000, 1000000);
    open_node(t, &a, SLOT_MS);
    open_node(t, &b, SLOT_MS);
    ok(uses_only(t, &b, 1, 5), "the key with most room is used");
    permits_cool(t, a.permits, 1, 1500);
    ok(uses_only(t, &a, 2, 20), "a key that rests is passed over");
    pause_ms(t, 4 * SLOT_MS);
    ok(uses_only(t, &b, 2, 20), "on other nodes, too");
    struct permits_load l;
    check(permits_load(t, b.permits, &l) == 0);
    is_int(l.keys_resting, 1, "it is counted");
    pause_ms(t, 1500);
    ok(uses_only(t, &b, 1, 5), "then it is used again");
    permits_cool(t, a.permits, 1, 0);
    permits_cool(t, a.permits, 2, 0);
    is_int(key_of_next(t, &a, 1), ERR_TIMEOUT, "when all rest, one waits");
    int64_t from = now_us(t);
    struct permit p;
    is_int(permits_take(t, b.permits, PERMITS_RUNS, 1, &p), 0, "until one has rested");
    ok(now_us(t) - from < 1500000, "a second");
    close_node(t, &a);
    close_node(t, &b);
}

static void test_refused(struct task *t, void *arg)
{
    (void)arg;
    struct node a, b;
    struct buf log;
    buf_init(&log);
    empty_stores(t);
    add_key(t, 1, 100000, 1000000);
    add_key(t, 2, 1000, 1000000);
    open_node(t, &a, SLOT_MS);
    open_node(t, &b, SLOT_MS);
    check(uses_only(t, &a, 1, 3) && uses_only(t, &b, 1, 3));
    log_capture(&log);
    permits_refused(t, a.permits, 1, 401);
    permits_refused(t, a.permits, 1, 401);
    log_capture(NULL);
    ok(str_find(buf_str(&log), STR("refuses key 1")) >= 0, "it is said which key was refused");
    ok(str_find(buf_str(&log), STR("sk-secret-key-number-1")) < 0, "but not what it is");
    is_int(counted("millrace_keyring_refusals_total"), 1, "once");
    is_int(sql_number(t, &a, "SELECT is_active FROM api_list WHERE api_index = 1"), 0,
           "api_list says so");
    ok(uses_only(t, &a, 2, 20), "it is not used here");
    pause_ms(t, 4 * SLOT_MS);
    ok(uses_only(t, &b, 2, 20), "nor elsewhere");
    pause_ms(t, 1200);
    struct permits_load l;
    check(permits_load(t, b.permits, &l) == 0);
    ok(l.keys_active == 1 && l.keys_disabled == 1, "both nodes have seen it");
    permits_refused(t, b.permits, 2, 403);
    is_int(key_of_next(t, &b, 1), ERR_UNAVAILABLE, "without any key no task waits");
    ok(str_find(str_of(task_error(t)), STR("no active key")) >= 0, "%s", task_error(t));
    close_node(t, &a);
    close_node(t, &b);
    buf_release(&log);
}

static void take_one(struct task *t, void *arg)
{
    struct try *x = arg;
    struct permit p;
    x->taken = permits_take(t, x->node->permits, PERMITS_RUNS, 1, &p);
    if (x->taken == 0)
        x->taken = p.key_id;
}

static void test_added(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    empty_stores(t);
    open_node(t, &n, SLOT_MS);
    is_int(key_of_next(t, &n, 1), ERR_UNAVAILABLE, "there is no key");
    add_key(t, 1, 1, 1000);
    pause_ms(t, 1200);
    is_int(key_of_next(t, &n, 1), 1, "now there is one, and it can be used at once");
    is_int(key_of_next(t, &n, 1), ERR_TIMEOUT, "once in a minute");
    struct try x = {.node = &n}, y = {.node = &n};
    struct group g, canceled;
    group_init(&g, task_loop(t));
    group_init(&canceled, task_loop(t));
    check(task_go(&canceled, "try", take_one, &y) == 0);
    check(task_go(&g, "try", take_one, &x) == 0);
    pause_ms(t, 10);
    stop_workers(t, &canceled);
    is_int(y.taken, ERR_CANCELED, "a cancelled task does not wait");
    int64_t from = now_us(t);
    add_key(t, 7, 1, 1000);
    check(group_join(t, &g) == 0);
    is_int(x.taken, 7, "a key that is added serves tasks that wait");
    ok(now_us(t) - from < 1500000, "soon");
    sql_do(t, &n, "UPDATE api_list SET rpm_limit = 100");
    pause_ms(t, 1200);
    ok(key_of_next(t, &n, 1) > 0, "a limit that is raised, too");
    struct permit p;
    check(permits_take(t, n.permits, PERMITS_RUNS, 1, &p) == 0);
    struct str want = str_printf(task_arena(t), "sk-secret-key-number-%lld", (long long)p.key_id);
    is_str(p.api_key, want, "a permit has the key");
    close_node(t, &n);
}

/* --- what is given back, and what is not --- */

static int64_t used(struct task *t, struct node *n, int64_t *tokens)
{
    struct permits_load l;
    check(permits_load(t, n->permits, &l) == 0);
    if (tokens)
        *tokens = l.tokens_used;
    return l.requests_used;
}

/* A service that needs no key is asked without one, but keys that are there count. */
static void test_keyless(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct permits_state *states;
    struct permits_load l;
    size_t count = 1;
    empty_stores(t);
    make_node(t, &n, SLOT_MS);
    n.permits->keyless = true;
    start_permits(&n, n.permits);
    while (!n.permits->begun)
        pause_ms(t, 2);
    is_int(key_of_next(t, &n, 1), 0, "api_list is empty, and the service is asked");
    check(permits_states(t, n.permits, &states, &count) == 0 &&
          permits_load(t, n.permits, &l) == 0);
    is_int((int64_t)count, 0, "admins see no key that api_list does not have");
    is_int(l.keys_active, 1, "but something can be used");
    add_key(t, 3, 1000, 100000);
    pause_ms(t, 1200);
    ok(uses_only(t, &n, 3, 20), "a key that is added is used instead, with its limits");
    close_node(t, &n);
}

static void test_returns(struct task *t, void *arg)
{
    (void)arg;
    struct node n, dying;
    struct permit p[10];
    int64_t tokens;
    empty_stores(t);
    add_key(t, 1, 20, 10000);
    make_node(t, &n, SLOT_MS);
    sql_do(t, &n, "UPDATE api_list SET minute_cap = 20, day_cap = 20");
    close_node(t, &n);
    open_node(t, &n, SLOT_MS);
    for (size_t i = 0; i < 10; i++)
        check(permits_take(t, n.permits, PERMITS_RUNS, 100, &p[i]) == 0);
    ok(used(t, &n, &tokens) == 10 && tokens == 1000, "ten are permitted, and their tokens");
    permits_unused(t, n.permits, &p[0]);
    permits_settle(t, n.permits, &p[1], 40);
    permits_settle(t, n.permits, &p[2], 130);
    pause_ms(t, 150);
    is_int(used(t, &n, &tokens), 9, "what was not sent is given back");
    is_int(tokens, 1000 - 100 - 60 + 30, "and tokens that were not used; too few are added");
    ok(str_ends(text_of(t, &n, "day"), STR(" 9")), "caps have it back, too");

    open_node(t, &dying, SLOT_MS);
    struct permit lost;
    check(permits_take(t, dying.permits, PERMITS_RUNS, 100, &lost) == 0);
    permits_unused(t, dying.permits, &lost);
    close_node(t, &dying); /* before it has told anybody */
    is_int(used(t, &n, NULL), 10, "what a node has not told stays counted");
    pause_ms(t, (PERMITS_SLOTS + 2) * SLOT_MS);
    ok(used(t, &n, &tokens) == 0 && tokens == 0, "for a minute");
    permits_settle(t, n.permits, &p[3], 150);
    pause_ms(t, 150);
    is_int((used(t, &n, &tokens), tokens), 50, "what is too few is counted even later");
    close_node(t, &n);
}

static void test_large(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    empty_stores(t);
    add_key(t, 1, 100, 1000);
    open_node(t, &n, SLOT_MS);
    is_int(key_of_next(t, &n, 5000), 1, "one that is too large goes through an unused key");
    is_int(key_of_next(t, &n, 5000), ERR_TIMEOUT, "alone");
    is_int(key_of_next(t, &n, 1), ERR_TIMEOUT, "and nothing beside it");
    struct permit p;
    is_int(permits_take(t, n.permits, PERMITS_RUNS, 1000, &p), 0, "until a minute is over");
    close_node(t, &n);
}

/* --- what admins see --- */

static struct permits_state state_of(struct task *t, struct node *n, size_t i)
{
    struct permits_state *all;
    size_t count;
    check(permits_states(t, n->permits, &all, &count) == 0 && i < count);
    return all[i];
}

static void test_states(struct task *t, void *arg)
{
    (void)arg;
    struct node a, b;
    empty_stores(t);
    add_key(t, 1, 1000, 100000);
    add_key(t, 7, 2000, 200000);
    open_two(t, &a, &b);
    sql_do(t, &a,
           "UPDATE api_list SET api_name = 'seven', day_cap = 9, is_active = api_index <> 1");
    pause_ms(t, 1300);
    for (int i = 0; i < 3; i++)
        check(key_of_next(t, &a, 100) == 7);
    struct permits_state s = state_of(t, &b, 1);
    ok(s.id == 7 && s.active && !s.refused && s.rests_ms == 0 && !s.error.p, "an active key");
    is_str(s.name, STR("seven"), "its name");
    ok(str_find(s.shown, STR("key-number")) < 0 && s.shown.n > 0, "not all of the key");
    ok(s.requests_used >= 3 && s.requests_limit == 2000 && s.tokens_used >= 300 &&
           s.tokens_limit == 200000,
       "what is used, of what");
    ok(s.calls[0] >= 3 && s.calls[1] >= 3 && s.calls[2] >= 3 && s.caps[0] == -1 && s.caps[1] == 9,
       "calls of the minute, day and month, and caps");
    s = state_of(t, &b, 0);
    ok(s.id == 1 && !s.active && !s.refused, "one that an admin has switched off");
    permits_cool(t, a.permits, 7, 30000);
    s = state_of(t, &b, 1);
    ok(s.rests_ms > 20000 && s.rests_ms <= 30000, "one that rests");
    is_str(s.error, STR("status 429: it rests for 30000 ms"), "and why");
    permits_refused(t, a.permits, 7, 403);
    s = state_of(t, &a, 1);
    ok(!s.active && s.refused, "one that was refused");
    is_str(s.error, STR("status 403: it was switched off"), "and why");
    ok(s.error_ms > loop_wall_ms(task_loop(t)) - 60000, "and when");
    pause_ms(t, 1300);
    ok(state_of(t, &b, 1).refused, "other nodes know it");
    permits_forget_error(t, b.permits, 7);
    s = state_of(t, &a, 1);
    ok(!s.refused && !s.active && !s.error.p, "until an admin has decided");
    close_node(t, &a);
    close_node(t, &b);
}

/* A key that has rested is tried by one call. */
static void test_trial(struct task *t, void *arg)
{
    (void)arg;
    struct node a;
    struct permit first;
    empty_stores(t);
    add_key(t, 1, 100000, 1000000);
    open_node(t, &a, SLOT_MS);
    check(uses_only(t, &a, 1, 3));
    permits_cool(t, a.permits, 1, 1000);
    is_int(permits_take(t, a.permits, PERMITS_RUNS, 1, &first), 0, "a key has rested, and is used");
    is_int(key_of_next(t, &a, 1), ERR_TIMEOUT, "by one call: others wait for its outcome");
    permits_cool(t, a.permits, 1, 1000);
    permits_settle(t, a.permits, &first, 1);
    is_int(permits_take(t, a.permits, PERMITS_RUNS, 1, &first), 0,
           "it was told to rest again: one call again");
    is_int(key_of_next(t, &a, 1), ERR_TIMEOUT, "and others wait");
    permits_settle(t, a.permits, &first, 1);
    ok(uses_only(t, &a, 1, 20), "until a call has ended in another way");
    permits_cool(t, a.permits, 1, 86400000);
    int64_t ms = state_of(t, &a, 0).rests_ms;
    ok(ms > 50000 && ms <= 60000, "no key rests for more than a minute, whatever it is told");
    close_node(t, &a);
}

static void test_words(void)
{
    struct permits_state s = {.active = true, .caps = {-1, -1, -1}};
    is_str(str_of(permits_word(&s)), STR("active"), "a key that may be used");
    s.rests_ms = 5;
    is_str(str_of(permits_word(&s)), STR("resting"), "one that rests");
    s.caps[1] = s.calls[1] = 9;
    is_str(str_of(permits_word(&s)), STR("capped"), "one whose cap is used up, even if it rests");
    s.calls[1] = 8;
    s.caps[2] = 0;
    is_str(str_of(permits_word(&s)), STR("capped"), "a cap of 0 always is");
    s.active = false;
    is_str(str_of(permits_word(&s)), STR("off"), "one that is off, whatever else");
    s.refused = true;
    is_str(str_of(permits_word(&s)), STR("refused"), "because the service refused it");
}

static void test_wake(struct task *t, void *arg)
{
    (void)arg;
    struct node a, b;
    empty_stores(t);
    add_key(t, 1, 1000, 100000);
    open_two(t, &a, &b);
    check(key_of_next(t, &a, 100) == 1 && key_of_next(t, &b, 100) == 1);
    permits_cool(t, a.permits, 1, 60000);
    is_int(key_of_next(t, &a, 100), ERR_TIMEOUT, "a key rests here");
    is_int(key_of_next(t, &b, 100), ERR_TIMEOUT, "and there");
    is_int(permits_wake_key(t, b.permits, 1), 0, "it is woken there");
    is_int(key_of_next(t, &b, 100), 1, "and used there");
    pause_ms(t, 1000);
    is_int(key_of_next(t, &a, 100), 1, "and here, where it had been sent to rest");
    struct permits_state s = state_of(t, &a, 0);
    ok(s.rests_ms == 0 && !s.error.p, "nothing is left of the rest");
    permits_cool(t, a.permits, 1, 60000);
    permits_forget_key(t, a.permits, 1);
    s = state_of(t, &a, 0);
    ok(!s.error.p && s.calls[0] == 0 && s.calls[2] == 0, "of a deleted one nothing is known");
    close_node(t, &a);
    close_node(t, &b);
}

/* --- places --- */

static void test_places(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    empty_stores(t);
    for (int i = 1; i <= PERMITS_KEYS_MAX; i++)
        add_key(t, i, 1000, 100000);
    open_node(t, &n, SLOT_MS);
    pause_ms(t, 600);
    is_int((int64_t)n.permits->key_count, PERMITS_KEYS_MAX, "every place is taken");
    sql_do(t, &n, "DELETE FROM api_list");
    pause_ms(t, 1200);
    add_key(t, 200, 1000, 100000);
    pause_ms(t, 1200);
    ok(!permits_find(n.permits, 200), "a deleted key keeps its place: requests may be under way");
    for (size_t i = 0; i < n.permits->key_count; i++)
        if (n.permits->keys[i]->gone_us)
            n.permits->keys[i]->gone_us -= 2 * 3600 * 1000000LL;
    pause_ms(t, 1200);
    is_int(key_of_next(t, &n, 100), 200, "an hour later a new one has it");
    close_node(t, &n);
}

/* --- speed --- */

static void pair_up(struct task *t, void *arg)
{
    struct try *x = arg;
    struct permit p;
    for (int i = 0; i < 300; i++) {
        struct task_scope scope = task_scope(t);
        check(permits_take(t, x->node->permits, PERMITS_RUNS, 1000, &p) == 0);
        permits_settle(t, x->node->permits, &p, 700);
        x->taken++;
        check(task_yield(t) == 0);
        task_scope_end(t, scope);
    }
}

static void test_speed(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    empty_stores(t);
    add_key(t, 1, 1000000000, 1000000000000);
    open_node(t, &n, 0);
    struct try x = {.node = &n};
    struct group g;
    group_init(&g, task_loop(t));
    int64_t calls = counted("millrace_keyring_leases_total"), from = now_us(t);
    for (int i = 0; i < 1000; i++)
        check(task_go(&g, "pairs", pair_up, &x) == 0);
    check(group_join(t, &g) == 0);
    int64_t us = now_us(t) - from;
    calls = counted("millrace_keyring_leases_total") - calls;
    is_int(x.taken, 300000, "a thousand workers take and settle");
    ok(calls < 1000, "with %lld calls: %lld pairs a second, %.2f us each", (long long)calls,
       (long long)(x.taken * 1000000 / us), (double)us / (double)x.taken);
    pause_ms(t, 1200);
    int64_t tokens;
    is_int(used(t, &n, &tokens), 300000, "every one is counted, what is left went back");
    is_int(tokens, 300000 * (int64_t)700, "and its tokens");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_cap, (void *)"minute", true);
    tap_task(test_cap, (void *)"day", true);
    tap_task(test_cap, (void *)"month", true);
    tap_task(test_rest, NULL, true);
    tap_task(test_trial, NULL, true);
    tap_task(test_refused, NULL, true);
    tap_task(test_added, NULL, true);
    tap_task(test_keyless, NULL, true);
    tap_task(test_returns, NULL, true);
    tap_task(test_large, NULL, true);
    tap_task(test_states, NULL, true);
    test_words();
    tap_task(test_wake, NULL, true);
    tap_task(test_places, NULL, true);
    tap_task(test_speed, NULL, true);
    return stop_stores();
}
