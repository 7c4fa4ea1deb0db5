#include <stdio.h>

#include "engine/setup/schema.h"
#include "tool/db/db.h"
#include "tool/opt.h"

#define STATEMENT_MS (6 * 3600 * 1000) /* an index on five million papers is slow */

static const char about[] =
    "Creates the tables of millrace in MySQL, or brings those of an older millrace up to date.\n"
    "Run it again after an interruption: it goes on where it was. \"serve\" never does this to a\n"
    "MySQL that you have configured. Stop older nodes first.";

static void print_each(const char *what, int64_t first, int64_t count)
{
    for (int64_t n = first; n < first + count; n++)
        printf("%s %04d_%s\n", what, (int)n, schema_migrations[n - 1].name);
}

static void print_old_tables(const struct schema_report *r)
{
    if (r->old_tables)
        printf("Tables of the former system are here and left alone; millrace does not use them: "
               "%s.\n",
               r->old_tables);
}

static int migrate(struct task *t, struct db *d)
{
    struct schema_report r;
    int err = schema_migrate(t, d->sql, &r);
    if (err)
        return db_complain(t, d, err);
    if (r.applied && r.interrupted)
        printf("An interrupted migration was found and is complete now.\n");
    print_each("applied", r.database + 1, r.applied);
    if (r.applied == 0)
        printf("Nothing to do: the database is at migration %04d already.\n", (int)r.database);
    print_old_tables(&r);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int only_look(struct task *t, struct db *d)
{
    struct schema_report r;
    int err = schema_check(t, d->sql, &r);
    if (err)
        return db_complain(t, d, err);
    print_each("missing", r.database + 1, r.program - r.database);
    if (r.database == r.program)
        printf("Nothing to do: the database is at migration %04d.\n", (int)r.database);
    print_old_tables(&r);
    return fflush(stdout) == 0 && r.database == r.program ? 0 : 1;
}

int db_migrate_main(int argc, char **argv)
{
    const char *file = NULL;
    bool check_only = false;
    const struct opt opts[] = {
        OPT_CONFIG(&file),
        {"check", NULL, "change nothing; exit status 1 if something is missing",
         .flag = &check_only},
    };
    struct command c = {"db migrate", NULL, about, opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    return status >= 0
               ? status
               : db_run(file, DB_MYSQL, STATEMENT_MS, check_only ? only_look : migrate, NULL);
}
