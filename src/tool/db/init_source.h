/* init_source.h -- one .bib file as db init reads it: scanned once for its digest and encoding,
 * then read entry by entry.
 *
 * UTF-8 is streamed, in any size. Other files are converted as a whole, because only all of their
 * bytes tell the encoding; they may have INIT_CONVERT_BYTES_MAX. Blocks. */
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

/* Conversion and reader report their problems to r; dropped entries are counted in counts. ERR_IO
 * leaves errno; ERR_LIMIT: not UTF-8, and too large. */
MUST_CHECK int init_source_open(struct init_source **s, const struct init_file *f, bool utf8,
                                struct init_report *r, struct init_counts *counts);
/* 1: *e is filled until the next call. 0: the end. ERR_IO. */
MUST_CHECK int init_source_next(struct init_source *s, struct bibtex_entry *e);
struct bibtex *init_source_reader(struct init_source *s);
void init_source_close(struct init_source *s);
#endif
