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

#define DATA(member)  API_AT(struct overview_data, member)
#define NODE(member)  API_AT(struct overview_node, member)
#define STORE(member) API_AT(struct overview_store, member)
#define KEY(member)   API_AT(struct permits_state, member)
/* A part of the reply whose members are those of the whole. */
#define PART                     .bytes = sizeof(struct overview_data)
#define COUNT(name, place, text) name, API_INT, place, .about = text
static const struct api_field rpm_fields[] = {
    {COUNT("used", DATA(load.requests_used), "in the last 60 s, over all nodes and active keys")},
    {COUNT("limit", DATA(load.requests_limit), "of all active keys")},
    {"slots", API_INTS, DATA(load.requests), .about = "60 of a second each, oldest first"},
    API_END,
};
static const struct api_field tpm_fields[] = {
    {COUNT("used", DATA(load.tokens_used), "in the last 60 s, over all nodes and active keys")},
    {COUNT("limit", DATA(load.tokens_limit), "of all active keys")},
    {"slots", API_INTS, DATA(load.tokens), .about = "60 of a second each, oldest first"},
    API_END,
};
static const struct api_field backlog_fields[] = {
    {COUNT("queued", DATA(queued), "runs that wait for workers")},
    {COUNT("oldest_seconds", DATA(queue_age_s), "how long the first of them has waited")},
    {COUNT("running", DATA(running), "runs that may have workers")},
    {COUNT("archive_waiting", DATA(archive_waiting), "runs that have ended and are not archived")},
    {COUNT("downloads_waiting", DATA(downloads_waiting), "downloads that wait for a worker")},
    {COUNT("downloads_building", DATA(downloads_taken), "downloads that have one")},
    API_END,
};
static const struct api_field run_fields[] = {
    {"node", API_TEXT, API_AT(struct overview_work, node), .about = "id of the node"},
    {COUNT("user", API_AT(struct overview_work, uid), "the owner of the run")},
    {"query_id", API_TEXT, API_AT(struct overview_work, qid), .about = "the run"},
    {COUNT("workers", API_AT(struct overview_work, workers), "that this node has at it")},
    API_END,
};
static const struct api_field workers_fields[] = {
    {COUNT("total", DATA(workers), "over all nodes")},
    {"runs", API_OBJECTS, .about = "by run and node; at most 1,000", .fields = run_fields},
    API_END,
};
static const struct api_field node_fields[] = {
    {"id", API_TEXT, NODE(id), .most = CONTROL_ID_CHARS_MAX,
     .about = "of its place: stays when it is restarted"},
    {"name", API_TEXT, NODE(name), .about = "host and process"},
    {"takes_work", API_BOOL, NODE(takes), .about = "false: it was drained, or ends"},
    {"drained", API_BOOL, NODE(drained), .about = "by an admin"},
    {COUNT("workers", NODE(workers), "that it has")},
    {COUNT("ai_latency_us", NODE(latency_us), "of a call to the AI, on average; 0: not known")},
    {COUNT("silent_ms", NODE(silent_ms), "since its last heartbeat; after 4,000 it is lost")},
    {COUNT("late_us", NODE(late_us), "how late its loop was")},
    {COUNT("resident_bytes", NODE(resident_bytes), "memory of the process")},
    {COUNT("tasks", NODE(tasks), "that it has")},
    {"prompt", API_TEXT, NODE(prompt), .about = "fingerprint of its instructions to the AI"},
    API_END,
};
static const struct api_field store_fields[] = {
    {"up", API_BOOL, STORE(up), .about = "it answers"},
    {COUNT("latency_us", STORE(latency_us), "of one question")},
    {COUNT("memory_bytes", STORE(memory_bytes), "of its data")},
    {COUNT("memory_bytes_max", STORE(memory_bytes_max), "0: no limit, or not known")},
    {COUNT("hits", STORE(hits),
           "Redis: keys, MySQL: pages that were found in memory, since its start")},
    {COUNT("misses", STORE(misses), "that were not")},
    {COUNT("hits_permille", STORE(hits_permille), "of both")},
    {COUNT("clients", STORE(clients), "connections that it has")},
    {"problem", API_TEXT, STORE(problem), .optional = true,
     .about = "what it said last; null: nothing"},
    API_END,
};
static const struct api_field stores_fields[] = {
    {"redis", API_OBJECT, DATA(redis), .about = "hot data", .fields = store_fields},
    {"mysql", API_OBJECT, DATA(mysql), .about = "what is kept", .fields = store_fields},
    {COUNT("redis_slowlog", DATA(slowlog), "commands that Redis found slow")},
    API_END,
};
static const struct api_field billing_fields[] = {
    {COUNT("records", DATA(records), "charges on their way to MySQL")},
    {"records_max", API_INT, .about = "alert.billing_records"},
    {"alarm", API_BOOL, .about = "more than that"},
    {COUNT("moves", DATA(moves), "users with recharges on their way to Redis")},
    {COUNT("drift_cents", DATA(drift_cents), "that the last audit found to be off")},
    {COUNT("findings", DATA(findings), "in how many places")},
    {"audited_at", API_TIME, DATA(audited_ms), .optional = true,
     .about = "when that was; null: not yet"},
    API_END,
};
static const struct api_field sessions_fields[] = {
    {COUNT("users", DATA(user_sessions), "of users")},
    {COUNT("admins", DATA(admin_sessions), "of admins")},
    API_END};
