/* Which items have which numbers: by runs of ids, which pool_run has (0027_pool_places.sql). */
#include "app/pool/pools_private.h"
#include "base/json.h"

#define RUN_ITEMS 16 /* on average: then a statement for each takes less time than one join */

static struct str ids_of(struct task *t, const struct pool_runs *runs)
{
    struct buf b;
    buf_init(&b);
    buf_add_char(&b, '[');
    for (size_t i = 0; i < runs->count; i++)
        for (int64_t k = 0; k < runs->list[i].items; k++) {
            if (b.len > 1)
                buf_add_char(&b, ',');
            buf_add_int(&b, runs->list[i].id + k);
        }
    buf_add_char(&b, ']');
    struct str s = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return s;
}

bool pool_runs_long(const struct pool_runs *runs)
{
    return (int64_t)runs->count * RUN_ITEMS <= runs->items;
}

void pool_runs_init(struct task *t, struct pool_runs *runs, size_t most)
{
    *runs = (struct pool_runs){.list = ARENA_ARRAY(task_arena(t), struct pool_run, most + 1)};
}

void pool_runs_add(struct pool_runs *runs, int64_t number, int64_t id, int64_t items)
{
    struct pool_run *last = runs->count ? &runs->list[runs->count - 1] : NULL;
    if (last && last->number + last->items == number && last->id + last->items == id)
        last->items += items;
    else
        runs->list[runs->count++] = (struct pool_run){number, id, items};
    runs->items += items;
}

#define INTO "INSERT INTO pool_run (type, group_id, number, id, items, ids) VALUES"
enum { COLUMNS = 6 };

/* One row for all: a row for each costs as much as all else that becomes of an item. */
static int note_list(struct task *t, struct sql *c, struct pool_id id, const struct pool_runs *runs)
{
    return sql_on(t, c, NULL, INTO " (?, ?, ?, ?, ?, ?)", POOL_VALUES(id),
                  sql_int(runs->list[0].number), sql_int(runs->list[0].id), sql_int(runs->items),
                  sql_text(ids_of(t, runs)));
}

int pool_runs_note(struct task *t, struct sql *c, struct pool_id id, const struct pool_runs *runs)
{
    if (!pool_runs_long(runs))
        return note_list(t, c, id, runs);
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, COLUMNS * runs->count);
    for (size_t i = 0; i < runs->count; i++) {
        const struct pool_run *r = &runs->list[i];
        const struct sql_value row[COLUMNS] = {POOL_VALUES(id), sql_int(r->number), sql_int(r->id),
                                               sql_int(r->items), sql_text(STR_NULL)};
        memcpy(&cells[COLUMNS * i], row, sizeof row);
    }
    return sql_bulk(t, c, INTO, "", COLUMNS, runs->count, cells, NULL);
}

#define FIND_RUNS                                                                                  \
    "SELECT number, id, items, ids FROM pool_run WHERE type = ? AND group_id = ? AND number <= ?"  \
    " AND number + items > ? ORDER BY number"

static void add_part(struct pool_runs *out, const struct pool_run *r, int64_t from, int64_t to)
{
    int64_t begin = r->number < from ? from : r->number, end = r->number + r->items;
    if (end > to + 1)
        end = to + 1;
    if (begin < end)
        pool_runs_add(out, begin, r->id + begin - r->number, end - begin);
}

static bool is_list(const struct sql_value *row)
{
    return row[3].type != SQL_NULL && row[3].s.p;
}

/* One that cannot be read is none: its numbers are looked for then. */
static void add_list(struct task *t, struct pool_runs *out, const struct sql_value *row,
                     int64_t from, int64_t to)
{
    const struct json *list;
    struct pool_run one = {.number = row[0].i, .items = 1};
    if (json_parse(task_arena(t), row[3].s, &list, NULL))
        return;
    json_each (it, list) {
        if (one.number < row[0].i + row[2].i && json_int(it, &one.id))
            add_part(out, &one, from, to);
        one.number++;
    }
}

static void take_rows(struct task *t, const struct sql_rows *r, int64_t from, int64_t to,
                      struct pool_runs *out)
{
    size_t most = 0;
    for (size_t i = 0; i < r->count; i++)
        most += is_list(sql_row(r, i)) ? (size_t)sql_row(r, i)[2].i : 1;
    pool_runs_init(t, out, most);
    for (size_t i = 0; i < r->count; i++) {
        const struct sql_value *row = sql_row(r, i);
        if (is_list(row))
            add_list(t, out, row, from, to);
        else
            add_part(out, &(struct pool_run){row[0].i, row[1].i, row[2].i}, from, to);
    }
    out->whole = out->items == to - from + 1;
}

int pool_runs_find(struct task *t, struct sql *c, struct pool_id id, int64_t from, int64_t to,
                   struct pool_runs *out)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, FIND_RUNS, POOL_VALUES(id), sql_int(to), sql_int(from));
    if (!err)
        take_rows(t, &r, from, to, out);
    return err;
}

int pool_runs_look(struct task *t, struct sql_pool *sql, struct pool_id id, int64_t from,
                   int64_t to, struct pool_runs *out)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r, FIND_RUNS, POOL_VALUES(id), sql_int(to), sql_int(from));
    if (!err)
        take_rows(t, &r, from, to, out);
    return err;
}

const char *pool_runs_sql(struct task *t, struct pool_id id, const struct pool_runs *runs,
                          const char *begin, const char *end)
{
    const char *source = runs->whole ? POOL_IDS " STRAIGHT_JOIN $table AS i FORCE INDEX (PRIMARY)"
                                                " ON i.id = j.id"
                                     : "(SELECT ? AS ids) AS j STRAIGHT_JOIN $table AS i"
                                       " FORCE INDEX (in_order)";
    struct arena *a = task_arena(t);
    return pool_sql(a, id.type, arena_printf(a, "%s%s%s", begin, source, end));
}

struct sql_value pool_runs_value(struct task *t, const struct pool_runs *runs)
{
    return sql_text(runs->whole ? ids_of(t, runs) : STR("[]"));
}
