/* ai_private.h -- what ai.c, prompt.c, verdict.c and words.c share. */
#ifndef ENGINE_AI_AI_PRIVATE_H
#define ENGINE_AI_AI_PRIVATE_H

#include "base/buf.h"
#include "engine/ai/ai.h"

/* --- prompts --- */

#define AI_PROMPT_FILE_BYTES_MAX (64 * 1024)
#define AI_TITLE_BYTES_MAX       2000

/* What a system message is made of: the question goes between. */
struct ai_prompt {
    struct str before, after;
};

/* ai.prompt_file, or the built-in text if path is "". Lives in a. ERR_INVALID, ERR_IO with *why (in a). */
MUST_CHECK int ai_prompt_load(struct arena *a, const char *path, struct ai_prompt *out,
                              const char **why);

struct ai_question {
    struct str head; /* a request, as JSON, up to where the paper begins */
    int64_t tokens;  /* of head and of the answer, estimated */
};

/* What the service is asked for, besides the messages. */
struct ai_model {
    const char *name;
    int64_t temperature_milli, max_tokens;
};
const struct ai_question *ai_prompt_question(struct arena *a, const struct ai_prompt *p,
                                             const struct ai_model *m, struct str question);
/* Appends the whole request. The tokens that it may use: a bit more than it will. */
int64_t ai_prompt_write(const struct ai_question *q, const struct ai_paper *p, struct buf *out);

/* --- verdicts --- */

#define AI_REPLY_BYTES_MAX   (1024 * 1024)
#define AI_CONTENT_BYTES_MAX (32 * 1024) /* of what the model says; nobody asked for more */
#define AI_TOKENS_MAX        1000000 /* of one call; services that claim more are not believed */

struct ai_reply {
    bool readable; /* there is a verdict, for sure */
    bool relevant;
    struct str reason; /* in the arena; "" if there is none */
    int64_t tokens;    /* usage.total_tokens; -1: not said, or absurd */
};
/* The body of a reply with status 200. Borrows body. */
void ai_verdict_read(struct arena *a, struct str body, struct ai_reply *out);
/* One line of at most AI_REASON_CHARS_MAX characters: trimmed, control characters are spaces. */
struct str ai_line(struct arena *a, struct str s);
/* What a service says is wrong, from the body of an error, as such a line; "" if it says nothing. */
struct str ai_complaint(struct arena *a, struct str body);

enum ai_word { AI_WORD_NONE, AI_WORD_YES, AI_WORD_NO, AI_WORD_CONTRADICTION };

/* The verdict that a text begins with, or gives after "Answer:" and the like. *reason is what follows one
 * at the beginning. */
enum ai_word ai_words_read(struct str text, struct str *reason);
/* Both verdicts together. */
static inline enum ai_word ai_word_and(enum ai_word a, enum ai_word b)
{
    if (a == AI_WORD_NONE || a == b)
        return b;
    return b == AI_WORD_NONE ? a : AI_WORD_CONTRADICTION;
}
#endif
