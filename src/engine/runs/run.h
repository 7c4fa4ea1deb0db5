/* run.h -- runs as their users see them: submitted, controlled, shown.
 *
 * A row of query_log is the source of truth, Redis is where the work happens. A change is committed
 * to the row before a caller gets its success (SYS-6), but for those below, and the row's
 * changed_at only ever grows: it is the version of the row, called a promise in scripts. A script
 * writes the newest version to Redis and ignores older ones that come late. If a version does not
 * reach Redis, or Redis loses it, the reconciler (keeper.h) writes it again.
 *
 * Three things happen in Redis first. The last unit is finished, or the money is gone: the worker
 * that sees it writes the row with run_control, which is idempotent; if the worker dies before, the
 * reconciler does it. And a pause or a termination while MySQL is away: Redis notes that the row is
 * owed it, and the reconciler writes it when MySQL is back (owed.h). */
#ifndef ENGINE_RUNS_RUN_H
#define ENGINE_RUNS_RUN_H

#include "base/json.h"
#include "engine/judge/judge.h"
#include "engine/money/ledger.h"
#include "engine/papers/catalog.h"
#include "engine/people/admin_log.h"
#include "engine/runs/reason.h"
#include "engine/runs/units.h"

#define RUN_QUEUED_MAX       100 /* of one user */
#define RUN_ID_BYTES         33  /* 32 hexadecimal digits and NUL: not guessable */
#define RUN_REASON_BYTES_MAX 255

#define RUN_DISTILLATIONS_MAX 100 /* that are shown of one run */

struct runs {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct cache *cache;
    struct ledger *ledger;
    const struct catalog *catalog;
    const struct judge *judge; /* whose model and prompt are frozen; NULL: none is */
};

struct run_wish {
    struct str question;
    struct catalog_choice choice;
    struct str request_id; /* idempotency key, ledger_request_id_fine; p == NULL: none */
};
/* Checks the estimate against what is free of the balance (reserve.h), freezes prices, model and
 * prompt, writes the row, and queues the run. A repeat of a request_id changes nothing, and answers
 * with the run that it submitted, whatever has become of the balance. ERR_FUNDS: too little is
 * free. ERR_CONFLICT: the request_id has submitted another run. ERR_NOT_FOUND with *unknown: no
 * such journal. ERR_INVALID: nothing is chosen. ERR_RATE: the user has RUN_QUEUED_MAX waiting.
 * ERR_UNAVAILABLE: Redis does not answer; nothing was done. */
MUST_CHECK int run_submit(struct task *t, const struct runs *r, int64_t uid,
                          const struct run_wish *w, char qid[RUN_ID_BYTES], struct str *unknown);

/* A question without the white space around it, of any script; n is 0 if nothing is asked,
 * or nothing that can be seen. */
struct str run_question(struct str typed);

/* A run over the papers nearest to a text (search/neighbours.h), as it was asked for. */
struct run_nearest {
    struct str text;
    int64_t papers; /* at most */
};
/* Members "nearest" and "chosen" of search_params: that, and the journals that it was limited to,
 * if it was; "journals" has those that papers were found in. */
void run_put_nearest(struct json_writer *j, const struct run_nearest *n,
                     const struct catalog_choice *choice);
/* False: the run is of another kind. Borrowed from params. */
bool run_nearest_read(const struct json *params, struct run_nearest *out);

/* What a client asks for, as far as it tells a repeat from another request. */
struct run_request {
    int64_t uid;
    struct str id; /* p == NULL: none was sent */
    struct str question;
    struct str original_query_id;        /* what is distilled; p == NULL: nothing */
    const struct catalog_choice *choice; /* NULL: of a distillation */
    const struct run_nearest *nearest;   /* NULL: all papers of the choice */
};
/* qid: of the run that the same request has submitted before; "": none. ERR_CONFLICT: its id has
 * submitted another one. From MySQL alone. */
MUST_CHECK int run_repeated(struct task *t, const struct runs *r, const struct run_request *q,
                            char qid[RUN_ID_BYTES]);

