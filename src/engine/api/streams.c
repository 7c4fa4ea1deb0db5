#include "engine/api/streams.h"

#include "base/sha256.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

/* *fits is true while Redis does not answer. */
static int hold(struct task *t, const struct node *n, struct api_stream *s, bool *fits)
{
    struct arena *a = task_arena(t);
    int64_t held = 1;
    int err = SCRIPT_NUMBER(t, n->redis, stream_open, &held, .streams = key_streams(a, s->uid),
                            .id = str_of(s->id), .most = str_int(a, STREAMS_MAX),
                            .lease_ms = str_int(a, STREAM_LEASE_MS));
    s->renewed_ms = loop_now_ms(task_loop(t));
    *fits = err || held;
    return err == ERR_CANCELED ? err : 0;
}

int api_stream_open(struct task *t, struct api_call *c, struct api_stream *out)
{
    uint8_t bytes[(STREAM_ID_BYTES - 1) / 2];
    bool fits;
    *out = (struct api_stream){.uid = c->admin ? 0 : c->session.uid}; /* admins: all together */
    loop_secret(task_loop(t), bytes, sizeof bytes);
    hex_write(bytes, sizeof bytes, out->id);
    int err = hold(t, c->node, out, &fits);
    if (!err && !fits)
        err = task_fail(t, ERR_RATE, "you have %d event streams open; close a page, or wait %d s",
                        STREAMS_MAX, STREAM_LEASE_MS / 1000);
    return err;
}

void api_stream_keep(struct task *t, const struct node *n, struct api_stream *s)
{
    bool unused;
    if (loop_now_ms(task_loop(t)) - s->renewed_ms >= STREAM_RENEW_MS)
        (void)!hold(t, n, s, &unused);
}

void api_stream_close(struct task *t, const struct node *n, const struct api_stream *s)
{
    struct str key = key_streams(task_arena(t), s->uid);
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (redis_call(t, n->redis, key, NULL, STR("ZREM"), key, str_of(s->id)))
        (void)task_fail(t, 0, "%s", text); /* its lease ends */
}
