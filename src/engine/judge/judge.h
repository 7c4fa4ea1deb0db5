/* judge.h -- asks the chat service whether a paper is relevant to a question (SCR-4).
 *
 * Owns the prompt, and the way of a paper from its packed bytes to the prompt; ai.h asks. Nothing
 * of a paper but its packed bytes is held while the AI thinks. */
#ifndef ENGINE_JUDGE_JUDGE_H
#define ENGINE_JUDGE_JUDGE_H

#include "base/str.h"
#include "loop/task.h"

struct ai;
struct ai_hand;
struct blocks;
struct config;
struct judge;

struct judge_options {
    struct ai *ai;               /* the chat service; borrowed */
    struct blocks *blocks;       /* unpack papers; borrowed */
    const struct config *config; /* ai.*; needed by judge_new only */
};
/* What is wrong with ai.prompt_file, in a; NULL: nothing. */
const char *judge_config_problem(struct arena *a, const struct config *c);
/* ERR_INVALID, ERR_IO with *why (in a): the prompt file cannot be used. */
MUST_CHECK int judge_new(struct arena *a, const struct judge_options *o, struct judge **out,
                         const char **why);
void judge_free(struct judge *j);
/* Reads ai.prompt_file again. ERR_INVALID, ERR_IO with *why (in a): it cannot be used, and the old
 * one stays. Questions that were made before stay as they are. */
MUST_CHECK int judge_reload(struct arena *a, struct judge *j, const char **why);
/* Tells prompts apart: some hexadecimal digits. */
const char *judge_prompt_mark(const struct judge *j);

/* Which model is asked, and how it is instructed. */
struct judge_origin {
    struct str model;
    struct str prompt; /* with {{question}} where the question stands */
    struct str digest; /* of prompt, SHA-256 in hexadecimal */
};
/* As the settings have it; digest begins with judge_prompt_mark. Borrowed until judge_reload. */
struct judge_origin judge_now(const struct judge *j);

/* What is the same for all papers of a run, made once. In a. A question that is longer than
 * PROMPT_QUESTION_CHARS_MAX is cut. from: how it is judged; NULL: as judge_now says. Returns NULL
 * if the prompt of from is none, or not that of its digest. */
struct judge_question;
const struct judge_question *judge_question_new(struct arena *a, const struct judge *j,
                                                const struct judge_origin *from,
                                                struct str question);
const struct judge_origin *judge_question_origin(const struct judge_question *q);

struct verdict {
    bool relevant;
    bool simulated;    /* by the simulated AI */
    bool not_judged;   /* the paper has neither title nor abstract: the AI was not asked (SCR-18) */
    struct str reason; /* in the task's arena; why it was not judged */
};

/* packed: as blocks have it; p == NULL: the paper has left the corpus. Errors and hand as
 * ai_ask; and ERR_PROTO: the paper cannot be read, with a task_error for the user. */
MUST_CHECK int judge_paper(struct task *t, struct judge *j, const struct judge_question *q,
                           struct str doi, struct str packed, struct ai_hand *hand,
                           struct verdict *out);
#endif
