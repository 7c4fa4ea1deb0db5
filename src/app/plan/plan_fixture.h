/* plan_fixture.h -- what the tests of plans have in common: real stores, a node, a made-up AI. */
#ifndef APP_PLAN_PLAN_FIXTURE_H
#define APP_PLAN_PLAN_FIXTURE_H

#include <unistd.h>

#include "app/plan/plans_private.h"
#include "app/plan/template.h"
#include "engine/store/keys.h"
#include "tests/node.h"

#define START "2026-03-02"

struct world {
    struct group links, tasks;
    struct node node;
    struct runs runs;
    struct plans *plans;
};

static inline struct test_node node_of(struct world *w)
{
    return (struct test_node){&w->node, &w->links, &w->tasks, &w->runs};
}

static inline void await_trust(struct task *t, struct world *w)
{
    while (!plans_trust(w->plans) || !cache_trusts_redis(w->node.cache))
        pause_ms(t, 2);
}

static inline void open_world(struct task *t, struct world *w)
{
    struct test_node x = node_of(w);
    struct node *n = &w->node;
    node_open(t, &x);
    n->plan_templates = plan_templates_new(
        &(struct plan_templates_options){.redis = n->redis, .sql = n->sql, .metrics = metrics});
    n->plans = w->plans = plans_new(n);
    w->plans->kind.calls_ai = false; /* what claims do is tested with them */
    role_in(&w->tasks, plans_role, w->plans, 10);
    role_in(&w->tasks, plan_templates_role, n->plan_templates, 10);
    node_trust(t, &x);
    await_trust(t, w);
}

static inline void close_world(struct task *t, struct world *w)
{
    struct test_node x = node_of(w);
    node_end(t, &x);
    plans_free(w->plans);
    plan_templates_free(w->node.plan_templates);
    node_release(t, &x);
}

/* --- users --- */

static inline int64_t add_user(struct task *t, struct world *w, int64_t cents)
{
    return node_user(t, w->node.sql, cents);
}

/* --- MySQL, Redis --- */

static inline struct str sql_word(struct task *t, struct world *w, const char *statement,
                                  struct str value)
{
    struct sql_rows r;
    check(sql_call(t, w->node.sql, &r, statement, sql_text(value)) == 0);
    if (r.count == 0)
        return STR("(none)");
    return r.cells[0].type == SQL_INT ? str_int(task_arena(t), r.cells[0].i) : r.cells[0].s;
}

static inline void sql_do(struct task *t, struct world *w, const char *statement, struct str value)
{
    int err = sql_call(t, w->node.sql, NULL, statement, sql_text(value));
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
}

static inline struct str ask_redis(struct task *t, struct world *w, struct str word, struct str key,
                                   const char *field)
{
    const struct redis_reply *r;
    const struct str argv[] = {word, key, str_of(field)};
    check(redis_argv(t, w->node.redis, key, field ? 3 : 2, argv, &r) == 0);
    return r->type == REDIS_INT ? str_int(task_arena(t), r->integer) : r->str;
}

/* --- a made-up AI --- */

/* What is right for the frame. */
static inline struct str made_up(struct arena *a, const struct plan_frame *f)
{
    struct buf b;
    buf_init(&b);
    bool training = f->kind == PLAN_TRAINING;
    buf_add_str(&b, training ? STR("{\"name\":\"Strong\",\"difficulty\":\"medium\",\"days\":[")
                             : STR("{\"name\":\"Lean\",\"daily_calories\":2000,\"macro_ratio\":"
                                   "{\"protein\":0.35,\"carbs\":0.4,\"fat\":0.25},\"days\":["));
    for (int64_t i = 0; i < f->weeks * 7; i++) {
        struct str date = plan_date(a, f, i);
        buf_printf(&b, "%s{\"date\":\"%.*s\",", i ? "," : "", STR_ARG(date));
        if (training)
            buf_printf(&b, "\"day_type\":\"strength\",\"focus_area\":\"lower_body\",\"exercises\":["
                           "{\"name\":\"squat\",\"sets\":4,\"reps\":12,\"weight\":\"70kg\","
                           "\"rest\":\"90s\",\"difficulty\":\"medium\"}],\"duration\":60,"
                           "\"estimated_calories\":350}");
        else
            buf_printf(&b, "\"target_calories\":2000,\"target_protein\":175,\"target_carbs\":200,"
                           "\"target_fat\":56,\"meals\":{\"breakfast\":[{\"name\":\"oats\","
                           "\"calories\":2000,\"protein\":175,\"carbs\":200,\"fat\":56}],"
                           "\"lunch\":[],\"dinner\":[],\"snacks\":[]}}");
    }
    buf_add_str(&b, STR("]}"));
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static inline void shape_of(struct arena *a, const struct plan_frame *f, struct plan_shape *out)
{
    const char *complaint = "";
    int err = plan_shape_read(a, f, made_up(a, f), out, &complaint);
    if (err)
        printf("# %s\n", complaint);
    check(err == 0);
}
#endif
