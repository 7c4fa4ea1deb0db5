#include "wire/redis/redis_parse.h"

#include <stdlib.h>

#include "base/buf.h"
#include "tests/tap.h"

/* The reply in text, or NULL and why: 0 for incomplete, ERR_PROTO. */
static const struct redis_reply *parse(struct arena *a, struct str text, int *got)
{
    struct redis_scan s;
    redis_scan_init(&s);
    *got = redis_scan(&s, text);
    return *got == 1 ? redis_build(a, &s, text.p) : NULL;
}

/* {1,"a",nil,…}: a form in which replies can be compared. */
static void show(struct buf *out, const struct redis_reply *r)
{
    switch (r->type) {
    case REDIS_NIL:
        buf_add_lit(out, "nil");
        break;
    case REDIS_STATUS:
        buf_printf(out, "+%s", r->str.p);
        break;
    case REDIS_ERROR:
        buf_printf(out, "-%s", r->str.p);
        break;
    case REDIS_STRING:
        buf_printf(out, "\"%.*s\"", STR_ARG(r->str));
        break;
    case REDIS_INT:
        buf_add_int(out, r->integer);
        break;
    case REDIS_ARRAY:
        buf_add_char(out, '{');
        for (size_t i = 0; i < r->count; i++) {
            if (i)
                buf_add_char(out, ',');
            show(out, r->items[i]);
        }
        buf_add_char(out, '}');
        break;
    }
}

#define MIXED "*5\r\n:1\r\n$2\r\nab\r\n*2\r\n+OK\r\n-ERR no\r\n$-1\r\n*0\r\n"

static const struct {
    const char *text, *want;
} good[] = {
    {"+OK\r\n", "+OK"},
    {"+\r\n", "+"},
    {"-ERR bad thing\r\n", "-ERR bad thing"},
    {":0\r\n", "0"},
    {":-42\r\n", "-42"},
    {":9223372036854775807\r\n", "9223372036854775807"},
    {":-9223372036854775808\r\n", "-9223372036854775808"},
    {"$0\r\n\r\n", "\"\""},
    {"$6\r\na\r\nb\r\n\r\n", "\"a\r\nb\r\n\""},
    {"$-1\r\n", "nil"},
    {"*-1\r\n", "nil"},
    {"*0\r\n", "{}"},
    {MIXED, "{1,\"ab\",{+OK,-ERR no},nil,{}}"},
    {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:5\r\n", "{{{{{{{{5}}}}}}}}"},
    {"*2\r\n*2\r\n:1\r\n:2\r\n*1\r\n:3\r\n", "{{1,2},{3}}"},
};

static const char *const bad[] = {
    "hello\r\n",
    "\r\n",
    "+OK\rX",
    ":\r\n",
    ":1x\r\n",
    ":+1\r\n",
    ":1\rx",
    ":9223372036854775808\r\n",
    ":1111111111111111111111",
    "$\r\n",
    "$-2\r\n",
    "$536870913\r\n",
    "$1\r\nab\r\n",
    "$1\r\na\rb",
    "*-2\r\n",
    "*16777217\r\n",
    "*1\r\n!\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:5\r\n",
    "%1\r\n+k\r\n+v\r\n",
    "_\r\n",
};

static void takes_good(struct arena *a)
{
    struct buf out;
    buf_init(&out);
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        int got;
        const struct redis_reply *r = parse(a, str_of(good[i].text), &got);
        buf_clear(&out);
        if (r)
            show(&out, r);
        is_str(buf_str(&out), str_of(good[i].want), "reply %zu", i);
    }
    buf_release(&out);
}

static void refuses_bad(struct arena *a)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        int got;
        parse(a, str_of(bad[i]), &got);
        is_int(got, ERR_PROTO, "broken reply %zu", i);
    }
}

