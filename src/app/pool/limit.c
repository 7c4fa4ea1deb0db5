/* How far a list may go, and what follows a pop: marks; and the limit taken back at rest. */
#include "app/pool/pools_private.h"
#include "base/log.h"
#include "engine/store/scripts.h"

#define AHEAD_MIN  POOL_COUNT_MAX /* any pop can be served */
#define FAST_MS    1000           /* limits raised more often than this go further each time */
#define FORGET_MS  3600000
#define MARK_ITEMS 5000 /* in one statement */

/* --- raising it --- */

/* A busy group goes further ahead, so that MySQL is asked less often; a quiet one loses less when
 * Redis is lost. */
static int64_t ahead_of(struct pool *x, int64_t now_ms)
{
    int64_t ahead = now_ms - x->raised_ms < FAST_MS ? x->ahead * 2 : x->ahead / 2;
    x->raised_ms = now_ms;
    x->ahead = ahead < AHEAD_MIN ? AHEAD_MIN : ahead > POOL_AHEAD_MAX ? POOL_AHEAD_MAX : ahead;
    return x->ahead;
}

/* In MySQL. *limit: what is noted there afterwards. ERR_CONFLICT: it has another list. */
static int note_limit(struct task *t, struct pool *x, struct str name, int64_t *limit)
{
    struct sql_rows r;
    int err = sql_call(t, x->pools->options.sql, &r,
                       "UPDATE pool_list SET handed_limit = ?"
                       " WHERE type = ? AND group_id = ? AND list = ? AND handed_limit < ?",
                       sql_int(*limit), POOL_VALUES(x->id), sql_text(name), sql_int(*limit));
    if (err || r.affected)
        return err;
    err = sql_call(t, x->pools->options.sql, &r,
                   "SELECT list, handed_limit FROM pool_list WHERE type = ? AND group_id = ?",
                   POOL_VALUES(x->id));
    if (!err && (r.count == 0 || !str_eq(r.cells[0].s, name)))
        err = task_fail(t, ERR_CONFLICT, "%.*s has another list", STR_ARG(x->key));
    if (!err)
        *limit = r.cells[1].i; /* another node has raised it */
    return err;
}

static int raise_once(struct task *t, struct pool *x)
{
    struct arena *a = task_arena(t);
    struct str name = str_dup(a, str_of(x->name));
    int64_t limit = x->first - 1 + ahead_of(x, loop_now_ms(task_loop(t))), told;
    int err = note_limit(t, x, name, &limit);
    if (!err)
        err = SCRIPT_NUMBER(t, x->pools->options.redis, pool_limit, &told, .state = x->state,
                            .name = name, .limit = str_int(a, limit));
    if (!err && !told)
        err = task_fail(t, ERR_CONFLICT, "Redis has another list of %.*s", STR_ARG(x->key));
    if (!err && str_eq(name, str_of(x->name)) && x->limit < limit)
        x->limit = limit;
    return err;
}

int pool_raise(struct task *t, struct pool *x)
{
    if (x->raises) {
        int err = 0;
        while (x->raises && !err)
            err = waitq_wait(t, &x->raised);
        return err; /* if that was in vain, the caller finds the limit where it was */
    }
    struct task_scope s = task_scope(t);
    x->raises = true;
    x->busy++;
    int err = raise_once(t, x);
    x->raises = false;
    waitq_wake_all(&x->raised);
    pool_put(x);
    task_scope_end(t, s);
    return err;
}

static void raise_task(struct task *t, void *arg)
{
    struct pool *x = arg;
    int err = pool_raise(t, x);
    if (err)
        log_debug("pool", "the limit of %.*s cannot be raised: %s", STR_ARG(x->key), task_error(t));
    x->raises_soon = false;
    pool_put(x);
}

void pool_raise_soon(struct pool *x)
{
    if (x->raises || x->raises_soon ||
        task_go(x->pools->options.group, "pool limit", raise_task, x))
        return;
    x->raises_soon = true;
    x->busy++;
}

/* --- marks --- */

/* Numbers that the group's row has; of a group at work they may be larger by now. */
static int read_numbers(struct task *t, const struct pool *x, struct pool_numbers *out)
{
    struct sql_rows r;
    int err = sql_call(t, x->pools->options.sql, &r,
                       "SELECT numbered, marked FROM pool_group WHERE type = ? AND group_id = ?",
                       POOL_VALUES(x->id));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_BUSY, "the rows of %.*s are gone", STR_ARG(x->key));
    if (!err)
        *out = (struct pool_numbers){r.cells[0].i, r.cells[1].i};
    return err;
}

static int mark_run(struct task *t, struct pool *x, const struct pool_run *run, int64_t *items)
{
    struct sql_rows r;
    int err = sql_call(t, x->pools->options.sql, &r,
                       pool_sql(task_arena(t), x->id.type,
                                "UPDATE $table FORCE INDEX (PRIMARY) SET status = 0,"
                                " used_at = UNIX_TIMESTAMP() WHERE id BETWEEN ? AND ?"
                                " AND group_id = ? AND number = id + ? AND status = 2 LIMIT ?"),
                       sql_int(run->id), sql_int(run->id + run->items - 1), sql_int(x->id.group),
                       sql_int(run->number - run->id), sql_int(run->items));
    *items += err ? 0 : (int64_t)r.affected;
    return err;
}

