/* init_left.h -- papers of the corpus that are not in the folder any more.
 *
 * A paper has left if its file is gone, or was read again and does not have it. A load compares the
 * journals of files that it has read again, or misses, not those that merely got a new file; and
 * corpus_file.left_papers keeps the numbers, so that a later load knows them without reading those
 * files. With --prune files are read again that papers have left, and files that were never
 * compared; a paper that another file has becomes that file's, and the others are withdrawn. Papers
 * that are missing from a file with damaged entries may be those entries: they are never withdrawn,
 * and how many have left such a file is not known. */
#ifndef TOOL_DB_INIT_LEFT_H
#define TOOL_DB_INIT_LEFT_H

#include "tool/db/init_batch.h"

/* Counts papers that have left, by file. Those of files that are gone are counted once, and again
 * with --prune. *left: DOI -> struct str, the key of its file, in a; NULL without --prune. */
MUST_CHECK int init_left_find(struct task *t, struct init *in, const struct init_read *r,
                              struct arena *a, struct map *left);
/* Takes them out of the corpus, unless they have become another file's meanwhile. */
MUST_CHECK int init_left_withdraw(struct task *t, struct init *in, const struct init_read *r,
                                  const struct map *left, struct map *blocks_changed);
/* Reports how many papers have left and are in the corpus. */
MUST_CHECK int init_left_count(struct task *t, struct init *in);
#endif
