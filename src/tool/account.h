/* account.h -- what `millrace user` and `millrace admin` share: a name, a password from the
 * terminal or standard input, the stores, and a cache, through which running servers see a
 * change. */
#ifndef TOOL_ACCOUNT_H
#define TOOL_ACCOUNT_H

#include "engine/people/user.h"
#include "engine/store/cache.h"
#include "tool/db/db.h"
#include "tool/opt.h"

#define ACCOUNT_PASSWORD_ABOUT                                                                     \
    "The password is asked for, or read from the first line of standard input"
#define ACCOUNT_LINE_BYTES (USER_PASSWORD_BYTES_MAX + 3) /* a newline, one byte too many, NUL */

struct account {
    bool sets_password;
    bool mysql_only; /* running servers have nothing of it in Redis */
    /* What is wrong with the command line, NULL: nothing. May be NULL. */
    const char *(*problem)(struct account *a, char **operands);
    /* Does it; what it prints is flushed. An error is reported with task_error. */
    int (*apply)(struct task *t, struct account *a);
    void *arg;

    const char *config, *name; /* --config, the first operand */
    char line[ACCOUNT_LINE_BYTES];
    struct db *db;       /* while apply runs; so are the following */
    struct cache *cache; /* NULL when mysql_only */
    struct str hash;     /* of the password */
};

/* The same of the name of an account to be added. */
const char *account_name_problem(struct account *a, char **operands);

#define ACCOUNT_OPTS_MAX 4

/* Reads the command line (to the options of c comes --config) and the password, then runs apply.
 * The exit status. */
int account_main(struct command c, struct account *a, int argc, char **argv);
#endif
