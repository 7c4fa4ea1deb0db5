/* map.h -- hash map from byte strings to pointers or numbers, and set of byte strings. Keys are
 * copied, pointers are borrowed.
 *
 * Open addressing with SipHash under a random key per map, so that keys chosen by a client cannot
 * force collisions. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/str.h"

struct map;

struct map *map_new(void);
void map_free(struct map *m); /* not the values */

void *map_get(const struct map *m, struct str key); /* NULL when absent */
/* Returns the former value, NULL if there was none. value must not be NULL. */
void *map_set(struct map *m, struct str key, void *value);
void *map_del(struct map *m, struct str key);
size_t map_count(const struct map *m);

/* A map of numbers instead; map_del and map_count serve it too. */
void map_set_int(struct map *m, struct str key, int64_t value);
bool map_get_int(const struct map *m, struct str key, int64_t *value); /* false: absent */

/* A set instead: true when key is new. map_get tells whether it is in. */
bool map_add(struct map *m, struct str key);

/* Visits every pair; the map must not change meanwhile. Start with *at == 0. The order comes from
 * the calls that filled the map, never from the hash key, so runs of a test are alike. */
bool map_next(const struct map *m, size_t *at, struct str *key, void **value);

/* SipHash-2-4 of s under a 16-byte key. */
uint64_t siphash(const uint8_t key[16], struct str s);
#endif
