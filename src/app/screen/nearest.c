#include "app/screen/nearest.h"

#include "app/screen/application.h"
#include "engine/chosen/frozen.h"
#include "engine/crew/chunks.h"
#include "engine/crew/judged.h"
#include "engine/runs/scope.h"
#include "engine/setup/node.h"

/* --- a list that is whole --- */

/* ERR_CONFLICT also where a repeat may succeed: texts of outages are not shown to users, and these
 * tell them what to do. */
static const struct refusal {
    const char *reason, *text;
} refusals[] = {
    {COLLECTION_EMPTY, "no papers are indexed on this server yet"},
    {COLLECTION_NO_SERVICE, "this server has no embedding service"},
    {COLLECTION_NO_ANSWER, "the embedding service does not answer now, try again later"},
    {COLLECTION_REBUILT, "the index is being made anew and lacks papers, try again later"},
    {COLLECTION_AWAY, "the index does not answer or lacks the latest papers, try again later"},
    {COLLECTION_OTHER,
     "the embedding model has changed and papers are being embedded again, try again later"},
};

/* What is not there now would be missing from the run for ever. */
static int check_whole(struct task *t, const char *reason)
{
    const char *text = "try again later";
    if (!reason)
        return 0;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strcmp(refusals[i].reason, reason) == 0)
            text = refusals[i].text;
    return task_fail(t, ERR_CONFLICT, "the nearest papers cannot be told: %s", text);
}

static int make_list(struct task *t, const struct neighbours_from *from, int64_t uid,
                     const struct nearest_wish *w, struct neighbours *out, struct str *unknown)
{
    struct neighbours_wish wish = {uid, w->nearest.text, w->nearest.papers, w->choice};
    int err = neighbours_find(t, from, &wish, out, unknown);
    if (!err)
        err = check_whole(t, out->reason);
    if (!err && out->count == 0)
        err = task_fail(t, ERR_INVALID, "no paper of these journals and years is indexed");
    return err;
}

/* --- submitting --- */

static struct str params_of(struct task *t, const struct nearest_wish *w,
                            const struct neighbours *list, int64_t chunk,
                            const struct judge_origin *judge)
{
    struct buf b;
    struct json_writer j;
    jw_begin(&j, &b);
    jw_put_str(&j, "kind", STR(NEAREST_KIND));
    jw_put_str(&j, "question", w->question);
    run_put_nearest(&j, &w->nearest, &w->choice);
    jw_put_int(&j, "year_from", w->choice.year_from);
    jw_put_int(&j, "year_to", w->choice.year_to);
    frozen_put(&j, (int64_t)list->count, chunk);
    scope_put_judge(&j, judge);
    run_put_journals(&j, list->cost.rows, list->journal_count);
    return jw_finish(&j, task_arena(t));
}

static int freeze(struct task *t, struct sql *c, struct str qid, void *arg)
{
    const struct neighbours *list = arg;
    struct frozen_paper *papers = ARENA_ARRAY(task_arena(t), struct frozen_paper, list->count);
    for (size_t i = 0; i < list->count; i++)
        papers[i] = (struct frozen_paper){.doi = list->papers[i].doi,
                                          .journal = list->papers[i].journal,
                                          .year = list->papers[i].year};
    return frozen_write(t, c, qid, papers, list->count);
}

static int submit(struct task *t, const struct runs *r, const struct neighbours_from *from,
                  const struct nearest_wish *w, const struct run_request *q, char qid[RUN_ID_BYTES],
                  struct str *unknown)
{
    struct neighbours list;
    int64_t chunk;
    if (!cache_trusts_redis(r->cache))
        return task_fail(t, ERR_UNAVAILABLE, "runs cannot be submitted while Redis is away");
    int err = make_list(t, from, q->uid, w, &list, unknown);
    if (!err)
        err = frozen_chunk_size(t, r->sql, q->uid, (int64_t)list.count, &chunk);
    if (err)
        return err;
    const struct judge_origin *judge = scope_judge_now(t, r);
    struct run_entry entry = {.request = q,
                              .judge = judge,
                              .papers = list.cost.papers,
                              .cents = list.cost.cents,
                              .params = params_of(t, w, &list, chunk, judge),
                              .also = freeze,
                              .arg = &list};
    return run_enter(t, r, &entry, qid);
}

int nearest_submit(struct task *t, const struct runs *r, const struct neighbours_from *from,
                   int64_t uid, const struct nearest_wish *w, char qid[RUN_ID_BYTES],
                   struct str *unknown)
{
    struct run_request q = {.uid = uid,
                            .id = w->request_id,
                            .question = w->question,
                            .choice = &w->choice,
                            .nearest = &w->nearest};
    int err = run_repeated(t, r, &q, qid);
    return err || qid[0] ? err : submit(t, r, from, w, &q, qid, unknown);
}

/* --- as the engine does it --- */

static int papers(struct task *t, const struct node *n, const struct app_run *run, struct str unit,
                  struct app_paper **out, size_t *count)
{
    return chunks_papers(t, n->redis, n->sql, run, unit, NEAREST_CENTS, out, count);
}

const struct application nearest_application = {NEAREST_KIND, chunks_split, papers, judged_open,
                                                judged_paper};
