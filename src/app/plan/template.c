#include "app/plan/template.h"

#include <stdlib.h>

#include "app/plan/template_private.h"
#include "base/log.h"
#include "engine/store/cache.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define TTL_MS       (30LL * 24 * 3600 * 1000)
#define TELL_EACH_MS 1000
#define TELL_ROWS    50 /* read at once */

#define AT(member) .at = offsetof(struct plan_template, member)
static const struct record_column columns[] = {
    {"id", NULL, RECORD_INT, AT(id)},
    {"name", NULL, RECORD_TEXT, AT(name)},
    {"category", NULL, RECORD_TEXT, AT(category)},
    {"subcategory", NULL, RECORD_TEXT, AT(subcategory)},
    {"template", NULL, RECORD_TEXT, AT(text)},
    {"variables", NULL, RECORD_TEXT, AT(variables_json)},
    {"is_default", NULL, RECORD_FLAG, AT(is_default), .words = {"0", "1"}},
    {"version", NULL, RECORD_INT, AT(version)},
    {NULL, "deleted", RECORD_FLAG, AT(deleted), .words = {"0", "1"}},
    {.type = RECORD_END},
};
const struct record_kind plan_template_record = {"prompt_template", columns,
                                                 sizeof(struct plan_template)};

struct plan_templates *plan_templates_new(const struct plan_templates_options *o)
{
    struct plan_templates *p = check_memory(calloc(1, sizeof *p));
    p->redis = o->redis;
    p->sql = o->sql;
    p->counts = cache_counts_new(o->metrics, "template");
    sem_init(&p->loading, 1);
    return p;
}

void plan_templates_free(struct plan_templates *p)
{
    free(p);
}

bool plan_templates_trust(const struct plan_templates *p)
{
    return p->told_epoch && redis_up_at(p->redis, key_template_categories) &&
           p->told_epoch == redis_epoch_at(p->redis, key_template_categories);
}

int plan_template_parse(struct arena *a, struct plan_template *p, const char **why)
{
    const struct json *list;
    if (!plan_name_is(p->category, PLAN_CATEGORY_CHARS)) {
        *why = "category: is no name";
        return ERR_INVALID;
    }
    if (json_parse(a, p->variables_json, &list, NULL)) {
        *why = "variables: is no JSON";
        return ERR_INVALID;
    }
    int err = plan_variables_read(a, list, p, why);
    if (err)
        return err;
    const char *problem = plan_text_problem(a, p);
    if (problem)
        *why = arena_printf(a, "%s: %s", "template", problem);
    return problem ? ERR_INVALID : 0;
}

/* --- into Redis --- */

int plan_template_put(struct task *t, struct plan_templates *p, const struct plan_template *row,
                      bool *kept)
{
    struct arena *a = task_arena(t);
    int64_t done = 0;
    int err = SCRIPT_NUMBER(
        t, p->redis, template_put, &done, .record = key_template(a, row->category, row->id),
        .chosen = key_template_default(a, row->category), .categories = key_template_categories,
        .id = str_int(a, row->id), .category = row->category, .version = str_int(a, row->version),
        .state = row->deleted      ? STR("gone")
                 : row->is_default ? STR("default")
                                   : STR("plain"),
        .ms = str_int(a, TTL_MS), .fields = record_write(a, &plan_template_record, row));
    if (!err)
        *kept = done == 0;
    return err;
}

struct page {
    struct plan_template rows[TELL_ROWS];
    bool news[TELL_ROWS]; /* told is behind */
    size_t count;
};

/* Of a template that was deleted Redis keeps the version alone. */
static int read_page(struct task *t, struct plan_templates *p, int64_t after, bool all,
                     struct page *out)
{
    struct sql_rows r;
    int err = sql_call(t, p->sql, &r,
                       "SELECT id, name, category, subcategory, IF(deleted, '', template),"
                       " IF(deleted, '', variables), is_default, version, deleted, told <> version"
                       " FROM prompt_template WHERE id > ? AND (told <> version OR ?)"
                       " ORDER BY id LIMIT ?",
                       sql_int(after), sql_int(all), sql_int(TELL_ROWS));
    if (err)
        return err;
    check(r.count <= TELL_ROWS);
    out->count = r.count;
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        record_take(&plan_template_record, row, &out->rows[i]);
        out->news[i] = row[9].i != 0;
    }
    return 0;
}

/* told follows, unless the row was changed meanwhile. */
static int tell_one(struct task *t, struct plan_templates *p, const struct plan_template *row,
                    bool news)
{
    bool kept;
    int err = plan_template_put(t, p, row, &kept);
    if (err || !news)
        return err;
    return sql_call(t, p->sql, NULL,
                    "UPDATE prompt_template SET told = ? WHERE id = ? AND version = ?",
                    sql_int(row->version), sql_int(row->id), sql_int(row->version));
}

static int tell_page(struct task *t, struct plan_templates *p, int64_t *after, bool all, bool *more)
{
    struct page *page = ARENA_NEW(task_arena(t), struct page);
    int err = read_page(t, p, *after, all, page);
    for (size_t i = 0; !err && i < page->count; i++)
        err = tell_one(t, p, &page->rows[i], page->news[i]);
    if (page->count)
        *after = page->rows[page->count - 1].id;
    *more = page->count == TELL_ROWS;
    return err;
}

int plan_templates_tell(struct task *t, struct plan_templates *p, bool all)
{
    int64_t after = 0;
    int err = 0;
    for (bool more = true; !err && more;) {
        struct task_scope s = task_scope(t);
        err = tell_page(t, p, &after, all, &more);
        task_scope_end(t, s);
    }
    return err;
}

