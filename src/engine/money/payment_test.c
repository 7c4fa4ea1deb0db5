/* Payments of jobs: several requests of a user in one deduction, each with its own outcome. */
#include "engine/money/ledger_fixture.h"

enum { MANY = 60 };

struct pay {
    struct node *node;
    struct ledger_move m;
    struct task *task;
    int err;
    char why[200];
};

static void pay_task(struct task *t, void *arg)
{
    struct pay *p = arg;
    p->task = t;
    p->err = ledger_pay(t, p->node->ledger, &p->m);
    snprintf(p->why, sizeof p->why, "%s", p->err ? task_error(t) : "");
    p->task = NULL;
}

static void pays(struct task *t, struct node *n, struct group *g, struct pay *p, int64_t uid,
                 int64_t cents, const char *name)
{
    *p = (struct pay){.node = n, .m = move_of(t, uid, cents, name)};
    check(task_go(g, "pay", pay_task, p) == 0);
}

static int64_t commits(struct task *t, struct node *n)
{
    struct sql_rows r;
    int64_t v = -1;
    check(sql_call(t, n->sql, &r, "SHOW GLOBAL STATUS LIKE 'Com_commit'") == 0 && r.count == 1);
    check(str_to_i64(r.cells[1].s, &v));
    return v;
}

static int64_t paid(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n,
                      "SELECT COUNT(*) FROM billing_log b JOIN ledger_request q ON q.uid = b.uid"
                      " AND q.number = b.number AND q.cents = b.cents AND q.kind = 'deduction'"
                      " WHERE b.uid = ? AND b.source = 'redis' AND b.kind = 'deduction'",
                      uid);
}

/* --- together --- */

static void test_together(struct task *t, void *arg)
{
    struct node n;
    struct group g;
    struct pay p[MANY];
    (void)arg;
    open_node(t, &n);
    group_init(&g, task_loop(t));
    int64_t uid = add_user(t, &n, 10000), other = add_user(t, &n, 10000);
    check(balance(t, &n, uid) == 10000 && balance(t, &n, other) == 10000);
    int64_t before = commits(t, &n), good = 0;
    for (int i = 0; i < MANY; i++)
        pays(t, &n, &g, &p[i], i % 2 ? other : uid, i + 1,
             str_printf(task_arena(t), "pay:%d", i).p);
    check(group_join(t, &g) == 0);
    for (int i = 0; i < MANY; i++)
        good += p[i].err == 0;
    is_int(good, MANY, "all are paid");
    int64_t after = commits(t, &n) - before;
    ok(after <= 12, "in few transactions: %lld", (long long)after);
    ok(paid(t, &n, uid) == MANY / 2 && paid(t, &n, other) == MANY / 2, "each once");
    is_int(balance(t, &n, uid) + balance(t, &n, other), 20000 - MANY * (MANY + 1) / 2,
           "what they cost is gone");
    ok(every_cent(t, &n, uid) && every_cent(t, &n, other), "every cent is where it belongs");
    for (int i = 0; i < MANY; i++)
        pays(t, &n, &g, &p[i], i % 2 ? other : uid, i + 1,
             str_printf(task_arena(t), "pay:%d", i).p);
    check(group_join(t, &g) == 0);
    ok(paid(t, &n, uid) == MANY / 2 && every_cent(t, &n, uid), "a repeat finds them paid");
    close_node(t, &n);
}

static void test_outcomes(struct task *t, void *arg)
{
    struct node n;
    struct group g;
    struct pay p[6];
    (void)arg;
    open_node(t, &n);
    group_init(&g, task_loop(t));
    int64_t uid = add_user(t, &n, 1000), after;
    check(deduct(t, &n, uid, 100, "was", &after) == 0 && after == 900);
    pays(t, &n, &g, &p[0], uid, 100, "was");
    pays(t, &n, &g, &p[1], uid, 99, "was");
    pays(t, &n, &g, &p[2], uid, 500, "first");
    pays(t, &n, &g, &p[3], uid, 500, "second");
    pays(t, &n, &g, &p[4], uid, 400, "third");
    pays(t, &n, &g, &p[5], uid, 1, "fourth");
    check(group_join(t, &g) == 0);
    ok(p[0].err == 0, "one that was paid before is found");
    ok(p[1].err == ERR_CONFLICT && strstr(p[1].why, "was used for something else"),
       "one with another amount is refused: %s", p[1].why);
    ok(p[2].err == 0 && p[4].err == 0, "as many as the money reaches for are paid");
    ok(p[3].err == ERR_FUNDS && p[5].err == ERR_FUNDS && strstr(p[3].why, "less than 5.00"),
       "the others are refused: %s", p[3].why);
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM ledger_request WHERE uid = ? AND number IS NULL",
                      uid),
           0, "and not noted");
    ok(balance(t, &n, uid) == 0 && every_cent(t, &n, uid), "every cent is where it belongs");
    struct ledger_move odd = move_of(t, uid, 0, "odd");
    is_int(ledger_pay(t, n.ledger, &odd), ERR_INVALID, "nothing is no payment");
    struct ledger_move none = move_of(t, 999999, 5, "odd");
    is_int(ledger_pay(t, n.ledger, &none), ERR_NOT_FOUND, "a user who is unknown cannot pay");
    close_node(t, &n);
}

