/* sim_chat.h -- chat completions: reading a request, finding the answer, writing the reply.
 *
 * Pure functions of their arguments, the brief included. */
#ifndef TOOL_SIM_CHAT_H
#define TOOL_SIM_CHAT_H

#include "base/json.h"
#include "tool/sim/sim_extract.h"
#include "tool/sim/sim_fault.h"
#include "tool/sim/sim_plan.h"
#include "tool/sim/sim_verdict.h"
#include "tool/sim/sim_words.h"

/* Member system_fingerprint of every reply: by it verdicts are known as simulated
 * (judge/verdict.h), wherever this server runs. */
#define SIM_FINGERPRINT "millrace-sim"

/* A parsed system message. Nearly every call has the same one as the call before: a brief caches it
 * and the words of its question. */
struct sim_brief {   /* begins as all zero */
    struct buf text; /* of the message */
    int64_t tokens;
    struct str question;       /* in text; p == NULL: it has none */
    struct sim_word_set words; /* of the question, in arena */
    struct arena arena;
};

void sim_brief_release(struct sim_brief *b);

struct sim_chat { /* what a request asks for; borrows its JSON */
    struct str model;
    struct str asked; /* the last user message */
    struct sim_prompt prompt;
    int64_t prompt_tokens;
    int64_t tokens_max; /* of the answer; INT64_MAX when not said */
    bool stream;
    bool usage_in_stream;
    bool wants_json; /* response_format asks for an object */
    const struct json *messages;
    struct sim_plan_faults plan_faults; /* none, unless the caller sets them; so is the next */
    struct sim_extract_faults extract_faults;
};

/* ERR_INVALID with a message for the client in *why (in a or constant). The chat may borrow from
 * the brief, until the next call. */
MUST_CHECK int sim_chat_read(struct arena *a, struct sim_brief *brief, const struct json *body,
                             struct sim_chat *out, const char **why);

struct sim_answer {
    struct str content;
    int64_t tokens;
    bool cut_short;      /* at tokens_max */
    struct str thoughts; /* in a member of their own; p == NULL: none */
    bool parts;          /* thoughts and content are parts of a list */
};

/* Fields of a document, the verdict on a paper, a plan, or an echo where none is asked for; changed
 * by FAULT_FENCED, FAULT_UNREADABLE, FAULT_THINKING and FAULT_CLIPPED. The content is in into,
 * whose earlier content is dropped. */
void sim_chat_answer(struct arena *a, const struct sim_chat *c, const struct map *labels,
                     const struct sim_fate *fate, struct buf *into, struct sim_answer *out);

/* number makes the id; created is in seconds since 1970. Both append. */
void sim_chat_write(const struct sim_chat *c, const struct sim_answer *answer, uint64_t number,
                    int64_t created, struct buf *out);
/* The same as server-sent events, `data: [DONE]` included. */
void sim_chat_write_stream(const struct sim_chat *c, const struct sim_answer *answer,
                           uint64_t number, int64_t created, struct buf *out);
#endif
