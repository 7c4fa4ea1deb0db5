#include "app/extract/fields/values.h"

#include <stdlib.h>

#include "engine/ai/reply.h"

void extract_values_init(struct arena *a, const struct extract_template *x,
                         struct extract_values *out)
{
    out->fields = ARENA_ARRAY(a, struct extract_found, x->count);
}

struct str extract_values_missing(const struct extract_template *x, const struct extract_values *v)
{
    for (size_t i = 0; i < x->count; i++)
        if (x->fields[i].required && v->fields[i].count == 0)
            return x->fields[i].name;
    return STR_NULL;
}

/* --- parts together --- */

static struct extract_value *grown(struct arena *a, const struct extract_value *old, size_t count,
                                   size_t more)
{
    struct extract_value *values = ARENA_ARRAY(a, struct extract_value, count + more);
    if (count)
        memcpy(values, old, count * sizeof *values);
    return values;
}

static bool is_better(const struct extract_value *now, const struct extract_value *was)
{
    return now->verified && !was->verified;
}

/* The same value again: it stays where it is, with the better evidence. */
static bool replace_same(const struct extract_field *f, struct extract_value *values, size_t count,
                         const struct extract_value *v)
{
    for (size_t i = 0; i < count; i++)
        if (extract_value_eq(f, &values[i], v)) {
            if (is_better(v, &values[i]))
                values[i] = *v;
            return true;
        }
    return false;
}

/* All values of a field in order of their parts: the one shown, and those that differ. */
static void unite_values(struct arena *a, const struct extract_field *f, struct extract_found *into,
                         const struct extract_found *part)
{
    size_t count = into->count + into->differ_count;
    struct extract_value *all =
        grown(a, into->items, into->count, into->differ_count + part->count + part->differ_count);
    if (into->differ_count)
        memcpy(all + into->count, into->differs, into->differ_count * sizeof *all);
    for (size_t i = 0; i < part->count + part->differ_count; i++) {
        const struct extract_value *v =
            i < part->count ? &part->items[i] : &part->differs[i - part->count];
        if (!replace_same(f, all, count, v))
            all[count++] = *v;
    }
    size_t shown = 0;
    while (shown < count && !all[shown].verified)
        shown++;
    shown = shown == count ? 0 : shown;
    struct extract_value first = all[shown];
    memmove(all + 1, all, shown * sizeof *all);
    all[0] = first;
    *into = (struct extract_found){
        .items = all, .count = 1, .differs = all + 1, .differ_count = count - 1};
}

static void unite_lists(struct arena *a, const struct extract_field *f, struct extract_found *into,
                        const struct extract_found *part)
{
    struct extract_value *items = grown(a, into->items, into->count, part->count);
    size_t count = into->count;
    into->more = into->more || part->more;
    for (size_t i = 0; i < part->count; i++) {
        if (replace_same(f, items, count, &part->items[i]))
            continue;
        if (count == EXTRACT_ITEMS_MAX)
            into->more = true;
        else
            items[count++] = part->items[i];
    }
    into->items = items;
    into->count = count;
}

void extract_values_merge(struct arena *a, const struct extract_template *x,
                          struct extract_values *into, const struct extract_values *part)
{
    for (size_t i = 0; i < x->count; i++) {
        struct extract_found *was = &into->fields[i];
        const struct extract_found *now = &part->fields[i];
        if (now->count == 0)
            continue;
        if (x->fields[i].type == EXTRACT_LIST)
            unite_lists(a, &x->fields[i], was, now);
        else
            unite_values(a, &x->fields[i], was, now);
    }
}

/* --- writing --- */

/* The members of one value, without the object around them. */
static void put_evidence(struct json_writer *w, const struct extract_value *v)
{
    if (v->original.p)
        jw_put_str(w, "original", v->original);
    if (v->quote.p)
        jw_put_str(w, "quote", v->quote);
    if (v->found) {
        jw_put_int(w, "begin", (int64_t)v->begin);
        jw_put_int(w, "end", (int64_t)v->end);
    }
    jw_put_int(w, "part", (int64_t)v->part);
    jw_put_bool(w, "verified", v->verified);
}

