/* sample.h -- a made-up collection in the layout that `millrace db init` reads.
 *
 * Owns everything below its directory that it has written itself, and a marker file that says so.
 * Always true:
 *   - the same number of papers and the same seed give the same bytes, everywhere;
 *   - nothing is replaced without --force, and then only what has a sample's names in a directory
 *     with the marker;
 *   - memory does not grow with the number of papers. */
#ifndef TOOL_SAMPLE_H
#define TOOL_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

#define SAMPLE_FIRST_YEAR 2011
#define SAMPLE_LAST_YEAR  2025

struct progress;

struct sample_options {
    const char *dir;
    int64_t papers, seed;
    bool force;          /* replace an earlier sample */
    struct arena *arena; /* for paths */
};

/* Reports an error with its path on standard error. Returns ERR_IO. */
int sample_complain(const char *path, const char *why);

/* --- sample_dir.c: the directory and its marker --- */

enum sample_found {
    SAMPLE_DIR_READY,   /* empty now, with a marker that says "unfinished" */
    SAMPLE_DIR_PRESENT, /* it holds this very sample; nothing was touched */
};
MUST_CHECK int sample_dir_prepare(const struct sample_options *o, enum sample_found *found);
MUST_CHECK int sample_dir_complete(const struct sample_options *o);

/* --- sample_tree.c: the files --- */

struct sample_total {
    int64_t papers, bytes;
    int files, journals;
};
MUST_CHECK int sample_tree_write(const struct sample_options *o, struct progress *p,
                                 struct sample_total *total);
/* Removes the files that a sample of any size may have left. */
MUST_CHECK int sample_tree_remove(const struct sample_options *o);
#endif
