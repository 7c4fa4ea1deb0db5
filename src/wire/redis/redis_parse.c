#include "wire/redis/redis_parse.h"

#include <string.h>

void redis_scan_init(struct redis_scan *s)
{
    *s = (struct redis_scan){0};
}

/* The number at p and its CRLF. 1 with *end behind it, 0 when the line is not complete, or
 * ERR_PROTO. A number is short: it is scanned from its start each time. */
static int scan_number(const char *p, const char *limit, int64_t *out, const char **end)
{
    const char *start = p;
    while (p < limit && *p != '\r')
        if (p++ - start >= 20)
            return ERR_PROTO;
    if (p + 1 >= limit)
        return 0;
    if (p[1] != '\n' || !str_to_i64(str_from(start, (size_t)(p - start)), out))
        return ERR_PROTO;
    *end = p + 2;
    return 1;
}

/* A status or an error: anything up to CRLF. */
static int scan_line(struct redis_scan *s, struct str in, const char **end)
{
    size_t from = s->seen > s->pos ? s->seen : s->pos;
    const char *cr = memchr(in.p + from, '\r', in.n - from);
    s->seen = cr ? (size_t)(cr - in.p) : in.n;
    if (s->seen - s->pos > REDIS_LINE_MAX)
        return ERR_PROTO;
    if (!cr || s->seen + 1 == in.n)
        return 0;
    if (cr[1] != '\n')
        return ERR_PROTO;
    *end = cr + 2;
    return 1;
}

static int scan_bulk(struct redis_scan *s, struct str in, const char **end)
{
    const char *limit = in.p + in.n;
    const char *p;
    int64_t n;
    int got = scan_number(in.p + s->pos + 1, limit, &n, &p);
    if (got != 1)
        return got;
    if (n < -1 || n > REDIS_BULK_MAX)
        return ERR_PROTO;
    if (n == -1) {
        *end = p;
        return 1;
    }
    if (limit - p < n + 2)
        return 0;
    if (p[n] != '\r' || p[n + 1] != '\n')
        return ERR_PROTO;
    *end = p + n + 2;
    return 1;
}

/* Enters the array, unless it is empty or nil. */
static int scan_array(struct redis_scan *s, struct str in, const char **end, bool *entered)
{
    int64_t n;
    int got = scan_number(in.p + s->pos + 1, in.p + in.n, &n, end);
    if (got != 1)
        return got;
    if (n < -1 || n > REDIS_NODES_MAX)
        return ERR_PROTO;
    *entered = n > 0;
    if (n <= 0)
        return 1;
    if (s->depth == REDIS_DEPTH_MAX)
        return ERR_PROTO;
    s->left[s->depth++] = n;
    return 1;
}

/* One value, or the head of an array, at s->pos. */
static int scan_value(struct redis_scan *s, struct str in, bool *entered)
{
    const char *end;
    int64_t number;
    int got;
    *entered = false;
    switch (in.p[s->pos]) {
    case '+':
    case '-':
        got = scan_line(s, in, &end);
        break;
    case ':':
        got = scan_number(in.p + s->pos + 1, in.p + in.n, &number, &end);
        break;
    case '$':
        got = scan_bulk(s, in, &end);
        break;
    case '*':
        got = scan_array(s, in, &end, entered);
        break;
    default:
        return ERR_PROTO;
    }
    if (got == 1)
        s->pos = (size_t)(end - in.p);
    return got;
}

int redis_scan(struct redis_scan *s, struct str in)
{
    while (s->pos < in.n) {
        bool entered;
        int got = scan_value(s, in, &entered);
        if (got != 1)
            return got;
        if (++s->nodes > REDIS_NODES_MAX || s->pos > REDIS_REPLY_MAX)
            return ERR_PROTO;
        if (entered)
            continue;
        while (s->depth > 0 && --s->left[s->depth - 1] == 0)
            s->depth--;
        if (s->depth == 0)
            return 1;
    }
    return 0;
}

/* Cuts up the one allocation of redis_build. bytes is a copy of the whole reply: strings point
 * into it, their CR becomes a NUL. */
struct builder {
    char *at;
    struct redis_reply *node;
    const struct redis_reply **item;
};

/* The scan has checked: digits, perhaps a sign, and CRLF. */
static int64_t take_number(struct builder *b)
{
    const char *p = b->at;
    bool negative = *p == '-';
    uint64_t v = 0;
    for (p += negative; *p != '\r'; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    b->at += p - b->at + 2;
    return (int64_t)(negative ? -v : v);
}

static void take_string(struct builder *b, struct redis_reply *r, enum redis_type type, size_t n)
{
    r->type = type;
    r->str = str_from(b->at, n);
    b->at[n] = '\0';
    b->at += n + 2;
}

static size_t line_bytes(const char *p)
{
    return (size_t)((const char *)rawmemchr(p, '\r') - p);
}

static void build(struct builder *b, struct redis_reply *r);

static void build_array(struct builder *b, struct redis_reply *r, size_t n)
{
    struct redis_reply *child = b->node;
    const struct redis_reply **items = b->item;
    b->node += n;
    b->item += n;
    r->type = REDIS_ARRAY;
    r->count = n;
    r->items = items;
    for (size_t i = 0; i < n; i++) {
        items[i] = &child[i];
        build(b, &child[i]);
    }
}

static void build(struct builder *b, struct redis_reply *r)
{
    char type = *b->at++;
    *r = (struct redis_reply){.type = REDIS_NIL};
    if (type == '+' || type == '-') {
        take_string(b, r, type == '+' ? REDIS_STATUS : REDIS_ERROR, line_bytes(b->at));
        return;
    }
    int64_t n = take_number(b);
    if (type == ':') {
        r->type = REDIS_INT;
        r->integer = n;
    } else if (n >= 0 && type == '$') {
        take_string(b, r, REDIS_STRING, (size_t)n);
    } else if (n >= 0) {
        build_array(b, r, (size_t)n);
    }
}

const struct redis_reply *redis_build(struct arena *a, const struct redis_scan *s, const char *p)
{
    size_t node_bytes = s->nodes * sizeof(struct redis_reply);
    size_t item_bytes = (s->nodes - 1) * sizeof(struct redis_reply *);
    char *all = arena_alloc(a, node_bytes + item_bytes + s->pos);
    struct redis_reply *root = (struct redis_reply *)(void *)all;
    struct builder b = {
        .at = all + node_bytes + item_bytes,
        .node = root + 1,
        .item = (const struct redis_reply **)(void *)(all + node_bytes),
    };
    memcpy(b.at, p, s->pos);
    build(&b, root);
    return root;
}
