/* plans_private.h -- what the files of plans know of each other.
 *
 *   plans.c     what a node holds; kinds; ids
 *   rows.c      plans and days as MySQL has them
 *   cache.c     the same in Redis, and the fence
 *   read.c      reading: Redis, then MySQL
 *   change.c    writing: days, the active plan, deletions
 *   submit.c    a task is promised
 *   generate.c  a task is worked on
 *   ask.c       what the AI is asked, and what it answers
 *   tasks.c     tasks as users see them
 *   sweep.c     the roles */
#ifndef APP_PLAN_PLANS_PRIVATE_H
#define APP_PLAN_PLANS_PRIVATE_H

#include "app/plan/plans.h"
#include "engine/jobs/jobs.h"
#include "engine/people/own_id.h"
#include "engine/store/cache.h"
#include "engine/store/generation.h"
#include "engine/store/record.h"
#include "wire/sql.h"

#define PLAN_KIND_COUNT 2
#define PLAN_DAY_FIELDS 5

/* A kind of plans. */
struct plan_type {
    const char *name;                     /* "training": as in tables and in the API */
    const char *plans, *days;             /* tables */
    const char *plan_metric, *day_metric; /* label kind of the caches */
    struct record_kind record;            /* of a struct plan */
    int64_t plan_ms;                      /* life in Redis; 0: no end */
    struct str (*key)(struct arena *a, struct str id);
    struct str (*active_key)(struct arena *a, int64_t uid);
    const char *fields[PLAN_DAY_FIELDS]; /* of a day: in JSON, in Redis; and where they are in */
    size_t at[PLAN_DAY_FIELDS];          /* struct plan_day */
    bool text[PLAN_DAY_FIELDS];          /* it is a text, else it is JSON */
};
extern const struct plan_type plan_types[PLAN_KIND_COUNT];

/* What the AI has to answer. */
struct plan_question {
    struct plan_frame frame;
    struct str prompt, model;
    struct str complaint; /* about the last answer; p == NULL: there was none */
    const bool *asks;     /* of the job: it may ask now */
    /* Days of the answer that have come in; it must not wait. */
    void (*seen)(void *arg, size_t days);
    void *arg;
};
struct plan_answer {
    struct plan_shape shape;
    bool simulated;
    const char *complaint; /* NULL: the shape is right */
    const char *reason;    /* of an error, by a word of PLAN_REASONS; NULL: as its code says */
};

struct plans {
    struct node *node;
    struct job_kind kind;
    struct cache_counts plan[PLAN_KIND_COUNT], day[PLAN_KIND_COUNT], active;
    int64_t *completed, *asks, *wrong;
    struct histogram *store_seconds;
    /* Connection to Redis on which all that was untold has been told; 0: none. */
    uint64_t told_epoch, tried_epoch;
    struct generation swept; /* that has heard of all ends */
    int64_t due_ms;
    /* For tests: another AI, and a node that dies after a step (other than 0). */
    int (*ask)(struct task *t, struct plans *p, const struct plan_question *q,
               struct plan_answer *out);
    int (*dies)(struct task *t, const char *after);
};

/* --- plans.c --- */

/* False: it is another user's, or none. */
bool plan_id_is(struct str id, int64_t uid, enum plan_kind *kind);
/* Of the plan that a task makes. */
struct str plan_id_of_task(struct arena *a, int64_t uid, enum plan_kind kind, struct str task_id);
int plan_none(struct task *t);   /* ERR_NOT_FOUND, with its text */
bool plan_date_is(struct str s); /* "2026-01-31", a date that exists */
bool plan_frame_has(const struct plan_frame *f, struct str date);
/* Today, in UTC. */
struct str plan_today(struct task *t);

/* --- rows.c --- */

/* What a user has, besides plans. */
struct plan_owner {
    int64_t version;
    struct str active[PLAN_KIND_COUNT]; /* p == NULL: none */
};

/* What was read in one snapshot. */
struct plan_snapshot {
    struct generation generation;   /* of Redis, before it was read */
    int64_t version;                /* of the user's plans */
    const struct plan_owner *owner; /* of this version; NULL: not known */
};
/* Of the Redis that has the user's plans. */
struct generation plan_generation(struct task *t, const struct plans *p, int64_t uid);
/* These read what out->kind and the ids in *out name. A plan comes with its days. ERR_NOT_FOUND. */
MUST_CHECK int plan_load(struct task *t, struct plans *p, int64_t uid, struct plan *out,
                         struct plan_snapshot *at);