static void put_values(struct json_writer *w, const struct extract_field *f,
                       const struct extract_value *values, size_t count)
{
    jw_array(w);
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        jw_key(w, STR("value"));
        extract_value_put(w, f, &values[i]);
        put_evidence(w, &values[i]);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void put_list(struct json_writer *w, const struct extract_field *f,
                     const struct extract_found *v)
{
    bool verified = true;
    jw_put_array(w, "value");
    for (size_t i = 0; i < v->count; i++) {
        extract_value_put(w, f, &v->items[i]);
        verified = verified && v->items[i].verified;
    }
    jw_end_array(w);
    if (f->unit.n)
        jw_put_str(w, "unit", f->unit);
    jw_key(w, STR("items"));
    put_values(w, f, v->items, v->count);
    jw_put_bool(w, "verified", verified);
    if (v->more)
        jw_put_bool(w, "more", true);
}

static void put_single(struct json_writer *w, const struct extract_field *f,
                       const struct extract_found *v)
{
    jw_key(w, STR("value"));
    extract_value_put(w, f, v->items);
    if (f->unit.n)
        jw_put_str(w, "unit", f->unit);
    put_evidence(w, v->items);
    if (v->differ_count) {
        jw_key(w, STR("differs"));
        put_values(w, f, v->differs, v->differ_count);
    }
}

void extract_found_put(struct json_writer *w, const struct extract_field *f,
                       const struct extract_found *v)
{
    jw_object(w);
    if (v->count == 0) {
        jw_key(w, STR("value"));
        jw_null(w);
    } else if (f->type == EXTRACT_LIST) {
        put_list(w, f, v);
    } else {
        put_single(w, f, v);
    }
    if (v->edited)
        jw_put_bool(w, "edited", true);
    jw_end_object(w);
}

void extract_values_put(struct json_writer *w, const struct extract_template *x,
                        const struct extract_values *v)
{
    jw_object(w);
    for (size_t i = 0; i < x->count; i++) {
        jw_key(w, x->fields[i].name);
        extract_found_put(w, &x->fields[i], &v->fields[i]);
    }
    jw_end_object(w);
}

/* --- reading what was stored --- */

static bool read_size(const struct json *j, size_t *out)
{
    int64_t i;
    if (!json_int(j, &i) || i < 0)
        return false;
    *out = (size_t)i;
    return true;
}

static int read_evidence(const struct json *j, struct extract_value *v)
{
    v->original = json_str(json_get(j, "original"));
    v->quote = json_str(json_get(j, "quote"));
    v->found = json_get(j, "begin") != NULL;
    bool fine = !v->found || (read_size(json_get(j, "begin"), &v->begin) &&
                              read_size(json_get(j, "end"), &v->end) && v->begin <= v->end);
    if (json_get(j, "part"))
        fine = fine && read_size(json_get(j, "part"), &v->part);
    json_bool(json_get(j, "verified"), &v->verified);
    return fine ? 0 : ERR_INVALID;
}

static int read_one(struct arena *a, const struct extract_field *f, const struct json *j,
                    struct extract_value *v)
{
    const struct json *value = json_get(j, "value");
    const char *problem;
    if (!value || value->type == JSON_NULL)
        return ERR_INVALID;
    int err = extract_value_read(a, f, value, v, &problem);
    return err ? err : read_evidence(j, v);
}

static int read_all(struct arena *a, const struct extract_field *f, const struct json *list,
                    const struct extract_value **out, size_t *count)
{
    size_t n = 0;
    if (!list || list->type != JSON_ARRAY)
        return list ? ERR_INVALID : 0;
    struct extract_value *values = ARENA_ARRAY(a, struct extract_value, list->count);
    json_each (j, list) {
        int err = read_one(a, f, j, &values[n++]);
        if (err)
            return err;
    }
    *out = values;
    *count = n;
    return 0;
}

static int read_found(struct arena *a, const struct extract_field *f, const struct json *j,
                      struct extract_found *v)
{
    const struct json *value = json_get(j, "value");
    json_bool(json_get(j, "edited"), &v->edited);
    json_bool(json_get(j, "more"), &v->more);
    if (!value || value->type == JSON_NULL)
        return value ? 0 : ERR_INVALID;
    if (f->type == EXTRACT_LIST)
        return read_all(a, f, json_get(j, "items"), &v->items, &v->count);
    struct extract_value *one = ARENA_NEW(a, struct extract_value);
    int err = read_one(a, f, j, one);
    v->items = one;
    v->count = 1;
    return err ? err : read_all(a, f, json_get(j, "differs"), &v->differs, &v->differ_count);
}

int extract_values_read(struct arena *a, const struct extract_template *x, struct str text,
                        struct extract_values *out)
{
    const struct json *stored;
    struct extract_values v;
    if (json_parse(a, text, &stored, NULL) || stored->type != JSON_OBJECT)
        return ERR_INVALID;
    extract_values_init(a, x, &v);
    json_each (j, stored) {
        ptrdiff_t i = extract_field_find(x, j->key);
        int err = i < 0 ? 0 : read_found(a, &x->fields[i], j, &v.fields[i]);
        if (err)
            return err;
    }
    *out = v;
    return 0;
}

/* --- by hand --- */

static int add_given(struct arena *a, const struct extract_field *f, const struct json *j,
                     struct extract_found *v, struct extract_value *items, const char **complaint)
{
    const char *problem;
    if (extract_value_is_none(f, j))
        return 0;
    int err = extract_value_read(a, f, j, &items[v->count], &problem);
    if (err)
        *complaint = arena_printf(a, "%.*s: %s", STR_ARG(f->name), problem);
    else
        v->count++;
    return err;
}

int extract_value_given(struct arena *a, const struct extract_field *f, const struct json *value,
                        struct extract_found *out, const char **complaint)
{
    bool list = f->type == EXTRACT_LIST && value && value->type == JSON_ARRAY;
    size_t most = list ? value->count : 1;
    if (most > EXTRACT_ITEMS_MAX) {
        *complaint = arena_printf(a, "%.*s: must have %d items at most, not %zu", STR_ARG(f->name),
                                  EXTRACT_ITEMS_MAX, most);
        return ERR_INVALID;
    }
    struct extract_value *items = ARENA_ARRAY(a, struct extract_value, most);
    struct extract_found v = {.items = items, .edited = true};
    int err = 0;
    if (!list)
        err = add_given(a, f, value, &v, items, complaint);
    json_each (j, list ? value : NULL)
        err = err ? err : add_given(a, f, j, &v, items, complaint);
    if (!err)
        *out = v;
    return err;
}
