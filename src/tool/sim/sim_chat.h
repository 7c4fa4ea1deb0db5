/* sim_chat.h -- chat completions: reading a request, finding the answer, writing the reply.
 *
 * Nothing here waits or depends on anything but its arguments. */
#ifndef TOOL_SIM_CHAT_H
#define TOOL_SIM_CHAT_H

#include "base/json.h"
#include "tool/sim/sim_brief.h"
#include "tool/sim/sim_fault.h"
#include "tool/sim/sim_verdict.h"

struct sim_chat { /* what a request asks for; borrows its JSON */
    struct str model;
    struct str asked; /* the last user message */
    struct sim_prompt prompt;
    int64_t prompt_tokens;
    int64_t tokens_max; /* of the answer; INT64_MAX when not said */
    bool stream;
    bool usage_in_stream;
    bool wants_json; /* response_format asks for an object */
};

/* ERR_INVALID with a message for the client in *why (in a or constant). The chat may borrow the
 * brief, which any other reading changes. */
MUST_CHECK int sim_chat_read(struct arena *a, struct sim_brief *brief, const struct json *body,
                             struct sim_chat *out, const char **why);

struct sim_answer {
    struct str content;
    int64_t tokens;
    bool cut_short; /* at tokens_max */
};

/* The verdict on the paper, or an echo where there is none. FAULT_FENCED and FAULT_UNREADABLE
 * spoil it. The content is left in into, whose earlier content goes. */
void sim_chat_answer(struct arena *a, const struct sim_chat *c, const struct sim_labels *labels,
                     const struct sim_fate *fate, struct buf *into, struct sim_answer *out);

/* number makes the id; created is in seconds since 1970. Both append. */
void sim_chat_write(const struct sim_chat *c, const struct sim_answer *answer, uint64_t number,
                    int64_t created, struct buf *out);
/* The same as server-sent events, `data: [DONE]` included. */
void sim_chat_write_stream(const struct sim_chat *c, const struct sim_answer *answer,
                           uint64_t number, int64_t created, struct buf *out);
#endif
