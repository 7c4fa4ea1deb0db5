/* sim_call.h -- one request to the simulated AI: its key, its place in the window, its fault,
 * its reply.
 *
 *     key known? → body is JSON? → the route answers → within the limits? → latency, fault, reply
 *
 * Whatever way it ends, its outcome is counted once. */
#ifndef TOOL_SIM_CALL_H
#define TOOL_SIM_CALL_H

#include "tool/sim/sim.h"
#include "wire/http_server.h"

struct sim_call {
    struct sim *sim;
    struct http_exchange *x;
    struct sim_key *key; /* NULL until it is known */
    uint64_t number;
    struct sim_fate fate;
    enum sim_outcome outcome;
    bool asleep; /* the reply is sent later, and the outcome counted then */
};

/* Answers with body, if the caller has a key; counts the outcome. */
typedef int sim_answer_fn(struct task *t, struct sim_call *c, const struct json *body);
MUST_CHECK int sim_call_run(struct task *t, struct sim *s, struct http_exchange *x,
                            sim_answer_fn *answer);

/* Replies {"error": {…}} and sets the outcome that belongs to the status. */
MUST_CHECK int sim_call_refuse(struct task *t, struct sim_call *c, int status, const char *code,
                               const char *message);

struct sim_usage {
    int64_t prompt_tokens, completion_tokens;
};

/* The buffer for a reply's body: empty, and valid until the call ends. An error reply reuses it. */
struct buf *sim_call_buf(struct sim_call *c);

struct sim_reply {
    const char *type;
    struct str body; /* must stay valid over waits */
    bool stream;
};

/* Takes a place in the window, waits for the latency, then replies, with the fault of the call if
 * it has one. Over the limits: replies 429. */
MUST_CHECK int sim_call_deliver(struct task *t, struct sim_call *c, struct sim_usage usage,
                                const struct sim_reply *r);
#endif
