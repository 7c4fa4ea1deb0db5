/* role.h -- a background role in a test: rounds without a lock until its group is cancelled. */
#ifndef TESTS_ROLE_H
#define TESTS_ROLE_H

#include "engine/store/role.h"

static inline void role_in(struct group *g, role_fn *round, void *arg, int64_t each_ms)
{
    static const bool draining;
    static struct roles *roles; /* for ever: states of roles are freed with it */
    if (!roles)
        roles = roles_new(NULL, &draining);
    roles_go(roles, g,
             &(struct role){.name = "test",
                            .round = round,
                            .arg = arg,
                            .each_ms = each_ms,
                            .complaint = "a round fails"});
}
#endif
