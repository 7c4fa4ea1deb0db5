#include "engine/crew/dispatcher.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "engine/ai/permits.h"
#include "engine/crew/application.h"
#include "engine/crew/members.h"
#include "engine/money/charge.h"
#include "engine/people/switches.h"
#include "engine/people/user.h"
#include "engine/runs/keeper.h"
#include "engine/runs/row.h"
#include "engine/setup/node.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define QUEUE_PAGE         200
#define SIZES_MAX          10000   /* runs whose number of units is remembered */
#define LATENCY_US_DEFAULT 1000000 /* before the first call */
#define TOKENS_DEFAULT     1000
#define MINUTE_US          60000000
#define PATIENCE_MS        30000 /* a larger run waits for the rate before it starts with less */
#define READY_MS           500   /* of a round, for the results of one user to be put back */

/* A run that has workers, or may get some. */
struct entry {
    struct str name;
    struct run_id id;
    int64_t workers;    /* it may have; 0 in the queue */
    bool split;         /* it has units */
    int64_t units;      /* that are left */
    int64_t created_ms; /* in the queue */
    enum run_state state;
};

struct dispatcher {
    struct node *node;
    struct map *sizes; /* name -> units of runs that wait, as counted when first seen */
    /* Of one round: */
    struct role_turn *turn;
    struct map *permissions; /* uid -> permission + 1: many runs of one user may wait */
    struct entry *running;
    size_t running_count;
    int64_t latency_us, tokens; /* of a call, on average */
    struct permits_load load;
};

/* --- reading runs and permissions --- */

/* State and units of each entry, in one round trip. */
static int look(struct task *t, struct dispatcher *d, struct entry *e, size_t count)
{
    enum { WORDS = 3 };
    struct arena *a = task_arena(t);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, d->node->redis);
    for (size_t i = 0; i < count; i++) {
        struct str status = key_query_status(a, e[i].id.uid, e[i].id.qid);
        struct str pending = key_pending(a, e[i].id.uid, e[i].id.qid);
        struct str inflight = key_inflight(a, e[i].id.uid, e[i].id.qid);
        redis_batch_add(&b, status, STR("HMGET"), status, STR("state"), STR("total_blocks"));
        redis_batch_add(&b, pending, STR("LLEN"), pending);
        redis_batch_add(&b, inflight, STR("HLEN"), inflight);
    }
    int err = count ? redis_batch_run(&b, &replies) : 0;
    for (size_t i = 0; !err && i < count; i++) {
        const struct redis_reply *const *r = replies + WORDS * i;
        if (r[0]->type != REDIS_ARRAY || r[1]->type != REDIS_INT || r[2]->type != REDIS_INT)
            return task_fail(t, ERR_PROTO, "run %.*s cannot be read", STR_ARG(e[i].name));
        e[i].state = RUN_FAILED;
        if (r[0]->items[0]->type == REDIS_STRING)
            (void)run_state_parse(r[0]->items[0]->str, &e[i].state);
        e[i].split = r[0]->items[1]->type == REDIS_STRING;
        e[i].units = r[1]->integer + r[2]->integer;
    }
    return err;
}

static bool wants_workers(const struct entry *e)
{
    return e->state == RUN_QUEUED || e->state == RUN_RUNNING;
}

static int permission_of(struct task *t, struct dispatcher *d, int64_t uid, int64_t *out)
{
    struct str key = str_int(task_arena(t), uid);
    void *known = map_get(d->permissions, key);
    struct user u;
    int err = known ? 0 : user_get(t, d->node->cache, uid, &u);
    if (err && err != ERR_NOT_FOUND)
        return err;
    *out = known ? (int64_t)(uintptr_t)known - 1 : err || u.banned ? 0 : u.permission;
    map_set(d->permissions, key, (void *)(uintptr_t)(*out + 1));
    return 0;
}

/* Workers that the user's permission allows beyond those of running runs. */
static int permission_left(struct task *t, struct dispatcher *d, int64_t uid, int64_t *out)
{
    int err = permission_of(t, d, uid, out);
    for (size_t i = 0; i < d->running_count; i++)
        if (d->running[i].id.uid == uid)
            *out -= d->running[i].workers;
    return err;
}

