/* ai_ask.h -- one call to a configured AI service, and what is wrong with it. */
#ifndef TOOL_AI_ASK_H
#define TOOL_AI_ASK_H

#include "engine/judge/prompt.h"
#include "tool/db/db.h"

struct ai_key {
    int64_t id;
    struct str key, name;
};

/* Asks about a paper with the settings of d, and prints request, reply and verdict; key and secret
 * headers are masked. NULL: a verdict was read. Else what is wrong, one or more sentences in the
 * task's arena. */
const char *ai_ask_once(struct task *t, const struct db *d, const struct ai_key *key,
                        const struct prompt_paper *paper);
/* The same of the embedding service, with the title of the paper as the text. NULL: a vector was
 * read. */
const char *ai_embed_once(struct task *t, const struct db *d, const struct ai_key *key,
                          const struct prompt_paper *paper);
#endif
