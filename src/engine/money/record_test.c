/* Records that are damaged: found, put aside, and their user alone is stopped (BIL-6). */
#include "engine/money/ledger_fixture.h"

/* --- the text of a record --- */

static bool reads(struct str text)
{
    struct arena scratch;
    struct ledger_record r;
    arena_init(&scratch);
    bool right = ledger_record_read(&scratch, text, &r);
    arena_release(&scratch);
    return right;
}

/* How many of its bytes can be another one, and it still reads. */
static int unnoticed(struct str record)
{
    char copy[512];
    int count = 0;
    check(record.n < sizeof copy);
    for (size_t i = 0; i < record.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, record.p, record.n);
            copy[i] = (char)(copy[i] ^ (1 << bit));
            count += reads(str_from(copy, record.n));
        }
    return count;
}

/* As scripts write it. */
static struct str record_of(struct task *t, int64_t seq, struct str text)
{
    return str_printf(task_arena(t), "{\"seq\":%lld%.*s,\"sum\":\"%08x\"}", (long long)seq,
                      STR_ARG(text), ledger_record_sum(text) ^ (uint32_t)seq);
}

static void test_text(struct task *t, void *arg)
{
    (void)arg;
    struct str text = ledger_deduction_text(t, 1234, STR("a \"request\""));
    const int64_t seqs[] = {1, 10, 4294967297, 4503599627370498};
    for (size_t i = 0; i < sizeof seqs / sizeof *seqs; i++) {
        struct str record = record_of(t, seqs[i], text);
        ok(reads(record), "a record with its sum: %.*s", STR_ARG(record));
        is_int(unnoticed(record), 0, "no bit of it can be another one");
        ok(!reads(str_from(record.p, record.n - 1)), "nor can its end be missing");
    }
    ok(reads(STR("{\"seq\":1,\"timestamp\":1,\"kind\":\"charge\",\"qid\":\"q\",\"doi\":\"d\","
                 "\"cost\":1}")),
       "a record of before there were sums");
    ok(!reads(STR("{\"seq\":1,\"timestamp\":1,\"kind\":\"charge\",\"cost\":1,\"sun\":\"0\"}")),
       "but without names that it did not know");
    const char *const none[] = {"",
                                "not JSON",
                                "[]",
                                "7",
                                "{\"seq\":1}",
                                "{\"seq\":0,\"timestamp\":1,\"kind\":\"charge\",\"cost\":1}",
                                "{\"seq\":1,\"timestamp\":1,\"kind\":\"gift\",\"cost\":1}",
                                "{\"seq\":1,\"timestamp\":1,\"kind\":\"charge\",\"cost\":-1}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ok(!reads(str_of(none[i])), "no record: %s", none[i]);
}

/* --- in the queue --- */

static int64_t findings(struct task *t, struct node *n, int64_t uid, const char *what)
{
    struct found x = {0};
    struct audit_report r;
    struct audit a = audit_of(n, &x);
    check(audit_user(t, &a, uid, &r) == 0);
    return x.count && strcmp(x.last.what, what) != 0 ? -1 : x.count;
}

static void papers(struct task *t, struct node *n, int64_t uid, struct str qid, int from, int count)
{
    for (int i = 0; i < count; i++)
        check(pay(t, n, paper_of(t, uid, qid, from + i, 10)) == CHARGE_DONE);
}

static void put(struct task *t, struct node *n, int64_t uid, int place, struct str text)
{
    say(t, n, STR("LSET"), key_billing_queue(task_arena(t), uid), str_int(task_arena(t), place),
        text);
}

static int64_t aside(struct task *t, struct node *n, int64_t uid)
{
    const struct str *list;
    size_t count;
    check(ledger_aside(t, n->ledger, uid, &list, &count) == 0);
    return (int64_t)count;
}

/* The user works again, and has so many cents. */
static void release(struct task *t, struct node *n, int64_t uid, int64_t cents)
{
    const struct str *list;
    size_t count;
    check(ledger_aside(t, n->ledger, uid, &list, &count) == 0);
    for (size_t i = 0; i < count; i++)
        check(ledger_write_off(t, n->ledger, uid, list[i]) == 0);
    is_int(balance(t, n, uid), cents, "written off: what it took is the user's again");
    ok(every_cent(t, n, uid) && findings(t, n, uid, "") == 0, "and every cent is where it belongs");
}

/* Stopped, with that many records aside; the others are in MySQL. */
static void is_stopped(struct task *t, struct node *n, int64_t uid, int64_t records, int64_t cents)
{
    int64_t left;
    bool degraded;
    enum charge_outcome out;
    struct charge c = paper_of(t, uid, STR("other"), 99, 1);
    say(t, n, STR("HSET"), key_query_status(task_arena(t), uid, c.qid), STR("state"),
        STR("RUNNING"));
    is_int(aside(t, n, uid), records, "aside");
    ok(in_mysql(t, n, uid) == cents && queued(t, n, uid) == 0, "all others are in MySQL");
    is_int(ledger_balance(t, n->ledger, uid, &left, &degraded), ERR_INTERNAL,
           "its balance is not loaded");
    is_int(ledger_charge(t, n->ledger, 1, &c, &out), ERR_INTERNAL, "and it is not charged");
    is_int(findings(t, n, uid, "aside"), records, "an audit finds it");
}

/* One of five records of 10 cents is damaged. */
static void test_one(struct task *t, void *arg)
{
    const int *place = arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), other = add_user(t, &n, 1000), before = alarms();
    struct str qid = add_run(t, &n, uid), theirs = add_run(t, &n, other);
    papers(t, &n, uid, qid, 0, 5);
    papers(t, &n, other, theirs, 0, 5);
    put(t, &n, uid, *place, STR("{\"seq\":2,\"timest"));
    check(ledger_round(t, n.ledger) == 0);
    is_int(alarms() - before, 1, "record %d is damaged: one alarm", *place + 1);
    is_stopped(t, &n, uid, 1, 960);
    is_int(ledger_round(t, n.ledger), 0, "rounds go on");
    is_int(alarms() - before, 1, "without another alarm");
    papers(t, &n, other, theirs, 5, 5);
    check(ledger_sync(t, n.ledger, other) == 0);
    ok(in_mysql(t, &n, other) == 900 && every_cent(t, &n, other), "the other user goes on");
    release(t, &n, uid, 960);
    papers(t, &n, uid, qid, 5, 5);
    ok(ledger_sync(t, n.ledger, uid) == 0 && in_mysql(t, &n, uid) == 910 && every_cent(t, &n, uid),
       "it is charged again");
    close_node(t, &n);
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    papers(t, &n, uid, qid, 0, 6);
    const int places[] = {0, 2, 3, 5};
    for (size_t i = 0; i < 4; i++)
        put(t, &n, uid, places[i], i % 2 ? STR("x") : STR("\xff\x00y"));
    is_int(ledger_sync(t, n.ledger, uid), 0, "four of six");
    is_stopped(t, &n, uid, 4, 980);
    release(t, &n, uid, 980);
    papers(t, &n, uid, qid, 6, 3);
    for (int i = 0; i < 3; i++)
        put(t, &n, uid, i, STR("x"));
    is_int(ledger_sync(t, n.ledger, uid), 0, "all of three");
    is_stopped(t, &n, uid, 3, 980);
    release(t, &n, uid, 980);
    close_node(t, &n);
}

