/* Asks the stores. Each has a deadline of its own, so that one that hangs does not hide the
 * other. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "engine/ai/service.h"
#include "engine/money/ledger.h"
#include "engine/runs/run.h"
#include "engine/setup/config.h"
#include "engine/setup/store_check.h"
#include "engine/store/keys.h"
#include "engine/watch/alerts.h"
#include "engine/watch/overview_private.h"

#define STORE_MS     2000
#define SLOW_EACH_MS 5000
#define WORKS_MAX    1000 /* more are not shown */
#define FAULTS_MAX   32   /* kinds, of all services */

struct collecting {
    struct overview *overview;
    struct arena *arena;
    struct overview_data *data;
};

/* --- replies --- */

/* "used_memory:123\r\n" */
static int64_t info_number(struct str info, const char *name)
{
    int64_t v = 0;
    while (info.p) {
        struct str line = str_cut(&info, '\n'), value = line, key = str_cut(&value, ':');
        if (value.p && str_eq(key, str_of(name)))
            (void)str_to_i64(str_cut(&value, '\r'), &v);
    }
    return v;
}

static int64_t json_number(const struct json *j, const char *name)
{
    int64_t v = 0;
    (void)json_int(json_get(j, name), &v);
    return v;
}

static struct str json_text(struct arena *a, const struct json *j, const char *name)
{
    struct str s = json_str(json_get(j, name));
    return str_dup(a, s.p ? s : STR(""));
}

/* --- nodes and their workers --- */

static void read_works(struct collecting *c, struct str node, const struct json *runs)
{
    struct overview_data *d = c->data;
    json_each (run, runs) {
        struct run_id id;
        int64_t workers = 0;
        struct str name = str_dup(c->arena, run->key);
        if (d->work_count == WORKS_MAX || !json_int(run, &workers) || workers == 0 ||
            !run_name_read(name, &id))
            continue;
        d->works[d->work_count++] = (struct overview_work){node, id.uid, id.qid, workers};
    }
}

/* Sums of all nodes, by service and kind, with the words of the last one. A node of a version
 * before names no service: there was one. */
static void read_faults(struct collecting *c, const struct json *list)
{
    struct overview_data *d = c->data;
    json_each (fault, list) {
        struct str kind = json_str(json_get(fault, "kind"));
        struct str service = json_str(json_get(fault, "service"));
        if (!service.p)
            service = STR(AI_CHAT);
        size_t i = 0;
        while (i < d->fault_count &&
               !(str_eq(d->faults[i].kind, kind) && str_eq(d->faults[i].service, service)))
            i++;
        if (kind.n == 0 || i == FAULTS_MAX)
            continue;
        struct overview_fault *f = &d->faults[i];
        int64_t at_ms = json_number(fault, "at_ms");
        if (i == d->fault_count) {
            *f = (struct overview_fault){.service = str_dup(c->arena, service),
                                         .kind = str_dup(c->arena, kind)};
            d->fault_count++;
        }
        f->count += json_number(fault, "count");
        if (at_ms >= f->at_ms)
            f->words = json_text(c->arena, fault, "words");
        f->at_ms = at_ms > f->at_ms ? at_ms : f->at_ms;
    }
}

static bool read_node(struct task *t, struct collecting *c, struct str said,
                      struct overview_node *out)
{
    const struct json *j;
    struct arena *a = c->arena;
    if (json_parse(task_arena(t), said, &j, NULL))
        return false;
    *out = (struct overview_node){.id = json_text(a, j, "id"),
                                  .name = json_text(a, j, "name"),
                                  .prompt = json_text(a, j, "prompt"),
                                  .workers = json_number(j, "workers"),
                                  .latency_us = json_number(j, "latency_us"),
                                  .tokens = json_number(j, "tokens"),
                                  .resident_bytes = json_number(j, "resident_bytes"),
                                  .late_us = json_number(j, "late_us"),
                                  .tasks = json_number(j, "tasks")};
    (void)json_bool(json_get(j, "takes"), &out->takes);
    (void)json_bool(json_get(j, "drained"), &out->drained);
    read_works(c, out->id, json_get(j, "runs"));
    read_faults(c, json_get(j, "faults"));
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct overview_node *x = a, *y = b;
    int order = strcmp(x->id.p, y->id.p);
    return order ? order : strcmp(x->name.p, y->name.p);
}