/* *active: it is a day of the active plan. */
MUST_CHECK int plan_date_load(struct task *t, struct plans *p, int64_t uid, struct plan_date *out,
                              bool *active, struct plan_snapshot *at);
/* Id of the active plan; p == NULL: none. */
MUST_CHECK int plan_active_load(struct task *t, struct plans *p, int64_t uid, enum plan_kind kind,
                                struct str *id, struct plan_snapshot *at);
/* The members of a day out of its JSON. False: it is none. */
bool plan_day_members(struct arena *a, enum plan_kind kind, struct str json, struct plan_day *out);
/* First in every transaction that changes plans of the user: locks, and counts. With the new
 * version, and the plans that are active so far. */
MUST_CHECK int plan_owner_lock(struct task *t, struct sql *c, int64_t uid, struct plan_owner *out);
MUST_CHECK int plan_owner_read(struct task *t, struct plans *p, int64_t uid,
                               struct plan_owner *out);
/* In the same transaction; id.p == NULL: none. Changes *o, too. */
MUST_CHECK int plan_owner_activate(struct task *t, struct sql *c, int64_t uid, enum plan_kind kind,
                                   struct str id, struct plan_owner *o);
/* Days of a new plan, as plan.days has them. */
struct str plan_days_json(struct arena *a, const struct plan_shape *shape);
/* A new plan and its days; x->number, version, times and the rest are there. */
MUST_CHECK int plan_insert(struct task *t, struct sql *c, const struct plan *x,
                           const struct plan_shape *shape);

/* --- cache.c --- */

struct plan_entry {
    struct str key;
    int64_t ms;                /* 0: no end */
    struct script_list values; /* of a hash; one text: a string */
};
bool plans_trust(const struct plans *p); /* Redis answers, and has been told all */
/* Refused if it is old, or Redis is away: that is no error. ERR_CANCELED. */
MUST_CHECK int plan_fill(struct task *t, struct plans *p, int64_t uid,
                         const struct plan_snapshot *at, const struct plan_entry *list,
                         size_t count);
MUST_CHECK int plan_tell(struct task *t, struct plans *p, int64_t uid, const struct plan_owner *o,
                         const struct str *gone, size_t count);
struct plan_entry plan_entry_of(struct arena *a, const struct plan *x);
struct plan_entry plan_active_entry(struct arena *a, int64_t uid, enum plan_kind kind,
                                    struct str id);
struct plan_entry plan_date_entry(struct arena *a, int64_t uid, const struct plan_date *d);
/* What counts of a key; *found stays false: nothing. *away: Redis does not answer, or is not
 * trusted. Only errors of the task itself. */
MUST_CHECK int plan_look(struct task *t, struct plans *p, int64_t uid, struct plan *out,
                         bool *found, bool *away); /* of out->kind and out->id */
MUST_CHECK int plan_date_look(struct task *t, struct plans *p, int64_t uid, struct plan_date *out,
                              bool *found, bool *away); /* of kind, plan_id, day.date */
MUST_CHECK int plan_active_look(struct task *t, struct plans *p, int64_t uid, enum plan_kind kind,
                                struct str *id, bool *found, bool *away);
/* Keys of all that Redis may have of a plan. */
size_t plan_keys(struct arena *a, const struct plan *x, struct str **out);

/* --- tasks.c --- */

/* Tells Redis how far a task is; best effort. error: p == NULL: none; result: id of the plan. */
void plan_task_note(struct task *t, struct plans *p, const struct plan_task *x, int64_t uid);
MUST_CHECK int plan_task_tell(struct task *t, struct plans *p, const struct plan_task *x,
                              int64_t uid);

/* --- submit.c, generate.c, ask.c --- */

extern const struct job_rows plan_job_rows;
job_fn plan_work;
/* The AI of the settings. ERR_INVALID never: what is wrong is a complaint. */
MUST_CHECK int plan_ask(struct task *t, struct plans *p, const struct plan_question *q,
                        struct plan_answer *out);
#endif
