/* tap.h -- test programs print TAP: one line per assertion, the plan at the end. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/str.h"

/* Each returns whether it held, so that a test can stop early. */
bool tap_ok(bool held, const char *file, int line, const char *fmt, ...) PRINTF(4, 5);
bool tap_int(int64_t got, int64_t want, const char *file, int line, const char *fmt, ...)
    PRINTF(5, 6);
bool tap_str(struct str got, struct str want, const char *file, int line, const char *fmt, ...)
    PRINTF(5, 6);
int tap_done(void); /* prints the plan; the exit status of the program */

/* What is tested is evaluated before the words that tell of it, which may be its own. */
#define ok(held, ...)                                                                              \
    ({                                                                                             \
        bool held_ = (held);                                                                       \
        tap_ok(held_, __FILE__, __LINE__, __VA_ARGS__);                                            \
    })
#define is_int(got, want, ...)                                                                     \
    ({                                                                                             \
        int64_t got_ = (got), want_ = (want);                                                      \
        tap_int(got_, want_, __FILE__, __LINE__, __VA_ARGS__);                                     \
    })
#define is_str(got, want, ...)                                                                     \
    ({                                                                                             \
        struct str got_ = (got), want_ = (want);                                                   \
        tap_str(got_, want_, __FILE__, __LINE__, __VA_ARGS__);                                     \
    })

/* Runs fn as the only task of a fresh loop, on virtual time unless real is set. Where the
 * environment has MILLRACE_TEST_TAGS, keys are named as on a cluster, and a script whose keys would
 * be on two of its servers is refused. */
struct task;
void tap_task(void (*fn)(struct task *t, void *arg), void *arg, bool real_time);
#endif
