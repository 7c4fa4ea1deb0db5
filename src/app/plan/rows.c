/* Plans and days as MySQL has them. Statements are made of the constants in plan_types; values are
 * bound. */
#include "app/plan/plans_private.h"

static struct plan_snapshot snapshot(struct task *t, const struct plans *p, int64_t uid)
{
    return (struct plan_snapshot){.generation = plan_generation(t, p, uid)};
}

/* --- days --- */

static struct str text_of(struct arena *a, const struct json *j)
{
    if (j->type == JSON_STRING)
        return j->s;
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_json(&w, j);
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

bool plan_day_members(struct arena *a, enum plan_kind kind, struct str json, struct plan_day *out)
{
    const struct plan_type *y = &plan_types[kind];
    const struct json *day;
    if (json_parse(a, json, &day, NULL))
        return false;
    for (size_t i = 0; i < PLAN_DAY_FIELDS; i++) {
        const struct json *member = json_get(day, y->fields[i]);
        if (!member || (member->type == JSON_STRING) != y->text[i])
            return false;
        *(struct str *)((char *)out + y->at[i]) = text_of(a, member);
    }
    out->json = json;
    return true;
}

/* A day in the list of a plan's days: its object, and its version in it. */
static void add_day(struct buf *b, struct str json, int64_t version)
{
    buf_add_char(b, b->len ? ',' : '[');
    buf_add(b, json.p, json.n - 1); /* without its last brace */
    buf_add_lit(b, ",\"version\":");
    buf_add_int(b, version);
    buf_add_char(b, '}');
}

static struct str end_days(struct arena *a, struct buf *b)
{
    buf_add_str(b, b->len ? STR("]") : STR("[]"));
    struct str days = str_dup(a, buf_str(b));
    buf_release(b);
    return days;
}

struct str plan_days_json(struct arena *a, const struct plan_shape *shape)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < shape->day_count; i++)
        add_day(&b, shape->days[i].json, 1);
    return end_days(a, &b);
}

static int load_days(struct task *t, struct plans *p, struct plan *x)
{
    const struct plan_type *y = &plan_types[x->kind];
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       arena_printf(task_arena(t),
                                    "SELECT day, version FROM %s WHERE plan_id = ? ORDER BY date",
                                    y->days),
                       sql_text(x->id));
    if (err)
        return err;
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        add_day(&b, cell[0].s, cell[1].i);
    }
    x->days = end_days(task_arena(t), &b);
    return 0;
}

/* --- reading --- */

/* The number of changes comes with the plan's own row, before the days: these are not older. */
int plan_load(struct task *t, struct plans *p, int64_t uid, struct plan *out,
              struct plan_snapshot *at)
{
    const struct record_kind *k = &plan_types[out->kind].record;
    struct plan x = {.kind = out->kind};
    struct sql_rows r;
    *at = snapshot(t, p, uid);
    int err = sql_call(
        t, p->node->sql, &r,
        record_select(task_arena(t), k, "WHERE x.id = ? AND x.uid = ? AND x.deleted IS NULL"),
        sql_text(out->id), sql_int(uid));
    if (err || r.count == 0)
        return err ? err : plan_none(t);
    record_take(k, r.cells, &x);
    at->version = x.seen;
    err = load_days(t, p, &x);
    if (!err)
        *out = x;
    return err;
}

