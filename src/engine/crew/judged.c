#include "engine/crew/judged.h"

#include "base/log.h"
#include "engine/ai/ai.h"
#include "engine/judge/judge.h"
#include "engine/runs/scope.h"
#include "engine/setup/node.h"
#include "loop/backoff.h"

#define RETRY_MS     50 /* between attempts to read the prompt, or to write down what judges */
#define RETRY_MS_MAX 2000

/* What changes while papers are judged. */
struct judged_state {
    const struct judge_question *question; /* NULL: the frozen prompt must be read first */
    bool reading;                          /* a worker reads it */
    bool
        noted[2]; /* that papers of the run are judged this way: by a real AI, by a simulated one */
};

struct judged {
    struct arena *arena; /* of the run on this node */
    struct run_id id;
    struct str asked;
    struct judge_origin frozen; /* without the text of the prompt */
    struct judged_state *state;
};

/* Cannot wait. Mostly the prompt that was frozen is that of the settings still, and the run can be
 * judged at once. */
const void *judged_open(struct arena *a, const struct node *n, const struct app_run *run)
{
    struct str question = json_str(json_get(run->params, "question"));
    struct judge_origin now = judge_now(n->judge), from = now;
    struct judged *j = ARENA_NEW(a, struct judged);
    *j = (struct judged){.arena = a,
                         .id = {run->id.uid, str_dup(a, run->id.qid)},
                         .asked = question.p ? question : STR(""),
                         .state = ARENA_NEW(a, struct judged_state)};
    *j->state = (struct judged_state){.reading = false};
    if (scope_frozen(run->params, &j->frozen)) /* else it was submitted before there was any */
        from = (struct judge_origin){j->frozen.model, now.prompt, j->frozen.digest};
    if (str_eq(from.digest, now.digest))
        j->state->question = judge_question_new(a, n->judge, &from, j->asked);
    return j;
}

/* --- a prompt that is not that of the settings any more --- */

static int read_prompt(struct task *t, const struct node *n, const struct judged *j)
{
    struct judge_origin from = j->frozen;
    int err = scope_find_prompt(t, n->sql, from.digest, &from.prompt);
    if (err)
        return err;
    j->state->question = judge_question_new(j->arena, n->judge, &from, j->asked);
    return j->state->question
               ? 0
               : task_fail(t, ERR_PROTO, "prompt_text has another text under the digest %.*s",
                           STR_ARG(from.digest));
}

/* Without its prompt a run cannot be judged, and no paper is to blame: workers wait. */
NOINLINE static int await_question(struct task *t, const struct node *n, const struct judged *j)
{
    struct judged_state *s = j->state;
    struct backoff backoff = {.ms = RETRY_MS, .ms_max = RETRY_MS_MAX};
    for (bool told = false; !s->question;) {
        int err = 0;
        if (!s->reading) {
            s->reading = true;
            err = read_prompt(t, n, j);
            s->reading = false;
        }
        if (err && err != ERR_CANCELED && !told) {
            log_warn("crew",
                     "run %.*s: the prompt that was frozen with it cannot be read, its papers wait "
                     "until MySQL has it: %s",
                     STR_ARG(j->id.qid), task_error(t));
            told = true;
        }
        if (!s->question && (err = backoff_wait(t, &backoff)))
            return err;
    }
    return 0;
}

/* --- what judges --- */

/* The row comes before the result: no verdict is ever seen in a run that does not say how its
 * papers are judged. So the worker waits for MySQL, once for each run, with the verdict in hand;
 * but not through a pause, which must not be followed by a charge minutes later: then the paper
 * stays open, and is asked about again. */
NOINLINE static int note_judge(struct task *t, const struct node *n, const struct judged *j,
                               struct ai_hand *hand, bool simulated)
{
    const struct judge_origin *from = judge_question_origin(j->state->question);
    struct scope_judge row = {.model = from->model,
                              .prompt = from->prompt,
                              .digest = from->digest,
                              .simulated = simulated};
    struct backoff backoff = {.ms = RETRY_MS, .ms_max = RETRY_MS_MAX};
    for (bool told = false; !j->state->noted[simulated]; told = true) {
        int err = scope_note_judge(t, n->runs, j->id, &row);
        if (!err) {
            j->state->noted[simulated] = true;
            break;
        }
        if (!told && err != ERR_CANCELED)
            log_warn(
                "crew",
                "run %.*s: the model that judges it is not written to MySQL, its verdicts wait: "
                "%s",
                STR_ARG(j->id.qid), task_error(t));
        hand->busy = false;
        err = hand->leaves ? ERR_CANCELED : backoff_wait(t, &backoff);
        if (err)
            return err;
        hand->busy = true;
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
    int err = j->state->question ? 0 : await_question(t, n, j);
    if (!err)
        err = judge_paper(t, n->judge, j->state->question, paper->doi, packed, hand, &v);
    if (!err && !v.not_judged && !j->state->noted[v.simulated])
        err = note_judge(t, n, j, hand, v.simulated);
    if (err)
        return err;
    out->outcome = v.not_judged ? OUTCOME_FAILED : v.relevant ? OUTCOME_HIT : OUTCOME_MISS;
    out->simulated = v.simulated;
    out->not_judged = v.not_judged;
    out->reason = v.reason;
    return 0;
}
