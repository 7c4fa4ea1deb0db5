/* state.h -- the states of a run and their transitions. No other file decides on them.
 *
 *        start           pause
 *   QUEUED ---> RUNNING ---------> PAUSED       a queued run can be paused, too
 *     |          | ^  ^-------------' |         resume: back in the queue for workers (PAU-2);
 *     |          | |                  |         QUEUED again if it was never started
 *     |          | `------.           |
 *     |          +----> DONE <--------'         its last unit is finished; back to RUNNING
 *     |          |                    |         to retry failed papers, or after a loss in Redis
 *     +----------+--------------------+-------> CANCELLED: terminated, which outranks a pause
 *     `---------------------------------------> FAILED: it cannot be split; with the reason */
#ifndef ENGINE_RUNS_STATE_H
#define ENGINE_RUNS_STATE_H

#include "base/str.h"

enum run_state { RUN_QUEUED, RUN_RUNNING, RUN_PAUSED, RUN_DONE, RUN_CANCELLED, RUN_FAILED };
#define RUN_STATES 6

const char *run_state_name(enum run_state s); /* "QUEUED", as tables, keys and the API have it */
bool run_state_parse(struct str name, enum run_state *out);

/* Why a state changes. */
enum run_event {
    RUN_START,        /* the dispatcher has split it */
    RUN_PAUSE,        /* its user, an admin, or want of money */
    RUN_RESUME,       /* its user */
    RUN_TERMINATE,    /* its user, an admin, or seven days of pause */
    RUN_FINISH,       /* the last unit is done */
    RUN_FAIL,         /* it cannot be split */
    RUN_RETRY_FAILED, /* its user */
    RUN_REOPEN,       /* Redis came back older than it was, and lacks results */
    RUN_REQUEUE,      /* its user resumes it, and it was never started */
};
#define RUN_EVENTS 9

/* False: not allowed in this state. Idempotent: a repeat is allowed, and changes nothing. */
bool run_state_after(enum run_state s, enum run_event e, enum run_state *out);
/* Nothing but a retry changes it any more. */
bool run_state_final(enum run_state s);

/* Why a run was paused or ended, in words for its user; a run that fails has words of its own.
 * Programs go by the code. */
#define RUN_REASON_FUNDS   "the balance is used up"
#define RUN_REASON_ACCOUNT "the account needs the operator"
#define RUN_REASON_BANNED  "the account is banned"
#define RUN_REASON_ADMIN   "ended by an administrator"
#define RUN_REASON_EXPIRED "it was paused for seven days"
/* Followed by ": " and what the ledger says. */
#define RUN_REASON_UNRECORDED "its verdicts cannot be recorded"
/* Followed by ": " and what the service says. */
#define RUN_REASON_REFUSED "its requests are refused"

/* Those of rows, then those of runs that want to work and do not (reason.h). */
#define RUN_REASON_CODES                                                                           \
    "funds|account|banned|admin|expired|unrecorded|refused|other|" REASON_STANDING_CODES
#define REASON_STANDING_CODES                                                                      \
    "account_stopped|repairing|new_runs_off|drained|no_permission|no_key|keys_resting|"            \
    "service_down|queued|rate_limit"
/* NULL: there is no reason. */
const char *run_reason_code(struct str reason);
#endif