/* Cut off anywhere, a reply is incomplete; with the rest it is the same as in one piece. */
static void joins_pieces(struct arena *a)
{
    struct str text = STR(MIXED);
    bool incomplete = true, same = true;
    for (size_t cut = 0; cut < text.n; cut++) {
        struct redis_scan s;
        redis_scan_init(&s);
        incomplete &= redis_scan(&s, str_from(text.p, cut)) == 0;
        same &= redis_scan(&s, text) == 1 && s.pos == text.n && s.nodes == 8;
    }
    ok(incomplete, "a reply that was cut off is incomplete");
    ok(same, "and complete with the rest");

    struct redis_scan s;
    redis_scan_init(&s);
    int got = 0;
    for (size_t n = 1; n <= text.n && got == 0; n++)
        got = redis_scan(&s, str_from(text.p, n));
    struct buf out;
    buf_init(&out);
    show(&out, redis_build(a, &s, text.p));
    is_str(buf_str(&out), STR("{1,\"ab\",{+OK,-ERR no},nil,{}}"), "byte by byte");
    buf_release(&out);
}

/* Bytes scanned once are not read again: they may even be overwritten. */
static void does_not_rescan(void)
{
    struct buf text;
    buf_init(&text);
    buf_add_lit(&text, "*1000\r\n");
    for (int i = 0; i < 1000; i++)
        buf_add_lit(&text, "$3\r\nabc\r\n");
    struct redis_scan s;
    redis_scan_init(&s);
    is_int(redis_scan(&s, str_from(text.p, text.len - 4)), 0, "all but the last item");
    is_int((int64_t)s.pos, (int64_t)text.len - 9, "are done with");
    memset(text.p, '!', s.pos);
    is_int(redis_scan(&s, buf_str(&text)), 1, "only the last item was looked at");

    buf_clear(&text);
    buf_add_lit(&text, "+");
    redis_scan_init(&s);
    for (int i = 0; i < 1000; i++)
        buf_add_char(&text, 'x');
    is_int(redis_scan(&s, buf_str(&text)), 0, "a long status, cut off");
    memset(text.p + 1, '\r', 1000);
    buf_add_lit(&text, "\r\n");
    is_int(redis_scan(&s, buf_str(&text)), 1, "is searched for its end only once");
    buf_release(&text);
}

static void keeps_limits(void)
{
    struct redis_scan s;
    struct buf text;
    buf_init(&text);
    buf_add_lit(&text, "-");
    for (int i = 0; i < REDIS_LINE_MAX; i++)
        buf_add_char(&text, 'x');
    redis_scan_init(&s);
    is_int(redis_scan(&s, buf_str(&text)), ERR_PROTO, "an error without end");

    buf_clear(&text);
    buf_add_lit(&text, "*4096\r\n");
    for (int i = 0; i < 4096; i++) {
        buf_add_lit(&text, "*4096\r\n");
        for (int k = 0; k < 4096; k++)
            buf_add_lit(&text, "*0\r\n");
    }
    redis_scan_init(&s);
    is_int(redis_scan(&s, buf_str(&text)), ERR_PROTO, "more than 2^24 values in all");
    buf_release(&text);

    redis_scan_init(&s);
    is_int(redis_scan(&s, STR("$536870912\r\n")), 0, "512 MB are allowed");
}

/* The reply must not point into the bytes it came from, and strings end with a NUL. */
static void owns_its_bytes(struct arena *a)
{
    char text[] = "*2\r\n$3\r\nabc\r\n+OK\r\n";
    int got;
    const struct redis_reply *r = parse(a, str_of(text), &got);
    memset(text, 'x', sizeof(text));
    is_str(r->items[0]->str, STR("abc"), "a string of its own");
    is_int(r->items[0]->str.p[3], 0, "with a NUL behind it");
    is_int(r->items[1]->str.p[2], 0, "also behind a status");
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    takes_good(&a);
    refuses_bad(&a);
    joins_pieces(&a);
    does_not_rescan();
    keeps_limits();
    owns_its_bytes(&a);
    arena_release(&a);
    return tap_done();
}
