#include "engine/crew/crew_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/ai/ai.h"
#include "engine/ai/faults.h"
#include "engine/crew/claims.h"
#include "engine/judge/judge.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "loop/backoff.h"

#define REAP_MS        2000 /* leases of nodes that died */
#define SETTLE_MS      50   /* at least this long between two rounds */
#define NEWS_MAX       1000
#define PAUSE_RETRY_MS 2000
#define RETRY_MS       200 /* a store is unavailable */
#define STATUS_WORDS   2   /* commands about each run in a round */
#define DRAIN_LOOK_MS  10

struct crew *crew_new(struct node *n)
{
    struct crew *c = check_memory(calloc(1, sizeof *c));
    const char *name = "millrace_papers_total", *help = "Papers that workers are done with.";
    c->node = n;
    c->members.redis = n->redis;
    c->members.incarnation = n->incarnation;
    n->members = &c->members;
    group_init(&c->manager, n->loop);
    group_init(&c->workers, n->loop);
    group_init(&c->fetchers, n->loop);
    group_init(&c->clerks, n->loop);
    list_init(&c->hungry);
    waitq_init(&c->changed);
    c->runs = map_new();
    c->seen = map_new();
    buf_init(&c->json);
    c->worker_gauge =
        metric(n->metrics, METRIC_GAUGE, "millrace_workers", "", "Workers of this node.");
    c->clock_gauge = metric(n->metrics, METRIC_GAUGE, "millrace_clock_behind_redis_seconds", "",
                            "How far this machine's clock is behind Redis'; negative: ahead.");
    c->judged = metric(n->metrics, METRIC_COUNTER, name, "outcome=\"judged\"", help);
    c->failed = metric(n->metrics, METRIC_COUNTER, name, "outcome=\"failed\"", help);
    c->skipped = metric(n->metrics, METRIC_COUNTER, name, "outcome=\"skipped\"", help);
    return c;
}

static void run_free(struct crew_run *r)
{
    check(list_empty(&r->workers) && till_idle(&r->till));
    map_free(r->vain);
    arena_release(&r->arena);
    free(r);
}

void crew_free(struct crew *c)
{
    struct str name;
    void *run;
    for (size_t at = 0; map_next(c->runs, &at, &name, &run);)
        run_free(run);
    map_free(c->runs);
    map_free(c->seen);
    buf_release(&c->json);
    free(c);
}

/* A copy of the crew's list of runs, in the task's arena: work on one of them may wait, and the map
 * may change meanwhile. */
static struct crew_run **all_runs(struct task *t, struct crew *c, size_t *count)
{
    struct crew_run **runs = ARENA_ARRAY(task_arena(t), struct crew_run *, map_count(c->runs) + 1);
    struct str name;
    void *run;
    *count = 0;
    for (size_t at = 0; map_next(c->runs, &at, &name, &run);)
        runs[(*count)++] = run;
    return runs;
}

/* --- workers come and go --- */

static void stop_workers(struct crew_run *r, bool hard)
{
    list_each (it, &r->workers)
        worker_stop(list_entry(it, struct worker, link), hard);
}

/* First those that have no unit yet; a run that comes to its end has more of them than units. */
static void stop_some(struct crew_run *r, int64_t surplus)
{
    for (int idle = 1; idle >= 0; idle--)
        list_each (it, &r->workers) {
            struct worker *w = list_entry(it, struct worker, link);
            if (surplus <= 0)
                return;
            if (w->hand.leaves || (idle && !list_empty(&w->units)))
                continue;
            surplus--;
            worker_stop(w, false);
        }
}

static int64_t staying(const struct crew_run *r)
{
    int64_t n = 0;
    list_each (it, &r->workers)
        n += !list_entry(it, struct worker, link)->hand.leaves;
    return n;
}

static void start_workers(struct crew_run *r, int64_t count)
{
    struct crew *c = r->crew;
    for (; count > 0; count--) {
        struct worker *w = check_memory(calloc(1, sizeof *w));
        w->run = r;
        list_init(&w->units);
        if (task_go(&c->workers, "worker", worker_task, w)) {
            log_warn("crew", "no more workers can be started: there are %zu",
                     loop_task_count(c->node->loop));
            free(w);
            return;
        }
        list_push(&r->workers, &w->link);
        r->count++;
        metric_add(c->worker_gauge, 1);
    }
}

