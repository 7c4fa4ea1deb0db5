/* admin_acts.h -- acts on users that change more than a row: by an admin over HTTP, or by the
 * operator at the command line. Each is noted in the audit log (admin_log.h). */
#ifndef ENGINE_WATCH_ADMIN_ACTS_H
#define ENGINE_WATCH_ADMIN_ACTS_H

#include "engine/people/admin_log.h"
#include "engine/runs/run.h"

/* Recharges or deducts. Errors as those of ledger_recharge and ledger_deduct. A recharge is noted
 * in its transaction; a deduction goes through Redis, so it is noted as begun before, and with its
 * outcome afterwards. request_id and user of `by` are filled in. */
struct admin_move {
    int64_t uid, cents;
    struct str request_id;
    bool takes;
};
MUST_CHECK int admin_move_money(struct task *t, const struct runs *r, const struct admin_move *m,
                                const struct admin_deed *by, int64_t *balance);

/* A ban ends all sessions, suspends API tokens (people/api_token.h) and pauses all runs; lifting it
 * allows logins and tokens again, and resumes no run.
 * ERR_NOT_FOUND. The row is written first: from then on logins are refused. Idempotent: if a later
 * step fails, repeat the call. */
MUST_CHECK int admin_ban(struct task *t, const struct runs *r, int64_t uid, bool banned,
                         const struct admin_deed *by);
#endif
