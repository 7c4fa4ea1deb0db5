/* What is noted of the episodes, in both stores. Notes are numbered, and the newest that can be
 * read counts. In MySQL a note replaces older ones only (compare-and-swap by its number, which is
 * the version of the setting): of two nodes that note something at the same time one has to read
 * again. */
#include <stdio.h>

#include "base/json.h"
#include "engine/store/keys.h"
#include "engine/watch/alerts_private.h"

#define EPISODES STR("alerts.episodes")

/* --- writing --- */

static struct str episodes_json(struct task *t, const struct alerts *a)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_int(&w, "changes", a->changes);
    jw_put_array(&w, "episodes");
    for (size_t i = 0; i < a->count; i++) {
        const struct episode *e = &a->list[i];
        jw_object(&w);
        jw_put_str(&w, "name", str_of(e->name));
        jw_put_str(&w, "text", str_of(e->text));
        jw_put_int(&w, "since", e->since_ms);
        jw_put_bool(&w, "told", e->told);
        jw_put_bool(&w, "unsure", e->unsure);
        jw_put_bool(&w, "over", e->over);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    return jw_finish(&w, task_arena(t));
}

static int save_in_mysql(struct task *t, struct alerts *a, struct str json)
{
    struct sql_pool *sql = a->options.node->sql;
    struct sql_rows r;
    int err =
        sql_call(t, sql, &r,
                 "UPDATE setting SET value = ?, version = ?, changed_at = UTC_TIMESTAMP(3)"
                 " WHERE name = ? AND version < ?",
                 sql_text(json), sql_int(a->changes), sql_text(EPISODES), sql_int(a->changes));
    if (!err && r.affected == 0)
        err = sql_call(t, sql, &r,
                       "INSERT IGNORE INTO setting (name, value, version, changed_at)"
                       " VALUES (?, ?, ?, UTC_TIMESTAMP(3))",
                       sql_text(EPISODES), sql_text(json), sql_int(a->changes));
    return err || r.affected == 1 ? err : ERR_CONFLICT;
}

static int tell_mysql(struct task *t, struct alerts *a, struct str json)
{
    if (a->in_mysql >= a->changes)
        return 0;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int err = save_in_mysql(t, a, json);
    task_deadline_restore(t, old);
    a->outdated = err == ERR_CONFLICT;
    if (err)
        return err;
    a->in_mysql = a->changes;
    for (size_t i = 0; i < a->count; i++)
        a->list[i].kept = a->list[i].told || a->list[i].unsure;
    return 0;
}

static void tell_redis(struct task *t, struct alerts *a, struct str json)
{
    if (a->in_redis >= a->changes)
        return;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    if (!redis_call(t, a->options.node->redis, key_alerts, NULL, STR("SET"), key_alerts, json))
        a->in_redis = a->changes;
    task_deadline_restore(t, old);
}

/* A MySQL that is away may take seconds to say so, and a node that takes over meanwhile must find
 * what was sent: then Redis comes first. */
int alerts_save(struct task *t, struct alerts *a)
{
    struct str json = episodes_json(t, a);
    if (a->mysql_away)
        tell_redis(t, a, json);
    if (tell_mysql(t, a, json) == ERR_CONFLICT)
        return ERR_CONFLICT;
    tell_redis(t, a, json);
    return 0;
}

/* --- reading --- */

struct note {
    const struct json *json; /* NULL: none */
    int64_t number;          /* -1: none */
};

static struct note parsed(struct task *t, struct str text)
{
    struct note n = {NULL, -1};
    if (!text.p || json_parse(task_arena(t), text, &n.json, NULL))
        return (struct note){NULL, -1};
    (void)json_int(json_get(n.json, "changes"), &n.number);
    return n;
}

static int note_in_mysql(struct task *t, const struct node *n, struct note *out)
{
    struct sql_rows r;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int err = sql_call(t, n->sql, &r, "SELECT value, version FROM setting WHERE name = ?",
                       sql_text(EPISODES));
    task_deadline_restore(t, old);
    if (err)
        return err;
    *out = parsed(t, r.count ? r.cells[0].s : STR_NULL);
    if (r.count && out->number < r.cells[1].i)
        out->number = r.cells[1].i; /* no note with a lower number could replace it */
    return 0;
}