/* --- R1: is enough rate left? --- */

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* Requests per minute that so many workers make. */
static int64_t use_of(const struct dispatcher *d, int64_t workers)
{
    return workers * (MINUTE_US / d->latency_us + 1);
}

/* Use is the larger of two numbers: what is planned for running runs, which the window may not show
 * yet, and what the window shows, which may include runs that have ended. */
static bool fits(const struct dispatcher *d, int64_t workers)
{
    const struct permits_load *l = &d->load;
    int64_t planned = 0;
    for (size_t i = 0; i < d->running_count; i++)
        planned += use_of(d, d->running[i].workers);
    if (planned == 0)
        return true;
    int64_t requests = least(use_of(d, workers), l->requests_limit);
    int64_t tokens = least(use_of(d, workers) * d->tokens, l->tokens_limit);
    return requests <= l->requests_limit - most(l->requests_used, planned) &&
           tokens <= l->tokens_limit - most(l->tokens_used, planned * d->tokens);
}

static bool at_work(const struct dispatcher *d, int64_t uid)
{
    for (size_t i = 0; i < d->running_count; i++)
        if (d->running[i].id.uid == uid && d->running[i].workers > 0)
            return true;
    return false;
}

static int64_t users_at_work(const struct dispatcher *d)
{
    int64_t users = 0;
    for (size_t i = 0; i < d->running_count; i++) {
        bool seen = d->running[i].workers == 0;
        for (size_t k = 0; !seen && k < i; k++)
            seen = d->running[k].id.uid == d->running[i].id.uid && d->running[k].workers > 0;
        users += !seen;
    }
    return users;
}

/* Workers that one more user may start although the rate is used up: as many as an equal share of
 * it feeds. One at least, as long as each share is a request in a minute: the permits keep the
 * limit whatever is planned here. 0: there are too many users at work. */
static int64_t shared_workers(const struct dispatcher *d)
{
    int64_t users = users_at_work(d) + 1, use = use_of(d, 1);
    int64_t requests = d->load.requests_limit / users, tokens = d->load.tokens_limit / users;
    return requests < 1 ? 0 : most(least(requests / use, tokens / (use * d->tokens)), 1);
}

/* How many of the workers start although the rate is used up: all or none, if the user has nothing
 * at work and they fit the share; what fits, once the run has waited. */
static int64_t beside(struct task *t, const struct dispatcher *d, const struct entry *e,
                      int64_t workers)
{
    int64_t share = at_work(d, e->id.uid) ? 0 : shared_workers(d);
    bool waited = loop_wall_ms(task_loop(t)) - e->created_ms >= PATIENCE_MS;
    return workers <= share ? workers : waited ? share : 0;
}

/* The rate as runs may plan with it: without what jobs use, up to their share. What jobs use beyond
 * that they lose when runs want it (engine/ai/permits_private.h), so it is free. */
static void leave_to_jobs(struct permits_load *l)
{
    l->requests_used -= l->jobs_requests;
    l->tokens_used -= l->jobs_tokens;
    l->requests_limit -= least(l->jobs_requests, l->requests_limit * l->jobs_share / 100);
    l->tokens_limit -= least(l->jobs_tokens, l->tokens_limit * l->jobs_share / 100);
}

/* Moving averages of all nodes. */
static int read_rates(struct task *t, struct dispatcher *d)
{
    const struct members *m = d->node->members;
    int64_t nodes = 0, latency_us = 0, tokens = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->list[i].latency_us > 0) {
            nodes++;
            latency_us += m->list[i].latency_us;
            tokens += m->list[i].tokens;
        }
    d->latency_us = nodes ? most(latency_us / nodes, 1) : LATENCY_US_DEFAULT;
    d->tokens = nodes ? most(tokens / nodes, 1) : TOKENS_DEFAULT;
    int err = permits_load(t, d->node->permits, &d->load);
    if (!err)
        leave_to_jobs(&d->load);
    return err;
}

/* --- runs that have workers --- */

/* The run may have been resumed after look() and before the removal, so its state is read again; if
 * it wants workers, it is queued again. */
