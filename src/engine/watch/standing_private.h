/* standing_private.h -- what the files of standing share. */
#ifndef ENGINE_WATCH_STANDING_PRIVATE_H
#define ENGINE_WATCH_STANDING_PRIVATE_H

#include "engine/crew/members.h"
#include "engine/watch/standing.h"

#define STANDING_CAUSE_BYTES 40
#define STANDING_WORDS_BYTES 240

struct standing_node {
    char incarnation[17];
    bool open; /* its breaker: the AI service is down for it */
};

/* Facts that are the same for all runs. */
struct standing_whole {
    struct reason_keys keys;
    int64_t requests_used, requests_limit, tokens_used, tokens_limit; /* of keys that are usable */
    struct standing_node nodes[MEMBERS_MAX];
    size_t node_count;
    int64_t nodes_taking, workers;
    int64_t latency_us, tokens; /* of a call, on average; 0: not known */
    bool open;                  /* a breaker of some node */
    bool down;                  /* the AI service, for a run without workers */
    int64_t down_since_ms;
    char down_cause[STANDING_CAUSE_BYTES], down_words[STANDING_WORDS_BYTES];
    int64_t queued;
    bool queue_whole; /* it was rebuilt since Redis was restarted */
    bool new_runs_off;
};

struct standing {
    struct node *node;
    struct standing_whole whole;
    int64_t taken_ms; /* of the loop; -1: never */
};

/* standing_whole.c: in s->whole, at most STANDING_FRESH_MS old. */
MUST_CHECK int standing_look(struct task *t, struct standing *s);
#endif
