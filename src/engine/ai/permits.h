/* permits.h -- the keys of the AI service, and how much each may still be used (SCR-9, SCR-10).
 *
 * Every key of api_list has limits: requests and tokens in any 60 s (rpm_limit, tpm_limit), and caps for the
 * minute, day and month. They hold over all nodes together, on Redis' clock, and the two limits are
 * independent. Before a call a permit is taken by one script, all or none: one request, and as many
 * tokens as it may use; afterwards it is settled with what it did use.
 *
 * Always true:
 *   - in no 60 s do more requests arrive with a key than its limit, if each is sent while its permit
 *     is valid: what was permitted counts for 61 s at least, whether or not the node that took it
 *     still lives;
 *   - what surely was not sent is given back at once; what may have been sent stays counted;
 *   - after Redis was restarted, what it may have forgotten counts as if all had been used;
 *   - with work waiting, at least 97 % of the limits are used, and evenly. */
#ifndef ENGINE_AI_PERMITS_H
#define ENGINE_AI_PERMITS_H

#include "base/metrics.h"
#include "wire/redis.h"
#include "wire/sql.h"

#define KEYRING_SECONDS  60
#define KEYRING_CAPS     3   /* minute, day, month */
#define KEYRING_KEYS_MAX 100 /* rows of api_list; more are not used, and it is said */

struct keyring;

struct keyring_options {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct metrics *metrics;
    int64_t slot_ms; /* 0: 125. Tests have shorter minutes of 480 slots. */
};
struct keyring *keyring_new(const struct keyring_options *o);
void keyring_free(struct keyring *k); /* nobody may wait, and its task must have ended */

struct permit {
    int64_t key_id;     /* api_index */
    struct str api_key; /* for the request, in the task's arena; never logged */
    int64_t slot;       /* that it counts in */
    int64_t tokens;     /* reserved */
    int64_t until_us;   /* of loop_now_us; at least 250 ms after it was taken */
};

/* Waits until some key may be used for one more request with so many tokens. ERR_UNAVAILABLE: there is no
 * active key at all. ERR_CANCELED, ERR_TIMEOUT as always: then nothing is held. First come, first served,
 * within a node; but for requests with more tokens than any key may use in a minute: those are let
 * through, alone, when a key was not used for a minute. */
MUST_CHECK int keyring_take(struct task *t, struct keyring *k, int64_t tokens, struct permit *out);
/* Asked right before the request is handed to the kernel. No: keyring_unused, and take another. */
static inline bool permit_valid(const struct permit *p, const struct loop *l)
{
    return loop_now_us(l) < p->until_us;
}
/* What became of it. Never fails: what cannot be told to Redis now stays counted. */
void keyring_settle(struct task *t, struct keyring *k, const struct permit *p, int64_t tokens_used);
void keyring_unused(struct task *t, struct keyring *k,
                    const struct permit *p); /* surely not sent */
/* 429: the key rests for retry_after_ms (at least a second). 401, 403: it is disabled in api_list, and an alert is
 * logged. Others carry on. */
void keyring_cool(struct task *t, struct keyring *k, int64_t key_id, int64_t retry_after_ms);
void keyring_refused(struct task *t, struct keyring *k, int64_t key_id, int status);

/* What is used and allowed now, over all nodes and active keys. */
struct keyring_load {
    int64_t requests_used, requests_limit, tokens_used, tokens_limit; /* of the last 60 s */
    int64_t requests[KEYRING_SECONDS], tokens[KEYRING_SECONDS]; /* second by second, oldest first */
    int64_t keys_active, keys_resting, keys_disabled;
};
MUST_CHECK int keyring_load(struct task *t, struct keyring *k, struct keyring_load *out);

/* One key of api_list, for admins. */
struct keyring_state {
    int64_t id;
    struct str name, shown; /* shown: the ends of the key */
    bool active;            /* as api_list says, and not refused since */
    bool refused;           /* not active because the AI service refused it */
    int64_t rests_ms;       /* so much longer; 0: it does not rest */
    int64_t requests_used, requests_limit, tokens_used, tokens_limit; /* of the last minute */
    int64_t calls[KEYRING_CAPS], caps[KEYRING_CAPS]; /* minute, day, month; a cap of -1: none */
    struct str error; /* the last one of its own; p == NULL: none. No secrets are in it. */
    int64_t error_ms; /* when, since 1970 */
};
/* Has api_list been read at all? */
bool keyring_looked(const struct keyring *k);
/* As of the last look at api_list, over all nodes, by number, in the task's arena. */
MUST_CHECK int keyring_states(struct task *t, struct keyring *k, struct keyring_state **out,
                              size_t *count);

/* An admin has decided about the key: what was wrong with it is history. Nothing is lost if it cannot be said. */
void keyring_forget_error(struct task *t, struct keyring *k, int64_t key_id);

/* For ever: leases permits for those who wait, and reads api_list every second, so that keys can be added,
 * changed and disabled while it runs. Without it nobody gets a permit. A task_fn with a struct
 * keyring. */
void keyring_task(struct task *t, void *arg);

/* After that task has ended, on the last node of all: the next to start need not wait for a minute that Redis might have
 * forgotten. Nothing is lost if it cannot be said. */
void keyring_close(struct task *t, struct keyring *k);
#endif
