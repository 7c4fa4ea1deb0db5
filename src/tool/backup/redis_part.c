/* What Redis alone knows and a restore wants: redis.json.
 *
 * {"counters": [{"api": 1, "period": "month", "value": "1793491200 1234"}],
 *  "aside": [{"uid": 7, "records": ["<hex>"]}]}
 *
 * Counters are those of the caps of AI keys: without them a month's cap could be spent twice. They
 * name their period, so old ones count for nothing. Records aside are evidence only. */
#include "base/json.h"
#include "engine/store/keys.h"
#include "tool/backup/take.h"

#define BATCH_USERS 1000

static const char *const periods[] = {"minute", "day", "month"};
#define PERIODS (sizeof periods / sizeof *periods)

/* --- writing --- */

static int put_counters(struct task *t, struct db *d, struct json_writer *w)
{
    struct sql_rows keys;
    const struct redis_reply *const *replies = NULL;
    struct redis_batch b;
    int err = sql_call(t, d->sql, &keys, "SELECT api_index FROM api_list ORDER BY api_index");
    if (err)
        return err;
    redis_batch_init(&b, t, d->redis);
    for (size_t i = 0; i < keys.count * PERIODS; i++) {
        struct str key =
            key_api_limit(task_arena(t), keys.cells[i / PERIODS].i, periods[i % PERIODS]);
        redis_batch_add(&b, key, STR("GET"), key);
    }
    if (keys.count)
        err = redis_batch_run(&b, &replies);
    for (size_t i = 0; !err && i < keys.count * PERIODS; i++) {
        if (replies[i]->type != REDIS_STRING)
            continue;
        jw_object(w);
        jw_put_int(w, "api", keys.cells[i / PERIODS].i);
        jw_put_str(w, "period", str_of(periods[i % PERIODS]));
        jw_put_str(w, "value", replies[i]->str);
        jw_end_object(w);
    }
    return err;
}

static void put_records(struct arena *a, struct json_writer *w, int64_t uid,
                        const struct redis_reply *r)
{
    if (r->type != REDIS_ARRAY || r->count == 0)
        return;
    jw_object(w);
    jw_put_int(w, "uid", uid);
    jw_put_array(w, "records");
    for (size_t i = 0; i < r->count; i++) {
        struct str s = r->items[i]->str;
        char *hex = arena_alloc(a, 2 * s.n + 1);
        hex_write((const uint8_t *)s.p, s.n, hex);
        jw_str(w, str_of(hex));
    }
    jw_end_array(w);
    jw_end_object(w);
}

/* Of the users after *last. */
static int put_aside(struct task *t, struct db *d, struct json_writer *w, int64_t *last, bool *more)
{
    struct sql_rows users;
    const struct redis_reply *const *replies = NULL;
    struct redis_batch b;
    int err =
        sql_call(t, d->sql, &users, "SELECT uid FROM user_info WHERE uid > ? ORDER BY uid LIMIT ?",
                 sql_int(*last), sql_int(BATCH_USERS));
    *more = !err && users.count > 0;
    if (!*more)
        return err;
    redis_batch_init(&b, t, d->redis);
    for (size_t i = 0; i < users.count; i++) {
        struct str key = key_aside(task_arena(t), users.cells[i].i);
        redis_batch_add(&b, key, STR("LRANGE"), key, STR("0"), STR("-1"));
    }
    err = redis_batch_run(&b, &replies);
    for (size_t i = 0; !err && i < users.count; i++)
        put_records(task_arena(t), w, users.cells[i].i, replies[i]);
    *last = users.cells[users.count - 1].i;
    return err;
}

int backup_redis_text(struct task *t, struct db *d, struct str *out)
{
    struct buf text;
    struct json_writer w;
    int64_t last = 0;
    jw_begin(&w, &text);
    jw_put_array(&w, "counters");
    int err = put_counters(t, d, &w);
    jw_end_array(&w);
    jw_put_array(&w, "aside");
    for (bool more = !err; !err && more;) {
        struct task_scope scope = task_scope(t);
        err = put_aside(t, d, &w, &last, &more);
        task_scope_end(t, scope);
    }
    jw_end_array(&w);
    *out = jw_finish(&w, task_arena(t));
    return err;
}

/* --- reading --- */

static int put_counter(struct task *t, struct redis *r, const struct json *j)
{
    struct str period = json_str(json_get(j, "period")), value = json_str(json_get(j, "value"));
    int64_t api;
    if (!json_int(json_get(j, "api"), &api) || !value.p)
        return task_fail(t, ERR_INVALID, BACKUP_REDIS ": a counter is incomplete");
    for (size_t i = 0; i < PERIODS; i++) {
        struct str key = key_api_limit(task_arena(t), api, periods[i]);
        if (period.p && str_eq(period, str_of(periods[i])))
            return redis_call(t, r, key, NULL, STR("SET"), key, value);
    }
    return task_fail(t, ERR_INVALID, BACKUP_REDIS ": a counter has no period");
}

int backup_redis_put(struct task *t, struct redis *r, struct str text, struct backup_kept *out)
{
    const struct json *j;
    int err = json_parse(task_arena(t), text, &j, NULL);
    if (err)
        return task_fail(t, err, BACKUP_REDIS " is no JSON");
    *out = (struct backup_kept){0};
    json_each (it, json_get(j, "counters")) {
        if (!err)
            err = put_counter(t, r, it);
        out->counters++;
    }
    json_each (it, json_get(j, "aside")) {
        const struct json *records = json_get(it, "records");
        out->users++;
        out->aside += records ? records->count : 0;
    }
    return err;
}
