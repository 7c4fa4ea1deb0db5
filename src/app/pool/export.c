#include "app/pool/import.h"

#include "app/pool/pools_private.h"
#include "base/json.h"
#include "base/time.h"

#define PIECE_BYTES (256 * 1024)

struct exporting {
    enum pool_format format;
    struct buf out;
    pool_export_fn *fn;
    void *arg;
};

static int flush(struct task *t, struct exporting *e)
{
    int err = e->out.len ? e->fn(t, buf_str(&e->out), e->arg) : 0;
    buf_clear(&e->out);
    return err;
}

static struct str time_of(struct task *t, int64_t seconds)
{
    char iso[TIME_ISO_BYTES];
    if (seconds == 0)
        return STR("");
    time_iso(seconds * 1000000, iso);
    return str_dup(task_arena(t), str_of(iso));
}

static void add_csv(struct task *t, struct buf *out, const struct sql_value *row)
{
    struct csv_writer w = {.out = out};
    csv_add_int(&w, row[0].i);
    csv_add_int(&w, row[1].i);
    csv_add(&w, row[2].s);
    csv_add(&w, time_of(t, row[3].i));
    csv_end_row(&w);
}

static void add_json(struct task *t, struct buf *out, const struct sql_value *row)
{
    struct json_writer w;
    struct str at = time_of(t, row[3].i);
    jw_init(&w, out);
    jw_object(&w);
    jw_put_int(&w, "id", row[0].i);
    jw_put_int(&w, "batch_id", row[1].i);
    jw_put_str(&w, "text", row[2].s);
    jw_put_str(&w, "used_at", at.n ? at : STR_NULL);
    jw_end_object(&w);
    buf_add_char(out, '\n');
}

static int add_row(struct task *t, const struct sql_value *row, void *arg)
{
    struct exporting *e = arg;
    if (e->format == POOL_CSV)
        add_csv(t, &e->out, row);
    else
        add_json(t, &e->out, row);
    return e->out.len >= PIECE_BYTES ? flush(t, e) : 0;
}

static void add_header(struct buf *out)
{
    struct csv_writer w = {.out = out};
    static const char *const names[] = {"id", "batch_id", "text", "used_at"};
    buf_add_lit(out, "\xef\xbb\xbf"); /* by this spreadsheets know that it is UTF-8 */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        csv_add(&w, str_of(names[i]));
    csv_end_row(&w);
}

int pool_export(struct task *t, struct sql_pool *sql, struct pool_id id, enum pool_format format,
                bool used, pool_export_fn *fn, void *arg)
{
    struct exporting e = {.format = format, .fn = fn, .arg = arg};
    const char *rows = used ? "SELECT id, batch_id, $text, used_at FROM $table"
                              " FORCE INDEX (in_order) WHERE group_id = ? AND status = 0"
                              " ORDER BY number, batch_id DESC, id"
                            : "SELECT id, batch_id, $text, used_at FROM $table"
                              " FORCE INDEX (in_order) WHERE group_id = ? AND status <> 0"
                              " ORDER BY number, batch_id DESC, id";
    buf_init(&e.out);
    if (format == POOL_CSV)
        add_header(&e.out);
    const struct sql_value group = sql_int(id.group);
    int err = sql_each(t, sql, pool_sql(task_arena(t), id.type, rows), 1, &group, add_row, &e);
    if (!err)
        err = flush(t, &e);
    buf_release(&e.out);
    return err;
}
