/* Pops wait in their group's line, and one task at a time serves all that wait: so a call to Redis
 * serves many, and while one is under way the next ones gather. A call costs what ten items in it
 * cost, in Redis and here. */
#include "app/pool/pools_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define CALL_MS     2000 /* Redis has so long */
#define DISTRUST_MS 1000 /* after it had not answered by then MySQL hands out for so long */
#define TRIES_MAX   8    /* of a batch: limits, fills, lists that were lost meanwhile */
#define ROUNDS_MAX  20   /* of those, with MySQL in between */
#define WAITS_MAX   3
#define PACE_MS     200
#define LOW_PACE_MS 300 /* a list should last for so long while it is filled */

enum why { SERVED, LIMIT_REACHED, TOO_SHORT, LOST, ASK_MYSQL, SERVED_IN_ONE };

struct batch {
    struct pop *pops[POOL_BATCH_POPS]; /* those that wait still are from at on */
    size_t at, count;
    bool partial, checked;
    int waits; /* for other nodes */
    struct backoff pause;
};

/* --- the end of a pop --- */

static void end(struct pop *w)
{
    w->done = true;
    task_wake(w->task);
}

void pool_pop_done(struct pop *w, struct str json, int64_t count, bool direct)
{
    *w->out = (struct pool_items){.json = json, .count = count, .direct = direct};
    end(w);
}

void pool_pop_fail(struct pop *w, int err, const char *why)
{
    w->err = err;
    w->why = arena_strdup(task_arena(w->task), why);
    end(w);
}

static void fail_rest(struct task *t, struct batch *b, int err)
{
    while (b->at < b->count)
        pool_pop_fail(b->pops[b->at++], err, task_error(t));
}

/* --- one call --- */

/* Items come as JSON and leave as JSON. */
static void hand_over(struct pop *w, const struct redis_reply *const *items, size_t count)
{
    size_t bytes = 2 + count;
    for (size_t i = 0; i < count; i++)
        bytes += items[i]->str.n;
    char *json = arena_alloc(task_arena(w->task), bytes), *at = json;
    for (size_t i = 0; i < count; i++) {
        *at++ = i ? ',' : '[';
        memcpy(at, items[i]->str.p, items[i]->str.n);
        at += items[i]->str.n;
    }
    *at++ = ']';
    pool_pop_done(w, str_from(json, (size_t)(at - json)), (int64_t)count, false);
}

/* How fast the list empties, by all nodes. */
static void note_pace(struct pool *x, int64_t handed, int64_t now_ms)
{
    x->pace_items += handed;
    if (now_ms - x->pace_ms < PACE_MS)
        return;
    x->per_s = x->pace_items * 1000 / (now_ms - x->pace_ms);
    x->pace_items = 0;
    x->pace_ms = now_ms;
}

int64_t pool_low(const struct pool *x)
{
    int64_t low = x->per_s * LOW_PACE_MS / 1000, most = POOL_LIST_ITEMS - POOL_LIST_ITEMS / 5;
    return low < POOL_LOW_ITEMS ? POOL_LOW_ITEMS : low > most ? most : low;
}

/* What the reply says of the list. */
static void note(struct task *t, struct pool *x, const struct redis_reply *r)
{
    int64_t now_ms = loop_now_ms(task_loop(t)), before = x->first;
    struct pool_look look = {.list = r->items[1]->str,
                             .first = redis_number(r->items[2], 0),
                             .limit = redis_number(r->items[3], 0),
                             .marked = redis_number(r->items[4], 0),
                             .length = redis_number(r->items[5], 0)};
    if (str_eq(look.list, str_of(x->name)) && before && look.first > before)
        note_pace(x, look.first - before, now_ms);
    pool_note(x, &look);
    if (x->first != before)
        x->popped_ms = now_ms;
    if (x->first - 1 > x->marked && x->unmarked_ms == 0)
        x->unmarked_ms = now_ms;
}

static int serve_all_of(struct task *t, struct batch *b, const struct redis_reply *items)
{
    for (size_t at = 0; b->at < b->count;) {
        struct pop *w = b->pops[b->at++];
        if (items->count - at < (size_t)w->wish->count)
            return task_fail(t, ERR_PROTO, "script pool_pop returned too little");
        hand_over(w, items->items + at, (size_t)w->wish->count);
        at += (size_t)w->wish->count;
    }
    return 0;
}

