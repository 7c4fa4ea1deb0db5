#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tool/backup/folder.h"
#include "tool/backup/packed.h"
#include "tool/backup/rows.h"

struct check {
    const struct backup_table *table;
    struct progress *progress;
    int64_t *all; /* rows so far, of all tables */
    int64_t rows;
    struct sql_value *cells;
};

static int check_line(struct task *t, struct str line, void *arg)
{
    struct check *c = arg;
    if (!rows_read(task_arena(t), line, c->table->column_count, c->cells))
        return task_fail(t, ERR_INVALID, "%.*s is damaged: row %lld cannot be read",
                         STR_ARG(c->table->file.name), (long long)c->rows + 1);
    c->rows++;
    *c->all += 1;
    progress_show(c->progress, *c->all, *c->all);
    return 0;
}

static int check_table(struct task *t, const char *dir, const struct backup_table *x,
                       struct progress *p, int64_t *all)
{
    struct task_scope scope = task_scope(t);
    const char *path = arena_printf(task_arena(t), "%s/%.*s", dir, STR_ARG(x->file.name));
    struct check c = {.table = x, .progress = p, .all = all};
    int64_t bytes = 0;
    c.cells = ARENA_ARRAY(task_arena(t), struct sql_value, x->column_count);
    int err = packed_lines(t, path, &x->file, check_line, &c, &bytes);
    if (!err && (c.rows != x->rows || bytes != x->bytes))
        err = task_fail(t, ERR_INVALID, "%s is damaged: it has %lld rows of %lld", path,
                        (long long)c.rows, (long long)x->rows);
    task_scope_end(t, scope);
    return err;
}

static int read_text(struct task *t, const char *dir, const char *name, struct str *out)
{
    const char *path = arena_printf(task_arena(t), "%s/%s", dir, name);
    if (file_read(task_arena(t), path, BACKUP_TEXT_MAX, out) == 0)
        return 0;
    return task_fail(t, ERR_INVALID, "%s: %s", path, strerror(errno));
}

/* A parent of backups, as --keep makes them, is the likeliest mistake. */
static int read_manifest(struct task *t, const char *dir, struct str *out)
{
    int err = read_text(t, dir, BACKUP_MANIFEST, out);
    const char *newest = err ? folder_newest(task_arena(t), dir) : NULL;
    if (newest)
        return task_fail(t, ERR_INVALID,
                         "%s is no backup, it has no " BACKUP_MANIFEST "; the newest in it is %s",
                         dir, newest);
    return err;
}

int backup_open(struct task *t, const char *dir, struct backup *out)
{
    char sum[SHA256_HEX_BYTES];
    struct str manifest, sums, redis;
    int err = read_manifest(t, dir, &manifest);
    if (!err)
        err = backup_manifest_read(t, manifest, out);
    if (!err)
        err = read_text(t, dir, BACKUP_SUMS, &sums);
    if (!err)
        err = read_text(t, dir, BACKUP_REDIS, &redis);
    if (err)
        return err;
    if (!str_eq(sums, backup_sums(task_arena(t), out, manifest)))
        return task_fail(t, ERR_INVALID,
                         "%s: " BACKUP_MANIFEST " and " BACKUP_SUMS
                         " do not fit together: one of them is damaged",
                         dir);
    sha256_hex(redis, sum);
    if (strcmp(sum, out->redis.sha256) != 0)
        return task_fail(t, ERR_INVALID,
                         "%s/" BACKUP_REDIS " is damaged: its SHA-256 is not that "
                         "of the manifest",
                         dir);
    return 0;
}

int backup_verify(struct task *t, const char *dir, const struct backup *b, struct progress *p)
{
    int64_t rows = 0;
    int err = 0;
    for (size_t i = 0; i < b->table_count; i++)
        p->total += b->tables[i].rows;
    for (size_t i = 0; !err && i < b->table_count; i++)
        err = check_table(t, dir, &b->tables[i], p, &rows);
    progress_end(p);
    return err;
}

const char *backup_size(struct arena *a, int64_t bytes)
{
    if (bytes >= 1000000000)
        return arena_printf(a, "%.1f GB", (double)bytes / 1e9);
    return arena_printf(a, "%.1f MB", (double)bytes / 1e6);
}

static void cancel(void *task)
{
    task_cancel(task);
}

void backup_take_signals(struct task *t)
{
    loop_on_signal(task_loop(t), SIGINT, cancel, t);
    loop_on_signal(task_loop(t), SIGTERM, cancel, t);
}
