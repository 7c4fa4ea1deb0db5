/* sim_verdict.h -- finds the question and the paper in a prompt, and judges whether it is relevant.
 *
 * sim.h has the format of prompts. Everything here is a pure function of its input: the same prompt
 * always gets the same verdict. */
#ifndef TOOL_SIM_VERDICT_H
#define TOOL_SIM_VERDICT_H

#include "base/buf.h"
#include "base/str.h"

struct map;
struct sim_word_set;

struct sim_prompt {
    struct str question, title, abstract, doi; /* p == NULL when there is none */
    const struct sim_word_set *words;          /* of the question, if they are known; else NULL */
};

/* The bytes of a label with its colon if the line begins with it, in either case; else 0. */
size_t sim_label_bytes(struct str line, struct str label);
/* The labelled fields of one message. */
void sim_prompt_read(struct sim_prompt *out, struct str message);

struct sim_verdict {
    bool relevant;
    bool labelled;   /* the labels decided, not the words */
    bool in_title;   /* where the word was found */
    struct str word; /* that both have in common; p == NULL if there is none */
};

/* False when the prompt holds no paper to judge: no question, or neither title nor abstract.
 * A labelled DOI needs nothing else. labels may be NULL. */
bool sim_verdict(struct arena *a, const struct sim_prompt *p, const struct map *labels,
                 struct sim_verdict *out);

#define SIM_REASON_CHARACTERS_MAX 200

/* {"relevant": true, "reason": "…"} */
void sim_verdict_write(const struct sim_verdict *v, struct buf *out);
#endif
