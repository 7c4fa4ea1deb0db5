/* permits_private.h -- how limits hold over all nodes without a script per request.
 *
 *   1. A node leases: one script gives it some requests and tokens of some keys, which count from
 *      that moment on. One lease call is under way per node; tasks that begin to wait meanwhile are
 *      in the next one. Far from all limits a node leases as much in advance as it needs in 50 ms;
 *      near them only what tasks wait for. What is left over after 250 ms goes back with the next
 *      call, and so do tokens that were reserved and not used. A node that dies returns nothing:
 *      all of it stays counted.
 *   2. A minute has 480 slots of 125 ms, on Redis' clock. A permit is valid for 6 slots from before
 *      the lease call, so a request leaves the node within 6 slots of the moment that counts. Two
 *      more allow for the way to the service, which may differ between two requests.
 *   3. Two requests that arrive within 60 s were thus leased within 488 slots. A lease at the end
 *      of a slot must count for that long: 489 slots, 61.1 s. That is 98.1 % of the limit on
 *      average, and 97.9 % in the worst minute. (With slots of a second it would be 62 s, and less
 *      than 97 %.)
 *   4. Each key has a hash, its window: r<i> and t<i> for the slots, i = slot % 489, their sums r
 *      and t, and the slot `at` up to which it was brought. A script first takes the slots that no
 *      longer count from the sums.
 *   5. Half of a limit is given at once. The rest is paced, 1/32 faster than it comes free, by
 *      next_r and next_t (when the next one is due, at most a slot in arrears): without pacing a
 *      burst would return as a burst every minute, with nothing in between.
 *   6. A restarted Redis has forgotten the last calls, or all. Each service has a hash, its ring,
 *      with the run id of the server. If that is another one, the most that can have been sent and
 *      forgotten is what the limit had left: it is counted, in the last slot in which that can have
 *      been. Without an append-only file that is now. With one, at most 2 s are lost; every node
 *      calls every second; so it is 4 s after the last call that is known (`at`). For that, calls
 *      must have been known to come regularly: after a pause of more than 2 s nothing is given for
 *      2 s (`since`).
 *   7. A new system has nothing to forget and must not wait: table setting has no row keyring.begun
 *      (keyring.begun.<service>, but for the chat). The ring is made first, then the row, and a
 *      node gives no permit before it has seen the row.
 *   8. The last node that ends in order leaves a mark in the ring (`clean`, the run id of the
 *      server), after its last permit. With an append-only file, a call that finds the mark after a
 *      restart knows that nothing was lost before it. The first call removes the mark, and gives
 *      nothing for 2 s: by then the removal is on disk.
 *   9. With an append-only file, what can have been given in those 4 s is bounded by (5): half of
 *      the limit if less was used, then what is paced in 4 s, and one request. So a key that is far
 *      from its limits is used again at once. The bound holds for requests of up to 65,536 tokens.
 *      Before the first larger one that is noted (`big`), and nothing is given for 2 s; after that
 *      the tokens count in full.
 *
 *  10. Runs and jobs share the rate. Each call leaves in the ring how many requests of each class
 *      still wait on its node (w<node>: slot, runs, jobs, tokens of the larger first one), which
 *      counts for 4 slots: a node that has waiting tasks calls at least once in each. So every call
 *      knows what waits anywhere, and smaller requests do not take the arrears (5) of a larger one,
 *      which would never be served then.
 *      With a share s of jobs, `lag` is what jobs are behind: a request for runs adds s to it, one
 *      for jobs takes 1 - s from it; both are multiplied by what the request costs, in requests, or
 *      in tokens if these are a larger part of their limit. If jobs get every 1/s-th unit it stays
 *      where it is. While jobs wait somewhere, runs are given nothing if lag >= s * b; while runs
 *      wait, jobs are given nothing if lag <= -(1 - s) * b; both cannot be at the same time, so
 *      nothing that is free is withheld from both. b is one unit, and what comes free in 2 slots:
 *      so much may be given to one class before the other one's node has called. A class of which
 *      nothing waits anywhere is owed nothing (lag <= 0 if jobs do not wait, >= 0 if runs do not),
 *      and the other one gets all. So over any time in which both wait, jobs get
 *      s * all +- (b + 1 unit). What is leased in advance, far from all limits, is for any task.
 *  11. What jobs were given is in the ring, too (`jobs`: requests, tokens, when), as a sum that
 *      fades by 1/e in a minute: at a constant rate it is that of a minute. The dispatcher leaves
 *      it to jobs when it plans for runs, up to their share.
 *
 * A key that rests has the time in its window. A refused key rests, too, until MySQL has it
 * switched off. */
#ifndef ENGINE_AI_PERMITS_PRIVATE_H
#define ENGINE_AI_PERMITS_PRIVATE_H

#include "base/list.h"
#include "engine/ai/permits.h"

