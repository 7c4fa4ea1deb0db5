/* Results of a run that is not archived, or of any that Redis still has: two lists of DOIs, to
 * which is only ever added, a set of those that failed, and a hash. */
#include "engine/runs/results_private.h"
#include "engine/store/keys.h"

static struct str list_of(struct task *t, struct run_id id, enum results_kind kind)
{
    return kind == RESULTS_HIT ? key_relevant(task_arena(t), id.uid, id.qid)
                               : key_arrivals(task_arena(t), id.uid, id.qid);
}

/* Before anything is read: ledger_balance restores or reverses what a restarted Redis has lost. A
 * stopped account has the results that are there. */
static int ask_ledger(struct task *t, const struct results *r, struct run_id id)
{
    int64_t cents;
    bool degraded;
    int err = ledger_balance(t, r->ledger, id.uid, &cents, &degraded);
    if (ledger_is_stopped(err))
        return 0;
    if (!err && degraded)
        err = task_fail(t, ERR_UNAVAILABLE,
                        "the run is not archived yet, and Redis, which has its results, is away");
    return err;
}

int results_redis_count(struct task *t, const struct results *r, struct run_id id,
                        enum results_kind kind, int64_t *out)
{
    check(kind == RESULTS_ALL || kind == RESULTS_HIT);
    struct str key = list_of(t, id, kind);
    const struct redis_reply *reply;
    int err = ask_ledger(t, r, id);
    if (!err)
        err = redis_call(t, r->redis, key, &reply, STR("LLEN"), key);
    if (!err)
        *out = reply->integer;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* --- a page: stretches of a list, and of those what is wanted --- */

#define STRETCH 500 /* arrivals that are read at once where some are picked out */

struct stretch {
    size_t count;
    struct str *dois;
    int64_t *places; /* of those in the list */
};

static int read_list(struct task *t, const struct results *r, struct str key, int64_t from,
                     int64_t count, struct stretch *out)
{
    struct arena *a = task_arena(t);
    const struct redis_reply *reply;
    int err = redis_call(t, r->redis, key, &reply, STR("LRANGE"), key, str_int(a, from),
                         str_int(a, from + count - 1));
    if (err)
        return err;
    *out = (struct stretch){.count = reply->type == REDIS_ARRAY ? reply->count : 0};
    out->dois = ARENA_ARRAY(a, struct str, out->count);
    out->places = ARENA_ARRAY(a, int64_t, out->count);
    for (size_t i = 0; i < out->count; i++) {
        out->dois[i] = reply->items[i]->str;
        out->places[i] = from + (int64_t)i;
    }
    return 0;
}

/* One command about all papers of a stretch: an answer for each. */
static int ask_about(struct task *t, const struct results *r, struct str command, struct str key,
                     const struct stretch *s, const struct redis_reply **out)
{
    struct str *argv = ARENA_ARRAY(task_arena(t), struct str, s->count + 2);
    argv[0] = command;
    argv[1] = key;
    memcpy(argv + 2, s->dois, s->count * sizeof *argv);
    int err = redis_argv(t, r->redis, key, s->count + 2, argv, out);
    if (!err && ((*out)->type != REDIS_ARRAY || (*out)->count != s->count))
        err = task_fail(t, ERR_PROTO, "%.*s returned something else", STR_ARG(command));
    return err;
}

/* Failures are few: they are filtered by the set before any result is read. */
static int keep_failed(struct task *t, const struct results *r, struct run_id id, struct stretch *s)
{
    const struct redis_reply *is_one;
    struct str key = key_failed(task_arena(t), id.uid, id.qid);
    int err = ask_about(t, r, STR("SMISMEMBER"), key, s, &is_one);
    size_t kept = 0;
    for (size_t i = 0; !err && i < s->count; i++) {
        if (is_one->items[i]->integer != 1)
            continue;
        s->dois[kept] = s->dois[i];
        s->places[kept++] = s->places[i];
    }
    if (!err)
        s->count = kept;
    return err;
}

struct reading {
    const struct results *r;
    struct run_id id;
    enum results_kind kind;
    size_t limit;
    struct results_page *page;
    bool whole, full;
};

static bool wanted(const struct reading *x, const struct result *r)
{
    /* Hits have a list of their own. */
    return x->kind == RESULTS_ALL || x->kind == RESULTS_HIT ||
           x->kind == (enum results_kind)r->outcome;
}

static int take_rows(struct task *t, struct reading *x, const struct stretch *s)
{
    struct results_page *page = x->page;
    const struct redis_reply *values = NULL;
    struct str key = key_result(task_arena(t), x->id.uid, x->id.qid);
    int err = s->count ? ask_about(t, x->r, STR("HMGET"), key, s, &values) : 0;
    for (size_t i = 0; !err && i < s->count && !x->full; i++) {
        struct result result;
        if (values->items[i]->type != REDIS_STRING) {
            x->whole = false;
            continue;
        }
        if (result_read(task_arena(t), values->items[i]->str, &result))
            return task_fail(t, ERR_PROTO, "the result of %.*s is damaged", STR_ARG(s->dois[i]));
        if (!wanted(x, &result))
            continue;
        x->full = page->count == x->limit;
        if (x->full)
            page->next = results_cursor(task_arena(t), x->kind,
                                        &(struct results_place){.offset = s->places[i]});
        else
            err = results_row(t, s->dois[i], result, &page->rows[page->count++]);
    }
    return err;
}

/* One more than asked for is read, so that it is known whether there is a next page. */
static int read_page(struct task *t, struct reading *x, int64_t from)
{
    bool picks = x->kind == RESULTS_MISS || x->kind == RESULTS_FAILED;
    int64_t at_once = picks ? STRETCH : (int64_t)x->limit + 1;
    struct str key = list_of(t, x->id, x->kind);
    int64_t at = from, read;
    do {
        struct stretch s;
        int err = read_list(t, x->r, key, at, at_once, &s);
        if (err)
            return err;
        read = (int64_t)s.count;
        at += read;
        if (x->kind == RESULTS_FAILED && s.count)
            err = keep_failed(t, x->r, x->id, &s);
        if (!err)
            err = take_rows(t, x, &s);
        if (err)
            return err;
    } while (!x->full && read == at_once && at - from < RESULTS_LOOKED_AT_MAX);
    if (!x->full && read == at_once)
        x->page->next =
            results_cursor(task_arena(t), x->kind, &(struct results_place){.offset = at});
    return 0;
}

int results_redis_page(struct task *t, const struct results *r, struct run_id id,
                       enum results_kind kind, const struct results_place *from, int64_t limit,
                       struct results_page *out, bool *whole)
{
    struct reading x = {
        .r = r, .id = id, .kind = kind, .limit = (size_t)limit, .page = out, .whole = true};
    out->rows = ARENA_ARRAY(task_arena(t), struct result_row, limit);
    int err = out->degraded ? 0 : ask_ledger(t, r, id);
    if (!err)
        err = read_page(t, &x, from->offset);
    *whole = x.whole;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* nothing was changed */
}

int results_redis_there(struct task *t, const struct results *r, struct run_id id, bool *there)
{
    struct arena *a = task_arena(t);
    struct str list = key_arrivals(a, id.uid, id.qid), results = key_result(a, id.uid, id.qid);
    const struct redis_reply *reply;
    int err = redis_call(t, r->redis, list, &reply, STR("EXISTS"), list, results);
    if (!err)
        *there = redis_number(reply, 0) == 2;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

int results_redis_find(struct task *t, const struct results *r, struct run_id id, struct str doi,
                       bool away, struct result_row *out)
{
    struct str key = key_result(task_arena(t), id.uid, id.qid);
    const struct redis_reply *reply;
    struct result result;
    int err = away ? 0 : ask_ledger(t, r, id);
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
