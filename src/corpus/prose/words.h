/* words.h -- the words of a text, as a full-text index keeps them, in any language.
 *
 * One rule for texts and for questions, so that both give the same words: NFKC and case folding;
 * runs of letters and digits are words; runs of Chinese, Japanese and Korean characters become
 * pairs of neighbours (a single character is a word of its own), for they have no blanks. Accents
 * are removed, a plural s of English too. Every word is written with letters and digits of ASCII or
 * of other alphabets alone, and so that a full-text index with its default settings keeps it: short
 * ones get a tail, stop words are left out here. */
#ifndef CORPUS_PROSE_WORDS_H
#define CORPUS_PROSE_WORDS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define WORDS_BYTES_MAX 64 /* of one word; a longer one is cut */

/* Appends the words of a text in their order, with one blank behind each; at most `most` of them.
 * Returns how many. */
size_t words_write(struct str text, size_t most, struct buf *out);
#endif
