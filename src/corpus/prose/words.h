/* words.h -- the words of a text, as a full-text index keeps them, in any language.
 *
 * One rule for texts and for questions, so that both give the same words: NFKC and case folding;
 * runs of letters and digits are words; runs of Chinese, Japanese, Korean, Thai, Lao, Khmer and
 * Burmese characters become pairs of neighbours (a single character is a word of its own), for they
 * have no blanks, or none that count. Accents are removed, a plural s of English too.
 *
 * Always true: a word is written with small letters and digits of ASCII alone, other alphabets in a
 * code of them, so that no tokenizer cuts it and no collation changes it; it has 3 to
 * WORDS_BYTES_MAX bytes, and is none of the words that InnoDB leaves out by default: short ones and
 * those get a tail, stop words are left out here. Any bytes are taken; time is linear. */
#ifndef CORPUS_PROSE_WORDS_H
#define CORPUS_PROSE_WORDS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define WORDS_BYTES_MIN 3
#define WORDS_BYTES_MAX 64 /* of one word; a longer one is cut */

/* Appends the words of a text in their order, with one blank behind each; at most `most` of them.
 * Returns how many. */
size_t words_write(struct str text, size_t most, struct buf *out);

/* The same one by one: word is what was made of the bytes from begin to end of the text. Of two
 * pairs the second one begins within the first. False ends it. */
typedef bool words_fn(void *arg, struct str word, size_t begin, size_t end);
void words_each(struct str text, words_fn *each, void *arg);
#endif
