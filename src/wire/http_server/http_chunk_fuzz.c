/* A chunked body, whole and in pieces: the same verdict, the same bytes, the same end. Extensions
 * and trailers stay within their bound, and change nothing where they are taken. */
#include "base/buf.h"
#include "base/check.h"
#include "wire/http_server/http_chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EXTRA_BYTES_MAX 64

static enum http_chunk_verdict read_all(struct str text, size_t step, size_t extra_max,
                                        struct buf *body, size_t *end)
{
    struct http_chunks c = {.extra_max = extra_max};
    for (size_t at = 0;;) {
        size_t left = text.n - at, used;
        struct str piece, in = str_from(text.p + at, left < step ? left : step);
        enum http_chunk_verdict v = http_chunk_next(&c, in, &used, &piece);
        check(used <= in.n && c.extra_max <= extra_max);
        at += used;
        *end = at;
        if (v == HTTP_CHUNK_DATA) {
            check(piece.n > 0 && piece.p >= in.p && piece.p + piece.n <= in.p + in.n);
            buf_add_str(body, piece);
        } else if (v != HTTP_CHUNK_MORE || at == text.n) {
            return v;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_from(size ? (const char *)data : "", size);
    struct buf whole, pieces;
    buf_init(&whole);
    buf_init(&pieces);
    size_t whole_end, end;
    enum http_chunk_verdict v =
        read_all(text, size ? size : 1, EXTRA_BYTES_MAX, &whole, &whole_end);
    for (size_t step = 1; step < 8; step += 2) {
        buf_clear(&pieces);
        check(read_all(text, step, EXTRA_BYTES_MAX, &pieces, &end) == v && end == whole_end);
        check(str_eq(buf_str(&whole), buf_str(&pieces)));
    }
    if (v == HTTP_CHUNK_END)
        check(whole_end >= 5 && memcmp(text.p + whole_end - 4, "\r\n\r\n", 4) == 0);
    buf_clear(&pieces);
    if (read_all(text, size ? size : 1, 0, &pieces, &end) == HTTP_CHUNK_END)
        check(v == HTTP_CHUNK_END && end == whole_end && str_eq(buf_str(&whole), buf_str(&pieces)));
    buf_release(&whole);
    buf_release(&pieces);
    return 0;
}
