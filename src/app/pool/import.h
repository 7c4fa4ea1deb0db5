/* import.h -- items from files into a group, and out of it.
 *
 * A file comes in pieces, of a request or of a command that reads it. Each piece is stored in
 * transactions of some thousand rows; a text that the group has already, used or not, is told and
 * not stored again. So an import that was interrupted can be repeated: it stores the rest. */
#ifndef APP_POOL_IMPORT_H
#define APP_POOL_IMPORT_H

#include "app/pool/pools.h"
#include "app/pool/rows.h"
#include "wire/sql.h"

#define POOL_PIECE_BYTES   (4 << 20) /* what a piece should have; more than any row */
#define POOL_PROBLEMS_MAX  20        /* told of one piece */
#define POOL_PROBLEM_CHARS 200
#define POOL_BATCH_MAX     ((INT64_C(1) << 53) - 1)

struct pool_problem {
    int64_t line;
    struct str message;
};

struct pool_import {
    struct pool_id pool;
    enum pool_format format;
    int64_t batch;           /* 0: the next one of the group, which is noted here */
    struct pool_place place; /* of the piece, then of the next one */
    /* What came of this piece. */
    size_t read; /* bytes; the next piece begins behind them */
    int64_t imported, in_file, in_group, rejected;
    struct pool_problem problems[POOL_PROBLEMS_MAX]; /* in the task's arena */
    size_t problem_count;
};
/* Stores one piece. ERR_INVALID: it has no header, or none with texts; nothing was stored. After
 * any other error rows may have been stored; the same piece can be sent again. */
MUST_CHECK int pool_import(struct task *t, struct sql_pool *sql, struct pool_import *i,
                           struct str piece, bool last);

/* The items of a group, in the order of their ids: those that are used, or those that are not. fn
 * gets the file in pieces; other than 0 ends it. */
typedef int pool_export_fn(struct task *t, struct str piece, void *arg);
MUST_CHECK int pool_export(struct task *t, struct sql_pool *sql, struct pool_id id,
                           enum pool_format format, bool used, pool_export_fn *fn, void *arg);

/* Deletes all items of a group that are not used. Nodes stop handing them out before: what they
 * have handed out by then stays. p needs no Redis; without it what its list may still hand out, at
 * most POOL_AHEAD_MAX items, is used afterwards. */
MUST_CHECK int pool_drop(struct task *t, struct pools *p, struct pool_id id, int64_t *dropped);
#endif
