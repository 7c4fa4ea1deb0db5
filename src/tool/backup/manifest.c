#include <string.h>

#include "base/json.h"
#include "base/time.h"
#include "engine/setup/schema.h"
#include "tool/backup/backup.h"

#define NAME_BYTES_MAX 64

/* --- writing --- */

static void put_file(struct json_writer *w, const struct backup_file *f)
{
    jw_put_str(w, "file", f->name);
    jw_put_int(w, "file_bytes", f->bytes);
    jw_put_str(w, "sha256", str_of(f->sha256));
}

static void put_table(struct json_writer *w, const struct backup_table *t)
{
    jw_object(w);
    jw_put_str(w, "name", t->name);
    jw_put_int(w, "rows", t->rows);
    jw_put_int(w, "bytes", t->bytes);
    if (t->next)
        jw_put_int(w, "auto_increment", t->next);
    put_file(w, &t->file);
    jw_put_array(w, "columns");
    for (size_t i = 0; i < t->column_count; i++) {
        jw_object(w);
        jw_put_str(w, "name", t->columns[i].name);
        jw_put_str(w, "type", t->columns[i].blob ? STR("blob") : STR("text"));
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_end_object(w);
}

struct str backup_manifest(struct arena *a, const struct backup *b)
{
    struct buf out;
    struct json_writer w;
    jw_begin(&w, &out);
    jw_put_int(&w, "format", BACKUP_FORMAT);
    jw_put_str(&w, "millrace", b->version);
    jw_put_str(&w, "at", b->at);
    jw_put_array(&w, "migrations");
    for (int64_t i = 0; i < b->schema; i++)
        jw_str(&w, b->checksums[i]);
    jw_end_array(&w);
    jw_put_array(&w, "tables");
    for (size_t i = 0; i < b->table_count; i++)
        put_table(&w, &b->tables[i]);
    jw_end_array(&w);
    jw_put_object(&w, "redis");
    put_file(&w, &b->redis);
    jw_end_object(&w);
    return jw_finish(&w, a);
}

struct str backup_sums(struct arena *a, const struct backup *b, struct str manifest)
{
    char sum[SHA256_HEX_BYTES];
    struct str all;
    sha256_hex(manifest, sum);
    all = str_printf(a, "%s  " BACKUP_MANIFEST "\n%s  " BACKUP_REDIS "\n", sum, b->redis.sha256);
    for (size_t i = 0; i < b->table_count; i++)
        all = str_printf(a, "%.*s%s  %.*s\n", STR_ARG(all), b->tables[i].file.sha256,
                         STR_ARG(b->tables[i].file.name));
    return all;
}

/* --- reading --- */

static int wrong(struct task *t, const char *what)
{
    return task_fail(t, ERR_INVALID, BACKUP_MANIFEST " is not that of a backup: %s", what);
}

static int read_count(struct task *t, const struct json *j, const char *name, int64_t *out)
{
    if (json_int(json_get(j, name), out) && *out >= 0)
        return 0;
    return wrong(t, arena_printf(task_arena(t), "\"%s\" is missing, or no number", name));
}

/* want: a name of the program's own, so no path can lead out of the folder. */
static int read_file(struct task *t, const struct json *j, struct str want, struct backup_file *out)
{
    struct str sum = json_str(json_get(j, "sha256"));
    if (!str_eq(json_str(json_get(j, "file")), want))
        return wrong(t, arena_printf(task_arena(t), "no file \"%.*s\"", STR_ARG(want)));
    if (!hex_is(sum, SHA256_HEX_BYTES - 1))
        return wrong(t, arena_printf(task_arena(t), "no sum of \"%.*s\"", STR_ARG(want)));
    out->name = want;
    memcpy(out->sha256, sum.p, sum.n);
    out->sha256[sum.n] = '\0';
    return read_count(t, j, "file_bytes", &out->bytes);
}

static bool is_name(struct str s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    bool fine = s.n > 0 && s.n <= NAME_BYTES_MAX;
    for (size_t i = 0; fine && i < s.n; i++)
        fine = memchr(letters, s.p[i], sizeof letters - 1) != NULL;
    return fine;
}

static int read_columns(struct task *t, const struct json *j, struct backup_table *out)
{
    const struct json *list = json_get(j, "columns");
    if (!json_first(list) || list->count > BACKUP_COLUMNS_MAX)
        return wrong(t, "a table has no columns, or too many");
    out->columns = ARENA_ARRAY(task_arena(t), struct backup_column, list->count);
    json_each (it, list) {
        struct str type = json_str(json_get(it, "type"));
        struct backup_column *c = &out->columns[out->column_count++];
        c->name = json_str(json_get(it, "name"));
        c->blob = str_eq(type, STR("blob"));
        if (!is_name(c->name) || (!c->blob && !str_eq(type, STR("text"))))
            return wrong(t, "a column has no name or type");
    }
    return 0;
}

static struct str known_table(struct task *t, struct str name)
{
    size_t count;
    const struct str *names = schema_tables(task_arena(t), &count);
    for (size_t i = 0; i < count; i++)
        if (str_eq(names[i], name))
            return names[i];
    return STR_NULL;
}

static int read_table(struct task *t, const struct json *j, struct backup_table *out)
{
    struct str name = json_str(json_get(j, "name"));
    *out = (struct backup_table){.name = known_table(t, name)};
    if (!out->name.p)
        return wrong(t, "this millrace does not know one of its tables");
    struct str file = str_printf(task_arena(t), "%.*s.tsv.zst", STR_ARG(name));
    int err = read_count(t, j, "rows", &out->rows);
    if (!err)
        err = read_count(t, j, "bytes", &out->bytes);
    if (!err && json_get(j, "auto_increment"))
        err = read_count(t, j, "auto_increment", &out->next);
    if (!err)
        err = read_file(t, j, file, &out->file);
    return err ? err : read_columns(t, j, out);
}

static int read_tables(struct task *t, const struct json *j, struct backup *out)
{
    const struct json *list = json_get(j, "tables");
    int err = json_first(list) ? 0 : wrong(t, "it has no tables");
    out->tables = list ? ARENA_ARRAY(task_arena(t), struct backup_table, list->count) : NULL;
    json_each (it, list) {
        struct backup_table *x = &out->tables[out->table_count];
        if (!err)
            err = read_table(t, it, x);
        for (size_t i = 0; !err && i < out->table_count; i++)
            if (str_eq(out->tables[i].name, x->name))
                err = wrong(t, "a table is there twice");
        out->table_count++;
    }
    return err;
}

/* The migrations of the database must be the first ones of this program. */
static int read_migrations(struct task *t, const struct json *j, struct backup *out)
{
    const struct json *list = json_get(j, "migrations");
    if (!json_first(list))
        return wrong(t, "it has no migrations");
    if (list->count > schema_migration_count)
        return task_fail(t, ERR_CONFLICT,
                         "the backup is of a newer millrace (%.*s): it has migration %04d, this "
                         "one knows those up to %04d; use that millrace",
                         STR_ARG(out->version), (int)list->count, (int)schema_migration_count);
    struct str *sums = ARENA_ARRAY(task_arena(t), struct str, list->count);
    json_each (it, list) {
        const struct schema_migration *m = &schema_migrations[out->schema];
        sums[out->schema++] = json_str(it);
        if (!str_eq(json_str(it), str_of(m->checksum)))
            return task_fail(t, ERR_CONFLICT,
                             "migration %04d_%s of the backup is not the one of this millrace: use "
                             "the millrace that made it (%.*s)",
                             (int)m->number, m->name, STR_ARG(out->version));
    }
    out->checksums = sums;
    return 0;
}

int backup_manifest_read(struct task *t, struct str text, struct backup *out)
{
    const struct json *j;
    struct json_error e;
    int64_t format = 0;
    *out = (struct backup){.schema = 0};
    if (json_parse(task_arena(t), text, &j, &e))
        return wrong(t, arena_printf(task_arena(t), "line %zu, column %zu: %s", e.line, e.column,
                                     e.message));
    if (!json_int(json_get(j, "format"), &format) || format < 1)
        return wrong(t, "it has no format");
    out->version = json_str(json_get(j, "millrace"));
    if (format > BACKUP_FORMAT || !out->version.p)
        return task_fail(t, ERR_CONFLICT, "the backup is of a newer millrace: use that one");
    out->at = json_str(json_get(j, "at"));
    if (!out->at.p || !time_from_iso(out->at, &out->at_ms))
        return wrong(t, "it has no time");
    out->at_ms /= 1000;
    int err = read_migrations(t, j, out);
    if (!err)
        err = read_tables(t, j, out);
    return err ? err : read_file(t, json_get(j, "redis"), STR(BACKUP_REDIS), &out->redis);
}
