#include "engine/runs/keeper.h"

#include "base/log.h"
#include "engine/runs/owed.h"
#include "engine/runs/row.h"
#include "engine/store/keys.h"

#define ROWS_MAX    500 /* in one round trip */
#define SWEPT_MAX   100 /* in one round; the rest follows in the next */
#define REPLIES_PER 3

/* What a round looks at: no parameters, which may be long. */
struct brief {
    struct run_id id;
    enum run_state state;
    int64_t changed_ms;
    bool was_done; /* it may go on to try its failed papers again */
};

struct known { /* state of a run in Redis */
    enum run_state state;
    bool told;     /* Redis has this version of the row */
    bool whole;    /* all of its units are done */
    bool lined_up; /* it waits for workers, or has them */
};

/* --- looking --- */

static struct known read_known(const struct brief *b, const struct redis_reply *const *r)
{
    struct known k = {.state = RUN_QUEUED};
    if (r[0]->type != REDIS_ARRAY)
        return k;
    const struct redis_reply *const *field = r[0]->items;
    bool has_state = field[0]->type == REDIS_STRING && run_state_parse(field[0]->str, &k.state);
    k.told = has_state && redis_number(field[1], 0) >= b->changed_ms;
    k.whole = has_state && redis_number(field[3], -1) >= redis_number(field[2], INT64_MAX);
    k.lined_up = r[1]->type == REDIS_STRING || (r[2]->type == REDIS_INT && r[2]->integer == 1);
    return k;
}

static int look(struct task *t, const struct runs *r, const struct brief *rows, size_t count,
                struct known *out)
{
    struct arena *a = task_arena(t);
    struct redis_batch batch;
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, r->redis);
    for (size_t i = 0; i < count; i++) {
        struct str status = key_query_status(a, rows[i].id.uid, rows[i].id.qid);
        struct str name = run_name(a, rows[i].id);
        redis_batch_add(&batch, status, STR("HMGET"), status, STR("state"), STR("changed"),
                        STR("total_blocks"), STR("finished_blocks"));
        redis_batch_add(&batch, key_queue, STR("ZSCORE"), key_queue, name);
        redis_batch_add(&batch, key_running, STR("HEXISTS"), key_running, name);
    }
    int err = redis_batch_run(&batch, &replies);
    for (size_t i = 0; !err && i < count; i++)
        out[i] = read_known(&rows[i], replies + REPLIES_PER * i);
    return err;
}

/* --- reconciling --- */

static int tell_again(struct task *t, const struct runs *r, struct run_id id)
{
    struct run_row row;
    int err = run_row_find(t, r->sql, id, &row);
    if (err)
        return err == ERR_NOT_FOUND ? 0 : err;
    return run_announce(t, r, &row);
}

/* ERR_CONFLICT: another node or the user has changed the run meanwhile; nothing is left to do. */
static int change(struct task *t, const struct runs *r, struct run_id id, enum run_event e,
                  const char *reason)
{
    enum run_state state;
    int err = run_control(t, r, id, e, reason, &state);
    return err == ERR_CONFLICT ? 0 : err;
}

/* The row was read before Redis. So if the row is DONE and Redis is not, Redis has lost state. */
static int mend(struct task *t, const struct runs *r, const struct brief *b, const struct known *k,
                int64_t *mended)
{
    bool works = b->state == RUN_QUEUED || b->state == RUN_RUNNING;
    bool again = b->state == RUN_RUNNING && b->was_done && !k->told;
    ++*mended;
    if (b->state == RUN_DONE && !k->whole) {
        log_warn(
            "run",
            "run %.*s is reopened: Redis lost results of it; those in MySQL are put back, only "
            "the others are judged again",
            STR_ARG(b->id.qid));
        return change(t, r, b->id, RUN_REOPEN, "");
    }
    if (k->state == RUN_DONE && !run_state_final(b->state) && !again)
        return change(t, r, b->id, RUN_FINISH, "");
    if (!k->told || (works && !k->lined_up))
        return tell_again(t, r, b->id);
    --*mended;
    return 0;
}

