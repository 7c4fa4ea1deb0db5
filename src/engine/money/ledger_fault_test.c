/* Money while stores and nodes die. */
#include <stdlib.h>

#include "engine/money/ledger_fixture.h"
#include "tests/role.h"

static int note(struct task *t, struct sql *c, void *arg)
{
    const struct ledger_move *m = arg;
    return sql_on(t, c, NULL,
                  "INSERT INTO admin_audit (at, admin_uid, admin_name, action, target_uid,"
                  " request_id, ip_address)"
                  " VALUES (UTC_TIMESTAMP(3), 1, 'a', 'move', ?, ?, '::1')",
                  sql_int(m->uid), sql_text(m->request_id));
}

static int64_t notes(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM admin_audit WHERE target_uid = ?", uid);
}

static int64_t deductions(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND kind = 'deduction'",
                      uid);
}

/* --- Redis is away --- */

static void test_redis_away(struct task *t, void *arg)
{
    (void)arg;
    forget_snapshot();
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), other = add_user(t, &n, 1000), after = 0;
    check(balance(t, &n, uid) == 1000);
    say(t, &n, STR("SAVE")); /* it will come back with a balance that is too old */
    uint64_t epoch = redis_epoch(n.redis);
    store_redis_kill(&store);
    while (redis_up(n.redis))
        pause_ms(t, 2);
    ok(recharge(t, &n, uid, 500, "r1", &after) == 0 && after == 1500, "a recharge without Redis");
    ok(recharge(t, &n, other, 500, "r1", &after) == 0 && after == 1500, "and another");
    is_int(in_outbox(t, &n, uid), 1, "waits in the outbox");
    bool degraded = false;
    ok(ledger_balance(t, n.ledger, uid, &after, &degraded) == 0 && degraded && after == 1500,
       "and is to be seen, degraded");
    struct ledger_move m = move_of(t, uid, 100, "d1");
    m.also = note;
    m.also_arg = &m;
    is_int(ledger_deduct(t, n.ledger, &m, &after), ERR_UNAVAILABLE, "nothing is taken meanwhile");
    is_int(notes(t, &n, uid), 0, "nor noted");
    ok(ledger_round(t, n.ledger) != 0 && in_outbox(t, &n, uid) == 1, "the outbox waits");
    store_redis_spawn(&store, NULL);
    await_new_redis(t, &n, epoch);
    is_int(in_redis(t, &n, uid), 1000, "Redis comes back with what it had");
    is_int(ledger_round(t, n.ledger), 0, "gets the move");
    ok(in_outbox(t, &n, uid) == 0 && in_outbox(t, &n, other) == 0, "of all of them");
    ok(balance(t, &n, uid) == 1500 && balance(t, &n, other) == 1500, "and what it had is not read");
    ok(ledger_deduct(t, n.ledger, &m, &after) == 0 && after == 1400, "now it can be taken");
    ok(every_cent(t, &n, uid) && every_cent(t, &n, other), "every cent is there");
    close_node(t, &n);
}

/* --- MySQL is lost at the worst moment --- */

static int freeze(struct task *t, struct sql *c, void *arg)
{
    (void)t;
    (void)c;
    (void)arg;
    mariadb_freeze(&server); /* COMMIT comes next, and is not answered */
    return 0;
}

static void test_commit_lost(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t up = add_user(t, &n, 1000), down = add_user(t, &n, 1000), after = 0;
    check(balance(t, &n, up) == 1000 && balance(t, &n, down) == 1000);
    struct ledger_move m = move_of(t, up, 500, "r1"), d = move_of(t, down, 300, "d1");
    m.also = d.also = freeze;
    int64_t old = task_deadline(t, 300);
    is_int(ledger_recharge(t, n.ledger, &m, &after), ERR_UNCERTAIN, "a COMMIT is not answered");
    task_deadline_restore(t, old);
    mariadb_thaw(&server);
    m.also = NULL;
    ok(ledger_recharge(t, n.ledger, &m, &after) == 0 && after == 1500, "a repeat completes it");
    old = task_deadline(t, 300);
    is_int(ledger_deduct(t, n.ledger, &d, &after), ERR_UNCERTAIN, "the same for a deduction");
    task_deadline_restore(t, old);
    mariadb_thaw(&server);
    d.also = NULL;
    ok(ledger_deduct(t, n.ledger, &d, &after) == 0 && after == 700, "and its repeat");
    ok(every_cent(t, &n, up) && every_cent(t, &n, down), "every cent is there");
    close_node(t, &n);
}

/* --- a node dies between two steps --- */

