/* Replies in wrappings that were not asked for: compressed, behind a byte order mark, or as a
 * stream of events. */
#include <zlib.h>

#include "engine/ai/events.h"
#include "engine/ai/reply.h"

#define GZIP_WINDOW (15 + 16) /* of zlib: the largest, with the head and the checksum of gzip */

/* --- gzip --- */

static bool is_gzip(struct str s)
{
    return str_starts(s, STR("\x1F\x8B"));
}

/* p == NULL: it is damaged, or larger. */
static struct str inflated(struct arena *a, struct str body, size_t bytes_max)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)body.p, .avail_in = (uInt)body.n};
    struct str out = STR_NULL;
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return out;
    struct buf b;
    buf_init(&b);
    int status = Z_OK;
    while (status == Z_OK && b.len <= bytes_max) {
        const size_t step = 16384;
        z.next_out = (Bytef *)buf_reserve(&b, step);
        z.avail_out = (uInt)step;
        status = inflate(&z, Z_NO_FLUSH);
        buf_added(&b, step - z.avail_out);
    }
    if (status == Z_STREAM_END && b.len <= bytes_max)
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

/* What the events say together. */
static struct str joined(struct arena *a, struct str body)
{
    struct ai_events e;
    ai_events_init(&e);
    if (ai_events_add(&e, body) == 0) {
        struct str reply = ai_events_body(&e, a);
        body = reply.n ? reply : body;
    }
    ai_events_release(&e);
    return body;
}

struct str ai_reply_plain(struct arena *a, struct str body, size_t bytes_max)
{
    if (is_gzip(body)) {
        struct str plain = inflated(a, body, bytes_max);
        body = plain.p ? plain : body;
    }
    return str_starts(body, STR("\uFEFF")) ? str_skip(body, strlen("\uFEFF")) : body;
}

struct str ai_reply_body(struct arena *a, struct str body)
{
    body = ai_reply_plain(a, body, AI_REPLY_BYTES_MAX);
    return ai_events_are(str_trim_if(body, is_blank)) ? joined(a, body) : body;
}