int plan_date_load(struct task *t, struct plans *p, int64_t uid, struct plan_date *out,
                   bool *active, struct plan_snapshot *at)
{
    const struct plan_type *y = &plan_types[out->kind];
    struct plan_date d = {.kind = out->kind, .plan_id = out->plan_id, .day.date = out->day.date};
    struct sql_rows r;
    *at = snapshot(t, p, uid);
    int err = sql_call(t, p->node->sql, &r,
                       arena_printf(task_arena(t),
                                    "SELECT d.day, d.version, u.version, COALESCE(u.%s = x.id, 0)"
                                    " FROM %s d JOIN %s x ON x.id = d.plan_id"
                                    " JOIN plan_user u ON u.uid = x.uid"
                                    " WHERE d.plan_id = ? AND d.date = ? AND x.uid = ?"
                                    " AND x.deleted IS NULL",
                                    y->name, y->days, y->plans),
                       sql_text(out->plan_id), sql_text(out->day.date), sql_int(uid));
    if (err || r.count == 0)
        return err ? err : task_fail(t, ERR_NOT_FOUND, "there is no such plan, or no such day");
    if (!plan_day_members(task_arena(t), out->kind, r.cells[0].s, &d.day))
        return task_fail(t, ERR_INTERNAL, "%s: %.*s of plan %.*s cannot be read", y->days,
                         STR_ARG(out->day.date), STR_ARG(out->plan_id));
    d.version = r.cells[1].i;
    at->version = r.cells[2].i;
    *active = r.cells[3].i != 0;
    *out = d;
    return 0;
}

int plan_active_load(struct task *t, struct plans *p, int64_t uid, enum plan_kind kind,
                     struct str *id, struct plan_snapshot *at)
{
    struct sql_rows r;
    *at = snapshot(t, p, uid);
    int err =
        sql_call(t, p->node->sql, &r,
                 arena_printf(task_arena(t), "SELECT %s, version FROM plan_user WHERE uid = ?",
                              plan_types[kind].name),
                 sql_int(uid));
    if (err)
        return err;
    *id = r.count ? r.cells[0].s : STR_NULL;
    at->version = r.count ? r.cells[1].i : 0;
    return 0;
}

/* --- pages --- */

static int list_kind(struct task *t, struct plans *p, int64_t uid, enum plan_kind kind,
                     int64_t below, int64_t limit, struct plan_page *out)
{
    const struct record_kind *k = &plan_types[kind].record;
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       record_select(task_arena(t), k,
                                     "WHERE x.uid = ? AND x.deleted IS NULL AND x.number < ?"
                                     " ORDER BY x.number DESC LIMIT ?"),
                       sql_int(uid), sql_int(below), sql_int(limit));
    if (err)
        return err;
    out->list = ARENA_ARRAY(task_arena(t), struct plan, r.count + 1);
    out->count = r.count;
    for (size_t i = 0; i < r.count; i++) {
        out->list[i] = (struct plan){.kind = kind};
        record_take(k, sql_row(&r, i), &out->list[i]);
    }
    return 0;
}

/* Both lists in one order; one more than limit tells that there is more. */
static void merge(struct task *t, const struct plan_page *of, int64_t limit, struct plan_page *out)
{
    size_t at[PLAN_KIND_COUNT] = {0};
    size_t all = of[PLAN_TRAINING].count + of[PLAN_NUTRITION].count;
    *out = (struct plan_page){.list = ARENA_ARRAY(task_arena(t), struct plan, all + 1)};
    while (out->count < all && out->count < (size_t)limit) {
        size_t *a = &at[PLAN_TRAINING], *b = &at[PLAN_NUTRITION];
        const struct plan_page *x = &of[PLAN_TRAINING], *y = &of[PLAN_NUTRITION];
        bool first = *b == y->count || (*a < x->count && x->list[*a].number > y->list[*b].number);
        out->list[out->count++] = first ? x->list[(*a)++] : y->list[(*b)++];
    }
    out->next = all > out->count ? out->list[out->count - 1].number : 0;
}

int plan_list(struct task *t, struct plans *p, int64_t uid, unsigned kinds, int64_t below,
              int64_t limit, struct plan_page *out)
{
    struct plan_page of[PLAN_KIND_COUNT] = {{.count = 0}, {.count = 0}};
    int err = 0;
    check(limit > 0 && limit <= PLAN_PAGE_MAX);
    for (size_t i = 0; !err && i < PLAN_KIND_COUNT; i++)
        if (kinds & 1U << i)
            err = list_kind(t, p, uid, (enum plan_kind)i, below, limit + 1, &of[i]);
    if (!err)
        merge(t, of, limit, out);
    return err;
}

