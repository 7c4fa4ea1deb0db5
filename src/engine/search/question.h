/* question.h -- vectors of questions that were asked lately: those used longest ago go first.
 *
 * In the memory of one node: a question that is not here is embedded again. Waits for nothing. */
#ifndef ENGINE_SEARCH_QUESTION_H
#define ENGINE_SEARCH_QUESTION_H

#include "base/str.h"

struct questions;

struct questions *questions_new(size_t bytes_max);
void questions_free(struct questions *q); /* may be NULL */
/* Copied into out, which has room for dimension numbers; false: it is not here. space: the number
 * of the space that it was embedded for. */
bool questions_find(struct questions *q, int64_t space, struct str text, size_t dimension,
                    float *out);
/* Copied. A text or vector that is too large for all is not kept. */
void questions_keep(struct questions *q, int64_t space, struct str text, const float *vector,
                    size_t dimension);
size_t questions_bytes(const struct questions *q);
#endif
