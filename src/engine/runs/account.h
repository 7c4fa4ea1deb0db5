/* account.h -- whether the account of a user works, and how the operator lets it work again.
 *
 * An account is stopped while the two stores contradict each other about its money, so that its
 * balance cannot be loaded: no charge is made, and its runs are paused with RUN_REASON_ACCOUNT or
 * RUN_REASON_UNRECORDED. That is no flag: it lasts as long as the contradiction. What needs the
 * operator is the look at it, and the runs, which stay paused. */
#ifndef ENGINE_RUNS_ACCOUNT_H
#define ENGINE_RUNS_ACCOUNT_H

#include "engine/money/audit.h"
#include "engine/people/admin_log.h"
#include "engine/runs/reserve.h"

#define ACCOUNT_STATES "active|stopped"

struct account_state {
    /* Of a stopped one the balance of MySQL, without charges of the last seconds. */
    struct reserve money;
    bool stopped;
    struct str why;   /* of a stopped one, in the words of the ledger, for admins */
    int64_t since_ms; /* its first run was paused for it; 0: none was */
};
/* Errors as those of reserve_look, but for those that mean a stopped account. */
MUST_CHECK int account_look(struct task *t, const struct runs *r, int64_t uid,
                            struct account_state *out);

struct account_release {
    bool write_off; /* records that cannot be read are given up: what they took is the user's */
    /* The audit of the user, told as audit_run tells it. */
    void (*found)(void *arg, const struct audit_finding *f);
    void *arg;
    /* afterwards: */
    struct audit_report report;
    bool was_stopped;
    int64_t written_off;  /* records */
    int64_t cents;        /* the balance */
    int64_t runs_resumed; /* of those that were paused for it */
    int64_t runs_waiting; /* those that stay so: the user is banned */
};
/* Audits the user. If everything adds up, syncs its records, loads its balance, and resumes the
 * runs that were paused for it; each is noted. ERR_CONFLICT: there are findings, or the money kept
 * changing; nothing was changed, but for records that were written off. ERR_INTERNAL, ERR_REFUSED:
 * the ledger cannot be read or written; task_error says why, and no run was resumed. Idempotent. */
MUST_CHECK int account_release(struct task *t, const struct runs *r, int64_t uid,
                               const struct admin_deed *by, struct account_release *x);
#endif
