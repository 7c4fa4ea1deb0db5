/* audit_private.h -- what the files of the audit share. */
#ifndef ENGINE_MONEY_AUDIT_PRIVATE_H
#define ENGINE_MONEY_AUDIT_PRIVATE_H

#include "engine/money/audit.h"
#include "engine/money/ledger_private.h"

struct audit_state {
    const struct audit *audit;
    struct audit_report report;
    struct role_turn *turn; /* its lock is kept from page to page; NULL: none */
};

/* A row of user_info, and the sum of its billing_log. */
struct audit_row {
    int64_t uid, cents, billed_seq, move_no, log;
};

/* What an earlier round verified. */
struct audit_known {
    int64_t billed_seq, move_no;
    int64_t log;                  /* sum of billing_log up to these two numbers */
    int64_t results;              /* charges up to this number have results */
    struct generation generation; /* in this generation */
};

void audit_report(struct audit_state *s, const struct audit_finding *f);

/* audit_results.c: charges of the user after `after`, up to billed_seq. *settled becomes false:
 * Redis is in another generation than g by now, and nothing was reported of it. */
MUST_CHECK int audit_results(struct task *t, struct audit_state *s, const struct audit_row *row,
                             int64_t after, const struct generation *g, bool *settled);
/* Those whose verdicts MySQL lacks. */
MUST_CHECK int audit_verdicts(struct task *t, struct audit_state *s, const struct audit_row *row,
                              int64_t after);

/* A run that was submitted before verdicts were written with their charges has them in MySQL when
 * it is archived. */
#define AUDIT_COMPLETE                                                                             \
    "(q.archived = 1 OR q.created_at >= (SELECT applied_at FROM schema_migration"                  \
    " WHERE number = 12))"

/* audit_runs.c: the user's runs. open: the balance is in Redis. *settled becomes false: costs could
 * not be compared, and nothing was reported of them. */
MUST_CHECK int audit_runs(struct task *t, struct audit_state *s, const struct audit_row *row,
                          const struct generation *g, bool open, bool *settled);
#endif
