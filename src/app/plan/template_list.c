/* Lists of templates, for forms. */
#include "app/plan/template_private.h"
#include "engine/store/keys.h"

static int from_mysql(struct task *t, struct plan_templates *p, struct str category,
                      struct plan_template **out, size_t *count)
{
    struct arena *a = task_arena(t);
    const char *why;
    struct sql_rows r;
    int err = sql_call(t, p->sql, &r,
                       record_select(a, &plan_template_record,
                                     "WHERE deleted = 0 AND (? OR category = ?)"
                                     " ORDER BY category, is_default DESC, id LIMIT ?"),
                       sql_int(!category.p), sql_text(category.p ? category : STR("")),
                       sql_int(PLAN_TEMPLATES_LISTED_MAX));
    if (err)
        return err;
    *out = ARENA_ARRAY(a, struct plan_template, r.count);
    *count = 0;
    for (size_t i = 0; i < r.count; i++) {
        struct plan_template *one = &(*out)[*count];
        record_take(&plan_template_record, sql_row(&r, i), one);
        if (!plan_template_parse(a, one, &why)) /* else no plan can be made of it */
            ++*count;
    }
    return 0;
}

static int categories(struct task *t, struct plan_templates *p, const struct redis_reply **out)
{
    struct redis_batch batch; /* where WRONGTYPE is a reply */
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, p->redis);
    redis_batch_add(&batch, key_template_categories, STR("SMEMBERS"), key_template_categories);
    int err = redis_batch_run(&batch, &replies);
    if (!err)
        *out = replies[0];
    return err;
}

static int from_redis(struct task *t, struct plan_templates *p, struct str category,
                      struct plan_template **out, size_t *count)
{
    const struct redis_reply *all;
    bool found;
    int err = categories(t, p, &all);
    if (err)
        return err;
    size_t most = all->type == REDIS_ARRAY ? all->count : 0;
    *out = ARENA_ARRAY(task_arena(t), struct plan_template, most);
    *count = 0;
    for (size_t i = 0; !err && i < most && i < PLAN_TEMPLATES_LISTED_MAX; i++) {
        struct str name = all->items[i]->str;
        if (category.p && !str_eq(category, name))
            continue;
        err = plan_template_look(t, p, name, 0, &(*out)[*count], &found);
        *count += !err && found;
    }
    return err;
}

int plan_templates_list(struct task *t, struct plan_templates *p, struct str category,
                        struct plan_template **out, size_t *count, bool *degraded)
{
    int err = from_mysql(t, p, category, out, count);
    *degraded = err || !plan_templates_trust(p);
    if (!err || !cache_goes_on(t) || !plan_templates_trust(p))
        return err;
    return from_redis(t, p, category, out, count);
}
