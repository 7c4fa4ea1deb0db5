#include "engine/setup/schema.h"

#include "base/buf.h"
#include "engine/setup/schema_split.h"

/* A lock is the server's, not the database's, and its name has at most 64 bytes. MySQL 9.6
 * has moved MD5 and SHA1 into a component; SHA2 is on MySQL 8, 9 and MariaDB. */
#define LOCK_NAME "CONCAT('millrace.migrate.', LEFT(SHA2(DATABASE(), 256), 32))"

struct job {
    struct schema_report report;
    bool migrate, restores;
    int64_t most; /* the last migration to apply */
};

/* One row of schema_migration. */
struct record {
    int64_t number;
    struct str checksum;
    bool complete;
};

static const char *title(struct task *t, const struct schema_migration *m)
{
    return arena_printf(task_arena(t), "%04d_%s", (int)m->number, m->name);
}

/* Puts the name of the migration in front of the text of the last error. */
static int fail_at(struct task *t, int err, const struct schema_migration *m)
{
    const char *why = arena_strdup(task_arena(t), task_error(t));
    return task_fail(t, err, "migration %s: %s", title(t, m), why);
}

/* --- what is there --- */

static int table_exists(struct task *t, struct sql *c, struct str name, bool *out)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT 1 FROM information_schema.tables"
                     " WHERE table_schema = DATABASE() AND table_name = ?",
                     sql_text(name));
    if (!err)
        *out = r.count > 0;
    return err;
}

static int find_database(struct task *t, struct sql *c)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT DATABASE()");
    if (err || r.cells[0].type != SQL_NULL)
        return err;
    return task_fail(t, ERR_INVALID, "the URL of MySQL names no database");
}

static int find_old_tables(struct task *t, struct sql *c, const char **out)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT table_name FROM information_schema.tables"
                     " WHERE table_schema = DATABASE() AND table_name IN"
                     " ('sentence', 'api_usage_minute', 'app_settings', 'task_queue')"
                     " ORDER BY table_name");
    if (err || r.count == 0)
        return err;
    struct str names = r.cells[0].s;
    for (size_t i = 1; i < r.count; i++)
        names = str_printf(task_arena(t), "%.*s, %.*s", STR_ARG(names), STR_ARG(r.cells[i].s));
    *out = str_z(task_arena(t), names);
    return 0;
}

static int compare(struct task *t, const struct record *r, int64_t newest, int64_t expected)
{
    int64_t known = (int64_t)schema_migration_count;
    if (newest > known)
        return task_fail(t, ERR_CONFLICT,
                         "the database is newer than this program: it is at migration %04d, this "
                         "millrace knows those up to %04d; use a newer millrace",
                         (int)newest, (int)known);
    if (r->number != expected)
        return task_fail(t, ERR_CONFLICT, "table schema_migration has no migration %04d, but %04d",
                         (int)expected, (int)r->number);
    const struct schema_migration *m = &schema_migrations[r->number - 1];
    if (!str_eq(r->checksum, str_of(m->checksum)))
        return task_fail(t, ERR_CONFLICT,
                         "migration %s has been changed since it was %s here: the database has "
                         "checksum %.12s, this millrace %.12s; use the millrace that made the "
                         "database, or a proper release",
                         title(t, m), r->complete ? "applied" : "begun", r->checksum.p,
                         m->checksum);
    if (expected < newest && !r->complete)
        return task_fail(t, ERR_CONFLICT, "migration %s is not complete, but later ones are",
                         title(t, m));
    return 0;
}

/* Compares every row of schema_migration with what the program knows. */
static int read_records(struct task *t, struct sql *c, struct schema_report *out)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT number, checksum, applied_at IS NOT NULL FROM schema_migration"
                     " ORDER BY number");
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct record have = {row[0].i, row[1].s, row[2].i != 0};
        err = compare(t, &have, sql_row(&r, r.count - 1)[0].i, (int64_t)i + 1);
        if (have.complete)
            out->database = have.number;
        else
            out->interrupted = true;
    }
    return err;
}

