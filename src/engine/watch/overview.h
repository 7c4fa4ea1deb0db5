/* overview.h -- how all of millrace is doing: rates, queue, workers, nodes, stores, money, keys
 * (ADM-3, OPS-3).
 *
 * Each node collects it for itself, over all nodes, from the stores: every second while a task
 * waits for it (one collection for all of them), and every five seconds otherwise, for /metrics and
 * for the alerts. A store that does not answer is down in the next one; what it would have told is
 * 0 or empty then. */
#ifndef ENGINE_WATCH_OVERVIEW_H
#define ENGINE_WATCH_OVERVIEW_H

#include "engine/ai/permits.h"
#include "engine/jobs/jobs.h"
#include "engine/watch/standing.h"

#define OVERVIEW_EACH_MS      1000
#define OVERVIEW_IDLE_EACH_MS 5000

struct overview_store {
    bool up;
    int64_t latency_us;
    struct str problem;                     /* p == NULL: none */
    struct str settings;                    /* what is unsafe in them, or unread; "" if nothing */
    int64_t memory_bytes, memory_bytes_max; /* max 0: no limit, or not known */
    int64_t hits,
        misses; /* Redis: keys that were asked for; MySQL: reads of pages; since its start */
    int64_t hits_permille; /* of both */
    int64_t clients;
};

struct overview_node {
    struct str id, name, prompt; /* see controls.h; "host:pid"; fingerprint */
    bool takes, drained;
    int64_t workers, latency_us, tokens; /* of an AI call, on average */
    int64_t resident_bytes, late_us, tasks;
    int64_t silent_ms; /* since its last heartbeat */
};

struct overview_work { /* workers of one run on one node */
    struct str node;   /* id */
    int64_t uid;
    struct str qid;
    int64_t workers;
};

struct overview_lost { /* a node without a heartbeat that was not reported yet */
    struct str incarnation, id, name;
};

struct overview_alert { /* see alerts.h */
    struct str name, text;
    int64_t since_ms; /* since 1970 */
};

struct overview_fault {       /* calls to a service that failed in one way in the last minute */
    struct str service, kind; /* see ai/service.h, ai/faults.h */
    struct str words;         /* of the last one */
    int64_t count, at_ms;     /* over all nodes; when the last one failed, since 1970 */
};

struct overview_data {
    uint64_t number; /* from 1 on */
    int64_t at_ms;   /* since 1970 */
    struct overview_store redis, mysql;
    bool read_only;  /* MySQL */
    int64_t slowlog; /* entries that Redis has */
    struct permits_load load;
    bool keys_known; /* api_list has been read */
    struct permits_state *keys;
    size_t key_count;
    int64_t queued, running; /* runs that wait; that may have workers */
    int64_t queue_age_s;     /* of the one at its head; 0: none */
    int64_t workers;
    struct overview_node *nodes; /* by id */
    size_t node_count;
    struct overview_work *works;
    size_t work_count;
    struct overview_lost *lost;
    size_t lost_count;
    int64_t records, moves;        /* money on its way to MySQL, and to Redis */
    int64_t drift_cents, findings; /* of the last audit */
    int64_t audited_ms;            /* when, since 1970; 0: never */
    int64_t archive_waiting;       /* runs that have ended and are not archived */
    int64_t downloads_waiting, downloads_taken;
    struct jobs_look queues[JOBS_QUEUES_MAX]; /* of jobs */
    size_t queue_count;                       /* 0 while they are not known */
    int64_t user_sessions, admin_sessions;
    struct overview_alert *alerts; /* that are not over */
    size_t alert_count;
    bool standing_known;
    struct standing_group *standing; /* causes that operators can mend */
    size_t standing_count;
    struct overview_fault *faults;
    size_t fault_count;
};

struct overview;
/* n is borrowed: redis, sql, permits, ledger, metrics. */
struct overview *overview_new(struct node *n);
void overview_free(struct overview *o);

/* Waits for one with a higher number than seen, but not for one that is older than a second: so 0
 * gives one that is fresh. Good until the next wait of the caller. ERR_UNAVAILABLE: none comes. */
MUST_CHECK int overview_wait(struct task *t, struct overview *o, uint64_t seen,
                             const struct overview_data **out);

/* One collection, by itself, in a. What a store does not tell stays 0 or empty, so there is no
 * error. */
void overview_collect(struct task *t, struct overview *o, struct arena *a,
                      struct overview_data *out);

/* No alert, no store down, no run that stands for a cause that can be mended, no key refused, and
 * no call to the AI has failed lately. */
bool overview_well(const struct overview_data *d);

/* For ever. A task_fn with a struct overview. */
void overview_task(struct task *t, void *arg);
#endif
