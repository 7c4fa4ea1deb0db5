#include "engine/runs/history.h"

#include "engine/runs/live.h"
#include "engine/store/keys.h"

#define LOADED_AT_ONCE  1000
#define AWAY_FAILED_MAX 500 /* two calls to Redis for each run */

/* A place in the order: by time, then id, both from above. */
struct place {
    int64_t created_ms;
    struct str query_id;
};

/* --- cursors: "<ms>.<query id>" --- */

static struct str cursor_of(struct arena *a, struct place p)
{
    return str_printf(a, "%lld.%.*s", (long long)p.created_ms, STR_ARG(p.query_id));
}

static bool read_cursor(struct str cursor, struct place *out)
{
    struct str rest = cursor;
    struct place p;
    if (cursor.n > 128 || !str_to_i64(str_cut(&rest, '.'), &p.created_ms) || p.created_ms < 0 ||
        !rest.p || rest.n == 0)
        return false;
    p.query_id = rest;
    *out = p;
    return true;
}

static bool comes_after(struct place p, struct place cursor)
{
    if (p.created_ms != cursor.created_ms)
        return p.created_ms < cursor.created_ms;
    return str_compare(p.query_id, cursor.query_id) < 0;
}

/* --- the sorted set --- */

static int add_rows(struct task *t, const struct history *h, struct str key,
                    const struct sql_rows *r)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, h->redis);
    for (size_t i = 0; i < r->count; i++)
        redis_batch_add(&b, key, STR("ZADD"), key, str_int(task_arena(t), sql_row(r, i)[1].i),
                        sql_row(r, i)[0].s);
    int err = redis_batch_run(&b, &replies);
    for (size_t i = 0; !err && i < r->count; i++)
        err = redis_verdict(t, replies[i], NULL);
    return err;
}

#define CREATED_MS "CAST(UNIX_TIMESTAMP(created_at) * 1000 AS SIGNED)"

static int fill(struct task *t, const struct history *h, int64_t uid, struct str key)
{
    struct str after = STR("");
    int err = 0;
    for (bool last = false; !err && !last;) {
        struct sql_rows r;
        err = sql_call(t, h->sql, &r,
                       "SELECT query_id, " CREATED_MS " FROM query_log"
                       " WHERE uid = ? AND query_id > ? ORDER BY query_id LIMIT 1000",
                       sql_int(uid), sql_text(after));
        if (err)
            return err;
        last = r.count < LOADED_AT_ONCE;
        if (r.count)
            after = sql_row(&r, r.count - 1)[0].s;
        err = add_rows(t, h, key, &r);
    }
    if (!err) /* only now: Redis may have refused some of them */
        err = redis_call(t, h->redis, key, NULL, STR("ZADD"), key, STR("-1"), STR(HISTORY_WHOLE));
    return err;
}

/* One more than asked for, so that it is known whether there is a next page. Those of the cursor's
 * own millisecond come again and are skipped. */
static int read_set(struct task *t, const struct history *h, struct str key,
                    const struct place *from, int64_t limit, struct place *out, size_t *count,
                    bool *whole)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    int64_t offset = 0;
    *count = 0;
    for (;;) {
        redis_batch_init(&b, t, h->redis);
        redis_batch_add(&b, key, STR("ZSCORE"), key, STR(HISTORY_WHOLE));
        redis_batch_add(&b, key, STR("ZREVRANGEBYSCORE"), key,
                        from ? str_int(task_arena(t), from->created_ms) : STR("+inf"), STR("0"),
                        STR("WITHSCORES"), STR("LIMIT"), str_int(task_arena(t), offset),
                        str_int(task_arena(t), limit + 1));
        int err = redis_batch_run(&b, &replies);
        if (err)
            return err;
        *whole = replies[0]->type == REDIS_STRING && replies[1]->type == REDIS_ARRAY;
        if (replies[1]->type != REDIS_ARRAY)
            return 0;
        for (size_t i = 0; i + 1 < replies[1]->count && (int64_t)*count <= limit; i += 2) {
            struct place p = {.query_id = replies[1]->items[i]->str};
            if (str_to_i64(replies[1]->items[i + 1]->str, &p.created_ms) &&
                (!from || comes_after(p, *from)))
                out[(*count)++] = p;
        }
        if ((int64_t)*count > limit || (int64_t)replies[1]->count / 2 <= limit)
            return 0;
        offset += limit + 1;
    }
}

/* --- the rows --- */

static int take_rows(struct task *t, const struct sql_rows *r, int64_t limit,
                     struct history_page *out)
{
    size_t count = r->count > (size_t)limit ? (size_t)limit : r->count;
    out->runs = ARENA_ARRAY(task_arena(t), struct run_row, count);
    out->count = count;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++)
        err = run_row_read(t, sql_row(r, i), &out->runs[i]);
    if (!err && r->count > count) {
        const struct run_row *last = &out->runs[count - 1];
        out->next = cursor_of(task_arena(t), (struct place){last->created_ms, last->qid});
    }
    return err;
}