enum loss { KEPT, OLDER, EMPTY, LOSSES };
static const char *const loss_names[] = {"Redis stays", "Redis comes back older",
                                         "Redis comes back empty"};

static void lose(struct task *t, struct node *n, struct node *other, enum loss loss)
{
    if (loss == KEPT)
        return;
    if (loss == EMPTY)
        forget_snapshot();
    uint64_t epoch = redis_epoch(n->redis), epoch2 = redis_epoch(other->redis);
    restart_redis();
    await_new_redis(t, n, epoch);
    await_new_redis(t, other, epoch2);
}

/* Points 0 and 1: MySQL is done. 2 and 3: Redis too. 4 and 5: all is done. Odd: it was loaded. */
static void begin_recharge(struct task *t, struct node *n, int64_t uid, int point)
{
    struct ledger_move m = move_of(t, uid, 500, "r1");
    struct ledger_row row;
    check(ledger_recharge_make(t, n->ledger, &m, &row) == 0);
    if (point >= 2)
        check(ledger_carry_over(t, n->ledger, uid, row.move_no) == 0);
    if (point == 2 || point == 3) /* it died before the outbox row went */
        sql_do(t, n, "INSERT INTO ledger_outbox VALUES (?, 2)", uid);
}

static void end_recharge(struct task *t, struct node *n, int64_t uid, int point, enum loss loss)
{
    int64_t after = 0;
    ok(in_outbox(t, n, uid) == 0 && in_mysql(t, n, uid) == 1500 && every_cent(t, n, uid) &&
           in_redis(t, n, uid) == 1500,
       "recharge, died at %d, %s: repaired by another node", point, loss_names[loss]);
    ok(recharge(t, n, uid, 500, "r1", &after) == 0 && after == 1500, "and not made again");
}

/* Point 0: it is noted. 1: taken. 2: written. 3: trimmed. */
static void begin_deduct(struct task *t, struct node *n, int64_t uid, int point)
{
    struct ledger_move m = move_of(t, uid, 300, "d1");
    struct ledger_look look;
    struct ledger_request request;
    struct ledger_batch b;
    int64_t status;
    m.also = note;
    m.also_arg = &m;
    check(ledger_look(t, n->ledger, uid, &look) == 0 && look.loaded);
    check(note_one(t, n->ledger, &m, &look, &request) == 0);
    if (point >= 1)
        check(take_one(t, n->ledger, &m, &look, &status) == 0 && status == LEDGER_TAKEN);
    if (point >= 2) {
        check(ledger_batch_read(t, n->ledger, uid, &b) == 0 && b.count == 1);
        check(ledger_batch_write(t, n->ledger, &b) == 0 && b.fenced);
    }
    if (point >= 3)
        check(ledger_trim(t, n->ledger, uid, b.billed_seq) == 0);
}

static void end_deduct(struct task *t, struct node *n, int64_t uid, int point, enum loss loss)
{
    bool lost = point == 0 || (point == 1 && loss != KEPT);
    int64_t after = 0;
    ok(every_cent(t, n, uid) && in_mysql(t, n, uid) == (lost ? 1000 : 700),
       "deduction, died at %d, %s: %s", point, loss_names[loss],
       lost ? "nothing was taken" : "completed by another node");
    struct ledger_move m = move_of(t, uid, 300, "d1");
    m.also = note;
    m.also_arg = &m;
    int err = ledger_deduct(t, n->ledger, &m, &after);
    ok(err == 0 && after == 700 && every_cent(t, n, uid) && in_mysql(t, n, uid) == 700 &&
           deductions(t, n, uid) == 1 && notes(t, n, uid) == 1,
       "and by the same request, once");
}

#define RECHARGE_POINTS 6
#define DEDUCT_POINTS   4

static void kill_everywhere(struct task *t, struct node *n, struct node *other, enum loss loss)
{
    int64_t up[RECHARGE_POINTS], down[DEDUCT_POINTS];
    for (int i = 0; i < RECHARGE_POINTS; i++) {
        up[i] = add_user(t, n, 1000);
        check(i % 2 == 0 || balance(t, n, up[i]) == 1000);
    }
    for (int i = 0; i < DEDUCT_POINTS; i++) {
        down[i] = add_user(t, n, 1000);
        check(balance(t, n, down[i]) == 1000);
    }
    say(t, n, STR("SAVE"));
    for (int i = 0; i < RECHARGE_POINTS; i++)
        begin_recharge(t, n, up[i], i);
    for (int i = 0; i < DEDUCT_POINTS; i++)
        begin_deduct(t, n, down[i], i);
    lose(t, n, other, loss);
    check(ledger_round(t, other->ledger) == 0);
    for (int i = 0; i < RECHARGE_POINTS; i++)
        end_recharge(t, other, up[i], i, loss);
    for (int i = 0; i < DEDUCT_POINTS; i++)
        end_deduct(t, other, down[i], i, loss);
}

