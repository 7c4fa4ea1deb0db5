/* Queues on real stores: order, versions, leases, retries, holds, rows, Redis that forgets. */
#include "engine/jobs/jobs_fixture.h"
#include "engine/store/scripts.h"

/* --- order --- */

static void test_order(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    for (int i = 0; i < 60; i++) { /* 7 and 60 have no common divisor: shuffled */
        int n = i * 7 % 60;
        char id[32];
        snprintf(id, sizeof id, "j%d-%02d", n % 3, n);
        push(t, &s, id, 5, 1, n % 3, n);
    }
    struct jobs_look l = look(t, &s, 0);
    is_int(l.waiting, 60, "all of them wait");
    ok(l.oldest_ms >= 0 && l.oldest_ms < 5000, "the oldest is new");
    go(&s);
    ok(await(t, empty(t, &s, 0)), "all are done");
    bool sorted = bench.count == 60;
    for (size_t i = 1; i < bench.count; i++)
        sorted = sorted && strcmp(bench.log[i - 1], bench.log[i]) < 0;
    ok(sorted, "by priority, and in order within each");
    is_int(look(t, &s, 0).done, 60, "they are counted");
    is_int(ask_int(t, &node, STR("HLEN"), key_jobs_part(task_arena(t), "plain", "users"), STR_NULL),
           0, "no user has jobs any more");
    end(t, &s);
}

/* What is tried again later waits, too: while a service is away nothing else does. */
static void test_oldest(struct task *t, void *arg)
{
    struct side s;
    int64_t now_ms = loop_wall_ms(task_loop(t));
    struct job_push later[] = {
        {.id = STR("new"), .uid = 5, .version = 1, .since_ms = now_ms - 50000, .delay_ms = 60000},
        {.id = STR("old"), .uid = 5, .version = 1, .since_ms = now_ms - 90000, .delay_ms = 61000}};
    enum jobs_room room;
    (void)arg;
    begin(t, &s);
    check(jobs_push(t, s.jobs, "plain", later, 1, &room) == 0);
    struct jobs_look l = look(t, &s, 0);
    ok(l.delayed == 1 && l.waiting == 0, "a job waits for its time");
    ok(l.oldest_ms >= 50000 && l.oldest_ms < 70000, "and is the oldest");
    check(jobs_push(t, s.jobs, "plain", later, 2, &room) == 0);
    push(t, &s, "j", 5, 1, 1, 1);
    l = look(t, &s, 0);
    ok(l.delayed == 2 && l.oldest_ms >= 90000, "of several, and of those that wait to be taken");
    end(t, &s);
}

static void test_closed(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    say(t, &node, STR("DEL"), key_jobs_part(task_arena(t), "plain", "state"));
    push(t, &s, "a", 5, 1, 1, 1);
    go(&s);
    pause_ms(t, 500);
    is_int((int64_t)bench.count, 0, "nothing is taken before the queue was filled again");
    refill(t, &s);
    ok(await(t, bench.count == 1), "then it is");
    ok(await(t, empty(t, &s, 0)), "and done");
    say(t, &node, STR("DEL"), key_jobs_part(task_arena(t), "plain", "state"));
    say(t, &node, STR("RPUSH"), key_jobs(task_arena(t), "plain"), STR("5:of the version before"));
    refill(t, &s);
    push(t, &s, "b", 5, 1, 1, 1);
    ok(await(t, bench.count == 2), "a list of the same name, of the version before, is dropped");
    end(t, &s);
}

/* --- versions --- */

static void test_versions(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    push(t, &s, "a", 5, 3, 1, 1);
    push(t, &s, "a", 5, 3, 1, 1);
    push(t, &s, "a", 5, 2, 1, 1);
    is_int(look(t, &s, 0).waiting, 1, "pushed again: it waits once");
    push(t, &s, "a", 5, 4, 1, 1);
    is_int(look(t, &s, 0).waiting, 1, "so does a later version");
    push(t, &s, "b", 5, 1, 1, 2);
    push(t, &s, "b", 5, 2, 0, 2);
    go(&s);
    ok(await(t, empty(t, &s, 0)), "done");
    is_int((int64_t)bench.count, 2, "each once");
    is_str(str_of(bench.log[0]), STR("b v2"), "a later version that is more urgent moves forward");
    is_str(str_of(bench.log[1]), STR("a v4"), "the latest version of it");

    bench.count = 0;
    bench.slow_ms = 30000;
    push(t, &s, "slow", 5, 1, 1, 1);
    ok(await(t, bench.count == 1), "one is in work");
    bench.slow_ms = 1;
    push(t, &s, "slow", 5, 2, 1, 1);
    push(t, &s, "slow", 5, 2, 1, 1);
    ok(await(t, empty(t, &s, 0)), "a later version ends the work on the earlier one");
    is_int((int64_t)bench.count, 2, "and is done after it");
    is_str(str_of(bench.log[1]), STR("slow v2"), "once");
    end(t, &s);
}

