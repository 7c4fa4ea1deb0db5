#include "engine/crew/judged.h"

#include "base/log.h"
#include "engine/judge/judge.h"
#include "engine/runs/scope.h"
#include "engine/setup/node.h"
#include "loop/backoff.h"

#define NOTE_MS     50 /* between attempts to write down who judges */
#define NOTE_MS_MAX 2000

struct judged {
    const struct judge_question *question;
    struct run_id id;
    bool *noted; /* that papers of the run are judged this way: by a real AI, by a simulated one */
};

const void *judged_open(struct arena *a, const struct node *n, const struct app_run *run)
{
    struct str question = json_str(json_get(run->params, "question"));
    struct judged *j = ARENA_NEW(a, struct judged);
    j->question = judge_question_new(a, n->judge, question.p ? question : STR(""));
    j->id = (struct run_id){run->id.uid, str_dup(a, run->id.qid)};
    j->noted = ARENA_ARRAY(a, bool, 2);
    j->noted[0] = j->noted[1] = false;
    return j;
}

/* The row comes before the result: no verdict is ever seen in a run that does not say how its
 * papers are judged. So the worker waits for MySQL, once for each run, with the verdict in hand. */
NOINLINE static int note_judge(struct task *t, const struct node *n, const struct judged *j,
                               bool simulated)
{
    const struct judge_origin *from = judge_question_origin(j->question);
    struct scope_judge row = {.model = from->model,
                              .prompt = from->prompt,
                              .digest = from->digest,
                              .simulated = simulated};
    struct backoff backoff = {.ms = NOTE_MS, .ms_max = NOTE_MS_MAX};
    for (bool told = false; !j->noted[simulated]; told = true) {
        int err = scope_note_judge(t, n->runs, j->id, &row);
        if (!err) {
            j->noted[simulated] = true;
            break;
        }
        if (!told && err != ERR_CANCELED)
            log_warn(
                "crew",
                "run %.*s: the model that judges it is not written to MySQL, its verdicts wait: "
                "%s",
                STR_ARG(j->id.qid), task_error(t));
        if ((err = backoff_wait(t, &backoff)))
            return err;
    }
    return 0;
}

int judged_paper(struct task *t, const struct node *n, const void *opened,
                 const struct app_paper *paper, struct str packed, struct ai_hand *hand,
                 struct result *out)
{
    const struct judged *j = opened;
    struct verdict v;
    if (!packed.p) {
        out->outcome = OUTCOME_FAILED;
        out->withdrawn = true;
        out->reason = STR("the paper is not in the corpus any more");
        return 0;
    }
    int err = judge_paper(t, n->judge, j->question, paper->doi, packed, hand, &v);
    if (!err && !v.not_judged && !j->noted[v.simulated])
        err = note_judge(t, n, j, v.simulated);
    if (err)
        return err;
    out->outcome = v.not_judged ? OUTCOME_FAILED : v.relevant ? OUTCOME_HIT : OUTCOME_MISS;
    out->simulated = v.simulated;
    out->not_judged = v.not_judged;
    out->reason = v.reason;
    return 0;
}
