/* ledger_private.h -- what the files of the ledger share. The halves of a step are functions of their
 * own, so that tests can end between any two of them. */
#ifndef ENGINE_LEDGER_PRIVATE_H
#define ENGINE_LEDGER_PRIVATE_H

#include "base/map.h"
#include "engine/ledger.h"
#include "loop/sync.h"

#define LEDGER_RUN_BYTES   41             /* a run id of Redis, with a NUL */
#define LEDGER_BALANCE_MAX 99999999999999 /* what DECIMAL(14,2) holds */
#define LEDGER_BATCH       1000           /* records in one transaction, moves in one script */

struct ledger {
    struct redis *redis;
    struct sql_pool *sql;
    struct cache *cache;
    int64_t *records_waiting, *moves_waiting, *synced, *applied, *alarms, *drift;
    int64_t unseen; /* where no metrics were given */
    /* uids that a task of this node loads; the others wait. */
    struct map *loading;
    struct waitq loaded;
    char run[LEDGER_RUN_BYTES]; /* that MySQL is known to have; "": none */
    /* Users whom ledger_task could not serve: uid -> struct trouble, owned. */
    struct map *troubled;
};

/* The money of one row of user_info. */
struct ledger_row {
    int64_t cents, billed_seq, move_no;
};

/* ledger.c */
MUST_CHECK int ledger_row_read(struct task *t, struct ledger *l, int64_t uid,
                               struct ledger_row *out);
/* Locks it; every transaction of the ledger begins so, and is then alone with the user. */
MUST_CHECK int ledger_row_lock(struct task *t, struct sql *c, int64_t uid, struct ledger_row *out);
/* sql_tx, where deadlock after deadlock is ERR_BUSY: ERR_CONFLICT means something else here. */
MUST_CHECK int ledger_tx(struct task *t, struct ledger *l,
                         int (*body)(struct task *t, struct sql *c, void *arg), void *arg);
/* Something is wrong that no repeat will heal: logs and counts it. Returns ERR_INTERNAL. */
int ledger_alarm(struct task *t, struct ledger *l, const char *fmt, ...) PRINTF(3, 4);
/* Runs a script of which all keys belong to uid and which returns count integers. */
MUST_CHECK int ledger_script(struct task *t, struct ledger *l, const struct redis_script *s,
                             size_t keys, size_t argc, const struct str *argv, size_t count,
                             int64_t *out);
/* Makes sure that the balance is in Redis. */
MUST_CHECK int ledger_load(struct task *t, struct ledger *l, int64_t uid, int64_t *cents);
/* What ledger_load does once with a row that was read before. *loaded stays false: read it again. */
MUST_CHECK int ledger_load_row(struct task *t, struct ledger *l, int64_t uid, const char *run,
                               const struct ledger_row *row, bool *loaded, struct ledger_row *seen,
                               int64_t *cents);

/* ledger_fence.c: the run of Redis that MySQL takes records of. */
MUST_CHECK int ledger_fence(struct task *t, struct ledger *l, char run[LEDGER_RUN_BYTES]);
/* In a transaction: is it this one? It stays so until the transaction ends. */
MUST_CHECK int ledger_fence_holds(struct task *t, struct sql *c, const char *run, bool *holds);

/* ledger_move.c */
const char *ledger_move_problem(const struct ledger_move *m); /* NULL: none */
/* A request_id in MySQL. */
struct ledger_request {
    bool found;
    bool done;   /* its row is in billing_log */
    int verdict; /* ERR_CONFLICT: it was something else. ERR_FUNDS: a deduction that is not noted */
};
MUST_CHECK int ledger_request_find(struct task *t, struct sql *c, const struct ledger_move *m,
                                   const char *kind, struct ledger_request *out);
int ledger_request_conflict(struct task *t, const struct ledger_move *m);
/* The half of a recharge that is in MySQL. *row: afterwards. */
MUST_CHECK int ledger_recharge_make(struct task *t, struct ledger *l, const struct ledger_move *m,
                                    struct ledger_row *row);
/* The other half: applies moves up to move_no, and takes the row of the outbox away. */
MUST_CHECK int ledger_carry_over(struct task *t, struct ledger *l, int64_t uid, int64_t move_no);

/* ledger_deduct.c. What was seen in Redis before MySQL was asked. */
struct ledger_look {
    bool loaded;
    char run[LEDGER_RUN_BYTES];
    struct str synced;
    int64_t cents;
};
/* As the script says it. */
enum ledger_take {
    LEDGER_TAKEN = 1,
    LEDGER_TAKEN_BEFORE = 2,
    LEDGER_SHORT = 0,       /* of money */
    LEDGER_NOT_LOADED = -1, /* in this run of Redis */
    LEDGER_AGAIN = -2,      /* something has changed since the look */
};
MUST_CHECK int ledger_look(struct task *t, struct ledger *l, int64_t uid, struct ledger_look *out);
/* Notes the request in MySQL, or finds it. */
MUST_CHECK int ledger_deduct_note(struct task *t, struct ledger *l, const struct ledger_move *m,
                                  const struct ledger_look *look, struct ledger_request *out);
/* *status: of enum ledger_take. */
MUST_CHECK int ledger_take(struct task *t, struct ledger *l, const struct ledger_move *m,
                           const struct ledger_look *look, int64_t *status);

/* ledger_sync.c */
struct ledger_record {
    int64_t seq, at_ms, cents;
    struct str kind, qid, doi, request_id; /* p == NULL: none */
};
struct ledger_batch {
    int64_t uid;
    char run[LEDGER_RUN_BYTES]; /* in which they were read */
    size_t count;
    struct ledger_record *records;
    /* after the transaction: */
    bool fenced;         /* false: of another run than MySQL takes; nothing was done */
    int64_t billed_seq;  /* of the row now */
    int64_t new_records; /* written by it */
};
MUST_CHECK int ledger_batch_read(struct task *t, struct ledger *l, int64_t uid,
                                 struct ledger_batch *out);
MUST_CHECK int ledger_batch_write(struct task *t, struct ledger *l, struct ledger_batch *b);
MUST_CHECK int ledger_trim(struct task *t, struct ledger *l, int64_t uid, int64_t billed_seq);

/* ledger_task.c: one round. The error is the first that concerns everybody. */
MUST_CHECK int ledger_round(struct task *t, struct ledger *l);
#endif
