/* split_tree.h -- folders of journals that are filled by one pass over a file.
 *
 * Everything is written below a hidden folder of `out` and moved into out/Data when it is complete:
 * an interrupted split leaves nothing, and no file that is there is replaced. What waits for its
 * file is bounded, whatever the number of journals. Blocks. */
#ifndef TOOL_DB_SPLIT_TREE_H
#define TOOL_DB_SPLIT_TREE_H

#include "base/buf.h"
#include "base/map.h"
#include "corpus/bibtex.h"

#define SPLIT_UNSORTED     "_unsorted" /* entries that name no journal */
#define SPLIT_JOURNALS_MAX 100000

struct split_journal {
    struct str name; /* of the folder */
    int64_t entries;
    int64_t first_year, last_year; /* 0: none has one */
    struct buf waiting;            /* not in the file yet */
    struct map *macros;            /* @strings that it has, by address */
};

struct split_tree {
    struct arena *arena; /* borrowed, as are the following */
    const char *out, *file;
    const char *aside; /* the hidden folder */
    bool made_out;
    struct map *by_name; /* split_fold -> struct split_journal */
    size_t waiting;      /* bytes, of all journals */
};

/* ERR_IO with *why, in a; so do the others. */
MUST_CHECK int split_tree_open(struct split_tree *s, struct arena *a, const char *out,
                               const char *file, const char **why);
/* ERR_LIMIT: too many journals. */
MUST_CHECK int split_tree_add(struct split_tree *s, struct str name, const struct bibtex_entry *e,
                              const char **why);
/* Moves all files into place. ERR_EXISTS: one is there already, and none was moved. */
MUST_CHECK int split_tree_commit(struct split_tree *s, const char **why);
void split_tree_close(struct split_tree *s); /* removes what was not moved */
#endif
