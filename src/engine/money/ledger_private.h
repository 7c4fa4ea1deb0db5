/* ledger_private.h -- what the files of the ledger share. The halves of a step are functions of
 * their own, so that tests can end between any two of them. */
#ifndef ENGINE_MONEY_LEDGER_PRIVATE_H
#define ENGINE_MONEY_LEDGER_PRIVATE_H

#include "base/map.h"
#include "engine/money/fence.h"
#include "engine/money/filing.h"
#include "engine/money/ledger.h"
#include "loop/gather.h"
#include "loop/sync.h"

#define LEDGER_BALANCE_MAX   99999999999999 /* what DECIMAL(14,2) holds */
#define LEDGER_BATCH         10000          /* records in one transaction */
#define LEDGER_MOVES         1000           /* in one script */
#define LEDGER_PAYMENTS      256            /* in one script */
#define LEDGER_REPAIR_BATCH  500            /* charges looked at in one transaction */
#define LEDGER_ANNOUNCED_MAX 1024           /* users; more push each other out */

struct ledger_announced {
    int64_t uid, at_ms;
    struct generation generation; /* in which it was announced */
};

#define LEDGER_UNKNOWN_MS  10000
#define LEDGER_REPAIRS_MAX 64

struct ledger {
    struct redis *redis;
    struct sql_pool *sql;
    struct cache *cache;
    int64_t *records_waiting, *moves_waiting, *synced, *applied, *alarms, *drift;
    int64_t *reversed, *restored;
    int64_t unseen; /* where no metrics were given */
    /* Singleflight: uids that a task of this node is loading; other tasks wait on loaded. */
    struct map *loading;
    struct waitq loaded;
    struct generation generation;                            /* last seen in MySQL; "": unknown */
    struct ledger_announced announced[LEDGER_ANNOUNCED_MAX]; /* by uid, modulo */
    struct ledger_pace {
        int64_t waiting;   /* records of all users, about: counted each round, kept up since */
        int64_t record_ns; /* that the syncer takes for one */
        int64_t at_ms;     /* when it last wrote some */
    } pace;
    /* How far the repair of users has come, by uid, modulo: one that was interrupted goes on. */
    struct ledger_repaired {
        int64_t uid, after;
        struct generation generation;
    } repairs[LEDGER_REPAIRS_MAX];
    int64_t unknown_ms; /* that charges wait for a run to come back to Redis */
    /* Users in backoff after a failed ledger_round: uid -> struct trouble, owned. */
    struct map *troubled;
    struct gather payments; /* by uid */
};

/* The money of one row of user_info. */
struct ledger_row {
    int64_t cents, billed_seq, move_no;
    int64_t repaired; /* up to which record lost charges were made good in this generation */
    int64_t seq;      /* last record in Redis; set only where Redis was read */
};

/* ledger.c */
MUST_CHECK int ledger_row_read(struct task *t, struct ledger *l, int64_t uid,
                               struct ledger_row *out);
/* Reads and locks it. Every ledger transaction begins so: one at a time per user. */
MUST_CHECK int ledger_row_lock(struct task *t, struct sql *c, int64_t uid, struct ledger_row *out);
/* sql_tx, where deadlock after deadlock is ERR_BUSY: ERR_CONFLICT means something else here. */
MUST_CHECK int ledger_tx(struct task *t, struct ledger *l,
                         int (*body)(struct task *t, struct sql *c, void *arg), void *arg);
/* For a contradiction that no retry resolves: logs and counts it. Returns ERR_INTERNAL. */
int ledger_alarm(struct task *t, struct ledger *l, const char *fmt, ...) PRINTF(3, 4);
/* Makes sure that the balance is in Redis. */
MUST_CHECK int ledger_load(struct task *t, struct ledger *l, int64_t uid, int64_t *cents);
/* What ledger_load does once with a row that was read before. *loaded stays false: read it
 * again. */
MUST_CHECK int ledger_load_row(struct task *t, struct ledger *l, int64_t uid,
                               const struct generation *g, const struct ledger_row *row,
                               bool *loaded, struct ledger_row *seen, int64_t *cents);

/* Closes the user to charges and deductions until a balance is loaded, which is refused as long as
 * MySQL is older than Redis. */
void ledger_close_user(struct task *t, struct ledger *l, int64_t uid);

/* repair.c: for each charge up to billed_seq whose result this generation lacks, the result or the
 * money is given back. *repaired: billed_seq; unchanged if Redis has another generation by now.
 * Idempotent. */
MUST_CHECK int ledger_repair(struct task *t, struct ledger *l, int64_t uid,
                             const struct generation *g, int64_t *repaired);

/* move.c */
const char *ledger_move_problem(const struct ledger_move *m); /* NULL: none */
/* A request_id in MySQL. */
struct ledger_request {
    bool found;
    bool done;   /* its row is in billing_log */
    int verdict; /* ERR_CONFLICT: it was something else. ERR_FUNDS: a deduction that is not noted */
};
MUST_CHECK int ledger_request_find(struct task *t, struct sql *c, const struct ledger_move *m,
                                   const char *kind, struct ledger_request *out);
