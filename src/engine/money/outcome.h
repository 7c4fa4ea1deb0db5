/* outcome.h -- the three ways in which the work on a paper ends.
 *
 * Charges, results and their archive know these classes, and not what an application makes of them.
 * Screening calls a hit relevant: so do the names in Redis, MySQL and the API, which are older. */
#ifndef ENGINE_MONEY_OUTCOME_H
#define ENGINE_MONEY_OUTCOME_H

#include <stdbool.h>

#include "base/check.h"

enum outcome {
    OUTCOME_HIT,    /* charged, and listed apart */
    OUTCOME_MISS,   /* charged */
    OUTCOME_FAILED, /* no verdict; costs nothing, and can be tried again. result.h tells papers
                     * apart that were not even asked about */
};

/* As scripts take it. */
static inline char outcome_letter(enum outcome o)
{
    check(o <= OUTCOME_FAILED);
    return "rnf"[o];
}

/* False: no letter of an outcome. */
static inline bool outcome_read(char letter, enum outcome *out)
{
    *out = letter == 'r' ? OUTCOME_HIT : letter == 'n' ? OUTCOME_MISS : OUTCOME_FAILED;
    return letter == outcome_letter(*out);
}
#endif
