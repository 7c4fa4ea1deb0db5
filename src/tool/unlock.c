#include "tool/unlock.h"

#include <stdio.h>

#include "engine/people/admin.h"
#include "engine/people/attempts.h"
#include "tool/account.h"

static const char about[] =
    "Ends a lock-out: failed log-ins of this name, from anywhere, are forgotten on all nodes, and\n"
    "it may log in again at once. Those of an address (login.address_max) end by themselves, five\n"
    "minutes after they were made; log-ins on this machine (127.0.0.1) are not held up by those\n"
    "that failed elsewhere.";

/* The folded name is what failed log-ins are counted by. */
static int unlock(struct task *t, struct account *a)
{
    const char *realm = a->arg;
    struct user u;
    struct admin n;
    int64_t count;
    struct str name = str_of(a->name);
    int err =
        realm[0] == 'u' ? user_find(t, a->db->sql, name, &u) : admin_find(t, a->db->sql, name, &n);
    if (err == ERR_NOT_FOUND)
        return task_fail(t, err, "there is no %s \"%s\"", realm, a->name);
    if (!err)
        err =
            attempts_unlock(t, a->db->redis, realm, user_name_folded(task_arena(t), name), &count);
    if (!err)
        printf("%s\n", count ? "unlocked" : "no failed log-ins were counted");
    return err;
}

int unlock_user_main(int argc, char **argv)
{
    char realm[] = "user";
    return account_main((struct command){"user unlock", "NAME", about, NULL, 0},
                        &(struct account){.apply = unlock, .arg = realm}, argc, argv);
}

int unlock_admin_main(int argc, char **argv)
{
    char realm[] = "admin";
    return account_main((struct command){"admin unlock", "NAME", about, NULL, 0},
                        &(struct account){.apply = unlock, .arg = realm}, argc, argv);
}
