/* promise.h -- how work that costs money is promised to a user: its rows, and the money for it, in
 * one transaction (SCR-1).
 *
 * The user's row is locked meanwhile, so that of two promises at once the second sees the first:
 * they cannot spend the same money, nor have the same request_id, nor both be the last that fits a
 * limit. */
#ifndef ENGINE_RUNS_PROMISE_H
#define ENGINE_RUNS_PROMISE_H

#include "engine/runs/reserve.h"

struct promise {
    int64_t uid, cents;
    const char *what; /* "run": one of them, in sentences for the user */
    /* NULL, or whether it was promised before: then nothing is checked, and nothing written. */
    int (*repeats)(struct task *t, struct sql *c, void *arg, bool *repeated);
    /* Writes it; it must be in what reserve.h adds up when the transaction ends. */
    int (*write)(struct task *t, struct sql *c, void *arg);
    void *arg;
};
/* ERR_FORBIDDEN: the account is banned or stopped, or has permission 0. ERR_FUNDS: too little is
 * free. ERR_UNAVAILABLE: a store does not answer, nothing was done. ERR_UNCERTAIN: MySQL was lost
 * at the end. Or what the functions return. */
MUST_CHECK int promise_make(struct task *t, const struct runs *r, const struct promise *p,
                            bool *repeated);
#endif
