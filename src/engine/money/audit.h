/* audit.h -- is every cent where it belongs? (BIL-3)
 *
 * For every user:
 *   - the rows of billing_log add up to the balance in MySQL;
 *   - the balance in Redis is that of MySQL less the records and moves that are under way, and no
 *     record is missing between the two;
 *   - MySQL is not older than Redis; if it is, the user is closed to charges;
 *   - no record is aside because it could not be read;
 *   - every charge that was not reversed has its result in Redis, until its run is archived, and
 *     its verdict in search_result (BIL-7); every verdict there has its charge;
 *   - no run has judged more papers, or cost more, than its estimate (SCR-1), and what its row says
 *     of its cost and its papers is what billing_log and search_result say;
 *   - the cost of an unfinished run in Redis, of which follows what is reserved, is that of MySQL
 *     and of the records under way.
 * There is no snapshot across both stores. So a mismatch is read again until the sums agree, or
 * until the MySQL row was the same before and after the read of Redis; a user whose row changes in
 * every try is counted as unsettled, which is no finding. A user whose balance is not loaded in the
 * current generation is checked in MySQL only: the repair comes first. Verdicts and runs of such a
 * user are checked by a deep audit only.
 *
 * billing_log is append-only. So the background role sums only the rows added since a user's last
 * clean check, and looks for results of new charges only, until Redis restarts. Everything is read
 * again after a restart of the node, and by an audit without memory; but verdicts in MySQL of all
 * but a user's last hundred thousand charges only by a deep audit. */
#ifndef ENGINE_MONEY_AUDIT_H
#define ENGINE_MONEY_AUDIT_H

#include "engine/money/ledger.h"
#include "engine/store/role.h"

struct audit_finding {
    int64_t uid;
    /* "log", "redis", "records", "older", "result", "aside", "store"; of runs: "estimate",
     * "reserved", "verdicts", "counts" */
    const char *what;
    int64_t expected, found; /* cents, or numbers of records, moves or papers */
    int64_t cents;           /* that are off, never negative */
    const char *detail;      /* for people */
};

struct audit_memory;

struct audit {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct ledger *ledger;
    bool deep; /* also archived runs, verdicts without charges, charges of runs that do not exist */
    void (*found)(void *arg, const struct audit_finding *f); /* NULL: logged */
    void *arg;
    /* millrace_ledger_drift_cents, millrace_audit_users_total, millrace_audit_age_seconds; NULL:
     * not shown */
    struct metrics *metrics;
    int64_t each_ms;             /* of audit_role; 0: 60000 */
    int64_t begun_ms;            /* when audit_age_role was first run */
    struct audit_memory *memory; /* what audit_role has verified; NULL: read everything */
};

struct audit_report {
    int64_t users, open; /* open: with a balance in Redis */
    int64_t unsettled;   /* users whose money changed in every try */
    int64_t findings, drift_cents;
};

/* All users, in pages. An error means that not all were looked at. */
MUST_CHECK int audit_run(struct task *t, const struct audit *a, struct audit_report *out);
/* One user. ERR_NOT_FOUND. */
MUST_CHECK int audit_user(struct task *t, const struct audit *a, int64_t uid,
                          struct audit_report *out);

struct audit_memory *audit_memory_new(void);
void audit_memory_free(struct audit_memory *m);

/* arg of all three: a struct audit. One node at a time, when the last audit is older than
 * each_ms. */
role_fn audit_role;
void audit_elsewhere(void *arg);
role_fn audit_age_role; /* on every node: age of the last audit */
#endif
