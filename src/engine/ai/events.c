#include "engine/ai/events.h"

#include <stdio.h>

#include "engine/ai/reply.h"

void ai_events_init(struct ai_events *e)
{
    *e = (struct ai_events){.form = EVENTS_UNKNOWN};
    buf_init(&e->raw);
    buf_init(&e->content);
    buf_init(&e->reasoning);
    buf_init(&e->whole);
    arena_init(&e->arena);
}

void ai_events_release(struct ai_events *e)
{
    buf_release(&e->raw);
    buf_release(&e->content);
    buf_release(&e->reasoning);
    buf_release(&e->whole);
    arena_release(&e->arena);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* --- one event --- */

static int add_text(struct buf *b, const struct json *text)
{
    struct str s = json_str(text);
    if (b->len + s.n > AI_REPLY_BYTES_MAX)
        return ERR_LIMIT;
    if (s.n)
        buf_add_str(b, s);
    return 0;
}

static void keep_word(char *out, size_t bytes, const struct json *text)
{
    struct str s = json_str(text);
    if (s.n)
        snprintf(out, bytes, "%.*s", STR_ARG(s));
}

static void keep_whole(struct ai_events *e, struct str text)
{
    buf_clear(&e->whole);
    buf_add_str(&e->whole, text);
}

static bool has(const struct json *object, const char *name)
{
    const struct json *j = json_get(object, name);
    return j && j->type != JSON_NULL;
}

static int take_event(struct ai_events *e, struct str text, const struct json *event)
{
    const struct json *choice = json_first(json_get(event, "choices"));
    const struct json *delta = json_get(choice, "delta");
    int64_t tokens;
    e->count++;
    if (has(event, "error") || has(choice, "message") || has(event, "data"))
        keep_whole(e, text);
    int err = add_text(&e->content, json_get(delta, "content"));
    if (!err)
        err = add_text(&e->reasoning, json_get(delta, "reasoning_content"));
    if (!err)
        err = add_text(&e->reasoning, json_get(delta, "reasoning"));
    keep_word(e->finish, sizeof e->finish, json_get(choice, "finish_reason"));
    keep_word(e->fingerprint, sizeof e->fingerprint, json_get(event, "system_fingerprint"));
    if (json_int(json_get(json_get(event, "usage"), "total_tokens"), &tokens))
        e->tokens = tokens;
    return err;
}

/* --- lines --- */

/* Lines besides data are left out. One that is cut off at the end of the reply may say nothing. */
static int take_line(struct ai_events *e, struct str line, bool ended)
{
    const struct json *event;
    if (!str_starts(line, STR("data:")))
        return 0;
    line = str_trim_if(str_skip(line, strlen("data:")), is_blank);
    e->done = e->done || str_eq(line, STR("[DONE]"));
    struct arena_mark mark = arena_mark(&e->arena);
    int err = 0;
    if (json_parse(&e->arena, line, &event, NULL) == 0 && event->type == JSON_OBJECT)
        err = take_event(e, line, event);
    else if (ended && str_starts(line, STR("{")) && e->whole.len == 0)
        keep_whole(e, line);
    arena_reset(&e->arena, mark);
    return err;
}

static struct str skip_mark(struct str s)
{
    return str_starts(s, STR("\uFEFF")) ? str_skip(s, strlen("\uFEFF")) : s;
}

bool ai_events_are(struct str line)
{
    return str_starts(line, STR("data:")) || str_starts(line, STR("event:")) ||
           str_starts(line, STR(":")) || str_starts(line, STR("id:")) ||
           str_starts(line, STR("retry:"));
}

/* The first line that has text decides. It is in raw. */
static int take_first(struct ai_events *e, bool ended)
{
    struct str line = str_trim_if(skip_mark(buf_str(&e->raw)), is_blank);
    if (line.n && !ai_events_are(line)) {
        e->form = EVENTS_NO;
        return 0;
    }
    int err = 0;
    if (line.n) {
        e->form = EVENTS_YES;
        err = take_line(e, line, ended);
    }
    buf_clear(&e->raw);
    return err;
}

static int keep_raw(struct ai_events *e, struct str s)
{
    if (s.n > AI_REPLY_BYTES_MAX - e->raw.len)
        return ERR_LIMIT;
    if (s.n)
        buf_add_str(&e->raw, s);
    return 0;
}

/* A piece that ends a line, with its end. */
static int end_line(struct ai_events *e, struct str s)
{
    if (e->form == EVENTS_YES && e->raw.len == 0)
        return s.n <= AI_REPLY_BYTES_MAX ? take_line(e, s, true) : ERR_LIMIT;
    int err = keep_raw(e, s);
    if (err || e->form == EVENTS_UNKNOWN)
        return err ? err : take_first(e, true);
    err = take_line(e, buf_str(&e->raw), true);
    buf_clear(&e->raw);
    return err;
}

int ai_events_add(struct ai_events *e, struct str piece)
{
    int err = 0;
    while (piece.n && !err) {
        const char *end = e->form == EVENTS_NO ? NULL : memchr(piece.p, '\n', piece.n);
        if (!end)
            return keep_raw(e, piece);
        size_t n = (size_t)(end + 1 - piece.p);
        err = end_line(e, str_from(piece.p, n));
        piece = str_skip(piece, n);
    }
    return err;
}

/* --- all of it --- */

static struct str write_reply(const struct ai_events *e, struct arena *a)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_begin(&w, &b);
    if (*e->fingerprint)
        jw_put_str(&w, "system_fingerprint", str_of(e->fingerprint));
    jw_put_array(&w, "choices");
    jw_object(&w);
    jw_put_object(&w, "message");
    jw_put_str(&w, "content", buf_str(&e->content));
    jw_put_str(&w, "reasoning_content", buf_str(&e->reasoning));
    jw_end_object(&w);
    jw_put_str(&w, "finish_reason", *e->finish ? str_of(e->finish) : STR_NULL);
    jw_end_object(&w);
    jw_end_array(&w);
    jw_put_object(&w, "usage");
    jw_put_int(&w, "total_tokens", e->tokens);
    jw_end_object(&w);
    return jw_finish(&w, a);
}

struct str ai_events_body(struct ai_events *e, struct arena *a)
{
    int ignored = 0; /* what does not fit any more is left out */
    if (e->form == EVENTS_UNKNOWN)
        ignored = take_first(e, false);
    else if (e->form == EVENTS_YES)
        ignored = take_line(e, buf_str(&e->raw), false);
    (void)ignored;
    if (e->form == EVENTS_YES)
        buf_clear(&e->raw);
    if (e->whole.len)
        return str_dup(a, buf_str(&e->whole));
    return e->count ? write_reply(e, a) : str_dup(a, buf_str(&e->raw));
}

bool ai_events_cut(const struct ai_events *e)
{
    return e->form == EVENTS_YES && !*e->finish && !e->done && e->whole.len == 0;
}
