/* statement.h -- what the record of a user's money says: table billing_log, newest first, page by
 * page.
 *
 * Two counters number its rows (ledger.h), so a place in the order is a number of each; a page is
 * two ranges of the primary key, merged by time. Charges in Redis appear here with the next
 * sync.
 *
 * Deductions are made by admins and by jobs. That of an admin is noted in admin_audit with its
 * request_id, in the transaction that notes the request (watch/admin_acts.h); every other one is
 * of a job, and its request_id is "<queue>:<id of the job>". */
#ifndef ENGINE_MONEY_STATEMENT_H
#define ENGINE_MONEY_STATEMENT_H

#include "wire/sql.h"

#define STATEMENT_LIMIT_MAX 500 /* of one page */
#define STATEMENT_KINDS     "opening|charge|recharge|deduction|reversal"
#define STATEMENT_JOB_CHARS 64

struct statement_wish {
    int64_t uid;
    struct str qid;       /* of one run only; p == NULL: of all, and what is of none */
    bool without_charges; /* not together with qid */
};

struct statement_row {
    struct str source; /* "redis" or "mysql" */
    int64_t number;    /* of that source */
    int64_t at_ms, cents;
    struct str kind;
    struct str qid, doi; /* p == NULL: of none */
    struct str job;      /* queue of the job that it paid for (jobs/pay.h); p == NULL: of none */
};
bool statement_takes(const struct statement_row *r); /* it made the balance smaller */

struct statement_page {
    struct statement_row *rows; /* in the task's arena, as all of it */
    size_t count;
    struct str next; /* p == NULL: that was all */
};

/* cursor: next of the page before; p == NULL: from the newest. ERR_INVALID: not a cursor of ours.
 * ERR_NOT_FOUND: the user has no such run. */
MUST_CHECK int statement_list(struct task *t, struct sql_pool *sql, const struct statement_wish *w,
                              struct str cursor, int64_t limit, struct statement_page *out);
#endif