static int remove_run(struct task *t, struct dispatcher *d, struct entry *e, struct str key)
{
    struct redis *r = d->node->redis;
    struct str info = key_query_info(task_arena(t), e->id.uid, e->id.qid);
    const struct redis_reply *created;
    bool queue = str_eq(key, key_queue);
    int err = redis_call(t, r, key, NULL, queue ? STR("ZREM") : STR("HDEL"), key, e->name);
    if (!err)
        err = look(t, d, e, 1);
    if (err || !wants_workers(e))
        return err;
    err = redis_call(t, r, info, &created, STR("HGET"), info, STR("created"));
    if (err || created->type != REDIS_STRING)
        return err;
    return run_line_up(t, r, e->name, created->str, true);
}

/* At most as many workers as units and as the permission allows now; more than before only if the
 * rate has room. */
static int adjust(struct task *t, struct dispatcher *d, struct entry *e)
{
    int64_t before = e->workers, left = 0;
    e->workers = 0;
    int err = permission_left(t, d, e->id.uid, &left);
    int64_t could = least(e->units, most(left, 0));
    e->workers = least(before, could);
    if (!err && could > e->workers && fits(d, could - e->workers))
        e->workers = could;
    if (err || e->workers == before)
        return err;
    return redis_call(t, d->node->redis, key_running, NULL, STR("HSET"), key_running, e->name,
                      str_int(task_arena(t), e->workers));
}

static int see_to_running(struct task *t, struct dispatcher *d)
{
    const struct redis_reply *r;
    int err = redis_call(t, d->node->redis, key_running, &r, STR("HGETALL"), key_running);
    if (err)
        return err;
    struct entry *e = ARENA_ARRAY(task_arena(t), struct entry, r->count / 2 + 1);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i + 1 < r->count; i += 2) {
        e[count] = (struct entry){.name = r->items[i]->str};
        (void)str_to_i64(r->items[i + 1]->str, &e[count].workers);
        count += run_name_read(e[count].name, &e[count].id);
    }
    err = look(t, d, e, count);
    for (size_t i = 0; !err && i < count; i++)
        if (e[i].state == RUN_RUNNING && e[i].split)
            e[kept++] = e[i];
        else
            err = remove_run(t, d, &e[i], key_running);
    d->running = e;
    d->running_count = kept;
    for (size_t i = 0; !err && i < kept; i++)
        err = adjust(t, d, &e[i]);
    return err;
}

/* --- the queue --- */

static int read_run(struct task *t, struct dispatcher *d, const struct entry *e,
                    struct app_run *run, const struct application **app)
{
    struct str key = key_query_info(task_arena(t), e->id.uid, e->id.qid);
    const struct redis_reply *r;
    int err = redis_call(t, d->node->redis, key, &r, STR("HGET"), key, STR("search_params"));
    if (err)
        return err;
    *run = (struct app_run){.id = e->id};
    if (r->type != REDIS_STRING || json_parse(task_arena(t), r->str, &run->params, NULL))
        return task_fail(t, ERR_INVALID, "its parameters cannot be read");
    *app = application_for(d->node->applications, run->params);
    return *app ? 0 : task_fail(t, ERR_INVALID, "this version does not know its kind");
}

static int split(struct task *t, struct dispatcher *d, const struct entry *e, struct str **units,
                 size_t *count)
{
    struct app_run run;
    const struct application *app;
    int err = read_run(t, d, e, &run, &app);
    if (!err)
        err = app->split(t, d->node, &run, units, count);
    if (!err && *count == 0)
        err = task_fail(t, ERR_INVALID, "none of its papers are in the corpus");
    return err;
}

/* How many units it will have, without splitting it in every round that it waits. */
static int count_units(struct task *t, struct dispatcher *d, struct entry *e)
{
    void *known = e->split ? NULL : map_get(d->sizes, e->name);
    struct str *units;
    size_t count = 0;
    if (e->split)
        return 0;
    int err = known ? 0 : split(t, d, e, &units, &count);
    if (err)
        return err;
    e->units = known ? (int64_t)(uintptr_t)known - 1 : (int64_t)count;
    if (map_count(d->sizes) >= SIZES_MAX) {
        map_free(d->sizes);
        d->sizes = map_new();
    }
    map_set(d->sizes, e->name, (void *)(uintptr_t)(e->units + 1));
    return 0;
}

