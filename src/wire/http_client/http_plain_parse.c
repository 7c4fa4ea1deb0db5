#include "wire/http_client/http_plain_parse.h"

#include "base/ascii.h"
#include "wire/http_server/http_field.h"

void http_plain_init(struct http_plain *p, struct arena *a, struct http_plain_limits limits,
                     bool to_head, int64_t wall_ms)
{
    *p = (struct http_plain){.arena = a, .limits = limits, .to_head = to_head, .wall_ms = wall_ms};
    http_reply_head_init(&p->head);
}

static enum http_plain_verdict bad(struct http_plain *p, const char *problem)
{
    p->problem = problem;
    return HTTP_PLAIN_BAD;
}

/* --- the head --- */

/* "HTTP/1.1 200 OK"; some servers leave out the blank before a reason that is empty. */
static bool status_line_valid(struct str line)
{
    if (line.n < 12 || memcmp(line.p, "HTTP/1.", 7) != 0 ||
        (line.p[7] != '0' && line.p[7] != '1') || line.p[8] != ' ')
        return false;
    if (line.p[9] < '1' || line.p[9] > '9' || !ascii_is_digit(line.p[10]) ||
        !ascii_is_digit(line.p[11]))
        return false;
    return line.n == 12 ||
           (line.p[12] == ' ' && http_value_valid(str_from(line.p + 12, line.n - 12)));
}

static enum http_plain_verdict take_length(struct http_plain *p, struct str value)
{
    if (p->framed)
        return bad(p, "two headers say how long the body is");
    if (!http_length_parse(value, &p->left))
        return bad(p, "bad Content-Length");
    p->framed = true;
    p->framing = HTTP_PLAIN_SIZED;
    return HTTP_PLAIN_MORE;
}

static enum http_plain_verdict take_coding(struct http_plain *p, struct str value)
{
    if (p->framed)
        return bad(p, "two headers say how long the body is");
    if (!str_ieq(value, STR("chunked")))
        return bad(p, "a Transfer-Encoding other than chunked");
    if (p->head.version == 10)
        return bad(p, "a Transfer-Encoding in HTTP/1.0");
    p->framed = true;
    p->framing = HTTP_PLAIN_CHUNKED;
    return HTTP_PLAIN_MORE;
}

static enum http_plain_verdict take_field(struct http_plain *p, struct str line)
{
    struct str value = line, name = str_cut(&value, ':');
    /* Folded lines end here, too: they begin with a blank, and no name does. */
    if (!value.p || !http_token_valid(name))
        return bad(p, "bad header name");
    if (!http_value_valid(value))
        return bad(p, "a header has a control character in it");
    if (name.n == 14 && str_ieq(name, STR("content-length")))
        return take_length(p, str_trim(value));
    if (name.n == 17 && str_ieq(name, STR("transfer-encoding")))
        return take_coding(p, str_trim(value));
    if (name.n == 10 && str_ieq(name, STR("connection")))
        p->close = p->close || http_list_has(value, STR("close"));
    else
        http_reply_head_line(&p->head, p->arena, line, p->wall_ms);
    return HTTP_PLAIN_MORE;
}

/* Drops an interim reply; its bytes still count. */
static enum http_plain_verdict pass_over(struct http_plain *p)
{
    if (p->head.status == 101)
        return bad(p, "it switches to another protocol unasked");
    http_reply_head_init(&p->head);
    p->framed = p->close = false;
    p->framing = HTTP_PLAIN_UNTIL_END;
    p->left = 0;
    return HTTP_PLAIN_MORE;
}

static enum http_plain_verdict finish_head(struct http_plain *p)
{
    if (p->head.status < 200)
        return pass_over(p);
    bool bodiless = p->to_head || p->head.status == 204 || p->head.status == 304;
    /* Such a reply ends with its head. But there are servers that send a body nevertheless, and it
     * must not be taken for the next reply. */
    bool suspect = p->framed && !(p->framing == HTTP_PLAIN_SIZED && p->left == 0);
    if (p->head.version == 10 || (bodiless ? suspect : !p->framed))
        p->close = true;
    if (!bodiless && p->framing == HTTP_PLAIN_SIZED && p->left > p->limits.body_bytes)
        return HTTP_PLAIN_LIMIT;
    p->in_body = true;
    p->done = bodiless || (p->framing == HTTP_PLAIN_SIZED && p->left == 0);
    return p->done ? HTTP_PLAIN_END : HTTP_PLAIN_MORE;
}

