#include "tool/unlock.h"

#include <stdio.h>

#include "engine/people/admin.h"
#include "engine/people/attempts.h"
#include "tool/account.h"

static const char about[] =
    "Ends a lock-out: failed log-ins of this name, from anywhere, are forgotten on all nodes, and\n"
    "it may log in again at once. Those of an address (login.address_max) end by themselves, five\n"
    "minutes after they were made; log-ins on this machine (127.0.0.1) are not held up by those\n"
    "that failed elsewhere. It is noted in the audit log.";

static int find(struct task *t, const struct account *a, const char *realm, int64_t *user_uid)
{
    struct user u = {.uid = 0};
    struct admin n;
    struct str name = str_of(a->name);
    int err =
        realm[0] == 'u' ? user_find(t, a->db->sql, name, &u) : admin_find(t, a->db->sql, name, &n);
    *user_uid = u.uid;
    return err == ERR_NOT_FOUND ? task_fail(t, err, "there is no %s \"%s\"", realm, a->name) : err;
}

/* The folded name is what failed log-ins are counted by. Noted first: the note must not be what is
 * missing. */
static int unlock(struct task *t, struct account *a)
{
    const char *realm = a->arg;
    struct str name = user_name_problem(str_of(a->name))
                          ? str_of(a->name)
                          : user_name_folded(task_arena(t), str_of(a->name));
    struct admin_deed by = {ADMIN_OPERATOR, .target = name,
                            .action = realm[0] == 'u' ? "user.unlock" : "admin.unlock"};
    int64_t count;
    int err = find(t, a, realm, &by.user_uid);
    if (!err)
        err = admin_audit_note(t, a->db->sql, &by);
    if (!err)
        err = attempts_unlock(t, a->db->redis, realm, name, &count);
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
