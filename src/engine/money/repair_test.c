/* Redis comes back older than MySQL: without the last commands of its append-only file, or without
 * any (BIL-4). Whatever was lost, every paper can be judged again, and is paid for once. */
#include <stdlib.h>

#include "engine/money/audit.h"
#include "engine/money/ledger_fixture.h"
#include "tests/role.h"

static const char *const aof[] = {"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0",
                                  NULL};

/* --- an append-only file that ends earlier --- */

static void aof_path(char *out, size_t n)
{
    snprintf(out, n, "%s/appendonlydir/appendonly.aof.1.incr.aof", store.dir);
}

/* Where the command ends that begins at p; NULL: it is not whole. */
static const char *command_end(const char *p, const char *end)
{
    char *rest;
    long words = p < end && *p == '*' ? strtol(p + 1, &rest, 10) : -1;
    for (p = words < 0 ? NULL : rest + 2; p && words > 0; words--) {
        if (p >= end || *p != '$')
            return NULL;
        long bytes = strtol(p + 1, &rest, 10);
        p = rest + 2 + bytes + 2;
    }
    return p && p <= end ? p : NULL;
}

static char *read_aof(size_t *n)
{
    char path[128];
    aof_path(path, sizeof path);
    FILE *f = fopen(path, "r");
    check(f && fseek(f, 0, SEEK_END) == 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = check_memory(malloc(*n + 1));
    check(fread(text, 1, *n, f) == *n);
    text[*n] = '\0';
    fclose(f);
    return text;
}

/* How many whole commands there are; the first `keep` of them end at *at. */
static size_t count_commands(const char *text, size_t n, size_t keep, size_t *at)
{
    size_t count = 0;
    *at = 0;
    for (const char *p = text; (p = command_end(p, text + n)); count++)
        if (count < keep)
            *at = (size_t)(p - text);
    return count;
}

static size_t commands(void)
{
    size_t n, at;
    char *text = read_aof(&n);
    size_t count = count_commands(text, n, 0, &at);
    free(text);
    return count;
}

/* Redis must be down. */
static void keep_commands(size_t keep)
{
    char path[128];
    size_t n, at;
    char *text = read_aof(&n);
    (void)count_commands(text, n, keep, &at);
    free(text);
    aof_path(path, sizeof path);
    check(truncate(path, (off_t)at) == 0);
}

static void restart_with(struct task *t, struct node *n, size_t keep)
{
    uint64_t epoch = redis_epoch(n->redis);
    store_redis_kill(&store);
    keep_commands(keep);
    store_redis_spawn(&store, aof);
    await_new_redis(t, n, epoch);
}

/* --- what must be so --- */

static int64_t reversals(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND kind = 'reversal'",
                      uid);
}

/* Charges less reversals of a paper; -1: more or fewer than once for some paper that has one. */
static int64_t papers_paid(struct task *t, struct node *n, int64_t uid)
{
    return sql_number(t, n,
                      "SELECT CAST(IF(COALESCE(MIN(net), 0) < 0 OR MAX(net) > 1, -1,"
                      " COALESCE(SUM(net), 0)) AS SIGNED) FROM"
                      " (SELECT SUM(IF(kind = 'charge', 1, -1)) AS net FROM billing_log"
                      " WHERE uid = ? AND kind IN ('charge', 'reversal') GROUP BY qid, doi) papers",
                      uid);
}

static int64_t results(struct task *t, struct node *n, int64_t uid, struct str qid)
{
    return ask_int(t, n, STR("HLEN"), key_result(task_arena(t), uid, qid), STR_NULL);
}

static void audit_is_clean(struct task *t, struct node *n)
{
    struct audit_report r = {0};
    struct audit a = {.redis = n->redis, .sql = n->sql, .ledger = n->ledger, .deep = true};
    int err = audit_run(t, &a, &r);
    ok(!err && r.users > 0 && r.open > 0 && r.findings == 0 && r.unsettled == 0,
       "the audit finds nothing");
}

static void rebuild_run(struct task *t, struct node *n, int64_t uid, struct str qid)
{
    say(t, n, STR("HSET"), key_query_status(task_arena(t), uid, qid), STR("state"), STR("RUNNING"));
}

