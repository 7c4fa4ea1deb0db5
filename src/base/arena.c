#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"

/* Under ASan a gap follows each allocation, so that running over its end is caught too. */
#ifdef WITH_ASAN
#define GAP_BYTES 16
#else
#define GAP_BYTES 0
#endif

#define ALIGN_BYTES 16
/* From the third chunk on sizes double, up to this: a large tree costs few mallocs, a small one
 * little memory. */
#define CHUNK_BYTES_GROWN 65536
/* A larger spare chunk is freed: thousands of idle connections and workers keep one each. */
#define SPARE_BYTES_MAX ARENA_CHUNK_BYTES

struct arena_chunk {
    _Alignas(ALIGN_BYTES) struct arena_chunk *older;
    size_t size; /* of the whole chunk */
};

static char *chunk_start(struct arena_chunk *c)
{
    return (char *)(c + 1);
}

static char *chunk_end(struct arena_chunk *c)
{
    return (char *)c + c->size;
}

/* What an allocation of n bytes takes from its chunk. */
static size_t span(size_t n)
{
    return ((n + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1)) + GAP_BYTES;
}

static size_t room(const struct arena *a)
{
    return (size_t)(a->end - a->next);
}

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

void arena_release(struct arena *a)
{
    arena_reset(a, (struct arena_mark){0});
    free(a->spare);
    arena_init(a);
}

static struct arena_chunk *chunk_new(size_t size)
{
    struct arena_chunk *c = check_memory(malloc(size));
    c->size = size;
    return c;
}

/* Puts a chunk with room for need bytes in front. */
static void add_chunk(struct arena *a, size_t need)
{
    size_t size = a->head && a->head->older ? a->head->size * 2 : ARENA_CHUNK_BYTES;
    if (size > CHUNK_BYTES_GROWN)
        size = CHUNK_BYTES_GROWN;
    if (size < need + sizeof(struct arena_chunk))
        size = need + sizeof(struct arena_chunk);

    struct arena_chunk *c = a->spare;
    if (c && c->size >= need + sizeof(*c))
        a->spare = NULL;
    else
        c = chunk_new(size);
    c->older = a->head;
    a->head = c;
    a->next = chunk_start(c);
    a->end = chunk_end(c);
    POISON(a->next, room(a));
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > PTRDIFF_MAX / 2)
        check_no_memory();
    size_t need = span(n);
    if (need > room(a) || !a->head)
        add_chunk(a, need);
    char *p = a->next;
    a->next += need;
    UNPOISON(p, n);
    return p;
}

void *arena_zalloc(struct arena *a, size_t n)
{
    return memset(arena_alloc(a, n), 0, n);
}

void *arena_grow(struct arena *a, void *p, size_t old_n, size_t new_n)
{
    check(new_n >= old_n);
    bool newest = p && (char *)p + span(old_n) == a->next;
    if (newest && new_n <= PTRDIFF_MAX / 2 && span(new_n) - span(old_n) <= room(a)) {
        a->next += span(new_n) - span(old_n);
        UNPOISON(p, new_n);
        return p;
    }
    void *q = arena_alloc(a, new_n);
    if (old_n)
        memcpy(q, p, old_n);
    return q;
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){a->head, a->next};
}

/* Keeps the chunk as spare, so that a request loop rarely calls malloc, or frees it. */
static void retire(struct arena *a, struct arena_chunk *c)
{
    size_t kept = a->spare ? a->spare->size : 0;
    if (c->size > SPARE_BYTES_MAX || c->size <= kept) {
        free(c);
        return;
    }
    free(a->spare);
    a->spare = c;
    POISON(chunk_start(c), c->size - sizeof(*c));
}

void arena_reset(struct arena *a, struct arena_mark m)
{
    while (a->head != m.head) {
        struct arena_chunk *c = a->head;
        check(c); /* else m is of another arena, or was undone by an earlier reset */
        a->head = c->older;
        retire(a, c);
    }
    a->next = m.next;
    a->end = m.head ? chunk_end(m.head) : NULL;
    if (m.head)
        POISON(a->next, room(a));
}

char *arena_strdup(struct arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(arena_alloc(a, n), s, n);
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    char small[256];
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    check(n >= 0);
    size_t size = (size_t)n + 1;
    char *p = arena_alloc(a, size);
    if (size <= sizeof(small))
        memcpy(p, small, size);
    else
        vsnprintf(p, size, fmt, again);
    va_end(again);
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}
