#include "engine/watch/standing.h"

#include <stdlib.h>

#include "engine/people/user.h"
#include "engine/watch/pace.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "engine/watch/standing_private.h"

#define MINUTE_US   60000000
#define UNIT_PAPERS 100 /* about: a worker has a unit at a time */

struct standing *standing_new(struct node *n)
{
    struct standing *s = check_memory(calloc(1, sizeof *s));
    s->node = n;
    s->taken_ms = -1;
    return s;
}

void standing_free(struct standing *s)
{
    free(s);
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* --- from the whole --- */

static void add_whole(struct reason_facts *f, const struct standing_whole *w)
{
    f->new_runs_off = w->new_runs_off;
    f->nodes = (int64_t)w->node_count;
    f->nodes_taking = w->nodes_taking;
    f->keys = w->keys;
    f->requests_used = w->requests_used;
    f->requests_limit = w->requests_limit;
    f->tokens_used = w->tokens_used;
    f->tokens_limit = w->tokens_limit;
    f->demand = w->latency_us ? w->workers * MINUTE_US / w->latency_us : 0;
    f->of = w->queued;
    f->down = w->down;
    f->down_since_ms = w->down_since_ms;
    f->down_cause = str_of(w->down_cause);
    f->down_words = str_of(w->down_words);
}

/* Texts of the whole may change while a task waits. */
static struct reason reason_in(struct arena *a, const struct reason_facts *f)
{
    struct reason r = reason_of(f);
    r.cause = str_dup(a, r.cause);
    r.words = str_dup(a, r.words);
    return r;
}

/* --- from a run and its user --- */

/* What Redis says of one run: ASKED replies. */
enum { ASK_RANK, ASK_CLAIMS, ASK_LEDGER, ASKED };

static void ask(struct redis_batch *b, struct arena *a, struct run_id id)
{
    struct str workers = key_workers(a, id.uid), ledger = key_ledger(a, id.uid);
    redis_batch_add(b, key_queue, STR("ZRANK"), key_queue, run_name(a, id));
    redis_batch_add(b, workers, STR("HGETALL"), workers);
    redis_batch_add(b, ledger, STR("HGET"), ledger, STR("run"));
}

static const struct standing_node *node_of(const struct standing_whole *w, struct str incarnation)
{
    for (size_t i = 0; i < w->node_count; i++)
        if (str_eq(incarnation, str_of(w->nodes[i].incarnation)))
            return &w->nodes[i];
    return NULL;
}

/* Fields are "<qid>:<incarnation>", values "<workers>@<when>" (crew/workers_claim.lua). Claims of
 * dead nodes do not count. The service is down for a run if it is for all nodes that have workers
 * of it. */
static void add_claims(struct reason_facts *f, const struct standing_whole *w,
                       const struct redis_reply *r, struct str qid)
{
    int64_t reach = 0, n;
    for (size_t i = 0; r->type == REDIS_ARRAY && i + 1 < r->count; i += 2) {
        struct str node = r->items[i]->str, claim = r->items[i + 1]->str;
        struct str run = str_cut(&node, ':');
        const struct standing_node *on = node.p ? node_of(w, node) : NULL;
        if (!on || !str_to_i64(str_cut(&claim, '@'), &n))
            continue;
        bool own = str_eq(run, qid);
        *(own ? &f->workers : &f->others) += n;
        reach += own && !on->open ? n : 0;
    }
    if (f->workers > 0)
        f->down = w->open && reach == 0;
}

static const char *repairing(const struct standing *s, const struct reason_facts *f, struct str key,
                             const struct redis_reply *ledger)
{
    if (!s->whole.queue_whole && f->workers == 0)
        return "queue";
    bool stale =
        ledger->type == REDIS_STRING && !generation_is_at(s->node->redis, key, ledger->str);
    return stale && f->workers > 0 ? "account" : NULL;
}

static void add_user(struct task *t, struct standing *s, int64_t uid, struct reason_facts *f)
{
    struct user u;
    bool known = user_get(t, s->node->cache, uid, &u) == 0;
    f->permission = known ? u.permission : 1; /* not known: no reason */
    f->banned = known && u.banned;
}

static void set_pace(const struct standing_whole *w, const struct reason_facts *f, int64_t papers,
                     struct run_view *v)
{
    int64_t free = most(f->permission - f->others, 1), units = papers / UNIT_PAPERS + 1;
    bool works = f->state == RUN_RUNNING && f->workers > 0;
    struct pace_facts p = {.papers = papers,
                           .workers_min = works ? f->workers : least(free, units),
                           .workers_max = works ? f->workers : least(f->permission, papers),
                           .workers_others = most(w->workers - f->workers, 0),
                           .latency_us = w->latency_us,
                           .tokens = w->tokens,
                           .requests_limit = w->requests_limit,
                           .tokens_limit = w->tokens_limit};
    p.workers_max = most(p.workers_max, p.workers_min);
    v->seconds_known = f->permission > 0 && pace_range(&p, &v->seconds_min, &v->seconds_max);
}

/* Without Redis nothing works, and what it has lost is repaired when it is back. */
static void tell_away(struct run_view *v)
{
    struct reason_facts f = {.state = v->state, .row = v->reason, .repairing = "redis"};
    v->why = reason_of(&f);
}

static void tell_one(struct task *t, struct standing *s, struct run_id id,
                     const struct redis_reply *const *r, struct run_view *v)
{
    struct reason_facts f = {.state = v->state, .row = v->reason};
    add_user(t, s, id.uid, &f); /* it may wait: what is read of the whole comes after it */
    add_whole(&f, &s->whole);
    add_claims(&f, &s->whole, r[ASK_CLAIMS], id.qid);
    f.position = r[ASK_RANK]->type == REDIS_INT ? r[ASK_RANK]->integer + 1 : 0;
    f.repairing = repairing(s, &f, key_ledger(task_arena(t), id.uid), r[ASK_LEDGER]);
    v->why = reason_in(task_arena(t), &f);
    if (v->state == RUN_RUNNING && reason_moves(v->why.code))
        set_pace(&s->whole, &f, v->papers - v->finished, v);
}

static bool wants(const struct run_view *v)
{
    return v->state == RUN_QUEUED || v->state == RUN_RUNNING;
}

void standing_tell(struct task *t, struct standing *s, const struct run_id *ids,
                   struct run_view *views, size_t count)
{
    struct redis_batch b;
    const struct redis_reply *const *r = NULL;
    if (!s)
        return;
    int err = standing_look(t, s);
    redis_batch_init(&b, t, s->node->redis);
    for (size_t i = 0; i < count; i++) {
        views[i].seconds_known = false; /* what was told before may not hold any more */
        if (wants(&views[i]))
            ask(&b, task_arena(t), ids[i]);
    }
    if (!err && b.count)
        err = redis_batch_run(&b, &r);
    for (size_t i = 0, k = 0; i < count; i++)
        if (!wants(&views[i]))
            views[i].why =
                reason_of(&(struct reason_facts){.state = views[i].state, .row = views[i].reason});
        else if (err)
            tell_away(&views[i]);
        else
            tell_one(t, s, ids[i], r + ASKED * k++, &views[i]);
}

/* As if it had a worker: so it is not said that it waits in a queue that it is not in. */
void standing_expect(struct task *t, struct standing *s, int64_t uid, int64_t papers,
                     struct run_view *out)
{
    *out = (struct run_view){.state = RUN_QUEUED, .papers = papers};
    if (!s)
        return;
    if (standing_look(t, s)) {
        tell_away(out);
        return;
    }
    struct reason_facts f = {.state = RUN_QUEUED, .workers = 1};
    add_user(t, s, uid, &f);
    add_whole(&f, &s->whole);
    out->why = reason_in(task_arena(t), &f);
    set_pace(&s->whole, &f, papers, out);
}

/* --- all runs --- */

static size_t add_names(const struct redis_reply *r, struct run_id *ids, size_t count)
{
    for (size_t i = 0; r->type == REDIS_ARRAY && i < r->count && i < STANDING_RUNS_MAX; i++)
        count += run_name_read(r->items[i]->str, &ids[count]);
    return count;
}

/* Runs of the head of the queue, and some of those that may have workers. */
static int list_runs(struct task *t, struct redis *r, struct run_id *ids, size_t *count)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, r);
    redis_batch_add(&b, key_queue, STR("ZRANGE"), key_queue, STR("0"),
                    str_int(task_arena(t), STANDING_RUNS_MAX - 1));
    redis_batch_add(&b, key_running, STR("HKEYS"), key_running);
    int err = redis_batch_run(&b, &replies);
    *count = err ? 0 : add_names(replies[1], ids, add_names(replies[0], ids, 0));
    return err;
}