static int charge_all(struct task *t, struct node *n, int64_t uid, struct str qid, int papers)
{
    int done = 0;
    for (int i = 0; i < papers; i++) {
        int out = pay(t, n, paper_of(t, uid, qid, i, 10 + i));
        check(out == CHARGE_DONE || out == CHARGE_EXISTS);
        done += out == CHARGE_DONE;
    }
    return done;
}

#define PAPERS 20
#define PRICE  (PAPERS * 10 + PAPERS * (PAPERS - 1) / 2)

/* PAPERS papers of a run, synced as far as `synced`. */
static struct str paid_run(struct task *t, struct node *n, int64_t uid, int synced)
{
    struct str qid = add_run(t, n, uid);
    check(charge_all(t, n, uid, qid, synced) == synced);
    check(ledger_sync(t, n->ledger, uid) == 0);
    check(charge_all(t, n, uid, qid, PAPERS) == PAPERS - synced);
    return qid;
}

/* As a version left it that did not write verdicts with their charges. */
static void forget_verdicts(struct task *t, struct node *n, int64_t uid, int from)
{
    check(sql_call(t, n->sql, NULL,
                   "DELETE FROM search_result WHERE uid = ?"
                   " AND CAST(SUBSTRING_INDEX(doi, '/', -1) AS SIGNED) >= ?",
                   sql_int(uid), sql_int(from)) == 0);
    sql_do(t, n, "UPDATE query_log SET created_at = '2020-01-01' WHERE uid = ?", uid);
}

/* lost: papers of which neither store has the result. */
static void judge(struct task *t, struct node *n, int64_t uid, struct str qid, int64_t lost,
                  const char *what)
{
    rebuild_run(t, n, uid, qid);
    int again = charge_all(t, n, uid, qid, PAPERS);
    check(ledger_round(t, n->ledger) == 0 && ledger_sync(t, n->ledger, uid) == 0);
    ok(again == lost && results(t, n, uid, qid) == PAPERS, "%s: %d papers are judged again", what,
       again);
    is_int(papers_paid(t, n, uid), PAPERS, "each is paid for once");
    is_int(in_mysql(t, n, uid), 10000 - PRICE, "to the cent");
    ok(every_cent(t, n, uid) && in_redis(t, n, uid) == 10000 - PRICE, "every cent is there");
    ok(of_status(t, n, uid, qid, "finished") == PAPERS &&
           of_status(t, n, uid, qid, "cost") == PRICE,
       "and the run's own counts are right");
    audit_is_clean(t, n);
}

/* --- every place where the file may end --- */

static void test_every_cut(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t before = alarms();
    for (int back = 0; back < 14; back++) {
        int64_t uid = add_user(t, &n, 10000);
        struct str qid = paid_run(t, &n, uid, 15);
        check(ledger_sync(t, n.ledger, uid) == 0);
        bool filed = back % 2 == 0;
        if (!filed)
            forget_verdicts(t, &n, uid, 0);
        restart_with(t, &n, commands() - (size_t)back * 7);
        int64_t lost = PAPERS - results(t, &n, uid, qid);
        judge(t, &n, uid, qid, filed ? 0 : lost,
              arena_printf(task_arena(t), "%d commands lost", back * 7));
        is_int(reversals(t, &n, uid), filed ? 0 : lost, "as many charges are reversed");
        is_int(sql_number(t, &n,
                          "SELECT CAST(total_cost * 100 AS SIGNED) FROM query_log WHERE uid = ?",
                          uid),
               PRICE, "and the run costs what it cost");
    }
    is_int(alarms() - before, 0, "without an alarm");
    close_node(t, &n);
}

/* A new paper comes first, and would get the seq of a charge that MySQL has already. */
static void test_other_paper_first(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 10000);
    struct str qid = add_run(t, &n, uid);
    check(charge_all(t, &n, uid, qid, 5) == 5 && ledger_sync(t, n.ledger, uid) == 0);
    size_t keep = commands();
    check(charge_all(t, &n, uid, qid, 10) == 5 && ledger_sync(t, n.ledger, uid) == 0);
    restart_with(t, &n, keep);
    is_int(in_redis(t, &n, uid), 10000 - 60, "Redis comes back with a balance");
    is_int(pay(t, &n, paper_of(t, uid, qid, 15, 25)), CHARGE_DONE, "the next paper is charged");
    ok(reversals(t, &n, uid) == 0 && results(t, &n, uid, qid) == 11,
       "after the lost ones are back");
    is_int(of_ledger(t, &n, uid, "seq"), 11, "with a seq of its own");
    ok(ledger_sync(t, n.ledger, uid) == 0 && in_mysql(t, &n, uid) == 10000 - 145 - 25 &&
           every_cent(t, &n, uid) && papers_paid(t, &n, uid) == 11,
       "and comes to MySQL");
    audit_is_clean(t, &n);
    close_node(t, &n);
}

