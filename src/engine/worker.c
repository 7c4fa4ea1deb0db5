/* One worker: takes a unit, judges its papers one by one, takes the next (R4, R5, R6). */
#include <stdlib.h>

#include "base/log.h"
#include "corpus/paper.h"
#include "engine/charge.h"
#include "engine/crew_private.h"
#include "engine/keys.h"
#include "engine/result.h"

#define BACKOFF_MS      50 /* a verdict is in hand, and a store is away */
#define BACKOFF_MS_MAX  2000
#define PATIENCE_SHARE  100 /* of the AI's latency */
#define PATIENCE_MS_MAX 2
#define NO_KEY_MS       2000 /* nobody has a key that can be used: look again */

static bool store_away(int err)
{
    return err == ERR_UNAVAILABLE || err == ERR_UNCERTAIN || err == ERR_BUSY || err == ERR_TIMEOUT;
}

/* --- one paper --- */

struct packed_paper {
    struct crew *crew;
    struct str doi, bytes; /* as blocks have them */
    struct str bibtex;
    struct ai_paper *shown;
    int err;
};

static void read_shown(void *arg)
{
    struct packed_paper *p = arg;
    struct crew *c = p->crew;
    p->err =
        paper_read_shown(&c->scratch, c->reader, p->bibtex, &p->shown->title, &p->shown->abstract);
}

/* What the AI is shown of it, until the next wait. ERR_PROTO: it cannot be read. */
static int read_paper(struct task *t, void *arg, struct ai_paper *out)
{
    struct packed_paper *p = arg;
    struct crew *c = p->crew;
    out->doi = p->doi;
    p->shown = out;
    if (!p->bytes.p)
        return task_fail(t, ERR_PROTO, "the paper is not in the corpus any more");
    arena_reset(&c->scratch, (struct arena_mark){0});
    int err = block_unpack(t, c->node->blocks, &c->scratch, p->bytes, &p->bibtex);
    if (!err)
        task_aside(t, read_shown, p);
    if (!err && p->err)
        err = task_fail(t, ERR_PROTO, "the paper cannot be read");
    return err == ERR_NOT_FOUND ? ERR_PROTO : err;
}

/* The AI's verdict, or why there is none. Other than 0: there may be one later. */
static int judge(struct task *t, struct worker *w, const struct work_paper *p, struct str packed,
                 struct result *out)
{
    struct crew_run *r = w->run;
    struct ai *ai = r->crew->node->ai;
    struct packed_paper paper = {.crew = r->crew, .doi = p->doi, .bytes = packed};
    struct ai_source source = {read_paper, &paper};
    struct ai_verdict verdict;
    int err;
    while ((err = ai_judge(t, ai, r->question, &source, &w->in_hand, &verdict)) == ERR_UNAVAILABLE)
        if ((err = task_sleep(t, loop_jitter(task_loop(t), NO_KEY_MS))))
            break;
    out->failed = err == ERR_REFUSED || err == ERR_PROTO;
    if (out->failed)
        out->reason = str_dup(task_arena(t), str_of(task_error(t)));
    if (err)
        return out->failed ? 0 : err;
    out->relevant = verdict.relevant;
    out->reason = verdict.reason;
    return 0;
}

/* A call for many papers costs little more than one for a single paper: worth waiting for others, if the wait is nothing
 * beside that for the AI. */
static int64_t patience_ms(const struct crew *c)
{
    int64_t latency_us, tokens;
    ai_averages(c->node->ai, &latency_us, &tokens);
    int64_t ms = latency_us / 1000 / PATIENCE_SHARE;
    return ms < PATIENCE_MS_MAX ? ms : PATIENCE_MS_MAX;
}

/* Verdict, charge and progress in one step. It was paid for, so it waits for the stores as long as need be. */
static int record(struct task *t, struct worker *w, const struct work_paper *p,
                  const struct result *result)
{
    struct crew *crew = w->run->crew;
    struct ledger *ledger = crew->node->ledger;
    buf_clear(&crew->json);
    result_write(&crew->json, result);
    struct charge c = {.uid = w->run->run.id.uid,
                       .qid = w->run->run.id.qid,
                       .doi = p->doi,
                       .cents = result->failed ? 0 : p->cents,
                       .result = str_dup(task_arena(t), buf_str(&crew->json)),
                       .patience_ms = patience_ms(crew),
                       .relevant = result->relevant,
                       .failed = result->failed};
    enum charge_outcome outcome = CHARGE_STOPPED;
    int err;
    for (int64_t pause_ms = BACKOFF_MS; store_away(err = ledger_charge(t, ledger, &c, &outcome));
         pause_ms = pause_ms * 2 < BACKOFF_MS_MAX ? pause_ms * 2 : BACKOFF_MS_MAX)
        if ((err = task_sleep(t, loop_jitter(task_loop(t), pause_ms))))
            break;
    if (err)
        return err;
    return outcome == CHARGE_FUNDS ? ERR_FUNDS : outcome == CHARGE_STOPPED ? ERR_CLOSED : 0;
}