static const struct api_field cap_fields[] = {
    {"period", API_TEXT, .choices = "minute|day|month", .about = "of the calendar, UTC"},
    {"used", API_INT, .about = "calls in it"},
    {"cap", API_INT, .optional = true, .about = "null: none"},
    API_END,
};
static const struct api_field key_fields[] = {
    {COUNT("id", KEY(id), "number of the key")},
    {"service", API_TEXT, .choices = AI_SERVICES, .about = "that it is for"},
    {"key", API_TEXT, KEY(shown), .secret = true, .about = "its ends"},
    {"name", API_TEXT, KEY(name), .about = "for people"},
    {"state", API_TEXT, .choices = PERMITS_WORDS, .about = ADMIN_KEY_STATE_ABOUT},
    {COUNT("rests_ms", KEY(rests_ms), "so much longer")},
    {COUNT("requests_used", KEY(requests_used), "in the last minute")},
    {COUNT("requests_limit", KEY(requests_limit), "of a minute")},
    {COUNT("tokens_used", KEY(tokens_used), "in the last minute")},
    {COUNT("tokens_limit", KEY(tokens_limit), "of a minute")},
    {"caps", API_OBJECTS, .about = "of calls", .fields = cap_fields},
    {"last_error", API_TEXT, KEY(error), .optional = true, .about = "without secrets; null: none"},
    {"last_error_at", API_TIME, KEY(error_ms), .optional = true, .about = "when"},
    API_END,
};
static const struct api_field alert_fields[] = {
    {"name", API_TEXT, API_AT(struct overview_alert, name),
     .about = "redis, mysql, billing, drift, key:<number>, node:<id>, verdicts:<user>, "
              "standing:<reason code>"},
    {"text", API_TEXT, API_AT(struct overview_alert, text), .about = "for people"},
    {"since", API_TIME, API_AT(struct overview_alert, since_ms), .about = "when it began"},
    API_END,
};
static const struct api_field standing_fields[] = {
    API_REASON_FIELDS("why they do not move"),
    {"runs", API_INT,
     .about = "that stand; of the first 100 of the queue, and of 100 that may have workers"},
    {"user", API_INT, .about = "the owner of one of them"},
    {"query_id", API_TEXT, .about = "that one"},
    API_END,
};
#define FAULT(member) API_AT(struct overview_fault, member)
static const struct api_field fault_fields[] = {
    {"service", API_TEXT, FAULT(service), .choices = AI_SERVICES, .about = "that was called"},
    {"kind", API_TEXT, FAULT(kind),
     .about = "proxy, dns, refused, tls, unreachable, timeout, cut, status_3xx, status_4xx, "
              "status_5xx, unreadable, no_key, other"},
    {COUNT("count", FAULT(count), "calls in the last minute, over all nodes")},
    {"words", API_TEXT, FAULT(words), .about = "the cause of the last one"},
    {"last_at", API_TIME, FAULT(at_ms), .optional = true, .about = "when that was"},
    API_END,
};
static const struct api_field overview_reply[] = {
    {"at", API_TIME, DATA(at_ms), .about = "when it was collected"},
    {"well", API_BOOL,
     .about = "no alert, no store down, no run that stands for a cause that can be mended, no key "
              "refused, no AI errors"},
    {"rpm", API_OBJECT, PART, .about = "requests to the AI service", .fields = rpm_fields},
    {"tpm", API_OBJECT, PART, .about = "tokens of them", .fields = tpm_fields},
    {"backlog", API_OBJECT, PART, .about = "what waits", .fields = backlog_fields},
    {"workers", API_OBJECT, .about = "workers by run and node", .fields = workers_fields},
    {"nodes", API_OBJECTS, .about = "those that live", .fields = node_fields},
    {"stores", API_OBJECT, PART, .about = "Redis and MySQL", .fields = stores_fields},
    {"billing", API_OBJECT, .about = "money on its way", .fields = billing_fields},
    {"sessions", API_OBJECT, PART, .about = "that have not ended", .fields = sessions_fields},
    {"keys", API_OBJECTS, .about = "of all AI services", .fields = key_fields},
    {"alerts", API_OBJECTS, .about = "that are not over", .fields = alert_fields},
    {"standing", API_OBJECTS, .about = "runs that stand for a cause that can be mended, by cause",
     .fields = standing_fields},
    {"ai_errors", API_OBJECTS, .about = "calls to AI services that failed, by service and kind",
     .fields = fault_fields},
    API_END,
};

