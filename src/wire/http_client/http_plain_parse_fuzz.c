/* A reply, whole and in pieces: the same verdict, the same bytes, the same end. */
#include <stdlib.h>

#include "base/buf.h"
#include "wire/http_client/http_plain_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_plain_limits limits = {.head_bytes = 400, .body_bytes = 100};

struct outcome {
    enum http_plain_verdict verdict;
    struct http_plain p;
    struct buf body;
    size_t end;
};

/* Cut where the bytes say; seed 0: not at all. */
static size_t piece_bytes(struct str text, size_t at, size_t seed)
{
    size_t left = text.n - at;
    size_t n = seed ? 1 + (at * seed + (unsigned char)text.p[at]) % seed : left;
    return n < left ? n : left;
}

static void check_piece(struct str data, struct str in)
{
    check(data.n > 0 && data.p >= in.p && data.p + data.n <= in.p + in.n);
}

static void read_all(struct outcome *o, struct arena *a, struct str text, size_t seed, bool to_head)
{
    http_plain_init(&o->p, a, limits, to_head, 1767225600000);
    buf_init(&o->body);
    o->verdict = HTTP_PLAIN_MORE;
    for (o->end = 0; o->end < text.n;) {
        size_t n = piece_bytes(text, o->end, seed), used;
        char *copy = malloc(n); /* of its own, so that reading past the end is seen */
        check(copy);
        memcpy(copy, text.p + o->end, n);
        struct str data, in = str_from(copy, n);
        o->verdict = http_plain_next(&o->p, in, &used, &data);
        check(used <= n);
        o->end += used;
        if (o->verdict == HTTP_PLAIN_DATA) {
            check_piece(data, in);
            buf_add_str(&o->body, data);
        }
        free(copy);
        if (o->verdict == HTTP_PLAIN_MORE)
            check(used == n);
        else if (o->verdict != HTTP_PLAIN_DATA)
            break;
    }
    struct str none;
    size_t used;
    if (o->verdict == HTTP_PLAIN_DATA) /* the last piece may have been all of it */
        o->verdict = http_plain_next(&o->p, STR(""), &used, &none);
    check(o->p.head_bytes <= limits.head_bytes && o->p.body_bytes <= limits.body_bytes);
    check((o->verdict == HTTP_PLAIN_BAD) == (o->p.problem != NULL));
    check(o->p.body_bytes == o->body.len);
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
    check(a->verdict == b->verdict && a->p.head.status == b->p.head.status);
    if (a->verdict == HTTP_PLAIN_BAD)
        check(a->p.problem == b->p.problem);
    if (a->verdict == HTTP_PLAIN_BAD || a->verdict == HTTP_PLAIN_LIMIT)
        return;
    check(a->end == b->end && a->p.close == b->p.close);
    check(str_eq(buf_str(&a->body), buf_str(&b->body)));
    check(http_plain_ended(&a->p) == http_plain_ended(&b->p));
}

static void read_both_ways(struct str text, bool to_head)
{
    static const size_t seeds[] = {1, 3, 7, 19, 64};
    struct arena a;
    arena_init(&a);
    struct outcome whole, pieces;
    read_all(&whole, &a, text, 0, to_head);
    if (whole.verdict == HTTP_PLAIN_END && (to_head || whole.p.head.status == 204))
        check(whole.body.len == 0);
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        read_all(&pieces, &a, text, seeds[i], to_head);
        check_same(&whole, &pieces);
        buf_release(&pieces.body);
    }
    buf_release(&whole.body);
    arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_from(size ? (const char *)data : "", size);
    read_both_ways(text, false);
    read_both_ways(text, true);
    return 0;
}
