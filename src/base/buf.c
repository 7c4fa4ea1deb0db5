#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CAP_MIN 256

void buf_init(struct buf *b)
{
    *b = (struct buf){0};
}

void buf_release(struct buf *b)
{
    free(b->p);
    buf_init(b);
}

void buf_clear(struct buf *b)
{
    b->head = b->len = 0;
}

void buf_shrink(struct buf *b, size_t keep)
{
    if (b->len == 0 && b->cap > keep)
        buf_release(b);
}

static void move_to_front(struct buf *b)
{
    memmove(b->p, b->p + b->head, b->len);
    b->head = 0;
}

static void grow(struct buf *b, size_t n)
{
    if (n > PTRDIFF_MAX / 4 || b->len > PTRDIFF_MAX / 4)
        check_no_memory();
    if (b->head)
        move_to_front(b);
    size_t cap = b->cap * 2 < CAP_MIN ? CAP_MIN : b->cap * 2;
    if (cap < b->len + n)
        cap = b->len + n;
    b->p = check_memory(realloc(b->p, cap));
    b->cap = cap;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (!b->p || buf_room(b) < n) {
        /* Moving costs no more than was consumed before it, so a queue stays linear. */
        if (b->p && b->head >= b->len && b->cap - b->len >= n)
            move_to_front(b);
        else
            grow(b, n);
    }
    return b->p + b->head + b->len;
}

void buf_consume(struct buf *b, size_t n)
{
    check(n <= b->len);
    b->len -= n;
    b->head = b->len ? b->head + n : 0;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    memcpy(buf_reserve(b, n), p, n);
    b->len += n;
}

void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.n);
}

void buf_add_int(struct buf *b, int64_t v)
{
    char digits[STR_INT_BYTES];
    buf_add_str(b, str_digits(digits, v));
}

void buf_add_base64(struct buf *b, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t three = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                         (have > 2 ? p[i + 2] : 0);
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
                        have > 1 ? digits[three >> 6 & 63] : '=',
                        have > 2 ? digits[three & 63] : '='};
        buf_add_short(b, four, sizeof four);
    }
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    char *at = buf_reserve(b, 64);
    int n = vsnprintf(at, buf_room(b), fmt, ap);
    check(n >= 0);
    if ((size_t)n >= buf_room(b)) {
        at = buf_reserve(b, (size_t)n + 1);
        vsnprintf(at, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    va_end(ap);
    b->len += (size_t)n;
}
