/* Progress of a task, as server-sent events:
 *
 *     event: progress   data: as GET /api/tasks/<id>/status answers; when counts have changed, or
 *                       what it waits for
 *     event: state      data: the same; at the beginning and whenever the status has changed
 *
 * The stream ends when the task is no more processing, or when the node drains; a browser that
 * reconnects gets the state first. */
#include <stdio.h>

#include "app/extract/extract.h"
#include "app/extract/task/task_routes.h"
#include "engine/api/streams.h"
#include "loop/backoff.h"

#define EACH_MS 1000
#define PING_MS 15000

struct watching {
    struct str id;
    char status[16], reason[32];  /* as last sent */
    struct extract_counts counts; /* likewise */
    int64_t sent_ms;
};

static bool same(const struct extract_counts *a, const struct extract_counts *b)
{
    return a->pending == b->pending && a->extracting == b->extracting &&
           a->completed == b->completed && a->errors == b->errors && a->cancelled == b->cancelled;
}

static int send(struct task *t, struct http_exchange *x, struct watching *w, const char *event,
                const struct extract_task *k)
{
    struct buf b;
    struct json_writer j;
    jw_begin(&j, &b);
    extraction_put_status(&j, k);
    int err = sse_send(t, x, event, jw_finish(&j, task_arena(t)));
    snprintf(w->status, sizeof w->status, "%.*s", STR_ARG(k->status));
    snprintf(w->reason, sizeof w->reason, "%.*s", STR_ARG(k->reason));
    w->counts = k->counts;
    w->sent_ms = loop_now_ms(task_loop(t));
    return err;
}

/* Sends what has changed since the last look. */
static int look(struct task *t, struct api_call *c, struct watching *w)
{
    struct extract_task k;
    int err = extract_task_get(t, c->node->extract, c->session.uid, w->id, &k);
    if (err)
        return err;
    if (!str_eq(k.status, str_of(w->status)))
        return send(t, c->x, w, "state", &k);
    if (!same(&k.counts, &w->counts) || !str_eq(k.reason, str_of(w->reason)))
        return send(t, c->x, w, "progress", &k);
    bool silent = loop_now_ms(task_loop(t)) - w->sent_ms >= PING_MS; /* heartbeat */
    w->sent_ms = silent ? loop_now_ms(task_loop(t)) : w->sent_ms;
    return silent ? sse_ping(t, c->x) : 0;
}

static bool goes_on(const struct api_call *c, const struct watching *w)
{
    return str_eq(str_of(w->status), STR("processing")) && !http_draining(c->x) && !http_gone(c->x);
}

int extraction_events(struct task *t, struct api_call *c, struct json_writer *unused)
{
    struct watching w = {.id = http_param(c->x, "task_id")};
    struct extract_task first;
    struct api_stream s;
    (void)unused;
    int err = extract_task_get(t, c->node->extract, c->session.uid, w.id, &first);
    if (!err)
        err = api_stream_open(t, c, &s);
    if (err)
        return err;
    c->replied = true;
    err = sse_begin(t, c->x);
    if (!err)
        err = send(t, c->x, &w, "state", &first);
    while (!err && goes_on(c, &w)) {
        err = backoff_wait(t, &(struct backoff){.ms = EACH_MS});
        struct task_scope scope = task_scope(t);
        if (!err)
            err = look(t, c, &w);
        api_stream_keep(t, c->node, &s);
        task_scope_end(t, scope);
    }
    api_stream_close(t, c->node, &s);
    return err;
}
