/* often.h -- how often users have searched in the minute that goes on.
 *
 * In the memory of one node: with more nodes a user may search more often. It bounds load, it is no
 * account. Waits for nothing. */
#ifndef ENGINE_SEARCH_OFTEN_H
#define ENGINE_SEARCH_OFTEN_H

#include <stdint.h>

#include "base/check.h"
#include "base/err.h"

struct map;
struct task;

struct often {          /* zeros: none yet */
    struct map *counts; /* by uid */
    int64_t minute;
};
void often_release(struct often *o);
/* Counts one more. ERR_RATE: the user has had `most` of them, "searches"; nothing was counted.
 * *retry_after_s, which may be NULL: until the minute ends. */
MUST_CHECK int often_count(struct task *t, struct often *o, int64_t uid, int64_t most,
                           const char *what, int64_t *retry_after_s);
#endif