/* cells: kind, cents, number. */
void ledger_request_read(const struct sql_value *cells, const struct ledger_move *m,
                         const char *kind, struct ledger_request *out);
int ledger_request_conflict(struct task *t, const struct ledger_move *m);
/* The half of a recharge that is in MySQL. *row: afterwards. */
MUST_CHECK int ledger_recharge_make(struct task *t, struct ledger *l, const struct ledger_move *m,
                                    struct ledger_row *row);
/* In the transaction of moves: balance and move_no of row to user_info, and move_no to the
 * outbox. */
MUST_CHECK int ledger_move_made(struct task *t, struct sql *c, int64_t uid,
                                const struct ledger_row *row);
/* The other half: applies moves up to move_no, and takes the row of the outbox away. */
MUST_CHECK int ledger_carry_over(struct task *t, struct ledger *l, int64_t uid, int64_t move_no);

/* deduct.c. The text of a deduction's record, see record.c. */
struct str ledger_deduction_text(struct task *t, int64_t cents, struct str request_id);
/* What was seen in Redis before MySQL was asked. */
struct ledger_look {
    bool loaded; /* in generation */
    struct generation generation;
    struct str synced;
    int64_t cents;
};
/* Status of ledger_deduct.lua. */
enum ledger_take {
    LEDGER_TAKEN = 1,
    LEDGER_TAKEN_BEFORE = 2,
    LEDGER_SHORT = 0,       /* of money */
    LEDGER_NOT_LOADED = -1, /* in this generation */
    LEDGER_AGAIN = -2,      /* something has changed since the look */
};
MUST_CHECK int ledger_look(struct task *t, struct ledger *l, int64_t uid, struct ledger_look *out);
/* One request of a list. All of a list are of one user, and no request_id is there twice. */
struct ledger_deduction {
    const struct ledger_move *m;
    struct task *task;             /* that gets the words of an error */
    struct ledger_request request; /* as MySQL has it */
    int64_t status;                /* of enum ledger_take */
    bool done;
    bool maybe; /* money may have been taken, and is not known to be in MySQL */
    int err;    /* it is refused */
};
#define LEDGER_MAYBE_TAKEN "the money may have been taken; send the same request_id again"
/* Notes the requests in MySQL, or finds them. */
MUST_CHECK int ledger_deduct_note(struct task *t, struct ledger *l, const struct ledger_look *look,
                                  struct ledger_deduction *list, size_t count);
MUST_CHECK int ledger_take(struct task *t, struct ledger *l, const struct ledger_look *look,
                           struct ledger_deduction *list, size_t count);
/* All steps. Afterwards each is done, or has an error. The list may be in another order. */
void ledger_deduct_all(struct task *t, struct ledger *l, struct ledger_deduction *list,
                       size_t count);

/* payment.c */
void ledger_payments_init(struct ledger *l, struct group *group);

/* record.c */
struct ledger_record {
    int64_t seq, at_ms, cents;
    struct str kind, qid, doi, request_id; /* p == NULL: none */
};
/* False: it is no record, or its checksum is wrong. *out borrows from scratch and text. */
bool ledger_record_read(struct arena *scratch, struct str text, struct ledger_record *out);
/* text: the record from after the digits of its seq on, without its sum and closing brace. */
uint32_t ledger_record_sum(struct str text);

/* sync.c */
struct ledger_batch {
    int64_t uid;
    struct generation generation; /* in which they were read */
    size_t count;
    struct ledger_record *records;
    struct filing_paper *papers; /* of the same records; a deduction is none */
    struct str unreadable;       /* the record after these; p == NULL: all could be read */
    int64_t readable_seq, readable_distance; /* of the next one that can be read; 0: none */
    int64_t synced, move;                    /* of the ledger, then */
    /* after the transaction: */
    bool older;          /* MySQL is older than Redis; nothing was done */
    bool fenced;         /* false: MySQL has another generation; nothing was done */
    int64_t billed_seq;  /* of the row now */
    int64_t new_records; /* written by it */
    int64_t resultless;  /* charges of these without a readable result in Redis */
};
MUST_CHECK int ledger_batch_read(struct task *t, struct ledger *l, int64_t uid,
                                 struct ledger_batch *out);
MUST_CHECK int ledger_batch_write(struct task *t, struct ledger *l, struct ledger_batch *b);
/* aside.c: b->unreadable goes aside. *done: the queue can be read again. */
MUST_CHECK int ledger_put_aside(struct task *t, struct ledger *l, const struct ledger_batch *b,
                                bool *done);
struct str ledger_datetime(struct task *t, int64_t at_ms); /* for a DATETIME(3) */
MUST_CHECK int ledger_trim(struct task *t, struct ledger *l, int64_t uid, int64_t billed_seq);

/* ledger_role.c: one round. Returns the first error that is not of a single user. */
MUST_CHECK int ledger_round(struct task *t, struct ledger *l);
#endif
