/* sim_brief.h -- what a system message says.
 *
 * Nearly every call brings the one that the call before has brought: a brief remembers it, and the
 * words of its question. */
#ifndef TOOL_SIM_BRIEF_H
#define TOOL_SIM_BRIEF_H

#include "base/buf.h"
#include "tool/sim/sim_words.h"

struct sim_brief {
    struct buf text; /* of the message */
    int64_t tokens;
    struct str question;       /* in text; p == NULL: it has none */
    struct sim_word_set words; /* of the question, in arena */
    struct arena arena;
};

void sim_brief_init(struct sim_brief *b);
void sim_brief_release(struct sim_brief *b);
/* Makes b say what the message says; it may be the same as before. Copies the message. */
void sim_brief_read(struct sim_brief *b, struct str message);
#endif
