#include "engine/setup/schema.h"

#include "base/log.h"
#include "tests/mariadb.h"
#include "tests/tap.h"

static struct mariadb server;

static struct sql_pool *pool_of(struct task *t)
{
    return sql_pool_new(task_loop(t),
                        &(struct sql_options){.url = server.url, .connections_max = 1});
}

static void test_migrate(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t), *other = pool_of(t);
    struct schema_report r;
    is_int(schema_check(t, p, &r), 0, "an empty database can be used");
    ok(r.database == 0 && r.program == (int64_t)schema_migration_count && r.applied == 0 &&
           !r.interrupted && !r.old_tables,
       "and lacks everything");
    is_int(schema_migrate(t, p, &r), 0, "it gets it: %s", task_error(t));
    ok(r.database == 0 && r.applied == r.program, "all migrations");
    is_int(schema_check(t, p, &r), 0, "another look");
    ok(r.database == r.program && r.applied == 0, "finds it up to date");

    int64_t began = loop_now_us(task_loop(t));
    is_int(schema_migrate(t, other, &r), 0, "once more, from another connection");
    ok(r.applied == 0 && loop_now_us(task_loop(t)) - began < SCHEMA_LOCK_WAIT_S * 500000,
       "the first has not kept the lock");
    sql_pool_free(p);
    sql_pool_free(other);
}

static void test_refused(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t), *other = pool_of(t);
    check(sql_call(t, p, NULL, "INSERT INTO schema_migration VALUES (9000, 'x', 'x', NULL)") == 0);
    struct schema_report r = {.applied = 77};
    is_int(schema_check(t, p, &r), ERR_CONFLICT, "a newer database");
    is_int(schema_migrate(t, p, &r), ERR_CONFLICT, "is not migrated");
    ok(str_find(str_of(task_error(t)), STR("at migration 9000")) >= 0, "and why: %s",
       task_error(t));
    is_int(r.applied, 77, "the report is left alone");
    check(sql_call(t, p, NULL, "DELETE FROM schema_migration WHERE number = 9000") == 0);
    int64_t began = loop_now_us(task_loop(t));
    is_int(schema_migrate(t, other, &r), 0, "a repaired one");
    ok(loop_now_us(task_loop(t)) - began < SCHEMA_LOCK_WAIT_S * 500000,
       "a failure has not kept the lock");
    sql_pool_free(p);
    sql_pool_free(other);
}

/* A restore: the tables of an older database first, and no program takes it for whole meanwhile. */
static void test_restoring(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    struct schema_report r;
    struct sql_rows found;
    size_t count;
    const struct str *tables = schema_tables(task_arena(t), &count);
    bool users = false, twice = false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            twice |= str_eq(tables[i], tables[k]);
    for (size_t i = 0; i < count; i++)
        users |= str_eq(tables[i], STR("user_info"));
    ok(users && !twice && count > 20, "the tables, each once: %zu", count);
    check(sql_call(t, p, NULL, "CREATE TABLE " SCHEMA_RESTORING " (id INT)") == 0);
    is_int(schema_check(t, p, &r), ERR_CONFLICT, "half restored: %s", task_error(t));
    is_int(schema_migrate(t, p, &r), ERR_CONFLICT, "and not migrated");
    is_int(schema_migrate_to(t, p, (int64_t)schema_migration_count, &r), 0, "but by the restore");
    check(sql_call(t, p, NULL, "DROP TABLE " SCHEMA_RESTORING) == 0);
    check(sql_call(t, p, NULL, "DROP TABLE admin_audit, schema_migration") == 0);
    for (size_t i = 0; i < count; i++)
        check(
            sql_argv(t, p,
                     arena_printf(task_arena(t), "DROP TABLE IF EXISTS `%.*s`", STR_ARG(tables[i])),
                     0, NULL, NULL) == 0);
    is_int(schema_migrate_to(t, p, 3, &r), 0, "up to the third: %s", task_error(t));
    is_int(r.applied, 3, "three");
    check(sql_call(t, p, &found, "SELECT COUNT(*) FROM schema_migration") == 0);
    is_int(found.cells[0].i, 3, "and no more");
    is_int(schema_migrate(t, p, &r), 0, "then the others");
    is_int(r.applied, r.program - 3, "all of them");
    sql_pool_free(p);
}

static void test_deadline(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    struct schema_report r;
    check(schema_check(t, p, &r) == 0);
    mariadb_freeze(&server);
    int64_t old = task_deadline(t, 100);
    is_int(schema_migrate(t, p, &r), ERR_TIMEOUT, "a server that does not answer");
    task_deadline_restore(t, old);
    mariadb_thaw(&server);
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    mariadb_start(&server, NULL);
    tap_task(test_migrate, NULL, true);
    tap_task(test_refused, NULL, true);
    tap_task(test_restoring, NULL, true);
    tap_task(test_deadline, NULL, true);
    mariadb_release(&server);
    return tap_done();
}