static void test_nothing_left(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 10000), untouched = add_user(t, &n, 500);
    struct str qid = paid_run(t, &n, uid, PAPERS);
    check(balance(t, &n, untouched) == 500);
    restart_with(t, &n, 0);
    is_int(balance(t, &n, uid), 10000 - PRICE, "what MySQL has stays paid for");
    ok(results(t, &n, uid, qid) == PAPERS && reversals(t, &n, uid) == 0, "it is put back");
    judge(t, &n, uid, qid, 0, "nothing left");
    forget_verdicts(t, &n, uid, 0);
    restart_with(t, &n, 0);
    is_int(balance(t, &n, uid), 10000, "what neither has is given back");
    is_int(reversals(t, &n, uid), PAPERS, "by reversals");
    is_int(balance(t, &n, untouched), 500, "no other user is given anything");
    judge(t, &n, uid, qid, PAPERS, "nothing left in both");
    restart_with(t, &n, 0);
    judge(t, &n, uid, qid, 0, "nothing left once more");
    is_int(reversals(t, &n, uid), PAPERS, "each charge was given back once");
    close_node(t, &n);
}

/* --- what MySQL has of the results --- */

static void test_archived(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 10000);
    struct str qid = paid_run(t, &n, uid, PAPERS);
    check(ledger_sync(t, n.ledger, uid) == 0);
    sql_do(t, &n, "UPDATE query_log SET archived = 1, status = 'DONE' WHERE uid = ?", uid);
    restart_with(t, &n, 0);
    is_int(balance(t, &n, uid), 10000 - PRICE, "what is archived stays paid for");
    ok(reversals(t, &n, uid) == 0 && results(t, &n, uid, qid) == 0, "and nothing is restored");
    sql_do(t, &n,
           "INSERT INTO archive_outbox (query_id, uid, changed_ms, told_at)"
           " SELECT query_id, uid, 1, UTC_TIMESTAMP(3) FROM query_log WHERE uid = ?",
           uid);
    restart_with(t, &n, 0);
    ok(balance(t, &n, uid) == 10000 - PRICE && results(t, &n, uid, qid) == PAPERS,
       "one that was archived just now is whole, so that a late worker cannot charge again");
    say(t, &n, STR("HSET"), key_query_status(task_arena(t), uid, qid), STR("state"),
        STR("RUNNING"));
    is_int(pay(t, &n, paper_of(t, uid, qid, 3, 13)), CHARGE_EXISTS, "really");
    sql_do(t, &n, "DELETE FROM archive_outbox WHERE uid = ?", uid);

    uid = add_user(t, &n, 10000);
    qid = paid_run(t, &n, uid, PAPERS);
    check(ledger_sync(t, n.ledger, uid) == 0);
    forget_verdicts(t, &n, uid, 12);
    sql_do(t, &n, "UPDATE search_result SET relevant = NULL WHERE uid = ? AND doi = '10.1000/3'",
           uid);
    restart_with(t, &n, 0);
    rebuild_run(t, &n, uid, qid);
    struct str status = key_query_status(task_arena(t), uid, qid);
    say(t, &n, STR("HSET"), status, STR("fresh"), STR("since this Redis runs"));
    check(balance(t, &n, uid) > 0);
    is_int(ask_int(t, &n, STR("HEXISTS"), status, STR("fresh")), 0,
           "units that were listed before may have results now");
    ok(results(t, &n, uid, qid) == 11 && reversals(t, &n, uid) == PAPERS - 11,
       "half archived: verdicts are restored, the rest is given back");
    struct charge c = paper_of(t, uid, qid, 4, 14);
    is_str(result_of(t, &n, &c), c.result, "as they were");
    ok(of_status(t, &n, uid, qid, "relevant") == 6 && of_status(t, &n, uid, qid, "finished") == 11,
       "and counted");
    judge(t, &n, uid, qid, PAPERS - 11, "half archived");
    close_node(t, &n);
}

