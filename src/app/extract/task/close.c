/* The aggregator: closes tasks that have no open rows (EXT-3). A look at one open task takes some
 * two microseconds of MySQL, so a round looks at a slice of them, and EXTRACT_CLOSE_ROUNDS rounds
 * at all: where there are few, each is looked at in every round. */
#include "app/extract/task/extract_private.h"
#include "engine/people/hooks.h"

#define PAGE_MIN 100
#define PAGE_MAX 10000

struct closing {
    struct extract *extract;
    int64_t number;
    bool closed; /* else another node was faster, or a retry has opened rows */
};

#define OPEN_ROW(state)                                                                            \
    "(SELECT 1 FROM extraction_result r WHERE r.task = k.number AND r.state = '" state             \
    "' LIMIT 1) IS NULL"
#define FINISHED "k.status = 'processing' AND " OPEN_ROW("pending") " AND " OPEN_ROW("extracting")

/* What the webhook is told: the counts as they are now. */
static int tell(struct task *t, struct sql *c, const struct closing *x)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT k.id, k.uid, k.name, k.closed, k.webhook, k.webhook_secret,"
                     " k.total_count, (SELECT COUNT(*) FROM extraction_result r"
                     " WHERE r.task = k.number AND r.state = 'completed')"
                     " FROM extraction_task k WHERE k.number = ?",
                     sql_int(x->number));
    if (err || r.count == 0 || !r.cells[4].s.p)
        return err;
    const struct sql_value *v = r.cells;
    struct buf b;
    struct json_writer j;
    jw_begin(&j, &b);
    jw_put_str(&j, "event", STR("task.completed"));
    jw_put_str(&j, "task_id", v[0].s);
    jw_put_str(&j, "name", v[2].s);
    jw_put_str(&j, "status", STR("completed"));
    jw_put_int(&j, "total", v[6].i);
    jw_put_int(&j, "success", v[7].i);
    jw_put_int(&j, "failed", v[6].i - v[7].i);
    struct hook h = {
        .id = str_printf(task_arena(t), "task-%.*s-%lld", STR_ARG(v[0].s), (long long)v[3].i),
        .uid = v[1].i,
        .url = v[4].s,
        .key = v[5].s,
        .body = jw_finish(&j, task_arena(t))};
    return hook_add(t, c, &h);
}

static int close_body(struct task *t, struct sql *c, void *arg)
{
    struct closing *x = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "UPDATE extraction_task k SET k.status = 'completed', k.closed = k.closed + 1,"
                     " k.completed_at = UTC_TIMESTAMP(3) WHERE k.number = ? AND " FINISHED,
                     sql_int(x->number));
    x->closed = !err && r.affected > 0;
    return x->closed ? tell(t, c, x) : err;
}

/* Of the tasks from first to last those that may be closed. Most have a pending row, and are done
 * with after one look at the key (task, state). */
static int close_some(struct task *t, struct extract *e, struct role_turn *turn, int64_t first,
                      int64_t last)
{
    struct closing x = {.extract = e};
    struct sql_rows r;
    int err = sql_call(t, e->node->sql, &r,
                       "SELECT k.number FROM extraction_task k"
                       " LEFT JOIN extraction_result p ON p.task = k.number AND p.state = 'pending'"
                       " LEFT JOIN extraction_result e ON e.task = k.number"
                       " AND e.state = 'extracting' WHERE k.status = 'processing'"
                       " AND k.number BETWEEN ? AND ? AND p.number IS NULL AND e.number IS NULL",
                       sql_int(first), sql_int(last));
    for (size_t i = 0; !err && i < r.count; i++) {
        struct arena_mark mark = arena_mark(task_arena(t));
        x.number = sql_row(&r, i)[0].i;
        err = sql_tx(t, e->node->sql, close_body, &x);
        metric_add(e->closed, !err && x.closed);
        if (!err)
            err = role_keep(t, turn);
        arena_reset(task_arena(t), mark);
    }
    return err;
}

/* After the last open task: so many at a time that the next look at all of them takes
 * EXTRACT_CLOSE_ROUNDS rounds. */
static void advance(struct extract_look *l, size_t count, int64_t last)
{
    bool done = count < l->page;
    l->seen += count;
    l->after = done ? 0 : last;
    if (!done)
        return;
    l->page = l->seen / EXTRACT_CLOSE_ROUNDS + 1;
    l->page = l->page < PAGE_MIN ? PAGE_MIN : l->page > PAGE_MAX ? PAGE_MAX : l->page;
    l->seen = 0;
}

int extract_close_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct extract *e = arg;
    struct extract_look *l = &e->look;
    struct sql_rows r;
    l->page = l->page ? l->page : PAGE_MIN;
    int err = sql_call(t, e->node->sql, &r,
                       "SELECT number FROM extraction_task WHERE status = 'processing'"
                       " AND number > ? ORDER BY number LIMIT ?",
                       sql_int(l->after), sql_int((int64_t)l->page));
    if (err)
        return err;
    int64_t last = r.count ? r.cells[r.count - 1].i : 0;
    if (r.count)
        err = close_some(t, e, turn, r.cells[0].i, last);
    if (!err)
        advance(l, r.count, last);
    return err;
}
