/* judge_private.h -- judging a paper that is not packed. */
#ifndef ENGINE_JUDGE_JUDGE_PRIVATE_H
#define ENGINE_JUDGE_JUDGE_PRIVATE_H

#include "engine/judge/judge.h"
#include "engine/judge/prompt.h"

/* Where the paper comes from. read is called for each attempt; its result is valid until the task
 * waits. Its errors are passed on. */
struct judge_source {
    int (*read)(struct task *t, void *arg, struct prompt_paper *out);
    void *arg;
};
/* As judge_paper. */
MUST_CHECK int judge_shown(struct task *t, struct judge *j, const struct judge_question *q,
                           const struct judge_source *s, struct ai_hand *hand, struct verdict *out);
#endif