static int serve(struct task *t, struct pool *x, struct batch *b, const struct redis_reply *r)
{
    if (r->items[0]->integer == SERVED_IN_ONE)
        return serve_all_of(t, b, r->items[6]);
    for (size_t i = 6; i < r->count && b->at < b->count; i++) {
        const struct redis_reply *given = r->items[i];
        struct pop *w = b->pops[b->at++];
        if (given->type == REDIS_ARRAY)
            hand_over(w, given->items, given->count);
        else
            pool_items_of(t, x, given->str, w);
    }
    return 0;
}

static int take(struct task *t, struct pool *x, struct batch *b, enum why *why)
{
    struct arena *a = task_arena(t);
    size_t count = b->count - b->at, requests = 0;
    int64_t total = 0;
    struct str *counts = ARENA_ARRAY(a, struct str, count);
    struct str *keys = ARENA_ARRAY(a, struct str, count);
    for (size_t i = 0; i < count; i++) {
        const struct pool_wish *w = b->pops[b->at + i]->wish;
        counts[i] = str_int(a, w->request.p ? -w->count : w->count);
        total += w->count;
        if (w->request.p)
            keys[requests++] =
                key_pool_request(a, x->id.type->name, x->id.group, w->uid, w->request);
    }
    const struct redis_reply *r;
    int64_t old = task_deadline(t, CALL_MS);
    int err = SCRIPT(t, x->pools->options.redis, pool_pop, &r, .list = x->list, .state = x->state,
                     .requests = {keys, requests}, .partial = b->partial ? STR("1") : STR("0"),
                     .checked = b->checked ? STR("1") : STR("0"), .ms = str_int(a, POOL_REQUEST_MS),
                     .total = str_int(a, total), .pops = {counts, count});
    task_deadline_restore(t, old);
    if (err == ERR_TIMEOUT)
        x->pools->distrust_ms = loop_now_ms(task_loop(t)) + DISTRUST_MS;
    if (err)
        return err;
    if (r->type != REDIS_ARRAY || r->count == 0 || (r->items[0]->integer != LOST && r->count < 6) ||
        (r->items[0]->integer == SERVED_IN_ONE && r->count != 7))
        return task_fail(t, ERR_PROTO, "script pool_pop returned something else");
    *why = (enum why)r->items[0]->integer;
    if (*why == LOST)
        return 0;
    note(t, x, r);
    return serve(t, x, b, r);
}

/* --- what else it takes --- */

/* Whatever became of the help, the pops were given nothing. */
static int certain(int err)
{
    return err == ERR_UNCERTAIN || err == ERR_TIMEOUT ? ERR_UNAVAILABLE
           : err == ERR_CONFLICT                      ? ERR_BUSY
                                                      : err;
}

static int fill(struct task *t, struct pool *x, int64_t low)
{
    return certain(pool_fill(t, x, low));
}

/* A list that is whole and still too short has no more to give. Another node that fills it mostly
 * takes less time than MySQL does to hand out beside it. */
static int refill(struct task *t, struct pool *x, struct batch *b)
{
    bool whole;
    int err = pool_fill_some(t, x, &whole);
    if (err == ERR_BUSY && b->waits++ < WAITS_MAX)
        return backoff_wait(t, &b->pause);
    b->partial = !err && whole;
    return certain(err);
}

/* A batch that stopped: what must be done before it is tried again. ERR_NOT_FOUND: the list cannot
 * serve it. */
static int help(struct task *t, struct pool *x, struct batch *b, enum why why)
{
    int err;
    size_t n;
    switch (why) {
    case LIMIT_REACHED:
        err = pool_raise(t, x);
        return err == ERR_CONFLICT ? fill(t, x, POOL_LOW_ITEMS) : certain(err);
    case TOO_SHORT:
        if (b->partial) /* it was filled, and is empty */
            return ERR_NOT_FOUND;
        return refill(t, x, b);
    case LOST:
        x->name[0] = '\0';
        return fill(t, x, POOL_LOW_ITEMS);
    case ASK_MYSQL:
        if (b->checked) /* another node is about to let MySQL answer */
            return ERR_BUSY;
        n = b->count - b->at;
        err = pool_recall(t, x, b->pops + b->at, &n);
        b->count = b->at + n;
        b->checked = true;
        return certain(err);
    default:
        return 0;
    }
}

/* Surely not done, so that MySQL can do it instead: Redis is away or full, another node fills the
 * list, or it stays empty. A request that Redis may have answered is not tried elsewhere. */
static bool falls_back(int err)
{
    return err == ERR_UNAVAILABLE || err == ERR_BUSY || err == ERR_LIMIT || err == ERR_NOT_FOUND;
}

