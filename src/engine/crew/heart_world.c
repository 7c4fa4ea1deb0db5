#include <stdio.h>
#include <stdlib.h>

#include "engine/crew/dispatcher.h"
#include "engine/crew/heart_fixture.h"
#include "engine/runs/keeper.h"
#include "engine/store/keys.h"

#define READ_MS 1000 /* a permission that was read before a change may be used for this long */

/* --- nodes --- */

static struct heart_node *node_new(struct heart_world *w)
{
    struct heart_node *n = check_memory(calloc(1, sizeof *n));
    n->world = w;
    heart_redis_open(&n->redis, w);
    n->sql.world = w;
    n->ai = (struct ai){.world = w, .redis = &n->redis};
    n->ledger = ledger_bench_new(&n->redis, (struct cache *)(void *)w);
    n->runs = (struct runs){.redis = &n->redis,
                            .sql = &n->sql,
                            .cache = (struct cache *)(void *)w,
                            .ledger = n->ledger};
    group_init(&n->group, w->loop);
    return n;
}

/* One page of metrics for each slot, for all worlds. */
static struct metrics *metrics_of(int slot)
{
    static struct metrics *pages[HEART_NODES];
    if (!pages[slot])
        pages[slot] = metrics_open(-1, 1, 0);
    return pages[slot];
}

void heart_node_up(struct heart_world *w, int slot)
{
    check(!w->nodes[slot]);
    struct heart_node *n = node_new(w);
    n->node = (struct node){.loop = w->loop,
                            .redis = &n->redis,
                            .sql = &n->sql,
                            .blocks = (struct blocks *)(void *)w,
                            .cache = (struct cache *)(void *)w,
                            .ledger = n->ledger,
                            .permits = (struct permits *)(void *)w,
                            .ai = &n->ai,
                            .runs = &n->runs,
                            .applications = heart_applications,
                            .metrics = metrics_of(slot),
                            .incarnation = loop_random(w->loop) | 1,
                            .id = "heart"};
    n->crew = crew_new(&n->node);
    crew_go(n->crew);
    n->dispatcher = dispatcher_new(&n->node);
    n->roles = roles_new(&n->redis, &n->node.draining);
    roles_go(n->roles, &n->group,
             &(struct role){.name = "dispatcher",
                            .round = dispatcher_role,
                            .arg = n->dispatcher,
                            .each_ms = 200,
                            .lock = &key_dispatcher_lock,
                            .lock_ms = 3000,
                            .complaint = "no runs are dispatched"});
    roles_go(n->roles, &n->group,
             &(struct role){.name = "keeper",
                            .round = keeper_role,
                            .arg = &n->runs,
                            .each_ms = 2000,
                            .lock = &key_keeper_lock,
                            .lock_ms = 10000,
                            .complaint = "runs are not reconciled"});
    w->nodes[slot] = n;
}

static void join(struct task *t, struct group *g)
{
    group_cancel(g);
    check(group_join(t, g) == 0);
}

static void node_free(struct heart_node *n)
{
    check(list_empty(&n->redis.queue));
    if (n->crew) {
        roles_free(n->roles);
        crew_free(n->crew);
        dispatcher_free(n->dispatcher);
    }
    free(n->ledger);
    free(n);
}

/* Cancels all of its tasks at once; only calls that they have sent may still arrive. */
void heart_node_kill(struct task *t, struct heart_world *w, int slot)
{
    struct heart_node *n = w->nodes[slot];
    struct crew *c = n->crew;
    struct str name;
    void *run;
    w->nodes[slot] = NULL;
    n->redis.dead = true;
    group_cancel(&n->group);
    group_cancel(&c->manager);
    group_cancel(&c->clerks);
    group_cancel(&c->fetchers);
    for (size_t at = 0; map_next(c->runs, &at, &name, &run);)
        list_each (it, &((struct crew_run *)run)->workers)
            worker_stop(list_entry(it, struct worker, link), true);
    join(t, &c->workers);
    join(t, &c->manager);
    join(t, &c->fetchers);
    join(t, &c->clerks);
    join(t, &n->group);
    node_free(n);
}

void heart_node_drain(struct task *t, struct heart_world *w, int slot, int64_t ms)
{
    struct heart_node *n = w->nodes[slot];
    n->leaves = true;
    n->node.draining = true;
    crew_drain(t, n->crew, ms);
    w->nodes[slot] = NULL;
    join(t, &n->group);
    roles_part(t, n->roles);
    node_free(n);
}

/* --- the world --- */

