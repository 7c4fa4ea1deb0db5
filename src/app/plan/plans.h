/* plans.h -- training and nutrition plans: made by the AI from a template, read, changed (PLN-2 to
 * PLN-4).
 *
 * Owns the tables training_plan, nutrition_plan, their days, plan_user and generation_task. Ids of
 * tasks are "<uid>-<random>", of plans the same with a letter for the kind before the random part:
 * an id of another user is ERR_NOT_FOUND, by its beginning and once more by the row.
 *
 * How a plan is made. The row of generation_task is the promise, a job of queue "plan" does it
 * (generate.c):
 *
 *   1. Submit: the template is filled; prompt, template and variables are frozen in the row, and
 *      the price is reserved, in one transaction. Then the job is pushed.
 *   2. Ask: the reply is checked (shape.h), and asked for again with the complaint, at most
 *      PLAN_ASKS_MAX times in all, counted in the row. The checked plan is kept in the row.
 *   3. Pay: first the row says so (paying: it cannot be cancelled any more), then job_pay.
 *   4. Store: one transaction writes the plan and its days, completes the task and frees what was
 *      reserved. The caches are filled, and the job is done.
 *
 * Always true, whatever dies when:
 *   - a task is paid at most once (by its id), and only after its plan was kept: what fails or is
 *     cancelled costs nothing, and what is completed is paid;
 *   - a task that died after step 2 is not asked again, one that died after step 3 not paid again.
 *     A plan's id follows from the task's, so step 4 cannot make two plans;
 *   - a task that has not ended within 24 hours fails, unless its payment has begun.
 * When the AI is away, a task waits, says so, and loses no try.
 *
 * What Redis has of plans is a cache (cache.c), fenced by one number per user, plan_user.version:
 *
 *   1. every transaction that changes a plan of a user adds one to it, and marks the row as untold;
 *   2. Redis is told the new number (plan_tell.lua): what was filled at another one counts no more;
 *   3. what a loader has read from MySQL carries the number of the same snapshot, and is refused by
 *      plan_fill.lua if Redis knows a later one. So a slow loader never brings an old day back.
 *
 * The fence counts only in the process of Redis that it was written in, so that a Redis that came
 * back older or empty is filled anew. plans_role tells what was not told, each second, on every
 * node, and once on each new connection before anything is read from it. When Redis does not
 * answer, plans come from MySQL, marked degraded; when MySQL does not, from Redis. */
#ifndef APP_PLAN_PLANS_H
#define APP_PLAN_PLANS_H

#include "app/plan/shape.h"
#include "engine/jobs/jobs.h"
#include "engine/people/own_id.h"
#include "engine/setup/node.h"
#include "engine/store/role.h"

struct plans;

#define PLAN_QUEUE          "plan"
#define PLAN_ID_CHARS       (OWN_ID_CHARS + 1)
#define PLAN_REQUEST_CHARS  64
#define PLAN_ASKS_MAX       3    /* the first one, and twice with the complaint */
#define PLAN_TASKS_MAX      10   /* of one user that have not ended */
#define PLANS_MAX           1000 /* of one user */
#define PLAN_PAGE_MAX       100
#define PLAN_TASK_MS        (24LL * 3600 * 1000)
#define PLAN_DAY_MS         (7LL * 24 * 3600 * 1000)
#define NUTRITION_PLAN_MS   (30LL * 24 * 3600 * 1000)
#define PLAN_KINDS          "training|nutrition"
#define PLANS_LOOK_EACH_MS  100
#define PLANS_SWEEP_EACH_MS 1000
#define PLANS_WARM_EACH_MS  5000
#define PLAN_SEEN_DAYS      7 /* plans of users who were here so lately are loaded at a start */

/* Borrows n, whose jobs, ledger, runs, ai and config it uses; adds the queue. */
struct plans *plans_new(struct node *n);
void plans_free(struct plans *p);

const char *plan_kind_name(enum plan_kind k);
bool plan_kind_read(struct str name, enum plan_kind *out);
int64_t plan_price_cents(const struct config *c, enum plan_kind k); /* what one is charged */

/* --- plans --- */

struct plan {
    enum plan_kind kind;
    struct str id, name, start_date, end_date;
    int64_t uid, number, weeks;
    struct str difficulty;  /* of a training; else p == NULL */
    int64_t daily_calories; /* of a nutrition; else 0 */
    struct str macro_ratio; /* likewise, JSON; else p == NULL */
    int64_t template_id, template_version;
    struct str variables; /* JSON */
    bool simulated;       /* by the simulated AI */
    bool active;
    int64_t version; /* of the plan: each change of a day adds one */
    int64_t created_ms, changed_ms;
    struct str days; /* JSON: an array of days, each with its version; p == NULL in lists */
    int64_t seen;    /* number of the user's changes when it was read from MySQL */
    bool degraded;   /* read from MySQL because Redis does not answer */
};

/* A day. Its members are those of its kind, in day. */
struct plan_date {
    enum plan_kind kind;
    struct str plan_id;
    struct plan_day day; /* day.json: p == NULL unless it comes from MySQL */
    int64_t version;
    bool degraded;
};