/* All rows on a new connection, the news each TELL_EACH_MS. */
int plan_templates_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    struct plan_templates *p = arg;
    uint64_t epoch = redis_epoch_at(p->redis, key_template_categories);
    bool fresh = epoch != p->told_epoch;
    if (!redis_up_at(p->redis, key_template_categories) ||
        (!fresh && loop_now_ms(task_loop(t)) < p->due_ms))
        return ROLE_IDLE;
    p->due_ms = loop_now_ms(task_loop(t)) + TELL_EACH_MS;
    int err = plan_templates_tell(t, p, fresh);
    /* After a reconnect it is repeated: the server may be another one. */
    if (!err && fresh && epoch == redis_epoch_at(p->redis, key_template_categories))
        p->told_epoch = epoch;
    return err;
}

/* --- reading --- */

static int none(struct task *t, struct str category, int64_t id)
{
    if (id == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no template of category \"%.*s\"",
                         STR_ARG(category));
    return task_fail(t, ERR_NOT_FOUND, "there is no template %lld of category \"%.*s\"",
                     (long long)id, STR_ARG(category));
}

/* The id of the default; 0: not known. */
static int look_default(struct task *t, struct plan_templates *p, struct str category, int64_t *id)
{
    struct str key = key_template_default(task_arena(t), category);
    const struct redis_reply *const *replies;
    struct redis_batch batch; /* where WRONGTYPE is a reply */
    redis_batch_init(&batch, t, p->redis);
    redis_batch_add(&batch, key, STR("GET"), key);
    int err = redis_batch_run(&batch, &replies);
    if (!err && (replies[0]->type != REDIS_STRING || !str_to_i64(replies[0]->str, id) || *id < 1))
        *id = 0;
    return err;
}

/* *found stays false: Redis has none, or something else, or was told meanwhile that it is not the
 * default. */
static int look_one(struct task *t, struct plan_templates *p, struct str category, int64_t id,
                    bool chosen, struct plan_template *out, bool *found)
{
    struct str key = key_template(task_arena(t), category, id);
    const struct redis_reply *const *replies;
    const char *why;
    struct redis_batch batch;
    redis_batch_init(&batch, t, p->redis);
    redis_batch_add(&batch, key, STR("HGETALL"), key);
    int err = redis_batch_run(&batch, &replies);
    if (err)
        return err;
    *found = record_read(&plan_template_record, replies[0], out) && out->id == id &&
             str_eq(out->category, category) && (!chosen || out->is_default) &&
             !plan_template_parse(task_arena(t), out, &why);
    return 0;
}

/* Redis may fail here: then it has nothing, and MySQL answers. */
int plan_template_look(struct task *t, struct plan_templates *p, struct str category, int64_t id,
                       struct plan_template *out, bool *found)
{
    bool chosen = id == 0;
    int err = 0;
    *found = false;
    if (!plan_templates_trust(p))
        return 0;
    if (chosen)
        err = look_default(t, p, category, &id);
    if (!err && id)
        err = look_one(t, p, category, id, chosen, out, found);
    return err && cache_goes_on(t) ? 0 : err;
}

static int load(struct task *t, struct plan_templates *p, struct str category, int64_t id,
                struct plan_template *out)
{
    bool trusted = plan_templates_trust(p), kept;
    struct arena *a = task_arena(t);
    const char *why = "";
    struct sql_rows r;
    metric_add(p->counts.loads, 1);
    int err = sql_call(t, p->sql, &r,
                       record_select(a, &plan_template_record,
                                     "WHERE category = ? AND deleted = 0"
                                     " AND IF(? = 0, is_default = 1, id = ?)"),
                       sql_text(category), sql_int(id), sql_int(id));
    if (err)
        return err;
    if (r.count == 0)
        return none(t, category, id);
    *out = (struct plan_template){0};
    record_take(&plan_template_record, r.cells, out);
    if (plan_template_parse(a, out, &why))
        return task_fail(t, ERR_INTERNAL, "template %lld is damaged: %s", (long long)out->id, why);
    err = trusted ? plan_template_put(t, p, out, &kept) : 0;
    out->degraded = !trusted || err;
    return err && !cache_goes_on(t) ? err : 0;
}

/* A task that waited for another one's load finds in Redis what that has filled in. */
static int load_alone(struct task *t, struct plan_templates *p, struct str category, int64_t id,
                      struct plan_template *out)
{
    bool found = false, waits = !sem_try(&p->loading);
    int err = waits ? sem_get(t, &p->loading) : 0;
    if (err)
        return err;
    if (waits)
        err = plan_template_look(t, p, category, id, out, &found);
    if (!err && !found)
        err = load(t, p, category, id, out);
    sem_put(&p->loading);
    return err;
}

int plan_template_get(struct task *t, struct node *n, struct str category, int64_t id,
                      struct plan_template *out)
{
    struct plan_templates *p = n->plan_templates;
    struct plan_template got = {0};
    bool found;
    if (!plan_name_is(category, PLAN_CATEGORY_CHARS) || id < 0 || id > INT32_MAX)
        return task_fail(t, ERR_NOT_FOUND, "there is no such template");
    int err = plan_template_look(t, p, category, id, &got, &found);
    if (err)
        return err;
    metric_add(found ? p->counts.hits : p->counts.misses, 1);
    if (!found)
        err = load_alone(t, p, category, id, &got);
    if (!err)
        *out = got;
    return err;
}
