/* db.h -- the subcommands of `millrace db`, and what they share.
 *
 * A new one is a file db_<name>.c, a prototype here and a row in the table of db.c. */
#ifndef TOOL_DB_DB_H
#define TOOL_DB_DB_H

#include "engine/setup/config.h"
#include "engine/setup/stores.h"
#include "loop/task.h"
#include "wire/redis.h"
#include "wire/sql.h"

/* argv[0] is the subcommand's own name; the result is the exit status of the program. */
int db_init_main(int argc, char **argv);
int db_migrate_main(int argc, char **argv);
int db_split_main(int argc, char **argv);
int db_warm_main(int argc, char **argv);

struct db;
typedef int db_body(struct task *t, struct db *d);

struct db {
    struct arena arena; /* of the settings */
    struct config config;
    struct stores stores; /* redis_url may be NULL without DB_BOTH */
    struct sql_pool *sql;
    struct redis *redis; /* DB_BOTH only */
    db_body *body;
    void *arg;
    int status;
};

enum db_stores { DB_MYSQL, DB_BOTH };

/* Reads the settings (file NULL: config.json if it exists), finds the stores and runs body as a
 * task of a new loop. Returns the exit status: body's, or 1 after reporting an error. statement_ms
 * limits one statement. */
int db_run(const char *file, enum db_stores which, int64_t statement_ms, db_body *body, void *arg);

/* Reports on standard error why body failed; the exit status. When a store cannot be reached, with
 * its address. */
int db_complain(struct task *t, const struct db *d, int err);
#endif
