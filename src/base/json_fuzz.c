/* What parses must be writable, and what was written must parse to an equal tree. */
#include "base/json.h"

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
    if (json_parse(&a, str_from((const char *)data, size), &first, &e)) {
        check_error(&e, size);
    } else {
        jw_init(&w, &out);
        write_tree(&w, first, 0);
        check(json_parse(&a, buf_str(&out), &second, NULL) == 0);
        check(same(first, second));
    }
    buf_release(&out);
    arena_release(&a);
    return 0;
}
