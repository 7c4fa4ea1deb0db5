/* What admins do to templates: a transaction with its row in their log, then Redis is told. */
#include "app/plan/template_private.h"
#include "base/err.h"
#include "engine/store/cluster.h"
#include "engine/store/keys.h"

struct change {
    struct plan_template *template;
    const struct admin_deed *by;
    int64_t id, version; /* in: that the caller has seen; out: afterwards */
};

/* The admin's log names versions; their texts are in prompt_template_version. */
static struct str told(struct task *t, const struct plan_template *p)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_str(&w, "category", p->category);
    jw_put_str(&w, "subcategory", p->subcategory);
    jw_put_str(&w, "name", p->name);
    jw_put_int(&w, "version", p->version);
    jw_put_bool(&w, "is_default", p->is_default);
    return jw_finish(&w, task_arena(t));
}

static int note(struct task *t, struct sql *c, const struct change *x,
                const struct plan_template *before, const struct plan_template *after)
{
    struct admin_deed d = *x->by;
    d.target = str_int(task_arena(t), before ? before->id : after->id);
    d.before = before ? told(t, before) : STR_NULL;
    d.after = after ? told(t, after) : STR_NULL;
    return admin_audit_add(t, c, &d);
}

static int none(struct task *t, int64_t id)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no template %lld", (long long)id);
}

/* Changes of templates take turns: which one is the default, and how many there are, is of all. */
static int lock(struct task *t, struct sql *c, int64_t id, struct plan_template *out)
{
    struct sql_rows r;
    int err = cluster_turn(t, c, "templates", 0);
    if (!err)
        err = sql_on(t, c, &r, "SELECT id FROM prompt_template ORDER BY id LIMIT 1 FOR UPDATE");
    if (!err && id)
        err = sql_on(t, c, &r,
                     record_select(task_arena(t), &plan_template_record,
                                   "WHERE id = ? AND deleted = 0 FOR UPDATE"),
                     sql_int(id));
    if (err || !id)
        return err;
    if (r.count == 0)
        return none(t, id);
    *out = (struct plan_template){0};
    record_take(&plan_template_record, r.cells, out);
    return 0;
}

static int count(struct task *t, struct sql *c, struct str category, int64_t *in_category,
                 int64_t *in_all)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT COUNT(IF(category = ?, 1, NULL)), COUNT(*) FROM prompt_template"
                     " WHERE deleted = 0",
                     sql_text(category));
    if (err)
        return err;
    *in_category = r.cells[0].i;
    *in_all = r.cells[1].i;
    return 0;
}

static int keep_version(struct task *t, struct sql *c, int64_t id)
{
    return sql_on(t, c, NULL,
                  "INSERT INTO prompt_template_version (template_id, version, subcategory, name,"
                  " template, variables, changed, changed_by)"
                  " SELECT id, version, subcategory, name, template, variables, changed, changed_by"
                  " FROM prompt_template WHERE id = ?",
                  sql_int(id));
}

static int tell(struct task *t, struct plan_templates *x)
{
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (redis_up_at(x->redis, key_template_categories) && plan_templates_tell(t, x, false))
        (void)task_fail(t, 0, "%s", text); /* it is committed; the role tells Redis later */
    return 0;
}

/* --- add --- */

static int add(struct task *t, struct sql *c, void *arg)
{
    struct change *x = arg;
    struct plan_template *p = x->template;
    struct sql_rows r;
    int64_t in_category = 0, in_all = 0;
    int err = lock(t, c, 0, NULL);
    if (!err)
        err = count(t, c, p->category, &in_category, &in_all);
    if (!err && in_all >= PLAN_TEMPLATES_MAX)
        err = task_fail(t, ERR_CONFLICT,
                        "there are %d templates already: delete one that is not"
                        " needed",
                        PLAN_TEMPLATES_MAX);
    if (err)
        return err;
    p->is_default = in_category == 0;
    p->version = 1;
    err = sql_on(t, c, &r,
                 "INSERT INTO prompt_template (category, subcategory, name, template, variables,"
                 " is_default, changed, changed_by) VALUES (?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3), ?)",
                 sql_text(p->category), sql_text(p->subcategory), sql_text(p->name),
                 sql_text(p->text), sql_text(p->variables_json), sql_int(p->is_default),
                 sql_text(x->by->admin_name));
    if (err)
        return err;
    p->id = (int64_t)r.insert_id;
    err = keep_version(t, c, p->id);
    return err ? err : note(t, c, x, NULL, p);
}

