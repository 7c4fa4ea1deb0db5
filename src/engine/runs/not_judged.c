/* How many papers of a run were not judged, because they have neither title nor abstract (SCR-18).
 *
 * To money and progress they are failures: no verdict, no charge, and a retry looks again, because
 * the corpus may have a text by then. Their results tell them apart, and are counted when failures
 * are shown. */
#include "engine/runs/row.h"
#include "engine/money/result.h"
#include "engine/store/keys.h"

#define AT_ONCE     500
#define COUNTED_MAX 20000 /* more failures than this are no matter of missing texts */

static int count_archived(struct task *t, struct sql_pool *sql, struct run_id id, int64_t *out)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT COUNT(*) FROM search_result WHERE query_id = ?"
                       " AND relevant IS NULL"
                       " AND JSON_EXTRACT(ai_result, '$.not_judged') IS NOT NULL",
                       sql_text(id.qid));
    if (!err)
        *out = r.cells[0].i;
    return err;
}

static int64_t count_results(struct task *t, const struct redis_reply *r)
{
    int64_t n = 0;
    for (size_t i = 0; r->type == REDIS_ARRAY && i < r->count; i++) {
        struct result result;
        struct arena_mark mark = arena_mark(task_arena(t));
        if (r->items[i]->type == REDIS_STRING &&
            !result_read(task_arena(t), r->items[i]->str, &result))
            n += result.not_judged;
        arena_reset(task_arena(t), mark);
    }
    return n;
}

static int count_live(struct task *t, struct redis *redis, struct run_id id, int64_t *out)
{
    struct arena *a = task_arena(t);
    struct str failed = key_failed(a, id.uid, id.qid), results = key_result(a, id.uid, id.qid);
    const struct redis_reply *dois, *r;
    int64_t n = 0;
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
            n += count_results(t, r);
    }
    if (!err)
        *out = n;
    return err;
}

int run_count_not_judged(struct task *t, struct redis *redis, struct sql_pool *sql,
                         struct run_id id, bool archived, int64_t failed, int64_t *out)
{
    *out = 0;
    if (failed == 0)
        return 0;
    int err = archived ? count_archived(t, sql, id, out) : count_live(t, redis, id, out);
    if (*out > failed) /* the two were read one after the other */
        *out = failed;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}