static int mark_numbers(struct task *t, struct pool *x, int64_t first, int64_t last, int64_t *items)
{
    struct sql_pool *sql = x->pools->options.sql;
    struct pool_runs runs;
    struct sql_rows r = {.affected = 0};
    int err = pool_runs_look(t, sql, x->id, first, last, &runs);
    if (!err && runs.whole && pool_runs_long(&runs)) {
        for (size_t i = 0; i < runs.count && !err; i++)
            err = mark_run(t, x, &runs.list[i], items);
        return err;
    }
    if (!err)
        err = sql_call(t, sql, &r,
                       pool_runs_sql(t, x->id, &runs, "UPDATE ",
                                     " SET i.status = 0, i.used_at = UNIX_TIMESTAMP()"
                                     " WHERE i.group_id = ? AND i.number BETWEEN ? AND ?"
                                     " AND i.status = 2"),
                       pool_runs_value(t, &runs), sql_int(x->id.group), sql_int(first),
                       sql_int(last));
    *items = err ? 0 : (int64_t)r.affected;
    return err;
}

/* The next MARK_ITEMS numbers below first. No lock on the group: that a number below the next one
 * of a list was handed out stays true, whatever becomes of the list, and a number is given once. So
 * filling and marking do not wait for each other. A death between both statements costs the pace
 * some items; two that mark the same count them once. */
static int mark_some(struct task *t, struct pool *x, int64_t first, bool *done)
{
    struct sql_pool *sql = x->pools->options.sql;
    struct pool_numbers n;
    int64_t items = 0;
    int err = read_numbers(t, x, &n);
    if (err)
        return err;
    int64_t last = n.marked + MARK_ITEMS, most = first - 1;
    if (most > n.numbered) /* MySQL is older than Redis: those numbers are given once more */
        most = n.numbered;
    *done = last >= most;
    last = *done ? most : last;
    if (last <= n.marked)
        return 0;
    err = mark_numbers(t, x, n.marked + 1, last, &items);
    if (err)
        return err;
    metric_add(x->pools->marks, items);
    err = pool_note_marked(t, sql, x->id, last, items);
    return err ? err
               : sql_call(t, sql, NULL,
                          "DELETE FROM pool_run WHERE type = ? AND group_id = ? AND number <= ?"
                          " AND number + items <= ?",
                          POOL_VALUES(x->id), sql_int(last), sql_int(last + 1));
}

/* Told to other nodes, so that they need not look. */
static void tell_marked(struct task *t, struct pool *x, int64_t first)
{
    if (x->marked < first - 1)
        x->marked = first - 1;
    if (pool_redis(x) && redis_call(t, x->pools->options.redis, x->state, NULL, STR("HSET"),
                                    x->state, STR("marked"), str_int(task_arena(t), first - 1)))
        log_debug("pool", "Redis was not told what of %.*s is marked: %s", STR_ARG(x->key),
                  task_error(t));
}

int pool_mark(struct task *t, struct pool *x, int64_t first)
{
    struct task_scope s = task_scope(t);
    int64_t begun_ms = loop_now_ms(task_loop(t));
    int err = pool_ensure(t, x);
    for (bool done = false; !err && !done;)
        err = mark_some(t, x, first, &done);
    if (!err) {
        x->unmarked_ms = x->first > first && x->unmarked_ms ? begun_ms : 0;
        tell_marked(t, x, first);
    }
    task_scope_end(t, s);
    return err;
}

/* --- at rest --- */

int pool_settled(struct task *t, struct pool *x, struct str name, struct str fresh, int64_t first)
{
    return sql_call(t, x->pools->options.sql, NULL,
                    "UPDATE pool_list SET list = ?, handed_limit = ?"
                    " WHERE type = ? AND group_id = ? AND list = ?",
                    sql_text(fresh), sql_int(first - 1), POOL_VALUES(x->id), sql_text(name));
}

int pool_settle(struct task *t, struct pool *x)
{
    struct task_scope s = task_scope(t);
    struct arena *a = task_arena(t);
    struct str name = str_dup(a, str_of(x->name));
    char fresh[POOL_NAME_BYTES];
    int64_t first = x->first, rests;
    loop_token(task_loop(t), fresh, sizeof fresh);
    int err = SCRIPT_NUMBER(t, x->pools->options.redis, pool_settle, &rests, .state = x->state,
                            .list = x->list, .name = name, .fresh = str_of(fresh),
                            .ms = str_int(a, FORGET_MS), .first = str_int(a, first));
    if (!err && rests)
        err = pool_settled(t, x, name, str_of(fresh), first);
    if (!err && rests && x->first == first) {
        memcpy(x->name, fresh, sizeof fresh);
        x->limit = first - 1;
    }
    if (!err && !rests)
        x->limit = x->first - 1; /* another node hands out, and settles it later */
    task_scope_end(t, s);
    return err;
}
