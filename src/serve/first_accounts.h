/* first_accounts.h -- a user and a super admin, so that a new server can be used at once.
 *
 * Made by a start on private stores without any account. The passwords are random, shown once and
 * stored nowhere: MySQL has their hashes.
 *
 *   1. one transaction: both accounts, the user's money as an opening row of billing_log, and a
 *      note in table setting that says "not shown";
 *   2. the passwords are shown;
 *   3. the note says "shown".
 *
 * Wherever a crash happens, the passwords shown last are valid:
 *   - nothing is shown before 1 is confirmed. If it is not, the next start finds out;
 *   - between 1 and 3 the note says "not shown", whether or not they were. The next start gives
 *     both accounts new passwords, in one transaction with the note, and continues with 2. An
 *     account that was changed since (its version is not the noted one) is in use and is not
 *     touched;
 *   - after 3 there is nothing to show: `millrace user password` and `millrace admin password` set
 *     a new one.
 *
 * Not used where a store is configured: operators fill those. */
#ifndef SERVE_FIRST_ACCOUNTS_H
#define SERVE_FIRST_ACCOUNTS_H

#include "wire/sql.h"

#define FIRST_USER           "demo"
#define FIRST_ADMIN          "admin"
#define FIRST_USER_CENTS     1000000 /* all of the sample, and something left */
#define FIRST_PASSWORD_BYTES 20      /* four times four letters, dashes, NUL */

struct first_account {
    int64_t uid, version;
    bool ours;                           /* not changed since it was made */
    struct str hash;                     /* of the password */
    char password[FIRST_PASSWORD_BYTES]; /* "": none to show */
};

struct first_accounts {
    bool wanted; /* to be made, or made and not shown */
    bool made;   /* the note is there */
    struct first_account user, admin;
};

/* Reads which accounts exist; changes nothing. */
MUST_CHECK int first_accounts_look(struct task *t, struct sql_pool *sql,
                                   struct first_accounts *out);
/* Makes those that are wanted, with new passwords in *f, which the caller wipes. */
MUST_CHECK int first_accounts_make(struct task *t, struct sql_pool *sql, struct first_accounts *f);
/* Notes that they were shown. */
MUST_CHECK int first_accounts_shown(struct task *t, struct sql_pool *sql);
#endif