static void test_kill_points(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_node(t, &n);
    open_node(t, &other);
    int64_t before = alarms();
    for (int loss = 0; loss < LOSSES; loss++)
        kill_everywhere(t, &n, &other, (enum loss)loss);
    is_int(alarms() - before, 0, "without an alarm");
    close_node(t, &other);
    close_node(t, &n);
}

/* --- syncers and loaders that outlive their Redis --- */

/* Records are taken and read by a syncer; Redis comes back without the last one. */
static void read_and_lose(struct task *t, struct node *n, struct node *other, int64_t uid,
                          struct ledger_batch *b)
{
    struct ledger_move m = move_of(t, uid, 100, "d1"), m2 = move_of(t, uid, 30, "d2");
    struct ledger_look look;
    struct ledger_request request;
    int64_t status;
    check(balance(t, n, uid) == 1000);
    check(ledger_look(t, n->ledger, uid, &look) == 0);
    check(note_one(t, n->ledger, &m, &look, &request) == 0);
    check(take_one(t, n->ledger, &m, &look, &status) == 0 && status == LEDGER_TAKEN);
    say(t, n, STR("SAVE"));
    check(note_one(t, n->ledger, &m2, &look, &request) == 0);
    check(take_one(t, n->ledger, &m2, &look, &status) == 0 && status == LEDGER_TAKEN);
    check(ledger_batch_read(t, n->ledger, uid, b) == 0 && b->count == 2);
    lose(t, n, other, OLDER);
}

static void test_slow_syncer(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_node(t, &n);
    open_node(t, &other);
    int64_t uid = add_user(t, &n, 1000), after;
    struct ledger_batch b;
    read_and_lose(t, &n, &other, uid, &b);
    is_int(balance(t, &other, uid), 900, "a record that Redis lost was never made");
    ok(ledger_batch_write(t, n.ledger, &b) == 0 && !b.fenced,
       "a syncer that still holds it writes nothing");
    ok(in_mysql(t, &n, uid) == 1000 && every_cent(t, &n, uid), "every cent is there");
    check(deduct(t, &other, uid, 7, "d3", &after) == 0 && after == 893);
    ok(in_mysql(t, &n, uid) == 893 && every_cent(t, &n, uid), "and stays there");
    ok(deduct(t, &n, uid, 30, "d2", &after) == 0 && after == 863, "its sender can repeat it");
    ok(deduct(t, &n, uid, 100, "d1", &after) == 0 && after == 863,
       "and the kept one is not taken again");

    uid = add_user(t, &n, 1000);
    read_and_lose(t, &n, &other, uid, &b);
    ok(ledger_batch_write(t, n.ledger, &b) == 0 && b.fenced,
       "a syncer that writes before any loader");
    is_int(balance(t, &other, uid), 870, "makes it true");
    check(deduct(t, &other, uid, 7, "d3", &after) == 0 && after == 863);
    is_int(of_ledger(t, &other, uid, "seq"), 3, "and its number is not given again");
    ok(deduct(t, &n, uid, 30, "d2", &after) == 0 && after == 863, "nor is it taken again");
    ok(every_cent(t, &n, uid) && in_mysql(t, &n, uid) == 863, "every cent is there");
    close_node(t, &other);
    close_node(t, &n);
}

static void test_slow_loader(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_node(t, &n);
    open_node(t, &other);
    int64_t uid = add_user(t, &n, 1000), after, cents;
    struct generation generation;
    struct ledger_row row, seen;
    bool loaded = false;
    check(ledger_fence(t, n.ledger, &generation) == 0);
    check(ledger_row_read(t, n.ledger, uid, &row) == 0);
    check(recharge(t, &n, uid, 500, "r1", &after) == 0 && in_outbox(t, &n, uid) == 0);
    lose(t, &n, &other, EMPTY);
    check(ledger_load_row(t, n.ledger, uid, &generation, &row, &loaded, &seen, &cents) == 0);
    ok(!loaded && in_redis(t, &n, uid) == -1, "a row from before Redis died is not loaded after");
    ok(balance(t, &n, uid) == 1500 && every_cent(t, &n, uid), "every cent is there");
    close_node(t, &other);
    close_node(t, &n);
}

