/* init_change.h -- what one transaction of a load changes: numbers and digests of blocks, and which
 * papers came to a block or left it.
 *
 * Written by init_changes_write in the transaction that changes paperinfo. So the papers of a block
 * at the end of any load can be told (engine/papers/block.h). Of a block that this load has made no
 * paper is noted: nothing is asked about it as it was before. */
#ifndef TOOL_DB_INIT_CHANGE_H
#define TOOL_DB_INIT_CHANGE_H

#include "tool/db/init.h"

struct init_change { /* of a block */
    struct str journal;
    int64_t year, papers, digest, bare;
    bool members; /* other papers than before */
};

struct init_move {
    const struct init_change *block;
    struct str doi;
    int64_t net; /* 1: it came to the block; -1: it left */
};

/* All in the task's arena, but for the map. Strings are borrowed. */
struct init_changes {
    struct map *blocks; /* name -> struct init_change */
    struct init_move *moves;
    size_t move_count;
    int64_t added, changed, withdrawn; /* papers, for corpus_load */
};

void init_changes_init(struct init_changes *c);
void init_changes_release(struct init_changes *c);

struct init_fact { /* about a paper */
    struct str doi, journal;
    int64_t year, digest;
    bool bare; /* it has no abstract */
};
struct init_fact init_fact_of(struct arena *a, struct bibtex *reader, const struct paper *stored);
/* A paper that a block has not had, or has no more: net 1, -1. */
void init_changes_add(struct task *t, struct init_changes *c, const struct init_fact *p,
                      int64_t net);
/* The same for a paper that stays in its block: -1 with its old text, 1 with its new one. */
void init_changes_text(struct task *t, struct init_changes *c, const struct init_fact *p,
                       int64_t net);

MUST_CHECK int init_changes_write(struct task *t, struct sql *c, const struct init_changes *x,
                                  int64_t load);
/* Adds the names of blocks that are not as they were. */
void init_changes_name(const struct init_changes *c, struct map *names);
#endif