/* --- units that no worker holds --- */

struct holders {
    const struct crew *crew;
    bool certain;    /* the member list is complete: an absent incarnation may be treated as dead */
    uint64_t newest; /* lease number when the reap began; later ones are held */
    size_t count;
    uint64_t *numbers;      /* of leases that workers of this node hold, sorted */
    const struct map *vain; /* of those that they have left in vain */
};

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* What a dead node had in hand is not known: an answer may have been on its way. */
static enum unit_holder holder(const void *arg, uint64_t incarnation, uint64_t number)
{
    const struct holders *h = arg;
    if (incarnation != h->crew->node->incarnation)
        return h->certain && !members_live(&h->crew->members, incarnation) ? UNIT_LEFT_IN_VAIN
                                                                           : UNIT_HELD;
    if (number > h->newest || bsearch(&number, h->numbers, h->count, sizeof number, by_number))
        return UNIT_HELD;
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return map_get(h->vain, str_of(text)) ? UNIT_LEFT_IN_VAIN : UNIT_LEFT;
}

/* A worker notes the lease number before it takes a unit, and drops it after the unit was finished.
 * So a lease of this node in Redis whose number is not here has no holder, even if the reply that
 * granted it was lost. */
static int reap(struct task *t, struct crew_run *r)
{
    struct crew *c = r->crew;
    int64_t now_ms = loop_now_ms(task_loop(t)), returned = 0;
    struct holders h = {.crew = c,
                        .certain = members_certain(&c->members, now_ms),
                        .newest = c->take_count,
                        .vain = r->vain};
    h.numbers = ARENA_ARRAY(task_arena(t), uint64_t, 2 * (size_t)r->count + 1);
    list_each (it, &r->workers)
        list_each (unit, &list_entry(it, struct worker, link)->units)
            h.numbers[h.count++] = list_entry(unit, struct work_unit, link)->number;
    qsort(h.numbers, h.count, sizeof *h.numbers, by_number);
    r->orphans = false;
    int err = units_reap(t, c->node->redis, r->run.id, holder, &h, &returned);
    if (err)
        r->orphans = true;
    else
        r->reaped_ms = now_ms;
    if (!err && returned)
        log_info("crew", "%lld units of run %.*s go back", (long long)returned,
                 STR_ARG(r->run.id.qid));
    return err;
}

/* --- which runs there are --- */

/* A reason that the user sees, with the text of task_error. */
static const char *reason_with_error(struct task *t, const char *reason, int why)
{
    struct str s =
        str_printf(task_arena(t), "%s: %s", reason, *task_error(t) ? task_error(t) : err_name(why));
    if (s.n > RUN_REASON_BYTES_MAX)
        s.n = RUN_REASON_BYTES_MAX;
    s.n = str_utf8_prefix(s); /* an error may quote any bytes; the column takes UTF-8 only */
    return str_z(task_arena(t), s);
}

/* The run is paused, or does not run any more, or this node shuts down: no retry. */
static bool pause_is_settled(int err)
{
    return !err || err == ERR_CONFLICT || err == ERR_NOT_FOUND || err == ERR_CANCELED;
}

/* Once for all workers of the run on this node. Retried until the pause is written; meanwhile the
 * run gets no workers here, because their AI calls could not be charged. */
static void pause_run(struct task *t, struct crew_run *r, const char *reason)
{
    enum run_state state;
    if (r->pausing)
        return;
    r->pausing = true;
    struct arena_mark mark = arena_mark(task_arena(t));
    for (int err, last = 0;; last = err) {
        arena_reset(task_arena(t), mark);
        err = run_control(t, r->crew->node->runs, r->run.id, RUN_PAUSE, reason, &state);
        if (pause_is_settled(err))
            break;
        if (err != last)
            log_warn("run", "%.*s has no workers here until its pause is written: %s",
                     STR_ARG(r->run.id.qid), task_error(t));
        if (backoff_wait(t, &(struct backoff){.ms = PAUSE_RETRY_MS}))
            break;
    }
    r->pausing = false;
}

