/* init_read.h -- what a load knows about files: those of the folder, of earlier loads, and what it
 * has read. */
#ifndef TOOL_DB_INIT_READ_H
#define TOOL_DB_INIT_READ_H

#include "base/map.h"
#include "tool/db/init_seen.h"

/* What corpus_file.bytes says of files that are not in the database whole. */
#define INIT_GONE  (-1) /* not in the folder any more */
#define INIT_BEGUN (-2) /* not read to its end: the next load reads it again */

struct init_known { /* a row of corpus_file */
    struct str journal, name;
    int64_t bytes, changed_ns, digest;
    int64_t left; /* papers; -1: not known */
};

struct init_read {            /* by this load */
    struct map *files;        /* keys of all that are in the folder */
    struct map *known;        /* key -> struct init_known, as before this load */
    struct map *whole;        /* keys of those that were known, and read to their end */
    struct map *damaged;      /* keys of those with entries that had to be left out */
    struct init_seen entries; /* init_pair_key of file and DOI, of those that were known */
};

void init_read_init(struct init_read *r);
void init_read_release(struct init_read *r);

struct str init_file_key(struct arena *a, struct str journal, struct str name);

/* Files are given by their keys. */
void init_read_note(struct init_read *r, struct arena *a, struct str file, struct str doi);
/* Whether a file was read to its end, and the DOI not found. */
bool init_read_misses(const struct init_read *r, struct arena *a, struct str file, struct str doi);
/* The same, and it is not among damaged entries either. */
bool init_read_lacks(const struct init_read *r, struct arena *a, struct str file, struct str doi);
#endif
