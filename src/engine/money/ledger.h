/* ledger.h -- what a user may spend, and the record of what was spent.
 *
 * Owns user:<uid>:balance, user:<uid>:ledger, user:<uid>:aside, billing_queue:<uid>, the tables
 * billing_log, ledger_request and ledger_outbox, and the money in user_info. Money is an int64_t of
 * cents.
 *
 * Two ways, two counters:
 *   - moves are made in MySQL (recharges): row of billing_log, balance and move_no in one
 *     transaction, with a row of ledger_outbox; then a script adds them to the balance in Redis, in
 *     the order of their numbers, each once, and the outbox row goes. Whatever is left in the
 *     outbox is carried over by any node.
 *   - records are made in Redis (deductions, and charges, see charge.h): a script takes the money
 *     and appends to billing_queue with the next seq. The syncer writes them to billing_log
 *     together with the verdicts that were charged (filing.h), the balance and billed_seq in one
 *     transaction, and then has a script trim what is at most billed_seq.
 *
 * user:<uid>:ledger is a hash: seq (last record made), synced (last record trimmed), move (last
 * move applied), run (the generation that the balance was loaded in). Always true, whatever dies
 * when:
 *   - Redis balance = MySQL balance - records with seq > billed_seq - moves with number > move;
 *   - a balance is loaded only from a row that is not older than what Redis knows: move_no >= move
 *     and billed_seq >= synced, else it is read again;
 *   - a balance never goes below zero, and leaves Redis only when its queue is empty and MySQL has
 *     confirmed the same amount (ACC-4). The counters stay, so that the second rule holds.
 *
 * Redis may come back older than it was, or empty. So a balance counts only while run is the
 * generation of Redis, which scripts that touch it ask for themselves, and is loaded anew
 * otherwise. Before the first load in a new generation, that one is written to MySQL (fence.h). A
 * syncer locks that row together with the user's, and writes only records that it read in the same
 * generation: what was read from a Redis that has died since cannot reach MySQL after the load.
 * Charges that came to MySQL before, and whose results Redis has lost, are made good before the
 * balance is loaded (repair.c): the result comes back, or a reversal, which is a move, gives the
 * money back. The whole story is docs/restart.md. */
#ifndef ENGINE_MONEY_LEDGER_H
#define ENGINE_MONEY_LEDGER_H

#include "engine/store/amount.h"
#include "engine/store/cache.h"
#include "engine/store/role.h"

#define LEDGER_REQUEST_BYTES_MAX 64

struct ledger;

struct ledger_options {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct cache *cache;
    /* millrace_ledger_{records,moves}_waiting, millrace_ledger_{records_synced,moves_applied,
     * reversals,restored,alarms}_total, millrace_ledger_drift_cents. NULL: not shown */
    struct metrics *metrics;
    struct group *group; /* of the tasks that make payments; NULL: ledger_pay is not called */
};
struct ledger *ledger_new(const struct ledger_options *o);
void ledger_free(struct ledger *l);

/* What the user may spend: from Redis, else loaded; *degraded: from MySQL, because Redis does not
 * answer (then charges of the last seconds may be missing). ERR_NOT_FOUND: no such user. */
MUST_CHECK int ledger_balance(struct task *t, struct ledger *l, int64_t uid, int64_t *cents,
                              bool *degraded);

/* Of ledger_balance: the stores contradict each other about this user's money, or a script fails
 * for it. The account is stopped until the operator has looked at it. */
static inline bool ledger_is_stopped(int err)
{
    return err == ERR_INTERNAL || err == ERR_REFUSED;
}

/* The same as part of a batch of the caller's, in the same round trip: ledger_ask adds its
 * commands, ledger_answer gets their replies, and loads the balance if it is missing. It does not
 * fall back to MySQL: the caller of the batch handles a Redis that does not answer. */
#define LEDGER_ASK_COMMANDS 2
void ledger_ask(struct redis_batch *b, int64_t uid);
MUST_CHECK int ledger_answer(struct task *t, struct ledger *l, int64_t uid,
                             const struct redis_reply *const *replies, int64_t *cents);

