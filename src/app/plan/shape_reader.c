#include <math.h>
#include <stdarg.h>

#include "app/plan/shape_private.h"
#include "base/err.h"
#include "engine/ai/reply.h"

int reader_fail(const struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(r->a, fmt, ap);
    va_end(ap);
    *r->complaint = *r->where ? arena_printf(r->a, "%s: %s", r->where, what) : what;
    return ERR_INVALID;
}

struct reader reader_in(const struct reader *r, const char *fmt, ...)
{
    struct reader part = *r;
    va_list ap;
    va_start(ap, fmt);
    part.where = arena_vprintf(r->a, fmt, ap);
    va_end(ap);
    if (*r->where)
        part.where = arena_printf(r->a, "%s, %s", r->where, part.where);
    return part;
}

static size_t chars(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

const char *reader_shown(const struct reader *r, const struct json *j)
{
    return ai_shown(r->a, j);
}

static bool is_absent(const struct json *j)
{
    return !j || j->type == JSON_NULL;
}

int reader_text(const struct reader *r, const struct json *object, const char *name, size_t least,
                size_t most, struct str *out)
{
    const struct json *j = json_get(object, name);
    check(most <= AI_LINE_CHARS_MAX);
    if (least == 0 && is_absent(j)) {
        *out = STR("");
        return 0;
    }
    struct str s = json_str(j);
    if (!s.p || chars(s) > most)
        return reader_fail(r, "\"%s\" must be a text of at most %zu characters, not %s", name, most,
                           reader_shown(r, j));
    *out = ai_line(r->a, s);
    if (out->n < least)
        return reader_fail(r, "\"%s\" must not be empty", name);
    return 0;
}

/* False: it is no number, out of bounds, or has a fraction where none may be. */
static bool scaled(const struct json *j, const struct number *n, int64_t *out)
{
    int64_t i;
    if (json_int(j, &i)) {
        bool within = i >= n->least && i <= n->most;
        *out = within ? i * n->scale : 0;
        return within;
    }
    if (!j || j->type != JSON_REAL || !(j->d >= (double)n->least && j->d <= (double)n->most))
        return false;
    *out = (int64_t)llround(j->d * (double)n->scale);
    return n->scale > 1 || (double)*out == j->d;
}

int reader_number(const struct reader *r, const struct json *object, const struct number *n,
                  int64_t *out)
{
    const struct json *j = json_get(object, n->name);
    int64_t value = 0;
    if (!(n->optional && is_absent(j)) && !scaled(j, n, &value))
        return reader_fail(r, "\"%s\" must be %s from %lld to %lld, not %s", n->name,
                           n->scale == 1 ? "an integer" : "a number", (long long)n->least,
                           (long long)n->most, reader_shown(r, j));
    *out = value;
    return 0;
}
