#include "engine/runs/run.h"

#include "base/json.h"
#include "base/log.h"
#include "engine/people/switches.h"
#include "engine/runs/live.h"
#include "engine/runs/owed.h"
#include "engine/runs/reserve.h"
#include "engine/runs/row.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "engine/store/cluster.h"

struct str run_name(struct arena *a, struct run_id id)
{
    return str_printf(a, "%lld:%.*s", (long long)id.uid, STR_ARG(id.qid));
}

bool run_name_read(struct str name, struct run_id *out)
{
    struct str rest = name, uid = str_cut(&rest, ':');
    int64_t number;
    if (!rest.p || rest.n == 0 || !str_to_i64(uid, &number))
        return false;
    *out = (struct run_id){number, rest};
    return true;
}

static int take_row(struct task *t, const struct sql_rows *r, struct run_row *out)
{
    return r->count ? run_row_read(t, r->cells, out)
                    : task_fail(t, ERR_NOT_FOUND, "you have no such run");
}

#define THE_ROW "SELECT " RUN_ROW_COLUMNS " FROM query_log WHERE query_id = ? AND uid = ?"

int run_row_find(struct task *t, struct sql_pool *sql, struct run_id id, struct run_row *out)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r, THE_ROW, sql_text(id.qid), sql_int(id.uid));
    return err ? err : take_row(t, &r, out);
}

int run_row_lock(struct task *t, struct sql *c, struct run_id id, struct run_row *out)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, THE_ROW " FOR UPDATE", sql_text(id.qid), sql_int(id.uid));
    return err ? err : take_row(t, &r, out);
}

int run_line_up(struct task *t, struct redis *r, struct str name, struct str created, bool works)
{
    return SCRIPT(t, r, run_line_up, NULL, .queue = key_queue, .running = key_running, .run = name,
                  .submitted = created, .works = works ? STR("1") : STR("0"));
}

int run_publish(struct task *t, struct redis *r, struct str name)
{
    return redis_call(t, r, key_news, NULL, STR("XADD"), key_news, STR("MAXLEN"), STR("~"),
                      STR("1000"), STR("*"), STR("run"), name);
}

