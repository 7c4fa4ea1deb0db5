/* The three tables of PaperAndTagInfo/. Columns are found by their names. */
#include "corpus/csv.h"
#include "tool/db/init_folder_private.h"

#define ROWS_MAX       1000000
#define COLUMNS_MAX    5
#define CELL_BYTES_MAX 65535 /* of what is stored as TEXT */
#define PRICE_MAX      1000000

struct table {
    const char *name;
    const char *columns[COLUMNS_MAX];
    bool needed[COLUMNS_MAX];
    /* Takes a row, its cells in the order of columns; those of absent columns and empty ones have
     * p == NULL. Returns what is wrong with it, NULL: nothing. seen tells rows apart. */
    const char *(*add)(struct folder_reading *f, struct map *seen, const struct str *cells,
                       int64_t line);
};

/* A repeated row: nothing is lost without it. */
static const char twice[] = "an earlier row has this pair";

/* --- rows --- */

struct str init_pair_key(struct arena *a, struct str first, struct str second)
{
    return STR_JOIN(a, first, STR("\0"), second);
}

static const char *add_journal(struct folder_reading *f, struct map *seen, const struct str *cells,
                               int64_t line)
{
    (void)line;
    struct init_folder *out = f->out;
    const char *problem = folder_name_problem(cells[0]);
    if (problem)
        return problem;
    for (int i = 1; i < 4; i++)
        if (cells[i].n > CELL_BYTES_MAX)
            return "a cell of more than 65535 bytes";
    int64_t price;
    if (!str_to_i64(cells[4], &price) || price < 0 || price > PRICE_MAX)
        return "the price is not a whole number from 0 to 1000000";
    if (!map_add(seen, cells[0]))
        return "an earlier row has this name";
    out->rows = init_room(f->arena, out->rows, out->row_count, sizeof *out->rows);
    out->rows[out->row_count++] = (struct init_journal_row){
        .name = cells[0],
        .full_name = cells[1],
        .data_range = cells[2],
        .update_date = cells[3],
        .price = price,
    };
    return NULL;
}

static void add_to(struct folder_reading *f, struct init_pair **v, size_t *count,
                   const struct str *cells, int64_t line)
{
    *v = init_room(f->arena, *v, *count, sizeof **v);
    (*v)[(*count)++] = (struct init_pair){cells[0], cells[1], line};
}

static const char *add_tag(struct folder_reading *f, struct map *seen, const struct str *cells,
                           int64_t line)
{
    const char *problem = folder_name_problem(cells[0]);
    if (problem)
        return problem;
    if (folder_name_problem(cells[1]))
        return "the type is missing or invalid";
    if (!map_add(seen, cells[0]))
        return "an earlier row has this tag";
    add_to(f, &f->out->tags, &f->out->tag_count, cells, line);
    return NULL;
}

static const char *add_pair(struct folder_reading *f, struct map *seen, const struct str *cells,
                            int64_t line)
{
    for (int i = 0; i < 2; i++) {
        const char *problem = folder_name_problem(cells[i]);
        if (problem)
            return problem;
    }
    if (!map_add(seen, init_pair_key(f->arena, cells[0], cells[1])))
        return twice;
    add_to(f, &f->out->pairs, &f->out->pair_count, cells, line);
    return NULL;
}

static const struct table journal_table = {
    .name = "PaperAndTagInfo/InfoList.Paper.csv",
    .columns = {"Name", "FullName", "DataRange", "UpdateDate", "Price"},
    .needed = {true, false, false, false, true},
    .add = add_journal,
};
static const struct table tag_table = {
    .name = "PaperAndTagInfo/InfoList.Tag.csv",
    .columns = {"Tag", "TagType"},
    .needed = {true, true},
    .add = add_tag,
};
static const struct table pair_table = {
    .name = "PaperAndTagInfo/InfoList.PaperWithTag.csv",
    .columns = {"Name", "Tag"},
    .needed = {true, true},
    .add = add_pair,
};

/* --- tables --- */

static int find_columns(struct folder_reading *f, const struct table *table, const struct csv *c,
                        int at[COLUMNS_MAX])
{
    for (int i = 0; i < COLUMNS_MAX; i++) {
        at[i] = table->columns[i] ? csv_column(c, str_of(table->columns[i])) : -1;
        if (at[i] < 0 && table->needed[i])
            return folder_fail(f, ERR_INVALID, table->name, "there is no column \"%s\"%s",
                               table->columns[i],
                               c->column_count == 1 ? "; the first row has no commas" : "");
    }
    return 0;
}

static void take_row(struct folder_reading *f, const struct table *table, struct map *seen,
                     const int at[COLUMNS_MAX], const struct csv_row *row)
{
    struct str cells[COLUMNS_MAX];
    for (int i = 0; i < COLUMNS_MAX; i++) {
        cells[i] = at[i] < 0 ? STR_NULL : str_trim(row->cells[at[i]]);
        if (cells[i].n == 0)
            cells[i] = STR_NULL;
    }
    const char *problem = table->add(f, seen, cells, row->line);
    if (problem)
        init_report_problem(f->report, table->name, row->line, problem != twice, problem, cells[0]);
}

static int take_rows(struct folder_reading *f, const struct table *table, struct csv *c,
                     const int at[COLUMNS_MAX], struct map *seen)
{
    struct csv_row row;
    int err, rows = 0;
    while ((err = csv_next(c, f->arena, &row)) != ERR_NOT_FOUND) {
        if (++rows > ROWS_MAX)
            return folder_fail(f, ERR_INVALID, table->name, "has more than %d rows", ROWS_MAX);
        if (err)
            init_report_problem(f->report, table->name, c->error_line, true,
                                "a row that cannot be read", str_of(c->error));
        else
            take_row(f, table, seen, at, &row);
    }
    return 0;
}

static int read_table(struct folder_reading *f, const struct table *table, bool *found)
{
    struct str text;
    int err = folder_text(f, table->name, &text);
    if (err)
        return err;
    *found = text.p != NULL;
    if (!*found) {
        init_report_problem(f->report, table->name, 0, false,
                            "is missing; its tables are left unchanged", STR(""));
        return 0;
    }
    struct csv *c = ARENA_NEW(f->arena, struct csv);
    if (csv_open(c, f->arena, text))
        return folder_fail(f, ERR_INVALID, table->name, "%s", c->error);
    int at[COLUMNS_MAX];
    err = find_columns(f, table, c, at);
    struct map *seen = map_new();
    if (!err)
        err = take_rows(f, table, c, at, seen);
    map_free(seen);
    return err;
}

int folder_tables(struct folder_reading *f)
{
    int err = read_table(f, &journal_table, &f->out->has_rows);
    if (!err)
        err = read_table(f, &tag_table, &f->out->has_tags);
    return err ? err : read_table(f, &pair_table, &f->out->has_pairs);
}
