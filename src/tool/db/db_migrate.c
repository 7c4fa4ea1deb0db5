#include <stdio.h>

#include "engine/setup/schema.h"
#include "tool/db/db.h"
#include "tool/opt.h"

#define STATEMENT_MS (6 * 3600 * 1000) /* an index on five million papers is slow */

static const char about[] =
    "Creates the tables of millrace in MySQL, or brings those of an older millrace up to date.\n"
    "Run it again after an interruption: it goes on where it was. \"serve\" never does this to a\n"
    "MySQL that you have configured. Stop older nodes first.";

static int run(struct task *t, struct db *d)
{
    const bool *check_only = d->arg;
    struct schema_report r;
    int err = *check_only ? schema_check(t, d->sql, &r) : schema_migrate(t, d->sql, &r);
    if (err)
        return db_complain(t, d, err);
    if (!*check_only && r.applied && r.interrupted)
        printf("An interrupted migration was found and is complete now.\n");
    int64_t count = *check_only ? r.program - r.database : r.applied;
    for (int64_t n = r.database + 1; n <= r.database + count; n++)
        printf("%s %04d_%s\n", *check_only ? "missing" : "applied", (int)n,
               schema_migrations[n - 1].name);
    if (count == 0)
        printf("Nothing to do: the database is at migration %04d%s.\n", (int)r.database,
               *check_only ? "" : " already");
    if (r.old_tables)
        printf("Tables of the former system are here and left alone; millrace does not use them: "
               "%s.\n",
               r.old_tables);
    return fflush(stdout) == 0 && (!*check_only || count == 0) ? 0 : 1;
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
    return status >= 0 ? status : db_run(file, DB_MYSQL, STATEMENT_MS, run, &check_only);
}