static int mend_page(struct task *t, const struct runs *r, struct str *after, bool *more,
                     int64_t *mended)
{
    struct sql_rows rows;
    int err =
        sql_call(t, r->sql, &rows,
                 "SELECT uid, query_id, status,"
                 " CAST(UNIX_TIMESTAMP(changed_at) * 1000 AS SIGNED), end_time IS NOT NULL"
                 " FROM query_log WHERE archived = 0 AND query_id > ? ORDER BY query_id LIMIT ?",
                 sql_text(*after), sql_int(ROWS_MAX));
    if (err)
        return err;
    struct brief *briefs = ARENA_ARRAY(task_arena(t), struct brief, rows.count + 1);
    struct known *known = ARENA_ARRAY(task_arena(t), struct known, rows.count + 1);
    for (size_t i = 0; !err && i < rows.count; i++) {
        const struct sql_value *cell = sql_row(&rows, i);
        briefs[i] = (struct brief){
            .id = {cell[0].i, cell[1].s}, .changed_ms = cell[3].i, .was_done = cell[4].i != 0};
        if (!run_state_parse(cell[2].s, &briefs[i].state))
            err = task_fail(t, ERR_PROTO, "query_log: run %.*s has no known status",
                            STR_ARG(cell[1].s));
    }
    if (!err && rows.count)
        err = look(t, r, briefs, rows.count, known);
    for (size_t i = 0; !err && i < rows.count; i++)
        err = mend(t, r, &briefs[i], &known[i], mended);
    *more = rows.count == ROWS_MAX;
    if (rows.count)
        *after = briefs[rows.count - 1].id.qid;
    return err;
}

int run_reconcile(struct task *t, const struct runs *r, int64_t *mended)
{
    struct str after = STR("");
    int err = 0;
    *mended = 0;
    for (bool more = true; more && !err;)
        err = mend_page(t, r, &after, &more, mended);
    return err;
}

/* rows: uid, query_id. */
static int control_each(struct task *t, const struct runs *r, const struct sql_rows *rows,
                        enum run_event e, const char *reason, int64_t *changed)
{
    int err = 0;
    for (size_t i = 0; !err && i < rows->count; i++) {
        const struct sql_value *cell = sql_row(rows, i);
        err = change(t, r, (struct run_id){cell[0].i, cell[1].s}, e, reason);
        *changed += !err;
    }
    return err;
}

/* A ban pauses the runs itself; this completes one that failed half way. */
static int pause_banned(struct task *t, const struct runs *r, int64_t *changed)
{
    struct sql_rows rows;
    int err = sql_call(t, r->sql, &rows,
                       "SELECT uid, query_id FROM query_log JOIN user_info USING (uid)"
                       " WHERE archived = 0 AND status IN ('QUEUED', 'RUNNING') AND banned = 1"
                       " LIMIT ?",
                       sql_int(SWEPT_MAX));
    return err ? err : control_each(t, r, &rows, RUN_PAUSE, RUN_REASON_BANNED, changed);
}

int run_sweep(struct task *t, const struct runs *r, int64_t *changed)
{
    struct sql_rows rows;
    *changed = 0;
    int err = sql_call(t, r->sql, &rows,
                       "SELECT uid, query_id FROM query_log WHERE archived = 0 AND"
                       " status = 'PAUSED' AND changed_at < UTC_TIMESTAMP(3) - INTERVAL ? SECOND"
                       " LIMIT ?",
                       sql_int(KEEPER_PAUSED_MS_MAX / 1000), sql_int(SWEPT_MAX));
    if (!err)
        err = control_each(t, r, &rows, RUN_TERMINATE, RUN_REASON_EXPIRED, changed);
    return err ? err : pause_banned(t, r, changed);
}

int keeper_role(struct task *t, void *arg, struct role_turn *turn)
{
    const struct runs *r = arg;
    int64_t mended, swept;
    (void)turn; /* rounds are short */
    /* Rows that are behind come first; a MySQL that is read-only leaves them so. */
    int settled = run_settle_all(t, r);
    int err = settled == ERR_CANCELED ? settled : run_reconcile(t, r, &mended);
    if (!err && mended) /* includes runs whose row was written just now */
        log_debug("run", "keeper: %lld runs differed between MySQL and Redis, reconciled",
                  (long long)mended);
    if (!err)
        err = run_sweep(t, r, &swept);
    return err ? err : settled;
}
