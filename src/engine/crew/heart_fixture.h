/* heart_fixture.h -- dispatcher, crew, supply and worker on a bench, on virtual time.
 *
 * What is real: dispatcher.c, crew.c, supply.c, worker.c, till.c, members.c; runs/{run,row,state,
 * units,keeper}.c, money/charge.c, store/{keys,lock}.c, and all scripts, run by Lua. What is made
 * up, at link time, by functions of the same names:
 *   heart_redis.c   wire/redis.h: a connection for each node to one model of Redis, that delays and
 *                   loses calls;
 *   heart_stores.c  wire/sql.h for the rows of query_log, users, loading a balance, blocks;
 *   heart_ai.c      ai.h: an AI that takes its time, and fails now and then.
 *
 * Nodes live in one loop. Each has its own struct node, crew, dispatcher, keeper and connections. A
 * node that dies has all tasks cancelled; what they had sent arrives or is lost, by chance.
 *
 * Everything that happens follows from the seed of the loop. The world checks its invariants after
 * every script that changes a run, before every call to the AI, and at every step of a schedule;
 * problem keeps the first violation. */
#ifndef ENGINE_CREW_HEART_FIXTURE_H
#define ENGINE_CREW_HEART_FIXTURE_H

#include "engine/crew/crew_private.h"
#include "engine/money/ledger_bench.h"
#include "engine/runs/row.h"
#include "tests/redis_model.h"

#define HEART_NODES  2
#define HEART_FRONTS 2
#define HEART_USERS  2
#define HEART_RUNS   4
#define HEART_PAPERS 40 /* of a run, at most */

/* Once a pause is in Redis, and as long as the node can reach Redis, no call to the AI begins later
 * than this: the stream of changes is read every CREW_NEWS_MS, shares at the latest every
 * CREW_MANAGE_MS, and a round takes some ten calls. */
#define HEART_PAUSE_MS 700

#define HEART_RETURN_MS 1000 /* until a node that was cut off has claimed its workers again */
#define HEART_SILENT_MS (MEMBER_SILENT_MS - 3 * MEMBER_BEAT_MS) /* it soon counts as dead */

#define HEART_PARAMS "{\"kind\":\"heart\",\"question\":\"q\"}"

struct heart_world;

/* A connection, or a node's view of one store. */
struct redis {
    struct heart_world *world;
    struct list queue; /* struct request: sent, not there yet; they arrive in order */
    int64_t arrive_ms; /* of the last one */
    bool up, dead;
    uint64_t epoch;
    int64_t fault_ms; /* when a call last failed, or the connection broke or came back */
};

struct ai {
    struct heart_world *world;
    const struct redis *redis; /* of its node: while it is down, a pause cannot reach the node */
    int64_t sum_us;
};

struct sql_pool {
    struct heart_world *world;
};

struct heart_node {
    struct heart_world *world;
    struct node node;
    struct redis redis;
    struct sql_pool sql;
    struct ai ai;
    struct ledger *ledger;
    struct runs runs;
    struct group group; /* of its roles: dispatcher, keeper */
    struct roles *roles;
    struct dispatcher *dispatcher;
    struct crew *crew;
    bool leaves; /* it drains, or is being killed */
    int64_t silent_until_ms;
};

struct heart_user {
    int64_t uid, permission;
    int64_t permission_before, permission_ms; /* until when that one may still have been read */
    int64_t deposited, spent;
    size_t records;  /* of the billing queue, that were looked at */
    int64_t workers; /* at the last look */
    bool excused;    /* a node sent no heartbeat: no limit until there are few enough workers */
};

/* A row of query_log, and what the world has seen of the run. */
struct heart_run {
    int64_t uid;
    char qid[16];
    int units, unit_papers;
    int64_t cents;
    /* The row. */
    enum run_state state;
    int64_t changed_ms, created_ms, started_ms, ended_ms;
    char reason[RUN_REASON_BYTES_MAX + 1];
    /* Redis. */
    struct str status, pending, inflight, result, arrivals; /* its keys */
    bool known;
    enum run_state told;           /* the state in Redis */
    int64_t told_ms, told_changed; /* since when, and of which version of the row */
    int64_t leases;                /* while it is paused or has ended: no more than this */
    int64_t results;               /* when it was terminated */
    size_t arrived;                /* results that were looked at */
    uint8_t asked[HEART_PAPERS], charged[HEART_PAPERS], has_result[HEART_PAPERS];
};

