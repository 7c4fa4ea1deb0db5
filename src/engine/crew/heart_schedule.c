/* Schedules: everything that happens in one follows from its seed. Users submit, pause, resume,
 * terminate and recharge; nodes drain, die and come back; connections break; calls are lost. Then
 * faults stop, for long enough that every run must end. */
#include "engine/crew/heart_schedule.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/crew/heart_fixture.h"

#define STEP_MS    100
#define CALM_MS    60000 /* in which all runs must end */
#define CALM_AI_MS 10
#define RESUME_MS  500
#define RICH       100000
#define LOST_MS    1500 /* that a restart may cost: Redis writes to disk every second */
#define SILENCE_MS 6000 /* longer than a node may go without a heartbeat */

enum deed_kind {
    SUBMIT,
    PAUSE,
    RESUME,
    TERMINATE,
    RECHARGE,
    PERMIT,
    DRAIN,
    KILL,
    BREAK,
    RESTART,
    SET_ASIDE,
    NO_KEYS,
    RETRY,
    SAVE, /* what Redis will have after a restart */
    DEEDS,
};

/* Of a hundred deeds. */
static const int weights[DEEDS] = {
    [SUBMIT] = 15,   [PAUSE] = 14,  [RESUME] = 14, [TERMINATE] = 7, [RECHARGE] = 5,
    [PERMIT] = 9,    [DRAIN] = 6,   [KILL] = 8,    [BREAK] = 9,     [RESTART] = 4,
    [SET_ASIDE] = 3, [NO_KEYS] = 3, [RETRY] = 3,
};

/* Something that is done at its time, in a task of its own. */
struct deed {
    struct heart_world *world;
    enum deed_kind kind;
    int which; /* run, user or node */
    int64_t at_ms, number, ms;
};

#define DEEDS_MAX 30

struct plan {
    struct deed deeds[DEEDS_MAX]; /* in the order of their times */
    size_t count;
};

/* --- deeds --- */

static void submit(struct task *t, struct heart_world *w, const struct deed *d)
{
    int units = (int)heart_random(w, 1, 5), papers = (int)heart_random(w, 1, 6);
    if (w->run_count < HEART_RUNS)
        (void)heart_submit(t, w, d->which % HEART_USERS, units, papers, 10);
}

static void control(struct task *t, struct heart_world *w, const struct deed *d)
{
    static const enum run_event events[] = {[PAUSE] = RUN_PAUSE,
                                            [RESUME] = RUN_RESUME,
                                            [TERMINATE] = RUN_TERMINATE,
                                            [RETRY] = RUN_RETRY_FAILED};
    if (w->run_count == 0)
        return;
    struct heart_run *r = &w->runs[(size_t)d->which % w->run_count];
    int err = heart_control(t, w, r, events[d->kind]);
    if (err && err != ERR_CONFLICT && !err_may_pass(err))
        heart_problem(w, "a user's request fails: %s", task_error(t));
}

/* The node at that place, unless it is going already, or is the last one that the others need. */
static struct heart_node *node_at(struct heart_world *w, int slot)
{
    struct heart_node *n = w->nodes[slot];
    return n && !n->leaves ? n : NULL;
}

static void come_back(struct task *t, struct heart_world *w, int slot, int64_t ms)
{
    check(task_sleep(t, ms) == 0);
    if (!w->nodes[slot])
        heart_node_up(w, slot);
}

static void leave(struct task *t, struct heart_world *w, const struct deed *d)
{
    struct heart_node *n = node_at(w, d->which % HEART_NODES);
    if (!n)
        return;
    n->leaves = true;
    if (d->kind == DRAIN)
        heart_node_drain(t, w, d->which % HEART_NODES, d->number % 2 ? 2000 : 20);
    else
        heart_node_kill(t, w, d->which % HEART_NODES);
    come_back(t, w, d->which % HEART_NODES, d->ms);
}

/* By then the slot may have a new node, which has a connection of its own. */
static void mend(struct task *t, struct heart_world *w, const struct heart_node *was, int slot,
                 int64_t ms)
{
    check(task_sleep(t, ms) == 0);
    if (w->nodes[slot] == was && !was->redis.up)
        heart_redis_mend(&w->nodes[slot]->redis);
}

static void cut(struct task *t, struct heart_world *w, const struct deed *d)
{
    int slot = d->which % HEART_NODES;
    struct heart_node *n = w->nodes[slot];
    if (!n || !n->redis.up)
        return;
    heart_redis_break(&n->redis);
    mend(t, w, n, slot, d->number % 4 ? d->ms / 10 : SILENCE_MS);
}

