/* sim_call.h -- one request to the simulated AI: its key, its place in the window, its fault,
 * its reply.
 *
 *     begin → key known? → (the route reads and thinks) → within the limits? → deliver → end
 *
 * Whatever way it ends, its outcome is counted once. */
#ifndef TOOL_SIM_CALL_H
#define TOOL_SIM_CALL_H

#include "tool/sim/sim.h"
#include "wire/http_server.h"

struct sim_call {
    struct sim *sim;
    struct http_exchange *x;
    struct sim_key *key; /* NULL until sim_call_key */
    uint64_t number;
    struct sim_fate fate;
    enum sim_outcome outcome;
    bool asleep; /* its reply is due later, and its outcome with it */
};

void sim_call_begin(struct sim_call *c, struct sim *s, struct http_exchange *x);
/* Counts the outcome. err is what the route is about to return, and comes back. */
int sim_call_end(struct sim_call *c, int err);

/* Finds the caller's key and counts the arrival. False when there is none or a wrong one. */
bool sim_call_key(struct task *t, struct sim_call *c);

/* Replies {"error": {…}} and sets the outcome that belongs to the status. */
MUST_CHECK int sim_call_refuse(struct task *t, struct sim_call *c, int status, const char *code,
                               const char *message);

struct sim_usage {
    int64_t prompt_tokens, completion_tokens;
};

/* Takes a place in the window. False when there is none: *wait_ms until there is one. */
bool sim_call_admit(struct task *t, struct sim_call *c, struct sim_usage usage, int64_t *wait_ms);
MUST_CHECK int sim_call_refuse_limited(struct task *t, struct sim_call *c, int64_t wait_ms);

/* Where a reply's body is written: empty, and the call's own until its end. An error takes it, too. */
struct buf *sim_call_buf(struct sim_call *c);

struct sim_reply {
    const char *type;
    struct str body; /* must last: waits lie ahead */
    bool stream;
};

/* Lets the latency pass, then replies as the call's fate has it. */
MUST_CHECK int sim_call_deliver(struct task *t, struct sim_call *c, const struct sim_reply *r);
#endif