/* --- applying --- */

/* An earlier migration, complete by now, has made the table: this one makes it anew. */
static bool made_before(const struct schema_migration *m, struct str table)
{
    for (int64_t i = 0; i < m->number - 1; i++) {
        struct str rest = str_of(schema_migrations[i].text), one;
        while (schema_split(&rest, &one) == 0 && one.p)
            if (str_eq(schema_created_table(one), table))
                return true;
    }
    return false;
}

/* CREATE TABLE IF NOT EXISTS would take another program's table of that name for millrace's. */
static int refuse_strange_tables(struct task *t, struct sql *c, const struct schema_migration *m)
{
    struct str rest = str_of(m->text), one;
    int err;
    while ((err = schema_split(&rest, &one)) == 0 && one.p) {
        struct str table = schema_created_table(one);
        bool exists = false;
        if (table.p && !made_before(m, table))
            err = table_exists(t, c, table, &exists);
        if (err)
            return err;
        if (exists)
            return task_fail(t, ERR_EXISTS,
                             "there is a table %.*s already, which millrace did not make; rename "
                             "it, or give millrace a database of its own",
                             STR_ARG(table));
    }
    return err;
}

static int run_statements(struct task *t, struct sql *c, struct str rest)
{
    struct str one;
    int err;
    while ((err = schema_split(&rest, &one)) == 0 && one.p) {
        err = sql_on_argv(t, c, str_z(task_arena(t), one), 0, NULL, NULL);
        /* MySQL knows no CREATE INDEX IF NOT EXISTS, and no ADD COLUMN IF NOT EXISTS. */
        if (err == ERR_EXISTS &&
            (str_starts(one, STR("CREATE INDEX ")) || str_starts(one, STR("ALTER TABLE "))))
            err = 0;
        if (err)
            return err;
    }
    return err;
}

static int begin(struct task *t, struct sql *c, const struct schema_migration *m)
{
    return sql_on(t, c, NULL,
                  "INSERT INTO schema_migration (number, name, checksum) VALUES (?, ?, ?)",
                  sql_int(m->number), sql_text(str_of(m->name)), sql_text(str_of(m->checksum)));
}

static int apply(struct task *t, struct sql *c, const struct schema_migration *m, bool begun)
{
    struct str text = str_of(schema_dialect(task_arena(t), m->text, sql_is_mariadb(c)));
    int err = 0;
    if (!begun)
        err = refuse_strange_tables(t, c, m);
    if (!err && !begun)
        err = begin(t, c, m);
    if (!err)
        err = run_statements(t, c, text);
    if (!err)
        err = sql_on(t, c, NULL,
                     "UPDATE schema_migration SET applied_at = UTC_TIMESTAMP(3) WHERE number = ?",
                     sql_int(m->number));
    return err ? fail_at(t, err, m) : 0;
}

static int apply_missing(struct task *t, struct sql *c, int64_t most, struct schema_report *out)
{
    int err = 0;
    for (int64_t i = out->database; !err && i < most; i++) {
        err = apply(t, c, &schema_migrations[i], out->interrupted && out->applied == 0);
        if (!err)
            out->applied++;
    }
    return err;
}

/* --- the two jobs --- */

static int lock(struct task *t, struct sql *c)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT GET_LOCK(" LOCK_NAME ", ?)", sql_int(SCHEMA_LOCK_WAIT_S));
    if (err || (r.cells[0].type == SQL_INT && r.cells[0].i == 1))
        return err;
    return task_fail(t, ERR_BUSY,
                     "another process has been migrating this database for %d s; try again when it "
                     "has ended",
                     SCHEMA_LOCK_WAIT_S);
}

/* If this fails, the connection is lost, and its locks with it. All of them, because a body that
 * sql_tx repeats has locked twice. */
static void unlock(struct task *t, struct sql *c)
{
    const char *why = arena_strdup(task_arena(t), task_error(t));
    int err = sql_on(t, c, NULL, "DO RELEASE_ALL_LOCKS()");
    if (err)
        task_fail(t, err, "%s", why);
}