/* alive: incarnation, when, …; info: incarnation, what it says, … */
static void read_nodes(struct task *t, struct collecting *c, const struct redis_reply *alive,
                       const struct redis_reply *info, int64_t now_ms)
{
    struct overview_data *d = c->data;
    if (alive->type != REDIS_ARRAY || info->type != REDIS_ARRAY)
        return;
    d->nodes = ARENA_ARRAY(c->arena, struct overview_node, alive->count / 2 + 1);
    d->works = ARENA_ARRAY(c->arena, struct overview_work, WORKS_MAX);
    d->faults = ARENA_ARRAY(c->arena, struct overview_fault, FAULTS_MAX);
    for (size_t i = 0; i + 1 < alive->count; i += 2)
        for (size_t k = 0; k + 1 < info->count; k += 2) {
            struct overview_node *n = &d->nodes[d->node_count];
            if (!str_eq(alive->items[i]->str, info->items[k]->str) ||
                !read_node(t, c, info->items[k + 1]->str, n))
                continue;
            int64_t silent_ms = now_ms - redis_number(alive->items[i + 1], 0);
            n->silent_ms = silent_ms > 0 ? silent_ms : 0;
            d->workers += n->workers;
            d->node_count++;
        }
    qsort(d->nodes, d->node_count, sizeof *d->nodes, by_id);
}

static void read_lost(struct task *t, struct collecting *c, const struct redis_reply *r)
{
    struct overview_data *d = c->data;
    if (r->type != REDIS_ARRAY)
        return;
    d->lost = ARENA_ARRAY(c->arena, struct overview_lost, r->count / 2 + 1);
    for (size_t i = 0; i + 1 < r->count; i += 2) {
        const struct json *j;
        if (json_parse(task_arena(t), r->items[i + 1]->str, &j, NULL))
            continue;
        d->lost[d->lost_count++] =
            (struct overview_lost){.incarnation = str_dup(c->arena, r->items[i]->str),
                                   .id = json_text(c->arena, j, "id"),
                                   .name = json_text(c->arena, j, "name")};
    }
}

/* --- their settings --- */

static void note_settings(const struct store_findings *f, char to[PROBLEM_CHARS])
{
    const char *words = f->unsafe_count ? f->unsafe[0] : f->unread_count ? f->unread[0] : "";
    snprintf(to, PROBLEM_CHARS, "%s", words);
}

static bool is_due(struct task *t, int64_t *asked_ms)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (*asked_ms && now_ms - *asked_ms < SLOW_EACH_MS)
        return false;
    *asked_ms = now_ms;
    return true;
}

/* A private Redis that is told to keep nothing is no finding. */
static int ask_redis_settings(struct task *t, struct collecting *c)
{
    struct overview *o = c->overview;
    const struct config *config = o->node->config;
    struct store_findings f;
    if ((config && !*config->redis_url && !config_persists(config)) ||
        !is_due(t, &o->redis_settings_ms))
        return 0;
    int err = store_check_redis(t, o->node->redis, &f);
    if (!err)
        note_settings(&f, o->redis_settings);
    return err;
}

static int ask_mysql_settings(struct task *t, struct collecting *c)
{
    struct overview *o = c->overview;
    struct store_findings f;
    if (!is_due(t, &o->mysql_settings_ms))
        return 0;
    int err = store_check_mysql(t, o->node->sql, &f);
    if (!err)
        note_settings(&f, o->mysql_settings);
    return err;
}

/* --- Redis --- */

static void read_info(struct overview_data *d, const struct redis_reply *r)
{
    if (r->type != REDIS_STRING)
        return;
    d->redis.memory_bytes = info_number(r->str, "used_memory");
    d->redis.memory_bytes_max = info_number(r->str, "maxmemory");
    d->redis.hits = info_number(r->str, "keyspace_hits");
    d->redis.misses = info_number(r->str, "keyspace_misses");
    d->redis.clients = info_number(r->str, "connected_clients");
}

enum {
    ASK_TIME,
    ASK_INFO,
    ASK_SLOWLOG,
    ASK_QUEUED,
    ASK_HEAD,
    ASK_RUNNING,
    ASK_NODES,
    ASK_NODES_INFO,
    ASK_LOST,
    ASK_DRIFT,
    ASK_AUDITED,
    ASK_DOWNLOADS,
    ASK_DOWNLOADS_TAKEN,
};

/* In the order of the enum. */
static int ask(struct task *t, struct redis *r, const struct redis_reply *const **out)
{
    struct str downloads = key_jobs(task_arena(t), "download");
    struct str taken = key_jobs_part(task_arena(t), "download", "leases");
    struct redis_batch b;
    redis_batch_init(&b, t, r);
    redis_batch_add(&b, STR_NULL, STR("TIME"));
    redis_batch_add(&b, STR_NULL, STR("INFO"));
    redis_batch_add(&b, STR_NULL, STR("SLOWLOG"), STR("LEN"));
    redis_batch_add(&b, key_queue, STR("ZCARD"), key_queue);
    redis_batch_add(&b, key_queue, STR("ZRANGE"), key_queue, STR("0"), STR("0"), STR("WITHSCORES"));
    redis_batch_add(&b, key_running, STR("HLEN"), key_running);
    redis_batch_add(&b, key_nodes, STR("ZRANGE"), key_nodes, STR("0"), STR("-1"),
                    STR("WITHSCORES"));
    redis_batch_add(&b, key_nodes_info, STR("HGETALL"), key_nodes_info);
    redis_batch_add(&b, key_nodes_lost, STR("HGETALL"), key_nodes_lost);
    redis_batch_add(&b, key_drift, STR("GET"), key_drift);
    redis_batch_add(&b, key_audited, STR("GET"), key_audited);
    redis_batch_add(&b, downloads, STR("ZCARD"), downloads);
    redis_batch_add(&b, taken, STR("ZCARD"), taken);
    return redis_batch_run(&b, out);
}

