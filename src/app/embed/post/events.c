/* How far posts are, as server-sent events:
 *
 *     event: progress   data: {"id", "rag_status", "rag_error", "reason_code",
 *                             "progress": {"done", "total"}}: chunks
 *     event: state      data: the same; when rag_status has changed
 *
 * Of one post: its state at the beginning; the stream ends when it is completed or failed. Of all
 * posts of a user, or for an admin of all users: those that are queued or in work, the first
 * WATCHED_MAX of them, and what becomes of them; it does not end. Both end when the node drains. */
#include <stdio.h>

#include "app/embed/post/posts_private.h"
#include "app/embed/post/routes.h"
#include "engine/api/streams.h"
#include "loop/backoff.h"

#define EACH_MS     500
#define PING_MS     15000
#define WATCHED_MAX 100
#define SEEN_S      "3" /* a post that came and was done between two looks is seen for so long */

struct seen { /* of a post, as last sent */
    int64_t id, version, done, total;
    char status[16], reason[32];
    bool there; /* it was found by the last look */
};

struct watching {
    struct post_caller who;
    int64_t sent_ms;
    struct seen posts[2 * WATCHED_MAX];
    size_t count;
};

static int send(struct task *t, struct http_exchange *x, struct watching *w, const char *event,
                const struct post *p)
{
    struct buf b;
    struct json_writer j;
    jw_begin(&j, &b);
    jw_put_int(&j, "id", p->id);
    jw_put_str(&j, "rag_status", p->status);
    post_put_status(&j, &w->who, p);
    w->sent_ms = loop_now_ms(task_loop(t));
    return sse_send(t, x, event, jw_finish(&j, task_arena(t)));
}

/* What is to be sent of it; NULL: nothing. */
static const char *news(const struct seen *s, const struct post *p)
{
    if (s->version != p->version || !str_eq(p->status, str_of(s->status)))
        return "state";
    bool same = s->done == p->chunks_done && s->total == p->chunks &&
                str_eq(p->reason.p ? p->reason : STR(""), str_of(s->reason));
    return same ? NULL : "progress";
}

static void note(struct seen *s, const struct post *p)
{
    *s = (struct seen){.id = p->id,
                       .version = p->version,
                       .done = p->chunks_done,
                       .total = p->chunks,
                       .there = s->there};
    snprintf(s->status, sizeof s->status, "%.*s", STR_ARG(p->status));
    snprintf(s->reason, sizeof s->reason, "%.*s", STR_ARG(p->reason));
}

static int ping(struct task *t, struct http_exchange *x, struct watching *w)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (now_ms - w->sent_ms < PING_MS)
        return 0;
    w->sent_ms = now_ms;
    return sse_ping(t, x);
}

static bool goes_on(const struct api_call *c)
{
    return !http_draining(c->x) && !http_gone(c->x);
}

/* Until look gives *ended, or an error. */
static int stream(struct task *t, struct api_call *c, struct watching *w,
                  int (*look)(struct task *t, struct api_call *c, struct watching *w, bool *ended))
{
    struct api_stream s;
    bool ended = false;
    int err = api_stream_open(t, c, &s);
    if (err)
        return err;
    c->replied = true;
    err = sse_begin(t, c->x);
    while (!err && !ended && goes_on(c)) {
        struct task_scope scope = task_scope(t);
        err = look(t, c, w, &ended);
        if (!err)
            err = ping(t, c->x, w);
        api_stream_keep(t, c->node, &s);
        task_scope_end(t, scope);
        if (!err && !ended)
            err = backoff_wait(t, &(struct backoff){.ms = EACH_MS});
    }
    api_stream_close(t, c->node, &s);
    return err;
}

/* Sends what has changed of it since the last look. */
static int tell(struct task *t, struct api_call *c, struct watching *w, struct seen *s,
                const struct post *p)
{
    const char *event = news(s, p);
    note(s, p);
    return event ? send(t, c->x, w, event, p) : 0;
}

/* --- one --- */

static int look_one(struct task *t, struct api_call *c, struct watching *w, bool *ended)
{
    struct seen *s = &w->posts[0];
    struct post p;
    size_t found;
    int err = post_some(t, c->node->posts, w->who, &s->id, 1, &p, &found);
    if (!err && !found)
        err = post_none(t);
    if (err)
        return err;
    *ended = str_eq(p.status, STR("completed")) || str_eq(p.status, STR("failed"));
    return tell(t, c, w, s, &p);
}

int post_events(struct task *t, struct api_call *c, struct json_writer *unused)
{
    struct post p;
    (void)unused;
    int err = post_of_path(t, c, &p);
    if (err)
        return err;
    struct watching *w = ARENA_NEW(task_arena(t), struct watching);
    *w = (struct watching){.who = post_caller_of(c), .posts = {{.id = p.id}}, .count = 1};
    return stream(t, c, w, look_one);
}

/* --- all --- */

#define OF_CALLER " FROM tb_post WHERE deleted IS NULL AND (uid = ? OR ?) AND "
#define FIRST     " ORDER BY position LIMIT ?"

static int find_news(struct task *t, struct api_call *c, const struct watching *w,
                     struct sql_rows *out)
{
    struct sql_value uid = sql_int(w->who.uid), admin = sql_int(w->who.admin),
                     most = sql_int(WATCHED_MAX);
    return sql_call(t, c->node->sql, out,
                    "(SELECT id" OF_CALLER "rag_status IN " POST_OPEN FIRST ") UNION"
                    " (SELECT id" OF_CALLER "queued_at > UTC_TIMESTAMP(3) - INTERVAL " SEEN_S
                    " SECOND" FIRST ")",
                    uid, admin, most, uid, admin, most);
}

static struct seen *seen_of(struct watching *w, int64_t id)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->posts[i].id == id)
            return &w->posts[i];
    if (w->count == sizeof w->posts / sizeof *w->posts)
        return NULL;
    w->posts[w->count] = (struct seen){.id = id};
    return &w->posts[w->count++];
}

/* Those that were not found are told of once more, and forgotten. */
static int tell_all(struct task *t, struct api_call *c, struct watching *w)
{
    int64_t ids[2 * WATCHED_MAX];
    struct post *list = ARENA_ARRAY(task_arena(t), struct post, 2 * WATCHED_MAX);
    size_t found = 0, n = 0;
    for (size_t i = 0; i < w->count; i++)
        ids[i] = w->posts[i].id;
    int err = post_some(t, c->node->posts, w->who, ids, w->count, list, &found);
    for (size_t i = 0; !err && i < found; i++) {
        struct seen *s = seen_of(w, list[i].id);
        err = s ? tell(t, c, w, s, &list[i]) : 0;
    }
    for (size_t i = 0; i < w->count; i++)
        if (w->posts[i].there)
            w->posts[n++] = w->posts[i];
    w->count = n;
    return err;
}

static int look_all(struct task *t, struct api_call *c, struct watching *w, bool *ended)
{
    struct sql_rows r;
    (void)ended;
    int err = find_news(t, c, w, &r);
    if (err)
        return err;
    for (size_t i = 0; i < w->count; i++)
        w->posts[i].there = false;
    for (size_t i = 0; i < r.count; i++) {
        struct seen *s = seen_of(w, r.cells[i].i);
        if (s)
            s->there = true;
    }
    return tell_all(t, c, w);
}

int post_events_all(struct task *t, struct api_call *c, struct json_writer *unused)
{
    (void)unused;
    struct watching *w = ARENA_NEW(task_arena(t), struct watching);
    *w = (struct watching){.who = post_caller_of(c)};
    return stream(t, c, w, look_all);
}
