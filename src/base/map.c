/* The pairs lie side by side in an array; the table holds their places in it.
 *
 *   table (open addressing)   . 2 . . 0 . 1 .      place + 1, zero is free
 *   pairs                     [a] [b] [c]
 *
 * Removing fills the hole with the last pair, so the array stays dense, and pulls
 * later table entries back over the gap, so there are no tombstones. */
#include "base/map.h"

#include <endian.h>
#include <stdlib.h>
#include <sys/random.h>

#define TABLE_MIN 16

struct pair {
    uint64_t hash;
    char *key;
    size_t key_n;
    union {
        void *value;
        int64_t number;
    };
};

struct map {
    uint8_t hash_key[16];
    struct pair *pairs;
    uint32_t *table;
    size_t count;
    size_t table_size; /* a power of two; at most half of it is used */
    bool numbers;      /* of map_set_int */
};

static uint64_t rotate(uint64_t v, int bits)
{
    return v << bits | v >> (64 - bits);
}

static uint64_t load64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
}

uint64_t siphash(const uint8_t key[16], struct str s)
{
    uint64_t k0 = load64(key), k1 = load64(key + 8);
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                     k1 ^ 0x7465646279746573u};
    size_t at = 0;
    for (; s.n - at >= 8; at += 8)
        sip_word(v, load64(s.p + at));

    uint64_t last = (uint64_t)s.n << 56;
    for (size_t i = 0; at + i < s.n; i++)
        last |= (uint64_t)(unsigned char)s.p[at + i] << (8 * i);
    sip_word(v, last);
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct map *map_new(void)
{
    struct map *m = check_memory(calloc(1, sizeof(*m)));
    check(getrandom(m->hash_key, sizeof(m->hash_key), 0) == sizeof(m->hash_key));
    return m;
}

void map_free(struct map *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++)
        free(m->pairs[i].key);
    free(m->pairs);
    free(m->table);
    free(m);
}

size_t map_count(const struct map *m)
{
    return m->count;
}

static size_t after(const struct map *m, size_t slot)
{
    return (slot + 1) & (m->table_size - 1);
}

static size_t home(const struct map *m, uint64_t hash)
{
    return hash & (m->table_size - 1);
}

/* The slot of the key, or the free one where it belongs. */
static size_t find(const struct map *m, struct str key, uint64_t hash)
{
    size_t slot = home(m, hash);
    for (; m->table[slot]; slot = after(m, slot)) {
        const struct pair *p = &m->pairs[m->table[slot] - 1];
        if (p->hash == hash && str_eq(str_from(p->key, p->key_n), key))
            break;
    }
    return slot;
}

static void make_room(struct map *m)
{
    if ((m->count + 1) * 2 <= m->table_size)
        return;
    m->table_size = m->table_size ? m->table_size * 2 : TABLE_MIN;
    check(m->table_size <= UINT32_MAX);
    free(m->table);
    m->table = check_memory(calloc(m->table_size, sizeof(*m->table)));
    m->pairs = check_memory(reallocarray(m->pairs, m->table_size / 2, sizeof(*m->pairs)));
    for (size_t i = 0; i < m->count; i++) {
        size_t slot = home(m, m->pairs[i].hash);
        while (m->table[slot])
            slot = after(m, slot);
        m->table[slot] = (uint32_t)(i + 1);
    }
}

static const struct pair *get(const struct map *m, struct str key) /* NULL when absent */
{
    uint32_t place = m->count ? m->table[find(m, key, siphash(m->hash_key, key))] : 0;
    return place ? &m->pairs[place - 1] : NULL;
}

static struct pair *get_or_add(struct map *m, struct str key) /* a new one is all zero */
{
    make_room(m);
    uint64_t hash = siphash(m->hash_key, key);
    size_t slot = find(m, key, hash);
    if (m->table[slot])
        return &m->pairs[m->table[slot] - 1];
    char *copy = check_memory(malloc(key.n + 1));
    if (key.n)
        memcpy(copy, key.p, key.n);
    m->pairs[m->count++] = (struct pair){.hash = hash, .key = copy, .key_n = key.n};
    m->table[slot] = (uint32_t)m->count;
    return &m->pairs[m->count - 1];
}

void *map_get(const struct map *m, struct str key)
{
    check(!m->numbers);
    const struct pair *p = get(m, key);
    return p ? p->value : NULL;
}

void *map_set(struct map *m, struct str key, void *value)
{
    check(value && !m->numbers);
    struct pair *p = get_or_add(m, key);
    void *former = p->value;
    p->value = value;
    return former;
}

bool map_add(struct map *m, struct str key)
{
    return !map_set(m, key, m); /* any value will do */
}

bool map_get_int(const struct map *m, struct str key, int64_t *value)
{
    check(m->numbers || m->count == 0);
    const struct pair *p = get(m, key);
    if (p)
        *value = p->number;
    return p;
}

void map_set_int(struct map *m, struct str key, int64_t value)
{
    check(m->numbers || m->count == 0);
    m->numbers = true;
    get_or_add(m, key)->number = value;
}

/* Frees a slot. A later entry moves back into it unless its home lies after the gap. */
static void close_gap(struct map *m, size_t gap)
{
    size_t mask = m->table_size - 1;
    for (size_t slot = after(m, gap); m->table[slot]; slot = after(m, slot)) {
        size_t from_home = (slot - home(m, m->pairs[m->table[slot] - 1].hash)) & mask;
        if (from_home >= ((slot - gap) & mask)) {
            m->table[gap] = m->table[slot];
            gap = slot;
        }
    }
    m->table[gap] = 0;
}

void *map_del(struct map *m, struct str key)
{
    if (m->count == 0)
        return NULL;
    size_t slot = find(m, key, siphash(m->hash_key, key));
    if (!m->table[slot])
        return NULL;
    size_t place = m->table[slot];
    struct pair *gone = &m->pairs[place - 1], *last = &m->pairs[m->count - 1];
    void *value = gone->value;
    close_gap(m, slot);
    free(gone->key);
    if (gone != last) {
        m->table[find(m, str_from(last->key, last->key_n), last->hash)] = (uint32_t)place;
        *gone = *last;
    }
    m->count--;
    return value;
}

bool map_next(const struct map *m, size_t *at, struct str *key, void **value)
{
    if (*at >= m->count)
        return false;
    const struct pair *p = &m->pairs[(*at)++];
    *key = str_from(p->key, p->key_n);
    *value = p->value;
    return true;
}
