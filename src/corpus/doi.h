/* doi.h -- the name a paper is stored under: its DOI in one spelling, or a made-up key. */
#ifndef CORPUS_DOI_H
#define CORPUS_DOI_H

#include "base/str.h"

#define DOI_BYTES_MAX    255
#define DOI_MADE_UP_MARK "made-up/" /* no DOI begins like this */

/* The first DOI in a field, in lower case and without what exports put around it: addresses
 * (https://doi.org/), "doi:", braces, escapes, full stops. The result is 10.<4 to 9 digits>/…, at
 * most DOI_BYTES_MAX bytes of valid UTF-8, no spaces and no control characters.
 * False leaves *out alone. */
bool doi_normal(struct arena *a, struct str raw, struct str *out);

/* What an entry without a DOI is known by. Absent fields have p == NULL. */
struct doi_source {
    struct str journal, year, title;
    struct str volume, number, pages; /* tell the editorials of a year apart */
    struct str entry;                 /* the raw entry; used only when there is no title */
};

/* DOI_MADE_UP_MARK and 32 hexadecimal digits: the same for the same fields, however they are
 * spaced, capitalised, braced or punctuated, and on every machine. */
struct str doi_made_up(struct arena *a, const struct doi_source *source);

bool doi_is_made_up(struct str doi);
#endif
