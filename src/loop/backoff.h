/* backoff.h -- waits between attempts: each twice as long as the last one, jittered, up to a limit.
 *
 *     struct backoff b = {.ms = 50, .ms_max = 2000};
 *     while (!err && err_may_pass(err = attempt(t)))
 *         err = backoff_wait(t, &b);
 */
#ifndef LOOP_BACKOFF_H
#define LOOP_BACKOFF_H

#include "loop/task.h"

struct backoff {
    int64_t ms, ms_max; /* the next wait; the longest. ms_max 0: all are equal */
};

MUST_CHECK static inline int backoff_wait(struct task *t, struct backoff *b)
{
    int64_t ms = b->ms;
    b->ms = ms * 2 < b->ms_max ? ms * 2 : b->ms_max > ms ? b->ms_max : ms;
    return task_sleep(t, loop_jitter(task_loop(t), ms));
}
#endif
