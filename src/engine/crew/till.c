#include "engine/crew/till.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "loop/backoff.h"

#define BACKOFF_MS     50
#define BACKOFF_MS_MAX 2000

/* One allocation: the strings follow the struct. */
struct till_record {
    struct list link;
    struct till_slip *slip; /* NULL: the worker has ended */
    bool taken;             /* a clerk has it */
    struct charge charge;
};

void till_open(struct till *x)
{
    list_init(&x->line);
}

bool till_idle(const struct till *x)
{
    return x->count == 0 && x->clerks == 0;
}

/* --- clerks --- */

static void start_clerk(struct till *x);

static void gather(struct task *t, struct till *x)
{
    int64_t old = task_deadline(t, TILL_PATIENCE_MS);
    int err = 0;
    x->gatherer = t;
    while (!err && !x->hurried && x->count < CHARGE_MANY_MAX)
        err = task_wait(t);
    x->gatherer = NULL;
    x->gathers = false;
    task_deadline_restore(t, old);
}

/* A worker waits for a queued record: flush without waiting for the batch to fill. */
static void hurry(struct till *x, const struct till_slip *s)
{
    if (!s->record || s->record->taken)
        return;
    x->hurried = true;
    if (x->gatherer)
        task_wake(x->gatherer);
}

static int charge(struct task *t, struct till *x, const struct list *batch, size_t count,
                  enum charge_outcome *out)
{
    struct charge *charges = ARENA_ARRAY(task_arena(t), struct charge, count);
    size_t n = 0;
    list_each (it, batch)
        charges[n++] = list_entry(it, struct till_record, link)->charge;
    int err = 0;
    struct backoff b = {.ms = BACKOFF_MS, .ms_max = BACKOFF_MS_MAX};
    while (!err && err_may_pass(err = ledger_charge(t, x->ledger, count, charges, out)))
        err = backoff_wait(t, &b);
    return err;
}

/* The error that the worker gets. */
static int verdict_on(enum charge_outcome outcome)
{
    return outcome == CHARGE_FUNDS ? ERR_FUNDS : outcome == CHARGE_STOPPED ? ERR_CLOSED : 0;
}

static void hand_back(struct till *x, struct till_record *r, int err)
{
    x->lost = err ? x->lost + 1 : 0;
    if (!err)
        metric_add(r->charge.outcome == OUTCOME_FAILED ? x->failed : x->judged, 1);
    if (r->slip) {
        r->slip->record = NULL;
        r->slip->err = err;
        if (r->slip->task)
            task_wake(r->slip->task);
    }
    free(r);
}

static void serve(struct task *t, struct till *x)
{
    struct list batch;
    size_t count = 0;
    list_init(&batch);
    gather(t, x);
    for (struct list *it; count < CHARGE_MANY_MAX && (it = list_pop(&x->line)); count++) {
        list_push(&batch, it);
        list_entry(it, struct till_record, link)->taken = true;
    }
    x->count -= count;
    x->hurried = x->hurried && x->count > 0;
    if (x->count > 0)
        start_clerk(x);
    if (count == 0) /* the worker was cut off and has dropped its record */
        return;
    enum charge_outcome *out = ARENA_ARRAY(task_arena(t), enum charge_outcome, count);
    int err = charge(t, x, &batch, count, out), refusal = err == ERR_CANCELED ? 0 : err;
    if (refusal)
        log_warn("till", "%zu verdicts of run %.*s cannot be recorded, the run is paused: %s",
                 count, STR_ARG(list_entry(batch.next, struct till_record, link)->charge.qid),
                 task_error(t));
    for (size_t i = 0; i < count; i++) {
        int verdict = err ? err : verdict_on(out[i]);
        refusal = verdict == ERR_FUNDS ? verdict : refusal;
        hand_back(x, list_entry(list_pop(&batch), struct till_record, link), verdict);
    }
    if (!refusal && x->lost >= TILL_LOST_MIN && x->lost >= 2 * *x->workers) {
        refusal = task_fail(t, ERR_CONFLICT, "none of its last %lld verdicts was recorded",
                            (long long)x->lost);
        x->lost = 0;
    }
    if (refusal)
        x->refused(t, x->arg, refusal);
}

static void clerk(struct task *t, void *arg)
{
    struct till *x = arg;
    bool more;
    do {
        struct task_scope scope = task_scope(t);
        serve(t, x);
        task_scope_end(t, scope);
        more = x->count > 0 && !x->gathers && !task_canceled(t);
        x->gathers = x->gathers || more;
    } while (more);
    x->clerks--;
}

/* If none can be started, a clerk that already runs takes the rest when it is done. */
static void start_clerk(struct till *x)
{
    if (x->clerks == TILL_CLERKS_MAX || task_go(x->group, "clerk", clerk, x))
        return;
    x->clerks++;
    x->gathers = true;
}

/* --- workers --- */

static struct till_record *record_new(struct till_slip *s, const struct charge *c)
{
    struct till_record *r = check_memory(malloc(sizeof *r + c->doi.n + c->result.n));
    char *doi = (char *)(r + 1), *result = doi + c->doi.n;
    *r = (struct till_record){.slip = s, .charge = *c};
    r->charge.doi = str_from(memcpy(doi, c->doi.p, c->doi.n), c->doi.n);
    r->charge.result = str_from(memcpy(result, c->result.p, c->result.n), c->result.n);
    return r;
}

static void drop(struct till *x, struct till_record *r)
{
    list_del(&r->link);
    x->count--;
    r->slip->record = NULL;
    free(r);
}

int till_wait(struct task *t, struct till *x, struct till_slip *s)
{
    int err = 0;
    hurry(x, s);
    s->task = t;
    while (s->record && !err)
        err = task_wait(t);
    s->task = NULL;
    if (!err) {
        err = s->err;
        s->err = 0;
    }
    return err;
}

int till_give(struct task *t, struct till *x, struct till_slip *s, const struct charge *c)
{
    check(!s->record);
    const char *problem = charge_problem(c); /* here, so that it does not fail the whole batch */
    if (problem) {
        x->refused(t, x->arg, task_fail(t, ERR_INVALID, "%s", problem));
        return task_fail(t, ERR_INVALID, "%s", problem);
    }
    s->record = record_new(s, c);
    list_push(&x->line, &s->record->link);
    x->count++;
    if (!x->gathers)
        start_clerk(x);
    else if (x->gatherer && x->count >= CHARGE_MANY_MAX)
        task_wake(x->gatherer);
    if (x->clerks > 0)
        return 0;
    drop(x, s->record);
    return task_fail(t, ERR_LIMIT, "no more tasks can be started");
}

void till_leave(struct task *t, struct till *x, struct till_slip *s, const bool *cut_off)
{
    hurry(x, s);
    s->task = t;
    while (s->record && !*cut_off)
        task_wait_always(t);
    if (s->record && s->record->taken)
        s->record->slip = NULL;
    else if (s->record)
        drop(x, s->record);
}
