/* How everything is doing: once, or every second as server-sent events:
 *
 *     event: overview   data: what GET /api/admin/overview answers, but for "success"
 *
 * A stream ends after a minute, and browsers connect again by themselves: so an admin that was
 * logged out, or removed, sees no more. */
#include "engine/watch/overview.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"
#include "engine/api/run.h"
#include "engine/setup/config.h"
#include "engine/watch/controls.h"

#define STREAM_MS 60000

/* --- what is told --- */

static void put_ints(struct json_writer *w, const int64_t *v, size_t n)
{
    jw_array(w);
    for (size_t i = 0; i < n; i++)
        jw_int(w, v[i]);
    jw_end_array(w);
}

static void put_rate(struct json_writer *w, const char *name, int64_t used, int64_t limit,
                     const int64_t *slots)
{
    jw_key(w, str_of(name));
    jw_object(w);
    jw_put_int(w, "used", used);
    jw_put_int(w, "limit", limit);
    jw_key(w, STR("slots"));
    put_ints(w, slots, PERMITS_SECONDS);
    jw_end_object(w);
}

static void put_work(struct json_writer *w, const struct overview_data *d)
{
    jw_key(w, STR("backlog"));
    jw_object(w);
    jw_put_int(w, "queued", d->queued);
    jw_put_int(w, "oldest_seconds", d->queue_age_ms / 1000);
    jw_put_int(w, "running", d->running);
    jw_put_int(w, "archive_waiting", d->archive_waiting);
    jw_put_int(w, "downloads_waiting", d->downloads_waiting);
    jw_put_int(w, "downloads_building", d->downloads_taken);
    jw_end_object(w);
    jw_key(w, STR("workers"));
    jw_object(w);
    jw_put_int(w, "total", d->workers);
    jw_key(w, STR("runs"));
    jw_array(w);
    for (size_t i = 0; i < d->work_count; i++) {
        jw_object(w);
        jw_put_str(w, "node", d->works[i].node);
        jw_put_int(w, "user", d->works[i].uid);
        jw_put_str(w, "query_id", d->works[i].qid);
        jw_put_int(w, "workers", d->works[i].workers);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_end_object(w);
}

static void put_nodes(struct json_writer *w, const struct overview_data *d)
{
    jw_key(w, STR("nodes"));
    jw_array(w);
    for (size_t i = 0; i < d->node_count; i++) {
        const struct overview_node *n = &d->nodes[i];
        jw_object(w);
        jw_put_str(w, "id", n->id);
        jw_put_str(w, "name", n->name);
        jw_put_bool(w, "takes_work", n->takes);
        jw_put_bool(w, "drained", n->drained);
        jw_put_int(w, "workers", n->workers);
        jw_put_int(w, "ai_latency_us", n->latency_us);
        jw_put_int(w, "silent_ms", n->silent_ms);
        jw_put_int(w, "late_us", n->late_us);
        jw_put_int(w, "resident_bytes", n->resident_bytes);
        jw_put_int(w, "tasks", n->tasks);
        jw_put_str(w, "prompt", n->prompt);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void put_store(struct json_writer *w, const char *name, const struct overview_store *s)
{
    int64_t asked = s->hits + s->misses;
    jw_key(w, str_of(name));
    jw_object(w);
    jw_put_bool(w, "up", s->up);
    jw_put_int(w, "latency_us", s->latency_us);
    jw_put_int(w, "memory_bytes", s->memory_bytes);
    jw_put_int(w, "memory_bytes_max", s->memory_bytes_max);
    jw_put_int(w, "hits", s->hits);
    jw_put_int(w, "misses", s->misses);
    jw_put_int(w, "hits_permille", asked ? (int64_t)((double)s->hits * 1000 / (double)asked) : 0);
    jw_put_int(w, "clients", s->clients);
    jw_put_str(w, "problem", s->problem.n ? s->problem : STR_NULL);
    jw_end_object(w);
}

static void put_stores(struct json_writer *w, const struct overview_data *d)
{
    jw_key(w, STR("stores"));
    jw_object(w);
    put_store(w, "redis", &d->redis);
    put_store(w, "mysql", &d->mysql);
    jw_put_int(w, "redis_slowlog", d->slowlog);
    jw_end_object(w);
}

static void put_billing(struct json_writer *w, const struct overview_data *d, int64_t most)
{
    jw_key(w, STR("billing"));
    jw_object(w);
    jw_put_int(w, "records", d->records);
    jw_put_int(w, "records_max", most);
    jw_put_bool(w, "alarm", d->records > most);
    jw_put_int(w, "moves", d->moves);
    jw_put_int(w, "drift_cents", d->drift_cents);
    jw_put_int(w, "findings", d->findings);
    api_put_time(w, "audited_at", d->audited_ms);
    jw_end_object(w);
}

static const char *state_word(const struct permits_state *k)
{
    if (k->refused)
        return "refused";
    if (!k->active)
        return "disabled";
    return k->rests_ms ? "resting" : "active";
}

static void put_key(struct json_writer *w, const struct permits_state *k)
{
    static const char *const periods[PERMITS_CAPS] = {"minute", "day", "month"};
    jw_object(w);
    jw_put_int(w, "id", k->id);
    jw_put_str(w, "key", k->shown);
    jw_put_str(w, "name", k->name);
    jw_put_str(w, "state", str_of(state_word(k)));
    jw_put_int(w, "rests_ms", k->rests_ms);
    jw_put_int(w, "requests_used", k->requests_used);
    jw_put_int(w, "requests_limit", k->requests_limit);
    jw_put_int(w, "tokens_used", k->tokens_used);
    jw_put_int(w, "tokens_limit", k->tokens_limit);
    jw_key(w, STR("caps"));
    jw_array(w);
    for (size_t i = 0; i < PERMITS_CAPS; i++) {
        jw_object(w);
        jw_put_str(w, "period", str_of(periods[i]));
        jw_put_int(w, "used", k->calls[i]);
        api_put_known(w, "cap", k->caps[i] >= 0, k->caps[i]);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_put_str(w, "last_error", k->error);
    api_put_time(w, "last_error_at", k->error_ms);
    jw_end_object(w);
}

static void put_alerts(struct json_writer *w, const struct overview_alert *list, size_t count)
{
    jw_key(w, STR("alerts"));
    jw_array(w);
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        jw_put_str(w, "name", list[i].name);
        jw_put_str(w, "text", list[i].text);
        api_put_time(w, "since", list[i].since_ms);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void put_standing(struct json_writer *w, const struct overview_data *d)
{
    jw_key(w, STR("standing"));
    jw_array(w);
    for (size_t i = 0; i < d->standing_count; i++) {
        const struct standing_group *g = &d->standing[i];
        jw_object(w);
        api_put_reason(w, reason_word(g->why.code), &g->why);
        jw_put_int(w, "runs", g->runs);
        jw_put_int(w, "user", g->example.uid);
        jw_put_str(w, "query_id", g->example.qid);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void put_faults(struct json_writer *w, const struct overview_data *d)
{
    jw_key(w, STR("ai_errors"));
    jw_array(w);
    for (size_t i = 0; i < d->fault_count; i++) {
        const struct overview_fault *f = &d->faults[i];
        jw_object(w);
        jw_put_str(w, "kind", f->kind);
        jw_put_int(w, "count", f->count);
        jw_put_str(w, "words", f->words);
        api_put_time(w, "last_at", f->at_ms);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void put_all(struct json_writer *w, const struct node *n, const struct overview_data *d)
{
    const struct permits_load *l = &d->load;
    api_put_time(w, "at", d->at_ms);
    jw_put_bool(w, "well", overview_well(d));
    put_rate(w, "rpm", l->requests_used, l->requests_limit, l->requests);
    put_rate(w, "tpm", l->tokens_used, l->tokens_limit, l->tokens);
    put_work(w, d);
    put_nodes(w, d);
    put_stores(w, d);
    put_billing(w, d, n->config->alert_billing_records);
    jw_key(w, STR("sessions"));
    jw_object(w);
    jw_put_int(w, "users", d->user_sessions);
    jw_put_int(w, "admins", d->admin_sessions);
    jw_end_object(w);
    jw_key(w, STR("keys"));
    jw_array(w);
    for (size_t i = 0; i < d->key_count; i++)
        put_key(w, &d->keys[i]);
    jw_end_array(w);
    put_alerts(w, d->alerts, d->alert_count);
    put_standing(w, d);
    put_faults(w, d);
}

/* --- once --- */

static int show(struct task *t, struct api_call *c, struct json_writer *w)
{
    const struct overview_data *d;
    int err = overview_wait(t, c->node->overview, 0, &d);
    if (!err)
        put_all(w, c->node, d);
    return err;
}

/* --- and every second --- */

static int send_next(struct task *t, struct api_call *c, uint64_t *seen)
{
    const struct overview_data *d;
    struct json_writer w;
    struct buf b;
    int err = overview_wait(t, c->node->overview, *seen, &d);
    if (err)
        return err;
    *seen = d->number;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    put_all(&w, c->node, d);
    jw_end_object(&w);
    struct str json = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return sse_send(t, c->x, "overview", json);
}

static int events(struct task *t, struct api_call *c, struct json_writer *unused)
{
    (void)unused;
    uint64_t seen = 0;
    int64_t until_ms = loop_now_ms(task_loop(t)) + STREAM_MS;
    c->replied = true;
    http_cancel_when_gone(c->x);
    int err = sse_begin(t, c->x);
    while (!err && !http_draining(c->x) && loop_now_ms(task_loop(t)) < until_ms) {
        struct task_scope scope = task_scope(t);
        err = send_next(t, c, &seen);
        task_scope_end(t, scope);
    }
    return err;
}

/* --- the table --- */

#define COUNT(name, text)                                                                          \
    {                                                                                              \
        name, API_INT, .about = text                                                               \
    }

static const struct api_field rate_fields[] = {
    COUNT("used", "in the last 60 s, over all nodes and active keys"),
    COUNT("limit", "of all active keys"),
    {"slots", API_INTS, .about = "60 of a second each, oldest first"},
    API_END,
};
static const struct api_field backlog_fields[] = {
    COUNT("queued", "runs that wait for workers"),
    COUNT("oldest_seconds", "how long the first of them has waited"),
    COUNT("running", "runs that may have workers"),
    COUNT("archive_waiting", "runs that have ended and are not archived"),
    COUNT("downloads_waiting", "downloads that wait for a worker"),
    COUNT("downloads_building", "downloads that have one"),
    API_END,
};
static const struct api_field run_fields[] = {
    {"node", API_TEXT, .about = "id of the node"},
    COUNT("user", "the owner of the run"),
    {"query_id", API_TEXT, .about = "the run"},
    COUNT("workers", "that this node has at it"),
    API_END,
};
static const struct api_field workers_fields[] = {
    COUNT("total", "over all nodes"),
    {"runs", API_OBJECTS, .about = "by run and node; at most 1,000", .fields = run_fields},
    API_END,
};
static const struct api_field node_fields[] = {
    {"id", API_TEXT, .most = CONTROL_ID_CHARS_MAX,
     .about = "of its place: stays when it is restarted"},
    {"name", API_TEXT, .about = "host and process"},
    {"takes_work", API_BOOL, .about = "false: it was drained, or ends"},
    {"drained", API_BOOL, .about = "by an admin"},
    COUNT("workers", "that it has"),
    COUNT("ai_latency_us", "of a call to the AI, on average; 0: not known"),
    COUNT("silent_ms", "since its last heartbeat; after 4,000 it is lost"),
    COUNT("late_us", "how late its loop was"),
    COUNT("resident_bytes", "memory of the process"),
    COUNT("tasks", "that it has"),
    {"prompt", API_TEXT, .about = "fingerprint of its instructions to the AI"},
    API_END,
};
static const struct api_field store_fields[] = {
    {"up", API_BOOL, .about = "it answers"},
    COUNT("latency_us", "of one question"),
    COUNT("memory_bytes", "of its data"),
    COUNT("memory_bytes_max", "0: no limit, or not known"),
    COUNT("hits", "Redis: keys, MySQL: pages that were found in memory, since its start"),
    COUNT("misses", "that were not"),
    COUNT("hits_permille", "of both"),
    COUNT("clients", "connections that it has"),
    {"problem", API_TEXT, .optional = true, .about = "what it said last; null: nothing"},
    API_END,
};
static const struct api_field stores_fields[] = {
    {"redis", API_OBJECT, .about = "hot data", .fields = store_fields},
    {"mysql", API_OBJECT, .about = "what is kept", .fields = store_fields},
    COUNT("redis_slowlog", "commands that Redis found slow"),
    API_END,
};
static const struct api_field billing_fields[] = {
    COUNT("records", "charges on their way to MySQL"),
    COUNT("records_max", "alert.billing_records"),
    {"alarm", API_BOOL, .about = "more than that"},
    COUNT("moves", "users with recharges on their way to Redis"),
    COUNT("drift_cents", "that the last audit found to be off"),
    COUNT("findings", "in how many places"),
    {"audited_at", API_TIME, .optional = true, .about = "when that was; null: not yet"},
    API_END,
};
static const struct api_field sessions_fields[] = {COUNT("users", "of users"),
                                                   COUNT("admins", "of admins"), API_END};
static const struct api_field cap_fields[] = {
    {"period", API_TEXT, .choices = "minute|day|month", .about = "of the calendar, UTC"},
    COUNT("used", "calls in it"),
    {"cap", API_INT, .optional = true, .about = "null: none"},
    API_END,
};
static const struct api_field key_fields[] = {
    COUNT("id", "number of the key"),
    {"key", API_TEXT, .about = "its ends"},
    {"name", API_TEXT, .about = "for people"},
    {"state", API_TEXT, .choices = "active|resting|refused|disabled",
     .about = "refused: by the AI service; disabled: by an admin"},
    COUNT("rests_ms", "so much longer"),
    COUNT("requests_used", "in the last minute"),
    COUNT("requests_limit", "of a minute"),
    COUNT("tokens_used", "in the last minute"),
    COUNT("tokens_limit", "of a minute"),
    {"caps", API_OBJECTS, .about = "of calls", .fields = cap_fields},
    {"last_error", API_TEXT, .optional = true, .about = "without secrets; null: none"},
    {"last_error_at", API_TIME, .optional = true, .about = "when"},
    API_END,
};
static const struct api_field alert_fields[] = {
    {"name", API_TEXT,
     .about = "redis, mysql, billing, drift, key:<number>, node:<id>, verdicts:<user>, "
              "standing:<reason code>"},
    {"text", API_TEXT, .about = "for people"},
    {"since", API_TIME, .about = "when it began"},
    API_END,
};
static const struct api_field standing_fields[] = {
    API_REASON_FIELDS("why they do not move"),
    COUNT("runs", "that stand; of the first 100 of the queue, and of 100 that may have workers"),
    COUNT("user", "the owner of one of them"),
    {"query_id", API_TEXT, .about = "that one"},
    API_END,
};
static const struct api_field fault_fields[] = {
    {"kind", API_TEXT,
     .about = "dns, refused, tls, unreachable, timeout, cut, status_3xx, status_4xx, status_5xx, "
              "unreadable, no_key, other"},
    COUNT("count", "calls in the last minute, over all nodes"),
    {"words", API_TEXT, .about = "the cause of the last one"},
    {"last_at", API_TIME, .optional = true, .about = "when that was"},
    API_END,
};
static const struct api_field overview_reply[] = {
    {"at", API_TIME, .about = "when it was collected"},
    {"well", API_BOOL,
     .about = "no alert, no store down, no run that stands for a cause that can be mended, no key "
              "refused, no AI errors"},
    {"rpm", API_OBJECT, .about = "requests to the AI service", .fields = rate_fields},
    {"tpm", API_OBJECT, .about = "tokens of them", .fields = rate_fields},
    {"backlog", API_OBJECT, .about = "what waits", .fields = backlog_fields},
    {"workers", API_OBJECT, .about = "workers by run and node", .fields = workers_fields},
    {"nodes", API_OBJECTS, .about = "those that live", .fields = node_fields},
    {"stores", API_OBJECT, .about = "Redis and MySQL", .fields = stores_fields},
    {"billing", API_OBJECT, .about = "money on its way", .fields = billing_fields},
    {"sessions", API_OBJECT, .about = "that have not ended", .fields = sessions_fields},
    {"keys", API_OBJECTS, .about = "of the AI service", .fields = key_fields},
    {"alerts", API_OBJECTS, .about = "that are not over", .fields = alert_fields},
    {"standing", API_OBJECTS, .about = "runs that stand for a cause that can be mended, by cause",
     .fields = standing_fields},
    {"ai_errors", API_OBJECTS, .about = "calls to the AI that failed, by kind",
     .fields = fault_fields},
    API_END,
};

const struct api_route admin_overview_routes[] = {
    {"GET", "/api/admin/overview", API_ADMIN, show, "How everything is doing",
     .reply = overview_reply},
    {"GET", "/api/admin/overview/events", API_ADMIN, events, "The same, every second",
     .media = "text/event-stream"},
    {.method = NULL},
};
