/* arena.h -- memory that is freed all at once.
 *
 * A chain of chunks; allocating moves a pointer, nothing is freed singly.
 * Never returns NULL: out of memory stops the process. Under ASan freed parts
 * are poisoned, so use after a reset is caught. A reset keeps one small chunk
 * for the next round. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "base/check.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *head; /* newest; NULL until the first allocation */
    char *next, *end;         /* free part of head */
    struct arena_chunk *spare;
};

/* A place to go back to. Marks nest like scopes. */
struct arena_mark {
    struct arena_chunk *head;
    char *next;
};

#define ARENA_CHUNK_BYTES 4096

void arena_init(struct arena *a); /* allocates nothing yet */
void arena_release(struct arena *a);

void *arena_alloc(struct arena *a, size_t n);  /* aligned to 16, not zeroed */
void *arena_zalloc(struct arena *a, size_t n); /* zeroed */
/* Grows the newest allocation in place when it can, else copies. */
void *arena_grow(struct arena *a, void *p, size_t old_n, size_t new_n);

struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, struct arena_mark m); /* frees all allocated since m */

char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) PRINTF(2, 0);

#define ARENA_NEW(a, type)      ((type *)arena_zalloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n) ((type *)arena_zalloc((a), sizeof(type) * (size_t)(n)))
#endif
