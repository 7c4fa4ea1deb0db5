/* application.h -- what an application brings, so that its runs can be worked on.
 *
 * The engine queues, starts, pauses and ends runs, leases units, records results and charges. An
 * application says how a run is split into units, which papers a unit has, and how one paper
 * becomes a result. */
#ifndef ENGINE_CREW_APPLICATION_H
#define ENGINE_CREW_APPLICATION_H

#include "base/json.h"
#include "engine/money/result.h"
#include "engine/runs/run.h"

struct ai_hand;
struct node;

#define APP_UNIT_PAPERS 100 /* of a unit, about */

struct app_run {
    struct run_id id;
    const struct json *params; /* search_params */
    bool retry;                /* it was DONE, and tries papers again that failed or were lost */
};

struct app_paper {
    struct str doi, journal;
    int64_t year;
    int64_t cents; /* what it costs */
};

struct application {
    const char *kind; /* member "kind" of search_params; absent: "screen" */
    /* The units of a run, in the task's arena. ERR_INVALID: it cannot be split, and task_error says
     * why, for its user. ERR_UNAVAILABLE: not now. */
    int (*split)(struct task *t, const struct node *n, const struct app_run *run,
                 struct str **units, size_t *count);
    /* The papers of one of them, in the task's arena: the same at every call. The engine passes
     * over those that have a result already. */
    int (*papers)(struct task *t, const struct node *n, const struct app_run *run, struct str unit,
                  struct app_paper **papers, size_t *count);
    /* What is the same for all papers of a run, such as its question, in a. Made once, when a node
     * begins with the run; judge gets it. */
    const void *(*open)(struct arena *a, const struct node *n, const struct app_run *run);
    /* Fills in the result of one paper, but for block_key. packed: the paper as blocks have it; p
     * == NULL: it has left the corpus. hand->busy is set while a call is under way, and stays set
     * after success: to cancel the task then wastes the result. ERR_REFUSED, ERR_PROTO: the paper
     * fails, and task_error says why, for its user. ERR_UNAVAILABLE: not now, the worker retries
     * later. */
    int (*judge)(struct task *t, const struct node *n, const void *opened,
                 const struct app_paper *paper, struct str packed, struct ai_hand *hand,
                 struct result *out);
};

/* Points for a paper of that journal, as they were when the run was submitted; -1: the run has no
 * such journal. */
static inline int64_t app_price(const struct app_run *run, struct str journal)
{
    return run_price(run->params, journal);
}

/* The one for these parameters, of a list that ends with NULL; NULL: none. */
static inline const struct application *application_for(const struct application *const *list,
                                                        const struct json *params)
{
    struct str kind = json_str(json_get(params, "kind"));
    for (; *list; list++)
        if (str_eq(kind.p ? kind : STR("screen"), str_of((*list)->kind)))
            return *list;
    return NULL;
}
#endif
