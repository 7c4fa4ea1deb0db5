/* Rows that Redis has not heard of. A push can be lost in two ways:
 *
 *   - Redis came back older, or empty: state 'run' of the queue names another generation, or none.
 *     Then all rows that are not final are pushed, and after that 'run' names this one: until then
 *     nothing is taken. What Redis still has of finished jobs is taken once more, and found final.
 *   - The node died between the commit of the row and the push, or Redis did not answer it: rows
 *     that were changed since the last round are pushed once more. MARGIN_S allows for transactions
 *     that commit late; those that commit later still are found by a look at all rows, every
 *     WHOLE_MS.
 *
 * Pushing what is there already changes nothing. The times are MySQL's own: state 'seen' is its
 * clock at the begin of the last round. */
#include "base/log.h"
#include "engine/jobs/jobs_private.h"
#include "engine/store/scripts.h"

#define MARGIN_S "5"
#define WHOLE_MS (10LL * 60 * 1000)

struct fill {
    struct jobs_queue *queue;
    struct role_turn *turn;
    struct generation generation;
    struct str paused; /* as Redis had it before MySQL was asked: "1", "0", "" */
    struct str since;  /* p == NULL: all rows */
    int64_t pushed;
};

static int fill_state(struct task *t, struct fill *f, bool working)
{
    int64_t after = -1;
    size_t count = JOBS_BATCH;
    int err = 0;
    while (!err && count == JOBS_BATCH) {
        struct arena_mark mark = arena_mark(task_arena(t));
        struct job_push *list;
        err = jobs_rows_open(t, f->queue, working, f->since, &after, &list, &count);
        if (!err && count)
            err = jobs_push(t, f->queue->jobs, f->queue->kind->name, list, count, NULL);
        if (!err)
            err = role_keep(t, f->turn);
        if (!err)
            f->pushed += (int64_t)count;
        arena_reset(task_arena(t), mark);
    }
    return err;
}

/* Which queues are paused: table setting says so, and Redis has it for jobs_take.lua. */
static int read_paused(struct task *t, const struct jobs_queue *q, bool *paused)
{
    struct sql_rows r;
    int err = sql_call(t, q->jobs->options.sql, &r, "SELECT value FROM setting WHERE name = ?",
                       sql_text(str_printf(task_arena(t), JOBS_PAUSED "%s", q->kind->name)));
    *paused = !err && r.count && str_eq(r.cells[0].s, STR("true"));
    return err;
}

static int note(struct task *t, const struct fill *f, struct str seen, bool paused)
{
    const struct jobs_queue *q = f->queue;
    int64_t noted;
    int err = SCRIPT_NUMBER(t, q->jobs->options.redis, jobs_filled, &noted, .state = q->keys.state,
                            .run = generation_str(&f->generation), .seen = seen, .was = f->paused,
                            .paused = paused ? STR("1") : STR("0"));
    if (!err && !noted)
        err = task_fail(t, ERR_UNAVAILABLE, "Redis was lost while its queue was filled");
    return err;
}

/* *seen: when rows were last looked at, in this generation; "": not yet. */
static int read_state(struct task *t, struct fill *f, struct str *seen)
{
    const struct jobs_queue *q = f->queue;
    const struct redis_reply *r;
    f->generation = generation_at(q->jobs->options.redis, q->keys.state);
    int err = redis_call(t, q->jobs->options.redis, q->keys.state, &r, STR("HMGET"), q->keys.state,
                         STR("run"), STR("seen"), STR("paused"));
    if (!err && (r->type != REDIS_ARRAY || r->count != 3))
        err = task_fail(t, ERR_PROTO, "the state of queue %s is no hash", q->kind->name);
    if (err)
        return err;
    bool known = str_eq(r->items[0]->str, generation_str(&f->generation)) &&
                 r->items[1]->type == REDIS_STRING;
    *seen = known ? r->items[1]->str : STR("");
    f->paused = r->items[2]->type == REDIS_STRING ? r->items[2]->str : STR("");
    return 0;
}