static void pause_unrecorded(struct task *t, void *arg, int why)
{
    pause_run(t, arg,
              why == ERR_FUNDS      ? RUN_REASON_FUNDS
              : why == ERR_INTERNAL ? RUN_REASON_ACCOUNT
                                    : reason_with_error(t, RUN_REASON_UNRECORDED, why));
}

void crew_pause_refused(struct task *t, struct crew_run *r)
{
    pause_run(t, r, reason_with_error(t, RUN_REASON_REFUSED, ERR_REFUSED));
}

static void open_till(struct crew_run *r)
{
    struct crew *c = r->crew;
    r->till = (struct till){.group = &c->clerks,
                            .ledger = c->node->ledger,
                            .judged = c->judged,
                            .failed = c->failed,
                            .workers = &r->count,
                            .refused = pause_unrecorded,
                            .arg = r};
    till_open(&r->till);
}

/* A run that is new to this node. NULL: this node cannot work on it; logged. */
static struct crew_run *run_open(struct crew *c, struct str name, struct str params)
{
    struct crew_run *r = check_memory(calloc(1, sizeof *r));
    r->crew = c;
    arena_init(&r->arena);
    list_init(&r->workers);
    r->vain = map_new();
    open_till(r);
    r->name = str_dup(&r->arena, name);
    const char *problem = "its name is no run";
    if (run_name_read(r->name, &r->run.id)) {
        problem = "its parameters cannot be read";
        if (!json_parse(&r->arena, str_dup(&r->arena, params), &r->run.params, NULL)) {
            problem = NULL;
            r->app = application_for(c->node->applications, r->run.params);
        }
    }
    if (!problem && !r->app)
        problem = "this version does not know its kind";
    if (problem) {
        log_error("crew", "run %.*s: %s", STR_ARG(name), problem);
        run_free(r);
        return NULL;
    }
    r->opened = r->app->open(&r->arena, c->node, &r->run);
    map_set(c->runs, r->name, r);
    return r;
}

/* Opens those of names that are new. */
static int open_runs(struct task *t, struct crew *c, const struct str *names, size_t count)
{
    struct arena *a = task_arena(t);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, c->node->redis);
    for (size_t i = 0; i < count; i++) {
        struct run_id id = {0, STR("")};
        (void)run_name_read(names[i], &id);
        struct str key = key_query_info(a, id.uid, id.qid);
        redis_batch_add(&b, key, STR("HGET"), key, STR("search_params"));
    }
    int err = count ? redis_batch_run(&b, &replies) : 0;
    for (size_t i = 0; !err && i < count; i++)
        if (replies[i]->type == REDIS_STRING)
            (void)run_open(c, names[i], replies[i]->str);
    return err;
}

/* Reads the dispatcher's list: opens runs that are new, and sets listed and want. *open: the list
 * was written to this Redis, not to one from before a restart. */
static int read_list(struct task *t, struct crew *c, bool *open)
{
    struct redis *redis = c->node->redis;
    struct redis_batch b;
    const struct redis_reply *const *r;
    redis_batch_init(&b, t, redis);
    redis_batch_add(&b, key_dispatched, STR("GET"), key_dispatched);
    redis_batch_add(&b, key_running, STR("HGETALL"), key_running);
    int err = redis_batch_run(&b, &r);
    if (err)
        return err;
    *open =
        r[0]->type == REDIS_STRING && generation_is(redis, r[0]->str) && r[1]->type == REDIS_ARRAY;
    if (!*open)
        return 0;
    struct str *names = ARENA_ARRAY(task_arena(t), struct str, r[1]->count / 2 + 1);
    size_t count = 0;
    for (size_t i = 0; i + 1 < r[1]->count; i += 2) {
        int64_t workers = 0;
        struct str name = r[1]->items[i]->str;
        (void)str_to_i64(r[1]->items[i + 1]->str, &workers);
        if (!map_get(c->runs, name) &&
            (!map_get(c->seen, name) || members_share(&c->members, name, workers) > 0))
            names[count++] = name;
    }
    err = open_runs(t, c, names, count);
    for (size_t i = 0; !err && i + 1 < r[1]->count; i += 2) {
        struct crew_run *run = map_get(c->runs, r[1]->items[i]->str);
        int64_t workers = 0;
        (void)str_to_i64(r[1]->items[i + 1]->str, &workers);
        if (!run)
            continue;
        if (map_add(c->seen, run->name))
            run->orphans = run->claimed = true;
        run->listed = true;
        run->want = members_share(&c->members, run->name, workers);
    }
    return err;
}