/* --- two nodes, and nodes that die --- */

struct opener {
    struct node *n;
    int64_t uid, cents;
};

static void open_balance(struct task *t, void *arg)
{
    struct opener *o = arg;
    o->cents = balance(t, o->n, o->uid);
}

static void test_two_nodes(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    open_node(t, &n[0]);
    open_node(t, &n[1]);
    int64_t uid = add_user(t, &n[0], 10000);
    struct str qid = paid_run(t, &n[0], uid, PAPERS);
    forget_verdicts(t, &n[0], uid, 0);
    uint64_t epoch = redis_epoch(n[1].redis);
    restart_with(t, &n[0], 0);
    await_new_redis(t, &n[1], epoch);
    struct opener o[2] = {{&n[0], uid, 0}, {&n[1], uid, 0}};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "open", open_balance, &o[0]) == 0);
    check(task_go(&g, "open", open_balance, &o[1]) == 0);
    check(group_join(t, &g) == 0);
    ok(o[0].cents == 10000 && o[1].cents == 10000 && reversals(t, n, uid) == PAPERS,
       "two nodes repair at once, and give back once");

    /* A node that was slow: others have repaired, loaded, charged and synced meanwhile. */
    struct generation generation;
    int64_t repaired = -1;
    check(ledger_fence(t, n[1].ledger, &generation) == 0);
    rebuild_run(t, n, uid, qid);
    check(charge_all(t, &n[0], uid, qid, PAPERS) == PAPERS);
    check(ledger_sync(t, n[0].ledger, uid) == 0);
    check(ledger_repair(t, n[1].ledger, uid, &generation, &repaired) == 0);
    is_int(reversals(t, n, uid), PAPERS, "a late repair gives nothing back that has its result");
    judge(t, &n[1], uid, qid, 0, "two nodes");

    /* A node that still has the generation before. */
    epoch = redis_epoch(n[1].redis);
    restart_with(t, &n[0], 0);
    await_new_redis(t, &n[1], epoch);
    repaired = -1;
    ok(ledger_repair(t, n[1].ledger, uid, &generation, &repaired) == 0 && repaired == -1 &&
           reversals(t, n, uid) == PAPERS,
       "nor does one of an earlier generation do anything");
    judge(t, &n[1], uid, qid, 0, "another Redis");
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

static void test_died_between(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 10000), repaired = -1;
    struct str qid = paid_run(t, &n, uid, PAPERS);
    forget_verdicts(t, &n, uid, 0);
    restart_with(t, &n, 0);
    struct generation generation;
    check(ledger_fence(t, n.ledger, &generation) == 0);
    check(ledger_repair(t, n.ledger, uid, &generation, &repaired) == 0);
    ok(repaired == PAPERS && in_redis(t, &n, uid) == -1 && reversals(t, &n, uid) == PAPERS,
       "a node dies after the repair and before the load");
    check(ledger_repair(t, n.ledger, uid, &generation, &repaired) == 0);
    is_int(reversals(t, &n, uid), PAPERS, "the next one finds it done");
    restart_with(t, &n, 0);
    judge(t, &n, uid, qid, PAPERS, "and Redis dies, too");
    is_int(reversals(t, &n, uid), PAPERS, "nothing was given back twice");
    close_node(t, &n);
}

/* More than one transaction holds. */
static void test_large(struct task *t, void *arg)
{
    (void)arg;
    enum { MANY = 2 * LEDGER_REPAIR_BATCH + 7 };
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, MANY);
    struct str qid = add_run(t, &n, uid);
    for (int i = 0; i < MANY; i++) {
        struct task_scope scope = task_scope(t);
        check(pay(t, &n, paper_of(t, uid, qid, i, 1)) == CHARGE_DONE);
        task_scope_end(t, scope);
    }
    check(ledger_sync(t, n.ledger, uid) == 0 && in_mysql(t, &n, uid) == 0);
    restart_with(t, &n, 0);
    ok(balance(t, &n, uid) == 0 && results(t, &n, uid, qid) == MANY, "%d verdicts are put back",
       MANY);
    struct ledger_repaired *at = &n.ledger->repairs[uid % LEDGER_REPAIRS_MAX];
    ok(at->uid == uid && at->after == MANY, "how far it came is known");
    restart_with(t, &n, 0);
    *at = (struct ledger_repaired){uid, LEDGER_REPAIR_BATCH, generation_now(n.redis)};
    ok(balance(t, &n, uid) == 0 && results(t, &n, uid, qid) == MANY - LEDGER_REPAIR_BATCH,
       "and one that was interrupted goes on there");
    forget_verdicts(t, &n, uid, 0);
    restart_with(t, &n, 0);
    is_int(balance(t, &n, uid), MANY, "%d charges are given back", MANY);
    ok(reversals(t, &n, uid) == MANY && every_cent(t, &n, uid), "each");
    close_node(t, &n);
}

