#include "tool/db/init_seen.h"

#include <stdlib.h>

#include "base/map.h"

#define CAP_FIRST 1024 /* a power of two */

void init_seen_release(struct init_seen *s)
{
    free(s->slots);
    *s = (struct init_seen){0};
}

static bool put(struct init_seen *s, uint64_t hash)
{
    size_t i = hash & (s->cap - 1);
    for (; s->slots[i]; i = (i + 1) & (s->cap - 1))
        if (s->slots[i] == hash)
            return false;
    s->slots[i] = hash;
    s->count++;
    return true;
}

static void grow(struct init_seen *s)
{
    struct init_seen larger = {.cap = s->cap ? s->cap * 2 : CAP_FIRST};
    larger.slots = check_memory(calloc(larger.cap, sizeof *larger.slots));
    for (size_t i = 0; i < s->cap; i++)
        if (s->slots[i])
            put(&larger, s->slots[i]);
    free(s->slots);
    *s = larger;
}

static uint64_t hash_of(struct str doi)
{
    static const uint8_t key[16] = "DOIs of one file";
    uint64_t hash = siphash(key, doi);
    return hash ? hash : 1;
}

bool init_seen_add(struct init_seen *s, struct str doi)
{
    if ((s->count + 1) * 4 > s->cap * 3)
        grow(s);
    return put(s, hash_of(doi));
}

bool init_seen_has(const struct init_seen *s, struct str doi)
{
    uint64_t hash = hash_of(doi);
    if (!s->cap)
        return false;
    size_t i = hash & (s->cap - 1);
    while (s->slots[i] && s->slots[i] != hash)
        i = (i + 1) & (s->cap - 1);
    return s->slots[i] != 0;
}