/* --- leases --- */

static void test_leases(struct task *t, void *arg)
{
    struct side s, other;
    (void)arg;
    begin(t, &s);
    open_side(t, &other, 2);
    plain.concurrency = 4;
    bench.slow_ms = 4 * LEASE_MS;
    push(t, &s, "slow1", 5, 1, 1, 1);
    go(&s);
    ok(await(t, bench.count == 1), "a node has it");
    go(&other);
    ok(await(t, empty(t, &s, 0)), "it takes four times as long as its lease");
    is_int(times("slow1 v1"), 1, "and no other node takes it meanwhile");

    bench.slow_ms = 60000;
    plain.deadline_ms = 60000;
    push(t, &other, "slow2", 5, 1, 1, 1);
    ok(await(t, times("slow2 v1") == 1), "another one is in work, on one of the nodes");
    push(t, &other, "slow3", 5, 1, 1, 2);
    push(t, &other, "slow4", 5, 1, 1, 3);
    ok(await(t, bench.count == 4), "and two more");
    bench.slow_ms = 1;
    int64_t killed_ms = loop_now_ms(task_loop(t));
    kill_side(t, &other);
    kill_side(t, &s);
    open_side(t, &s, 3);
    go(&s);
    ok(await(t, empty(t, &s, 0)), "both nodes died: their jobs are done by the next one");
    int64_t ms = loop_now_ms(task_loop(t)) - killed_ms;
    ok(ms >= LEASE_MS / 2 && ms < 3 * LEASE_MS, "after the end of the leases (%lld ms)",
       (long long)ms);
    is_int(times("slow2 v1") + times("slow3 v1") + times("slow4 v1"), 6, "each was taken twice");
    end(t, &s);
}

/* A holder whose lease another one has got changes nothing. */
static void test_fence(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    bench.slow_ms = 200;
    push(t, &s, "slow", 5, 1, 1, 1);
    check(task_go(&s.tasks, "jobs", jobs_task, s.jobs) == 0); /* leases are not renewed */
    ok(await(t, bench.count == 1), "a node has it");
    struct str info = key_jobs_part(task_arena(t), "plain", "info");
    say(t, &node, STR("HSET"), info, STR("slow"), STR("1 1 1 1 5 1 another:1 -"));
    ok(await(t, bench.working == 0), "its work ends");
    pause_ms(t, 100);
    is_str(ask(t, &node, STR("HGET"), info, STR("slow")), STR("1 1 1 1 5 1 another:1 -"),
           "but the job is another holder's");
    end(t, &s);
}

static void test_drain(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    plain.concurrency = 2;
    bench.slow_ms = 60000;
    push(t, &s, "slow", 5, 1, 1, 1);
    push(t, &s, "nap", 5, 1, 1, 2);
    push(t, &s, "later", 5, 1, 2, 3);
    go(&s);
    ok(await(t, bench.count == 3), "jobs are in work");
    jobs_drain(t, s.jobs, 1200);
    struct jobs_look l = look(t, &s, 0);
    is_int(l.working, 0, "drained: nothing is in work");
    is_int(l.waiting, 1, "what was not done waits again at once");
    struct str info =
        ask(t, &node, STR("HGET"), key_jobs_part(task_arena(t), "plain", "info"), STR("slow"));
    ok(str_starts(info, STR("1 0 1 1 5 ")) && str_ends(info, STR(" - -")), "and has lost no try");
    end(t, &s);
}

/* --- tries --- */

