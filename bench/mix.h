/* mix.h -- vectors of made-up texts, for benchmarks: rare words weigh more than frequent ones (idf
 * of the texts at hand), pairs of neighbouring words count as words of half the weight, and each
 * adds a sign at every place (a random projection). Texts can be mixed: their sums add up. The
 * simulated AI's vectors (sim_embed.h) need no corpus to count in, and are sparser. */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

#include "base/str.h"

struct mix_idf; /* how many of some texts have a word */

struct mix_idf *mix_idf_new(void);
void mix_idf_free(struct mix_idf *idf);
void mix_idf_learn(struct mix_idf *idf, struct str text);

/* Adds a text's words to sums[0 ... dimensions - 1]: two texts add up to the one that has both, but
 * for the pair between them. idf may be NULL: words of three letters weigh little, others one. */
void mix_add(const struct mix_idf *idf, struct str text, float *sums, size_t dimensions);
/* Makes a vector of length one of the sums, whatever they are. */
void mix_finish(float *sums, size_t dimensions);
#endif