/* --- writing --- */

static void read_owner(const struct sql_rows *r, struct plan_owner *out)
{
    *out = (struct plan_owner){.version = 0};
    if (r->count == 0)
        return;
    out->version = r->cells[0].i;
    out->active[PLAN_TRAINING] = r->cells[1].s;
    out->active[PLAN_NUTRITION] = r->cells[2].s;
}

#define OWNER "SELECT version, training, nutrition FROM plan_user WHERE uid = ?"

int plan_owner_read(struct task *t, struct plans *p, int64_t uid, struct plan_owner *out)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r, OWNER, sql_int(uid));
    if (!err)
        read_owner(&r, out);
    return err;
}

int plan_owner_lock(struct task *t, struct sql *c, int64_t uid, struct plan_owner *out)
{
    struct sql_rows r;
    int err = sql_on(t, c, NULL,
                     "INSERT INTO plan_user (uid, version, untold) VALUES (?, 1, 1)"
                     " ON DUPLICATE KEY UPDATE version = version + 1, untold = 1",
                     sql_int(uid));
    if (!err)
        err = sql_on(t, c, &r, OWNER, sql_int(uid));
    if (!err)
        read_owner(&r, out);
    return err;
}

int plan_owner_activate(struct task *t, struct sql *c, int64_t uid, enum plan_kind kind,
                        struct str id, struct plan_owner *o)
{
    o->active[kind] = id;
    return sql_on(t, c, NULL,
                  arena_printf(task_arena(t), "UPDATE plan_user SET %s = ? WHERE uid = ?",
                               plan_types[kind].name),
                  sql_text(id), sql_int(uid));
}

#define INSERT_OF_ALL                                                                              \
    "(id, uid, number, name, start_date, end_date, total_weeks, template_id, template_version,"    \
    " variables, simulated, version, created_at, changed_at, "

#define AT_US "TIMESTAMPADD(MICROSECOND, ?, '1970-01-01')"

static int insert_row(struct task *t, struct sql *c, const struct plan *x)
{
    bool training = x->kind == PLAN_TRAINING;
    const char *statement =
        training ? "INSERT INTO training_plan " INSERT_OF_ALL "difficulty) VALUES (?, ?, ?, ?, ?,"
                   " ?, ?, ?, ?, ?, ?, ?, " AT_US ", " AT_US ", ?)"
                 : "INSERT INTO nutrition_plan " INSERT_OF_ALL "daily_calories, macro_ratio)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " AT_US ", " AT_US ", ?, ?)";
    const struct sql_value v[] = {sql_text(x->id),
                                  sql_int(x->uid),
                                  sql_int(x->number),
                                  sql_text(x->name),
                                  sql_text(x->start_date),
                                  sql_text(x->end_date),
                                  sql_int(x->weeks),
                                  sql_int(x->template_id),
                                  sql_int(x->template_version),
                                  sql_text(x->variables),
                                  sql_int(x->simulated),
                                  sql_int(x->version),
                                  sql_int(x->created_ms * 1000),
                                  sql_int(x->changed_ms * 1000),
                                  training ? sql_text(x->difficulty) : sql_int(x->daily_calories),
                                  sql_text(x->macro_ratio)};
    return sql_on_argv(t, c, statement, sizeof v / sizeof *v - training, v, NULL);
}

int plan_insert(struct task *t, struct sql *c, const struct plan *x, const struct plan_shape *shape)
{
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 3 * shape->day_count);
    for (size_t i = 0; i < shape->day_count; i++) {
        cells[3 * i] = sql_text(x->id);
        cells[3 * i + 1] = sql_text(shape->days[i].date);
        cells[3 * i + 2] = sql_text(shape->days[i].json);
    }
    int err = insert_row(t, c, x);
    return err ? err
               : sql_bulk(t, c,
                          arena_printf(task_arena(t), "INSERT INTO %s (plan_id, date, day) VALUES",
                                       plan_types[x->kind].days),
                          "", 3, shape->day_count, cells, NULL);
}