static void test_twice_at_once(struct task *t, void *arg)
{
    struct node n;
    struct group g;
    struct pay p[5];
    (void)arg;
    open_node(t, &n);
    group_init(&g, task_loop(t));
    int64_t uid = add_user(t, &n, 1000);
    for (int i = 0; i < 3; i++)
        pays(t, &n, &g, &p[i], uid, 100, "same");
    pays(t, &n, &g, &p[3], uid, 150, "same");
    pays(t, &n, &g, &p[4], uid, 30, "other");
    check(group_join(t, &g) == 0);
    ok(p[0].err == 0 && p[1].err == 0 && p[2].err == 0 && p[4].err == 0,
       "a request that comes three times at once is paid, each time");
    is_int(p[3].err, ERR_CONFLICT, "and not as something else");
    ok(balance(t, &n, uid) == 870 && paid(t, &n, uid) == 2, "but once");
    close_node(t, &n);
}

/* --- deaths --- */

/* A node dies after a step of a list; another one is asked for all of them, and one more. */
static void die_after(struct task *t, bool taken)
{
    struct node n;
    struct group g;
    struct ledger_move m[3];
    struct ledger_deduction d[3];
    struct ledger_look look;
    struct pay p[4];
    open_node(t, &n);
    group_init(&g, task_loop(t));
    int64_t uid = add_user(t, &n, 1000);
    check(balance(t, &n, uid) == 1000 && ledger_look(t, n.ledger, uid, &look) == 0);
    for (int i = 0; i < 3; i++) {
        m[i] = move_of(t, uid, 100 + i, str_printf(task_arena(t), "die:%d", i).p);
        d[i] = (struct ledger_deduction){.m = &m[i], .task = t};
    }
    check(ledger_deduct_note(t, n.ledger, &look, d, 3) == 0);
    if (taken) {
        check(ledger_take(t, n.ledger, &look, d, 2) == 0);
        ok(d[0].status == LEDGER_TAKEN && d[1].status == LEDGER_TAKEN && queued(t, &n, uid) == 2 &&
               in_redis(t, &n, uid) == 799,
           "two of three are taken");
        check(ledger_take(t, n.ledger, &look, d, 3) == 0);
        ok(d[0].status == LEDGER_TAKEN_BEFORE && d[1].status == LEDGER_TAKEN_BEFORE &&
               d[2].status == LEDGER_TAKEN && in_redis(t, &n, uid) == 697,
           "a repeat takes the third alone");
    }
    for (int i = 0; i < 4; i++)
        pays(t, &n, &g, &p[i], uid, 100 + i, str_printf(task_arena(t), "die:%d", i).p);
    check(group_join(t, &g) == 0);
    ok(p[0].err == 0 && p[1].err == 0 && p[2].err == 0 && p[3].err == 0 && paid(t, &n, uid) == 4 &&
           balance(t, &n, uid) == 1000 - 406 && every_cent(t, &n, uid),
       "after %s: all are paid once", taken ? "the taking" : "the note");
    close_node(t, &n);
}

static void test_deaths(struct task *t, void *arg)
{
    (void)arg;
    die_after(t, false);
    die_after(t, true);
}

/* Something was trimmed after the look: none is taken. */
static void test_late(struct task *t, void *arg)
{
    struct node n;
    struct ledger_look look;
    (void)arg;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), after;
    struct ledger_move m[2] = {move_of(t, uid, 10, "late:1"), move_of(t, uid, 20, "late:2")};
    struct ledger_deduction d[2] = {{.m = &m[0], .task = t}, {.m = &m[1], .task = t}};
    check(balance(t, &n, uid) == 1000 && ledger_look(t, n.ledger, uid, &look) == 0);
    check(ledger_deduct_note(t, n.ledger, &look, d, 2) == 0);
    check(deduct(t, &n, uid, 10, "late:1", &after) == 0 && after == 990);
    check(ledger_take(t, n.ledger, &look, d, 2) == 0);
    ok(d[0].status == LEDGER_AGAIN && d[1].status == LEDGER_AGAIN && in_redis(t, &n, uid) == 990,
       "nothing is taken by a look that is too old");
    close_node(t, &n);
}