#define PERMITS_SLOT_MS          125
#define PERMITS_SLOTS_PER_SECOND 8
#define PERMITS_MINUTE_SLOTS     480
#define PERMITS_VALID_SLOTS      6
#define PERMITS_WAY_SLOTS        2
/* What counts: the minute, and what may still be sent or on its way. */
#define PERMITS_SENT_SLOTS  (PERMITS_VALID_SLOTS + PERMITS_WAY_SLOTS)
#define PERMITS_SLOTS       (PERMITS_MINUTE_SLOTS + PERMITS_SENT_SLOTS + 1)
#define PERMITS_STOCK_SLOTS 2 /* a lease is handed out for so long, */
#define PERMITS_LEFT_SLOTS  2 /* and to waiting tasks, if it is valid for so long */
#define PERMITS_LOTS_MAX    (12 * PERMITS_KEYS_MAX)
#define PERMITS_ADVANCE_MAX 20000 /* requests */
#define PERMITS_NAME_BYTES  17
/* What a lease is for, besides a class. */
#define PERMITS_LARGE 2
#define PERMITS_ANY   3

/* What goes back to a slot. */
struct permits_return {
    int64_t slot, requests, tokens; /* tokens: negative where more were used than reserved */
    bool waiting;                   /* for the next call */
};

struct permits_key {
    int64_t id;
    char *api_key, *name;
    int64_t rpm, tpm, caps[PERMITS_CAPS]; /* caps: -1 for none */
    bool active;                          /* in api_list, and not refused since */
    bool listed;                          /* in api_list */
    bool refused;                         /* must be switched off in api_list */
    int status;                           /* that it was refused with */
    int64_t rests_until_us;
    bool
        on_trial; /* it has rested: one call at a time, until one has ended otherwise than before */
    bool tried;   /* that call is under way */
    int64_t gone_us;                              /* since when it is not listed; 0: it is */
    struct permits_return returns[PERMITS_SLOTS]; /* by slot % PERMITS_SLOTS */
};

/* What was leased and is not handed out yet. */
struct permits_lot {
    struct permits_key *key;
    int64_t what; /* for a class, or PERMITS_ANY */
    int64_t slot, requests, tokens;
    int64_t begun_us; /* before the call */
};

struct permits_waiter {
    struct list in;
    struct task *task;
    enum permits_class class;
    int64_t tokens;
    struct permit *out;
    struct permits_key *key; /* of the permit */
    bool done;
    int err;
};

struct permits {
    struct redis *redis;
    struct sql_pool *sql;
    const char *service;
    int64_t slot_ms;

    struct permits_key *keys[PERMITS_KEYS_MAX]; /* deleted ones stay an hour: for returns */
    size_t key_count;
    int64_t tpm_max;    /* of the active ones; 0: there is none */
    bool keyless;       /* as in the options */
    bool looked;        /* at api_list */
    bool begun;         /* (7) */
    bool crowded, deaf; /* logged: too many keys; Redis away */

    struct task *pump; /* NULL: does not run */
    /* Of struct permits_waiter, oldest first. */
    struct list waiting[PERMITS_CLASSES], large;
    char name[PERMITS_NAME_BYTES]; /* random; of this node, in the ring */
    int64_t jobs_share;            /* percent */
    struct permits_lot lots[PERMITS_LOTS_MAX];
    size_t lot_count;
    int64_t stock; /* requests in lots */
    bool calling;

    size_t return_count;     /* that wait for the next call */
    int64_t return_since_us; /* the first of them */
    int64_t called_us;       /* last call */
    int64_t ask_again_us;    /* nothing to be had before */
    int64_t advance_again_us;

    int64_t takes, take_tokens, measured_us; /* demand, measured */
    int64_t demand, demand_tokens;           /* of a tenth of a second; of one request */

    int64_t *given, *waits, *rests, *refusals, *calls;
    int64_t *requests_used, *requests_limit, *tokens_used, *tokens_limit;
};

static inline int64_t permits_slot_us(const struct permits *k)
{
    return k->slot_ms * 1000;
}

/* Does any task wait? */
static inline bool permits_waits(const struct permits *k)
{
    for (size_t c = 0; c < PERMITS_CLASSES; c++)
        if (!list_empty(&k->waiting[c]))
            return true;
    return !list_empty(&k->large);
}

struct permits_key *permits_find(struct permits *k, int64_t id);
void permits_serve(struct permits *k, int64_t now_us, bool just_leased); /* waiting tasks */
void permits_sort_waiters(struct permits *k);
void permits_fail_waiters(struct permits *k, int err);
void permits_give_back(struct permits *k, int64_t now_us, struct permits_key *key,
                       const struct permits_return *r);
/* Lots that are too old to be handed out, and all of a key (NULL: of none), go back. */
void permits_clear_lots(struct permits *k, int64_t now_us, const struct permits_key *of);
/* permits_state.c: the last error of a key, as Redis keeps it for all nodes. */
struct str permits_error_text(struct task *t, bool refused, const char *text);
void permits_wake(struct permits *k);
/* One call to Redis. Fresh: no permit was ever given (7). */
MUST_CHECK int permits_lease(struct task *t, struct permits *k, bool fresh);
#endif
