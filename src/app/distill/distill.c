#include "app/distill/distill.h"

#include "base/map.h"
#include "engine/chosen/frozen.h"
#include "engine/runs/row.h"
#include "engine/runs/scope.h"
#include "engine/store/keys.h"

/* --- what there is to distil --- */

static int read_original(struct task *t, const struct runs *r, struct run_id id,
                         struct run_row *out)
{
    int err = run_row_find(t, r->sql, id, out);
    return err ? err : run_row_settled(t, out, "distilled");
}

/* Relevant papers by journal. */
static int count_papers(struct task *t, const struct runs *r, struct run_id id,
                        struct distill_estimate *e)
{
    struct sql_rows rows;
    int err = sql_call(t, r->sql, &rows,
                       "SELECT block_key, COUNT(*) FROM search_result WHERE query_id = ?"
                       " AND relevant = 1 GROUP BY block_key ORDER BY block_key",
                       sql_text(id.qid));
    if (err)
        return err;
    struct map *known = map_new();
    e->journals = ARENA_ARRAY(task_arena(t), struct catalog_estimate_row, rows.count + 1);
    for (size_t i = 0; i < rows.count && !err; i++) {
        const struct sql_value *cell = sql_row(&rows, i);
        struct str journal, slice;
        int64_t year;
        if (!key_block_read(cell[0].s, &journal, &year, &slice)) {
            err = task_fail(t, ERR_PROTO, "%.*s is no block", STR_ARG(cell[0].s));
            break;
        }
        struct catalog_estimate_row *row = map_get(known, journal);
        if (!row) {
            row = &e->journals[e->journal_count++];
            *row = (struct catalog_estimate_row){.journal = journal, .price = -1};
            map_set(known, journal, row);
        }
        row->papers += cell[1].i;
        e->papers += cell[1].i;
    }
    map_free(known);
    return err;
}

/* --- what it costs --- */

/* Copies the original's prices. A journal that has none there keeps -1. */
static void take_prices(struct task *t, const struct run_row *original, struct distill_estimate *e)
{
    const struct json *params;
    if (json_parse(task_arena(t), original->params, &params, NULL))
        return;
    struct map *rows = map_new();
    for (size_t i = 0; i < e->journal_count; i++)
        map_set(rows, e->journals[i].journal, &e->journals[i]);
    json_each (j, json_get(params, "journals")) {
        struct str name = json_str(json_get(j, "name"));
        struct catalog_estimate_row *row = name.p ? map_get(rows, name) : NULL;
        if (row)
            (void)json_int(json_get(j, "price"), &row->price);
    }
    map_free(rows);
}

/* For a run of the system before millrace, which had other parameters: the price of today. */
static int take_price_of_today(struct task *t, const struct runs *r,
                               struct catalog_estimate_row *row)
{
    struct catalog_choice choice = {&row->journal, 1, 1000, 9999};
    struct catalog_estimate now;
    struct str unknown;
    bool degraded;
    int err = catalog_price(t, r->catalog, &choice, &now, &unknown, &degraded);
    if (err == ERR_NOT_FOUND)
        return task_fail(t, ERR_CONFLICT, "%.*s is not in the catalog any more and has no price",
                         STR_ARG(row->journal));
    if (!err)
        row->price = now.rows[0].price;
    return err;
}

static int add_costs(struct task *t, const struct runs *r, struct distill_estimate *e)
{
    int err = 0;
    for (size_t i = 0; i < e->journal_count && !err; i++) {
        struct catalog_estimate_row *row = &e->journals[i];
        if (row->price < 0)
            err = take_price_of_today(t, r, row);
        if (!err && (__builtin_mul_overflow(row->papers, row->price, &row->cents) ||
                     __builtin_mul_overflow(row->cents, (int64_t)DISTILL_CENTS, &row->cents) ||
                     __builtin_add_overflow(e->cents, row->cents, &e->cents)))
            err = task_fail(t, ERR_LIMIT, "the papers cost more than can be counted");
    }
    return err;
}

