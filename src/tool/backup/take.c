#include "tool/backup/take.h"

#include <stdio.h>

#include "base/time.h"
#include "engine/money/ledger.h"
#include "engine/runs/owed.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "serve/datadir.h"
#include "tool/backup/packed.h"
#include "tool/backup/rows.h"
#include "wire/sql_snapshot.h"

#define SPACE_BYTES (8 << 20) /* beside the rows */
#define ROW_BYTES   (256 * 1024)
#define RATIO       3 /* at least: what zstd makes of rows, but for files of users */

struct take {
    struct db *db;
    const char *dir;
    struct backup *out;
    struct progress progress;
    int64_t rows;
};

/* --- before the snapshot --- */

/* The records of one user cannot be synced: MySQL and Redis contradict each other. The snapshot is
 * as good as MySQL is; the account needs the operator with it and without it. */
static int sync_user(struct task *t, struct ledger *l, int64_t uid)
{
    int err = ledger_sync(t, l, uid);
    if (!err || err_is_outage(err))
        return err;
    fprintf(stderr,
            "millrace backup: user %lld: charges in Redis are not in the backup: %s; see millrace "
            "user list --state stopped\n",
            (long long)uid, *task_error(t) ? task_error(t) : err_name(err));
    return 0;
}

static int sync_all(struct task *t, const struct db *d, struct ledger *l)
{
    const struct redis_reply *users;
    int err = redis_call(t, d->redis, key_billing, &users, STR("ZRANGE"), key_billing, STR("0"),
                         STR("-1"));
    for (size_t i = 0; !err && i < users->count; i++) {
        int64_t uid;
        if (str_to_i64(users->items[i]->str, &uid))
            err = sync_user(t, l, uid);
    }
    return err;
}

static int settle(struct task *t, const struct db *d)
{
    struct task_scope scope = task_scope(t);
    struct cache *cache = cache_new(&(struct cache_options){.redis = d->redis, .sql = d->sql});
    struct ledger_options l = {.redis = d->redis, .sql = d->sql, .cache = cache};
    struct runs runs = {.redis = d->redis, .sql = d->sql, .cache = cache, .ledger = ledger_new(&l)};
    int err = run_settle_all(t, &runs);
    if (!err)
        err = sync_all(t, d, runs.ledger);
    ledger_free(runs.ledger);
    cache_free(cache);
    task_scope_end(t, scope);
    return err;
}

/* --- which tables --- */

static bool is_ours(const struct str *names, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

static bool is_listed(const struct sql_rows *r, struct str name)
{
    for (size_t i = 0; i < r->count; i++)
        if (str_eq(sql_row(r, i)[0].s, name))
            return true;
    return false;
}

static int find_tables(struct task *t, struct sql *c, struct take *k)
{
    struct sql_rows r, packed;
    size_t count;
    int64_t bytes = SPACE_BYTES, rows = 0;
    const char *why = NULL;
    const struct str *names = schema_tables(task_arena(t), &count);
    /* MySQL would answer with what it counted yesterday. */
    int err = sql_is_mariadb(c) ? 0 : sql_on(t, c, NULL, "SET information_schema_stats_expiry = 0");
    if (!err)
        err = sql_on(t, c, &r,
                     "SELECT table_name, auto_increment, table_rows, data_length"
                     " FROM information_schema.tables WHERE table_schema = DATABASE()"
                     " AND table_type = 'BASE TABLE' ORDER BY table_name");
    if (!err)
        err = sql_on(t, c, &packed,
                     "SELECT DISTINCT table_name FROM information_schema.columns"
                     " WHERE table_schema = DATABASE() AND data_type LIKE '%blob'");
    if (err)
        return err;
    k->out->tables = ARENA_ARRAY(task_arena(t), struct backup_table, r.count + 1);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        if (!is_ours(names, count, row[0].s))
            continue;
        k->out->tables[k->out->table_count++] =
            (struct backup_table){.name = row[0].s, .next = row[1].i};
        rows += row[2].i;
        bytes += is_listed(&packed, row[0].s) ? row[3].i : row[3].i / RATIO;
    }
    k->progress.total = rows;
    err = datadir_space(task_arena(t), k->dir, bytes, "the backup", &why);
    return err ? task_fail(t, err, "%s", why) : 0;
}

/* "`a`, CAST(`b` AS CHAR)": the server writes times as text, with all of their digits. */
static int find_columns(struct task *t, struct sql *c, struct backup_table *x, struct buf *list)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT column_name, data_type,"
                     " data_type LIKE '%blob' OR data_type LIKE '%binary',"
                     " data_type IN ('date', 'datetime', 'time', 'timestamp')"
                     " FROM information_schema.columns"
                     " WHERE table_schema = DATABASE() AND table_name = ?"
                     " AND COALESCE(generation_expression, '') = '' ORDER BY ordinal_position",
                     sql_text(x->name));
    if (err)
        return err;
    check(r.count > 0 && r.count <= BACKUP_COLUMNS_MAX);
    x->columns = ARENA_ARRAY(task_arena(t), struct backup_column, r.count);
    x->column_count = r.count;
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        x->columns[i] = (struct backup_column){row[0].s, row[2].i != 0};
        buf_printf(list, row[3].i ? "%sCAST(`%.*s` AS CHAR)" : "%s`%.*s`", i ? ", " : "",
                   STR_ARG(row[0].s));
    }
    return 0;
}

