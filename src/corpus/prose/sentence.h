/* sentence.h -- where sentences begin, in English and Chinese text. Any bytes are taken, and only a
 * bounded number of them is looked at. */
#ifndef CORPUS_PROSE_SENTENCE_H
#define CORPUS_PROSE_SENTENCE_H

#include "base/str.h"

/* Whether a sentence has ended just before the byte at, 0 < at < text.n:
 *   - 。！？ or ； stands before it, with or without closing quotes;
 *   - a blank or a line end stands before it, before that . ! or ?, with or without closing quotes;
 *     unless a small letter, a digit or a blank follows: "et al. showed", "Fig. 2". */
bool sentence_begins(struct str text, size_t at);
#endif
