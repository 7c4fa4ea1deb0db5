/* Who watches, and what is noted. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "engine/store/keys.h"
#include "engine/watch/alerts_private.h"

#define LEASE_MS 10000
#define RENEW_MS 3000
#define WATCH    "alerts.watch"
#define EPISODES "alerts.episodes"

/* --- the lease in MySQL --- */

/* *ours: it is. The clock is that of MySQL. */
static int take_lease(struct task *t, struct alerts *a, bool *ours)
{
    const struct node *n = a->options.node;
    struct str who = str_printf(task_arena(t), "\"%016" PRIx64 "\"", n->incarnation);
    struct sql_rows r;
    int err =
        sql_call(t, n->sql, &r,
                 "UPDATE setting SET value = ?, version = version + 1,"
                 " changed_at = UTC_TIMESTAMP(3) WHERE name = ? AND"
                 " (JSON_UNQUOTE(value) = JSON_UNQUOTE(?)"
                 " OR changed_at < UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND)",
                 sql_text(who), sql_text(STR(WATCH)), sql_text(who), sql_int(LEASE_MS * 1000));
    if (!err && r.affected == 0)
        err = sql_call(t, n->sql, &r,
                       "INSERT IGNORE INTO setting (name, value, version, changed_at)"
                       " VALUES (?, ?, 0, UTC_TIMESTAMP(3))",
                       sql_text(STR(WATCH)), sql_text(who));
    if (!err)
        *ours = r.affected == 1;
    return err;
}

void alerts_part(struct task *t, struct alerts *a)
{
    if (!a->watching)
        return;
    a->watching = false;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    if (a->locked)
        lock_drop(t, &a->lock);
    a->locked = false;
    if (sql_call(t, a->options.node->sql, NULL,
                 "UPDATE setting SET changed_at = '2000-01-01' WHERE name = ?",
                 sql_text(STR(WATCH))))
        log_debug("alert", "others have to wait: %s", task_error(t));
    task_deadline_restore(t, old);
}

/* --- without MySQL --- */

static int take_lock(struct task *t, struct alerts *a)
{
    if (a->locked) {
        int err = lock_keep(t, &a->lock, 2 * LEASE_MS);
        a->locked = err != ERR_CONFLICT;
        return err;
    }
    int err = lock_take(t, a->options.node->redis, key_alerts_lock, 2 * LEASE_MS, &a->lock);
    a->locked = !err;
    return err;
}

/* Who watched goes on, also if Redis is away, too. Others wait until its lease would have ended. */
static void without_mysql(struct task *t, struct alerts *a, int64_t now_ms)
{
    if (a->blind_ms < 0)
        a->blind_ms = now_ms;
    if (!a->watching && now_ms - a->blind_ms < LEASE_MS)
        return;
    int err = take_lock(t, a);
    if (!err)
        a->watching = true;
    else if (err == ERR_BUSY || err == ERR_CONFLICT)
        a->watching = false;
}

void alerts_take_role(struct task *t, struct alerts *a)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    bool ours = a->watching;
    if (a->blind_ms < 0 && a->taken_ms >= 0 && now_ms - a->taken_ms < RENEW_MS)
        return;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int err = take_lease(t, a, &ours);
    task_deadline_restore(t, old);
    old = task_deadline(t, ALERTS_STORE_MS);
    if (err) {
        without_mysql(t, a, now_ms);
    } else {
        a->blind_ms = -1;
        a->taken_ms = now_ms;
        a->watching = ours;
        if (a->locked)
            lock_drop(t, &a->lock);
        a->locked = false;
    }
    task_deadline_restore(t, old);
}

/* --- what is noted --- */

static struct str episodes_json(struct task *t, const struct alerts *a)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    jw_put_int(&w, "changes", a->changes);
    jw_key(&w, STR("episodes"));
    jw_array(&w);
    for (size_t i = 0; i < a->count; i++) {
        const struct episode *e = &a->list[i];
        jw_object(&w);
        jw_put_str(&w, "name", str_of(e->name));
        jw_put_str(&w, "text", str_of(e->text));
        jw_put_int(&w, "since", e->since_ms);
        jw_put_bool(&w, "told", e->told);
        jw_put_bool(&w, "over", e->over);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_end_object(&w);
    struct str json = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return json;
}