static int list_run(struct task *t, struct dispatcher *d, const struct entry *e, int64_t workers)
{
    struct redis *r = d->node->redis;
    int err = SCRIPT(t, r, run_admit, NULL, .queue = key_queue, .running = key_running,
                     .run = e->name, .workers = str_int(task_arena(t), workers));
    return err ? err
               : redis_call(t, r, key_news, NULL, STR("XADD"), key_news, STR("MAXLEN"), STR("~"),
                            STR("1000"), STR("*"), STR("run"), e->name);
}

/* A user whose money cannot be loaded is told by the first charge, which pauses the run. ERR_BUSY:
 * it takes long, and goes on in the next round (repair.c); others do not wait for it. */
static int repair_first(struct task *t, struct dispatcher *d, const struct entry *e)
{
    int64_t old = task_deadline(t, READY_MS);
    int err = ledger_ready(t, d->node->ledger, e->id.uid);
    task_deadline_restore(t, old);
    if (err == ERR_TIMEOUT && task_time_left_ms(t) > 0)
        return ERR_BUSY;
    return err_is_outage(err) ? err : 0;
}

/* The row first, so that its user sees that it runs. Each step is idempotent: a start that fails
 * half way is repeated in the next round. */
static int start(struct task *t, struct dispatcher *d, struct entry *e, int64_t workers)
{
    struct node *n = d->node;
    struct str *units = NULL;
    size_t count = 0;
    enum run_state state;
    int err = e->split ? 0 : split(t, d, e, &units, &count);
    if (!err)
        err = run_control(t, n->runs, e->id, RUN_START, "", &state);
    if (!err)
        err = repair_first(t, d, e);
    if (!err && !e->split)
        err = units_put(t, n->redis, e->id, units, count);
    map_del(d->sizes, e->name);
    if (!err)
        err = list_run(t, d, e, workers);
    if (err)
        return err;
    log_info("run", "%.*s of user %lld starts with %lld workers", STR_ARG(e->id.qid),
             (long long)e->id.uid, (long long)workers);
    e->workers = workers;
    d->running[d->running_count++] = *e;
    return 0;
}

/* FAILED: the run cannot be split, now or later. */
static int give_up(struct task *t, struct dispatcher *d, struct entry *e)
{
    enum run_state state;
    const char *reason = arena_strdup(task_arena(t), task_error(t));
    log_warn("run", "%.*s cannot be split into units, it becomes FAILED: %s", STR_ARG(e->id.qid),
             reason);
    int err = run_control(t, d->node->runs, e->id, RUN_FAIL, reason, &state);
    if (!err || err == ERR_CONFLICT)
        err = remove_run(t, d, e, key_queue);
    return err;
}

/* Admins can hold new runs in the queue; runs that were started before go on. Nothing starts while
 * no node takes work: the run would be RUNNING without a worker. */
static bool may_start(const struct dispatcher *d, const struct entry *e)
{
    const struct switches *s = d->node->switches;
    if (!members_any_takes(d->node->members))
        return false;
    return e->state != RUN_QUEUED || !s || switch_on(s, SWITCH_NEW_RUNS);
}

/* *full: a run waits for the rate, and so do all behind it, unless their user has nothing at
 * work. */
static int consider(struct task *t, struct dispatcher *d, struct entry *e, bool *full)
{
    int64_t left = 0;
    if (!wants_workers(e))
        return remove_run(t, d, e, key_queue);
    if (!may_start(d, e))
        return 0;
    int err = permission_left(t, d, e->id.uid, &left);
    if (err || left <= 0)
        return err;
    err = count_units(t, d, e);
    int64_t workers = most(least(left, e->units), 1);
    if (!err && (*full || !fits(d, workers))) {
        *full = true;
        workers = beside(t, d, e, workers);
    }
    if (!err && workers > 0)
        err = start(t, d, e, workers);
    if (err == ERR_BUSY)
        return role_keep(t, d->turn);
    if (err == ERR_CLOSED)
        return 0; /* an admin has just switched new runs off */
    if (err == ERR_INVALID)
        return give_up(t, d, e);
    return err == ERR_CONFLICT || err == ERR_NOT_FOUND ? remove_run(t, d, e, key_queue) : err;
}

