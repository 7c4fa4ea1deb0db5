#include "engine/watch/alerts_private.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/time.h"
#include "engine/runs/state.h"
#include "engine/store/keys.h"

#define STORE_DOWN_MS   3000  /* a store that is restarted is no alert */
#define RECORDS_MS      10000 /* nor is a burst */
#define STANDING_MS     60000 /* nor is a run that waits for a moment */
#define QUEUE_MS        600000
#define CALL_MS         5000
#define LOCK_MS         10000 /* a node that died is replaced after this */
#define PAUSE_MS        1000  /* before a message is tried again; twice as long each time */
#define PAUSE_MS_MAX    60000
#define REPLY_BYTES_MAX (64 * 1024)

struct alerts *alerts_new(const struct alerts_options *o)
{
    struct alerts *a = check_memory(calloc(1, sizeof *a));
    struct metrics *m = o->node->metrics;
    const char *name = "millrace_alert_messages_total", *help = "Messages to alert.webhook_url.";
    check(o->source_count <= ALERTS_SOURCES_MAX);
    a->options = *o;
    a->options.store_ms = o->store_ms ? o->store_ms : STORE_DOWN_MS;
    a->options.records_ms = o->records_ms ? o->records_ms : RECORDS_MS;
    a->options.standing_ms = o->standing_ms ? o->standing_ms : STANDING_MS;
    a->options.queue_ms = o->queue_ms ? o->queue_ms : QUEUE_MS;
    for (size_t i = 0; i < REASON_CODES; i++)
        a->standing_ms[i] = -1;
    a->changes = a->in_mysql = a->in_redis = -1;
    a->records_over_ms = a->redis_down_ms = a->mysql_down_ms = a->read_only_ms = -1;
    /* A client of its own: ai.ca_file vouches for the AI service only. */
    const char *ca_file = o->ca_file && *o->ca_file ? o->ca_file : NULL;
    a->client = http_client_new(o->node->loop, &(struct http_client_options){.ca_file = ca_file});
    a->open = metric(m, METRIC_GAUGE, "millrace_alerts_open", "",
                     "Alerts that are not over; shown by the node that watches.");
    a->sent = metric(m, METRIC_COUNTER, name, "outcome=\"sent\"", help);
    a->failed = metric(m, METRIC_COUNTER, name, "outcome=\"failed\"", help);
    return a;
}

void alerts_free(struct alerts *a)
{
    http_client_free(a->client);
    free(a);
}

/* --- messages --- */

static void put_time(struct json_writer *w, const char *name, int64_t wall_ms)
{
    char iso[TIME_ISO_BYTES];
    time_iso(wall_ms * 1000, iso);
    jw_key(w, str_of(name));
    jw_str(w, str_of(iso));
}

static struct str message(struct task *t, const struct episode *e)
{
    struct buf b;
    struct json_writer w;
    int64_t now_ms = loop_wall_ms(task_loop(t));
    jw_begin(&w, &b);
    jw_put_str(&w, "id", str_printf(task_arena(t), "%s@%lld", e->name, (long long)e->since_ms));
    jw_put_str(&w, "event", e->over ? STR("ended") : STR("begun"));
    jw_put_str(&w, "alert", str_of(e->name));
    jw_put_str(&w, "text",
               str_printf(task_arena(t), "millrace: %s%s", e->over ? "over: " : "", e->text));
    put_time(&w, "since", e->since_ms);
    put_time(&w, "at", now_ms);
    jw_put_int(&w, "seconds", (now_ms - e->since_ms) / 1000);
    return jw_finish(&w, task_arena(t));
}

/* ERR_REFUSED: the webhook did not take it. Other errors are those of http_call. What follows the
 * host in the address is a secret: errors of calls name the host only. */
