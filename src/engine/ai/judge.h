/* judge.h -- asks the AI whether a paper is relevant to a question.
 *
 * Owns the prompt and how a verdict is read; ai.h does the asking. What is the same for all papers
 * of a run comes first in the prompt, so that prefix caches of providers work.
 *
 * A verdict is never guessed: where a model answers in another form than asked for, it is understood
 * if it can mean only one thing, and asked again otherwise. */
#ifndef ENGINE_AI_JUDGE_H
#define ENGINE_AI_JUDGE_H

#include "base/str.h"
#include "loop/task.h"

struct ai;
struct config;
struct judge;

#define AI_QUESTION_CHARS_MAX 4000
#define AI_ABSTRACT_BYTES_MAX 20000 /* of a prompt; more is cut */

/* What is wrong with ai.prompt_file, in a; NULL: nothing. */
const char *judge_config_problem(struct arena *a, const struct config *c);
/* Borrows ai. ERR_INVALID, ERR_IO with *why (in a): the prompt file cannot be used. */
MUST_CHECK int judge_new(struct arena *a, struct ai *ai, const struct config *c, struct judge **out,
                         const char **why);
void judge_free(struct judge *j);
/* Reads ai.prompt_file again. ERR_INVALID, ERR_IO with *why (in a): it cannot be used, and the old
 * one stays. Questions that were made before stay as they are: a node judges a run to its end with
 * the prompt it began with. */
MUST_CHECK int judge_reload(struct arena *a, struct judge *j, const char **why);
/* Tells prompts apart: some hexadecimal digits. */
const char *judge_prompt_mark(const struct judge *j);

/* What is the same for all papers of a run, made once. In a. A question that is longer than
 * AI_QUESTION_CHARS_MAX is cut. */
struct ai_question;
const struct ai_question *judge_question_new(struct arena *a, const struct judge *j,
                                             struct str question);

struct ai_paper {
    struct str doi, title, abstract; /* as doi.h and text.h give them; the last two may be absent */
};

/* Where a paper comes from. read is called for each attempt, and what it gives is good until the
 * task waits: nothing of a paper is held while the AI thinks. Errors of it are passed on. */
struct ai_source {
    int (*read)(struct task *t, void *arg, struct ai_paper *out);
    void *arg;
};

struct ai_verdict {
    bool relevant;
    struct str reason; /* in the task's arena */
};

/* Errors as ai_ask, and those of the source. in_hand as there. */
MUST_CHECK int judge_paper(struct task *t, struct judge *j, const struct ai_question *q,
                           const struct ai_source *s, bool *in_hand, struct ai_verdict *out);
#endif
