/* paper.h -- one paper: how an entry of a file becomes one, the two forms it is stored in, and what
 * the AI is shown of it.
 *
 *   in MySQL   DOI and a JSON object {"journal", "year", "file", "bib", "strings"}. The short
 *              members come first, because MariaDB looks for them from the front; "strings" is
 *              left out when it is empty.
 *   in Redis   DOI and its BibTeX: the @strings that the entry needs, a line each, then the entry
 *              byte for byte. pack.h makes it small. */
#ifndef CORPUS_PAPER_H
#define CORPUS_PAPER_H

#include "base/buf.h"
#include "corpus/bibtex.h"

#define PAPER_YEAR_MIN       1400
#define PAPER_YEAR_MAX       2200
#define PAPER_NAME_BYTES_MAX 255 /* of a journal, and of a file */

struct paper {
    struct str doi;     /* normal or made up */
    struct str journal; /* the folder it was found in */
    int64_t year;
    struct str file;    /* in that folder */
    struct str bib;     /* the raw entry */
    struct str strings; /* the @strings it needs, each with a newline behind it; "" if none */
};

/* Text for prompts and tables: LaTeX is gone, absent fields have p == NULL. */
struct paper_fields {
    struct str title, abstract, authors, printed_in; /* printed_in: its journal or book */
    struct str type, key;
};

/* The entry that reader b gave last. Borrows from it and from journal and file; the rest is in a.
 * ERR_INVALID with a constant *why ("no year", …): not a paper that can be stored. */
MUST_CHECK int paper_of_entry(struct arena *a, struct bibtex *b, const struct bibtex_entry *e,
                              struct str journal, struct str file, struct paper *out,
                              const char **why);

void paper_write_json(struct buf *out, const struct paper *p);
/* ERR_PROTO: not what paper_write_json writes. Borrows from doi and json. */
MUST_CHECK int paper_read_json(struct arena *a, struct str doi, struct str json, struct paper *out);

/* 63 bits that tell one content of a paper from another, the same on every machine. The file it
 * came from is not content. */
int64_t paper_digest(const struct paper *p);

struct str paper_bibtex(struct arena *a, const struct paper *p); /* as Redis holds it */

/* What that text says, in a. Resets b, which is passed in so that a whole block needs one reader.
 * ERR_PROTO: there is no entry in it. */
MUST_CHECK int paper_read_bibtex(struct arena *a, struct bibtex *b, struct str bibtex,
                                 struct paper_fields *out);
/* Title and abstract alone, for prompts. Valid until b is used again, or text or a end. */
MUST_CHECK int paper_read_shown(struct arena *a, struct bibtex *b, struct str bibtex,
                                struct str *title, struct str *abstract);
/* The same text cut into what paper_bibtex joined: for downloads. Borrows from bibtex. */
MUST_CHECK int paper_split_bibtex(struct arena *a, struct bibtex *b, struct str bibtex,
                                  struct str *strings, struct str *bib);
#endif
