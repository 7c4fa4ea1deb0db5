/* nearest.h -- "did you mean …?": the known name that is closest to a mistyped one.
 *
 *     struct nearest n = nearest_to(STR("serv"));
 *     nearest_try(&n, "serve"); nearest_try(&n, "sim");
 *     nearest_name(&n)   "serve" */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include "base/str.h"

struct nearest {
    struct str typed;
    const char *best; /* borrowed from nearest_try */
    size_t distance;  /* letters to insert, delete, replace or swap with a neighbour */
};

struct nearest nearest_to(struct str typed);
void nearest_try(struct nearest *n, const char *known);
/* NULL when nothing is near enough to be a typing error. */
const char *nearest_name(const struct nearest *n);
#endif
