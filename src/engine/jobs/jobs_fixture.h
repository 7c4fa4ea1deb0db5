/* jobs_fixture.h -- what the tests of queues have in common: two queues on real stores, one of them
 * with rows, jobs whose id says what becomes of them, and nodes that can be killed. */
#ifndef ENGINE_JOBS_JOBS_FIXTURE_H
#define ENGINE_JOBS_JOBS_FIXTURE_H

#include "engine/jobs/jobs_private.h"

#include "base/map.h"
#include "engine/money/ledger_fixture.h"
#include "engine/people/admin_log.h"

#define LEASE_MS 600
#define LOG_MAX  4000
#define WAIT_MS  60000

/* What a job shall do, by what its id begins with. */
struct bench {
    struct node *node;
    char log[LOG_MAX][JOBS_ID_BYTES_MAX + 24]; /* "<id> v<version>", in the order of the calls */
    size_t count, working, most;
    int64_t slow_ms;
    bool poor, away; /* ERR_FUNDS for user 1; ERR_UNAVAILABLE for all */
    int given_up;
};

/* One node's jobs. */
struct side {
    struct jobs *jobs;
    struct group tasks;
};

static struct node node;
static struct bench bench;

static const struct job_rows rows = {.table = "test_job",
                                     .id = "id",
                                     .uid = "uid",
                                     .position = "n",
                                     .version = "version",
                                     .priority = "priority",
                                     .created = "created_at",
                                     .changed = "changed_at",
                                     .state = "state",
                                     .error = "error",
                                     .reason = "reason",
                                     .pending = "pending",
                                     .working = "working",
                                     .completed = "completed",
                                     .failed = "failed"};

static inline int work(struct task *t, void *arg, const struct job *j)
{
    struct bench *b = arg;
    int err = 0;
    if (b->away)
        return task_fail(t, ERR_UNAVAILABLE, "the service is away");
    if (b->poor && j->uid == 1)
        return task_fail(t, ERR_FUNDS, "there is no money");
    if (b->count < LOG_MAX)
        snprintf(b->log[b->count++], sizeof b->log[0], "%.*s v%lld", STR_ARG(j->id),
                 (long long)j->version);
    b->working++;
    b->most = b->working > b->most ? b->working : b->most;
    if (str_starts(j->id, STR("slow")))
        err = task_sleep(t, b->slow_ms);
    else if (str_starts(j->id, STR("busy")))
        err = task_fail(t, ERR_BUSY, "too busy");
    else if (str_starts(j->id, STR("bad"))) {
        job_reason(j, "spoilt");
        err = task_fail(t, ERR_INVALID, "it is no document");
    } else if (str_starts(j->id, STR("nap")))
        err = task_sleep(t, 5);
    b->working--;
    return err;
}

static inline int note_given_up(struct task *t, void *arg, const struct job *j, const char *why)
{
    (void)t, (void)j, (void)why;
    ((struct bench *)arg)->given_up++;
    return 0;
}

static struct job_kind plain = {.name = "plain",
                                .concurrency = 1,
                                .lease_ms = LEASE_MS,
                                .deadline_ms = 5000,
                                .tries_max = 3,
                                .backoff_ms = 20,
                                .work = work,
                                .give_up = note_given_up},
                       kept = {.name = "kept",
                               .concurrency = 8,
                               .lease_ms = LEASE_MS,
                               .deadline_ms = 5000,
                               .tries_max = 3,
                               .backoff_ms = 20,
                               .rows = &rows,
                               .work = work};

/* --- sides --- */

static inline void open_side(struct task *t, struct side *s, uint64_t incarnation)
{
    s->jobs = jobs_new(&(struct jobs_options){
        .redis = node.redis, .sql = node.sql, .metrics = metrics, .incarnation = incarnation});
    jobs_add(s->jobs, &plain, &bench);
    jobs_add(s->jobs, &kept, &bench);
    group_init(&s->tasks, task_loop(t));
}

static inline void refill(struct task *t, struct side *s)
{
    struct role_turn turn = {.locked = false};
    int err = jobs_refill_role(t, s->jobs, &turn);
    if (err)
        printf("# refill: %s %s\n", err_name(err), task_error(t));
    check(err == 0);
}

