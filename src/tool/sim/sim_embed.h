/* sim_embed.h -- texts as vectors: those that share words and pairs of words are near each other.
 *
 * The features of a text are its words, without a plural's s, and the pairs of neighbouring ones
 * that say something; of Chinese text the characters, and the pairs of neighbouring ones. Each adds
 * its weight, with a sign, at four places that its hash chooses; the sum is scaled to length one.
 *
 * The weight stands for how rare a word is (idf). There is no corpus to count in, so it is taken
 * from what can be seen of the word: those of two lists, of grammar and of any paper's prose, weigh
 * nearly nothing; of the others long ones weigh more than short ones, since words that are often
 * used are short; numbers and single characters weigh little.
 *
 * Sums are integers, and only a square root and a division follow, so the same text gives the same
 * vector on every machine, to the bit. */
#ifndef TOOL_SIM_EMBED_H
#define TOOL_SIM_EMBED_H

#include "base/buf.h"
#include "base/str.h"

#define SIM_DIMENSIONS_DEFAULT 256
#define SIM_DIMENSIONS_MAX     4096

/* Fills out[0 … dimensions - 1] with a vector of length one, whatever the text is. */
void sim_embed(struct str text, float *out, size_t dimensions);

void sim_embed_write(const float *v, size_t dimensions, struct buf *out); /* [0.12345678,…] */
/* The bytes of the little-endian floats, base64, in quotes: as encoding_format asks. */
void sim_embed_write_base64(const float *v, size_t dimensions, struct buf *out);
#endif