/* Every bit of records as charges and deductions make them. */
static void test_damaged(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    int64_t after;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid), queue = key_billing_queue(task_arena(t), uid);
    papers(t, &n, uid, qid, 0, 1);
    struct str charge = ask(t, &n, STR("LINDEX"), queue, STR("0"));
    ok(reads(charge), "a charge: %.*s", STR_ARG(charge));
    is_int(unnoticed(charge), 0, "no bit of it can be another one");
    struct ledger_look look;
    struct ledger_request request;
    struct ledger_move m = move_of(t, uid, 100, "d1");
    int64_t status = 0;
    check(ledger_look(t, n.ledger, uid, &look) == 0 &&
          note_one(t, n.ledger, &m, &look, &request) == 0 &&
          take_one(t, n.ledger, &m, &look, &status) == 0 && status == LEDGER_TAKEN);
    struct str deduction = ask(t, &n, STR("LINDEX"), queue, STR("1"));
    ok(reads(deduction), "a deduction: %.*s", STR_ARG(deduction));
    is_int(unnoticed(deduction), 0, "nor of that");
    ok(deduct(t, &n, uid, 100, "d1", &after) == 0 && after == 890 && every_cent(t, &n, uid),
       "both come to MySQL");
    close_node(t, &n);
}

/* Something that no charge has made: it has no number. */
static void test_stranger(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid), queue = key_billing_queue(task_arena(t), uid);
    papers(t, &n, uid, qid, 0, 2);
    say(t, &n, STR("RPUSH"), queue, STR("not JSON"));
    papers(t, &n, uid, qid, 2, 2);
    say(t, &n, STR("RPUSH"), queue, STR("not JSON"));
    is_int(ledger_sync(t, n.ledger, uid), 0, "between records, and after them");
    is_stopped(t, &n, uid, 2, 960);
    release(t, &n, uid, 960);
    say(t, &n, STR("RPUSH"), queue, STR("not JSON"));
    is_int(ledger_sync(t, n.ledger, uid), 0, "alone");
    is_stopped(t, &n, uid, 1, 960);
    release(t, &n, uid, 960);
    papers(t, &n, uid, qid, 4, 2);
    ok(ledger_sync(t, n.ledger, uid) == 0 && in_mysql(t, &n, uid) == 940 && every_cent(t, &n, uid),
       "it is charged again");
    papers(t, &n, uid, qid, 6, 2);
    put(t, &n, uid, 0, STR("x"));
    say(t, &n, STR("RPUSH"), queue, STR("not JSON"));
    is_int(ledger_sync(t, n.ledger, uid), 0, "beside a damaged one, which has its number");
    is_stopped(t, &n, uid, 2, 930);
    release(t, &n, uid, 930);
    close_node(t, &n);
}

