/* switches.h -- settings that admins change while millrace runs, in table setting.
 *
 * A change is effective on all nodes once it is committed, before its request is answered: what a
 * switch forbids is a transaction that reads the switch with a lock (switch_read), so it comes
 * before the change, or sees it. Redis is not needed for that.
 *
 * Every node also reads the table twice a second: switch_on is what it saw last, to save work and
 * to show. While MySQL does not answer the last values stay. A version per switch keeps a slow
 * reader from bringing an old value back. */
#ifndef ENGINE_PEOPLE_SWITCHES_H
#define ENGINE_PEOPLE_SWITCHES_H

#include "engine/people/admin_log.h"
#include "engine/store/role.h"

enum switch_name {
    SWITCH_REGISTRATION, /* registration is open */
    SWITCH_NEW_RUNS,     /* runs that wait are started; off: those that run go on, others wait */
    SWITCH_COUNT,
};
#define SWITCH_WORDS "registration|new_runs"

const char *switch_word(enum switch_name n); /* "registration" */
bool switch_find(struct str word, enum switch_name *out);

struct switches;
struct switches *switches_new(struct sql_pool *sql); /* all at their defaults */
void switches_free(struct switches *s);

/* Rows of the table that are no switches are shown to fn at every look. Once, before the first. */
typedef void switches_fn(void *arg, struct str name, struct str value, int64_t version);
void switches_also(struct switches *s, switches_fn *fn, void *arg);

bool switch_on(const struct switches *s, enum switch_name n);
/* As the table has it, with a lock: a change waits until the transaction has ended. */
MUST_CHECK int switch_read(struct task *t, struct sql *c, enum switch_name n, bool *on);
/* In MySQL, then here; other nodes see it by switch_read, or at their next look. Noted in the same
 * transaction, with target, before and after filled in. */
MUST_CHECK int switch_turn(struct task *t, struct switches *s, enum switch_name n, bool on,
                           const struct admin_deed *by);
/* A change of any row of table setting: the body of an sql_tx, with a struct setting_change. It is
 * noted in the same transaction. */
struct setting_change {
    struct str name, value; /* JSON */
    struct str unset;       /* the value that counts where there is no row */
    const char *member;     /* "on": of before and after, if the deed has none */
    struct admin_deed deed;
    int64_t version; /* afterwards */
};
MUST_CHECK int setting_change(struct task *t, struct sql *c, void *arg);
/* Reads the table once. A node does it before it serves, so that a restart keeps the switches. */
MUST_CHECK int switches_look(struct task *t, struct switches *s);
/* Reads the table. arg: a struct switches. */
role_fn switches_role;
#endif