static void read_drift(struct overview_data *d, const struct redis_reply *r)
{
    struct str rest = r->type == REDIS_STRING ? r->str : STR("");
    (void)str_to_i64(str_cut(&rest, ' '), &d->drift_cents);
    if (rest.p)
        (void)str_to_i64(rest, &d->findings);
}

static void read_replies(struct task *t, struct collecting *c, const struct redis_reply *const *r)
{
    struct overview_data *d = c->data;
    int64_t now_ms = 0;
    if (r[ASK_TIME]->type == REDIS_ARRAY && r[ASK_TIME]->count == 2)
        now_ms = redis_number(r[ASK_TIME]->items[0], 0) * 1000 +
                 redis_number(r[ASK_TIME]->items[1], 0) / 1000;
    read_info(d, r[ASK_INFO]);
    d->slowlog = redis_number(r[ASK_SLOWLOG], 0);
    d->queued = redis_number(r[ASK_QUEUED], 0);
    if (r[ASK_HEAD]->type == REDIS_ARRAY && r[ASK_HEAD]->count == 2) {
        int64_t age_ms = loop_wall_ms(task_loop(t)) - redis_number(r[ASK_HEAD]->items[1], 0);
        d->queue_age_s = age_ms > 0 ? age_ms / 1000 : 0;
    }
    d->running = redis_number(r[ASK_RUNNING], 0);
    read_nodes(t, c, r[ASK_NODES], r[ASK_NODES_INFO], now_ms);
    read_lost(t, c, r[ASK_LOST]);
    read_drift(d, r[ASK_DRIFT]);
    d->audited_ms = redis_number(r[ASK_AUDITED], 0);
    d->downloads_waiting = redis_number(r[ASK_DOWNLOADS], 0);
    d->downloads_taken = redis_number(r[ASK_DOWNLOADS_TAKEN], 0);
}

/* Adds the keys of one service. */
static int read_keys(struct task *t, struct collecting *c, struct permits *p)
{
    struct overview_data *d = c->data;
    struct permits_state *keys;
    size_t count;
    int err = permits_states(t, p, &keys, &count);
    if (err)
        return err;
    struct permits_state *own =
        ARENA_ARRAY(c->arena, struct permits_state, d->key_count + count + 1);
    for (size_t i = 0; i < d->key_count; i++)
        own[i] = d->keys[i];
    for (size_t i = 0; i < count; i++) {
        struct permits_state *k = &own[d->key_count + i];
        *k = keys[i];
        k->name = str_dup(c->arena, k->name);
        k->shown = str_dup(c->arena, k->shown);
        if (k->error.p)
            k->error = str_dup(c->arena, k->error);
    }
    d->keys = own;
    d->key_count += count;
    return 0;
}

static int read_all_keys(struct task *t, struct collecting *c)
{
    const struct node *n = c->overview->node;
    int err = read_keys(t, c, n->permits);
    if (!err && n->embedding_permits)
        err = read_keys(t, c, n->embedding_permits);
    c->data->keys_known = !err && permits_looked(n->permits) &&
                          (!n->embedding_permits || permits_looked(n->embedding_permits));
    return err;
}

static int read_queues(struct task *t, struct collecting *c)
{
    struct jobs *j = c->overview->node->jobs;
    size_t count = j ? jobs_count(j) : 0;
    for (size_t i = 0; i < count; i++) {
        int err = jobs_look(t, j, i, &c->data->queues[i]);
        if (err)
            return err;
    }
    c->data->queue_count = count;
    return 0;
}

