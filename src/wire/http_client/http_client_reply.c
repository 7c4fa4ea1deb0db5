#include "wire/http_client/http_client_reply.h"

#include "base/ascii.h"
#include "wire/http_server/http_field.h"

#define RETRY_AFTER_MAX_S (366 * 24 * 3600) /* more is nonsense and would overflow */
#define BODY_AHEAD_BYTES  65536             /* of an announced body; more only once it comes */

void http_reply_head_init(struct http_reply_head *h)
{
    *h = (struct http_reply_head){.retry_after_ms = -1};
}

static bool all_digits(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!ascii_is_digit(s.p[i]))
            return false;
    }
    return s.n > 0;
}

static int64_t clamp(int64_t v, int64_t least, int64_t most)
{
    return v < least ? least : v > most ? most : v;
}

int64_t http_retry_after_ms(struct str value, int64_t wall_ms)
{
    int64_t seconds;
    if (http_date_parse(value, &seconds))
        return clamp(seconds * 1000 - wall_ms, 0, RETRY_AFTER_MAX_S * INT64_C(1000));
    if (!all_digits(value))
        return -1;
    if (!str_to_i64(value, &seconds))
        seconds = RETRY_AFTER_MAX_S; /* too long for an integer */
    return clamp(seconds, 0, RETRY_AFTER_MAX_S) * 1000;
}

/* "HTTP/1.1 200 OK", "HTTP/2 200": http_plain_parse.c has checked the form. */
static void take_status_line(struct http_reply_head *h, struct str line)
{
    http_reply_head_init(h);
    struct str version = str_cut(&line, ' ');
    int64_t status = 0;
    if (line.p)
        (void)str_to_i64(str_cut(&line, ' '), &status);
    h->status = (int)clamp(status, 0, 999);
    h->version = str_eq(version, STR("HTTP/1.0")) ? 10 : str_eq(version, STR("HTTP/1.1")) ? 11 : 20;
}

static struct str without_line_end(struct str line)
{
    while (line.n > 0 && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
        line.n--;
    return line;
}

void http_reply_head_line(struct http_reply_head *h, struct arena *a, struct str line,
                          int64_t wall_ms)
{
    line = without_line_end(line);
    if (str_starts(line, STR("HTTP/"))) {
        take_status_line(h, line);
        return;
    }
    struct str value = line, name = str_cut(&value, ':');
    if (!value.p)
        return;
    value = str_trim(value);
    if (str_ieq(name, STR("content-type")))
        h->content_type = str_dup(a, value);
    else if (str_ieq(name, STR("location")))
        h->location = str_dup(a, value);
    else if (str_ieq(name, STR("retry-after")))
        h->retry_after_ms = http_retry_after_ms(value, wall_ms);
}

void http_reply_body_add(struct http_reply_body *b, struct arena *a, struct str piece,
                         uint64_t ahead)
{
    size_t need = b->n + piece.n + 1;
    if (need > b->cap) {
        size_t most = need > BODY_AHEAD_BYTES ? need : BODY_AHEAD_BYTES;
        if (ahead == UINT64_MAX)
            ahead = need;
        size_t cap = need + (ahead < most ? (size_t)ahead : most);
        b->p = b->p ? arena_grow(a, b->p, b->cap, cap) : arena_alloc(a, cap);
        b->cap = cap;
    }
    memcpy(b->p + b->n, piece.p, piece.n);
    b->n += piece.n;
    b->p[b->n] = '\0';
}