static int send(struct task *t, struct alerts *a, const struct episode *e)
{
    const struct str headers[] = {STR("Content-Type: application/json")};
    struct http_call c = {.method = "POST",
                          .url = a->options.url,
                          .headers = headers,
                          .header_count = 1,
                          .body = message(t, e),
                          .reply_bytes_max = REPLY_BYTES_MAX};
    struct http_response r;
    int64_t old = task_deadline(t, CALL_MS);
    int err = http_call(t, a->client, &c, &r);
    task_deadline_restore(t, old);
    bool refused = !err && (r.status < 200 || r.status >= 300);
    metric_add(err || refused ? a->failed : a->sent, 1);
    if (err)
        log_warn("alert", "%s could not be told: %s", e->name,
                 *task_error(t) ? task_error(t) : err_name(err));
    else if (refused)
        log_warn("alert", "%s could not be told: the webhook answers with status %d", e->name,
                 r.status);
    return refused ? ERR_REFUSED : err;
}

static bool is_due(struct task *t, const struct episode *e)
{
    return (e->over || !e->told) && loop_now_ms(task_loop(t)) >= e->again_ms;
}

/* One at a time: the lock must be kept meanwhile. True: something has changed. */
static bool tell_one(struct task *t, struct alerts *a)
{
    size_t i = 0;
    while (i < a->count && !is_due(t, &a->list[i]))
        i++;
    if (i == a->count)
        return false;
    struct episode *e = &a->list[i];
    bool unheard = e->over && !e->told && !e->unsure; /* no end is due */
    int err = !unheard && *a->options.url ? send(t, a, e) : 0;
    if (err) {
        bool unsure = e->unsure || (err != ERR_REFUSED && err != ERR_UNAVAILABLE);
        bool news = unsure && !e->unsure;
        e->unsure = unsure;
        e->pause_ms = e->pause_ms ? 2 * e->pause_ms : PAUSE_MS;
        if (e->pause_ms > PAUSE_MS_MAX)
            e->pause_ms = PAUSE_MS_MAX;
        e->again_ms = loop_now_ms(task_loop(t)) + e->pause_ms;
        return news;
    }
    if (e->over) {
        memmove(e, e + 1, (a->count - i - 1) * sizeof *e);
        a->count--;
    } else {
        e->told = true;
        e->again_ms = e->pause_ms = 0;
    }
    return true;
}

/* --- a round --- */

/* ERR_CONFLICT: another node has noted something, which must be read first. */
static int note(struct task *t, struct alerts *a, bool news)
{
    a->changes += news;
    metric_set(a->open, (int64_t)a->count);
    return alerts_save(t, a);
}

static void forget_lost(struct task *t, struct alerts *a, const struct alerts_found *f)
{
    for (size_t i = 0; i < f->lost_count; i++)
        if (redis_call(t, a->options.node->redis, key_nodes_lost, NULL, STR("HDEL"), key_nodes_lost,
                       f->lost[i]))
            return; /* in the next round */
}

static int read_refused(struct task *t, struct alerts *a, struct alerts_paused_list *out)
{
    struct sql_rows r;
    int err = sql_call(t, a->options.node->sql, &r,
                       "SELECT uid, query_id, reason FROM query_log WHERE archived = 0"
                       " AND status = 'PAUSED' AND reason LIKE ? ORDER BY changed_at LIMIT ?",
                       sql_text(STR(RUN_REASON_REFUSED "%")), sql_int(ALERTS_PAUSED_MAX));
    if (err)
        return err;
    out->refused_count = (int64_t)r.count;
    if (r.count)
        out->refused = (struct alerts_paused){r.cells[0].i, r.cells[1].s, r.cells[2].s};
    return 0;
}

/* One row for each user, however many runs there are. While MySQL is known to be away it is not
 * asked: every round would wait for it. */
