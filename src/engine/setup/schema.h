/* schema.h -- brings the tables of a database to what this program expects.
 *
 * The migrations of schema/ are part of the program. They are applied in order; table
 * schema_migration holds number, name, checksum and applied_at of each. How one survives a crash:
 *
 *   1. its row is written, with applied_at NULL: begun;
 *   2. its statements run one by one; the server commits each by itself;
 *   3. applied_at is set: complete.
 *
 * A process that finds a row that was only begun starts again at 2: every statement is idempotent.
 * Always true:
 *   - two processes migrate the same database: the second waits for the first (GET_LOCK), then has
 *     nothing to do;
 *   - tables of other programs are neither used nor changed nor dropped. */
#ifndef ENGINE_SETUP_SCHEMA_H
#define ENGINE_SETUP_SCHEMA_H

#include "engine/setup/schema_migrations.h"
#include "wire/sql.h"

#define SCHEMA_LOCK_WAIT_S 10

struct schema_report {
    int64_t program;  /* newest migration this program knows */
    int64_t database; /* newest one that was complete when asked */
    int64_t applied;  /* how many were applied just now, from database + 1 on */
    bool interrupted; /* database + 1 had been begun */
    /* Tables of the system before millrace, which it does not use: "sentence, task_queue".
     * NULL: none. In the task's arena. */
    const char *old_tables;
};

/* Applies what is missing. Errors, with a text for the operator:
 * ERR_CONFLICT: the database is newer than the program, or a migration in it is not the one of
 * this program. ERR_EXISTS: a table of another program has the name of one of millrace's.
 * ERR_BUSY: another process migrates for longer than SCHEMA_LOCK_WAIT_S. ERR_INVALID: the URL
 * names no database. Anything of sql.h. What had been applied by then stays. */
MUST_CHECK int schema_migrate(struct task *t, struct sql_pool *p, struct schema_report *out);

/* The same up to one migration only, for a restore: rows of an older database are put into the
 * tables they came from, and the other migrations convert them. */
MUST_CHECK int schema_migrate_to(struct task *t, struct sql_pool *p, int64_t number,
                                 struct schema_report *out);

/* While there is this table, a restore is under way or was interrupted: the database is not whole.
 * Then all of these but schema_migrate_to answer ERR_CONFLICT. */
#define SCHEMA_RESTORING "restore_unfinished"

/* The tables that migrations have made, some of which later ones removed; in a. */
const struct str *schema_tables(struct arena *a, size_t *count);

/* Has the server count what these tables hold now; it passes over those that are not there. InnoDB
 * counts by itself, but not before some seconds have passed: a server that is stopped until then
 * would choose its plans as if a table that was just filled were empty. */
MUST_CHECK int schema_analyze(struct task *t, struct sql_pool *p, const struct str *names,
                              size_t count);

/* Changes nothing. 0 when the database has all migrations (database == program) or the missing ones
 * can be applied; errors as above. */
MUST_CHECK int schema_check(struct task *t, struct sql_pool *p, struct schema_report *out);
#endif
