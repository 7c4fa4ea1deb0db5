/* tokens.h -- how many tokens of a model a text is, estimated on the high side: a third for a byte
 * of ASCII, one for a character beyond, two for one of four bytes in UTF-8, and one more for the
 * whole. Every text that is sent to a model is counted so. Any bytes are taken. */
#ifndef CORPUS_PROSE_TOKENS_H
#define CORPUS_PROSE_TOKENS_H

#include "base/str.h"

int64_t tokens_estimate(struct str s);
#endif
