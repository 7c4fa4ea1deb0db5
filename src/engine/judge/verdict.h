/* verdict.h -- reads a verdict out of the reply of a chat service.
 *
 * A verdict is never guessed: an answer in another form than asked for is understood if it can mean
 * only one thing, and is no verdict otherwise. */
#ifndef ENGINE_JUDGE_VERDICT_H
#define ENGINE_JUDGE_VERDICT_H

#include <stdbool.h>

#include "base/str.h"

#define VERDICT_CONTENT_BYTES_MAX                                                                  \
    (32 * 1024) /* of the model's text without thoughts; longer ones are not looked at */

/* system_fingerprint of the replies of `millrace sim` (tool/sim/sim_chat.h). */
#define VERDICT_SIMULATED "millrace-sim"

struct verdict_reply {
    bool readable; /* there is a verdict, without doubt */
    bool relevant;
    bool simulated;    /* the simulated AI says so */
    struct str reason; /* one line, as ai_line makes it, in the arena; "": none */
    int64_t tokens;    /* usage.total_tokens; -1: absent or absurd */
    /* Completes "the service sent …", if there is no verdict; else NULL. One line. */
    const char *problem;
};
/* The body of a reply with status 200 to 299, in any of the shapes that models and services give it
 * (SCR-14): thoughts in tags, in members or parts of their own, fences, prose. Borrows body. */
void verdict_read(struct arena *a, struct str body, struct verdict_reply *out);

/* --- words.c --- */

enum word { WORD_NONE, WORD_YES, WORD_NO, WORD_CONTRADICTION };

/* The verdict that a text begins with, or gives after "Answer:" and the like. *reason is the text
 * behind a verdict at the beginning. */
enum word words_read(struct str text, struct str *reason);
/* Both verdicts together. */
static inline enum word word_and(enum word a, enum word b)
{
    if (a == WORD_NONE || a == b)
        return b;
    return b == WORD_NONE ? a : WORD_CONTRADICTION;
}
#endif
