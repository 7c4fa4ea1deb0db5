/* sql_snapshot.h -- many rows of many tables, all as they are at one moment: for backups. */
#ifndef WIRE_SQL_SNAPSHOT_H
#define WIRE_SQL_SNAPSHOT_H

#include "wire/sql.h"

/* As sql_each, on the connection of a transaction. */
MUST_CHECK int sql_on_each(struct task *t, struct sql *c, const char *statement, size_t argc,
                           const struct sql_value *argv,
                           int (*row)(struct task *t, const struct sql_value *cells, void *arg),
                           void *arg);

/* A transaction that only reads, and sees all tables as they are when it begins, however long it
 * takes. body runs once: other than 0, or a lost connection (ERR_UNAVAILABLE), ends it. */
MUST_CHECK int sql_snapshot(struct task *t, struct sql_pool *p,
                            int (*body)(struct task *t, struct sql *c, void *arg), void *arg);
#endif
