/* ledger.h -- what a user may spend, and the record of what was spent.
 *
 * Owns user:<uid>:balance, user:<uid>:ledger, billing_queue:<uid>, the tables billing_log,
 * ledger_request and ledger_outbox, and the money in user_info. Money is an int64_t of cents.
 *
 * Two ways, two counters:
 *   - moves are made in MySQL (recharges): row of billing_log, balance and move_no in one
 *     transaction, with a row of ledger_outbox; then a script adds them to the balance in Redis, in
 *     the order of their numbers, each once, and the outbox row goes. Whatever is left in the
 *     outbox is carried over by any node.
 *   - records are made in Redis (deductions; charges later): a script takes the money and appends
 *     to billing_queue with the next seq. The syncer writes them to billing_log together with
 *     the balance and billed_seq in one transaction, and then has a script trim what is
 *     at most billed_seq.
 *
 * user:<uid>:ledger is a hash: seq (last record made), synced (last record trimmed), move (last
 * move applied). Always true, whatever dies when:
 *   - Redis balance = MySQL balance - records with seq > billed_seq + moves not yet applied;
 *   - a balance is loaded only from a row that is not older than what Redis knows: move_no >= move
 *     and billed_seq >= synced, else it is read again;
 *   - a balance never goes below zero, and leaves Redis only when its queue is empty and MySQL has
 *     confirmed the same amount (ACC-4). */
#ifndef ENGINE_LEDGER_H
#define ENGINE_LEDGER_H

#include "engine/cache.h"

#define LEDGER_CENTS_MAX         99999999999 /* of one move: 999,999,999.99 */
#define LEDGER_REQUEST_BYTES_MAX 64

struct ledger;

struct ledger_options {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct cache *cache;
    struct metrics *metrics; /* backlog of records and of moves, applied, synced, drift */
};
struct ledger *ledger_new(const struct ledger_options *o);
void ledger_free(struct ledger *l);

/* "240.00" and back. False: not an amount with at most two decimals, from 0 to LEDGER_CENTS_MAX; no
 * exponents, signs or spaces. */
bool ledger_cents(struct str decimal, int64_t *cents);
struct str ledger_decimal(struct arena *a, int64_t cents);

/* What the user may spend: from Redis, else loaded; *degraded: from MySQL, because Redis does not
 * answer (then charges of the last seconds may be missing). ERR_NOT_FOUND: no such user. */
MUST_CHECK int ledger_balance(struct task *t, struct ledger *l, int64_t uid, int64_t *cents,
                              bool *degraded);

struct ledger_move {
    int64_t uid, cents;
    struct str request_id; /* the same one again has no effect, and the same answer */
    /* Run in the same transaction when the move is made, not when it is repeated: the audit log. */
    int (*also)(struct task *t, struct sql *c, void *arg);
    void *also_arg;
};
/* Adds money. *balance afterwards. ERR_CONFLICT: this request_id was another amount or kind.
 * ERR_NOT_FOUND. ERR_LIMIT: the balance would be more than its column holds. When Redis does not
 * answer it is done all the same: the outbox tells Redis later. */
MUST_CHECK int ledger_recharge(struct task *t, struct ledger *l, const struct ledger_move *m,
                               int64_t *balance);
/* Takes money through Redis, and returns when it is in MySQL, too. ERR_FUNDS: too little is left,
 * nothing changed. ERR_UNAVAILABLE: Redis does not answer; nothing changed. */
MUST_CHECK int ledger_deduct(struct task *t, struct ledger *l, const struct ledger_move *m,
                             int64_t *balance);

/* Records of one user to MySQL, until none are left. */
MUST_CHECK int ledger_sync(struct task *t, struct ledger *l, int64_t uid);
/* Drops balance and ledger of a user from Redis if they are what MySQL has; else ERR_CONFLICT
 * after a sync, and whoever asked tries again later. */
MUST_CHECK int ledger_let_go(struct task *t, struct ledger *l, int64_t uid);

/* For ever: drains the outbox, syncs the queues of all users that have records. A task_fn with a
 * struct ledger. Any number of nodes may run it. */
void ledger_task(struct task *t, void *arg);
#endif
