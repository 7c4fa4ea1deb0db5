/* What Redis has of plans; plans.h tells why nothing old comes back. */
#include "app/plan/plans_private.h"
#include "engine/store/cache.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

bool plans_trust(const struct plans *p)
{
    const struct redis *r = p->node->redis;
    return p->told_epoch && redis_up(r) && p->told_epoch == redis_epoch(r);
}

struct generation plan_generation(struct task *t, const struct plans *p, int64_t uid)
{
    return generation_at(p->node->redis, key_plans(task_arena(t), uid));
}

/* --- entries --- */

struct plan_entry plan_entry_of(struct arena *a, const struct plan *x)
{
    const struct plan_type *y = &plan_types[x->kind];
    return (struct plan_entry){y->key(a, x->id), y->plan_ms, record_write(a, &y->record, x)};
}

struct plan_entry plan_active_entry(struct arena *a, int64_t uid, enum plan_kind kind,
                                    struct str id)
{
    struct str *value = ARENA_NEW(a, struct str);
    *value = id;
    return (struct plan_entry){plan_types[kind].active_key(a, uid), 0, {value, 1}};
}

static struct str date_key(struct arena *a, int64_t uid, const struct plan_date *d)
{
    return d->kind == PLAN_TRAINING ? key_training_day(a, d->plan_id, d->day.date)
                                    : key_nutrition_day(a, uid, d->day.date);
}

static struct str *member(struct plan_day *d, const struct plan_type *y, size_t i)
{
    return (struct str *)((char *)d + y->at[i]);
}

struct plan_entry plan_date_entry(struct arena *a, int64_t uid, const struct plan_date *d)
{
    const struct plan_type *y = &plan_types[d->kind];
    struct plan_day day = d->day;
    struct str *v = ARENA_ARRAY(a, struct str, 2 * (PLAN_DAY_FIELDS + 2));
    size_t n = 0;
    for (size_t i = 0; i < PLAN_DAY_FIELDS; i++) {
        v[n++] = str_of(y->fields[i]);
        v[n++] = *member(&day, y, i);
    }
    v[n++] = STR("version");
    v[n++] = str_int(a, d->version);
    if (d->kind == PLAN_NUTRITION) { /* its key does not say of which plan it is */
        v[n++] = STR("plan_id");
        v[n++] = d->plan_id;
    }
    return (struct plan_entry){date_key(a, uid, d), PLAN_DAY_MS, {v, n}};
}

size_t plan_keys(struct arena *a, const struct plan *x, struct str **out)
{
    struct plan_frame f = {.kind = x->kind, .start_date = x->start_date, .weeks = x->weeks};
    struct str *list = ARENA_ARRAY(a, struct str, (size_t)x->weeks * 7 + 1);
    size_t n = 0;
    list[n++] = plan_types[x->kind].key(a, x->id);
    for (int64_t i = 0; i < x->weeks * 7; i++) {
        struct plan_date d = {.kind = x->kind, .plan_id = x->id, .day.date = plan_date(a, &f, i)};
        list[n++] = date_key(a, x->uid, &d);
    }
    *out = list;
    return n;
}

/* --- writing --- */

static struct script_list values_of(struct arena *a, const struct plan_entry *list, size_t count)
{
    size_t n = 0, all = 0;
    for (size_t i = 0; i < count; i++)
        all += 2 + list[i].values.n;
    struct str *v = ARENA_ARRAY(a, struct str, all + 1);
    for (size_t i = 0; i < count; i++) {
        v[n++] = str_int(a, list[i].ms);
        v[n++] = str_int(a, (int64_t)list[i].values.n);
        for (size_t j = 0; j < list[i].values.n; j++)
            v[n++] = list[i].values.p[j];
    }
    return (struct script_list){v, n};
}

/* A store that fails is no error of the task: what was read is right, and told later. */
static int passed_over(struct task *t, int err)
{
    return err && !cache_goes_on(t) ? err : 0;
}

/* Of the active plan, as the scripts have it. */
static struct str active_id(const struct plan_owner *o, enum plan_kind kind)
{
    struct str id = o ? o->active[kind] : STR("?");
    return id.p ? id : STR("");
}

int plan_fill(struct task *t, struct plans *p, int64_t uid, const struct plan_snapshot *at,
              const struct plan_entry *list, size_t count)
{
    struct arena *a = task_arena(t);
    int64_t filled;
    if (!plans_trust(p) || !generation_lasts_at(p->node->redis, key_plans(a, uid), &at->generation))
        return 0;
    struct str *keys = ARENA_ARRAY(a, struct str, count + 1);
    for (size_t i = 0; i < count; i++)
        keys[i] = list[i].key;
    return passed_over(
        t, SCRIPT_NUMBER(t, p->node->redis, plan_fill, &filled, .fence = key_plans(a, uid),
                         .training = key_training_active(a, uid),
                         .nutrition = key_nutrition_active(a, uid), .entries = {keys, count},
                         .run = generation_str(&at->generation), .version = str_int(a, at->version),
                         .training_id = active_id(at->owner, PLAN_TRAINING),
                         .nutrition_id = active_id(at->owner, PLAN_NUTRITION),
                         .values = values_of(a, list, count)));
}