/* --- everything at once --- */

#define STORM_USERS  3
#define STORM_PAPERS 250
#define STORM_MOVES  60
#define STORM_TASKS  24

struct storm {
    struct node n[2];
    int64_t uid[STORM_USERS], want[STORM_USERS];
    struct str qid[STORM_USERS];
    int next, next_move, failed, kills, cut, over, working;
    uint64_t random;
};

static uint64_t draw(struct storm *s, uint64_t below)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (s->random >> 33) % below;
}

static void storm_charge(struct task *t, struct storm *s, int i)
{
    int who = i % STORM_USERS, number = i / STORM_USERS;
    for (int tries = 0; tries < 4000; tries++) {
        struct task_scope scope = task_scope(t);
        enum charge_outcome out = CHARGE_FUNDS;
        struct charge c = paper_of(t, s->uid[who], s->qid[who], number, 1 + number % 50);
        (void)task_deadline(t, (int64_t)(20 + draw(s, 3000)));
        int err = ledger_charge(t, s->n[draw(s, 2)].ledger, 1, &c, &out);
        if (err == ERR_INTERNAL || err == ERR_INVALID || err == ERR_REFUSED)
            printf("# %s: %s\n", err_name(err), task_error(t));
        task_scope_end(t, scope);
        if (!err && (out == CHARGE_DONE || out == CHARGE_EXISTS))
            return;
        pause_ms(t, (int64_t)(1 + draw(s, 30)));
    }
    s->failed++;
}

static void storm_move(struct task *t, struct storm *s, int i)
{
    size_t who = draw(s, STORM_USERS);
    int64_t cents = (int64_t)(1 + draw(s, 300)), after;
    bool takes = draw(s, 2);
    for (int tries = 0; tries < 3000; tries++) {
        struct task_scope scope = task_scope(t);
        struct node *n = &s->n[draw(s, 2)];
        const char *id = arena_printf(task_arena(t), "m%d", i);
        (void)task_deadline(t, (int64_t)(50 + draw(s, 3000)));
        int err = takes ? deduct(t, n, s->uid[who], cents, id, &after)
                        : recharge(t, n, s->uid[who], cents, id, &after);
        task_scope_end(t, scope);
        if (err == 0)
            s->want[who] += takes ? -cents : cents;
        if (err == 0 || err == ERR_FUNDS)
            return;
        pause_ms(t, (int64_t)(5 + draw(s, 50)));
    }
    s->failed++;
}

static void run_work(struct task *t, void *arg)
{
    struct storm *s = arg;
    while (s->next < STORM_PAPERS * STORM_USERS) {
        storm_charge(t, s, s->next++);
        if (draw(s, 5) == 0 && s->next_move < STORM_MOVES)
            storm_move(t, s, s->next_move++);
        pause_ms(t, (int64_t)draw(s, 150));
    }
    s->working--;
}

/* The reconciler of this test: writes a run that Redis has lost again. */
static void run_runs(struct task *t, void *arg)
{
    struct storm *s = arg;
    while (!s->over || s->working > 0) {
        struct task_scope scope = task_scope(t);
        for (int i = 0; i < STORM_USERS; i++)
            if (redis_call(t, s->n[0].redis, STR_NULL, NULL, STR("HSET"),
                           key_query_status(task_arena(t), s->uid[i], s->qid[i]), STR("state"),
                           STR("RUNNING")))
                break;
        task_scope_end(t, scope);
        pause_ms(t, 20);
    }
}