/* Rows of the ids that Redis named. */
static int read_named(struct task *t, const struct history *h, int64_t uid,
                      const struct place *places, size_t count, int64_t limit,
                      struct history_page *out)
{
    struct arena *a = task_arena(t);
    struct sql_value *args = ARENA_ARRAY(a, struct sql_value, count + 1);
    struct buf query;
    buf_init(&query);
    buf_add_lit(&query,
                "SELECT " RUN_ROW_COLUMNS " FROM query_log WHERE uid = ? AND query_id IN (");
    args[0] = sql_int(uid);
    for (size_t i = 0; i < count; i++) {
        args[i + 1] = sql_text(places[i].query_id);
        buf_add(&query, "?,", i + 1 < count ? 2 : 1);
    }
    buf_add_lit(&query, ") ORDER BY created_at DESC, query_id DESC");
    struct sql_rows r = {.count = 0};
    int err = count == 0 ? 0 : sql_argv(t, h->sql, str_z(a, buf_str(&query)), count + 1, args, &r);
    buf_release(&query);
    return err ? err : take_rows(t, &r, limit, out);
}

static int read_mysql(struct task *t, const struct history *h, int64_t uid,
                      const struct place *from, int64_t limit, struct history_page *out)
{
    struct sql_rows r;
    static const char all[] = "SELECT " RUN_ROW_COLUMNS " FROM query_log WHERE uid = ?"
                              " ORDER BY created_at DESC, query_id DESC LIMIT ?";
    static const char rest[] =
        "SELECT " RUN_ROW_COLUMNS
        " FROM query_log WHERE uid = ? AND (created_at < FROM_UNIXTIME(? / 1000)"
        " OR (created_at = FROM_UNIXTIME(? / 1000) AND query_id < ?))"
        " ORDER BY created_at DESC, query_id DESC LIMIT ?";
    int err =
        from ? sql_call(t, h->sql, &r, rest, sql_int(uid), sql_int(from->created_ms),
                        sql_int(from->created_ms), sql_text(from->query_id), sql_int(limit + 1))
             : sql_call(t, h->sql, &r, all, sql_int(uid), sql_int(limit + 1));
    return err ? err : take_rows(t, &r, limit, out);
}

static int read_redis(struct task *t, const struct history *h, int64_t uid,
                      const struct place *from, int64_t limit, struct history_page *out)
{
    struct str key = key_history(task_arena(t), uid);
    struct place *places = ARENA_ARRAY(task_arena(t), struct place, (size_t)limit + 1);
    size_t count;
    bool whole;
    int err = read_set(t, h, key, from, limit, places, &count, &whole);
    if (!err && !whole) {
        err = fill(t, h, uid, key);
        if (!err)
            err = read_set(t, h, key, from, limit, places, &count, &whole);
    }
    if (!err && !whole) /* it was dropped again meanwhile */
        return ERR_UNAVAILABLE;
    return err ? err : read_named(t, h, uid, places, count, limit, out);
}

/* While MySQL is away: those of the runs that Redis still has. */
static int read_away(struct task *t, const struct history *h, int64_t uid, const struct place *from,
                     int64_t limit, struct history_page *out)
{
    struct arena *a = task_arena(t);
    struct place *places = ARENA_ARRAY(a, struct place, (size_t)limit + 1);
    struct str *qids = ARENA_ARRAY(a, struct str, (size_t)limit + 1);
    size_t named;
    bool whole;
    int err = read_set(t, h, key_history(a, uid), from, limit, places, &named, &whole);
    if (err)
        return err;
    size_t shown = named > (size_t)limit ? (size_t)limit : named;
    for (size_t i = 0; i < shown; i++)
        qids[i] = places[i].query_id;
    out->runs = ARENA_ARRAY(a, struct run_row, shown);
    err = run_rows_away(t, h->redis, uid, qids, shown, out->runs, &out->count);
    if (!err && out->count == 0 && (shown > 0 || !whole))
        err = task_fail(t, ERR_UNAVAILABLE,
                        "MySQL does not answer, and Redis does not have these runs any more");
    if (!err && named > shown)
        out->next = cursor_of(a, places[shown - 1]);
    return err;
}

/* away: which runs are archived is not known, and Redis is asked about one after the other. Of
 * those that have ended only the cheap ones are counted, so that the page is answered in time
 * (BIL-8); the others show all their failures as such until MySQL is back. */
static int count_unjudged(struct task *t, const struct history *h, bool away,
                          struct history_page *page)
{
    int err = 0;
    for (size_t i = 0; !err && i < page->count; i++) {
        struct run_row *row = &page->runs[i];
        if (away && run_state_final(row->state) && row->failed > AWAY_FAILED_MAX)
            continue;
        err = run_count_unjudged(t, h->redis, h->sql, (struct run_id){row->uid, row->qid},
                                 row->archived, row->failed, &row->unjudged);
    }
    return err;
}

int history_list(struct task *t, const struct history *h, int64_t uid, struct str cursor,
                 int64_t limit, struct history_page *out)
{
    check(limit > 0 && limit <= HISTORY_LIMIT_MAX);
    struct place from;
    *out = (struct history_page){.count = 0};
    if (cursor.p && !read_cursor(cursor, &from))
        return task_fail(t, ERR_INVALID, "not a cursor that we gave");
    const struct place *start = cursor.p ? &from : NULL;
    int err =
        cache_trusts_redis(h->cache) ? read_redis(t, h, uid, start, limit, out) : ERR_UNAVAILABLE;
    if (!err)
        err = run_live(t, h->redis, out->runs, out->count);
    if (!err)
        err = count_unjudged(t, h, false, out);
    if (!err_may_pass(err))
        return err;
    *out = (struct history_page){.degraded = true};
    err = read_mysql(t, h, uid, start, limit, out);
    if (!err_may_pass(err) || !cache_trusts_redis(h->cache))
        return err;
    err = read_away(t, h, uid, start, limit, out);
    return err ? err : count_unjudged(t, h, true, out);
}