static int read_states(struct task *t, struct redis *r, const struct run_id *ids,
                       struct run_view *views, size_t count)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, r);
    for (size_t i = 0; i < count; i++) {
        struct str status = key_query_status(task_arena(t), ids[i].uid, ids[i].qid);
        redis_batch_add(&b, status, STR("HGET"), status, STR("state"));
    }
    int err = count ? redis_batch_run(&b, &replies) : 0;
    for (size_t i = 0; !err && i < count; i++) {
        views[i].state = RUN_DONE; /* not known: it wants nothing */
        if (replies[i]->type == REDIS_STRING)
            (void)run_state_parse(replies[i]->str, &views[i].state);
    }
    return err;
}

static void add_group(struct arena *a, struct standing_group *groups, size_t *count,
                      const struct run_view *v, struct run_id id)
{
    struct standing_group *g = groups;
    while (g < groups + *count && g->why.code != v->why.code)
        g++;
    if (g == groups + *count) {
        *g = (struct standing_group){.why = v->why, .example = {id.uid, str_dup(a, id.qid)}};
        g->why.cause = str_dup(a, v->why.cause);
        g->why.words = str_dup(a, v->why.words);
        ++*count;
    }
    g->runs++;
}

int standing_groups(struct task *t, struct standing *s, struct arena *a,
                    struct standing_group **out, size_t *count)
{
    struct run_id *ids = ARENA_ARRAY(task_arena(t), struct run_id, 2 * STANDING_RUNS_MAX);
    struct run_view *views = ARENA_ARRAY(task_arena(t), struct run_view, 2 * STANDING_RUNS_MAX);
    size_t runs = 0;
    *out = ARENA_ARRAY(a, struct standing_group, REASON_CODES);
    *count = 0;
    int err = list_runs(t, s->node->redis, ids, &runs);
    if (!err)
        err = read_states(t, s->node->redis, ids, views, runs);
    if (err)
        return err;
    standing_tell(t, s, ids, views, runs);
    for (size_t i = 0; i < runs; i++)
        if (reason_mendable(views[i].why.code))
            add_group(a, *out, count, &views[i], ids[i]);
    return 0;
}