/* Redis restarts, and may come back without what was written since it was saved. */
static void restart(struct task *t, struct heart_world *w, const struct deed *d)
{
    struct heart_node *was[HEART_NODES];
    for (int i = 0; i < HEART_NODES; i++) {
        was[i] = w->nodes[i] && w->nodes[i]->redis.up ? w->nodes[i] : NULL;
        if (was[i])
            heart_redis_break(&was[i]->redis);
    }
    for (int i = 0; i < HEART_FRONTS; i++)
        heart_redis_break(&w->fronts[i]->redis);
    heart_restart(w, d->number % 2);
    check(task_sleep(t, d->ms / 10) == 0);
    for (int i = 0; i < HEART_FRONTS; i++)
        if (!w->fronts[i]->redis.up)
            heart_redis_mend(&w->fronts[i]->redis);
    for (int i = 0; i < HEART_NODES; i++)
        if (was[i])
            mend(t, w, was[i], i, heart_random(w, 0, 100));
}

static void set_aside(struct task *t, struct heart_world *w, const struct deed *d)
{
    int slot = d->which % HEART_NODES;
    struct heart_node *n = node_at(w, slot);
    if (!n)
        return;
    n->node.drained = true;
    check(task_sleep(t, d->ms) == 0);
    if (w->nodes[slot])
        w->nodes[slot]->node.drained = false;
}

static void run_deed(struct task *t, void *arg)
{
    static const char *const names[] = {"submit",    "pause",   "resume", "terminate", "recharge",
                                        "permit",    "drain",   "kill",   "break",     "restart",
                                        "set aside", "no keys", "retry",  "save"};
    const struct deed *d = arg;
    struct heart_world *w = d->world;
    log_debug("heart", "%lld ms: %s %d, %lld, %lld ms", (long long)d->at_ms, names[d->kind],
              d->which, (long long)d->number, (long long)d->ms);
    switch (d->kind) {
    case SUBMIT:
        submit(t, w, d);
        break;
    case PAUSE:
    case RESUME:
    case TERMINATE:
    case RETRY:
        control(t, w, d);
        break;
    case RECHARGE:
        heart_recharge(w, d->which % HEART_USERS, d->number);
        break;
    case PERMIT:
        heart_permit(w, d->which % HEART_USERS, d->number % 6);
        break;
    case DRAIN:
    case KILL:
        leave(t, w, d);
        break;
    case BREAK:
        cut(t, w, d);
        break;
    case RESTART:
        restart(t, w, d);
        break;
    case SET_ASIDE:
        set_aside(t, w, d);
        break;
    case NO_KEYS:
        w->no_keys_until_ms = loop_now_ms(w->loop) + d->ms;
        break;
    case SAVE:
        redis_model_clock(w->model, loop_wall_ms(w->loop));
        redis_model_save(w->model);
        break;
    case DEEDS:
        break;
    }
    heart_look(w);
}

/* --- a plan --- */

static enum deed_kind any_kind(struct heart_world *w)
{
    int64_t at = heart_random(w, 0, 99);
    for (int k = 0; k < DEEDS; k++)
        if ((at -= weights[k]) < 0)
            return (enum deed_kind)k;
    return NO_KEYS;
}

static void add(struct heart_world *w, struct plan *p, struct deed d)
{
    size_t at = p->count++;
    check(p->count <= DEEDS_MAX);
    d.world = w;
    for (; at > 0 && p->deeds[at - 1].at_ms > d.at_ms; at--)
        p->deeds[at] = p->deeds[at - 1];
    p->deeds[at] = d;
}

static void set_up(struct heart_world *w, struct plan *p)
{
    static const int64_t faults[] = {0, 0, 20, 100, 300}, slow_ms[] = {20, 60, 60, 250, 1500};
    w->redis_faults = faults[heart_random(w, 0, 4)];
    w->sql_faults = faults[heart_random(w, 0, 4)];
    w->ai_faults = faults[heart_random(w, 0, 4)] * 4;
    w->ai_outages = faults[heart_random(w, 0, 4)] * 8;
    w->ai_refusals = faults[heart_random(w, 0, 4)] * 8;
    w->ai_ms_max = slow_ms[heart_random(w, 0, 4)];
    w->ai_ms_min = w->ai_ms_max / heart_random(w, 1, 10);
    for (int i = 0; i < HEART_USERS; i++) {
        w->users[i].permission = heart_random(w, 1, 5);
        heart_recharge(w, i, heart_random(w, 0, 2) ? RICH : heart_random(w, 0, 200));
    }
    int64_t deeds = heart_random(w, 3, 14), all_ms = heart_random(w, 500, 6000);
    heart_node_up(w, 0);
    heart_node_up(w, 1);
    add(w, p, (struct deed){.kind = SUBMIT, .which = (int)heart_random(w, 0, 1)});
    for (int64_t i = 0; i < deeds; i++) {
        struct deed d = {.kind = any_kind(w),
                         .which = (int)heart_random(w, 0, 11),
                         .at_ms = heart_random(w, 0, all_ms),
                         .number = heart_random(w, 0, 99),
                         .ms = heart_random(w, 0, 3000)};
        int64_t lost_ms = heart_random(w, 0, LOST_MS);
        if (d.kind == RESTART && d.number % 2)
            add(w, p,
                (struct deed){.kind = SAVE, .at_ms = d.at_ms > lost_ms ? d.at_ms - lost_ms : 0});
        add(w, p, d);
    }
}