/* If a step fails, the reconciler (keeper.h) repeats all of it. */
int run_announce(struct task *t, const struct runs *r, const struct run_row *row)
{
    struct arena *a = task_arena(t);
    bool told, works = row->state == RUN_QUEUED || row->state == RUN_RUNNING;
    struct str name = run_name(a, (struct run_id){row->uid, row->qid});
    struct str created = str_int(a, row->created_ms), history = key_history(a, row->uid);
    int err = run_row_tell(t, r->redis, row, &told);
    if (!err)
        err = redis_call(t, r->redis, history, NULL, STR("ZADD"), history, created, row->qid);
    if (!err)
        err = run_line_up(t, r->redis, name, created, works);
    if (!err)
        err = run_publish(t, r->redis, name);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* --- controlling --- */

struct controlling {
    struct run_id id;
    enum run_event event;
    const char *reason;
    const struct admin_deed *by; /* NULL: not noted */
    const struct runs *runs;
    bool loaded;     /* false: the balance has left Redis, nothing was done */
    struct str owed; /* the note that is settled; p == NULL: none is */
    bool moot;       /* that note is gone, or another one by now */
    struct run_row row;
};

/* A ban may be written at the same time. The row lock orders the two: either the ban sees this run
 * active and pauses it, or the ban is seen here. */
static int refuse_banned(struct task *t, struct sql *c, const struct controlling *k)
{
    struct sql_rows r;
    int err = cluster_turn(t, c, CLUSTER_USER, k->id.uid);
    if (!err)
        err = sql_on(t, c, &r,
                     k->event == RUN_RETRY_FAILED /* which reserves: reserve_check */
                         ? "SELECT banned FROM user_info WHERE uid = ? FOR UPDATE"
                         : "SELECT banned FROM user_info WHERE uid = ? LOCK IN SHARE MODE",
                     sql_int(k->id.uid));
    if (!err && r.count && r.cells[0].i != 0)
        err = task_fail(t, ERR_FORBIDDEN, "this account is banned");
    return err;
}

/* Read in the transaction that starts the run: after new_runs was turned off, none starts. */
static int refuse_held(struct task *t, struct sql *c)
{
    bool on;
    int err = switch_read(t, c, SWITCH_NEW_RUNS, &on);
    return err || on ? err : task_fail(t, ERR_CLOSED, "new runs are switched off");
}

static struct str state_json(struct task *t, enum run_state s)
{
    return str_printf(task_arena(t), "{\"state\":\"%s\"}", run_state_name(s));
}

static int note(struct task *t, struct sql *c, const struct controlling *k, enum run_state to)
{
    struct admin_deed d = *k->by;
    d.user_uid = k->id.uid;
    d.target = k->id.qid;
    d.before = state_json(t, k->row.state);
    d.after = state_json(t, to);
    d.outcome = to == k->row.state ? ADMIN_REPEATED : ADMIN_DONE;
    return admin_audit_add(t, c, &d);
}

static int look_owed(struct task *t, struct controlling *k)
{
    struct str note;
    int err = k->owed.p ? run_owed(t, k->runs->redis, k->id, &note) : 0;
    if (!err && k->owed.p)
        k->moot = !note.p || !str_eq(note, k->owed);
    return err;
}

/* changed_at is the version of the row: it grows with every change, also within a millisecond. */
static int write_state(struct task *t, struct sql *c, void *arg)
{
    struct controlling *k = arg;
    enum run_state to;
    bool works_again = k->event == RUN_RESUME || k->event == RUN_RETRY_FAILED;
    int err = works_again ? refuse_banned(t, c, k) : 0;
    k->loaded = true;
    if (!err)
        err = run_row_lock(t, c, k->id, &k->row);
    if (!err && k->event == RUN_START && k->row.state == RUN_QUEUED)
        err = refuse_held(t, c);
    if (!err)
        err = look_owed(t, k);
    if (err || k->moot)
        return err;
    bool fresh = k->event == RUN_RESUME && !k->row.started_ms;
    if (!run_state_after(k->row.state, fresh ? RUN_REQUEUE : k->event, &to))
        return task_fail(t, ERR_CONFLICT, "the run is %s", run_state_name(k->row.state));
    if (k->event == RUN_RETRY_FAILED && to != k->row.state)
        err = run_reserve_retry(t, k->runs, c, &k->row, &k->loaded);
    if (!err && k->loaded && k->by)
        err = note(t, c, k, to);
    if (err || !k->loaded || to == k->row.state)
        return err;
    err = sql_on(
        t, c, NULL,
        "UPDATE query_log SET status = ?, reason = ?, changed_at ="
        " GREATEST(UTC_TIMESTAMP(3), changed_at + INTERVAL 1000 MICROSECOND),"
        " start_time = IF(? = 'RUNNING', COALESCE(start_time, UTC_TIMESTAMP(3)), start_time),"
        " end_time = IF(? IN ('DONE', 'CANCELLED', 'FAILED'), UTC_TIMESTAMP(3), end_time),"
        " archived = 0"
        " WHERE query_id = ?",
        sql_text(str_of(run_state_name(to))), sql_text(str_of(k->reason)),
        sql_text(str_of(run_state_name(to))), sql_text(str_of(run_state_name(to))),
        sql_text(k->id.qid));
    return err ? err : run_row_lock(t, c, k->id, &k->row);
}

/* By a user or an admin: comes after what was asked for before. */
static bool is_asked_for(enum run_event e)
{
    return e == RUN_PAUSE || e == RUN_RESUME || e == RUN_TERMINATE || e == RUN_RETRY_FAILED;
}

int run_settle(struct task *t, const struct runs *r, struct run_id id)
{
    struct controlling k = {.id = id, .reason = "", .runs = r};
    int err = run_owed(t, r->redis, id, &k.owed);
    if (err || !k.owed.p)
        return err;
    k.event = run_owed_event(k.owed);
    err = sql_tx(t, r->sql, write_state, &k);
    if (err == ERR_NOT_FOUND)
        return run_owed_drop(t, r->redis, id, k.owed);
    bool ended = err == ERR_CONFLICT && run_state_final(k.row.state);
    if (err && !ended)
        return err == ERR_CONFLICT ? ERR_BUSY : err; /* the row is much in demand */
    err = k.moot ? 0 : run_announce(t, r, &k.row);
    return err || k.moot ? err : run_owed_drop(t, r->redis, id, k.owed);
}

static int write_loaded(struct task *t, struct controlling *k)
{
    for (int i = 0; i < RESERVE_LOADS_MAX; i++) {
        int64_t cents;
        bool degraded;
        int err = sql_tx(t, k->runs->sql, write_state, k);
        if (err || k->loaded)
            return err;
        err = ledger_balance(t, k->runs->ledger, k->id.uid, &cents, &degraded);
        if (err)
            return err;
    }
    return task_fail(t, ERR_UNAVAILABLE, "the balance leaves Redis again and again");
}

int run_control(struct task *t, const struct runs *r, struct run_id id, enum run_event e,
                const char *reason, enum run_state *state)
{
    return run_control_by(t, r, id, e, reason, NULL, state);
}

int run_control_by(struct task *t, const struct runs *r, struct run_id id, enum run_event e,
                   const char *reason, const struct admin_deed *by, enum run_state *state)
{
    struct controlling k = {.id = id, .event = e, .reason = reason, .by = by, .runs = r};
    int err = is_asked_for(e) ? run_settle(t, r, id) : 0;
    if (err_may_pass(err) && (e == RUN_PAUSE || e == RUN_TERMINATE))
        err = 0; /* no note can say more than this one */
    if (!err)
        err = write_loaded(t, &k);
    if (err)
        return err;
    *state = k.row.state;
    if (run_announce(t, r, &k.row))
        log_warn("run", "run %.*s is %s in MySQL but not in Redis yet, the keeper will retry: %s",
                 STR_ARG(id.qid), run_state_name(k.row.state), task_error(t));
    return 0;
}

/* --- showing --- */

/* Fields are "<qid>:<incarnation>", values "<workers>@<when>" (crew/workers_claim.lua). */
static int64_t count_workers(const struct redis_reply *r, struct str qid)
{
    int64_t sum = 0, n;
    for (size_t i = 0; r->type == REDIS_ARRAY && i + 1 < r->count; i += 2) {
        struct str field = r->items[i]->str, claim = r->items[i + 1]->str;
        if (str_starts(field, qid) && field.n > qid.n && field.p[qid.n] == ':' &&
            str_to_i64(str_cut(&claim, '@'), &n))
            sum += n;
    }
    return sum;
}

/* Until the run is archived, Redis has newer progress than the row. */
int run_progress(struct task *t, const struct runs *r, struct run_id id, struct run_view *v)
{
    struct arena *a = task_arena(t);
    struct str status = key_query_status(a, id.uid, id.qid), workers = key_workers(a, id.uid);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    enum run_state state;
    redis_batch_init(&b, t, r->redis);
    redis_batch_add(&b, status, STR("HMGET"), status, STR("state"), STR("reason"), STR("finished"),
                    STR("relevant"), STR("failed"), STR("cost"), STR("owed"));
    redis_batch_add(&b, workers, STR("HGETALL"), workers);
    int err = redis_batch_run(&b, &replies);
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    const struct redis_reply *const *field = replies[0]->items;
    if (replies[0]->type != REDIS_ARRAY || field[0]->type != REDIS_STRING ||
        !run_state_parse(field[0]->str, &state))
        return ERR_NOT_FOUND;
    v->state = state;
    v->reason = field[1]->type == REDIS_STRING ? field[1]->str : STR("");
    v->finished = redis_number(field[2], v->finished);
    v->relevant = redis_number(field[3], v->relevant);
    v->failed = redis_number(field[4], v->failed);
    v->cents = redis_number(field[5], v->cents);
    v->owed = field[6]->type == REDIS_STRING;
    v->workers = count_workers(replies[1], id.qid);
    if (v->counted == v->failed)
        return 0;
    err = run_count_unjudged(t, r->redis, r->sql, id, false, v->failed, &v->unjudged);
    if (!err)
        v->counted = v->failed;
    return err;
}

/* From MySQL; while that is away, from Redis. */
static int read_row(struct task *t, const struct runs *r, struct run_id id, struct run_row *row,
                    bool *away)
{
    int err = run_row_find(t, r->sql, id, row);
    if (!err && row->archived)
        err = run_count_unjudged(t, r->redis, r->sql, id, true, row->failed, &row->unjudged);
    *away = err_may_pass(err) && cache_trusts_redis(r->cache);
    return *away ? run_row_away(t, r->redis, id, row) : err;
}

int run_view(struct task *t, const struct runs *r, struct run_id id, struct run_view *out)
{
    struct run_row row;
    bool away;
    int err = read_row(t, r, id, &row, &away);
    if (err)
        return err;
    struct run_view v = run_row_view(t, &row), live = v;
    if (row.archived) /* the row has it all; what Redis has may be gone, or older */
        err = ERR_NOT_FOUND;
    else
        err = cache_trusts_redis(r->cache) ? run_progress(t, r, id, &live) : ERR_UNAVAILABLE;
    bool degraded = away || (err && err != ERR_NOT_FOUND);
    /* The row decides: its version may not have reached Redis. But DONE is in Redis first, and so
     * is what the row is owed. */
    if (!err) {
        enum run_state state = live.state == RUN_DONE || live.owed ? live.state : v.state;
        live.reason = v.reason;
        v = live;
        v.state = state;
    }
    *out = v;
    out->degraded = degraded;
    return 0;
}

int run_distillations(struct task *t, const struct runs *r, struct run_id id, struct str **ids,
                      size_t *count)
{
    struct sql_rows rows;
    int err = sql_call(t, r->sql, &rows,
                       "SELECT query_id FROM distillation JOIN query_log USING (query_id)"
                       " WHERE distillation.original_query_id = ? AND uid = ?"
                       " ORDER BY created_at DESC, query_id LIMIT ?",
                       sql_text(id.qid), sql_int(id.uid), sql_int(RUN_DISTILLATIONS_MAX));
    if (err)
        return err;
    *ids = ARENA_ARRAY(task_arena(t), struct str, rows.count + 1);
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        (*ids)[i] = sql_row(&rows, i)[0].s;
    return 0;
}