struct heart_world {
    struct loop *loop;
    int64_t began_ms;
    struct redis_model *model;
    struct arena arena;   /* of the world */
    struct arena scratch; /* of one look */
    struct group group;   /* users */
    struct heart_node *nodes[HEART_NODES];
    struct heart_node *fronts[HEART_FRONTS]; /* what users talk to: nodes without workers */
    uint64_t restarts;
    struct heart_user users[HEART_USERS];
    struct heart_run runs[HEART_RUNS];
    size_t run_count;
    /* Of 10,000 calls, how many go wrong; what calls to the AI take. */
    int64_t redis_faults, sql_faults;
    int64_t ai_faults, ai_outages, ai_refusals; /* of the paper, the service, the request */
    int64_t withdrawn;                          /* of 10,000 papers, how many left the corpus */
    int64_t ai_ms_min, ai_ms_max;
    int64_t requests_limit;   /* of a minute, over all keys */
    int64_t jobs_requests;    /* that jobs use of it */
    int64_t no_keys_until_ms; /* no key of the AI service can be used */
    int64_t ai_calls, ai_busy;
    const void *judging[HEART_NODES * 64]; /* workers that have a call under way */
    char problem[256];                     /* "": all invariants held so far */
};

/* --- heart_world.c --- */

struct heart_world *heart_world_new(struct loop *l, struct redis_model *m);
void heart_world_free(struct heart_world *w); /* nodes must be down */

void heart_node_up(struct heart_world *w, int slot);
void heart_node_kill(struct task *t, struct heart_world *w, int slot);
void heart_node_drain(struct task *t, struct heart_world *w, int slot, int64_t ms);

/* Submits a run of units, each of papers at cents; written to Redis now, or later by the keeper. */
struct heart_run *heart_submit(struct task *t, struct heart_world *w, int user, int units,
                               int papers, int64_t cents);
/* What a user does; the error of run_control. */
int heart_control(struct task *t, struct heart_world *w, struct heart_run *r, enum run_event e);
void heart_recharge(struct heart_world *w, int user, int64_t cents);
void heart_permit(struct heart_world *w, int user, int64_t permission);

/* Waits until all runs are final and their crews have forgotten them; false after ms. */
bool heart_settle(struct task *t, struct heart_world *w, int64_t ms);
bool heart_at_rest(struct heart_world *w);

/* Redis restarts; older: it comes back without what was written since redis_model_save. The caller
 * breaks and mends connections. */
void heart_restart(struct heart_world *w, bool older);

/* --- heart_look.c: invariants --- */

void heart_problem(struct heart_world *w, const char *fmt, ...) PRINTF(2, 3);
struct heart_run *heart_run_of(struct heart_world *w, struct str qid);
int64_t heart_workers(const struct heart_world *w, int64_t uid); /* of all nodes that live */
/* Redis has run a script with these words. */
void heart_look_script(struct heart_world *w, const struct redis_script *s, size_t argc,
                       const struct str *argv);
void heart_look_call(struct heart_world *w, const struct ai *ai, struct str doi);
void heart_look_older(struct heart_world *w); /* resets what Redis may have lost */
void heart_look(struct heart_world *w);       /* at any time */
void heart_look_end(struct heart_world *w);   /* at rest */
/* An integer that the model answers; absent: it has none. */
int64_t heart_number(struct heart_world *w, struct str command, struct str key, struct str field,
                     int64_t absent);

/* --- heart_redis.c --- */

void heart_redis_open(struct redis *r, struct heart_world *w);
/* The connection breaks: what waits is lost, and it is up again after ms. */
void heart_redis_break(struct redis *r);
void heart_redis_mend(struct redis *r);

/* One in 10,000 times count. */
bool heart_chance(struct heart_world *w, int64_t count);
int64_t heart_random(struct heart_world *w, int64_t from, int64_t to); /* both included */

/* --- heart_stores.c --- */

extern const struct application *const heart_applications[];
int heart_judge(struct task *t, const struct node *n, const void *opened,
                const struct app_paper *paper, struct str packed, struct ai_hand *hand,
                struct result *out);
#endif
