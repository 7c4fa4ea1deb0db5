/* The head of a request, whole and in pieces: both must come to the same verdict, and what is
 * taken must keep what the parser promises. */
#include <stdlib.h>

#include "base/check.h"
#include "wire/http_server/http_parse.h"

#define FIELDS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_parse_limits limits = {
    .target_bytes = 200,
    .head_bytes = 1000,
    .fields = FIELDS,
};

static bool inside(struct str part, struct str whole)
{
    return part.p >= whole.p && part.p + part.n <= whole.p + whole.n;
}

static void check_head(const struct http_parser *p, struct str in)
{
    const struct http_head *h = &p->head;
    check(p->used <= in.n && p->used <= limits.head_bytes);
    check(memcmp(in.p + p->used - 4, "\r\n\r\n", 4) == 0);
    check(inside(h->method, in) && h->method.n > 0);
    check(p->authority.p ? inside(p->authority, in) && p->authority.n > 0 : inside(h->path, in));
    check(h->path.p[0] == '/' || str_eq(h->path, STR("*")));
    check(h->target.n <= limits.target_bytes && h->field_count <= FIELDS);
    int lengths = 0, codings = 0, hosts = 0;
    for (size_t i = 0; i < h->field_count; i++) {
        const struct http_field *f = &h->fields[i];
        bool host = str_ieq(f->name, STR("host"));
        check((inside(f->name, in) || (host && p->authority.p)) && f->name.n > 0);
        check(inside(f->value, in));
        if (host && p->authority.p)
            check(str_eq(f->value, p->authority));
        for (size_t j = 0; j < f->value.n; j++)
            check(f->value.p[j] == '\t' || (unsigned char)f->value.p[j] >= 0x20);
        lengths += str_ieq(f->name, STR("content-length"));
        codings += str_ieq(f->name, STR("transfer-encoding"));
        hosts += str_ieq(f->name, STR("host"));
    }
    check(lengths + codings <= 1 && hosts <= 1 && hosts >= h->minor);
    check(hosts == 1 || !p->authority.p);
    check((h->framing == HTTP_SIZED) == (lengths == 1));
    check((h->framing == HTTP_CHUNKED) == (codings == 1));
}

static void check_same(const struct http_parser *a, enum http_verdict va,
                       const struct http_parser *b, enum http_verdict vb)
{
    check(va == vb);
    if (va == HTTP_BAD)
        check(a->problem.why == b->problem.why && a->problem.message == b->problem.message);
    if (va != HTTP_DONE)
        return;
    check(a->used == b->used && a->head.field_count == b->head.field_count);
    check(str_eq(a->head.path, b->head.path) && a->head.framing == b->head.framing);
    check(str_eq(a->authority, b->authority) && a->empty_lines == b->empty_lines);
    check(a->head.body_bytes == b->head.body_bytes && a->head.close == b->head.close);
}

/* Cut where the bytes of the input say, or after every one of them. */
static void parse_in_pieces(struct str in, const struct http_parser *whole, enum http_verdict v,
                            size_t seed)
{
    struct http_field fields[FIELDS];
    struct http_parser p;
    enum http_verdict got = HTTP_MORE;
    http_parser_init(&p, limits, fields);
    for (size_t n = 0; n < in.n && got == HTTP_MORE;) {
        n += seed ? 1 + (n * seed + (unsigned char)in.p[n]) % 17 : 1;
        got = http_parse(&p, str_from(in.p, n < in.n ? n : in.n));
    }
    check_same(whole, v, &p, got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_field fields[FIELDS];
    struct http_parser p;
    char *copy = malloc(size + 1); /* of its own, so that reading past the end is seen */
    check(copy);
    struct str in = str_from(copy, size);
    memcpy(copy, size ? (const char *)data : "", size);
    http_parser_init(&p, limits, fields);
    enum http_verdict v = http_parse(&p, in);
    if (v == HTTP_DONE)
        check_head(&p, in);
    parse_in_pieces(in, &p, v, 0);
    parse_in_pieces(in, &p, v, 7);
    parse_in_pieces(in, &p, v, 13);
    free(copy);
    return 0;
}
