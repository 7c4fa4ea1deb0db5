/* text.h -- LaTeX, HTML and JATS as exports mix them, as plain text for prompts and tables.
 *
 * Always true of the result: valid UTF-8, white space collapsed to single spaces and none at the
 * ends, at most TEXT_GROWTH_MAX times as long as the input. Time is linear, recursion bounded. */
#ifndef CORPUS_TEXT_H
#define CORPUS_TEXT_H

#include "base/str.h"

#define TEXT_GROWTH_MAX 3

/* Never fails: what is not understood is kept, and commands it does not know lose their name only.
 * Borrows from latex when nothing but the ends had to change; absent gives absent. */
struct str text_plain(struct arena *a, struct str latex);
#endif
