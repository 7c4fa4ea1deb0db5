/* Rows of a backup into the tables they came from. */
#include "base/file.h"
#include "engine/setup/schema.h"
#include "tool/backup/packed.h"
#include "tool/backup/restore.h"
#include "tool/backup/rows.h"

#define BATCH_ROWS  5000
#define BATCH_BYTES (8 << 20)

struct loader {
    struct restore *restore;
    const struct backup_table *table;
    const char *into; /* "INSERT INTO `t` (`a`, `b`) VALUES" */
    struct progress *progress;
    int64_t *all;       /* rows so far, of all tables */
    struct arena batch; /* rows that were not sent yet */
    struct sql_value *cells;
    size_t rows, bytes;
    int64_t stored;
};

static int insert(struct task *t, struct sql *c, void *arg)
{
    struct loader *l = arg;
    uint64_t stored = 0;
    int err = sql_bulk(t, c, l->into, "", l->table->column_count, l->rows, l->cells, &stored);
    if (!err && stored != l->rows)
        err = task_fail(t, ERR_INTERNAL, "table %.*s: %lld rows of %zu were stored",
                        STR_ARG(l->table->name), (long long)stored, l->rows);
    return err;
}

static int flush(struct task *t, struct loader *l)
{
    int err = l->rows ? sql_tx(t, l->restore->sql, insert, l) : 0;
    if (err)
        return task_fail(
            t, err, "table %.*s: %s", STR_ARG(l->table->name),
            arena_strdup(task_arena(t), *task_error(t) ? task_error(t) : err_name(err)));
    l->stored += (int64_t)l->rows;
    *l->all += (int64_t)l->rows;
    progress_show(l->progress, *l->all, *l->all);
    arena_reset(&l->batch, (struct arena_mark){0});
    l->cells = ARENA_ARRAY(&l->batch, struct sql_value, BATCH_ROWS * l->table->column_count);
    l->rows = l->bytes = 0;
    return 0;
}

static int load_line(struct task *t, struct str line, void *arg)
{
    struct loader *l = arg;
    size_t count = l->table->column_count;
    struct sql_value *cells = l->cells + l->rows * count;
    if (!rows_read(&l->batch, line, count, cells))
        return task_fail(t, ERR_INVALID, "%.*s has changed since it was verified",
                         STR_ARG(l->table->file.name));
    for (size_t i = 0; i < count; i++)
        if (l->table->columns[i].blob && cells[i].type == SQL_TEXT)
            cells[i].type = SQL_BLOB;
    l->bytes += line.n;
    return ++l->rows == BATCH_ROWS || l->bytes >= BATCH_BYTES ? flush(t, l) : 0;
}

static const char *insert_into(struct arena *a, const struct backup_table *x)
{
    const char *text = arena_printf(a, "INSERT INTO `%.*s` (", STR_ARG(x->name));
    for (size_t i = 0; i < x->column_count; i++)
        text = arena_printf(a, "%s%s`%.*s`", text, i ? ", " : "", STR_ARG(x->columns[i].name));
    return arena_printf(a, "%s) VALUES", text);
}

/* Some migrations put rows into their tables; those of the backup replace them. */
static int load_rows(struct task *t, struct loader *l)
{
    struct arena *a = task_arena(t);
    const struct backup_table *x = l->table;
    const char *path = arena_printf(a, "%s/%.*s", l->restore->dir, STR_ARG(x->file.name));
    int64_t bytes;
    l->into = insert_into(a, x);
    int err = sql_argv(t, l->restore->sql, arena_printf(a, "DELETE FROM `%.*s`", STR_ARG(x->name)),
                       0, NULL, NULL);
    if (!err)
        err = flush(t, l); /* makes room for the first rows */
    if (!err)
        err = packed_lines(t, path, &x->file, load_line, l, &bytes);
    if (!err)
        err = flush(t, l);
    if (!err && l->stored != x->rows)
        err = task_fail(t, ERR_INVALID, "%s has changed since it was verified", path);
    if (!err && x->next)
        err = sql_argv(t, l->restore->sql,
                       arena_printf(a, "ALTER TABLE `%.*s` AUTO_INCREMENT = %lld", STR_ARG(x->name),
                                    (long long)x->next),
                       0, NULL, NULL);
    return err;
}

static int load_table(struct task *t, struct restore *r, const struct backup_table *x,
                      struct progress *p, int64_t *all)
{
    struct task_scope scope = task_scope(t);
    struct loader l = {.restore = r, .table = x, .progress = p, .all = all};
    arena_init(&l.batch);
    int err = load_rows(t, &l);
    arena_release(&l.batch);
    task_scope_end(t, scope);
    return err;
}

static int load_tables(struct task *t, struct restore *r)
{
    struct progress p;
    int64_t all = 0;
    int err = 0;
    progress_init(&p, task_loop(t), "restore", "rows", 0);
    for (size_t i = 0; i < r->backup.table_count; i++)
        p.total += r->backup.tables[i].rows;
    for (size_t i = 0; !err && i < r->backup.table_count; i++)
        err = load_table(t, r, &r->backup.tables[i], &p, &all);
    progress_end(&p);
    return err;
}

static int load_redis(struct task *t, struct restore *r)
{
    struct str text;
    const char *path = arena_printf(task_arena(t), "%s/" BACKUP_REDIS, r->dir);
    if (file_read(task_arena(t), path, BACKUP_TEXT_MAX, &text))
        return task_fail(t, ERR_IO, "%s cannot be read any more", path);
    return backup_redis_put(t, r->redis, text, &r->kept);
}

static int analyze(struct task *t, struct restore *r)
{
    size_t count;
    const struct str *names = schema_tables(task_arena(t), &count);
    return schema_analyze(t, r->sql, names, count);
}

int restore_load(struct task *t, struct restore *r)
{
    struct schema_report s;
    int err = sql_call(t, r->sql, NULL,
                       "CREATE TABLE IF NOT EXISTS " SCHEMA_RESTORING " (id INT PRIMARY KEY)");
    r->begun = !err;
    if (!err)
        err = restore_empty(t, r);
    if (!err)
        err = schema_migrate_to(t, r->sql, r->backup.schema, &s);
    if (!err)
        err = load_tables(t, r);
    if (!err)
        err = schema_migrate_to(t, r->sql, (int64_t)schema_migration_count, &s);
    if (!err) /* what stores of points have now is not what these tables say they have */
        err = sql_call(t, r->sql, NULL, "DELETE FROM vector_store");
    if (!err)
        err = analyze(t, r);
    if (!err)
        err = load_redis(t, r);
    return err ? err : sql_call(t, r->sql, NULL, "DROP TABLE " SCHEMA_RESTORING);
}