/* A deduction that read Redis before it died must not take from the Redis that came back. */
static void test_slow_taker(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_node(t, &n);
    open_node(t, &other);
    int64_t uid = add_user(t, &n, 1000), status = 0;
    check(balance(t, &n, uid) == 1000);
    say(t, &n, STR("SAVE"));
    struct ledger_move m = move_of(t, uid, 300, "d1");
    struct ledger_look look;
    struct ledger_request request;
    check(ledger_look(t, n.ledger, uid, &look) == 0 && look.loaded);
    check(note_one(t, n.ledger, &m, &look, &request) == 0);
    lose(t, &n, &other, OLDER);
    check(take_one(t, n.ledger, &m, &look, &status) == 0);
    ok(status == LEDGER_NOT_LOADED && in_redis(t, &n, uid) == 1000,
       "a balance of an earlier run is not touched");
    check(balance(t, &n, uid) == 1000);
    check(take_one(t, n.ledger, &m, &look, &status) == 0);
    ok(status == LEDGER_AGAIN && in_redis(t, &n, uid) == 1000, "nor is the next, unseen");
    ok(every_cent(t, &n, uid), "every cent is there");
    close_node(t, &other);
    close_node(t, &n);
}

/* --- everything at once --- */

#define STORM_USERS 4
#define STORM_TASKS 20
#define STORM_CALLS 300

struct storm {
    struct node n[2];
    int64_t uid[STORM_USERS], want[STORM_USERS], taken[STORM_USERS], made[STORM_USERS];
    int next, failed;
    int redis_cuts, sql_cuts, sql_kills;
    bool over;
    uint64_t random;
};

static uint64_t draw(struct storm *s, uint64_t below)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (s->random >> 33) % below;
}

static int attempt(struct task *t, struct storm *s, struct ledger_move *m, bool takes)
{
    struct node *n = &s->n[draw(s, 2)];
    int64_t after = -1;
    (void)task_deadline(t, (int64_t)(50 + draw(s, 2000)));
    return takes ? ledger_deduct(t, n->ledger, m, &after)
                 : ledger_recharge(t, n->ledger, m, &after);
}

/* One request, sent again until it is known what has become of it. */
static void one_request(struct task *t, struct storm *s, int number)
{
    size_t who = draw(s, STORM_USERS);
    bool takes = draw(s, 2);
    struct ledger_move m = move_of(t, s->uid[who], (int64_t)(1 + draw(s, 300)),
                                   arena_printf(task_arena(t), "storm%d", number));
    m.also = note;
    m.also_arg = &m;
    for (int i = 0; i < 400; i++) {
        struct task_scope scope = task_scope(t);
        int err = attempt(t, s, &m, takes);
        if (err == ERR_INTERNAL || err == ERR_CONFLICT || err == ERR_INVALID)
            printf("# %s: %s\n", err_name(err), task_error(t));
        task_scope_end(t, scope);
        if (err == 0) {
            s->want[who] += takes ? -m.cents : m.cents;
            s->taken[who] += takes;
            s->made[who] += !takes;
        }
        if (err == 0 || err == ERR_FUNDS)
            return;
        pause_ms(t, (int64_t)(5 + draw(s, 50)));
    }
    s->failed++;
}

static void run_requests(struct task *t, void *arg)
{
    struct storm *s = arg;
    while (s->next < STORM_CALLS) {
        struct task_scope scope = task_scope(t);
        one_request(t, s, s->next++);
        task_scope_end(t, scope);
        pause_ms(t, (int64_t)draw(s, 400));
    }
}

static void run_reads(struct task *t, void *arg)
{
    struct storm *s = arg;
    while (!s->over) {
        struct task_scope scope = task_scope(t);
        int64_t cents;
        bool degraded;
        size_t who = draw(s, STORM_USERS);
        struct ledger *l = s->n[draw(s, 2)].ledger;
        int err = ledger_balance(t, l, s->uid[who], &cents, &degraded);
        if (!err && draw(s, 4) == 0)
            err = ledger_let_go(t, l, s->uid[who]);
        if (err == ERR_INTERNAL)
            printf("# %s\n", task_error(t));
        task_scope_end(t, scope);
        pause_ms(t, (int64_t)draw(s, 10));
    }
}

static void cut_mysql(struct task *t, struct storm *s, struct sql_pool *sql)
{
    struct sql_rows r;
    if (sql_call(t, sql, &r,
                 "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()"))
        return;
    for (size_t i = 0; i < r.count; i++) {
        const char *kill = arena_printf(task_arena(t), "KILL %lld", (long long)r.cells[i].i);
        if (draw(s, 3) == 0 && sql_argv(t, sql, kill, 0, NULL, NULL))
            return; /* it has ended by itself */
    }
}