static void test_tries(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    plain.step = 2;
    push(t, &s, "busy", 5, 1, 1, 1);
    push(t, &s, "bad", 5, 1, 1, 2);
    go(&s);
    ok(await(t, empty(t, &s, 0)), "both leave the queue");
    is_int(times("busy v1"), 3, "an error that may pass is tried again, three times in all");
    is_int(times("bad v1"), 1, "one that stays is not");
    is_int(look(t, &s, 0).failed, 2, "both failed");
    is_int(bench.given_up, 2, "and were given up");
    bench.count = 0;
    bench.away = true;
    push(t, &s, "a", 5, 1, 1, 1);
    pause_ms(t, 500);
    bench.away = false;
    ok(await(t, empty(t, &s, 0)), "a service was away for long, and came back");
    is_int(times("a v1"), 1, "that cost no try");
    is_int(look(t, &s, 0).failed, 2, "and nothing failed");
    bench.count = 0;
    bench.slow_ms = 60000;
    plain.deadline_ms = 50;
    push(t, &s, "slow", 5, 1, 1, 1);
    ok(await(t, empty(t, &s, 0)), "a job has a deadline");
    is_int(times("slow v1"), 3, "and is tried again after it");
    end(t, &s);
}

/* A job that takes its node down each time. */
static void test_deadly(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    bench.slow_ms = 60000;
    push(t, &s, "slow", 5, 1, 1, 1);
    for (int i = 0; i < 3; i++) {
        go(&s);
        ok(await(t, bench.count == (size_t)i + 1), "node %d takes it", i);
        kill_side(t, &s);
        open_side(t, &s, (uint64_t)i + 2);
    }
    go(&s);
    ok(await(t, empty(t, &s, 0)), "then it is given up");
    is_int((int64_t)bench.count, 3, "and not tried again");
    is_int(bench.given_up, 1, "which is told");
    end(t, &s);
}

/* --- users --- */

static void test_holds(struct task *t, void *arg)
{
    struct side s;
    char id[32];
    (void)arg;
    begin(t, &s);
    bench.poor = true;
    for (int i = 0; i < 300; i++) {
        snprintf(id, sizeof id, "poor%03d", i);
        push(t, &s, id, 1, 1, 1, i);
    }
    push(t, &s, "rich", 2, 1, 1, 1000);
    go(&s);
    ok(await(t, bench.count == 1), "a user without money holds up no other user");
    is_str(str_of(bench.log[0]), STR("rich v1"), "whose job is done");
    ok(await(t, look(t, &s, 0).held == 300), "the others are held");
    pause_ms(t, 300);
    is_int((int64_t)bench.count, 1, "and rest");
    bench.poor = false;
    say(t, &node, STR("ZADD"), key_jobs_part(task_arena(t), "plain", "probes"), STR("1"), STR("1"));
    ok(await(t, empty(t, &s, 0)), "with money they go on");
    is_int((int64_t)bench.count, 301, "all of them");
    bool sorted = true;
    for (size_t i = 2; i < bench.count; i++)
        sorted = sorted && strcmp(bench.log[i - 1], bench.log[i]) < 0;
    ok(sorted, "in their order");
    is_int(look(t, &s, 0).failed, 0, "none has lost a try");
    end(t, &s);
}

static void test_limits(struct task *t, void *arg)
{
    struct side s, other;
    char id[32];
    (void)arg;
    begin(t, &s);
    plain.user_max = 3;
    plain.all_max = 5;
    for (int i = 0; i < 8; i++) {
        int64_t want = i < 3    ? JOBS_ROOM
                       : i == 3 ? JOBS_USER_FULL
                       : i < 6  ? JOBS_ROOM
                                : JOBS_QUEUE_FULL;
        snprintf(id, sizeof id, "nap%d", i);
        is_int(push(t, &s, id, i < 4 ? 1 : 2, 1, 1, i), want, "a user may have three, all five");
    }
    is_int(push(t, &s, "nap0", 1, 2, 1, 1), JOBS_ROOM,
           "a later version of one that is there is not more");
    open_side(t, &other, 2);
    plain.concurrency = 4;
    plain.concurrency_all = 2;
    go(&s);
    go(&other);
    ok(await(t, empty(t, &s, 0)), "all are done");
    is_int((int64_t)bench.count, 5, "five");
    ok(bench.most <= 2, "never more than two at once over both nodes (%zu)", bench.most);
    kill_side(t, &other);
    end(t, &s);
}

/* --- rows --- */

