/* ris.h -- one paper as a RIS record: what Zotero, EndNote and Mendeley import.
 *
 * Always true of what is written: it begins with a line TY and ends with a line ER and an empty one; every line
 * is "XX  - value" and CRLF, its value one line of valid UTF-8 without control characters, LaTeX gone.
 *
 * Names become "Last, First, Suffix" by BibTeX's rules; one that stands in braces as a whole is a body and
 * stays as it is. "and others" has no place in RIS and is left out. */
#ifndef CORPUS_RIS_H
#define CORPUS_RIS_H

#include "base/buf.h"
#include "base/err.h"
#include "corpus/bibtex.h"

/* What the paper is stored under; these speak before its entry does. */
struct ris_paper {
    struct str doi; /* a made-up one is not shown */
    int64_t year;
    struct str journal; /* for papers whose entry names none, or is gone */
};

/* bibtex: as Redis holds it (paper.h); p == NULL: the entry is gone, and what is left is written. b is lent by
 * the caller, what it had read before is forgotten; a is for what is needed meanwhile. ERR_PROTO, and nothing
 * written: there is no entry in it. */
MUST_CHECK int ris_write(struct arena *a, struct bibtex *b, struct str bibtex,
                         const struct ris_paper *p, struct buf *out);
#endif