/* The version before had downloads in a list of the same name: losing one costs a repeat. */
static int drop_other(struct task *t, const struct jobs_queue *q)
{
    struct redis *r = q->jobs->options.redis;
    const struct redis_reply *type;
    int err = redis_call(t, r, q->keys.waiting, &type, STR("TYPE"), q->keys.waiting);
    if (!err && str_eq(type->str, STR("list")))
        err = redis_call(t, r, q->keys.waiting, NULL, STR("DEL"), q->keys.waiting);
    return err;
}

static int fill_queue(struct task *t, struct jobs_queue *q, struct role_turn *turn)
{
    struct fill f = {.queue = q, .turn = turn};
    struct str seen;
    struct sql_rows clock;
    int64_t now_ms = loop_now_ms(task_loop(t));
    bool paused = false;
    int err = read_state(t, &f, &seen);
    if (!err)
        err = sql_call(t, q->jobs->options.sql, &clock,
                       "SELECT CAST(UTC_TIMESTAMP(3) AS CHAR), CAST(CAST(? AS DATETIME(3))"
                       " - INTERVAL " MARGIN_S " SECOND AS CHAR)",
                       seen.n ? sql_text(seen) : sql_null());
    if (err)
        return err;
    bool restarted = seen.n == 0, whole = restarted || now_ms - q->whole_ms >= WHOLE_MS;
    f.since = whole ? STR_NULL : clock.cells[1].s;
    if (restarted)
        err = drop_other(t, q);
    if (!err && q->kind->rows)
        err = fill_state(t, &f, false);
    if (!err && q->kind->rows && whole)
        err = fill_state(t, &f, true);
    if (!err)
        err = read_paused(t, q, &paused);
    if (!err)
        err = note(t, &f, clock.cells[0].s, paused);
    if (err)
        return err;
    if (whole)
        q->whole_ms = now_ms;
    if (restarted && f.pushed)
        log_info("jobs", "queue %s was filled with %lld jobs of MySQL", q->kind->name,
                 (long long)f.pushed);
    jobs_wake(q);
    return 0;
}

/* Whether there are rows that wait, and no job does. One that is delayed or in work has a row that
 * waits, too, for a while: then the queue is filled for nothing. */
static int has_news(struct task *t, struct jobs_queue *q, bool *news)
{
    const struct job_rows *rows = q->kind->rows;
    const struct redis_reply *waiting;
    struct sql_rows r = {.count = 0};
    int err = redis_call(t, q->jobs->options.redis, q->keys.waiting, &waiting, STR("ZCARD"),
                         q->keys.waiting);
    if (!err && waiting->integer == 0)
        err = sql_call(t, q->jobs->options.sql, &r,
                       arena_printf(task_arena(t), "SELECT 1 FROM %s WHERE %s = ? LIMIT 1",
                                    rows->table, rows->state),
                       sql_text(str_of(rows->pending)));
    *news = !err && r.count;
    return err;
}

/* The rows of one kind that cannot be read hold up no other queue. */
static int fill_queues(struct task *t, struct jobs *j, struct role_turn *turn, bool soon)
{
    const char *why = NULL;
    int first = 0;
    for (size_t i = 0; i < j->count; i++) {
        struct jobs_queue *q = j->queues[i];
        bool due = !soon;
        int err = soon && q->kind->soon ? has_news(t, q, &due) : 0;
        if (!err && due)
            err = fill_queue(t, q, turn);
        if (err == ERR_CANCELED)
            return err;
        if (err && !first) {
            first = err;
            why = arena_strdup(task_arena(t), task_error(t));
        }
    }
    return first ? task_fail(t, first, "%s", why) : 0;
}

int jobs_refill_role(struct task *t, void *arg, struct role_turn *turn)
{
    return fill_queues(t, arg, turn, false);
}

int jobs_soon_role(struct task *t, void *arg, struct role_turn *turn)
{
    return fill_queues(t, arg, turn, true);
}
