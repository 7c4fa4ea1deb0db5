/* number.h -- numbers as people write them in papers.
 *
 * What is read: a sign (+, -, −, –) that stands directly before the number and not between two
 * words or digits, so that 5–10 and COVID-19 have no negative number; thousands as 1,234,567, or
 * with thin or no-break spaces; decimals as 1.5, .05, 0·05 and 3,5, and 1.234,5 or 1.234.567, where
 * no other reading is left; powers as 1.2e3, 1.2 × 10^3, 1.2×10³, 1.2×10−4, 10^{-4}; full-width
 * digits; a multiplier as 3.5万, 2 亿, 1.2 million. Digits directly behind a letter (H2O, HbA1c)
 * are part of a name and no number; those behind a Chinese character are one. A percent sign and
 * units are left to the caller. Any bytes are taken, the work is linear in their number. */
#ifndef CORPUS_NUMBER_H
#define CORPUS_NUMBER_H

#include "base/str.h"

/* The first number of a text, and what stands behind it; rest may be NULL. False, and nothing is
 * written: there is none. The value is finite. */
bool number_read(struct str text, double *out, struct str *rest);

/* Whether one of the numbers in the text is this one, up to a relative 1e-9. Where a number can be
 * read in two ways each of them counts: 1,234 as 1.234, "12 345" with plain spaces, "5 × 105" as
 * 5 × 10⁵ whose power was lost on the way out of a PDF, 3.5万 as 3.5, "1,2" as 1 and 2. */
bool number_in(struct str text, double value);
#endif
