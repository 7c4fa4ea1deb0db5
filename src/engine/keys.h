/* keys.h -- the names of all Redis keys. No other file contains one.
 *
 * Each comment says what lives there and until when. A key has a native TTL only if MySQL can
 * rebuild it, or losing it costs no more than a repeat. Names are made in a, with a NUL behind. */
#ifndef ENGINE_KEYS_H
#define ENGINE_KEYS_H

#include "base/str.h"

/* --- the catalog: no TTL; engine/catalog.c --- */

extern const struct str key_tags;     /* hash: tag -> type */
extern const struct str key_journals; /* hash: journal -> {"FullName", "DataRange", "UpdateDate"} */
extern const struct str key_prices;   /* hash: journal -> points */
extern const struct str key_catalog_lock;                         /* string: who loads it, 10 s */
struct str key_tag_journals(struct arena *a, struct str tag);     /* set: journals */
struct str key_year_numbers(struct arena *a, struct str journal); /* hash: year -> papers */

/* --- blocks: 7 days, renewed by use, rebuilt from paperinfo; engine/block.c --- */

struct str key_block(struct arena *a, struct str journal, int64_t year); /* hash: DOI -> paper */
/* string: who builds it, 30 s */
struct str key_block_lock(struct arena *a, struct str journal, int64_t year);
/* hash: the same while it is built, 10 minutes */
struct str key_block_aside(struct arena *a, struct str journal, int64_t year, struct str token);
#endif