static int note_in_redis(struct task *t, const struct node *n, struct note *out)
{
    const struct redis_reply *r;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int err = redis_call(t, n->redis, key_alerts, &r, STR("GET"), key_alerts);
    task_deadline_restore(t, old);
    if (!err)
        *out = parsed(t, r->type == REDIS_STRING ? r->str : STR_NULL);
    return err;
}

static void read_episode(const struct json *j, struct episode *e)
{
    *e = (struct episode){.told = false};
    snprintf(e->name, sizeof e->name, "%.*s", STR_ARG(json_str(json_get(j, "name"))));
    snprintf(e->text, sizeof e->text, "%.*s", STR_ARG(json_str(json_get(j, "text"))));
    (void)json_int(json_get(j, "since"), &e->since_ms);
    (void)json_bool(json_get(j, "told"), &e->told);
    (void)json_bool(json_get(j, "unsure"), &e->unsure);
    (void)json_bool(json_get(j, "over"), &e->over);
}

/* What this node has told, and could not note: the other one took it for unheard, and has forgotten
 * it without a message. Such a list is a change of its own. */
static void keep_told(struct alerts *a, const struct episode *known, size_t count)
{
    size_t before = a->count;
    for (size_t i = 0; i < count; i++)
        if ((known[i].told || known[i].unsure) && !known[i].kept &&
            !alerts_find(a, known[i].name) && a->count < ALERTS_MAX)
            a->list[a->count++] = known[i];
    a->changes += a->count > before;
}

/* When to try again is not noted: it is kept where the episode is known already. So is a receipt
 * that could not be noted: without it the end of the episode would not be told. */
static void adopt(struct task *t, struct alerts *a, const struct note *n, bool of_mysql)
{
    size_t known_count = a->count;
    struct episode *known = ARENA_ARRAY(task_arena(t), struct episode, ALERTS_MAX);
    memcpy(known, a->list, known_count * sizeof *known);
    a->count = 0;
    a->changes = n->number;
    json_each (j, json_get(n->json, "episodes")) {
        if (a->count == ALERTS_MAX)
            break;
        struct episode *e = &a->list[a->count++];
        read_episode(j, e);
        e->kept = of_mysql && (e->told || e->unsure);
        for (size_t i = 0; i < known_count; i++) {
            if (strcmp(known[i].name, e->name) != 0)
                continue;
            if (known[i].since_ms == e->since_ms) {
                e->told |= known[i].told;
                e->unsure |= known[i].unsure;
            }
            if (known[i].over == e->over) {
                e->again_ms = known[i].again_ms;
                e->pause_ms = known[i].pause_ms;
            }
        }
    }
    keep_told(a, known, known_count);
}

int alerts_load(struct task *t, struct alerts *a)
{
    struct note mysql = {NULL, -1}, redis = {NULL, -1};
    int err = note_in_mysql(t, a->options.node, &mysql);
    int redis_err = note_in_redis(t, a->options.node, &redis);
    if (err && redis_err)
        return err;
    const struct note *newest = redis.number > mysql.number ? &redis : &mysql;
    if (newest->number > a->changes || a->outdated)
        adopt(t, a, newest, newest == &mysql);
    a->outdated = false;
    a->in_mysql = mysql.number;
    a->in_redis = redis.number;
    return 0;
}

int alerts_list(struct task *t, const struct node *n, struct arena *a, struct overview_alert **out,
                size_t *count)
{
    struct note note = {NULL, -1};
    int err = note_in_redis(t, n, &note);
    if (err || !note.json)
        err = note_in_mysql(t, n, &note);
    if (err)
        return err;
    struct overview_alert *all = ARENA_ARRAY(a, struct overview_alert, ALERTS_MAX);
    size_t found = 0;
    json_each (e, json_get(note.json, "episodes")) {
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