/* Reads the state of each run: workers of a paused or ended run stop, and a run without waiting
 * units starts no further workers. */
static int read_states(struct task *t, struct crew *c, struct crew_run **runs, size_t count)
{
    struct arena *a = task_arena(t);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, c->node->redis);
    for (size_t i = 0; i < count; i++) {
        struct run_id id = runs[i]->run.id;
        struct str status = key_query_status(a, id.uid, id.qid);
        struct str pending = key_pending(a, id.uid, id.qid);
        redis_batch_add(&b, status, STR("HMGET"), status, STR("state"), STR("retry"));
        redis_batch_add(&b, pending, STR("LLEN"), pending);
    }
    int err = count ? redis_batch_run(&b, &replies) : 0;
    for (size_t i = 0; !err && i < count; i++) {
        const struct redis_reply *const *r = replies + STATUS_WORDS * i;
        struct crew_run *run = runs[i];
        enum run_state state = RUN_QUEUED; /* if Redis has lost it, until it is reconciled */
        if (r[0]->type == REDIS_ARRAY && r[0]->items[0]->type == REDIS_STRING)
            (void)run_state_parse(r[0]->items[0]->str, &state);
        run->run.retry = r[0]->type == REDIS_ARRAY && r[0]->items[1]->type == REDIS_STRING;
        if (state != RUN_RUNNING || !run->listed || run->pausing)
            run->want = 0;
        if (state == RUN_CANCELLED || state == RUN_FAILED)
            stop_workers(run, true);
        bool waiting = r[1]->type == REDIS_INT && r[1]->integer > 0;
        int64_t stay = staying(run);
        if (!waiting && run->want > stay)
            run->want = stay;
    }
    return err;
}

/* --- claims: as many workers as the permission allows --- */

/* Claims workers for count runs, all of one user, and starts those that were granted; or stops
 * some, if jobs of the user have a claim to them. */
static int claim(struct task *t, struct crew *c, struct crew_run **runs, size_t count)
{
    const struct claimant node = {.redis = c->node->redis,
                                  .cache = c->node->cache,
                                  .members = &c->members,
                                  .incarnation = c->node->incarnation};
    struct claim *list = ARENA_ARRAY(task_arena(t), struct claim, count);
    int64_t permission;
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct claim){.what = runs[i]->run.id.qid,
                                 .has = runs[i]->count, /* now; workers may end during the call */
                                 .wants = runs[i]->count + runs[i]->want - staying(runs[i])};
        runs[i]->claimed = true; /* also if the reply is lost */
    }
    int err = claims_make(t, &node, runs[0]->run.id.uid, false, list, count, &permission);
    for (size_t i = 0; !err && i < count; i++) {
        runs[i]->claimed = list[i].has > 0 || list[i].granted > 0;
        start_workers(runs[i], list[i].granted - list[i].has);
        if (list[i].granted < list[i].has)
            stop_some(runs[i], staying(runs[i]) - list[i].granted);
    }
    return err;
}

static int by_user(const void *a, const void *b)
{
    const struct crew_run *x = *(struct crew_run *const *)a, *y = *(struct crew_run *const *)b;
    return (x->run.id.uid > y->run.id.uid) - (x->run.id.uid < y->run.id.uid);
}

static int claim_all(struct task *t, struct crew *c, struct crew_run **runs, size_t count)
{
    int err = 0;
    qsort(runs, count, sizeof *runs, by_user);
    for (size_t i = 0, n; !err && i < count; i += n) {
        for (n = 1; i + n < count && runs[i + n]->run.id.uid == runs[i]->run.id.uid; n++)
            ;
        struct arena_mark mark = arena_mark(task_arena(t));
        err = claim(t, c, runs + i, n);
        arena_reset(task_arena(t), mark);
    }
    return err;
}