static void cut_redis(struct task *t, struct storm *s)
{
    char answer[16];
    if (draw(s, 2))
        forget_snapshot();
    else if (draw(s, 2))
        (void)store_redis_say(&store, "SAVE", answer, sizeof answer);
    pause_ms(t, (int64_t)draw(s, 100));
    store_redis_kill(&store);
    pause_ms(t, (int64_t)draw(s, 100));
    store_redis_spawn(&store, NULL);
}

static void run_damage(struct task *t, void *arg)
{
    struct storm *s = arg;
    struct sql_pool *sql =
        sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url, .connections_max = 1});
    while (s->next < STORM_CALLS) {
        struct task_scope scope = task_scope(t);
        pause_ms(t, (int64_t)(20 + draw(s, 200)));
        if (draw(s, 2)) {
            cut_redis(t, s);
            s->redis_cuts++;
        } else if (draw(s, 5)) {
            cut_mysql(t, s, sql);
            s->sql_cuts++;
        } else {
            mariadb_kill(&server);
            mariadb_spawn(&server);
            s->sql_kills++;
        }
        task_scope_end(t, scope);
    }
    s->over = true;
    sql_pool_free(sql);
}

static void start_storm(struct task *t, struct storm *s, struct group *work, struct group *roles)
{
    (void)t;
    for (int i = 0; i < 2; i++)
        role_in(roles, ledger_role, s->n[i].ledger, 200);
    check(task_go(work, "damage", run_damage, s) == 0);
    for (int i = 0; i < 3; i++)
        check(task_go(work, "read", run_reads, s) == 0);
    for (int i = 0; i < STORM_TASKS; i++)
        check(task_go(work, "requests", run_requests, s) == 0);
}

static void judge(struct task *t, struct storm *s, size_t who)
{
    struct node *n = &s->n[who % 2];
    int64_t uid = s->uid[who];
    int tries = 0;
    while ((ledger_round(t, n->ledger) || in_outbox(t, n, uid) || queued(t, n, uid)) &&
           tries++ < 100)
        pause_ms(t, 50);
    ok(every_cent(t, n, uid), "user %zu: every cent is there", who);
    is_int(in_mysql(t, n, uid), s->want[who], "and what was answered is what was done");
    is_int(deductions(t, n, uid), s->taken[who], "each deduction once");
    is_int(sql_number(t, n, "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND kind = 'recharge'",
                      uid),
           s->made[who], "each recharge once");
    is_int(sql_number(t, n,
                      "SELECT COUNT(*) - COUNT(DISTINCT request_id) FROM admin_audit"
                      " WHERE target_uid = ?",
                      uid),
           0, "each noted once");
    ok(notes(t, n, uid) >= s->taken[who] + s->made[who], "and none unnoted");
}

static void test_storm(struct task *t, void *arg)
{
    const char *given = getenv("LEDGER_SEED");
    int64_t seed = *(int *)arg;
    if (!given || !str_to_i64(str_of(given), &seed))
        seed += (int64_t)(loop_random(task_loop(t)) % 1000000);
    printf("# LEDGER_SEED=%lld\n", (long long)seed);
    struct storm s = {.random = (uint64_t)seed};
    struct group work, roles;
    group_init(&work, task_loop(t));
    group_init(&roles, task_loop(t));
    forget_snapshot();
    open_node(t, &s.n[0]);
    open_node(t, &s.n[1]);
    for (size_t i = 0; i < STORM_USERS; i++)
        s.uid[i] = add_user(t, &s.n[0], s.want[i] = 1000);
    int64_t before = alarms();
    start_storm(t, &s, &work, &roles);
    check(group_join(t, &work) == 0);
    group_cancel(&roles);
    check(group_join(t, &roles) == 0);
    await_redis(t, &s.n[0]);
    await_redis(t, &s.n[1]);
    printf("# Redis killed %d times, MySQL %d, connections of MySQL cut %d\n", s.redis_cuts,
           s.sql_kills, s.sql_cuts);
    is_int(s.failed, 0, "every request is answered in the end");
    is_int(alarms() - before, 0, "without an alarm");
    for (size_t i = 0; i < STORM_USERS; i++)
        judge(t, &s, i);
    close_node(t, &s.n[1]);
    close_node(t, &s.n[0]);
}

int main(void)
{
    start_stores();
    tap_task(test_redis_away, NULL, true);
    tap_task(test_commit_lost, NULL, true);
    tap_task(test_kill_points, NULL, true);
    tap_task(test_slow_syncer, NULL, true);
    tap_task(test_slow_loader, NULL, true);
    tap_task(test_slow_taker, NULL, true);
    tap_task(test_storm, &(int){1}, true);
    return stop_stores();
}
