/* audit.h -- is every cent where it belongs? (BIL-3)
 *
 * For every user:
 *   - the rows of billing_log add up to the balance in MySQL;
 *   - the balance in Redis is that of MySQL less the records and moves that are under way, and no
 *     record is missing between the two;
 *   - MySQL is not older than Redis; if it is, the user is closed to charges;
 *   - every charge that was not reversed has its result: in Redis, or in search_result once its run is
 *     archived.
 * The stores cannot be read at one moment. So what looks wrong is read again until it adds up, or MySQL was the same
 * before and after Redis was asked; who never stands still is unsettled, which is no finding. A user
 * whom a new Redis has not opened yet is checked in MySQL only: the repair comes first.
 *
 * billing_log only grows. So the background check, which runs for ever, adds up what is new since it last found a
 * user to be right, and looks for results of new charges only, until Redis was restarted; everything is read
 * again when the node starts, and by whoever asks for an audit. */
#ifndef ENGINE_MONEY_AUDIT_H
#define ENGINE_MONEY_AUDIT_H

#include "engine/money/ledger.h"
#include "engine/store/role.h"

struct audit_finding {
    int64_t uid;
    const char *what;        /* "log", "redis", "records", "older", "result" */
    int64_t expected, found; /* cents; "records" and "older": numbers of records or moves */
    int64_t cents;           /* that are off, never negative */
    const char *detail;      /* for people */
};

struct audit_memory;

struct audit {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct ledger *ledger;
    bool deep; /* also the results of archived runs, and charges of runs that do not exist */
    void (*found)(void *arg, const struct audit_finding *f); /* NULL: logged */
    void *arg;
    /* millrace_ledger_drift_cents, millrace_audit_users_total, millrace_audit_age_seconds; NULL: not
     * shown */
    struct metrics *metrics;
    int64_t each_ms;             /* of audit_role; 0: 60000 */
    int64_t begun_ms;            /* when audit_age_role was first run */
    struct audit_memory *memory; /* what audit_role has seen; NULL: everything is read */
};

struct audit_report {
    int64_t users, open; /* open: with a balance in Redis */
    int64_t unsettled;   /* users who did not stand still */
    int64_t findings, drift_cents;
};

/* All users, in pages. An error means that not all were looked at. */
MUST_CHECK int audit_run(struct task *t, const struct audit *a, struct audit_report *out);

struct audit_memory *audit_memory_new(void);
void audit_memory_free(struct audit_memory *m);

/* arg of all three: a struct audit. One node at a time, when the last audit is older than each_ms. */
role_fn audit_role;
void audit_elsewhere(void *arg);
role_fn audit_age_role; /* on every node: how old the last one is */
#endif