static enum http_plain_verdict take_line(struct http_plain *p, struct str line)
{
    if (line.n == 0 || line.p[line.n - 1] != '\r')
        return bad(p, "a line feed without a carriage return");
    line.n--;
    if (p->head.status != 0)
        return line.n == 0 ? finish_head(p) : take_field(p, line);
    if (!status_line_valid(line))
        return bad(p, "no status line of HTTP/1.1");
    http_reply_head_line(&p->head, p->arena, line, p->wall_ms);
    return HTTP_PLAIN_MORE;
}

/* What cannot be a status line is often not HTTP and may never send a line feed. */
static bool may_be_status_line(struct str s)
{
    return memcmp(s.p, "HTTP/", s.n < 5 ? s.n : 5) == 0;
}

/* The next line of the head, of in or of in and what came before it. */
static enum http_plain_verdict next_line(struct http_plain *p, struct str in, size_t *used)
{
    size_t room = p->limits.head_bytes - p->head_bytes, n = in.n < room ? in.n : room;
    const char *feed = n > 0 ? memchr(in.p, '\n', n) : NULL;
    struct str line = str_from(in.p, feed ? (size_t)(feed - in.p) : n);
    *used = feed ? line.n + 1 : n;
    p->head_bytes += *used;
    if (p->part.n > 0 || !feed) {
        if (n > 0)
            http_reply_body_add(&p->part, p->arena, line, UINT64_MAX);
        line = str_from(p->part.p, p->part.n);
    }
    if (p->head.status == 0 && line.n > 0 && !may_be_status_line(line))
        return bad(p, "no status line of HTTP/1.1");
    if (!feed)
        return in.n < room ? HTTP_PLAIN_MORE : HTTP_PLAIN_LIMIT;
    p->part.n = 0;
    return take_line(p, line);
}

/* --- the body --- */

static enum http_plain_verdict next_chunk(struct http_plain *p, struct str in, size_t *used,
                                          struct str *data)
{
    switch (http_chunk_next(&p->chunks, in, used, data)) {
    case HTTP_CHUNK_MORE:
        return HTTP_PLAIN_MORE;
    case HTTP_CHUNK_DATA:
        return HTTP_PLAIN_DATA;
    case HTTP_CHUNK_END:
        p->done = true;
        return HTTP_PLAIN_END;
    default:
        return bad(p, "a chunk of the body has no proper size");
    }
}

static enum http_plain_verdict next_data(struct http_plain *p, struct str in, size_t *used,
                                         struct str *data)
{
    *used = 0;
    if (p->framing == HTTP_PLAIN_CHUNKED)
        return next_chunk(p, in, used, data);
    if (in.n == 0)
        return HTTP_PLAIN_MORE;
    if (p->framing == HTTP_PLAIN_SIZED) {
        in.n = in.n < p->left ? in.n : (size_t)p->left;
        p->left -= in.n;
        p->done = p->left == 0;
    }
    *data = in;
    *used = in.n;
    return HTTP_PLAIN_DATA;
}

enum http_plain_verdict http_plain_next(struct http_plain *p, struct str in, size_t *used,
                                        struct str *data)
{
    *used = 0;
    while (!p->in_body) {
        size_t n;
        if (*used == in.n)
            return HTTP_PLAIN_MORE;
        enum http_plain_verdict v = next_line(p, str_from(in.p + *used, in.n - *used), &n);
        *used += n;
        if (v != HTTP_PLAIN_MORE)
            return v;
    }
    if (p->done)
        return HTTP_PLAIN_END;
    size_t n;
    enum http_plain_verdict v = next_data(p, str_from(in.p + *used, in.n - *used), &n, data);
    *used += n;
    if (v != HTTP_PLAIN_DATA)
        return v;
    if (data->n > p->limits.body_bytes - p->body_bytes)
        return HTTP_PLAIN_LIMIT;
    p->body_bytes += data->n;
    return v;
}

bool http_plain_ended(const struct http_plain *p)
{
    return p->in_body && (p->done || p->framing == HTTP_PLAIN_UNTIL_END);
}