/* Faults stop, and all runs may work. */
static void calm_down(struct heart_world *w)
{
    w->redis_faults = w->sql_faults = w->no_keys_until_ms = 0;
    w->ai_outages = w->ai_refusals = 0;
    w->ai_ms_min = w->ai_ms_max = CALM_AI_MS;
    for (int i = 0; i < HEART_USERS; i++) {
        heart_permit(w, i, w->users[i].permission > 0 ? w->users[i].permission : 1);
        heart_recharge(w, i, RICH);
    }
    for (int i = 0; i < HEART_NODES; i++)
        if (!w->nodes[i])
            heart_node_up(w, i);
}

/* A charge that was refused before the recharge may pause its run after it: resume repeatedly. */
static void resume_all(struct task *t, struct heart_world *w)
{
    for (size_t i = 0; i < w->run_count; i++)
        if (w->runs[i].state == RUN_PAUSED)
            (void)!heart_control(t, w, &w->runs[i], RUN_RESUME);
}

static void wait_for_rest(struct task *t, struct heart_world *w, int64_t ms)
{
    int64_t until_ms = loop_now_ms(w->loop) + ms;
    while (!heart_at_rest(w) && !*w->problem && loop_now_ms(w->loop) < until_ms) {
        resume_all(t, w);
        (void)heart_settle(t, w, RESUME_MS);
    }
}

static void come_to_rest(struct task *t, struct heart_world *w)
{
    wait_for_rest(t, w, CALM_MS);
    for (size_t i = 0; !heart_at_rest(w) && i < w->run_count; i++) {
        const struct heart_run *r = &w->runs[i];
        if (!run_state_final(r->state) || r->told != r->state || r->leases)
            heart_problem(w, "run %s does not end: %s, in Redis %s with %lld leases", r->qid,
                          run_state_name(r->state), run_state_name(r->told), (long long)r->leases);
    }
    if (!heart_at_rest(w))
        heart_problem(w, "a crew does not close a run that has ended");
}

/* Starts the deeds at their times and waits for all of them; stops at the first problem. */
static void carry_out(struct task *t, struct heart_world *w, struct plan *p)
{
    for (size_t next = 0; (next < p->count || w->group.count) && !*w->problem;) {
        int64_t now_ms = loop_now_ms(w->loop) - w->began_ms, ms = STEP_MS;
        for (; next < p->count && p->deeds[next].at_ms <= now_ms; next++)
            check(task_go(&w->group, "deed", run_deed, &p->deeds[next]) == 0);
        if (next < p->count && p->deeds[next].at_ms - now_ms < ms)
            ms = p->deeds[next].at_ms - now_ms;
        check(task_sleep(t, ms) == 0);
        heart_look(w);
    }
    check(group_join(t, &w->group) == 0);
}

static void play(struct task *t, void *arg)
{
    struct heart_schedule *s = arg;
    struct heart_world *w = heart_world_new(task_loop(t), s->model);
    struct plan p = {.count = 0};
    set_up(w, &p);
    carry_out(t, w, &p);
    calm_down(w);
    come_to_rest(t, w);
    for (int i = 0; i < HEART_NODES; i++)
        heart_node_drain(t, w, i, 5000);
    heart_look_end(w);
    if (loop_task_count(w->loop) != 1)
        heart_problem(w, "%zu tasks are left", loop_task_count(w->loop) - 1);
    s->virtual_ms += loop_now_ms(w->loop) - w->began_ms;
    s->ai_calls += w->ai_calls;
    snprintf(s->problem, sizeof s->problem, "%s", w->problem);
    heart_world_free(w);
}

bool heart_schedule_run(struct heart_schedule *s, uint64_t seed)
{
    struct loop *l = loop_new(&(struct loop_options){.virtual_time = true, .seed = seed});
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "schedule", play, s) == 0);
    loop_run(l);
    loop_free(l);
    return !*s->problem;
}