int plan_template_add(struct task *t, struct plan_templates *x, struct plan_template *p,
                      const struct admin_deed *by)
{
    struct change change = {.template = p, .by = by};
    int err = sql_tx(t, x->sql, add, &change);
    return err ? err : tell(t, x);
}

/* --- change --- */

static int stale(struct task *t, const struct plan_template *now, int64_t seen)
{
    if (seen == 0 || now->version == seen)
        return 0;
    return task_fail(t, ERR_CONFLICT, "the template was changed meanwhile: it is version %lld now",
                     (long long)now->version);
}

static int change(struct task *t, struct sql *c, void *arg)
{
    struct change *x = arg;
    struct plan_template before, *p = x->template;
    int err = lock(t, c, x->id, &before);
    if (!err)
        err = stale(t, &before, x->version);
    if (err)
        return err;
    p->is_default = before.is_default;
    p->version = before.version + 1;
    err = sql_on(t, c, NULL,
                 "UPDATE prompt_template SET subcategory = ?, name = ?, template = ?,"
                 " variables = ?, version = version + 1, changed = UTC_TIMESTAMP(3),"
                 " changed_by = ? WHERE id = ?",
                 sql_text(p->subcategory), sql_text(p->name), sql_text(p->text),
                 sql_text(p->variables_json), sql_text(x->by->admin_name), sql_int(x->id));
    if (!err)
        err = keep_version(t, c, x->id);
    return err ? err : note(t, c, x, &before, p);
}

int plan_template_change(struct task *t, struct plan_templates *x, struct plan_template *p,
                         const struct admin_deed *by)
{
    struct change arg = {.template = p, .by = by, .id = p->id, .version = p->version};
    int err = sql_tx(t, x->sql, change, &arg);
    return err ? err : tell(t, x);
}

/* --- the default --- */

/* The old one first: no two of a category are the default, not even for a moment. */
static int make_default(struct task *t, struct sql *c, void *arg)
{
    struct change *x = arg;
    struct plan_template before, after;
    int err = lock(t, c, x->id, &before);
    if (err)
        return err;
    x->version = before.version;
    if (before.is_default)
        return 0;
    err = sql_on(t, c, NULL,
                 "UPDATE prompt_template SET is_default = 0, version = version + 1"
                 " WHERE category = ? AND is_default = 1 AND deleted = 0",
                 sql_text(before.category));
    if (!err)
        err = sql_on(t, c, NULL,
                     "UPDATE prompt_template SET is_default = 1, version = version + 1"
                     " WHERE id = ?",
                     sql_int(x->id));
    if (err)
        return err;
    after = before;
    after.is_default = true;
    x->version = ++after.version;
    return note(t, c, x, &before, &after);
}

int plan_template_make_default(struct task *t, struct plan_templates *x, int64_t id,
                               const struct admin_deed *by, int64_t *version)
{
    struct change change = {.by = by, .id = id};
    int err = sql_tx(t, x->sql, make_default, &change);
    if (err)
        return err;
    *version = change.version;
    return tell(t, x);
}

/* --- delete --- */

/* A category keeps its default: it goes last, and of plans never. */
static int may_delete(struct task *t, struct sql *c, const struct plan_template *p)
{
    int64_t in_category = 0, in_all = 0;
    int err = p->is_default ? count(t, c, p->category, &in_category, &in_all) : 0;
    if (err || !p->is_default)
        return err;
    if (in_category > 1 || plan_template_is_plan(p->category))
        return task_fail(t, ERR_CONFLICT,
                         "the template is the default of \"%.*s\": make another one"
                         " the default first",
                         STR_ARG(p->category));
    return 0;
}

static int delete (struct task *t, struct sql *c, void *arg)
{
    struct change *x = arg;
    struct plan_template before;
    int err = lock(t, c, x->id, &before);
    if (!err)
        err = stale(t, &before, x->version);
    if (!err)
        err = may_delete(t, c, &before);
    if (!err)
        err = sql_on(t, c, NULL,
                     "UPDATE prompt_template SET deleted = 1, is_default = 0,"
                     " version = version + 1, changed = UTC_TIMESTAMP(3), changed_by = ?"
                     " WHERE id = ?",
                     sql_text(x->by->admin_name), sql_int(x->id));
    return err ? err : note(t, c, x, &before, NULL);
}

int plan_template_delete(struct task *t, struct plan_templates *x, int64_t id, int64_t version,
                         const struct admin_deed *by)
{
    struct change change = {.by = by, .id = id, .version = version};
    int err = sql_tx(t, x->sql, delete, &change);
    return err ? err : tell(t, x);
}
