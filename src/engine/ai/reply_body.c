/* Replies in wrappings that were not asked for: compressed, behind a byte order mark, or as a
 * stream of events. */
#include <zlib.h>

#include "engine/ai/reply.h"

#define GZIP_WINDOW (15 + 16) /* of zlib: the largest, with the head and the checksum of gzip */

/* --- gzip --- */

static bool is_gzip(struct str s)
{
    return str_starts(s, STR("\x1F\x8B"));
}

/* p == NULL: it is damaged, or larger than a reply may be. */
static struct str inflated(struct arena *a, struct str body)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)body.p, .avail_in = (uInt)body.n};
    struct str out = STR_NULL;
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return out;
    struct buf b;
    buf_init(&b);
    int status = Z_OK;
    while (status == Z_OK && b.len <= AI_REPLY_BYTES_MAX) {
        const size_t step = 16384;
        z.next_out = (Bytef *)buf_reserve(&b, step);
        z.avail_out = (uInt)step;
        status = inflate(&z, Z_NO_FLUSH);
        buf_added(&b, step - z.avail_out);
    }
    if (status == Z_STREAM_END && b.len <= AI_REPLY_BYTES_MAX)
        out = str_dup(a, buf_str(&b));
    inflateEnd(&z);
    buf_release(&b);
    return out;
}

/* --- events --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_events(struct str s)
{
    return str_starts(s, STR("data:")) || str_starts(s, STR("event:")) || str_starts(s, STR(":")) ||
           str_starts(s, STR("id:")) || str_starts(s, STR("retry:"));
}

/* What the events of a chat say together. */
struct chat {
    struct buf content, reasoning;
    struct str finish;
    int64_t tokens;
    struct str whole; /* an event that is a reply, or an error, by itself */
    bool any;
};

static void add_piece(struct buf *b, const struct json *text)
{
    struct str s = json_str(text);
    if (s.n && b->len + s.n <= AI_REPLY_BYTES_MAX)
        buf_add_str(b, s);
}

static void take_event(struct chat *c, struct str text, const struct json *event)
{
    const struct json *choice = json_first(json_get(event, "choices"));
    const struct json *delta = json_get(choice, "delta");
    int64_t tokens;
    c->any = true;
    if (json_get(event, "error") || json_get(choice, "message") || json_get(event, "data"))
        c->whole = text;
    add_piece(&c->content, json_get(delta, "content"));
    add_piece(&c->reasoning, json_get(delta, "reasoning_content"));
    add_piece(&c->reasoning, json_get(delta, "reasoning"));
    if (json_str(json_get(choice, "finish_reason")).n)
        c->finish = json_str(json_get(choice, "finish_reason"));
    if (json_int(json_get(json_get(event, "usage"), "total_tokens"), &tokens))
        c->tokens = tokens;
}

static struct str write_chat(struct arena *a, const struct chat *c)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    jw_key(&w, STR("choices"));
    jw_array(&w);
    jw_object(&w);
    jw_key(&w, STR("message"));
    jw_object(&w);
    jw_put_str(&w, "content", buf_str(&c->content));
    jw_put_str(&w, "reasoning_content", buf_str(&c->reasoning));
    jw_end_object(&w);
    jw_put_str(&w, "finish_reason", c->finish);
    jw_end_object(&w);
    jw_end_array(&w);
    jw_key(&w, STR("usage"));
    jw_object(&w);
    jw_put_int(&w, "total_tokens", c->tokens);
    jw_end_object(&w);
    jw_end_object(&w);
    struct str out = str_dup(a, buf_str(&b));
    buf_release(&b);
    return out;
}

/* Events that are no JSON ("[DONE]") and lines besides data are left out. */
static struct str joined(struct arena *a, struct str body)
{
    struct chat c = {.finish = STR_NULL};
    struct str rest = body;
    buf_init(&c.content);
    buf_init(&c.reasoning);
    while (rest.p) {
        const struct json *event;
        struct str line = str_cut(&rest, '\n');
        if (!str_starts(line, STR("data:")))
            continue;
        line = str_trim_if(str_skip(line, strlen("data:")), is_blank);
        if (json_parse(a, line, &event, NULL) == 0 && event->type == JSON_OBJECT)
            take_event(&c, line, event);
    }
    if (c.any)
        body = c.whole.p ? c.whole : write_chat(a, &c);
    buf_release(&c.content);
    buf_release(&c.reasoning);
    return body;
}

struct str ai_reply_body(struct arena *a, struct str body)
{
    if (is_gzip(body)) {
        struct str plain = inflated(a, body);
        body = plain.p ? plain : body;
    }
    if (str_starts(body, STR("\uFEFF")))
        body = str_skip(body, strlen("\uFEFF"));
    return is_events(str_trim_if(body, is_blank)) ? joined(a, body) : body;
}
