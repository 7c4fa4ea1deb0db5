/* restore.h -- a backup into the stores that the settings name.
 *
 *   1. The whole backup is verified; nothing is changed before (restore.c).
 *   2. The stores must be free: no server on the data directory, no heartbeat of a node in Redis;
 *      and empty, unless --overwrite was given (restore_check.c).
 *   3. The data of private stores is moved aside and both start anew, without a server; tables and
 *      keys of configured stores are dropped (restore.c, restore_check.c).
 *   4. Table restore_unfinished is made: until it is dropped, no program takes the database for
 *      whole (schema.h). The migrations that the backup has are applied, its rows are put into the
 *      tables they came from, then the other migrations convert them, and the server counts
 *      what they hold (restore_load.c).
 *   5. Redis gets the counters of redis.json, and nothing else.
 *
 * If it fails, private stores are put back as they were. */
#ifndef TOOL_BACKUP_RESTORE_H
#define TOOL_BACKUP_RESTORE_H

#include "serve/offline.h"
#include "tool/backup/take.h"

struct restore {
    const char *dir;
    bool overwrite;
    struct config config;
    struct offline offline;
    struct sql_pool *sql; /* while the stores are open */
    struct redis *redis;
    struct backup backup;
    struct backup_kept kept;
    bool drop, flush; /* tables, keys of configured stores: they are not empty */
    bool begun;       /* the database is not whole */
};

/* Of configured stores: ERR_BUSY: nodes run on them. ERR_EXISTS: not empty. Sets drop and flush. */
MUST_CHECK int restore_check(struct task *t, struct restore *r);
/* Removes what drop and flush say. */
MUST_CHECK int restore_empty(struct task *t, struct restore *r);
/* Steps 4 and 5. */
MUST_CHECK int restore_load(struct task *t, struct restore *r);
#endif