/* In the task's arena. ERR_NOT_FOUND: the user has no such plan. */
MUST_CHECK int plan_get(struct task *t, struct plans *p, int64_t uid, struct str id,
                        struct plan *out);
/* ERR_NOT_FOUND: none of this kind is active. */
MUST_CHECK int plan_active(struct task *t, struct plans *p, int64_t uid, enum plan_kind kind,
                           struct plan *out);
/* ERR_NOT_FOUND: there is no such plan, or it does not have that day. */
MUST_CHECK int plan_date_get(struct task *t, struct plans *p, int64_t uid, struct str id,
                             struct str date, struct plan_date *out);

/* The newest first; kinds: a bit for each enum plan_kind. From MySQL alone. */
struct plan_page {
    struct plan *list;
    size_t count;
    int64_t next; /* number to go on below; 0: nothing more */
};
MUST_CHECK int plan_list(struct task *t, struct plans *p, int64_t uid, unsigned kinds,
                         int64_t below, int64_t limit, struct plan_page *out);

/* Replaces a day, if it is at this version still. ERR_CONFLICT: it is not. ERR_INVALID: it is no
 * day, *complaint says why. */
MUST_CHECK int plan_date_put(struct task *t, struct plans *p, int64_t uid, struct str id,
                             struct str date, int64_t version, const struct json *day,
                             struct plan_date *out, const char **complaint);
/* One step: the plan that was active is so no more. *was: its id; p == NULL: none. */
MUST_CHECK int plan_activate(struct task *t, struct plans *p, int64_t uid, struct str id,
                             struct str *was);
MUST_CHECK int plan_delete(struct task *t, struct plans *p, int64_t uid, struct str id);

/* --- making them --- */

struct plan_wish {
    int64_t uid;
    enum plan_kind kind;
    int64_t template_id;          /* 0: the default of the kind */
    const struct json *variables; /* an object, or NULL */
    struct str request_id;        /* p == NULL: none */
};
/* *id: of the task that the same request has submitted before; p == NULL: none. ERR_CONFLICT: its
 * request_id has submitted another one. */
MUST_CHECK int plan_task_repeated(struct task *t, struct plans *p, const struct plan_wish *w,
                                  struct str *id);
/* *id in the task's arena; *repeated: it was submitted before, and nothing was done now. ERR_FUNDS:
 * too little is free. ERR_INVALID: a variable is wrong. ERR_NOT_FOUND: there is no such template.
 * ERR_CONFLICT: as above. ERR_RATE: PLAN_TASKS_MAX have not ended. ERR_LIMIT: there are PLANS_MAX.
 * ERR_FORBIDDEN, ERR_UNAVAILABLE, ERR_UNCERTAIN: as promise_make. */
MUST_CHECK int plan_task_submit(struct task *t, struct plans *p, const struct plan_wish *w,
                                struct str *id, bool *repeated);

/* Why a task failed, or what it waits for; besides those of the engine (jobs.h). */
#define PLAN_NO_KEY       "no_key"       /* the AI service has no active key */
#define PLAN_SERVICE_DOWN "service_down" /* the AI service does not work */
#define PLAN_REFUSED      "refused"      /* the AI service refuses the request */
#define PLAN_BAD_ANSWER   "bad_answer"   /* no answer was a plan, at PLAN_ASKS_MAX asks */
#define PLAN_TOO_SLOW     "too_slow"     /* the answer took longer than plan.deadline_ms */
#define PLAN_TOO_OLD      "too_old"      /* it was not made within 24 hours */
#define PLAN_CANCELLED    "cancelled"    /* by its user */
#define PLAN_REASONS                                                                               \
    JOB_REASONS "|" PLAN_NO_KEY "|" PLAN_SERVICE_DOWN "|" PLAN_REFUSED "|" PLAN_BAD_ANSWER         \
                "|" PLAN_TOO_SLOW "|" PLAN_TOO_OLD "|" PLAN_CANCELLED

struct plan_task {
    struct str id, status; /* generating, completed, failed, cancelled */
    enum plan_kind kind;
    int64_t progress;
    struct str plan_id; /* p == NULL: none yet */
    struct str message; /* why it failed, or what it waits for; p == NULL: nothing to say */
    struct str reason;  /* the same by a word of PLAN_REASONS; p == NULL: likewise */
    int64_t created_ms;
    int64_t cents;
    bool degraded; /* one of the stores does not answer */
};
MUST_CHECK int plan_task_get(struct task *t, struct plans *p, int64_t uid, struct str id,
                             struct plan_task *out);
/* Those that have not ended, the oldest first. */
MUST_CHECK int plan_task_list(struct task *t, struct plans *p, int64_t uid, struct plan_task **out,
                              size_t *count);
/* ERR_CONFLICT: it has ended, or its payment has begun. */
MUST_CHECK int plan_task_cancel(struct task *t, struct plans *p, int64_t uid, struct str id,
                                struct plan_task *out);

/* --- roles; arg: a struct plans --- */

role_fn plans_role; /* tells Redis what it was not told; on every node */
role_fn
    plans_sweep_role; /* tasks that are too old, ends that Redis has not heard of, deleted plans */
role_fn plans_warm_role; /* active plans and today's rows of users seen lately (PLN-4) */
#endif
