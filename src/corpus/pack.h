/* pack.h -- entries compressed for Redis: zstd with a trained dictionary.
 *
 * A packed value is one zstd frame. The frame names its dictionary by number, so values packed
 * with an older dictionary stay readable as long as that one is known. Number 0 is no dictionary.
 * There is no checksum: four bytes for each of five million papers, in a store that has its own. */
#ifndef CORPUS_PACK_H
#define CORPUS_PACK_H

#include "base/arena.h"
#include "base/str.h"

#define PACK_ENTRY_BYTES_MAX      (8 * 1024 * 1024)
#define PACK_DICTIONARY_BYTES_MAX (112 * 1024)

struct pack;

struct pack *pack_new(void);
void pack_free(struct pack *p);

/* Adds a copy of a dictionary for reading; idempotent. The number is in its bytes. ERR_INVALID: it
 * is none. */
MUST_CHECK int pack_learn(struct pack *p, struct str dictionary);
/* The dictionary and level that pack_put uses from now on; 0: none. ERR_NOT_FOUND if not learnt. */
MUST_CHECK int pack_choose(struct pack *p, uint32_t number, int level);

/* Both in a. pack_get: ERR_NOT_FOUND when the dictionary of the value is not known (*number says
 * which; number may be NULL), ERR_PROTO when the value is damaged, ERR_LIMIT when it would be
 * larger than PACK_ENTRY_BYTES_MAX. */
MUST_CHECK int pack_put(struct pack *p, struct arena *a, struct str entry, struct str *out);
MUST_CHECK int pack_get(struct pack *p, struct arena *a, struct str packed, struct str *out,
                        uint32_t *number);

/* Trains a dictionary from samples that stand one after the other in text. Takes a second or so:
 * for a helper thread or a tool. ERR_INVALID when they are too few or too alike. */
MUST_CHECK int pack_train(struct arena *a, struct str text, const size_t *sizes, unsigned count,
                          struct str *dictionary);
uint32_t pack_number(struct str dictionary); /* 0 when it is none */
#endif
