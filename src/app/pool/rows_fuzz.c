/* Input: a byte for the format and the size of pieces, then a file. Cut into pieces it has the same
 * texts on the same lines as whole. */
#include <stdint.h>
#include <stdlib.h>

#include "app/pool/rows.h"
#include "base/buf.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(struct buf *b, int err, struct str text, int64_t line)
{
    buf_add_int(b, err ? -line : line);
    buf_add_char(b, ':');
    if (!err)
        buf_add_str(b, text);
    buf_add_char(b, '\n');
}

/* All texts, in pieces of so many bytes and more. False: it cannot be opened. */
static bool read_all(struct str text, enum pool_format format, size_t bytes, struct buf *out)
{
    struct arena a;
    struct pool_rows *r = check_memory(malloc(sizeof *r));
    struct pool_place place = {.line = 0};
    size_t at = 0, end = 0;
    bool opened = true;
    arena_init(&a);
    do {
        end = text.n - end < bytes ? text.n : end + bytes;
        opened = pool_rows_open(r, &a, &pool_types[0], format, &place,
                                str_from(text.p + at, end - at), end == text.n) == 0;
        check(opened || r->error);
        for (int err = opened ? 0 : ERR_NOT_FOUND; err != ERR_NOT_FOUND;) {
            struct str got = STR("");
            int64_t line = 0;
            err = pool_rows_next(r, &a, &got, &line);
            check(err != ERR_INVALID || r->error);
            if (err != ERR_NOT_FOUND)
                add(out, err, got, line);
        }
        place = r->place;
        check(at + r->at <= end);
        at += r->at;
    } while (opened && end < text.n);
    arena_release(&a);
    free(r);
    return opened;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    enum pool_format format = data[0] & 1 ? POOL_JSONL : POOL_CSV;
    /* A header has to be in the first piece. */
    size_t bytes = 16 + (data[0] >> 1);
    struct str text = str_from((const char *)data + 1, size - 1);
    struct str rest = text, header = str_cut(&rest, '\n');
    struct buf whole, cut;
    buf_init(&whole);
    buf_init(&cut);
    bool opened = read_all(text, format, size + 1, &whole);
    bool plain = !memchr(header.p, '"', header.n) && header.n < bytes;
    if (opened && (format == POOL_JSONL || plain)) {
        check(read_all(text, format, bytes, &cut));
        /* A stray quote in CSV swallows more of a whole file than of a piece. */
        if (format == POOL_JSONL || !memchr(text.p, '"', text.n))
            check(str_eq(buf_str(&whole), buf_str(&cut)));
    }
    buf_release(&whole);
    buf_release(&cut);
    return 0;
}
