/* How many papers of a run were not judged, because they have neither title nor abstract (SCR-18),
 * and how many because they had left the corpus (SCR-1).
 *
 * To money and progress they are failures: no verdict, no charge, and a retry looks again, because
 * the corpus may have a text by then, or the paper. Their results tell them apart, and are counted
 * when failures are shown. */
#include "engine/runs/row.h"
#include "engine/money/result.h"
#include "engine/store/keys.h"

#define AT_ONCE     500
#define COUNTED_MAX 20000 /* more failures than this are no matter of missing texts */

static int count_archived(struct task *t, struct sql_pool *sql, struct run_id id,
                          struct run_unjudged *out)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT COUNT(JSON_EXTRACT(ai_result, '$.not_judged')),"
                       " COUNT(JSON_EXTRACT(ai_result, '$.withdrawn'))"
                       " FROM search_result WHERE query_id = ? AND relevant IS NULL",
                       sql_text(id.qid));
    if (!err)
        *out = (struct run_unjudged){r.cells[0].i, r.cells[1].i};
    return err;
}

static void count_results(struct task *t, const struct redis_reply *r, struct run_unjudged *n)
{
    for (size_t i = 0; r->type == REDIS_ARRAY && i < r->count; i++) {
        struct result result;
        struct arena_mark mark = arena_mark(task_arena(t));
        if (r->items[i]->type == REDIS_STRING &&
            !result_read(task_arena(t), r->items[i]->str, &result)) {
            n->not_judged += result.not_judged;
            n->withdrawn += result.withdrawn;
        }
        arena_reset(task_arena(t), mark);
    }
}

static int count_live(struct task *t, struct redis *redis, struct run_id id,
                      struct run_unjudged *out)
{
    struct arena *a = task_arena(t);
    struct str failed = key_failed(a, id.uid, id.qid), results = key_result(a, id.uid, id.qid);
    const struct redis_reply *dois, *r;
    struct run_unjudged n = {0};
    int err = redis_call(t, redis, failed, &dois, STR("SMEMBERS"), failed);
    size_t count = !err && dois->type == REDIS_ARRAY ? dois->count : 0;
    for (size_t at = 0; !err && at < count && at < COUNTED_MAX; at += AT_ONCE) {
        struct str *argv = ARENA_ARRAY(a, struct str, AT_ONCE + 2);
        argv[0] = STR("HMGET");
        argv[1] = results;
        size_t k = 0;
        for (; k < AT_ONCE && at + k < count; k++)
            argv[k + 2] = dois->items[at + k]->str;
        err = redis_argv(t, redis, results, k + 2, argv, &r);
        if (!err)
            count_results(t, r, &n);
    }
    if (!err)
        *out = n;
    return err;
}

int run_count_unjudged(struct task *t, struct redis *redis, struct sql_pool *sql, struct run_id id,
                       bool archived, int64_t failed, struct run_unjudged *out)
{
    *out = (struct run_unjudged){0};
    if (failed == 0)
        return 0;
    int err = archived ? count_archived(t, sql, id, out) : count_live(t, redis, id, out);
    if (out->not_judged > failed) /* these were read one after the other */
        out->not_judged = failed;
    if (out->withdrawn > failed - out->not_judged)
        out->withdrawn = failed - out->not_judged;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}