static void test_rows(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    add_row(t, "nap1", 5, 1);
    add_row(t, "nap2", 5, 1);
    add_row(t, "bad", 5, 1);
    add_row(t, "slow", 5, 0);
    bench.slow_ms = 400;
    refill(t, &s); /* their push was lost with its node */
    go(&s);
    ok(await(t, rows_in(t, "working") == 1), "a row says that it is worked on");
    ok(await(t, rows_in(t, "completed") == 3 && rows_in(t, "failed") == 1), "all are final");
    struct sql_rows r;
    const char *why = "SELECT CONCAT_WS(': ', reason, error) FROM test_job WHERE id = 'bad'";
    check(sql_call(t, node.sql, &r, why) == 0);
    is_str(r.cells[0].s, STR("spoilt: it is no document"), "with the reason, also by its word");
    ok(await(t, empty(t, &s, 1)), "and have left the queue");
    is_int((int64_t)bench.count, 4, "each was done once");
    struct admin_deed deed = {.admin_name = STR("a"), .address = STR("::1"), .action = "queue.x"};
    int64_t count = 0;
    check(jobs_failures(t, s.jobs, 1, &count) == 0);
    is_int(count, 1, "the failure is counted");
    is_int(jobs_retry_failed(t, s.jobs, STR("kept"), &deed, &count), 0, "failures are retried");
    is_int(count, 1, "one");
    check(sql_call(t, node.sql, &r, why) == 0);
    is_str(r.cells[0].s, STR(""), "whose reason counts no more");
    refill(t, &s);
    ok(await(t, rows_in(t, "failed") == 1 && times("bad v1") == 2), "it fails again");
    is_int(jobs_drop_failed(t, s.jobs, STR("kept"), &deed, &count), 0, "and is dropped");
    is_int(rows_in(t, "failed"), 0, "its row is gone");
    is_int(jobs_drop_failed(t, s.jobs, STR("nothing"), &deed, &count), ERR_NOT_FOUND,
           "there is no such queue");
    is_int(jobs_drop_failed(t, s.jobs, STR("plain"), &deed, &count), ERR_NOT_FOUND,
           "this one has no rows");
    end(t, &s);
}

/* The row was changed while it was worked on: the work on its old version does not end it. */
static void test_row_version(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    add_row(t, "slow", 5, 1);
    bench.slow_ms = 200;
    refill(t, &s);
    go(&s);
    ok(await(t, bench.count == 1), "in work");
    check(sql_call(t, node.sql, NULL,
                   "UPDATE test_job SET version = 2, state = 'pending',"
                   " changed_at = UTC_TIMESTAMP(3)") == 0);
    ok(await(t, bench.working == 0), "it ends");
    pause_ms(t, 100);
    is_int(rows_in(t, "completed"), 0, "its row is not final");
    refill(t, &s);
    ok(await(t, rows_in(t, "completed") == 1), "the later version is worked on");
    is_int(times("slow v2"), 1, "once");
    end(t, &s);
}

static void test_pause(struct task *t, void *arg)
{
    struct side s;
    struct admin_deed deed = {.admin_name = STR("a"), .address = STR("::1"), .action = "queue.x"};
    (void)arg;
    begin(t, &s);
    go(&s);
    is_int(jobs_pause(t, s.jobs, STR("plain"), true, &deed), 0, "a queue is paused");
    ok(look(t, &s, 0).paused, "it says so");
    push(t, &s, "a", 5, 1, 1, 1);
    pause_ms(t, 400);
    is_int((int64_t)bench.count, 0, "nothing is taken");
    say(t, &node, STR("FLUSHALL"));
    refill(t, &s);
    push(t, &s, "a", 5, 1, 1, 1);
    ok(look(t, &s, 0).paused, "also after Redis has forgotten it");
    const struct jobs_queue *q = jobs_find(s.jobs, STR("plain"));
    struct generation now = generation_now(node.redis);
    int64_t noted = 0;
    check(SCRIPT_NUMBER(t, node.redis, jobs_filled, &noted, .state = q->keys.state,
                        .run = generation_str(&now), .seen = STR("2020-01-01 00:00:00.000"),
                        .was = STR("0"), .paused = STR("0")) == 0);
    ok(noted && look(t, &s, 0).paused, "a round that had asked MySQL before does not undo it");
    check(SCRIPT_NUMBER(t, node.redis, jobs_filled, &noted, .state = q->keys.state,
                        .run = STR("another"), .seen = STR(""), .was = STR("1"),
                        .paused = STR("0")) == 0);
    ok(!noted && look(t, &s, 0).paused, "nor one of another Redis");
    is_int(jobs_pause(t, s.jobs, STR("plain"), false, &deed), 0, "it goes on");
    ok(await(t, bench.count == 1), "and works");
    is_int(jobs_pause(t, s.jobs, STR("none"), true, &deed), ERR_NOT_FOUND, "no such queue");
    end(t, &s);
}

