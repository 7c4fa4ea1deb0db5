/* offload.h -- work for helper threads: hashing passwords, compressing, looking up names.
 *
 * fn runs on another thread and may touch nothing but *arg. The queue is bounded. */
#ifndef LOOP_OFFLOAD_H
#define LOOP_OFFLOAD_H

#include "loop/task.h"

#define OFFLOAD_QUEUE_MAX 1024

/* Returns when fn has run, or ERR_BUSY (queue full), ERR_CANCELED, ERR_TIMEOUT if it had not been
 * started by then. Once started, fn is always waited for: arg may live on the stack. */
MUST_CHECK int offload(struct task *t, void (*fn)(void *arg), void *arg);
#endif
