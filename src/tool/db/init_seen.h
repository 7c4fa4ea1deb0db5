/* init_seen.h -- the DOIs of a file so far, as hashes of 64 bits: a file may hold millions.
 *
 * Two DOIs of one file with the same hash would be taken for one: with a million of them, that
 * happens once in thirty million files, and the report would name it as a duplicate. */
#ifndef TOOL_DB_INIT_SEEN_H
#define TOOL_DB_INIT_SEEN_H

#include "base/str.h"

struct init_seen {   /* begins as all zero */
    uint64_t *slots; /* 0: free */
    size_t cap, count;
};

void init_seen_release(struct init_seen *s);             /* it can be filled again */
bool init_seen_add(struct init_seen *s, struct str doi); /* false: it was there */
bool init_seen_has(const struct init_seen *s, struct str doi);
#endif
