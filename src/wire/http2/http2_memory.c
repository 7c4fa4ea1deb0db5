#include "wire/http2/http2_memory.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/sanitize.h"

#define STEP_BYTES 64u /* between one size and the next */
#define SIZES      8u  /* larger ones are rare, and malloc's */

/* Stands before what nghttp2 sees. */
struct block {
    alignas(max_align_t) size_t n; /* bytes behind it; a multiple of STEP_BYTES */
    struct block *next;            /* while it is kept */
};

static struct {
    struct block *first[SIZES];
    size_t bytes;
} kept;

static void *take(size_t n, void *ctx)
{
    (void)ctx;
    if (n > SIZE_MAX / 2)
        return NULL;
    size_t at = n > 0 ? (n - 1) / STEP_BYTES : 0;
    struct block *b = at < SIZES ? kept.first[at] : NULL;
    if (b) {
        kept.first[at] = b->next;
        kept.bytes -= b->n;
        UNPOISON(b + 1, b->n);
    } else {
        n = (at + 1) * STEP_BYTES;
        b = check_memory(malloc(sizeof *b + n));
        b->n = n;
    }
    return b + 1;
}

static void give(void *p, void *ctx)
{
    (void)ctx;
    if (!p)
        return;
    struct block *b = (struct block *)p - 1;
    size_t at = b->n / STEP_BYTES - 1;
    if (at >= SIZES || kept.bytes + b->n > HTTP2_MEMORY_KEPT_MAX) {
        free(b);
        return;
    }
    b->next = kept.first[at];
    kept.first[at] = b;
    kept.bytes += b->n;
    POISON(b + 1, b->n); /* to detect a use after free */
}

static void *take_zeroed(size_t count, size_t n, void *ctx)
{
    if (n > 0 && count > SIZE_MAX / n)
        return NULL;
    void *p = take(count * n, ctx);
    return p ? memset(p, 0, count * n) : NULL;
}

static void *change(void *p, size_t n, void *ctx)
{
    size_t had = p ? ((struct block *)p - 1)->n : 0;
    if (p && n <= had)
        return p;
    void *more = take(n, ctx);
    if (more && p)
        memcpy(more, p, had);
    if (more)
        give(p, ctx);
    return more;
}

nghttp2_mem *http2_memory(void)
{
    static nghttp2_mem memory = {NULL, take, give, take_zeroed, change};
    return &memory;
}

void http2_memory_trim(void)
{
    for (size_t at = 0; at < SIZES; at++) {
        while (kept.first[at]) {
            struct block *b = kept.first[at];
            kept.first[at] = b->next;
            UNPOISON(b + 1, b->n);
            free(b);
        }
    }
    kept.bytes = 0;
}

size_t http2_memory_kept(void)
{
    return kept.bytes;
}