int distill_estimate(struct task *t, const struct runs *r, struct run_id original,
                     struct distill_estimate *out)
{
    struct distill_estimate e = {.papers = 0};
    struct run_row row;
    int err = read_original(t, r, original, &row);
    if (!err)
        err = count_papers(t, r, original, &e);
    if (err)
        return err;
    take_prices(t, &row, &e);
    err = add_costs(t, r, &e);
    if (err)
        return err;
    e.changed_ms = row.changed_ms;
    *out = e;
    return 0;
}

/* --- submitting --- */

static struct str params_of(struct task *t, struct str question, const struct distill_estimate *e,
                            int64_t chunk, const struct judge_origin *judge)
{
    struct buf b;
    struct json_writer j;
    jw_begin(&j, &b);
    jw_put_str(&j, "kind", STR(DISTILL_KIND));
    jw_put_str(&j, "question", question);
    frozen_put(&j, e->papers, chunk);
    scope_put_judge(&j, judge);
    run_put_journals(&j, e->journals, e->journal_count);
    return jw_finish(&j, task_arena(t));
}

struct freezing {
    struct run_id original;
    const struct distill_estimate *estimate;
};

/* The original's row is locked, and unchanged since its papers were counted. */
static int freeze(struct task *t, struct sql *c, struct str qid, void *arg)
{
    const struct freezing *f = arg;
    struct run_row row;
    struct sql_rows done;
    int err = run_row_lock(t, c, f->original, &row);
    if (!err)
        err = run_row_settled(t, &row, "distilled");
    if (!err && row.changed_ms != f->estimate->changed_ms)
        err = task_fail(t, ERR_CONFLICT, "the run has gone on meanwhile: try again");
    if (!err)
        err = sql_on(t, c, &done,
                     "INSERT INTO distill_paper (query_id, number, doi, block_key)"
                     " SELECT ?, ROW_NUMBER() OVER (ORDER BY block_key, doi) - 1, doi, block_key"
                     " FROM search_result WHERE query_id = ? AND relevant = 1",
                     sql_text(qid), sql_text(f->original.qid));
    if (!err && (int64_t)done.affected != f->estimate->papers)
        err = task_fail(t, ERR_CONFLICT, "results of the run have come meanwhile: try again");
    return err;
}

static int submit(struct task *t, const struct runs *r, struct run_id original,
                  const struct run_request *q, char qid[RUN_ID_BYTES])
{
    struct distill_estimate e;
    int64_t chunk;
    if (!cache_trusts_redis(r->cache))
        return task_fail(t, ERR_UNAVAILABLE, "runs cannot be submitted while Redis is away");
    int err = distill_estimate(t, r, original, &e);
    if (!err && e.papers == 0)
        err = task_fail(t, ERR_CONFLICT, "none of the papers of this run is relevant");
    if (!err)
        err = frozen_chunk_size(t, r->sql, original.uid, e.papers, &chunk);
    if (err)
        return err;
    struct freezing f = {original, &e};
    const struct judge_origin *judge = scope_judge_now(t, r);
    struct run_entry entry = {.request = q,
                              .judge = judge,
                              .papers = e.papers,
                              .cents = e.cents,
                              .params = params_of(t, q->question, &e, chunk, judge),
                              .also = freeze,
                              .arg = &f};
    return run_enter(t, r, &entry, qid);
}

int distill_submit(struct task *t, const struct runs *r, struct run_id original,
                   struct str question, struct str request_id, char qid[RUN_ID_BYTES])
{
    struct run_request q = {.uid = original.uid,
                            .id = request_id,
                            .question = question,
                            .original_query_id = original.qid};
    int err = run_repeated(t, r, &q, qid);
    return err || qid[0] ? err : submit(t, r, original, &q, qid);
}