/* Every node syncs: the same record is found by two, or by one that was held up meanwhile. */
static void test_twice(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct ledger_batch b, other;
    bool done;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid);
    papers(t, &n, uid, qid, 0, 3);
    put(t, &n, uid, 1, STR("x"));
    check(ledger_batch_read(t, n.ledger, uid, &b) == 0 && b.unreadable.p);
    other = b;
    other.generation = (struct generation){"another"};
    ok(ledger_put_aside(t, n.ledger, &other, &done) == 0 && !done && aside(t, &n, uid) == 0,
       "read in another Redis: nothing happens");
    ok(ledger_put_aside(t, n.ledger, &b, &done) == 0 && done, "it goes aside");
    ok(ledger_put_aside(t, n.ledger, &b, &done) == 0 && !done && aside(t, &n, uid) == 1, "once");
    check(ledger_sync(t, n.ledger, uid) == 0);
    release(t, &n, uid, 980);
    papers(t, &n, uid, qid, 3, 3);
    put(t, &n, uid, 1, STR("x"));
    ok(ledger_put_aside(t, n.ledger, &b, &done) == 0 && !done && aside(t, &n, uid) == 0,
       "another one like it, at the same place, is not taken for it");
    check(ledger_sync(t, n.ledger, uid) == 0);
    is_stopped(t, &n, uid, 1, 960);
    release(t, &n, uid, 960);
    close_node(t, &n);
}

/* The balance is loaded before the syncer sees the record; and a record that MySQL has. */
static void test_late(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    int64_t left;
    bool degraded;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000);
    struct str qid = add_run(t, &n, uid), ledger = key_ledger(task_arena(t), uid);
    papers(t, &n, uid, qid, 0, 3);
    struct ledger_batch b;
    check(ledger_batch_read(t, n.ledger, uid, &b) == 0 &&
          ledger_batch_write(t, n.ledger, &b) == 0); /* and nothing is trimmed */
    put(t, &n, uid, 1, STR("[]"));
    say(t, &n, STR("HDEL"), ledger, STR("run"));
    is_int(ledger_balance(t, n.ledger, uid, &left, &degraded), ERR_INTERNAL,
           "a balance is not loaded over a record that cannot be read");
    ok(findings(t, &n, uid, "") == 0, "an audit finds nothing, because MySQL has it");
    is_int(ledger_sync(t, n.ledger, uid), 0, "it goes aside all the same");
    is_stopped(t, &n, uid, 1, 970);
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND cents = 10", uid),
           3, "and its charge stays");
    release(t, &n, uid, 970);
    close_node(t, &n);
}

/* A key of another type: scripts fail for this user. */
static void test_script_fails(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct found x = {0};
    struct audit_report r;
    open_node(t, &n);
    int64_t uid = add_user(t, &n, 1000), other = add_user(t, &n, 1000);
    papers(t, &n, other, add_run(t, &n, other), 0, 2);
    say(t, &n, STR("SET"), key_ledger(task_arena(t), uid), STR("x"));
    struct audit a = audit_of(&n, &x);
    is_int(audit_run(t, &a, &r), 0, "an audit goes on past a user whose money cannot be read");
    ok(x.count == 1 && x.last.uid == uid && strcmp(x.last.what, "store") == 0 &&
           strstr(x.last.detail, "WRONGTYPE"),
       "and tells of it");
    ok(r.users >= 1 && r.open >= 1, "the others are checked");
    say(t, &n, STR("DEL"), key_ledger(task_arena(t), uid));
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    struct buf logged;
    buf_init(&logged);
    log_capture(&logged);
    tap_task(test_text, NULL, true);
    for (int place = 0; place < 5; place += 2)
        tap_task(test_one, &place, true);
    tap_task(test_many, NULL, true);
    tap_task(test_damaged, NULL, true);
    tap_task(test_stranger, NULL, true);
    tap_task(test_twice, NULL, true);
    tap_task(test_late, NULL, true);
    tap_task(test_script_fails, NULL, true);
    log_capture(NULL);
    buf_release(&logged);
    return stop_stores();
}
