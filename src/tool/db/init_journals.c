/* contentlist: the rows of InfoList.Paper.csv, and every folder of Data/. */
#include "tool/db/init.h"

#define PRICE_ASSUMED 1
#define COLUMNS       5 /* Name, FullName, DataRange, UpdateDate, Price */

struct job {
    const struct init_folder *folder;
    struct map *known; /* name: its row in the database, or in what is to be written */
    struct sql_value *cells;
    size_t row_count;
    struct str *assumed; /* folders without a row */
    size_t assumed_count;
};

static int read_known(struct task *t, struct sql *c, struct map *known)
{
    struct sql_rows r;
    int err =
        sql_on(t, c, &r, "SELECT Name, FullName, DataRange, UpdateDate, Price FROM contentlist");
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        map_set(known, row[0].s, (void *)(uintptr_t)row);
    }
    return err;
}

static bool same_text(const struct sql_value *a, const struct sql_value *b)
{
    struct str x = a->type == SQL_NULL ? STR_NULL : a->s;
    struct str y = b->type == SQL_NULL ? STR_NULL : b->s;
    return !x.p == !y.p && str_eq(x, y);
}

static bool same_row(const struct sql_value *a, const struct sql_value *b)
{
    for (int i = 1; i < COLUMNS - 1; i++)
        if (!same_text(&a[i], &b[i]))
            return false;
    return a[COLUMNS - 1].i == b[COLUMNS - 1].i;
}

static void add_row(struct job *j, const struct init_journal_row *row)
{
    struct sql_value *cells = j->cells + COLUMNS * j->row_count;
    cells[0] = sql_text(row->name);
    cells[1] = sql_text(row->full_name.p ? row->full_name : row->name);
    cells[2] = sql_text(row->data_range);
    cells[3] = sql_text(row->update_date);
    cells[4] = sql_int(row->price);
    const struct sql_value *old = map_get(j->known, row->name);
    if (old && same_row(old, cells))
        return;
    map_set(j->known, row->name, cells);
    j->row_count++;
}

static void add_folder(struct job *j, struct str name)
{
    if (map_get(j->known, name))
        return;
    add_row(j, &(struct init_journal_row){.name = name, .price = PRICE_ASSUMED});
    j->assumed[j->assumed_count++] = name;
}

static int run(struct task *t, struct sql *c, void *arg)
{
    struct job *j = arg;
    const struct init_folder *f = j->folder;
    size_t most = f->row_count + f->journal_count;
    j->cells = ARENA_ARRAY(task_arena(t), struct sql_value, COLUMNS * most);
    j->assumed = ARENA_ARRAY(task_arena(t), struct str, f->journal_count);
    j->row_count = j->assumed_count = 0;
    j->known = map_new();
    int err = read_known(t, c, j->known);
    for (size_t i = 0; !err && i < f->row_count; i++)
        add_row(j, &f->rows[i]);
    for (size_t i = 0; !err && i < f->journal_count; i++)
        add_folder(j, f->journals[i]);
    if (!err)
        err = sql_bulk(
            t, c, "INSERT INTO contentlist (Name, FullName, DataRange, UpdateDate, Price) VALUES",
            "ON DUPLICATE KEY UPDATE FullName = VALUES(FullName), DataRange = VALUES(DataRange),"
            " UpdateDate = VALUES(UpdateDate), Price = VALUES(Price)",
            COLUMNS, j->row_count, j->cells, NULL);
    map_free(j->known);
    return err;
}

int init_journals(struct task *t, struct init *in)
{
    struct job j = {.folder = &in->folder};
    int err = sql_tx(t, in->db->sql, run, &j);
    if (err)
        return err;
    in->report->totals.journals_changed = (int64_t)j.row_count;
    for (size_t i = 0; i < j.assumed_count; i++)
        init_report_problem(
            in->report, arena_printf(task_arena(t), "Data/%.*s", STR_ARG(j.assumed[i])), 0, false,
            "no valid row in InfoList.Paper.csv; price 1 is assumed", STR(""));
    return 0;
}