static int migrate_locked(struct task *t, struct sql *c, int64_t most, struct schema_report *out)
{
    int err = sql_on(t, c, NULL,
                     "CREATE TABLE IF NOT EXISTS schema_migration ("
                     "number INT NOT NULL PRIMARY KEY, name VARCHAR(64) NOT NULL,"
                     " checksum CHAR(64) NOT NULL, applied_at DATETIME(3) NULL)"
                     " ENGINE=InnoDB DEFAULT CHARSET=ascii");
    if (!err)
        err = read_records(t, c, out);
    return err ? err : apply_missing(t, c, most, out);
}

static int look(struct task *t, struct sql *c, struct schema_report *out)
{
    bool exists = false;
    int err = table_exists(t, c, STR("schema_migration"), &exists);
    return err || !exists ? err : read_records(t, c, out);
}

static int refuse_half_restored(struct task *t, struct sql *c)
{
    bool exists = false;
    int err = table_exists(t, c, STR(SCHEMA_RESTORING), &exists);
    if (err || !exists)
        return err;
    return task_fail(t, ERR_CONFLICT,
                     "a restore of this database is under way, or was interrupted: it is not "
                     "whole; run \"millrace restore --overwrite\" again");
}

/* Runs inside sql_tx, because the lock belongs to one connection. It is no transaction: the first
 * CREATE TABLE ends it, and from then on every statement is committed by itself. */
static int run(struct task *t, struct sql *c, void *arg)
{
    struct job *j = arg;
    j->report = (struct schema_report){.program = (int64_t)schema_migration_count};
    int err = find_database(t, c);
    if (!err)
        err = find_old_tables(t, c, &j->report.old_tables);
    if (!err && !j->restores)
        err = refuse_half_restored(t, c);
    if (err || !j->migrate)
        return err ? err : look(t, c, &j->report);
    err = lock(t, c);
    if (err)
        return err;
    err = migrate_locked(t, c, j->most, &j->report);
    unlock(t, c);
    return err;
}

static int start(struct task *t, struct sql_pool *p, struct job j, struct schema_report *out)
{
    int err = sql_tx(t, p, run, &j);
    if (!err)
        *out = j.report;
    return err;
}

int schema_migrate(struct task *t, struct sql_pool *p, struct schema_report *out)
{
    struct job j = {.migrate = true, .most = (int64_t)schema_migration_count};
    return start(t, p, j, out);
}

int schema_migrate_to(struct task *t, struct sql_pool *p, int64_t number, struct schema_report *out)
{
    check(number <= (int64_t)schema_migration_count);
    struct job j = {.migrate = true, .restores = true, .most = number};
    return start(t, p, j, out);
}

int schema_check(struct task *t, struct sql_pool *p, struct schema_report *out)
{
    return start(t, p, (struct job){.migrate = false}, out);
}

static bool is_among(const struct str *names, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

const struct str *schema_tables(struct arena *a, size_t *count)
{
    struct str *names = NULL;
    size_t n = 0;
    for (size_t i = 0; i < schema_migration_count; i++) {
        struct str rest = str_of(schema_migrations[i].text), one;
        while (schema_split(&rest, &one) == 0 && one.p) {
            struct str name = schema_created_table(one);
            if (!name.p || is_among(names, n, name))
                continue;
            names = arena_grow(a, names, n * sizeof *names, (n + 1) * sizeof *names);
            names[n++] = name;
        }
    }
    *count = n;
    return names;
}

int schema_analyze(struct task *t, struct sql_pool *p, const struct str *names, size_t count)
{
    struct arena *a = task_arena(t);
    struct sql_rows said; /* what it has to say of each table, also that there is none */
    const char *statement = "ANALYZE TABLE";
    for (size_t i = 0; i < count; i++)
        statement = arena_printf(a, "%s%s `%.*s`", statement, i ? "," : "", STR_ARG(names[i]));
    return sql_argv(t, p, statement, 0, NULL, &said);
}