/* A run of any kind, as its application has made it up. */
struct run_entry {
    const struct run_request *request;
    const struct judge_origin *judge; /* as in params; NULL: none is frozen */
    int64_t papers;
    int64_t cents;     /* that it costs at most */
    struct str params; /* search_params, as JSON: the question, and what its work needs */
    /* What is written in the same transaction; may run more than once. NULL: nothing */
    int (*also)(struct task *t, struct sql *c, struct str qid, void *arg);
    void *arg;
};
/* Checks cents against what is free, writes the row and queues the run. ERR_FUNDS, ERR_CONFLICT,
 * ERR_RATE and ERR_UNAVAILABLE as above; ERR_FORBIDDEN: the user may not submit. Errors of also are
 * passed on. */
MUST_CHECK int run_enter(struct task *t, const struct runs *r, const struct run_entry *e,
                         char qid[RUN_ID_BYTES]);
/* Member "journals" of search_params: what is asked about, at prices that stay as they are. */
void run_put_journals(struct json_writer *j, const struct catalog_estimate_row *rows, size_t count);
/* What a paper of that journal costs there, in points; -1: the run has no such journal. */
int64_t run_price(const struct json *params, struct str journal);

/* Pause, resume, terminate, finish, retry: the row first, then Redis. *state: afterwards.
 * ERR_NOT_FOUND: the user has no such run. ERR_CONFLICT: not in its state. ERR_FORBIDDEN: resume or
 * retry by a banned user. ERR_CLOSED: start while new runs are switched off. reason: for the user,
 * why it is paused; "" for other events. */
MUST_CHECK int run_control(struct task *t, const struct runs *r, struct run_id id, enum run_event e,
                           const char *reason, enum run_state *state);
/* The same by an admin, noted in the same transaction: user, target, before, after and outcome are
 * filled in. */
MUST_CHECK int run_control_by(struct task *t, const struct runs *r, struct run_id id,
                              enum run_event e, const char *reason, const struct admin_deed *by,
                              enum run_state *state);

/* Before a resume or a retry: ERR_FUNDS with what is missing, if not one more paper, or not all
 * that failed, could be paid for. 0 also where that cannot be known, or the event will be
 * refused. */
MUST_CHECK int run_check_funds(struct task *t, const struct runs *r, struct run_id id,
                               enum run_event e);

/* Papers that are failures to money and progress, but were not asked about. */
struct run_unjudged {
    int64_t not_judged; /* there was nothing to judge */
    int64_t withdrawn;  /* they had left the corpus */
};

struct run_view {
    enum run_state state;
    struct str reason, question, original_query_id;
    bool is_distillation, degraded;
    struct run_nearest nearest; /* text.p == NULL: it is none of these */
    bool owed;                  /* state is ahead of the row: owed.h */
    int64_t papers, finished, relevant, failed, cents;
    int64_t ceiling;              /* cents that it costs at most */
    struct run_unjudged unjudged; /* of those that failed */
    int64_t counted;              /* what failed was when unjudged was counted */
    bool simulated;               /* some of its verdicts are of the simulated AI */
    int64_t workers;              /* now, over all nodes */
    int64_t created_ms, started_ms, ended_ms;
    /* engine/watch/standing.h fills these in: */
    struct reason why; /* it does not move, or paused itself */
    bool seconds_known;
    int64_t seconds_min, seconds_max; /* that it will still take */
};
/* ERR_NOT_FOUND: the user has no such run. */
MUST_CHECK int run_view(struct task *t, const struct runs *r, struct run_id id,
                        struct run_view *out);
/* Updates the live fields of a view, from Redis alone. ERR_UNAVAILABLE: Redis does not answer.
 * ERR_NOT_FOUND: Redis does not have the run, or not any more. */
MUST_CHECK int run_progress(struct task *t, const struct runs *r, struct run_id id,
                            struct run_view *v);

/* The ids of runs that distil this one, newest first, RUN_DISTILLATIONS_MAX at most. */
MUST_CHECK int run_distillations(struct task *t, const struct runs *r, struct run_id id,
                                 struct str **ids, size_t *count);

/* How Redis names a run among those of all users: "<uid>:<qid>". */
struct str run_name(struct arena *a, struct run_id id);
bool run_name_read(struct str name, struct run_id *out); /* borrows from name */
#endif