static void run_damage(struct task *t, void *arg)
{
    struct storm *s = arg;
    while (s->next < STORM_PAPERS * STORM_USERS) {
        pause_ms(t, (int64_t)(50 + draw(s, 400)));
        if (draw(s, 8) == 0) {
            mariadb_kill(&server);
            mariadb_spawn(&server);
            continue;
        }
        store_redis_kill(&store);
        pause_ms(t, (int64_t)draw(s, 50));
        size_t all = commands(), back = draw(s, 10) == 0 ? all : draw(s, 200);
        keep_commands(back < all ? all - back : 0);
        s->cut += (int)(back < all ? back : all);
        s->kills++;
        store_redis_spawn(&store, aof);
    }
    s->over = 1;
}

static void judge_storm(struct task *t, struct storm *s, int who)
{
    struct node *n = &s->n[who % 2];
    int64_t uid = s->uid[who], price = 0;
    rebuild_run(t, n, uid, s->qid[who]);
    for (int i = 0; i < STORM_PAPERS; i++) { /* what was lost after it was answered */
        struct task_scope scope = task_scope(t);
        int out = pay(t, n, paper_of(t, uid, s->qid[who], i, 1 + i % 50));
        check(out == CHARGE_DONE || out == CHARGE_EXISTS);
        price += 1 + i % 50;
        task_scope_end(t, scope);
    }
    for (int i = 0;
         i < 100 && (ledger_round(t, n->ledger) || in_outbox(t, n, uid) || queued(t, n, uid) > 0);
         i++)
        pause_ms(t, 50);
    is_int(results(t, n, uid, s->qid[who]), STORM_PAPERS, "user %d: every paper has a result", who);
    is_int(papers_paid(t, n, uid), STORM_PAPERS, "and is paid for once");
    is_int(in_mysql(t, n, uid), s->want[who] - price, "the balance is what the model says");
    ok(every_cent(t, n, uid), "every cent is there");
    is_int(reversals(t, n, uid), 0, "nothing that MySQL had was given back");
}

static void start_storm(struct storm *s, struct group *work, struct group *roles)
{
    for (int i = 0; i < 2; i++)
        role_in(roles, ledger_role, s->n[i].ledger, 200);
    check(task_go(work, "damage", run_damage, s) == 0);
    check(task_go(work, "runs", run_runs, s) == 0);
    s->working = STORM_TASKS;
    for (int i = 0; i < STORM_TASKS; i++)
        check(task_go(work, "work", run_work, s) == 0);
}

static void test_storm(struct task *t, void *arg)
{
    (void)arg;
    const char *given = getenv("LEDGER_SEED");
    int64_t seed = 0;
    if (!given || !str_to_i64(str_of(given), &seed))
        seed = (int64_t)(loop_random(task_loop(t)) % 1000000);
    printf("# LEDGER_SEED=%lld\n", (long long)seed);
    struct storm s = {.random = (uint64_t)seed};
    struct group work, roles;
    group_init(&work, task_loop(t));
    group_init(&roles, task_loop(t));
    open_node(t, &s.n[0]);
    open_node(t, &s.n[1]);
    for (int i = 0; i < STORM_USERS; i++) {
        s.uid[i] = add_user(t, &s.n[0], s.want[i] = 20000);
        s.qid[i] = add_run(t, &s.n[0], s.uid[i]);
    }
    int64_t before = alarms();
    start_storm(&s, &work, &roles);
    check(group_join(t, &work) == 0);
    group_cancel(&roles);
    check(group_join(t, &roles) == 0);
    await_redis(t, &s.n[0]);
    await_redis(t, &s.n[1]);
    printf("# Redis was killed %d times and lost %d commands\n", s.kills, s.cut);
    is_int(s.failed, 0, "everything is answered in the end");
    is_int(alarms() - before, 0, "without an alarm");
    for (int i = 0; i < STORM_USERS; i++)
        judge_storm(t, &s, i);
    audit_is_clean(t, &s.n[0]);
    close_node(t, &s.n[1]);
    close_node(t, &s.n[0]);
}

int main(void)
{
    start_stores_with(aof);
    tap_task(test_every_cut, NULL, true);
    tap_task(test_other_paper_first, NULL, true);
    tap_task(test_nothing_left, NULL, true);
    tap_task(test_archived, NULL, true);
    tap_task(test_two_nodes, NULL, true);
    tap_task(test_died_between, NULL, true);
    tap_task(test_large, NULL, true);
    tap_task(test_storm, NULL, true);
    return stop_stores();
}
