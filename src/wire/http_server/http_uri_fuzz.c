/* Decoded text is valid, not longer than its input, and encodes back to the same. */
#include "base/buf.h"
#include "base/check.h"
#include "wire/http_server/http_uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode_again(struct arena *a, struct str decoded)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < decoded.n; i++)
        buf_printf(&b, "%%%02x", (unsigned char)decoded.p[i]);
    struct str out;
    check(http_uri_decode(a, buf_str(&b), true, &out) && str_eq(out, decoded));
    buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str in = str_from(size ? (const char *)data : "", size), out;
    for (int plus = 0; plus < 2; plus++) {
        if (!http_uri_decode(&a, in, plus, &out))
            continue;
        check(out.n <= in.n && str_utf8_valid(out) && !(out.n && memchr(out.p, 0, out.n)));
        encode_again(&a, out);
        if (http_path_valid(out))
            check(str_find(out, STR("/../")) < 0 && out.p[0] == '/');
    }
    for (size_t nth = 0; nth < 3; nth++)
        if (http_query_find(&a, in, STR("a"), nth, &out))
            check(out.n <= in.n && str_utf8_valid(out));
    arena_release(&a);
    return 0;
}
