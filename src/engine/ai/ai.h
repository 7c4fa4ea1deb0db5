/* ai.h -- asks the AI about one paper, and reads what it says.
 *
 * Knows prompts, verdicts, and what is worth another try; knows nothing of runs and money. The service is
 * anything that speaks OpenAI's chat completions. What is the same for all papers of a run comes first
 * in the prompt, so that providers' prefix caches work.
 *
 * A call needs a permit of the key pool (permits.h), which it waits for; afterwards the permit is
 * settled with the tokens that were used. Tried again, at most AI_ATTEMPTS_MAX times in all, with
 * exponential backoff and jitter: 408, 429, 5xx, cut connections, time-outs, replies that
 * cannot be read. 401 and 403 are the key's fault: another one is tried at once, a few times. Everything
 * else is final.
 *
 * A verdict is never guessed: what a model says in other forms than asked for is understood where it can
 * only mean one thing, and asked for again otherwise. Keys are in no log and in no message. */
#ifndef ENGINE_AI_AI_H
#define ENGINE_AI_AI_H

#include "base/metrics.h"
#include "base/str.h"
#include "loop/task.h"

struct ai;
struct config;
struct http_client;
struct keyring;

#define AI_ATTEMPTS_MAX       4
#define AI_REASON_CHARS_MAX   200
#define AI_QUESTION_CHARS_MAX 4000
#define AI_ABSTRACT_BYTES_MAX 20000 /* of a prompt; more is cut */

struct ai_options {
    struct http_client *client; /* all borrowed */
    struct keyring *keyring;
    const struct config *config; /* ai.*; needed by ai_new only */
    struct metrics *metrics;     /* calls by outcome, tokens, latency */
};
/* What is wrong with ai.prompt_file, in a; NULL: nothing. */
const char *ai_config_problem(struct arena *a, const struct config *c);
/* ERR_INVALID, ERR_IO with *why (in a): no address, or the prompt file cannot be used. */
MUST_CHECK int ai_new(struct arena *a, const struct ai_options *o, struct ai **out,
                      const char **why);
void ai_free(struct ai *ai);
/* Reads ai.prompt_file again. ERR_INVALID, ERR_IO with *why (in a): it cannot be used, and the old one stays. Questions that
 * were made before stay as they are: a run that a node is at is judged to its end as it was begun there. */
MUST_CHECK int ai_reload(struct arena *a, struct ai *ai, const char **why);
/* Tells instructions apart: some hexadecimal digits. */
const char *ai_prompt_mark(const struct ai *ai);

/* What is the same for all papers of a run, made once. In a. A question that is longer than
 * AI_QUESTION_CHARS_MAX is cut. */
struct ai_question;
const struct ai_question *ai_question_new(struct arena *a, const struct ai *ai,
                                          struct str question);

struct ai_paper {
    struct str doi, title, abstract; /* as doi.h and text.h give them; the last two may be absent */
};

/* Where a paper comes from. read is called for each attempt, and what it gives is good until the task waits: nothing of a
 * paper is held while the AI thinks. Errors of it are passed on. */
struct ai_source {
    int (*read)(struct task *t, void *arg, struct ai_paper *out);
    void *arg;
};

struct ai_verdict {
    bool relevant;
    struct str reason;  /* in the task's arena */
    int64_t tokens;     /* of all attempts; what was reserved, where the service did not say */
    int64_t latency_us; /* of the last one, without the wait for its permit */
    int attempts;       /* refused keys do not count */
};

/* 0: *out is filled. ERR_CANCELED: the task was. ERR_TIMEOUT: its own deadline passed. ERR_REFUSED: failed for
 * good, and task_error says why in a few words for the user. ERR_UNAVAILABLE: there is no key that could be
 * used, now or later. Replies lie in the task's arena: judge each paper in a scope of its own. *in_hand is set while a
 * call is under way, and stays set if it brings a verdict: to cancel the task then wastes it. */
MUST_CHECK int ai_judge(struct task *t, struct ai *ai, const struct ai_question *q,
                        const struct ai_source *s, bool *in_hand, struct ai_verdict *out);

/* Moving averages over the last calls that brought a verdict; 0 before the first. */
void ai_averages(const struct ai *ai, int64_t *latency_us, int64_t *tokens);
#endif
