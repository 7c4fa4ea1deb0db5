#include "serve/system_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

int system_user_find(struct arena *a, const char *name, struct system_user *out, const char **why)
{
    struct passwd *p = *name ? getpwnam(name) : getpwuid(geteuid());
    if (!p && *name) {
        *why = arena_printf(a, "\"user\" is \"%s\"; there is no such system user", name);
        return ERR_INVALID;
    }
    if (!p) { /* containers may run with a uid that is in no passwd file */
        *out = (struct system_user){arena_printf(a, "%d", (int)geteuid()), geteuid(), getegid()};
        return 0;
    }
    if (geteuid() != 0 && p->pw_uid != geteuid()) {
        *why = arena_printf(a, "\"user\" is \"%s\"; only root can run as another user", name);
        return ERR_INVALID;
    }
    gid_t gid = *name ? p->pw_gid : getegid();
    *out = (struct system_user){arena_strdup(a, p->pw_name), p->pw_uid, gid};
    return 0;
}

int system_user_become(struct arena *a, const struct system_user *u, const char **why)
{
    if (u->uid == geteuid())
        return 0;
    if (initgroups(u->name, u->gid) == 0 && setresgid(u->gid, u->gid, u->gid) == 0 &&
        setresuid(u->uid, u->uid, u->uid) == 0 && setuid(0) < 0)
        return 0;
    *why = arena_printf(a, "cannot become the user \"%s\": %s", u->name, strerror(errno));
    return ERR_IO;
}