/* The tasks that make payments are cancelled, as when a node ends; the same requests come again. */
static void test_canceled(struct task *t, void *arg)
{
    struct node n, other;
    struct group g;
    struct pay p[MANY];
    int64_t left = 0;
    (void)arg;
    open_node(t, &n);
    open_node(t, &other);
    group_init(&g, task_loop(t));
    int64_t uid = add_user(t, &n, 10000);
    check(balance(t, &n, uid) == 10000);
    for (int round = 0; round < 12; round++) { /* at different steps */
        struct pay *of = p + round * 5;
        for (int i = 0; i < 5; i++) {
            pays(t, &n, &g, &of[i], uid, 10, str_printf(task_arena(t), "c:%d", round * 5 + i).p);
            for (int turns = 0; i == 2 && turns < 2; turns++)
                check(task_yield(t) == 0); /* three are in a clerk's hands, the others in line */
        }
        for (int i = 0; i < 1 + round * 3; i++)
            check(task_yield(t) == 0);
        if (of[1].task)
            task_cancel(of[1].task);
        if (of[4].task)
            task_cancel(of[4].task);
        check(group_join(t, &g) == 0);
    }
    for (int i = 0; i < MANY; i++)
        left += p[i].err == ERR_CANCELED;
    ok(left > 0, "some left the line: %lld", (long long)left);
    is_int(balance(t, &n, uid), 10000 - (MANY - left) * 10, "those have cost nothing");
    for (int i = 0; i < 5; i++)
        pays(t, &n, &g, &p[i], uid, 10, str_printf(task_arena(t), "c:%d", i).p);
    for (int i = 0; i < 4; i++)
        check(task_yield(t) == 0);
    group_cancel(&n.tasks);
    check(group_join(t, &g) == 0);
    for (int i = 0; i < MANY; i++) /* another node is asked */
        pays(t, &other, &g, &p[i], uid, 10, str_printf(task_arena(t), "c:%d", i).p);
    check(group_join(t, &g) == 0);
    ok(paid(t, &other, uid) == MANY && balance(t, &other, uid) == 10000 - MANY * 10 &&
           every_cent(t, &other, uid),
       "when they come again, each is paid once");
    close_node(t, &n);
    close_node(t, &other);
}

/* Redis comes back without what was taken last, again and again, while payments are made. */
static void test_redis_lost(struct task *t, void *arg)
{
    struct node n;
    struct group g;
    struct pay p[MANY];
    int64_t good = 0, wrong = 0;
    (void)arg;
    open_node(t, &n);
    group_init(&g, task_loop(t));
    int64_t uid = add_user(t, &n, 10000);
    check(balance(t, &n, uid) == 10000);
    say(t, &n, STR("SAVE"));
    for (int round = 0; round < 3; round++) {
        uint64_t epoch = redis_epoch(n.redis);
        for (int i = 0; i < 20; i++)
            pays(t, &n, &g, &p[round * 20 + i], uid, 10,
                 str_printf(task_arena(t), "lost:%d", round * 20 + i).p);
        pause_ms(t, round * 3);
        restart_redis();
        check(group_join(t, &g) == 0);
        await_new_redis(t, &n, epoch);
    }
    for (int i = 0; i < MANY; i++)
        wrong += p[i].err && p[i].err != ERR_UNCERTAIN && p[i].err != ERR_UNAVAILABLE;
    is_int(wrong, 0, "payments are made, or uncertain, or the store is away");
    for (int i = 0; i < MANY; i++)
        pays(t, &n, &g, &p[i], uid, 10, str_printf(task_arena(t), "lost:%d", i).p);
    check(group_join(t, &g) == 0);
    for (int i = 0; i < MANY; i++)
        good += p[i].err == 0;
    ok(good == MANY && paid(t, &n, uid) == MANY && balance(t, &n, uid) == 10000 - MANY * 10 &&
           every_cent(t, &n, uid),
       "asked for again, each is paid once");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_together, NULL, true);
    tap_task(test_outcomes, NULL, true);
    tap_task(test_twice_at_once, NULL, true);
    tap_task(test_deaths, NULL, true);
    tap_task(test_late, NULL, true);
    tap_task(test_canceled, NULL, true);
    tap_task(test_redis_lost, NULL, true);
    return stop_stores();
}