/* --- rows --- */

struct table_job {
    struct take *take;
    struct backup_table *table;
    struct packed file;
    struct buf lines;
};

static int put_row(struct task *t, const struct sql_value *cells, void *arg)
{
    struct table_job *j = arg;
    rows_put(&j->lines, cells, j->table->column_count);
    j->table->rows++;
    j->take->rows++;
    progress_show(&j->take->progress, j->take->rows, j->take->rows);
    if (j->lines.len < ROW_BYTES)
        return 0;
    int err = packed_add(t, &j->file, buf_str(&j->lines));
    buf_clear(&j->lines);
    return err;
}

static int write_rows(struct task *t, struct sql *c, struct table_job *j, const char *statement)
{
    int err = sql_on_each(t, c, statement, 0, NULL, put_row, j);
    if (!err)
        err = packed_add(t, &j->file, buf_str(&j->lines));
    if (!err)
        err = packed_finish(t, &j->file, &j->table->file);
    j->table->bytes = j->file.bytes;
    return err;
}

static int write_table(struct task *t, struct sql *c, struct take *k, struct backup_table *x)
{
    struct arena *a = task_arena(t);
    struct table_job j = {.take = k, .table = x};
    struct buf list;
    buf_init(&list);
    int err = find_columns(t, c, x, &list);
    const char *statement =
        arena_printf(a, "SELECT %.*s FROM `%.*s`", STR_ARG(buf_str(&list)), STR_ARG(x->name));
    buf_release(&list);
    x->file.name = str_printf(a, "%.*s.tsv.zst", STR_ARG(x->name));
    const char *path = arena_printf(a, "%s/%.*s", k->dir, STR_ARG(x->file.name));
    if (err)
        return err;
    buf_init(&j.lines);
    err = packed_create(t, &j.file, path, true);
    if (!err)
        err = write_rows(t, c, &j, statement);
    packed_close(&j.file);
    buf_release(&j.lines);
    return err;
}

static int write_small(struct task *t, const char *dir, const char *name, struct str text,
                       struct backup_file *out)
{
    struct packed p;
    int err = packed_create(t, &p, arena_printf(task_arena(t), "%s/%s", dir, name), false);
    if (!err)
        err = packed_add(t, &p, text);
    if (!err)
        err = packed_finish(t, &p, out);
    packed_close(&p);
    out->name = str_of(name);
    return err;
}

/* The second connection of the pool reads for redis.json: that needs no snapshot. */
static int in_snapshot(struct task *t, struct sql *c, void *arg)
{
    struct take *k = arg;
    struct str redis;
    int err = find_tables(t, c, k); /* and whether there is room for them */
    if (!err)
        err = backup_redis_text(t, k->db, &redis);
    if (!err)
        err = write_small(t, k->dir, BACKUP_REDIS, redis, &k->out->redis);
    for (size_t i = 0; !err && i < k->out->table_count; i++)
        err = write_table(t, c, k, &k->out->tables[i]);
    return err;
}

/* --- all of it --- */

static int find_schema(struct task *t, struct take *k)
{
    struct schema_report r;
    int err = schema_check(t, k->db->sql, &r);
    if (err)
        return err;
    if (r.database == 0)
        return task_fail(t, ERR_NOT_FOUND, "there are no tables of millrace in this database");
    if (r.interrupted)
        return task_fail(t, ERR_CONFLICT,
                         "a migration was interrupted: complete it by \"millrace db migrate\"");
    struct str *sums = ARENA_ARRAY(task_arena(t), struct str, r.database);
    for (int64_t i = 0; i < r.database; i++)
        sums[i] = str_of(schema_migrations[i].checksum);
    k->out->schema = r.database;
    k->out->checksums = sums;
    return 0;
}

int backup_take(struct task *t, struct db *d, const char *dir, struct backup *out)
{
    struct take k = {.db = d, .dir = dir, .out = out};
    char at[TIME_ISO_BYTES];
    struct backup_file unnamed;
    *out = (struct backup){.version = STR(MILLRACE_VERSION), .at_ms = loop_wall_ms(task_loop(t))};
    time_iso(out->at_ms * 1000, at);
    out->at = str_dup(task_arena(t), str_of(at));
    progress_init(&k.progress, task_loop(t), "backup", "rows", 0);
    int err = find_schema(t, &k);
    if (!err)
        err = settle(t, d);
    if (!err)
        err = sql_snapshot(t, d->sql, in_snapshot, &k);
    progress_end(&k.progress);
    if (err)
        return err;
    struct str manifest = backup_manifest(task_arena(t), out);
    err = write_small(t, dir, BACKUP_MANIFEST, manifest, &unnamed);
    if (!err)
        err = write_small(t, dir, BACKUP_SUMS, backup_sums(task_arena(t), out, manifest), &unnamed);
    return err;
}
