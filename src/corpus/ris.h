/* ris.h -- one paper as a RIS record: what Zotero, EndNote and Mendeley import.
 *
 * Always true of a record: it begins with a line TY and ends with a line ER and an empty one; every
 * line is "XX  - value" and CRLF, its value one line of valid UTF-8 without control characters and
 * without LaTeX.
 *
 * Names become "Last, First, Suffix" by BibTeX's rules; one that stands in braces as a whole is an
 * organisation and stays as it is. "and others" has no place in RIS and is left out. */
#ifndef CORPUS_RIS_H
#define CORPUS_RIS_H

#include "base/buf.h"
#include "base/err.h"
#include "corpus/bibtex.h"

/* What the paper is stored under; doi and year take precedence over its entry. */
struct ris_paper {
    struct str doi; /* a made-up one is not shown */
    int64_t year;
    struct str journal; /* for papers whose entry names none, or is gone */
    struct str note;    /* one more N1; p == NULL: none */
};

/* bibtex: as Redis holds it (paper.h); p == NULL: the entry is gone, and *p alone is written.
 * Resets b; a is for temporary memory. ERR_PROTO, and nothing written: bibtex holds no entry. */
MUST_CHECK int ris_write(struct arena *a, struct bibtex *b, struct str bibtex,
                         const struct ris_paper *p, struct buf *out);
#endif
