/* Results of a run that is not archived: two lists of DOIs, to which is only ever added, and a hash. */
#include "engine/keys.h"
#include "engine/results_private.h"

static struct str list_of(struct task *t, struct run_id id, bool relevant)
{
    return relevant ? key_relevant(task_arena(t), id.uid, id.qid)
                    : key_arrivals(task_arena(t), id.uid, id.qid);
}

/* Before anything is read: a restarted Redis gets back what it has lost, or the money is given back. */
static int ask_ledger(struct task *t, const struct results *r, struct run_id id)
{
    int64_t cents;
    bool degraded;
    int err = ledger_balance(t, r->ledger, id.uid, &cents, &degraded);
    if (!err && degraded)
        err = task_fail(t, ERR_UNAVAILABLE,
                        "the run is not archived yet, and Redis, which has its results, is away");
    return err;
}

int results_redis_count(struct task *t, const struct results *r, struct run_id id, bool relevant,
                        int64_t *out)
{
    struct str key = list_of(t, id, relevant);
    const struct redis_reply *reply;
    int err = ask_ledger(t, r, id);
    if (!err)
        err = redis_call(t, r->redis, key, &reply, STR("LLEN"), key);
    if (!err)
        *out = reply->integer;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

static int read_values(struct task *t, const struct results *r, struct run_id id,
                       const struct redis_reply *dois, size_t count,
                       const struct redis_reply **values)
{
    struct str key = key_result(task_arena(t), id.uid, id.qid);
    struct str *argv = ARENA_ARRAY(task_arena(t), struct str, count + 2);
    argv[0] = STR("HMGET");
    argv[1] = key;
    for (size_t i = 0; i < count; i++)
        argv[i + 2] = dois->items[i]->str;
    int err = redis_argv(t, r->redis, key, count + 2, argv, values);
    if (!err && ((*values)->type != REDIS_ARRAY || (*values)->count != count))
        err = task_fail(t, ERR_PROTO, "HMGET returned something else");
    return err;
}

static int take_rows(struct task *t, const struct redis_reply *dois,
                     const struct redis_reply *values, struct results_page *out, bool *whole)
{
    out->rows = ARENA_ARRAY(task_arena(t), struct result_row, values->count);
    for (size_t i = 0; i < values->count; i++) {
        struct result result;
        if (values->items[i]->type != REDIS_STRING) {
            *whole = false;
            continue;
        }
        if (result_read(task_arena(t), values->items[i]->str, &result))
            return task_fail(t, ERR_PROTO, "the result of %.*s is damaged",
                             STR_ARG(dois->items[i]->str));
        int err = results_row(t, dois->items[i]->str, result, &out->rows[out->count]);
        if (err)
            return err;
        out->count++;
    }
    return 0;
}

static int read_page(struct task *t, const struct results *r, struct run_id id, bool relevant,
                     const struct results_place *from, int64_t limit, struct results_page *out,
                     bool *whole)
{
    struct arena *a = task_arena(t);
    struct str key = list_of(t, id, relevant);
    const struct redis_reply *dois, *values;
    int err = ask_ledger(t, r, id);
    if (!err) /* one more than asked for, so that it is known whether there is a next page */
        err = redis_call(t, r->redis, key, &dois, STR("LRANGE"), key, str_int(a, from->offset),
                         str_int(a, from->offset + limit));
    if (err || dois->type != REDIS_ARRAY || dois->count == 0)
        return err;
    size_t count = dois->count > (size_t)limit ? (size_t)limit : dois->count;
    err = read_values(t, r, id, dois, count, &values);
    if (!err)
        err = take_rows(t, dois, values, out, whole);
    if (!err && dois->count > count)
        out->next =
            results_cursor(a, relevant, &(struct results_place){.offset = from->offset + limit});
    return err;
}

int results_redis_page(struct task *t, const struct results *r, struct run_id id, bool relevant,
                       const struct results_place *from, int64_t limit, struct results_page *out,
                       bool *whole)
{
    int err = read_page(t, r, id, relevant, from, limit, out, whole);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* nothing was changed */
}

int results_redis_find(struct task *t, const struct results *r, struct run_id id, struct str doi,
                       struct result_row *out)
{
    struct str key = key_result(task_arena(t), id.uid, id.qid);
    const struct redis_reply *reply;
    struct result result;
    int err = ask_ledger(t, r, id);
    if (!err)
        err = redis_call(t, r->redis, key, &reply, STR("HGET"), key, doi);
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    if (reply->type != REDIS_STRING)
        return ERR_NOT_FOUND;
    if (result_read(task_arena(t), reply->str, &result))
        return task_fail(t, ERR_PROTO, "the result of %.*s is damaged", STR_ARG(doi));
    return results_row(t, doi, result, out);
}
