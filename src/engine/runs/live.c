#include "engine/runs/live.h"

#include "engine/runs/history.h"
#include "engine/store/keys.h"

/* --- what is newer than the row --- */

static void take(const struct redis_reply *r, struct run_row *row)
{
    enum run_state state;
    if (r->type != REDIS_ARRAY || r->count != 6)
        return;
    bool owed = r->items[5]->type == REDIS_STRING;
    if (r->items[0]->type == REDIS_STRING && run_state_parse(r->items[0]->str, &state) &&
        (state == RUN_DONE || owed))
        row->state = state; /* the row is written later */
    row->finished = redis_number(r->items[1], row->finished);
    row->relevant = redis_number(r->items[2], row->relevant);
    row->failed = redis_number(r->items[3], row->failed);
    row->cents = redis_number(r->items[4], row->cents);
}

int run_live(struct task *t, struct redis *r, struct run_row *rows, size_t count)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, r);
    for (size_t i = 0; i < count; i++) {
        struct str key = key_query_status(task_arena(t), rows[i].uid, rows[i].qid);
        if (!rows[i].archived)
            redis_batch_add(&b, key, STR("HMGET"), key, STR("state"), STR("finished"),
                            STR("relevant"), STR("failed"), STR("cost"), STR("owed"));
    }
    int err = b.count ? redis_batch_run(&b, &replies) : 0;
    for (size_t i = 0, k = 0; !err && i < count; i++)
        if (!rows[i].archived)
            take(replies[k++], &rows[i]);
    return err;
}

/* --- instead of the row --- */

enum { INFO_PARAMS, INFO_CREATED, INFO_STARTED, INFO_ENDED, INFO_ORIGINAL, INFO_SIMULATED };
enum {
    STATUS_STATE,
    STATUS_REASON,
    STATUS_CHANGED,
    STATUS_PAPERS,
    STATUS_FINISHED,
    STATUS_RELEVANT,
    STATUS_FAILED,
    STATUS_COST
};
#define REPLIES_PER 2

static void ask(struct redis_batch *b, struct arena *a, int64_t uid, struct str qid)
{
    struct str info = key_query_info(a, uid, qid), status = key_query_status(a, uid, qid);
    redis_batch_add(b, info, STR("HMGET"), info, STR("search_params"), STR("created"),
                    STR("started"), STR("ended"), STR("original"), STR("simulated"));
    redis_batch_add(b, status, STR("HMGET"), status, STR("state"), STR("reason"), STR("changed"),
                    STR("papers"), STR("finished"), STR("relevant"), STR("failed"), STR("cost"));
}

static struct str text(const struct redis_reply *r, struct str if_none)
{
    return r->type == REDIS_STRING ? r->str : if_none;
}

/* False: Redis lacks it, or a part of it. */
static bool read_row(int64_t uid, struct str qid, const struct redis_reply *const *r,
                     struct run_row *out)
{
    if (r[0]->type != REDIS_ARRAY || r[1]->type != REDIS_ARRAY)
        return false;
    const struct redis_reply *const *info = r[0]->items, *const *status = r[1]->items;
    struct str original = text(info[INFO_ORIGINAL], STR(""));
    *out = (struct run_row){
        .uid = uid,
        .qid = qid,
        .params = text(info[INFO_PARAMS], STR("{}")),
        .created_ms = redis_number(info[INFO_CREATED], 0),
        .started_ms = redis_number(info[INFO_STARTED], 0),
        .ended_ms = redis_number(info[INFO_ENDED], 0),
        .original_query_id = original.n ? original : STR_NULL,
        .is_distillation = original.n > 0,
        .simulated = redis_number(info[INFO_SIMULATED], 0) != 0,
        .reason = text(status[STATUS_REASON], STR("")),
        .changed_ms = redis_number(status[STATUS_CHANGED], 0),
        .papers = redis_number(status[STATUS_PAPERS], 0),
        .finished = redis_number(status[STATUS_FINISHED], 0),
        .relevant = redis_number(status[STATUS_RELEVANT], 0),
        .failed = redis_number(status[STATUS_FAILED], 0),
        .cents = redis_number(status[STATUS_COST], 0),
        .ceiling = -1, /* params has the prices */
    };
    return out->created_ms && run_state_parse(text(status[STATUS_STATE], STR("")), &out->state);
}

int run_rows_away(struct task *t, struct redis *r, int64_t uid, const struct str *qids,
                  size_t qid_count, struct run_row *out, size_t *count)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, r);
    for (size_t i = 0; i < qid_count; i++)
        ask(&b, task_arena(t), uid, qids[i]);
    int err = qid_count ? redis_batch_run(&b, &replies) : 0;
    *count = 0;
    for (size_t i = 0; !err && i < qid_count; i++)
        *count += read_row(uid, qids[i], replies + REPLIES_PER * i, &out[*count]);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* *whole: the history has all runs of the user. *there: this one is among them. */
static int look_in_history(struct task *t, struct redis *r, struct run_id id, bool *whole,
                           bool *there)
{
    struct str key = key_history(task_arena(t), id.uid);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, r);
    redis_batch_add(&b, key, STR("ZSCORE"), key, STR(HISTORY_WHOLE));
    redis_batch_add(&b, key, STR("ZSCORE"), key, id.qid);
    int err = redis_batch_run(&b, &replies);
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    *whole = replies[0]->type == REDIS_STRING;
    *there = replies[1]->type == REDIS_STRING;
    return 0;
}

int run_row_away(struct task *t, struct redis *r, struct run_id id, struct run_row *out)
{
    size_t count;
    bool whole, there;
    int err = run_rows_away(t, r, id.uid, &id.qid, 1, out, &count);
    if (err || count)
        return err;
    err = look_in_history(t, r, id, &whole, &there);
    if (err)
        return err;
    if (whole && !there)
        return task_fail(t, ERR_NOT_FOUND, "you have no such run");
    return task_fail(t, ERR_UNAVAILABLE,
                     "MySQL does not answer, and Redis does not have the run any more");
}
