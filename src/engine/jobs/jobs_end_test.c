/* Queues on real stores: which job is next while others are pushed, on which node it begins, and
 * jobs whose rows cannot be written. */
#include "engine/jobs/jobs_fixture.h"

/* --- order while jobs come and go --- */

#define ORDER_JOBS 400

/* Jobs that wait, as this test has pushed them. */
static struct {
    bool waits[ORDER_JOBS];
    int priority[ORDER_JOBS], order[ORDER_JOBS];
    int begun, wrong;
} line;

/* No job that waits comes before this one. */
static int in_line(struct task *t, void *arg, const struct job *j)
{
    int64_t me;
    (void)arg;
    check(str_to_i64(j->id, &me) && me < ORDER_JOBS);
    line.waits[me] = false;
    line.begun++;
    for (int i = 0; i < ORDER_JOBS; i++)
        line.wrong += line.waits[i] &&
                      (line.priority[i] < line.priority[me] ||
                       (line.priority[i] == line.priority[me] && line.order[i] < line.order[me]));
    return me % 3 ? 0 : task_sleep(t, 2);
}

static void test_line(struct task *t, void *arg)
{
    struct side s;
    (void)arg;
    plain.work = in_line;
    begin(t, &s);
    go(&s);
    for (int i = 0; i < ORDER_JOBS; i++) {
        struct task_scope scope = task_scope(t);
        line.priority[i] = (int)(loop_random(task_loop(t)) % 4);
        line.order[i] = i;
        push(t, &s, str_int(task_arena(t), i).p, 5, 1, line.priority[i], i);
        line.waits[i] = true;
        task_scope_end(t, scope);
        if (i % 7 == 0)
            pause_ms(t, 1);
    }
    ok(await(t, empty(t, &s, 0)), "jobs of four priorities are pushed while others are worked on");
    is_int(line.begun, ORDER_JOBS, "all are done");
    is_int(line.wrong, 0, "none began before a more urgent one, or one that had waited for longer");
    plain.work = work;
    end(t, &s);
}

/* --- another node pushes --- */

static void test_wake(struct task *t, void *arg)
{
    struct side s, other;
    struct group link;
    int64_t most_ms = 0;
    (void)arg;
    begin(t, &s);
    open_side(t, &other, 2);
    group_init(&link, task_loop(t));
    other.jobs->options.redis_wake = redis_open(
        &link,
        &(struct redis_options){.url = store.url_unix, .name = "wake", .command_ms = JOBS_WAKE_MS});
    go(&other);
    for (size_t i = 0; i < 20; i++) {
        pause_ms(t, 30);
        int64_t began_ms = loop_now_ms(task_loop(t));
        push(t, &s, arena_printf(task_arena(t), "j%zu", i), 5, 1, 1, 1);
        while (bench.count <= i)
            pause_ms(t, 1);
        int64_t ms = loop_now_ms(task_loop(t)) - began_ms;
        most_ms = ms > most_ms ? ms : most_ms;
    }
    ok(most_ms < JOBS_IDLE_MS / 2, "a node without work is woken by another one's push (%lld ms)",
       (long long)most_ms);
    uint64_t epoch = redis_epoch(node.redis);
    forget_snapshot();
    restart_redis();
    store_redis_await(&store);
    await_new_redis(t, &node, epoch);
    while (!redis_up(other.jobs->options.redis_wake))
        pause_ms(t, 2);
    refill(t, &s);
    pause_ms(t, 300); /* the other node waits again */
    int64_t began_ms = loop_now_ms(task_loop(t));
    push(t, &s, "after", 5, 1, 1, 1);
    ok(await(t, times("after v1") == 1), "and after a restart of Redis");
    ok(loop_now_ms(task_loop(t)) - began_ms < JOBS_IDLE_MS / 2, "at once");
    struct redis *wake = other.jobs->options.redis_wake;
    kill_side(t, &other);
    redis_close(wake);
    check(group_join(t, &link) == 0);
    end(t, &s);
}