struct heart_world *heart_world_new(struct loop *l, struct redis_model *m)
{
    struct heart_world *w = check_memory(calloc(1, sizeof *w));
    w->loop = l;
    w->began_ms = loop_now_ms(l);
    w->model = m;
    w->ai_ms_min = 20;
    w->ai_ms_max = 80;
    w->requests_limit = 1000000;
    arena_init(&w->arena);
    arena_init(&w->scratch);
    group_init(&w->group, l);
    redis_model_clear(m, ++w->restarts);
    redis_model_clock(m, loop_wall_ms(l));
    for (int i = 0; i < HEART_FRONTS; i++)
        w->fronts[i] = node_new(w);
    for (int i = 0; i < HEART_USERS; i++)
        w->users[i] = (struct heart_user){.uid = i + 1, .permission = 4};
    return w;
}

void heart_world_free(struct heart_world *w)
{
    for (int i = 0; i < HEART_NODES; i++)
        check(!w->nodes[i]);
    for (int i = 0; i < HEART_FRONTS; i++)
        node_free(w->fronts[i]);
    arena_release(&w->scratch);
    arena_release(&w->arena);
    free(w);
}

/* --- what users do --- */

struct heart_run *heart_submit(struct task *t, struct heart_world *w, int user, int units,
                               int papers, int64_t cents)
{
    struct arena *a = &w->arena;
    check(w->run_count < HEART_RUNS && units * papers <= HEART_PAPERS);
    struct heart_run *r = &w->runs[w->run_count];
    *r = (struct heart_run){.uid = w->users[user].uid,
                            .units = units,
                            .unit_papers = papers,
                            .cents = cents,
                            .created_ms = loop_wall_ms(w->loop),
                            .changed_ms = loop_wall_ms(w->loop)};
    snprintf(r->qid, sizeof r->qid, "r%zu", w->run_count++);
    struct str qid = str_of(r->qid);
    r->status = key_query_status(a, r->uid, qid);
    r->pending = key_pending(a, r->uid, qid);
    r->inflight = key_inflight(a, r->uid, qid);
    r->result = key_result(a, r->uid, qid);
    r->arrivals = key_arrivals(a, r->uid, qid);
    struct run_row row = {.uid = r->uid,
                          .qid = qid,
                          .state = RUN_QUEUED,
                          .changed_ms = r->changed_ms,
                          .created_ms = r->created_ms,
                          .reason = STR(""),
                          .params = STR(HEART_PARAMS),
                          .papers = units * papers};
    if (run_announce(t, &w->fronts[0]->runs, &row)) /* then the keeper announces it */
        return r;
    return r;
}

int heart_control(struct task *t, struct heart_world *w, struct heart_run *r, enum run_event e)
{
    enum run_state state;
    const struct heart_node *n = w->fronts[heart_random(w, 0, HEART_FRONTS - 1)];
    return run_control(t, &n->runs, (struct run_id){r->uid, str_of(r->qid)}, e, "", &state);
}

void heart_recharge(struct heart_world *w, int user, int64_t cents)
{
    struct heart_user *u = &w->users[user];
    struct arena_mark mark = arena_mark(&w->scratch);
    struct str key = key_balance(&w->scratch, u->uid);
    u->deposited += cents;
    if (heart_number(w, STR("EXISTS"), key, STR_NULL, 0))
        (void)heart_number(w, STR("INCRBY"), key, str_int(&w->scratch, cents), 0);
    arena_reset(&w->scratch, mark);
}

void heart_permit(struct heart_world *w, int user, int64_t permission)
{
    struct heart_user *u = &w->users[user];
    int64_t now_ms = loop_now_ms(w->loop);
    if (u->permission > u->permission_before || now_ms >= u->permission_ms)
        u->permission_before = u->permission;
    u->permission_ms = now_ms + READ_MS;
    u->permission = permission;
}

void heart_restart(struct heart_world *w, bool older)
{
    redis_model_clock(w->model, loop_wall_ms(w->loop));
    if (older && redis_model_restore(w->model, w->restarts + 1))
        heart_look_older(w);
    redis_model_restart(w->model, ++w->restarts);
}

/* --- the end --- */

bool heart_at_rest(struct heart_world *w)
{
    bool rest = true;
    for (size_t i = 0; rest && i < w->run_count; i++) {
        const struct heart_run *r = &w->runs[i];
        rest = run_state_final(r->state) && r->known && r->told == r->state && r->leases == 0;
    }
    for (int i = 0; rest && i < HEART_NODES; i++)
        rest = !w->nodes[i] || map_count(w->nodes[i]->crew->runs) == 0;
    return rest;
}

bool heart_settle(struct task *t, struct heart_world *w, int64_t ms)
{
    int64_t until_ms = loop_now_ms(w->loop) + ms;
    while (!heart_at_rest(w) && loop_now_ms(w->loop) < until_ms && !*w->problem) {
        check(task_sleep(t, 100) == 0);
        heart_look(w);
    }
    return heart_at_rest(w);
}