static inline void go(struct side *s)
{
    check(task_go(&s->tasks, "jobs", jobs_task, s->jobs) == 0);
    role_in(&s->tasks, jobs_keep_role, s->jobs, 20);
}

/* As a node that is killed: nothing is given back. */
static inline void kill_side(struct task *t, struct side *s)
{
    group_cancel(&s->tasks);
    check(group_join(t, &s->tasks) == 0);
    jobs_free(s->jobs);
}

static inline void begin(struct task *t, struct side *s)
{
    struct node *n = &node;
    bench = (struct bench){.node = n, .slow_ms = 300};
    plain.concurrency = 1;
    plain.concurrency_all = plain.user_max = plain.all_max = plain.step = 0;
    plain.deadline_ms = 5000;
    open_node(t, n);
    say(t, n, STR("FLUSHALL"));
    check(sql_call(t, n->sql, NULL, "DELETE FROM test_job") == 0);
    open_side(t, s, 1);
    refill(t, s);
}

static inline void end(struct task *t, struct side *s)
{
    kill_side(t, s);
    close_node(t, &node);
}

/* --- jobs --- */

static inline int push(struct task *t, struct side *s, const char *id, int64_t uid, int64_t version,
                       int64_t priority, int64_t order)
{
    struct job_push p = {.id = str_dup(task_arena(t), str_of(id)),
                         .uid = uid,
                         .version = version,
                         .priority = priority,
                         .order = order};
    enum jobs_room room;
    check(jobs_push(t, s->jobs, "plain", &p, 1, &room) == 0);
    return room;
}

static inline void add_row(struct task *t, const char *id, int64_t uid, int64_t priority)
{
    check(sql_call(t, node.sql, NULL,
                   "INSERT INTO test_job (id, uid, priority, state) VALUES (?, ?, ?, 'pending')",
                   sql_text(str_of(id)), sql_int(uid), sql_int(priority)) == 0);
}

static inline int64_t rows_in(struct task *t, const char *state) /* -1: MySQL does not answer */
{
    struct sql_rows r;
    int err = sql_call(t, node.sql, &r, "SELECT COUNT(*) FROM test_job WHERE state = ?",
                       sql_text(str_of(state)));
    check(!err || err_may_pass(err));
    return err ? -1 : r.cells[0].i;
}

static inline struct jobs_look look(struct task *t, struct side *s, size_t n)
{
    struct jobs_look l;
    check(jobs_look(t, s->jobs, n, &l) == 0);
    return l;
}

static inline bool empty(struct task *t, struct side *s, size_t n)
{
    struct jobs_look l = look(t, s, n);
    return l.waiting + l.delayed + l.held + l.working == 0;
}

/* False: not within WAIT_MS. */
#define await(t, condition)                                                                        \
    ({                                                                                             \
        int64_t await_until_ = loop_now_ms(task_loop(t)) + WAIT_MS;                                \
        while (!(condition) && loop_now_ms(task_loop(t)) < await_until_)                           \
            pause_ms(t, 2);                                                                        \
        (condition);                                                                               \
    })

static inline int64_t times(const char *entry)
{
    int64_t n = 0;
    for (size_t i = 0; i < bench.count; i++)
        n += strcmp(bench.log[i], entry) == 0;
    return n;
}

static inline void make_table(struct task *t, void *arg)
{
    (void)arg;
    open_node(t, &node);
    check(sql_call(t, node.sql, NULL,
                   "CREATE TABLE test_job (n BIGINT PRIMARY KEY AUTO_INCREMENT,"
                   " id VARCHAR(64) COLLATE utf8mb4_nopad_bin NOT NULL UNIQUE, uid INT NOT NULL,"
                   " version BIGINT NOT NULL DEFAULT 1, priority INT NOT NULL,"
                   " state VARCHAR(16) NOT NULL, error TEXT, reason VARCHAR(16),"
                   " created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),"
                   " changed_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)),"
                   " KEY (state, n), KEY (state, changed_at)) ENGINE=InnoDB") == 0);
    close_node(t, &node);
}
#endif