/* --- a round --- */

static struct str runs_json(struct task *t, struct crew *c)
{
    struct buf b;
    struct json_writer w;
    struct str name;
    void *run;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    for (size_t at = 0; map_next(c->runs, &at, &name, &run);) {
        jw_key(&w, name);
        jw_int(&w, ((struct crew_run *)run)->count);
    }
    jw_end_object(&w);
    struct str json = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return json;
}

static int beat(struct task *t, struct crew *c)
{
    const struct node *n = c->node;
    int64_t now_ms = loop_now_ms(n->loop);
    struct ai_state service = ai_state(n->ai, now_ms);
    struct member_note note = {.service_open = service.open,
                               .service_since_ms =
                                   loop_wall_ms(n->loop) - (now_ms - service.since_ms),
                               .service_cause = str_of(service.fault->cause),
                               .service_words = str_of(service.fault->words),
                               .self = {.takes = !n->draining && !n->drained},
                               .id = str_of(n->id ? n->id : ""),
                               .drained = n->drained,
                               .prompt = str_of(judge_prompt_mark(n->judge)),
                               .resident_bytes = n->resident_bytes,
                               .late_us = n->late_us,
                               .tasks = (int64_t)loop_task_count(n->loop)};
    c->drained = n->drained;
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    note.name = str_printf(task_arena(t), "%s:%d", host, (int)getpid());
    note.runs = runs_json(t, c);
    const struct ai_faults *const services[] = {n->faults, n->embedding_faults};
    note.faults = ai_faults_json(t, services, sizeof services / sizeof *services);
    note.self.workers = *c->worker_gauge;
    ai_averages(c->node->ai, &note.self.latency_us, &note.self.tokens);
    int err = members_beat(t, &c->members, &note);
    if (!err)
        c->beaten_ms = loop_now_ms(task_loop(t));
    metric_set(c->clock_gauge, loop_wall_ahead(n->loop) / 1000);
    return err;
}

static void close_idle(struct crew *c, struct crew_run **runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (runs[i]->count == 0 && !runs[i]->listed && !runs[i]->orphans && !runs[i]->claimed &&
            till_idle(&runs[i]->till)) {
            map_del(c->runs, runs[i]->name);
            map_del(c->seen, runs[i]->name);
            run_free(runs[i]);
        }
}

static int reap_all(struct task *t, struct crew_run **runs, size_t count)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    int err = 0;
    for (size_t i = 0; !err && i < count; i++)
        if (runs[i]->orphans || now_ms - runs[i]->reaped_ms >= REAP_MS) {
            struct arena_mark mark = arena_mark(task_arena(t));
            err = reap(t, runs[i]);
            arena_reset(task_arena(t), mark);
        }
    return err;
}

/* The connection to Redis is new: all workers leave. That it is the same generation does not help:
 * while this node could not be heard, others may have given its units and workers away. */
static void begin_anew(struct crew *c, struct crew_run **runs, size_t count)
{
    c->epoch = redis_epoch(c->node->redis);
    map_free(c->seen);
    c->seen = map_new();
    for (size_t i = 0; i < count; i++)
        stop_workers(runs[i], false);
}

static int manage(struct task *t, struct crew *c)
{
    size_t count;
    struct crew_run **runs = all_runs(t, c, &count);
    bool open = false;
    if (c->epoch != redis_epoch(c->node->redis))
        begin_anew(c, runs, count);
    for (size_t i = 0; i < count; i++) {
        runs[i]->listed = false;
        runs[i]->want = 0;
    }
    int err = beat(t, c);
    if (!err)
        err = read_list(t, c, &open);
    if (err)
        return err;
    runs = all_runs(t, c, &count);
    err = read_states(t, c, runs, count);
    for (size_t i = 0; !err && i < count; i++)
        stop_some(runs[i], staying(runs[i]) - (open && !c->node->draining ? runs[i]->want : 0));
    if (!err && open)
        err = claim_all(t, c, runs, count);
    if (!err)
        err = reap_all(t, runs, count);
    if (!err)
        close_idle(c, runs, count);
    return err;
}