/* Rows that nothing pushes, of a kind that is looked at often. */
static void test_soon(struct task *t, void *arg)
{
    struct role_turn turn = {.locked = false};
    struct side s;
    int64_t count;
    (void)arg;
    begin(t, &s);
    refill(t, &s);
    add_row(t, "first", 5, 1);
    is_int(jobs_soon_role(t, s.jobs, &turn), 0, "a round");
    check(jobs_length(t, s.jobs, "kept", &count) == 0);
    is_int(count, 0, "passes over kinds that push their rows");
    kept.soon = true;
    is_int(jobs_soon_role(t, s.jobs, &turn), 0, "of another kind");
    check(jobs_length(t, s.jobs, "kept", &count) == 0);
    is_int(count, 1, "it finds the row");
    add_row(t, "second", 5, 1);
    is_int(jobs_soon_role(t, s.jobs, &turn), 0, "while a job waits");
    check(jobs_length(t, s.jobs, "kept", &count) == 0);
    is_int(count, 1, "the next ones can wait, too");
    kept.soon = false;
    end(t, &s);
}

/* --- Redis that forgets --- */

static void test_redis_lost(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    kept.concurrency = 1;
    check(sql_call(t, node.sql, NULL, /* more than a page */
                   "INSERT INTO test_job (id, uid, priority, state)"
                   " SELECT CONCAT('j', seq % 2, '-', LPAD(seq, 4, '0')), 5, seq % 2, 'pending'"
                   " FROM seq_0_to_1499") == 0);
    refill(t, &s);
    go(&s);
    ok(await(t, bench.count >= 100), "work goes on");
    uint64_t epoch = redis_epoch(node.redis);
    forget_snapshot();
    restart_redis();
    store_redis_await(&store);
    await_new_redis(t, &node, epoch);
    pause_ms(t, 300);
    size_t before = bench.count;
    pause_ms(t, 300);
    is_int((int64_t)bench.count, (int64_t)before, "an empty Redis: nothing is taken at first");
    refill(t, &s);
    ok(await(t, rows_in(t, "completed") == 1500), "all rows are completed in the end");
    bool sorted = true;
    for (size_t i = before + 1; i < bench.count; i++)
        sorted = sorted && strcmp(bench.log[i - 1], bench.log[i]) < 0;
    ok(sorted, "in their order");
    ok(bench.count <= 1500 + 2 * 256, "few were done again (%zu)", bench.count - 1500);
    kept.concurrency = 8;
    end(t, &s);
}

/* Rows that cannot be read hold up their own queue alone. */
static void test_rows_lost(struct task *t, void *arg)
{
    struct job_rows nowhere = rows;
    struct side s;
    struct role_turn turn = {.locked = false};
    (void)arg;
    nowhere.table = "no_such_table";
    begin(t, &s);
    plain.rows = &nowhere; /* the first of both */
    say(t, &node, STR("FLUSHALL"));
    add_row(t, "a", 5, 1);
    is_int(jobs_refill_role(t, s.jobs, &turn), ERR_REFUSED, "rows of one kind cannot be read");
    ok(strstr(task_error(t), "no_such_table") != NULL, "which is told: %s", task_error(t));
    go(&s);
    ok(await(t, rows_in(t, "completed") == 1), "jobs of the other kind are done");
    end(t, &s);
    plain.rows = NULL;
}

static void test_mysql_away(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    begin(t, &s);
    for (int i = 0; i < 20; i++)
        add_row(t, arena_printf(task_arena(t), "slow%02d", i), 5, 1);
    bench.slow_ms = 300;
    refill(t, &s);
    go(&s);
    ok(await(t, bench.count == 8), "eight are in work");
    mariadb_kill(&server);
    pause_ms(t, 2 * LEASE_MS);
    is_int((int64_t)bench.count, 8, "MySQL is away: what has ended waits for it, and stays leased");
    mariadb_restart(&server);
    ok(await(t, rows_in(t, "completed") == 20), "then all goes on");
    is_int((int64_t)bench.count, 20, "and nothing was done twice");
    end(t, &s);
}

int main(void)
{
    static void (*const tests[])(struct task * t, void *arg) = {
        make_table,  test_order,      test_oldest,    test_closed,      test_versions,
        test_leases, test_fence,      test_drain,     test_tries,       test_deadly,
        test_holds,  test_limits,     test_rows,      test_row_version, test_pause,
        test_soon,   test_redis_lost, test_rows_lost, test_mysql_away,
    };
    start_stores();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tap_task(tests[i], NULL, true);
    return stop_stores();
}
