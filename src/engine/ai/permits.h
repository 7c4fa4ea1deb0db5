/* permits.h -- the keys of an AI service, and how much each may still be used (SCR-9, SCR-10).
 *
 * Each service has a struct permits of its own, with the keys that api_list has for it. A key has
 * limits: requests and tokens in any 60 s (rpm_limit, tpm_limit), and caps for the minute, day and
 * month. They hold over all nodes together, on Redis' clock, and the two limits are independent.
 * Before a call a permit is taken, all or none: one request, and as many tokens as it may use;
 * afterwards it is settled with the tokens that were used.
 *
 * Always true:
 *   - in no 60 s do more requests arrive with a key than its limit, if each is sent while its
 *     permit is valid: a permit counts for 61 s at least, whether or not the node that took it
 *     still lives;
 *   - what surely was not sent is given back at once; what may have been sent stays counted;
 *   - after Redis was restarted, what it may have forgotten counts as if all had been used;
 *   - with work waiting, at least 97 % of the limits are used, and evenly. */
#ifndef ENGINE_AI_PERMITS_H
#define ENGINE_AI_PERMITS_H

#include "base/metrics.h"
#include "engine/ai/service.h"
#include "engine/store/role.h"
#include "wire/sql.h"

#define PERMITS_SECONDS  60
#define PERMITS_CAPS     3   /* minute, day, month */
#define PERMITS_KEYS_MAX 100 /* of a service; more are not used, and that is logged */

#define PERMITS_JOBS_SHARE 20 /* percent */

struct permits;

/* What a permit is for. While both wait for permits, on whatever nodes, jobs get their share of the
 * rate, and runs the rest; one that waits alone gets all. */
enum permits_class { PERMITS_RUNS, PERMITS_JOBS, PERMITS_CLASSES };

struct permits_options {
    const char *service; /* NULL: AI_CHAT; must last */
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct metrics *metrics;
    bool keyless;       /* it needs none: without an active key it is asked anyway */
    int64_t slot_ms;    /* 0: 125. Tests have shorter minutes of 480 slots. */
    int64_t jobs_share; /* percent; 0: PERMITS_JOBS_SHARE */
};
struct permits *permits_new(const struct permits_options *o);
void permits_free(struct permits *k); /* no task waits, and permits_task has ended */

struct permit {
    int64_t key_id;     /* api_index */
    struct str api_key; /* for the request, in the task's arena; never logged */
    int64_t slot;       /* that it counts in */
    int64_t tokens;     /* reserved */
    int64_t until_us;   /* of loop_now_us; at least 250 ms after it was taken */
};

/* Waits until some key may be used for one more request with so many tokens. ERR_UNAVAILABLE: there
 * is no active key at all. ERR_CANCELED, ERR_TIMEOUT as always: then nothing is held. First come,
 * first served, within a node and a class; except for requests with more tokens than any key may
 * use in a minute: one of those gets a key that was not used for a minute. */
MUST_CHECK int permits_take(struct task *t, struct permits *k, enum permits_class c, int64_t tokens,
                            struct permit *out);
/* Asked right before the request is handed to the kernel. No: permits_unused, and take another. */
static inline bool permit_valid(const struct permit *p, const struct loop *l)
{
    return loop_now_us(l) < p->until_us;
}
/* The end of a permit. Never fails: while Redis is away all of it stays counted. */
void permits_settle(struct task *t, struct permits *k, const struct permit *p, int64_t tokens_used);
void permits_unused(struct task *t, struct permits *k,
                    const struct permit *p); /* surely not sent */
/* 429: the key rests for retry_after_ms (at least a second), unless it is woken. 401, 403: it is
 * switched off in api_list, and an alert is logged. Other keys are used meanwhile. */
void permits_cool(struct task *t, struct permits *k, int64_t key_id, int64_t retry_after_ms);
void permits_refused(struct task *t, struct permits *k, int64_t key_id, int status);

/* What is used and allowed now, over all nodes and active keys. */
struct permits_load {
    int64_t requests_used, requests_limit, tokens_used, tokens_limit; /* of the last 60 s */
    int64_t requests[PERMITS_SECONDS], tokens[PERMITS_SECONDS]; /* second by second, oldest first */
    int64_t keys_active, keys_resting, keys_disabled;
    int64_t jobs_requests, jobs_tokens; /* of those that were used: by jobs, about */
    int64_t jobs_share;                 /* percent */
};
MUST_CHECK int permits_load(struct task *t, struct permits *k, struct permits_load *out);

/* One key of api_list, for admins. */
struct permits_state {
    int64_t id;
    const char *service;    /* of service.h */
    struct str name, shown; /* shown: the ends of the key */
    bool active;            /* in api_list, and not refused since */
    bool refused;           /* not active because the AI service refused it */
    int64_t rests_ms;       /* so much longer; 0: it does not rest */
    int64_t requests_used, requests_limit, tokens_used, tokens_limit; /* of the last minute */
    int64_t calls[PERMITS_CAPS], caps[PERMITS_CAPS]; /* minute, day, month; a cap of -1: none */
    struct str error; /* the last one of its own; p == NULL: none. No secrets are in it. */
    int64_t error_ms; /* when, since 1970 */
};
/* The one word for what may become of the key, wherever it is shown: refused (switched off because
 * the AI service refused it), off (by an admin), capped (a cap is used up), resting, active. */
#define PERMITS_WORDS "active|off|refused|resting|capped"
const char *permits_word(const struct permits_state *s);
/* Has api_list been read at all? */
bool permits_looked(const struct permits *k);
/* It has been read, and has no active key: permits_take is ERR_UNAVAILABLE. */
bool permits_none(const struct permits *k);
bool permits_keyless(const struct permits *k); /* the service needs no key */
/* As of the last look at api_list, over all nodes, by number, in the task's arena. */
MUST_CHECK int permits_states(struct task *t, struct permits *k, struct permits_state **out,
                              size_t *count);
/* Fills in what Redis knows of keys of any service; id, active and caps are set. */
MUST_CHECK int permits_look(struct task *t, struct redis *r, struct permits_state *keys,
                            size_t count);

/* An admin has decided about the key: its last error is deleted. If Redis is away, it stays. */
void permits_forget_error(struct task *t, struct permits *k, int64_t key_id);
/* Ends the rest of a key: it is used again on this node at once, on others within a second. */
MUST_CHECK int permits_wake_key(struct task *t, struct permits *k, int64_t key_id);
/* The key has left api_list: its errors and its counted calls are deleted, too. If Redis is away,
 * they stay; its number is not given to another key. */
void permits_forget_key(struct task *t, struct permits *k, int64_t key_id);

/* For ever: leases permits for waiting tasks; without it permits_take waits. arg: a struct
 * permits. */
void permits_task(struct task *t, void *arg);
/* Reads api_list: keys are added, changed and switched off while the node runs. A role_fn with a
 * struct permits. */
role_fn permits_role;

/* After that task has ended, on the last node of all: the next node to start need not wait for a
 * minute that Redis might have forgotten. If Redis is away, it waits. */
void permits_close(struct task *t, struct permits *k);
#endif
