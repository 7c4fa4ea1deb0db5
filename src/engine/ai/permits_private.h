/* permits_private.h -- how limits hold over all nodes without a script per request.
 *
 *   1. A node leases: one script gives it some requests and tokens of some keys, which count from that
 *      moment on. One lease call is under way per node; whoever waits meanwhile is in the next one.
 *      Far from all limits a node leases as much in advance as it needs in 50 ms; near them only
 *      what is waited for. What is left over after 250 ms goes back with the next call, and so does
 *      what tokens were reserved and not used. A node that dies tells nothing: all stays counted.
 *   2. A minute has 480 slots of 125 ms, on Redis' clock. A permit is valid for 6 slots from before the
 *      lease call, so a request leaves the node within 6 slots of the moment that counts, and we
 *      allow for two more by which the way to the service may differ between two requests.
 *   3. Two requests that arrive within 60 s were thus leased within 488 slots. A lease at the end of a
 *      slot must count for that long: 489 slots, 61.1 s. That is 98.1 % of the limit for ever, and
 *      97.9 % in the worst minute. (With slots of a second it would be 62 s, and less than 97 %.)
 *   4. Each key has a hash: r<i> and t<i> for the slots, i = slot % 489, their sums r and t, and the slot
 *      `at` up to which it was brought. A script first takes the slots from the sums that no longer
 *      count.
 *   5. Half of a limit is given at once to whoever wants it. The rest is paced, 1/32 faster than it
 *      comes free, by next_r and next_t (when the next one is due, at most a slot in arrears):
 *      a burst would else return as a burst for ever, with nothing in between.
 *   6. Redis is restarted, and has forgotten what came last, or all. The hash of the ring has the run id
 *      of the server. Where it is another one, the most that can have been sent and forgotten is
 *      what the limit had left: it is counted, in the last slot in which that can have been. Without an
 *      append-only file that is now. With one, at most 2 s are lost; every node calls every second; so
 *      it is 4 s after the last call that is known (`at`). For that, calls must have been known to
 *      come regularly: after a pause of more than 2 s nothing is given for 2 s (`since`).
 *   7. A new system has nothing to forget and must not wait: setting has no row keyring.begun. The ring is
 *      made first, then the row, and a node gives no permit before it has seen the row.
 *   8. The last node that ends in order leaves a mark in the ring (`clean`, the run id of the server), when it
 *      gives no more permits. With an append-only file, whoever finds it after a restart knows that nothing was lost
 *      before it. The first call takes it away, and gives nothing for 2 s: by then that is on disk.
 *   9. With an append-only file, what can have been given in those 4 s is bounded by (5): half of the limit if less was
 *      used, then what is paced in 4 s, and one request. So a key that is far from its limits is used again at once. The bound
 *      holds for requests of up to 65,536 tokens. Before the first larger one that is noted (`big`), and nothing is
 *      given for 2 s; after that the tokens count in full.
 *
 * A key that rests has the time in its hash. A key that was refused rests too, while MySQL is told. */
#ifndef ENGINE_AI_PERMITS_PRIVATE_H
#define ENGINE_AI_PERMITS_PRIVATE_H

#include "base/list.h"
#include "engine/ai/permits.h"

#define KEYRING_SLOT_MS          125
#define KEYRING_SLOTS_PER_SECOND 8
#define KEYRING_MINUTE_SLOTS     480
#define KEYRING_VALID_SLOTS      6
#define KEYRING_WAY_SLOTS        2
#define KEYRING_SLOTS            (KEYRING_MINUTE_SLOTS + KEYRING_VALID_SLOTS + KEYRING_WAY_SLOTS + 1)
#define KEYRING_STOCK_SLOTS      2 /* a lease is handed out for so long, */
#define KEYRING_LEFT_SLOTS       2 /* and to those who waited for it, if it is valid for so long */
#define KEYRING_LOTS_MAX         (4 * KEYRING_KEYS_MAX)
#define KEYRING_ADVANCE_MAX      20000 /* requests */

/* What goes back to a slot. */
struct keyring_return {
    int64_t slot, requests, tokens; /* tokens: negative where more were used than reserved */
    bool waiting;                   /* to be told */
};

struct keyring_key {
    int64_t id;
    char *api_key, *name;
    int64_t rpm, tpm, caps[KEYRING_CAPS]; /* caps: -1 for none */
    bool active;                          /* as api_list says, and not refused since */
    bool listed;                          /* in api_list */
    bool refused;                         /* api_list must be told */
    int status;                           /* that it was refused with */
    int64_t rests_until_us;
    struct keyring_return returns[KEYRING_SLOTS]; /* by slot % KEYRING_SLOTS */
};

/* What was leased and is not handed out yet. */
struct keyring_lot {
    struct keyring_key *key;
    int64_t slot, requests, tokens;
    int64_t begun_us; /* before the call */
};

struct keyring_waiter {
    struct list in;
    struct task *task;
    int64_t tokens;
    struct permit *out;
    struct keyring_key *key; /* of the permit */
    bool done;
    int err;
};

struct keyring {
    struct redis *redis;
    struct sql_pool *sql;
    int64_t slot_ms;

    struct keyring_key *keys[KEYRING_KEYS_MAX]; /* never shrinks: returns may still come */
    size_t key_count;
    int64_t tpm_max;           /* of the active ones; 0: there is none */
    bool looked;               /* at api_list */
    bool begun;                /* (7) */
    bool blind, crowded, deaf; /* it was said */

    struct task *pump;          /* NULL: does not run */
    struct list waiting, large; /* of struct keyring_waiter, oldest first */
    struct keyring_lot lots[KEYRING_LOTS_MAX];
    size_t lot_count;
    int64_t stock; /* requests in lots */
    bool calling;

    size_t return_count;     /* that wait to be told */
    int64_t return_since_us; /* the first of them */
    int64_t called_us;       /* last call */
    int64_t ask_again_us;    /* nothing to be had before */
    int64_t advance_again_us;

    int64_t takes, take_tokens, measured_us; /* demand, measured */
    int64_t demand, demand_tokens;           /* of a tenth of a second; of one request */

    int64_t *permits, *waits, *rests, *refusals, *calls;
    int64_t *requests_used, *requests_limit, *tokens_used, *tokens_limit;
};

static inline int64_t keyring_slot_us(const struct keyring *k)
{
    return k->slot_ms * 1000;
}

struct keyring_key *keyring_find(struct keyring *k, int64_t id);
void keyring_serve(struct keyring *k, int64_t now_us, bool just_leased); /* who waits */
void keyring_sort_waiters(struct keyring *k);
void keyring_fail_waiters(struct keyring *k, int err);
void keyring_give_back(struct keyring *k, int64_t now_us, struct keyring_key *key,
                       const struct keyring_return *r);
/* Lots that are too old to be handed out, and all of a key (NULL: of none), go back. */
void keyring_clear_lots(struct keyring *k, int64_t now_us, const struct keyring_key *of);
/* permits_state.c: the last error of a key, for all to see. */
struct str keyring_error_text(struct task *t, bool refused, const char *text);
void keyring_wake(struct keyring *k);
void keyring_pump(struct task *t, void *arg); /* permits_lease.c */
/* One call to Redis. Fresh: no permit was ever given (7). */
MUST_CHECK int keyring_lease(struct task *t, struct keyring *k, bool fresh);
#endif