static int work_on_paper(struct task *t, struct worker *w, const struct work_paper *p,
                         struct str packed)
{
    struct crew *c = w->run->crew;
    struct result result = {.block_key = key_block(task_arena(t), p->journal, p->year)};
    int err = judge(t, w, p, packed, &result);
    w->in_hand = true; /* also if it failed: that is recorded, too */
    if (!err)
        err = record(t, w, p, &result);
    w->in_hand = false;
    if (!err)
        metric_add(result.failed ? c->failed : c->judged, 1);
    return err;
}

/* --- one unit --- */

/* R6: whoever finishes the last one ends the run. If we cannot say so, the keeper will. */
static int finish_unit(struct task *t, struct worker *w, struct work_unit *u)
{
    struct node *n = w->run->crew->node;
    bool last = false;
    enum run_state state;
    int err;
    w->in_hand = true; /* nothing is left to do: a pause need not cut us off */
    while (store_away(err = unit_finish(t, n->redis, w->run->run.id, &u->unit, &last)))
        if ((err = task_sleep(t, loop_jitter(task_loop(t), BACKOFF_MS))))
            break;
    if (!err || err == ERR_CONFLICT) { /* which is: somebody else's by now */
        supply_close_unit(w, u);
        err = 0;
    }
    if (last && run_control(t, n->runs, w->run->run.id, RUN_FINISH, "", &state))
        log_warn("run", "%.*s is done, but its row does not say so yet: %s",
                 STR_ARG(w->run->run.id.qid), task_error(t));
    w->in_hand = false;
    return err;
}

static int work_on_lot(struct task *t, struct worker *w, struct lot *lot)
{
    for (size_t i = 0; i < lot->count; i++) {
        if (w->leaves)
            return ERR_CLOSED;
        if (i + 1 == lot->count)
            supply_ahead(w);
        struct task_scope scope = task_scope(t);
        int err = work_on_paper(t, w, &lot->papers[i].paper, lot->papers[i].packed);
        task_scope_end(t, scope);
        if (err)
            return err;
    }
    return lot->ends ? finish_unit(t, w, lot->unit) : 0;
}

/* --- all of them --- */

/* Once for all workers of the run on this node. */
static void pause_run(struct task *t, struct worker *w, const char *reason)
{
    struct crew_run *r = w->run;
    enum run_state state;
    if (r->pausing)
        return;
    r->pausing = true; /* until then it gets no workers: each would ask the AI in vain */
    w->in_hand = true; /* and we are not cut off */
    int err;
    while (
        store_away(err = run_control(t, r->crew->node->runs, r->run.id, RUN_PAUSE, reason, &state)))
        if ((err = task_sleep(t, loop_jitter(task_loop(t), BACKOFF_MS_MAX))))
            break;
    if (err && err != ERR_CONFLICT)
        log_warn("run", "%.*s cannot pause itself: %s", STR_ARG(r->run.id.qid), task_error(t));
    r->pausing = w->in_hand = false;
}

static int work(struct task *t, struct worker *w)
{
    int err = 0;
    while (!err && !w->leaves) {
        struct task_scope scope = task_scope(t);
        struct lot *lot = NULL;
        err = supply_next(t, w, &lot);
        if (!err)
            err = work_on_lot(t, w, lot);
        free(lot);
        if (err == ERR_FUNDS)
            pause_run(t, w, RUN_REASON_FUNDS);
        else if (err == ERR_INTERNAL)
            pause_run(t, w, RUN_REASON_ACCOUNT);
        task_scope_end(t, scope);
    }
    return err;
}

void worker_task(struct task *t, void *arg)
{
    struct worker *w = arg;
    struct crew_run *r = w->run;
    w->task = t;
    int err = work(t, w);
    if (err && err != ERR_NOT_FOUND && err != ERR_CLOSED && err != ERR_CANCELED && err != ERR_FUNDS)
        log_warn("crew", "a worker of run %.*s gives up: %s", STR_ARG(r->run.id.qid),
                 *task_error(t) ? task_error(t) : err_name(err));
    supply_end(t, w);
    list_del(&w->link);
    r->count--;
    metric_add(r->crew->worker_gauge, -1);
    if (r->count == 0 || r->orphans) {
        r->crew->stirred = true;
        waitq_wake_all(&r->crew->changed);
    }
    free(w);
}

void worker_stop(struct worker *w, bool hard)
{
    w->leaves = true;
    if (w->task && (hard || !w->in_hand))
        task_cancel(w->task);
}