/* From the list, with all that takes. */
static int from_list(struct task *t, struct pool *x, struct batch *b)
{
    enum why why = SERVED;
    int err = pool_redis(x) ? 0 : ERR_UNAVAILABLE;
    for (int tries = 0; !err && b->at < b->count; tries++) {
        err = tries < TRIES_MAX ? take(t, x, b, &why) : ERR_BUSY;
        if (!err && b->at < b->count)
            err = help(t, x, b, why);
    }
    return err;
}

/* Where nothing is usable, the last items may be on their way to the list, by another node: it is
 * waited for. */
static int serve_once(struct task *t, struct pool *x, struct batch *b, struct backoff *pause)
{
    int err = from_list(t, x, b);
    if (!falls_back(err) || b->at == b->count)
        return err;
    size_t n = b->count - b->at;
    err = pool_direct(t, x, b->pops + b->at, &n);
    b->count = b->at + n;
    if (err || b->at == b->count)
        return err;
    err = pool_left(t, x);
    if (!err && !pool_redis(x))
        err = task_fail(t, ERR_UNAVAILABLE,
                        "what is left of %.*s is in Redis, which does not answer", STR_ARG(x->key));
    return err ? err : backoff_wait(t, pause);
}

static void serve_batch(struct task *t, struct pool *x, struct batch *b)
{
    struct backoff pause = {.ms = 5, .ms_max = 200};
    int err = 0;
    for (int rounds = 0; b->at < b->count && !err; rounds++)
        err = rounds < ROUNDS_MAX ? serve_once(t, x, b, &pause) : ERR_BUSY;
    if (err == ERR_TIMEOUT)
        err = task_fail(t, ERR_UNCERTAIN, "a store does not answer in time");
    fail_rest(t, b, err);
    if (x->name[0] && x->length < pool_low(x))
        pool_fill_soon(x);
    if (x->name[0] && x->limit - x->first + 1 < x->ahead / 2)
        pool_raise_soon(x);
}

/* --- the line --- */

static bool same_request(const struct pool_wish *a, const struct pool_wish *b)
{
    return a->request.p && b->request.p && a->uid == b->uid && str_eq(a->request, b->request);
}

/* The first that wait and are alike: all with a request id, or none, which is served faster. A
 * repeat of a request that is among them waits until that is answered. */
static void gather(struct pool *x, struct batch *b)
{
    int64_t items = 0;
    *b = (struct batch){.pause = {.ms = 5, .ms_max = 20}};
    while (b->count < POOL_BATCH_POPS && !list_empty(&x->waiting)) {
        struct pop *w = list_entry(x->waiting.next, struct pop, link);
        items += w->wish->count;
        if (b->count &&
            (items > POOL_AHEAD_MAX / 4 || !w->wish->request.p != !b->pops[0]->wish->request.p))
            return;
        for (size_t i = 0; i < b->count; i++)
            if (same_request(b->pops[i]->wish, w->wish))
                return;
        list_del(&w->link);
        w->taken = true;
        b->pops[b->count++] = w;
    }
}

static void serve_all(struct task *t, void *arg)
{
    struct pool *x = arg;
    struct batch b;
    while (!list_empty(&x->waiting)) {
        struct task_scope s = task_scope(t);
        gather(x, &b);
        serve_batch(t, x, &b);
        task_scope_end(t, s);
        /* Clients that were served together ask again together: a turn of the loop brings them
         * into the line behind those that came meanwhile, and one call serves both. */
        if (b.count > 1)
            (void)!task_yield(t);
    }
    x->popping = false;
    pool_put(x);
}

/* Until it is served. One that was taken may be given items at any time, into its arena: it waits
 * whatever happens to its task. */
static int await(struct task *t, struct pop *w)
{
    int err = 0;
    while (!w->done && !w->taken && !err)
        err = task_wait(t);
    while (!w->done && w->taken)
        task_wait_always(t);
    if (!w->done)
        list_del(&w->link);
    return w->done ? 0 : err;
}

int pool_pop(struct task *t, struct pools *p, const struct pool_wish *w, struct pool_items *out)
{
    check(w->count >= 1 && w->count <= POOL_COUNT_MAX);
    struct pool *x = pool_get(p, w->pool);
    struct pop me = {.task = t, .wish = w, .out = out};
    list_push(&x->waiting, &me.link);
    int err = 0;
    if (!x->popping) {
        err = task_go(p->options.group, "pool", serve_all, x);
        x->popping = !err;
        x->busy += !err;
        if (err)
            list_del(&me.link);
    }
    if (!err)
        err = await(t, &me);
    if (!err && me.err)
        err = task_fail(t, me.err, "%s", me.why);
    pool_put(x);
    if (err)
        return err;
    metric_add(p->pops, 1);
    metric_add(p->items, out->count);
    return 0;
}