bool alerts_save(struct task *t, struct alerts *a)
{
    const struct node *n = a->options.node;
    struct str json = episodes_json(t, a);
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int mysql = sql_call(t, n->sql, NULL,
                         "INSERT INTO setting (name, value, version, changed_at)"
                         " VALUES (?, ?, 0, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE"
                         " value = VALUES(value), version = version + 1,"
                         " changed_at = VALUES(changed_at)",
                         sql_text(STR(EPISODES)), sql_text(json));
    task_deadline_restore(t, old);
    old = task_deadline(t, ALERTS_STORE_MS);
    int redis = redis_call(t, n->redis, key_alerts, NULL, STR("SET"), key_alerts, json);
    task_deadline_restore(t, old);
    return !mysql && !redis;
}

/* --- and read again --- */

static int64_t changes_of(const struct json *j)
{
    int64_t v = -1;
    (void)json_int(json_get(j, "changes"), &v);
    return v;
}

static const struct json *parsed(struct task *t, struct str text)
{
    const struct json *j;
    return text.p && !json_parse(task_arena(t), text, &j, NULL) ? j : NULL;
}

static int note_in_mysql(struct task *t, const struct node *n, const struct json **out)
{
    struct sql_rows r;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int err = sql_call(t, n->sql, &r, "SELECT value FROM setting WHERE name = ?",
                       sql_text(STR(EPISODES)));
    task_deadline_restore(t, old);
    if (!err)
        *out = r.count ? parsed(t, r.cells[0].s) : NULL;
    return err;
}

static int note_in_redis(struct task *t, const struct node *n, const struct json **out)
{
    const struct redis_reply *r;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int err = redis_call(t, n->redis, key_alerts, &r, STR("GET"), key_alerts);
    task_deadline_restore(t, old);
    if (!err)
        *out = r->type == REDIS_STRING ? parsed(t, r->str) : NULL;
    return err;
}

static void read_episode(const struct json *j, struct episode *e)
{
    *e = (struct episode){.told = false};
    snprintf(e->name, sizeof e->name, "%.*s", STR_ARG(json_str(json_get(j, "name"))));
    snprintf(e->text, sizeof e->text, "%.*s", STR_ARG(json_str(json_get(j, "text"))));
    (void)json_int(json_get(j, "since"), &e->since_ms);
    (void)json_bool(json_get(j, "told"), &e->told);
    (void)json_bool(json_get(j, "over"), &e->over);
}

int alerts_load(struct task *t, struct alerts *a)
{
    const struct json *mysql = NULL, *redis = NULL;
    int err = note_in_mysql(t, a->options.node, &mysql);
    if (note_in_redis(t, a->options.node, &redis) && err)
        return err;
    const struct json *j = changes_of(redis) > changes_of(mysql) ? redis : mysql;
    a->changes = changes_of(j) < 0 ? 0 : changes_of(j);
    a->count = 0;
    json_each (e, json_get(j, "episodes"))
        if (a->count < ALERTS_MAX)
            read_episode(e, &a->list[a->count++]);
    return 0;
}

int alerts_list(struct task *t, const struct node *n, struct arena *a, struct overview_alert **out,
                size_t *count)
{
    const struct json *j = NULL;
    int err = note_in_redis(t, n, &j);
    if (err || !j)
        err = note_in_mysql(t, n, &j);
    if (err)
        return err;
    struct overview_alert *all = ARENA_ARRAY(a, struct overview_alert, ALERTS_MAX);
    size_t found = 0;
    json_each (e, json_get(j, "episodes")) {
        struct episode x;
        read_episode(e, &x);
        if (x.over || found == ALERTS_MAX)
            continue;
        all[found++] = (struct overview_alert){str_dup(a, str_of(x.name)),
                                               str_dup(a, str_of(x.text)), x.since_ms};
    }
    *out = all;
    *count = found;
    return 0;
}
