/* work.h -- what an application brings, so that its runs can be worked on.
 *
 * The engine queues, starts, pauses and ends runs, leases units, asks the AI and charges. An application says
 * how a run is split into units, and which papers a unit has. */
#ifndef ENGINE_CREW_WORK_H
#define ENGINE_CREW_WORK_H

#include "base/json.h"
#include "engine/runs/units.h"

struct node;

#define WORK_UNIT_PAPERS 100 /* of a unit, about */

struct work_run {
    struct run_id id;
    const struct json *params; /* search_params */
    bool retry;                /* it was DONE, and tries papers again that failed or were lost */
};

struct work_paper {
    struct str doi, journal;
    int64_t year;
    int64_t cents; /* what it costs */
};

struct work {
    const char *kind; /* member "kind" of search_params; absent: "screen" */
    /* The units of a run, in the task's arena. ERR_INVALID: it cannot be split, and task_error says why, for its
     * user. ERR_UNAVAILABLE: not now. */
    int (*split)(struct task *t, const struct node *n, const struct work_run *run,
                 struct str **units, size_t *count);
    /* The papers of one of them, in the task's arena. Always the same ones, however often it is asked; those
     * that have a result already are passed over by the engine. */
    int (*papers)(struct task *t, const struct node *n, const struct work_run *run, struct str unit,
                  struct work_paper **papers, size_t *count);
};

/* Points for a paper of that journal, as they were when the run was submitted; -1: the run has no such journal. */
static inline int64_t work_price(const struct work_run *run, struct str journal)
{
    int64_t price = -1;
    json_each (j, json_get(run->params, "journals"))
        if (str_eq(json_str(json_get(j, "name")), journal))
            (void)json_int(json_get(j, "price"), &price);
    return price;
}

/* The one for these parameters, of a list that ends with NULL; NULL: none that we know. */
static inline const struct work *work_for(const struct work *const *works,
                                          const struct json *params)
{
    struct str kind = json_str(json_get(params, "kind"));
    for (; *works; works++)
        if (str_eq(kind.p ? kind : STR("screen"), str_of((*works)->kind)))
            return *works;
    return NULL;
}
#endif
