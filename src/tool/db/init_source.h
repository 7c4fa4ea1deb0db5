/* init_source.h -- one .bib file as db init reads it: looked through once to see whether it is new
 * and in which encoding, then read entry by entry.
 *
 * Files of UTF-8 are streamed, whatever their size. Others are converted as a whole, because only
 * all of their bytes tell what they are; they may have INIT_CONVERT_BYTES_MAX. Blocks. */
#ifndef TOOL_DB_INIT_SOURCE_H
#define TOOL_DB_INIT_SOURCE_H

#include "corpus/bibtex.h"
#include "tool/db/init.h"

#define INIT_CONVERT_BYTES_MAX (64 << 20)

struct init_look {
    int64_t digest;
    bool utf8;
};

/* Reads all of it. ERR_IO leaves errno. */
MUST_CHECK int init_source_look(const char *path, struct init_look *out);

struct init_source;

/* What the charset conversion and the reader have to say goes to the report; entries that were
 * dropped are counted in counts. ERR_IO leaves errno; ERR_LIMIT: not UTF-8, and too large. */
MUST_CHECK int init_source_open(struct init_source **s, const struct init_file *f, bool utf8,
                                struct init_report *r, struct init_counts *counts);
/* 1: *e is filled until the next call. 0: the end. ERR_IO. */
MUST_CHECK int init_source_next(struct init_source *s, struct bibtex_entry *e);
struct bibtex *init_source_reader(struct init_source *s);
void init_source_close(struct init_source *s);
#endif
