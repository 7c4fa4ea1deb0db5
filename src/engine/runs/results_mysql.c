/* Results of a run that is archived, by the index `shown` of search_result: each statement here
 * reads one range of it, in its order, and nothing more. */
#include "engine/runs/results_private.h"

#define ROWS                                                                                       \
    "SELECT id, doi, block_key, ai_result FROM search_result FORCE INDEX (shown) WHERE query_id "  \
    "= ?"
/* MariaDB would sort if block_key were named, although there is one only. */
#define REST_OF_BLOCK " AND block_key = ? AND doi > ? ORDER BY doi LIMIT ?"
#define REST_OF_RANK  " AND block_key > ? ORDER BY block_key, doi LIMIT ?"

static const char *const rest_of_block[RESULTS_RANKS] = {
    [RESULTS_HIT] = ROWS " AND relevant = 1" REST_OF_BLOCK,
    [RESULTS_MISS] = ROWS " AND relevant = 0" REST_OF_BLOCK,
    [RESULTS_FAILED] = ROWS " AND relevant IS NULL" REST_OF_BLOCK,
};
static const char *const rest_of_rank[RESULTS_RANKS] = {
    [RESULTS_HIT] = ROWS " AND relevant = 1" REST_OF_RANK,
    [RESULTS_MISS] = ROWS " AND relevant = 0" REST_OF_RANK,
    [RESULTS_FAILED] = ROWS " AND relevant IS NULL" REST_OF_RANK,
};

struct reading {
    const struct results *r;
    struct run_id id;
    size_t limit;
    struct results_page *page;
    struct results_place last; /* of the page */
    bool more;                 /* there is a row behind it */
};

static int take_rows(struct task *t, struct reading *x, enum results_kind rank,
                     const struct sql_rows *rows)
{
    struct results_page *page = x->page;
    for (size_t i = 0; i < rows->count; i++) {
        const struct sql_value *cell = sql_row(rows, i);
        if (page->count == x->limit) {
            x->more = true;
            return 0;
        }
        struct result result;
        if (result_read_columns(task_arena(t), cell[2].s, cell[3].s, &result))
            return task_fail(t, ERR_PROTO, "the result of %.*s is damaged", STR_ARG(cell[1].s));
        int err = results_row(t, cell[1].s, result, &page->rows[page->count++]);
        if (err)
            return err;
        x->last = (struct results_place){.archived = true, .rank = rank, .id = cell[0].i};
    }
    return 0;
}

/* The block and DOI that the page before ended with. They do not change when the verdict does. */
static int find_place(struct task *t, struct reading *x, int64_t row, struct str *block_key,
                      struct str *doi)
{
    struct sql_rows rows;
    int err = sql_call(t, x->r->sql, &rows,
                       "SELECT block_key, doi FROM search_result WHERE id = ? AND query_id = ?",
                       sql_int(row), sql_text(x->id.qid));
    if (!err && rows.count == 0)
        err = task_fail(t, ERR_INVALID, "not a cursor that we gave");
    if (err)
        return err;
    *block_key = rows.cells[0].s;
    *doi = rows.cells[1].s;
    return 0;
}

static int read_block(struct task *t, struct reading *x, enum results_kind rank,
                      struct str block_key, struct str doi)
{
    struct sql_rows rows;
    int err = sql_call(t, x->r->sql, &rows, rest_of_block[rank], sql_text(x->id.qid),
                       sql_text(block_key), sql_text(doi), sql_int((int64_t)x->limit + 1));
    return err ? err : take_rows(t, x, rank, &rows);
}

static int read_rank(struct task *t, struct reading *x, enum results_kind rank,
                     struct str block_key)
{
    struct sql_rows rows;
    int64_t left = (int64_t)(x->limit - x->page->count);
    int err = sql_call(t, x->r->sql, &rows, rest_of_rank[rank], sql_text(x->id.qid),
                       sql_text(block_key), sql_int(left + 1));
    return err ? err : take_rows(t, x, rank, &rows);
}

int results_mysql_page(struct task *t, const struct results *r, struct run_id id,
                       enum results_kind kind, const struct results_place *from, int64_t limit,
                       struct results_page *out)
{
    struct reading x = {.r = r, .id = id, .limit = (size_t)limit, .page = out};
    struct str block_key = STR(""), doi;
    int err = 0;
    out->rows = ARENA_ARRAY(task_arena(t), struct result_row, limit);
    if (from->id) {
        err = find_place(t, &x, from->id, &block_key, &doi);
        if (!err)
            err = read_block(t, &x, from->rank, block_key, doi);
    }
    enum results_kind rank = from->id ? from->rank : kind == RESULTS_ALL ? RESULTS_HIT : kind;
    enum results_kind last = kind == RESULTS_ALL ? RESULTS_FAILED : kind;
    for (; !err && !x.more && rank <= last; rank++) {
        err = read_rank(t, &x, rank, block_key);
        block_key = STR("");
    }
    if (!err && x.more)
        out->next = results_cursor(task_arena(t), kind, &x.last);
    return err;
}

int results_mysql_find(struct task *t, const struct results *r, struct run_id id, struct str doi,
                       struct result_row *out)
{
    struct sql_rows rows;
    struct result result;
    int err = sql_call(t, r->sql, &rows,
                       "SELECT block_key, ai_result FROM search_result"
                       " WHERE query_id = ? AND doi = ?",
                       sql_text(id.qid), sql_text(doi));
    if (err)
        return err;
    if (rows.count == 0)
        return ERR_NOT_FOUND;
    if (result_read_columns(task_arena(t), rows.cells[0].s, rows.cells[1].s, &result))
        return task_fail(t, ERR_PROTO, "the result of %.*s is damaged", STR_ARG(doi));
    return results_row(t, doi, result, out);
}
