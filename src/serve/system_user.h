/* system_user.h -- the system user that supervisor, nodes and stores run as. */
#ifndef SERVE_SYSTEM_USER_H
#define SERVE_SYSTEM_USER_H

#include <sys/types.h>

#include "base/arena.h"

struct system_user {
    const char *name;
    uid_t uid;
    gid_t gid;
};

/* name as configured; "": the current user. ERR_INVALID with *why (in a) when there is no such
 * user, or this process may not become it. */
MUST_CHECK int system_user_find(struct arena *a, const char *name, struct system_user *out,
                                const char **why);
/* For good: groups, gid and uid. Does nothing when the process is that user already. */
MUST_CHECK int system_user_become(struct arena *a, const struct system_user *u, const char **why);
#endif
