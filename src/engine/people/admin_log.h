/* admin_log.h -- the audit log of admins, table admin_audit: which admin, when, from where, what,
 * to what, before and after, and the outcome. (money/audit.h is about money.)
 *
 * Rows are only ever added: no statement of millrace changes or removes one, which tests/tidy.py
 * checks. Whatever changes MySQL is noted in the same transaction, so that neither happens without
 * the other. What goes through Redis, or takes several transactions, is noted before as begun and
 * afterwards as done. Refusals are noted once they are decided. */
#ifndef ENGINE_PEOPLE_ADMIN_LOG_H
#define ENGINE_PEOPLE_ADMIN_LOG_H

#include "wire/sql.h"

#define ADMIN_AUDIT_PAGE_MAX   500
#define ADMIN_AUDIT_TEXT_CHARS 500 /* of a reason, and of what was asked for: more is cut off */

#define ADMIN_OUTCOMES "done|begun|repeated|refused|failed"
enum admin_outcome {
    ADMIN_DONE,
    ADMIN_BEGUN,    /* another row tells the outcome; if none does, it is not known */
    ADMIN_REPEATED, /* it was done before, and nothing more was done */
    ADMIN_REFUSED,  /* the caller's fault */
    ADMIN_FAILED,   /* not the caller's fault; error tells whether it may have been done */
};

/* Texts with p == NULL and numbers of 0 are none. */
struct admin_deed {
    int64_t admin_uid;              /* 0: the command line */
    struct str admin_name, address; /* as they are now: admins can be removed */
    const char *action;             /* "user.recharge" */
    int64_t user_uid;               /* the user it was done to */
    struct str target;              /* or what else: an admin, a run, a key, a switch, a token */
    struct str request_id, reason;
    struct str before, after; /* JSON objects of what was changed; never a secret */
    struct str asked;         /* likewise, of what was refused */
    enum admin_outcome outcome;
    struct str error;
};
/* What the operator does at the command line. */
#define ADMIN_OPERATOR .admin_name = STR("(command line)"), .address = STR("local")

/* In the transaction that does it. ERR_EXISTS: so was this request_id, for the same user and
 * action. */
MUST_CHECK int admin_audit_add(struct task *t, struct sql *c, const struct admin_deed *d);
/* By itself. */
MUST_CHECK int admin_audit_note(struct task *t, struct sql_pool *p, const struct admin_deed *d);

/* At most ADMIN_AUDIT_TEXT_CHARS, in whole characters. */
struct str admin_audit_cut(struct str s);

struct admin_row {
    int64_t id, at_ms;
    struct admin_deed deed; /* but for the outcome, which is a text here */
    struct str action, outcome;
};
struct admin_filter {
    int64_t before_id; /* 0: from the newest on */
    struct str admin;  /* name or number */
    struct str action; /* exactly */
    int64_t user_uid;
    int64_t from_ms, to_ms; /* since 1970; to is not included; 0: not limited */
};
/* Newest first, at most limit, in the task's arena. Each filter has an index: only rows that match
 * are read. */
MUST_CHECK int admin_audit_list(struct task *t, struct sql_pool *p, const struct admin_filter *f,
                                int64_t limit, struct admin_row **out, size_t *count);
#endif