static void put_key(struct task *t, struct json_writer *w, const struct permits_state *k)
{
    static const char *const periods[PERMITS_CAPS] = {"minute", "day", "month"};
    jw_object(w);
    api_put_fields(t, w, key_fields, k);
    jw_put_str(w, "service", str_of(k->service));
    jw_put_str(w, "state", str_of(permits_word(k)));
    jw_put_array(w, "caps");
    for (size_t i = 0; i < PERMITS_CAPS; i++) {
        jw_object(w);
        jw_put_str(w, "period", str_of(periods[i]));
        jw_put_int(w, "used", k->calls[i]);
        api_put_known(w, "cap", k->caps[i] >= 0, k->caps[i]);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_end_object(w);
}

static void put_standing(struct json_writer *w, const struct overview_data *d)
{
    jw_put_array(w, "standing");
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

static void put_all(struct task *t, struct json_writer *w, const struct node *n,
                    const struct overview_data *d)
{
    jw_put_bool(w, "well", overview_well(d));
    int64_t records_max = n->config->alert_billing_records;
    api_put_fields(t, w, overview_reply, d);
    jw_put_object(w, "workers");
    api_put_fields(t, w, workers_fields, d);
    api_put_list(t, w, "runs", run_fields, d->works, d->work_count);
    jw_end_object(w);
    api_put_list(t, w, "nodes", node_fields, d->nodes, d->node_count);
    jw_put_object(w, "billing");
    api_put_fields(t, w, billing_fields, d);
    jw_put_int(w, "records_max", records_max);
    jw_put_bool(w, "alarm", d->records > records_max);
    jw_end_object(w);
    jw_put_array(w, "keys");
    for (size_t i = 0; i < d->key_count; i++)
        put_key(t, w, &d->keys[i]);
    jw_end_array(w);
    api_put_list(t, w, "alerts", alert_fields, d->alerts, d->alert_count);
    put_standing(w, d);
    api_put_list(t, w, "ai_errors", fault_fields, d->faults, d->fault_count);
}

/* --- once --- */

static int show(struct task *t, struct api_call *c, struct json_writer *w)
{
    const struct overview_data *d;
    int err = overview_wait(t, c->node->overview, 0, &d);
    if (!err)
        put_all(t, w, c->node, d);
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
    jw_begin(&w, &b);
    put_all(t, &w, c->node, d);
    return sse_send(t, c->x, "overview", jw_finish(&w, task_arena(t)));
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

const struct api_route admin_overview_routes[] = {
    {"GET", "/api/admin/overview", API_ADMIN, show, "How everything is doing",
     .reply = overview_reply},
    {"GET", "/api/admin/overview/events", API_ADMIN, events, "The same, every second",
     .media = "text/event-stream"},
    {.method = NULL},
};
