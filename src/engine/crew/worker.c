/* One worker: leases a unit, judges its papers one by one, leases the next (R4, R5, R6). */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "engine/crew/crew_private.h"
#include "engine/money/result.h"
#include "engine/store/keys.h"
#include "loop/backoff.h"

#define BACKOFF_MS      50 /* a unit is done, and a store is unavailable */
#define PASSED_OVER_MAX 3
#define REFUSED_MAX     3   /* times, of a paper while no other one gets a verdict */
#define ALONE_MS        500 /* until a paper is asked about again that has no others before it */
#define ASKS_MAX        12  /* of a paper without a verdict, */
#define ASKS_MS         (15LL * 60 * 1000) /* and for so long */

/* --- papers without a verdict --- */

/* Whether it is the paper. It was put off, and others have had their verdicts meanwhile: with a
 * service that comes and goes this happens to a good paper, too, but not again and again. Or it is
 * the only one that is left, and this has lasted. */
static bool is_its_own(struct task *t, const struct worker *w, struct lot_paper *p, int err)
{
    bool between = p->asks > 0 && p->verdicts != w->run->verdicts;
    p->passed_over += between;
    if (err == ERR_REFUSED)
        return between || p->refused >= REFUSED_MAX;
    return p->passed_over >= PASSED_OVER_MAX ||
           (p->asks >= ASKS_MAX && loop_now_ms(task_loop(t)) - p->asked_ms >= ASKS_MS);
}

/* Requests that are refused in the same words, one paper after the other: it is the run. */
static bool run_is_refused(struct task *t, struct crew_run *r, const struct lot_paper *p)
{
    static const uint8_t key[16];
    uint64_t words = siphash(key, str_of(task_error(t)));
    if (r->refused.words != words || r->refused.verdicts != r->verdicts)
        r->refused.papers = 0;
    r->refused.words = words;
    r->refused.verdicts = r->verdicts;
    r->refused.papers += !p->refused;
    return r->refused.papers >= CREW_REFUSED_MAX;
}

/* ERR_BUSY: the paper is asked about again after the others. 0: it fails, and task_error says why.
 * Other codes: the worker ends. */
static int without_verdict(struct task *t, struct worker *w, struct lot_paper *p, int err)
{
    if (err == ERR_REFUSED && run_is_refused(t, w->run, p)) {
        w->hand.busy = true; /* the pause must be written before it ends this worker */
        crew_pause_refused(t, w->run);
        w->hand.busy = false;
        return ERR_CLOSED;
    }
    if (err == ERR_PROTO || is_its_own(t, w, p, err))
        return 0;
    if (p->asks++ == 0)
        p->asked_ms = loop_now_ms(task_loop(t));
    p->refused += err == ERR_REFUSED;
    p->verdicts = w->run->verdicts;
    return ERR_BUSY;
}

/* --- one paper --- */

/* Fills *out with the result, or with the reason why the paper failed. Other than 0: neither is
 * known, and the paper stays open. */
static int judge(struct task *t, struct worker *w, struct lot_paper *p, struct result *out)
{
    struct crew_run *r = w->run;
    if (p->spent) {
        out->reason = str_printf(task_arena(t), "asked about %d times, and no answer was recorded",
                                 UNIT_VAIN_MAX);
        return 0;
    }
    int err = r->app->judge(t, r->crew->node, r->opened, &p->paper, p->packed, &w->hand, out);
    r->verdicts += !err && out->outcome != OUTCOME_FAILED;
    if (err != ERR_REFUSED && err != ERR_PROTO && err != ERR_UNAVAILABLE)
        return err;
    err = without_verdict(t, w, p, err);
    out->outcome = OUTCOME_FAILED;
    out->reason = str_dup(task_arena(t), str_of(task_error(t)));
    return err;
}

/* The till records and charges the result while this worker asks the AI about the next paper. */
static int record(struct task *t, struct worker *w, const struct app_paper *p,
                  const struct result *result)
{
    struct crew_run *r = w->run;
    int err = till_wait(t, &r->till, &w->slip);
    if (err)
        return err;
    buf_clear(&r->crew->json); /* not before: another worker may have used it meanwhile */
    result_write(&r->crew->json, result);
    return till_give(t, &r->till, &w->slip,
                     &(struct charge){.uid = r->run.id.uid,
                                      .qid = r->run.id.qid,
                                      .doi = p->doi,
                                      .cents = result->outcome == OUTCOME_FAILED ? 0 : p->cents,
                                      .result = buf_str(&r->crew->json),
                                      .outcome = result->outcome});
}