static int ask_redis(struct task *t, struct collecting *c)
{
    struct node *n = c->overview->node;
    struct overview_data *d = c->data;
    const struct redis_reply *const *replies;
    int64_t began_us = loop_now_us(task_loop(t));
    int err = redis_call(t, n->redis, STR_NULL, NULL, STR("PING"));
    d->redis.latency_us = loop_now_us(task_loop(t)) - began_us;
    d->redis.up = !err; /* whatever it says to the rest */
    if (!err)
        err = ask(t, n->redis, &replies);
    if (!err)
        read_replies(t, c, replies);
    if (!err)
        err = permits_load(t, n->permits, &d->load);
    if (!err)
        err = read_all_keys(t, c);
    if (!err)
        err = ledger_backlog(t, n->ledger, &d->records);
    if (!err)
        err = read_queues(t, c);
    if (!err)
        err = standing_groups(t, n->standing, c->arena, &d->standing, &d->standing_count);
    d->standing_known = !err;
    return err ? err : ask_redis_settings(t, c);
}

/* --- MySQL --- */

static int ask_status(struct task *t, struct sql_pool *p, struct overview_data *d)
{
    struct sql_rows r;
    int64_t requests = 0;
    int err = sql_call(t, p, &r,
                       "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_buffer_pool_bytes_data',"
                       " 'Innodb_buffer_pool_read_requests', 'Innodb_buffer_pool_reads',"
                       " 'Threads_connected')");
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        int64_t v = 0;
        (void)str_to_i64(row[1].s, &v);
        if (str_eq(row[0].s, STR("Innodb_buffer_pool_bytes_data")))
            d->mysql.memory_bytes = v;
        else if (str_eq(row[0].s, STR("Innodb_buffer_pool_read_requests")))
            requests = v;
        else if (str_eq(row[0].s, STR("Innodb_buffer_pool_reads")))
            d->mysql.misses = v;
        else
            d->mysql.clients = v;
    }
    d->mysql.hits = requests > d->mysql.misses ? requests - d->mysql.misses : 0;
    return err;
}

static int ask_slow(struct task *t, struct overview *o)
{
    struct sql_rows r;
    int err = sql_call(t, o->node->sql, &r,
                       "SELECT COUNT(*), (SELECT COUNT(*) FROM session WHERE kind = 'user'),"
                       " (SELECT COUNT(*) FROM session WHERE kind = 'admin') FROM query_log"
                       " WHERE archived = 0 AND status IN ('DONE', 'CANCELLED', 'FAILED')");
    if (err)
        return err;
    o->slow_ms = loop_now_ms(task_loop(t));
    o->archive_waiting = r.cells[0].i;
    o->user_sessions = r.cells[1].i;
    o->admin_sessions = r.cells[2].i;
    return 0;
}

static int ask_mysql(struct task *t, struct collecting *c)
{
    struct overview *o = c->overview;
    struct overview_data *d = c->data;
    struct sql_rows r;
    int64_t began_us = loop_now_us(task_loop(t));
    int err = sql_call(t, o->node->sql, &r, "SELECT COUNT(*) FROM ledger_outbox");
    d->mysql.latency_us = loop_now_us(task_loop(t)) - began_us;
    d->mysql.up = !err;
    if (!err)
        d->moves = r.cells[0].i;
    if (!err)
        err = ask_status(t, o->node->sql, d);
    if (!err && loop_now_ms(task_loop(t)) - o->slow_ms >= SLOW_EACH_MS)
        err = ask_slow(t, o);
    d->archive_waiting = o->archive_waiting;
    d->user_sessions = o->user_sessions;
    d->admin_sessions = o->admin_sessions;
    if (!err)
        err = ask_mysql_settings(t, c);
    if (!err)
        err = store_check_writable(t, o->node->sql);
    d->read_only = d->mysql.up && sql_pool_read_only(o->node->sql);
    return err;
}

/* --- both --- */

static void ask_store(struct task *t, struct collecting *c, struct overview_store *s,
                      const char *settings, int (*fn)(struct task *t, struct collecting *c))
{
    int64_t old = task_deadline(t, STORE_MS);
    int err = fn(t, c);
    const char *words = *task_error(t) ? task_error(t) : err_name(err);
    task_deadline_restore(t, old);
    s->settings = s->up ? str_printf(c->arena, "%s", settings) : STR("");
    s->problem = err             ? str_printf(c->arena, "%.*s", PROBLEM_CHARS, words)
                 : s->settings.n ? s->settings
                                 : STR_NULL;
    int64_t asked = s->hits + s->misses;
    s->hits_permille = asked ? (int64_t)((double)s->hits * 1000 / (double)asked) : 0;
}

void overview_collect(struct task *t, struct overview *o, struct arena *a,
                      struct overview_data *out)
{
    struct collecting c = {.overview = o, .arena = a, .data = out};
    out->at_ms = loop_wall_ms(task_loop(t));
    ask_store(t, &c, &out->redis, o->redis_settings, ask_redis);
    ask_store(t, &c, &out->mysql, o->mysql_settings, ask_mysql);
    bool any = out->redis.up || out->mysql.up;
    if (any && alerts_list(t, o->node, a, &out->alerts, &out->alert_count))
        out->alert_count = 0;
}