/* Something of a user that is not finished, and may cost more until it is. */
struct ledger_work {
    struct str status; /* key of its hash in Redis: fields state and cost */
    int64_t ceiling;   /* cents that it costs at most */
    bool reopened;     /* it was DONE once: the state DONE in Redis may be of that time */
};
struct ledger_spendable {
    bool loaded; /* false: Redis has no balance of this generation; ledger_balance loads it */
    int64_t balance;
    int64_t reserved; /* what the works may still cost: ceilings less costs so far */
};
/* Costs so far and balance, read in one step. It waits for Redis and for no row of MySQL, so it may
 * be called while the user's row is locked. ERR_UNAVAILABLE: Redis does not answer. */
MUST_CHECK int ledger_spendable(struct task *t, struct ledger *l, int64_t uid,
                                const struct ledger_work *works, size_t count,
                                struct ledger_spendable *out);
/* Never below 0: an admin may take what is reserved. */
static inline int64_t ledger_free_cents(const struct ledger_spendable *s)
{
    return s->balance > s->reserved ? s->balance - s->reserved : 0;
}

bool ledger_request_id_fine(struct str id); /* visible ASCII, not too long */

struct ledger_move {
    int64_t uid, cents;    /* more than 0, at most AMOUNT_CENTS_MAX; else ERR_INVALID */
    struct str request_id; /* visible ASCII, else ERR_INVALID; idempotency key */
    /* The audit log: run once for each request_id, in the transaction that makes a recharge, or in
     * the one that notes a deduction before any money is taken, so that none is taken unnoted. May
     * be NULL. Must not return ERR_CONFLICT but for a deadlock: the transaction is tried again
     * then. */
    int (*also)(struct task *t, struct sql *c, void *arg);
    void *also_arg;
};
/* Adds money. *balance afterwards. ERR_CONFLICT: this request_id was another amount or kind.
 * ERR_NOT_FOUND. ERR_LIMIT: the balance would be more than its column holds. ERR_UNCERTAIN: MySQL
 * was lost on the way; the same request again completes it, once. When Redis does not answer it is
 * done all the same: ledger_role applies it to Redis from the outbox later. */
MUST_CHECK int ledger_recharge(struct task *t, struct ledger *l, const struct ledger_move *m,
                               int64_t *balance);
/* Takes money through Redis, and returns when it is in MySQL, too. ERR_FUNDS: too little is left,
 * no money was taken. ERR_UNAVAILABLE: a store does not answer, no money was taken. ERR_UNCERTAIN:
 * it may have been taken; the same request again completes it, once. ERR_CONFLICT,
 * ERR_NOT_FOUND. */
MUST_CHECK int ledger_deduct(struct task *t, struct ledger *l, const struct ledger_move *m,
                             int64_t *balance);

/* The same for what a job costs, without an audit log. Payments of one user that come at about the
 * same time share all calls of the stores. */
MUST_CHECK int ledger_pay(struct task *t, struct ledger *l, const struct ledger_move *m);

/* Records of one user to MySQL, until none are left. ERR_INTERNAL: they do not fit the state in
 * MySQL (a gap in seq, or more than the balance); logged, and nothing changed. */
MUST_CHECK int ledger_sync(struct task *t, struct ledger *l, int64_t uid);
/* Drops the balance of a user from Redis if it is what MySQL has; else ERR_CONFLICT after a sync,
 * and the caller retries later. */
MUST_CHECK int ledger_let_go(struct task *t, struct ledger *l, int64_t uid);

/* Records that could not be read, any bytes: they are aside, and the user is not charged. */
MUST_CHECK int ledger_aside(struct task *t, struct ledger *l, int64_t uid, const struct str **out,
                            size_t *count);
/* Gives one up: what it took goes back to the user. When none is left, the balance can be
 * loaded. */
MUST_CHECK int ledger_write_off(struct task *t, struct ledger *l, int64_t uid, struct str record);

/* Records of all users that are not in MySQL yet: read from Redis alone, so available while MySQL
 * is down. */
MUST_CHECK int ledger_backlog(struct task *t, struct ledger *l, int64_t *records);

/* Drains the outbox, syncs the queues of all users that have records. arg: a struct ledger. Any
 * number of nodes may do it. */
role_fn ledger_role;
#endif