/* --- rows that cannot be written --- */

static int64_t metric_of(const char *name)
{
    return *metric(metrics, METRIC_COUNTER, name, "queue=\"kept\"", "");
}

static int64_t failures(struct task *t, struct side *s)
{
    int64_t count = -1;
    check(jobs_failures(t, s->jobs, 1, &count) == 0);
    return count;
}

static void test_unwritten(struct task *t, void *arg)
{
    struct side s;
    struct admin_deed deed = {.admin_name = STR("a"), .address = STR("::1"), .action = "queue.x"};
    int64_t count = 0, aside = metric_of("millrace_jobs_aside_total");
    (void)arg;
    begin(t, &s);
    for (int i = 0; i < 12; i++)
        add_row(t, arena_printf(task_arena(t), "nap%02d", i), 5, 1);
    add_row(t, "cursed", 5, 1);
    check(sql_call(t, node.sql, NULL,
                   "ALTER TABLE test_job ADD CONSTRAINT curse"
                   " CHECK (id <> 'cursed' OR state NOT IN ('completed', 'failed'))") == 0);
    refill(t, &s);
    go(&s);
    ok(await(t, rows_in(t, "completed") == 12), "one row cannot be written: the others are");
    ok(await(t, metric_of("millrace_jobs_aside_total") == aside + 1), "it is set aside");
    is_int(times("cursed v1"), kept.tries_max, "after all its tries");
    for (int i = 0; i < 12; i++)
        is_int(times(arena_printf(task_arena(t), "nap%02d v1", i)), 1, "no other is tried again");
    pause_ms(t, 3 * LEASE_MS);
    refill(t, &s);
    s.jobs->queues[1]->whole_ms = -(1LL << 40); /* all rows are looked at, whatever their age */
    refill(t, &s);
    pause_ms(t, LEASE_MS);
    is_int(times("cursed v1"), kept.tries_max, "and is left alone, its row pushed again or not");
    is_int(failures(t, &s), 1, "admins see it among the failures");
    check(sql_call(t, node.sql, NULL, "ALTER TABLE test_job DROP CONSTRAINT curse") == 0);
    is_int(jobs_retry_failed(t, s.jobs, STR("kept"), &deed, &count), 0, "they retry it");
    is_int(count, 1, "one");
    ok(await(t, rows_in(t, "completed") == 13), "and now it is done");
    ok(await(t, empty(t, &s, 1)), "and has left the queue");
    is_int(failures(t, &s), 0, "no failure is left");
    end(t, &s);
}

/* A later version brings one back that was set aside. */
static void test_unwritten_version(struct task *t, void *arg)
{
    struct side s;
    int64_t aside = metric_of("millrace_jobs_aside_total");
    (void)arg;
    begin(t, &s);
    add_row(t, "cursed", 5, 1);
    check(sql_call(t, node.sql, NULL,
                   "ALTER TABLE test_job ADD CONSTRAINT curse"
                   " CHECK (version > 1 OR state NOT IN ('completed', 'failed'))") == 0);
    refill(t, &s);
    go(&s);
    ok(await(t, metric_of("millrace_jobs_aside_total") == aside + 1), "it is set aside");
    check(sql_call(t, node.sql, NULL,
                   "UPDATE test_job SET version = 2, state = 'pending',"
                   " changed_at = UTC_TIMESTAMP(3)") == 0);
    refill(t, &s);
    ok(await(t, rows_in(t, "completed") == 1), "its later version is worked on");
    is_int(times("cursed v2"), 1, "once");
    check(sql_call(t, node.sql, NULL, "ALTER TABLE test_job DROP CONSTRAINT curse") == 0);
    end(t, &s);
}

int main(void)
{
    static void (*const tests[])(struct task * t, void *arg) = {
        make_table, test_line, test_wake, test_unwritten, test_unwritten_version,
    };
    start_stores();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tap_task(tests[i], NULL, true);
    return stop_stores();
}