int plan_tell(struct task *t, struct plans *p, int64_t uid, const struct plan_owner *o,
              const struct str *gone, size_t count)
{
    struct arena *a = task_arena(t);
    int64_t told;
    return SCRIPT_NUMBER(
        t, p->node->redis, plan_tell, &told, .fence = key_plans(a, uid),
        .training = key_training_active(a, uid), .nutrition = key_nutrition_active(a, uid),
        .gone = {gone, count}, .version = str_int(a, o->version),
        .training_id = active_id(o, PLAN_TRAINING), .nutrition_id = active_id(o, PLAN_NUTRITION));
}

/* --- reading --- */

/* The fence and one more key in one round trip. *entry stays NULL: the fence does not count. */
static int look(struct task *t, struct plans *p, int64_t uid, struct str word, struct str key,
                const struct redis_reply **entry, struct str *version, bool *away)
{
    struct redis *r = p->node->redis;
    struct str fence = key_plans(task_arena(t), uid);
    struct redis_batch b;
    const struct redis_reply *const *got;
    *away = !plans_trust(p);
    if (*away)
        return 0;
    redis_batch_init(&b, t, r);
    redis_batch_add(&b, fence, STR("HMGET"), fence, STR("run"), STR("version"));
    redis_batch_add(&b, key, word, key);
    int err = redis_batch_run(&b, &got);
    if (err) {
        *away = true;
        return passed_over(t, err);
    }
    if (got[0]->type != REDIS_ARRAY || got[0]->count != 2 ||
        !generation_is_at(r, fence, got[0]->items[0]->str))
        return 0;
    *version = got[0]->items[1]->str;
    *entry = got[1];
    return 0;
}

static bool seen_at(const struct redis_reply *hash, struct str version)
{
    struct str seen = record_value(hash, "seen");
    return seen.p && str_eq(seen, version);
}

int plan_look(struct task *t, struct plans *p, int64_t uid, struct plan *out, bool *found,
              bool *away)
{
    const struct plan_type *y = &plan_types[out->kind];
    const struct redis_reply *hash = NULL;
    struct str version;
    struct plan x = {.kind = out->kind};
    int err =
        look(t, p, uid, STR("HGETALL"), y->key(task_arena(t), out->id), &hash, &version, away);
    *found = !err && hash && seen_at(hash, version) && record_read(&y->record, hash, &x) &&
             x.uid == uid && str_eq(x.id, out->id);
    metric_add(*found ? p->plan[out->kind].hits : p->plan[out->kind].misses, 1);
    if (*found)
        *out = x;
    return err;
}

/* A hash has its fields in any order. */
static bool read_date(const struct redis_reply *hash, struct plan_date *out)
{
    const struct plan_type *y = &plan_types[out->kind];
    struct str plan_id = record_value(hash, "plan_id");
    for (size_t i = 0; i < PLAN_DAY_FIELDS; i++) {
        struct str value = record_value(hash, y->fields[i]);
        if (!value.p)
            return false;
        *member(&out->day, y, i) = value;
    }
    return str_to_i64(record_value(hash, "version"), &out->version) &&
           (!plan_id.p || str_eq(plan_id, out->plan_id));
}

int plan_date_look(struct task *t, struct plans *p, int64_t uid, struct plan_date *out, bool *found,
                   bool *away)
{
    const struct redis_reply *hash = NULL;
    struct str version;
    struct plan_date d = *out;
    int err =
        look(t, p, uid, STR("HGETALL"), date_key(task_arena(t), uid, out), &hash, &version, away);
    *found = !err && hash && seen_at(hash, version) && read_date(hash, &d);
    metric_add(*found ? p->day[out->kind].hits : p->day[out->kind].misses, 1);
    if (*found)
        *out = d;
    return err;
}

int plan_active_look(struct task *t, struct plans *p, int64_t uid, enum plan_kind kind,
                     struct str *id, bool *found, bool *away)
{
    const struct redis_reply *value = NULL;
    struct str version;
    enum plan_kind of;
    int err = look(t, p, uid, STR("GET"), plan_types[kind].active_key(task_arena(t), uid), &value,
                   &version, away);
    *found = !err && value && value->type == REDIS_STRING && plan_id_is(value->str, uid, &of) &&
             of == kind;
    metric_add(*found ? p->active.hits : p->active.misses, 1);
    if (*found)
        *id = value->str;
    return err;
}