static int work_on_paper(struct task *t, struct worker *w, struct work_unit *u, struct lot_paper *p)
{
    struct result result = {.block_key =
                                key_block_name(task_arena(t), p->paper.journal, p->paper.year),
                            .outcome = OUTCOME_FAILED};
    int err = judge(t, w, p, &result);
    bool answered = !err && !p->spent;
    w->hand.busy = true; /* also if the paper failed: a failure is recorded, too */
    if (!err)
        err = record(t, w, &p->paper, &result);
    if (!err && u->unit.vain > 0) /* its next paper is not asked about while this one may be lost */
        err = till_wait(t, &w->run->till, &w->slip);
    w->hand.busy = false;
    u->in_vain = u->in_vain || (err && (answered || w->cut_off));
    return err;
}

/* --- one unit --- */

/* R6: the worker that finishes the last unit ends the run. If MySQL is unavailable, the keeper ends
 * it later. */
static int finish_unit(struct task *t, struct worker *w, struct work_unit *u)
{
    struct node *n = w->run->crew->node;
    bool last = false;
    enum run_state state;
    w->hand.busy = true; /* only bookkeeping is left: a pause must not cancel it */
    int err = till_wait(t, &w->run->till, &w->slip);
    u->in_vain = u->in_vain || err;
    while (!err && err_may_pass(err = unit_finish(t, n->redis, w->run->run.id, &u->unit, &last)))
        err = backoff_wait(t, &(struct backoff){.ms = BACKOFF_MS});
    if (!err || err == ERR_CONFLICT) {
        /* Another worker's by now, or taken before Redis was restarted: then the lease is still
         * this node's, and is given back. */
        w->run->orphans = w->run->orphans || err;
        supply_close_unit(w, u);
        err = 0;
    }
    if (last && run_control(t, n->runs, w->run->run.id, RUN_FINISH, "", &state))
        log_warn("run", "%.*s is done, but its row does not say so yet: %s",
                 STR_ARG(w->run->run.id.qid), task_error(t));
    w->hand.busy = false;
    return err;
}

static void put_last(struct lot *lot, size_t i)
{
    struct lot_paper p = lot->papers[i];
    memmove(&lot->papers[i], &lot->papers[i + 1], (lot->count - i - 1) * sizeof p);
    lot->papers[lot->count - 1] = p;
}

static int work_on_lot(struct task *t, struct worker *w, struct lot *lot)
{
    for (size_t i = 0; i < lot->count;) {
        if (w->hand.leaves)
            return ERR_CLOSED;
        if (i + 1 == lot->count && w->supply == SUPPLY_NONE)
            supply_ahead(w);
        struct task_scope scope = task_scope(t);
        int err = work_on_paper(t, w, lot->unit, &lot->papers[i]);
        task_scope_end(t, scope);
        if (err == ERR_BUSY && i + 1 < lot->count)
            put_last(lot, i);
        else if (err == ERR_BUSY)
            err = backoff_wait(t, &(struct backoff){.ms = ALONE_MS});
        else if (!err)
            i++;
        if (err && err != ERR_BUSY)
            return err;
    }
    return lot->ends ? finish_unit(t, w, lot->unit) : 0;
}

/* --- all of them --- */

static int work_on_lots(struct task *t, struct worker *w)
{
    int err = 0;
    while (!err && !w->hand.leaves) {
        struct task_scope scope = task_scope(t);
        struct lot *lot = NULL;
        err = supply_next(t, w, &lot);
        if (!err)
            err = work_on_lot(t, w, lot);
        free(lot);
        task_scope_end(t, scope);
    }
    return err;
}

void worker_task(struct task *t, void *arg)
{
    struct worker *w = arg;
    struct crew_run *r = w->run;
    w->task = t;
    int err = work_on_lots(t, w);
    till_leave(t, &r->till, &w->slip, &w->cut_off);
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
    w->hand.leaves = true;
    w->cut_off = w->cut_off || hard;
    if (w->task && (hard || !w->hand.busy))
        task_cancel(w->task);
    if (w->task && hard)
        task_wake(w->task);
}
