#include "corpus/pack.h"

#include <stdlib.h>
#include <zdict.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"

#define LEVEL_DEFAULT 3

struct dictionary {
    uint32_t number;
    struct str bytes; /* owned */
    ZSTD_DDict *reading;
    struct dictionary *next;
};

struct pack {
    struct dictionary *known; /* newest first: most values are its */
    ZSTD_CCtx *putting;
    ZSTD_DCtx *getting;
    ZSTD_CDict *writing; /* NULL: none */
    int level;
    struct buf scratch; /* the bound of a packed value is three times its size */
};

struct pack *pack_new(void)
{
    struct pack *p = check_memory(calloc(1, sizeof *p));
    p->putting = check_memory(ZSTD_createCCtx());
    p->getting = check_memory(ZSTD_createDCtx());
    p->level = LEVEL_DEFAULT;
    buf_init(&p->scratch);
    return p;
}

void pack_free(struct pack *p)
{
    if (!p)
        return;
    while (p->known) {
        struct dictionary *d = p->known;
        p->known = d->next;
        ZSTD_freeDDict(d->reading);
        free((char *)(uintptr_t)d->bytes.p);
        free(d);
    }
    ZSTD_freeCDict(p->writing);
    ZSTD_freeCCtx(p->putting);
    ZSTD_freeDCtx(p->getting);
    buf_release(&p->scratch);
    free(p);
}

uint32_t pack_number(struct str dictionary)
{
    return ZDICT_getDictID(dictionary.p, dictionary.n);
}

static struct dictionary *find(const struct pack *p, uint32_t number)
{
    for (struct dictionary *d = p->known; d; d = d->next)
        if (d->number == number)
            return d;
    return NULL;
}

int pack_learn(struct pack *p, struct str bytes)
{
    uint32_t number = pack_number(bytes);
    if (number == 0 || bytes.n > PACK_DICTIONARY_BYTES_MAX)
        return ERR_INVALID;
    if (find(p, number))
        return 0;
    ZSTD_DDict *reading = ZSTD_createDDict(bytes.p, bytes.n);
    if (!reading) /* it has the head of a dictionary, but not the rest */
        return ERR_INVALID;
    struct dictionary *d = check_memory(malloc(sizeof *d));
    char *copy = check_memory(malloc(bytes.n));
    memcpy(copy, bytes.p, bytes.n);
    *d = (struct dictionary){number, str_from(copy, bytes.n), reading, p->known};
    p->known = d;
    return 0;
}

int pack_choose(struct pack *p, uint32_t number, int level)
{
    check(level >= ZSTD_minCLevel() && level <= ZSTD_maxCLevel());
    const struct dictionary *d = find(p, number);
    if (number && !d)
        return ERR_NOT_FOUND;
    ZSTD_freeCDict(p->writing);
    p->writing = d ? check_memory(ZSTD_createCDict(d->bytes.p, d->bytes.n, level)) : NULL;
    p->level = level;
    return 0;
}

int pack_put(struct pack *p, struct arena *a, struct str entry, struct str *out)
{
    if (entry.n > PACK_ENTRY_BYTES_MAX)
        return ERR_LIMIT;
    size_t most = ZSTD_compressBound(entry.n);
    buf_clear(&p->scratch);
    char *at = buf_reserve(&p->scratch, most);
    size_t n = p->writing
                   ? ZSTD_compress_usingCDict(p->putting, at, most, entry.p, entry.n, p->writing)
                   : ZSTD_compressCCtx(p->putting, at, most, entry.p, entry.n, p->level);
    check(!ZSTD_isError(n)); /* there is room, and it takes any bytes */
    *out = str_dup(a, str_from(at, n));
    return 0;
}

int pack_get(struct pack *p, struct arena *a, struct str packed, struct str *out, uint32_t *number)
{
    uint32_t id = ZSTD_getDictID_fromFrame(packed.p, packed.n);
    if (number)
        *number = id;
    unsigned long long size = ZSTD_getFrameContentSize(packed.p, packed.n);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
        return ERR_PROTO;
    if (size > PACK_ENTRY_BYTES_MAX)
        return ERR_LIMIT;
    const struct dictionary *d = find(p, id);
    if (id && !d)
        return ERR_NOT_FOUND;
    struct arena_mark before = arena_mark(a);
    char *at = arena_alloc(a, (size_t)size + 1);
    size_t n =
        d ? ZSTD_decompress_usingDDict(p->getting, at, (size_t)size, packed.p, packed.n, d->reading)
          : ZSTD_decompressDCtx(p->getting, at, (size_t)size, packed.p, packed.n);
    if (ZSTD_isError(n) || n != size) {
        arena_reset(a, before);
        return ERR_PROTO;
    }
    at[n] = '\0';
    *out = str_from(at, n);
    return 0;
}

int pack_train(struct arena *a, struct str text, const size_t *sizes, unsigned count,
               struct str *dictionary)
{
    struct arena_mark before = arena_mark(a);
    char *at = arena_alloc(a, PACK_DICTIONARY_BYTES_MAX);
    size_t n = ZDICT_trainFromBuffer(at, PACK_DICTIONARY_BYTES_MAX, text.p, sizes, count);
    if (ZDICT_isError(n)) {
        arena_reset(a, before);
        return ERR_INVALID;
    }
    *dictionary = str_from(at, n);
    return 0;
}
