#include "engine/store/role.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"

struct role_state {
    struct list link; /* of roles */
    struct role role;
    struct roles *roles;
    struct role_turn turn;
    int64_t pause_ms;
    int last; /* what the last round returned */
};

struct roles {
    struct redis *redis;
    const bool *draining;
    struct list list; /* struct role_state, owned */
};

struct roles *roles_new(struct redis *r, const bool *draining)
{
    struct roles *x = check_memory(calloc(1, sizeof *x));
    x->redis = r;
    x->draining = draining;
    list_init(&x->list);
    return x;
}

void roles_free(struct roles *x)
{
    for (struct list *it; (it = list_pop(&x->list));)
        free(list_entry(it, struct role_state, link));
    free(x);
}

/* --- the lock --- */

int role_keep(struct task *t, struct role_turn *turn)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (!turn->locked || now_ms - turn->kept_ms < turn->ms / 3)
        return 0;
    int err = lock_keep(t, &turn->lock, turn->ms);
    if (!err)
        turn->kept_ms = now_ms;
    return err;
}

static void let_go(struct task *t, struct role_state *s)
{
    if (!s->turn.locked)
        return;
    /* Without an answer (Redis is away, t is cancelled) it may still be held: a Redis that comes
     * back has it, and the next round renews it instead of waiting for its end. */
    s->turn.locked = !lock_drop(t, &s->turn.lock);
    s->turn.kept_ms -= s->turn.ms;
}

/* Before each round. ERR_BUSY: another node has the lock, and this one has nothing to do. */
static int take(struct task *t, struct role_state *s)
{
    const struct role *r = &s->role;
    if (!r->lock)
        return 0;
    if (s->turn.locked)
        return role_keep(t, &s->turn);
    int err = lock_take(t, s->roles->redis, *r->lock, r->lock_ms, &s->turn.lock);
    s->turn.locked = !err;
    s->turn.ms = r->lock_ms;
    s->turn.kept_ms = loop_now_ms(task_loop(t));
    return err;
}

/* --- rounds --- */

static void report(struct task *t, struct role_state *s, int err)
{
    if (err == ROLE_IDLE)
        return;
    bool failed = err < 0 && err != ERR_BUSY && err != ERR_CONFLICT && err != ERR_CANCELED;
    if (failed && s->last >= 0)
        log_warn(s->role.name, "%s: %s; it is tried again", s->role.complaint, task_error(t));
    if (!failed && err >= 0 && s->last < 0)
        log_info(s->role.name, "works again");
    if (failed || err >= 0)
        s->last = err;
}

static int one_round(struct task *t, struct role_state *s)
{
    const struct role *r = &s->role;
    struct task_scope scope = task_scope(t);
    int err = take(t, s);
    if (!err)
        err = r->round(t, r->arg, &s->turn);
    report(t, s, err);
    if (err < 0)
        let_go(t, s);
    if (err < 0 && r->elsewhere)
        r->elsewhere(r->arg);
    task_scope_end(t, scope);
    return err;
}

static void rest(struct task *t, struct role_state *s)
{
    struct task_scope scope = task_scope(t);
    let_go(t, s);
    task_scope_end(t, scope);
}

static int pause(struct task *t, struct role_state *s, int err)
{
    const struct role *r = &s->role;
    int64_t most = r->each_ms_max > r->each_ms ? r->each_ms_max : r->each_ms;
    bool failed = err < 0 && err != ERR_BUSY && err != ERR_CONFLICT;
    if (err != ROLE_IDLE)
        s->pause_ms = failed ? s->pause_ms * 2 : r->each_ms;
    if (s->pause_ms > most)
        s->pause_ms = most;
    return err == ROLE_MORE ? task_yield(t) : task_sleep(t, loop_jitter(task_loop(t), s->pause_ms));
}

static void role_task(struct task *t, void *arg)
{
    struct role_state *s = arg;
    int err;
    do {
        bool rests = s->role.lock && *s->roles->draining;
        if (rests)
            rest(t, s);
        err = rests ? 0 : one_round(t, s);
    } while (!task_canceled(t) && pause(t, s, err) != ERR_CANCELED);
}

void roles_go(struct roles *x, struct group *g, const struct role *r)
{
    check(r->each_ms > 0 && (!r->lock || r->lock_ms > 0));
    struct role_state *s = check_memory(malloc(sizeof *s));
    *s = (struct role_state){.role = *r, .roles = x, .pause_ms = r->each_ms};
    list_push(&x->list, &s->link);
    check(task_go(g, r->name, role_task, s) == 0);
}

void roles_part(struct task *t, struct roles *x)
{
    list_each (it, &x->list)
        let_go(t, list_entry(it, struct role_state, link));
}