static void read_paused(struct task *t, struct alerts *a, struct alerts_paused_list *out)
{
    struct sql_rows r;
    if (a->mysql_away)
        return;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int err = sql_call(t, a->options.node->sql, &r,
                       "SELECT uid, MIN(query_id), MIN(reason) FROM query_log WHERE archived = 0"
                       " AND status = 'PAUSED' AND (reason = ? OR reason LIKE ?)"
                       " GROUP BY uid ORDER BY MIN(changed_at), uid LIMIT ?",
                       sql_text(STR(RUN_REASON_ACCOUNT)), sql_text(STR(RUN_REASON_UNRECORDED "%")),
                       sql_int(ALERTS_PAUSED_MAX));
    if (!err)
        err = read_refused(t, a, out);
    task_deadline_restore(t, old);
    if (err)
        return;
    out->known = true;
    out->count = r.count;
    out->list = ARENA_ARRAY(task_arena(t), struct alerts_paused, r.count + 1);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        out->list[i] = (struct alerts_paused){cell[0].i, cell[1].s, cell[2].s};
    }
}

static void ask_sources(struct task *t, struct alerts *a, struct alerts_told *out)
{
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    for (size_t i = 0; i < a->options.source_count; i++) {
        const struct alerts_source *s = &a->options.sources[i];
        out[i].known = s->look(t, s->arg, &out[i].list, &out[i].count) == 0;
    }
    task_deadline_restore(t, old);
}

static int watch(struct task *t, struct alerts *a)
{
    struct alerts_asked asked = {.paused.known = false};
    read_paused(t, a, &asked.paused); /* first: the overview is good until the next wait */
    ask_sources(t, a, asked.told);
    const struct overview_data *d;
    struct alerts_found found = {.news = false};
    int err = overview_wait(t, a->options.overview, a->looked, &d);
    if (err)
        return err;
    a->looked = d->number;
    a->mysql_away = !d->mysql.up;
    alerts_watch(t, a, d, &asked, &found);
    if (note(t, a, found.news))
        return 0;
    forget_lost(t, a, &found);
    if (!task_canceled(t) && tell_one(t, a))
        err = note(t, a, true);
    return err == ERR_CONFLICT ? 0 : err; /* the next round reads what the other node has noted */
}

/* --- which node watches --- */

/* ERR_BUSY: another node has it. Other errors: Redis does not answer. */
static int take_lock(struct task *t, struct alerts *a)
{
    struct role_turn *turn = &a->turn;
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    int err = turn->locked ? role_keep(t, turn) : ERR_CONFLICT;
    if (err == ERR_CONFLICT) {
        err = lock_take(t, a->options.node->redis, key_alerts_lock, LOCK_MS, &turn->lock);
        turn->locked = !err;
        turn->ms = LOCK_MS;
        turn->kept_ms = loop_now_ms(task_loop(t));
    }
    task_deadline_restore(t, old);
    return err;
}

static void step_down(struct alerts *a)
{
    a->watching = a->alone = false;
    a->count = 0;
    a->changes = -1;
    metric_set(a->open, 0); /* the node that watches shows it */
}

/* What this node has told without the lock, or could not note, is for it to end, or for the next
 * one to read. */
static bool is_done(struct alerts *a)
{
    bool noted = a->in_mysql >= a->changes || a->in_redis >= a->changes;
    if (!noted || a->outdated)
        return false;
    for (size_t i = 0; a->alone && i < a->count; i++)
        if (a->list[i].over || strcmp(a->list[i].name, "redis") == 0)
            return false;
    return true;
}

/* The lock is taken here, not by the role: without Redis every node watches, or no alert would tell
 * that Redis is down. */
int alerts_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    struct alerts *a = arg;
    int err = take_lock(t, a);
    if (err == ERR_BUSY && is_done(a)) {
        step_down(a);
        return 0;
    }
    a->alone = err != 0;
    bool reads = !a->watching || a->alone || a->outdated;
    err = reads ? alerts_load(t, a) : 0;
    if (err && !a->watching)
        return err;
    a->watching = true;
    return watch(t, a);
}

void alerts_part(struct task *t, struct alerts *a)
{
    int64_t old = task_deadline(t, ALERTS_STORE_MS);
    if (a->turn.locked)
        lock_drop(t, &a->turn.lock);
    a->turn.locked = false;
    task_deadline_restore(t, old);
}
