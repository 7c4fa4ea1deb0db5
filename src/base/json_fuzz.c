/* What parses must be writable, and what was written must parse to an equal tree. */
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_tree(struct json_writer *w, const struct json *j, int depth)
{
    check(depth <= JSON_DEPTH_MAX);
    if (j->key.p)
        jw_key(w, j->key);
    switch (j->type) {
    case JSON_NULL:
        jw_null(w);
        return;
    case JSON_FALSE:
    case JSON_TRUE:
        jw_bool(w, j->type == JSON_TRUE);
        return;
    case JSON_INT:
        jw_int(w, j->i);
        return;
    case JSON_REAL:
        jw_real(w, j->d);
        return;
    case JSON_STRING:
        jw_str(w, j->s);
        return;
    case JSON_FLOATS:
        check(false); /* none are asked for */
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    bool array = j->type == JSON_ARRAY;
    (array ? jw_array : jw_object)(w);
    json_each (it, j)
        write_tree(w, it, depth + 1);
    (array ? jw_end_array : jw_end_object)(w);
}

static bool same_children(const struct json *a, const struct json *b);

static bool same(const struct json *a, const struct json *b)
{
    if (a->type != b->type || !a->key.p != !b->key.p || !str_eq(a->key, b->key))
        return false;
    switch (a->type) {
    case JSON_INT:
        return a->i == b->i;
    case JSON_REAL:
        return memcmp(&a->d, &b->d, sizeof(a->d)) == 0;
    case JSON_STRING:
        return str_utf8_valid(a->s) && str_eq(a->s, b->s);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return same_children(a, b);
    default:
        return true;
    }
}

static bool same_children(const struct json *a, const struct json *b)
{
    uint32_t count = 0;
    const struct json *other = b->child;
    for (const struct json *it = a->child; it; it = it->next, other = other->next) {
        if (!other || !same(it, other))
            return false;
        count++;
    }
    return !other && count == a->count && count == b->count;
}

static double number_of(const struct json *j)
{
    return j->type == JSON_NULL ? (double)NAN : j->type == JSON_INT ? (double)j->i : j->d;
}

/* Numbers and nulls, as the other reader has them. */
static void check_floats(const struct json *floats, const struct json *array)
{
    size_t i = 0;
    check(array->type == JSON_ARRAY && array->count == floats->count);
    json_each (number, array) {
        double want = number_of(number), got = (double)floats->floats[i++];
        check(number->type <= JSON_REAL && number->type != JSON_TRUE);
        if (isnan(want) || fabs(want) > (double)FLT_MAX / 2)
            check(isnan(want) == isnan(got));
        else
            check(fabs(got - want) <= fabs(want) * 1e-6 + (double)FLT_MIN);
    }
}

static void check_packed(const struct json *packed, const struct json *j)
{
    if (packed->type == JSON_FLOATS) {
        check_floats(packed, j);
        return;
    }
    check(packed->type == j->type);
    const struct json *other = json_first(j);
    json_each (it, packed) {
        check_packed(it, other);
        other = other->next;
    }
    check(!other || !json_first(packed));
}

static void check_error(const struct json_error *e, size_t size)
{
    check(e->message && e->line >= 1 && e->column >= 1);
    check(e->line + e->column <= size + 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct buf out;
    struct json_writer w;
    arena_init(&a);
    buf_init(&out);

    const struct json *first, *second;
    struct json_error e;
    struct str text = str_from((const char *)data, size);
    int err = json_parse(&a, text, &first, &e);
    /* A number beyond a double is refused, and is an infinite float. */
    int packed = json_parse_floats(&a, text, &second, NULL);
    check(packed == 0 || err);
    if (err) {
        check_error(&e, size);
    } else {
        check_packed(second, first);
        jw_init(&w, &out);
        write_tree(&w, first, 0);
        check(json_parse(&a, buf_str(&out), &second, NULL) == 0);
        check(same(first, second));
    }
    buf_release(&out);
    arena_release(&a);
    return 0;
}
