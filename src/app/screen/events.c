/* Progress of a run, as server-sent events:
 *
 *     event: progress   data: {"state", "reason_code", "papers", "finished", …,
 *                             "seconds_left_min", "seconds_left_max", "papers_per_second"}
 *     event: state      data: the same; at the beginning and whenever the state has changed
 *
 * with "degraded": true while a store is away.
 *
 * The stream ends with the run, or when the node drains; a browser that reconnects gets the state
 * first. */
#include <stdio.h>

#include "app/screen/screen.h"
#include "engine/api/run.h"
#include "engine/api/streams.h"
#include "engine/watch/standing.h"
#include "loop/backoff.h"

#define EACH_MS      500
#define PING_MS      15000
#define RATE_SAMPLES 20 /* of EACH_MS: the rate is that of the last ten seconds */

struct watching {
    struct run_id id;
    struct run_view view;
    struct sample {
        int64_t at_ms, finished;
    } samples[RATE_SAMPLES];
    size_t count; /* taken so far */
    int64_t sent_ms;
    bool degraded;     /* as last told */
    struct reason why; /* as last seen; its texts are in the two below */
    char cause[64], words[RUN_REASON_BYTES_MAX + 1];
};

/* The texts of a view end with the look that read them. True: it is another reason than before. */
static bool note_reason(struct watching *w)
{
    const struct reason *r = &w->view.why;
    bool news = !reason_same(r, &w->why);
    snprintf(w->cause, sizeof w->cause, "%.*s", STR_ARG(r->cause));
    snprintf(w->words, sizeof w->words, "%.*s", STR_ARG(r->words));
    w->why = *r;
    w->why.cause = str_of(w->cause);
    w->why.words = str_of(w->words);
    return news;
}

static bool note_degraded(struct watching *w, const struct node *n)
{
    bool was = w->degraded;
    w->degraded = w->view.degraded || sql_pool_away(n->sql);
    return was != w->degraded;
}

/* Papers in 1,000 seconds. */
static int64_t rate_of(struct watching *w, int64_t now_ms)
{
    struct sample *slot = &w->samples[w->count % RATE_SAMPLES];
    const struct sample *first = w->count < RATE_SAMPLES ? &w->samples[0] : slot;
    struct sample oldest = w->count ? *first : (struct sample){now_ms, w->view.finished};
    *slot = (struct sample){now_ms, w->view.finished};
    w->count++;
    int64_t ms = now_ms - oldest.at_ms, papers = w->view.finished - oldest.finished;
    return w->view.state == RUN_RUNNING && ms > 0 && papers > 0 ? papers * 1000000 / ms : 0;
}

static int send(struct task *t, struct http_exchange *x, struct watching *w, const char *event,
                int64_t rate)
{
    struct buf b;
    struct json_writer j;
    jw_begin(&j, &b);
    api_put_progress(t, &j, &w->view);
    jw_key(&j, STR("papers_per_second"));
    jw_raw(&j, str_printf(task_arena(t), "%lld.%lld", (long long)(rate / 1000),
                          (long long)(rate % 1000 / 100)));
    if (w->degraded)
        jw_put_bool(&j, "degraded", true);
    int err = sse_send(t, x, event, jw_finish(&j, task_arena(t)));
    w->sent_ms = loop_now_ms(task_loop(t));
    return err;
}

static bool same(const struct run_view *a, const struct run_view *b)
{
    return a->finished == b->finished && a->failed == b->failed && a->workers == b->workers;
}

/* Sends what has changed since the last look. */
static int look(struct task *t, struct http_exchange *x, const struct node *n, struct watching *w)
{
    const struct runs *r = n->runs;
    struct run_view before = w->view, now = before;
    now.degraded = false;
    int err = run_progress(t, r, w->id, &now);
    bool changed = err || now.state != before.state;
    if (changed)
        err = run_view(t, r, w->id, &now); /* what was promised, and its reason */
    if (err)
        return err;
    standing_tell(t, n->standing, &w->id, &now, 1);
    w->view = now;
    bool explained = note_reason(w);
    explained = note_degraded(w, n) || explained;
    int64_t rate = rate_of(w, loop_now_ms(task_loop(t)));
    if (now.state != before.state)
        return send(t, x, w, "state", rate);
    if (explained || !same(&now, &before))
        return send(t, x, w, "progress", rate);
    bool silent = loop_now_ms(task_loop(t)) - w->sent_ms >= PING_MS; /* heartbeat */
    w->sent_ms = silent ? loop_now_ms(task_loop(t)) : w->sent_ms;
    return silent ? sse_ping(t, x) : 0;
}

static int watch(struct task *t, struct api_call *c, struct watching *w, struct api_stream *s)
{
    int err = sse_begin(t, c->x);
    if (!err)
        err = send(t, c->x, w, "state", rate_of(w, loop_now_ms(task_loop(t))));
    while (!err && !run_state_final(w->view.state) && !http_draining(c->x) && !http_gone(c->x)) {
        err = backoff_wait(t, &(struct backoff){.ms = EACH_MS});
        struct task_scope scope = task_scope(t);
        if (!err)
            err = look(t, c->x, c->node, w);
        api_stream_keep(t, c->node, s);
        task_scope_end(t, scope);
    }
    return err;
}

int screen_events(struct task *t, struct api_call *c, struct json_writer *unused)
{
    (void)unused;
    struct watching w = {.id = {c->session.uid, http_param(c->x, "id")}};
    struct api_stream s;
    int err = run_view(t, c->node->runs, w.id, &w.view);
    if (!err)
        err = api_stream_open(t, c, &s);
    if (err)
        return err;
    standing_tell(t, c->node->standing, &w.id, &w.view, 1);
    (void)note_reason(&w);
    (void)note_degraded(&w, c->node);
    c->replied = true;
    err = watch(t, c, &w, &s);
    api_stream_close(t, c->node, &s);
    return err;
}