/* Skips runs whose user has no permission left, or must wait for the rate, before anything is read
 * about them: a long queue costs little. */
static int see_to_page(struct task *t, struct dispatcher *d, const struct redis_reply *r,
                       bool *full)
{
    struct entry *e = ARENA_ARRAY(task_arena(t), struct entry, r->count / 2 + 1);
    struct entry *running =
        ARENA_ARRAY(task_arena(t), struct entry, d->running_count + r->count / 2 + 1);
    if (d->running_count)
        memcpy(running, d->running, d->running_count * sizeof *running);
    d->running = running;
    size_t count = 0;
    int err = 0;
    for (size_t i = 0; !err && i + 1 < r->count; i += 2) {
        int64_t left = 0;
        e[count] = (struct entry){.name = r->items[i]->str};
        (void)str_to_i64(r->items[i + 1]->str, &e[count].created_ms);
        if (!run_name_read(e[count].name, &e[count].id) || (*full && at_work(d, e[count].id.uid)))
            continue;
        err = permission_left(t, d, e[count].id.uid, &left);
        count += left > 0;
    }
    if (!err)
        err = look(t, d, e, count);
    for (size_t i = 0; !err && i < count; i++)
        if (!*full || !at_work(d, e[i].id.uid))
            err = consider(t, d, &e[i], full);
    return err;
}

static int see_to_queue(struct task *t, struct dispatcher *d)
{
    bool full = false;
    int err = 0;
    size_t got = QUEUE_PAGE;
    for (int64_t at = 0; !err && got == QUEUE_PAGE; at += QUEUE_PAGE) {
        const struct redis_reply *r;
        struct arena *a = task_arena(t);
        err = redis_call(t, d->node->redis, key_queue, &r, STR("ZRANGE"), key_queue, str_int(a, at),
                         str_int(a, at + QUEUE_PAGE - 1), STR("WITHSCORES"));
        got = err || r->type != REDIS_ARRAY ? 0 : r->count / 2;
        if (got)
            err = see_to_page(t, d, r, &full);
    }
    return err;
}

/* --- a round --- */

/* The queue of a Redis that was restarted may be older than the rows. Until key_dispatched has this
 * generation no crew takes it for the queue. */
static int rebuild(struct task *t, struct dispatcher *d)
{
    struct redis *r = d->node->redis;
    const struct redis_reply *reply;
    struct generation now = generation_now(r);
    int64_t mended;
    int err = redis_call(t, r, key_dispatched, &reply, STR("GET"), key_dispatched);
    if (err || (reply->type == REDIS_STRING && str_eq(reply->str, generation_str(&now))))
        return err;
    log_info("run", "dispatcher: Redis was restarted; rebuilding the queue from MySQL, no worker "
                    "starts until that is done");
    err = redis_call(t, r, key_queue, NULL, STR("DEL"), key_queue);
    if (!err)
        err = redis_call(t, r, key_running, NULL, STR("DEL"), key_running);
    if (!err)
        err = run_reconcile(t, d->node->runs, &mended);
    return err ? err
               : redis_call(t, r, key_dispatched, NULL, STR("SET"), key_dispatched,
                            generation_str(&now));
}

static int dispatch(struct task *t, struct dispatcher *d)
{
    int err = rebuild(t, d);
    d->permissions = map_new();
    if (!err)
        err = read_rates(t, d);
    if (!err)
        err = see_to_running(t, d);
    if (!err)
        err = see_to_queue(t, d);
    map_free(d->permissions);
    return err;
}

int dispatcher_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct dispatcher *d = arg;
    d->turn = turn;
    return dispatch(t, d);
}

struct dispatcher *dispatcher_new(struct node *n)
{
    struct dispatcher *d = check_memory(calloc(1, sizeof *d));
    d->node = n;
    d->sizes = map_new();
    return d;
}

void dispatcher_free(struct dispatcher *d)
{
    map_free(d->sizes);
    free(d);
}
