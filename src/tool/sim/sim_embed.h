/* sim_embed.h -- texts as vectors: those that share words are near each other.
 *
 * Every word adds four signed ones at places that its hash chooses; the sum is
 * scaled to length one. The cosine of two texts is then about the share of words
 * they have in common. The same text always gives the same vector. */
#ifndef TOOL_SIM_EMBED_H
#define TOOL_SIM_EMBED_H

#include "base/buf.h"
#include "base/str.h"

#define SIM_DIMENSIONS_DEFAULT 256
#define SIM_DIMENSIONS_MAX     4096

/* Fills out[0 … dimensions - 1] with a vector of length one, whatever the text is. */
void sim_embed(struct str text, float *out, size_t dimensions);

/* The same idea with more of a text in it: rare words weigh more than frequent ones (idf), pairs of
 * neighbouring words count as words of half the weight, whichever of them comes first, and each
 * adds a sign at every place (a random projection). What benchmarks compare vectors of. */
struct sim_idf; /* how many of some texts have a word */

struct sim_idf *sim_idf_new(void);
void sim_idf_free(struct sim_idf *idf);
void sim_idf_learn(struct sim_idf *idf, struct str text);

/* Adds a text's words to sums[0 … dimensions - 1]: two texts add up to the one that has both, but
 * for the pair between them. idf may be NULL: words of three letters weigh little, others one. */
void sim_embed_add(const struct sim_idf *idf, struct str text, float *sums, size_t dimensions);
/* Makes a vector of length one of the sums, whatever they are. */
void sim_embed_finish(float *sums, size_t dimensions);

void sim_embed_write(const float *v, size_t dimensions, struct buf *out); /* [0.12345678,…] */
/* The bytes of the little-endian floats, base64, in quotes: as encoding_format asks. */
void sim_embed_write_base64(const float *v, size_t dimensions, struct buf *out);
#endif