/* --- the manager task --- */

/* The stream has an entry for every run whose state was changed, on any node; a new entry starts a
 * round soon. */
static int read_news(struct task *t, struct crew *c)
{
    const struct redis_reply *r;
    struct arena *a = task_arena(t);
    struct str from = *c->news_at ? str_printf(a, "(%s", c->news_at) : STR("-");
    int err = redis_call(t, c->node->redis, key_news, &r, STR("XRANGE"), key_news, from, STR("+"),
                         STR("COUNT"), str_int(a, NEWS_MAX));
    if (err || r->type != REDIS_ARRAY || r->count == 0)
        return err;
    struct str id = r->items[r->count - 1]->items[0]->str;
    snprintf(c->news_at, sizeof c->news_at, "%.*s", STR_ARG(id));
    c->stirred = true;
    return 0;
}

static int turn(struct task *t, struct crew *c)
{
    int64_t since_ms = loop_now_ms(task_loop(t)) - c->managed_ms;
    int err = read_news(t, c);
    if (c->drained != c->node->drained)
        c->stirred = true;
    if (err || since_ms < (c->stirred ? SETTLE_MS : CREW_MANAGE_MS))
        return err;
    c->stirred = false;
    c->managed_ms = loop_now_ms(task_loop(t));
    err = manage(t, c);
    if (err)
        c->stirred = true;
    return err;
}

static void look_after(struct task *t, void *arg)
{
    struct crew *c = arg;
    int err = 0;
    while (err != ERR_CANCELED) {
        struct task_scope scope = task_scope(t);
        int last = err;
        err = turn(t, c);
        if (err && err != last && err != ERR_CANCELED)
            log_warn("crew", "workers are not looked after: %s", task_error(t));
        task_scope_end(t, scope);
        int64_t old = task_deadline(t, err ? RETRY_MS : CREW_NEWS_MS);
        int waited = waitq_wait(t, &c->changed);
        task_deadline_restore(t, old);
        if (waited == ERR_CANCELED)
            err = ERR_CANCELED;
    }
}

void crew_go(struct crew *c)
{
    check(task_go(&c->manager, "crew", look_after, c) == 0);
}

/* --- the end --- */

static void give_all_back(struct task *t, struct crew *c)
{
    size_t count;
    struct crew_run **runs = all_runs(t, c, &count);
    int err = 0;
    for (size_t i = 0; !err && i < count; i++)
        err = reap(t, runs[i]);
    for (size_t i = 0; !err && i < count; i++)
        err = claim(t, c, &runs[i], 1);
    if (!err)
        err = members_beat(t, &c->members, NULL);
    if (err)
        log_warn("crew", "units are not given back now, others will do so: %s", task_error(t));
}

static void cut_off_all(struct task *t, struct crew *c)
{
    size_t count;
    struct crew_run **runs = all_runs(t, c, &count);
    for (size_t i = 0; i < count; i++)
        stop_workers(runs[i], true);
    group_cancel(&c->workers);
}

void crew_drain(struct task *t, struct crew *c, int64_t ms)
{
    int64_t until_ms = loop_now_ms(task_loop(t)) + ms;
    c->stirred = true; /* the manager stops workers soon, but keeps sending heartbeats */
    while (c->workers.count && loop_now_ms(task_loop(t)) < until_ms)
        if (backoff_wait(t, &(struct backoff){.ms = DRAIN_LOOK_MS}))
            break;
    group_cancel(&c->manager);
    int err = group_join(t, &c->manager);
    if (c->workers.count)
        log_warn("crew", "%zu calls are cut off after %lld ms", c->workers.count, (long long)ms);
    cut_off_all(t, c);
    err = group_join(t, &c->workers);
    err = group_join(t, &c->fetchers);
    group_cancel(&c->clerks);
    err = group_join(t, &c->clerks);
    (void)err; /* group_join has emptied the groups in any case */
    give_all_back(t, c);
}
