/* buf.h -- a growing byte buffer on the heap; its owner calls buf_release.
 *
 * Bytes are appended at the end and may be consumed from the front, so the
 * same struct serves as output buffer and as input queue. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

struct buf {
    char *p;     /* start of the allocation */
    size_t head; /* first byte not consumed */
    size_t len;  /* bytes held, from head on */
    size_t cap;
};

void buf_init(struct buf *b);
void buf_release(struct buf *b);
void buf_clear(struct buf *b);               /* keeps the memory */
void buf_shrink(struct buf *b, size_t keep); /* frees an empty one larger than keep */

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p ? b->p + b->head : "", b->len};
}

/* Room for at least n more bytes at the end; write there, then buf_added. */
char *buf_reserve(struct buf *b, size_t n);
static inline size_t buf_room(const struct buf *b)
{
    return b->cap - b->head - b->len;
}
static inline void buf_added(struct buf *b, size_t n)
{
    b->len += n;
}
void buf_consume(struct buf *b, size_t n); /* drops n bytes at the front */

void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_int(struct buf *b, int64_t v);
void buf_add_base64(struct buf *b, const void *p, size_t n); /* with padding */
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/* Inline: a constant n compiles to plain stores. */
static inline void buf_add_short(struct buf *b, const void *p, size_t n)
{
    char *at = buf_room(b) >= n && b->p ? b->p + b->head + b->len : buf_reserve(b, n);
    memcpy(at, p, n);
    b->len += n;
}
#define buf_add_lit(b, lit) buf_add_short((b), "" lit, sizeof(lit) - 1)
static inline void buf_add_char(struct buf *b, char c)
{
    buf_add_short(b, &c, 1);
}
#endif
