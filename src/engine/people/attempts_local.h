/* attempts_local.h -- the counts of a node that has no Redis: per subject the times of its
 * attempts. Never waits. The memory is bounded: ATTEMPTS_LOCAL_MAX subjects (attempts.h). */
#ifndef ENGINE_PEOPLE_ATTEMPTS_LOCAL_H
#define ENGINE_PEOPLE_ATTEMPTS_LOCAL_H

#include "base/check.h"
#include "base/str.h"

struct attempts_local;
struct attempts_local *attempts_local_new(void);
void attempts_local_free(struct attempts_local *l);

struct attempts_now {
    int64_t now_ms, window_ms;
};
/* Counts for all subjects (*wait_ms 0), or, where one has had too many, for none: then there is
 * room in *wait_ms. limits: of each subject, how many in a window; -N: the first N, then slowly.
 * ERR_BUSY: no more subjects can be told apart. */
MUST_CHECK int attempts_local_take(struct attempts_local *l, const struct str *subjects,
                                   const int64_t *limits, size_t count, struct attempts_now n,
                                   int64_t *wait_ms);
/* Takes the latest attempt of each back. right: all of the first. */
void attempts_local_return(struct attempts_local *l, const struct str *subjects, size_t count,
                           bool right);
void attempts_local_sweep(struct attempts_local *l, struct attempts_now n);
#endif
