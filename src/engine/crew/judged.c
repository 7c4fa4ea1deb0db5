#include "engine/crew/judged.h"

#include "engine/judge/judge.h"
#include "engine/setup/node.h"

const void *judged_open(struct arena *a, const struct node *n, const struct app_run *run)
{
    struct str question = json_str(json_get(run->params, "question"));
    return judge_question_new(a, n->judge, question.p ? question : STR(""));
}

int judged_paper(struct task *t, const struct node *n, const void *question,
                 const struct app_paper *paper, struct str packed, struct ai_hand *hand,
                 struct result *out)
{
    struct verdict v;
    int err = judge_paper(t, n->judge, question, paper->doi, packed, hand, &v);
    if (err)
        return err;
    out->outcome = v.relevant ? OUTCOME_HIT : OUTCOME_MISS;
    out->reason = v.reason;
    return 0;
}
