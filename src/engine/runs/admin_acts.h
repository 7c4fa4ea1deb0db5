/* admin_acts.h -- what is done to users and takes more than a row: by an admin over HTTP, or by the operator at the command
 * line. All of it is noted (admin_log.h). */
#ifndef ENGINE_RUNS_ADMIN_ACTS_H
#define ENGINE_RUNS_ADMIN_ACTS_H

#include "engine/people/admin_log.h"
#include "engine/runs/run.h"

/* Money is given, or taken. Errors as those of ledger_recharge and ledger_deduct. A recharge is noted in its transaction; money that
 * is taken goes through Redis, so it is noted before as begun, and afterwards. request_id and user of `by` are filled in. */
struct admin_move {
    int64_t uid, cents;
    struct str request_id;
    bool takes;
};
MUST_CHECK int admin_move_money(struct task *t, const struct runs *r, const struct admin_move *m,
                                const struct admin_deed *by, int64_t *balance);

/* A ban ends all sessions and pauses all runs; its end lets the user in again, and starts nothing. ERR_NOT_FOUND. The row comes
 * first: from then on nobody gets in, and whatever fails behind it is done by doing it again. */
MUST_CHECK int admin_ban(struct task *t, const struct runs *r, int64_t uid, bool banned,
                         const struct admin_deed *by);
#endif
