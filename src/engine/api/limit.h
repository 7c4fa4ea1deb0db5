/* limit.h -- submissions that count against the limits of their user (engine/jobs/limits.h). */
#ifndef ENGINE_API_LIMIT_H
#define ENGINE_API_LIMIT_H

#include "engine/api/api.h"
#include "engine/jobs/limits.h"

/* Counts so many jobs of the calling user. ERR_RATE: one of the limits is reached; the reply is a
 * 429 that names it, with Retry-After. If the submission fails afterwards: limit_return. */
MUST_CHECK int api_limit_take(struct task *t, struct api_call *c, enum limit_kind kind,
                              int64_t count, struct limit_taken *out);
#endif
