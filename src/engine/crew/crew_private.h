/* crew_private.h -- what the files of the crew share. */
#ifndef ENGINE_CREW_CREW_PRIVATE_H
#define ENGINE_CREW_CREW_PRIVATE_H

#include "base/map.h"
#include "engine/ai/ai.h"
#include "engine/crew/application.h"
#include "engine/crew/crew.h"
#include "engine/crew/members.h"
#include "engine/crew/till.h"
#include "engine/papers/block.h"
#include "engine/runs/run.h"
#include "engine/setup/node.h"
#include "loop/sync.h"

#define CREW_REFUSED_MAX 5 /* papers refused alike: the run is paused */

struct crew {
    struct node *node;
    struct members members;
    struct group manager;  /* one task: heartbeats, shares, claims, reaping */
    struct group workers;  /* worker tasks */
    struct group fetchers; /* tasks that fetch lots for them */
    struct group clerks;   /* tasks that record their verdicts */
    size_t fetcher_count;
    struct list hungry; /* workers that wait for one of these */
    struct map *runs;   /* name -> struct crew_run, owned */
    /* Runs that this node has looked at since Redis was last restarted, with a share or without: an
     * older Redis brings back leases and claims of this node, which only this node may drop. */
    struct map *seen;
    struct buf json;      /* a result on its way to the ledger; no worker waits meanwhile */
    struct waitq changed; /* a worker has ended */
    uint64_t take_count;  /* numbers the leases */
    uint64_t epoch;       /* of the connection to Redis, in the last round */
    char news_at[48];     /* id of the last stream entry that was read */
    bool drained;         /* as the last heartbeat had it */
    bool stirred;         /* something has changed: run a round soon */
    int64_t managed_ms, beaten_ms;
    int64_t *worker_gauge, *clock_gauge, *judged, *failed, *skipped;
};

/* A run that has, had or will have workers here. */
struct crew_run {
    struct crew *crew;
    struct arena arena;
    struct str name;
    struct app_run run;
    const struct application *app;
    const void *opened; /* what app made for its papers */
    struct till till;
    struct list workers;
    int64_t count;     /* of them */
    int64_t want;      /* this node's share; of this round */
    bool listed;       /* in sys:running; of this round */
    bool orphans;      /* a worker ended with units still leased */
    bool claimed;      /* Redis may count workers of it on this node */
    bool pausing;      /* a task is writing the pause of this run (pause_run) */
    struct map *vain;  /* lease numbers of units that were left in vain: see units.h */
    uint64_t verdicts; /* so far, here */
    struct {           /* papers that the service refused in the same words, without a verdict */
        uint64_t words, verdicts;
        int papers;
    } refused;
    int64_t reaped_ms;
};

/* A paper of a unit, kept small: a thousand workers hold a hundred each. */
struct unit_paper {
    uint32_t doi_at; /* in the unit's bytes; it ends where the next one begins */
    uint32_t place;  /* of the unit's places */
};

/* What adjacent papers of a unit have in common. */
struct unit_place {
    struct str journal;
    int64_t year, cents;
};

/* A unit that a worker holds, and its papers that have no result yet. */
struct work_unit {
    struct list link; /* of the worker */
    struct unit unit;
    char *name; /* owned */
    uint64_t number;
    bool in_vain;              /* an answer about a paper of it was lost */
    bool again;                /* an earlier attempt to take it failed; it may have been executed */
    struct unit_place *places; /* owned, with all that follows; NULL: not listed yet */
    struct unit_paper *papers; /* count, and one more where the last one ends */
    const char *dois;
    size_t count, fetched;
};

/* Some of them, fetched together. */
struct lot_paper {
    struct app_paper paper; /* its strings are the unit's */
    struct str packed;      /* as blocks have it; p == NULL: not in the corpus any more */
    /* While it has no verdict: how often it was asked about, since when, how many verdicts the run
     * had had then, how often others had theirs meanwhile, how often it was refused. */
    int asks, passed_over, refused;
    int64_t asked_ms;
    uint64_t verdicts;
    bool spent; /* it was asked about in vain too often, and is not any more */
};

struct lot {
    struct work_unit *unit;
    bool ends; /* the unit has no more */
    size_t count;
    struct lot_paper papers[];
};

/* The next lot of a worker. */
enum supply {
    SUPPLY_NONE,     /* not requested */
    SUPPLY_ASKED,    /* the worker is in the list crew->hungry */
    SUPPLY_FETCHING, /* a fetcher loads it */
    SUPPLY_THERE,    /* in next, or next_err is the error */
};

struct worker {
    struct list link; /* of the run */
    struct crew_run *run;
    struct task *task;
    struct list units;      /* struct work_unit: two at most, the second while the first one ends */
    struct work_unit *unit; /* its papers are fetched now */
    enum supply supply;
    struct list hunger;   /* link of crew->hungry */
    struct task *fetcher; /* that loads the next lot */
    struct lot *next;
    int next_err;
    bool waits; /* for the next lot */
    struct till_slip slip;
    struct ai_hand hand; /* busy: a call is under way, or its verdict is not in the till yet;
                          * leaves: stops after that */
    bool cut_off;        /* stops at once */
};

/* supply.c: the next lot, in *out, which is the caller's to free. Retries while stores are
 * unavailable. ERR_NOT_FOUND: no unit is waiting. ERR_CLOSED: the run is paused or terminated, or
 * the worker must stop. */
MUST_CHECK int supply_next(struct task *t, struct worker *w, struct lot **out);
/* Prefetch: requests the lot after that one. */
void supply_ahead(struct worker *w);
/* Frees u. Its papers all have a result, or its lease is given up. */
void supply_close_unit(struct worker *w, struct work_unit *u);
/* Ends fetching and forgets all units: the crew gives them back. */
void supply_end(struct task *t, struct worker *w);

/* crew.c. The service refuses every request of the run: task_error says in which words. */
void crew_pause_refused(struct task *t, struct crew_run *r);

/* worker.c. A task_fn with a struct worker, which it frees. */
void worker_task(struct task *t, void *arg);
/* Soft: after the paper in hand. Hard: cancels it at once. */
void worker_stop(struct worker *w, bool hard);
#endif
