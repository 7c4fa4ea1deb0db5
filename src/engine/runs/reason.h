/* reason.h -- why a run does not move (SCR-13): from facts to one code, with what there is to say
 * about it. reason.c has the table, in the order in which its rows are tried; no other file decides
 * on a reason. engine/watch/standing.h collects the facts. */
#ifndef ENGINE_RUNS_REASON_H
#define ENGINE_RUNS_REASON_H

#include "engine/runs/state.h"

enum reason_code {
    REASON_NONE, /* it moves, or has ended */
    REASON_ACCOUNT_STOPPED,
    REASON_REPAIRING,
    REASON_NEW_RUNS_OFF,
    REASON_DRAINED,
    REASON_NO_PERMISSION,
    REASON_NO_KEY,
    REASON_KEYS_RESTING,
    REASON_SERVICE_DOWN,
    REASON_QUEUED,
    REASON_RATE_LIMIT,
    /* It paused itself; from the words of its row (state.h). */
    REASON_FUNDS,
    REASON_ACCOUNT,
    REASON_UNRECORDED,
    REASON_REFUSED,
    REASON_CODES,
};

struct reason_keys { /* of the AI service, by what they are good for now */
    bool known;      /* api_list has been read */
    int64_t listed, usable, resting, capped, refused, off;
    int64_t rest_until_ms, cap_until_ms; /* when the first one may be used again; 0: not known */
};

struct reason_facts {
    enum run_state state;
    struct str row;             /* reason in its row: why it was paused; "" if none */
    int64_t workers;            /* now, over all nodes */
    int64_t position, of;       /* in the queue, from 1 on; 0: it is not there */
    bool banned;                /* its user */
    int64_t permission, others; /* of its user; workers of the user's other runs */
    bool new_runs_off;
    int64_t nodes, nodes_taking; /* that live; that take work */
    const char *repairing;       /* "queue", "account", "redis"; NULL: nothing is */
    struct reason_keys keys;
    bool down; /* the AI service, for all nodes that work on the run */
    int64_t down_since_ms;
    struct str down_cause, down_words;
    /* Of a minute, over all keys that are usable. demand: requests that all workers could make;
     * 0: not known. */
    int64_t requests_used, requests_limit, tokens_used, tokens_limit, demand;
};

/* Members that a code does not have are 0 or empty. */
struct reason {
    enum reason_code code;
    int64_t position, of, others, permission; /* queued, no_permission */
    int64_t nodes;                            /* drained */
    int64_t keys;                             /* no_key, keys_resting */
    int64_t limit;                            /* rate_limit: requests of a minute */
    int64_t since_ms, until_ms;               /* service_down; keys_resting, no_key */
    struct str cause; /* no_key: none, refused, off, capped, mixed; service_down, repairing */
    struct str words; /* service_down, unrecorded, refused: what the service or the ledger says */
};

/* Borrows texts from f. */
struct reason reason_of(const struct reason_facts *f);
bool reason_same(const struct reason *a, const struct reason *b);

const char *reason_word(enum reason_code code); /* "no_key"; NULL: none */
/* An operator or admin can do something about it: it is an alert when it lasts. */
bool reason_mendable(enum reason_code code);
/* It goes on: not a standstill, only slower than the workers could be. */
bool reason_moves(enum reason_code code);
/* One sentence without its dot, in English, for logs and alerts; in a. */
struct str reason_text(struct arena *a, const struct reason *r);
#endif
