#include "engine/store/record.h"

#include <string.h>

#include "base/buf.h"

const char *record_select(struct arena *a, const struct record_kind *k, const char *rest)
{
    struct buf b;
    buf_init(&b);
    for (const struct record_column *c = k->columns; c->type; c++) {
        buf_add_str(&b, c == k->columns ? STR("SELECT ") : STR(", "));
        buf_add_str(&b, str_of(c->sql ? c->sql : c->field));
    }
    buf_add_str(&b, STR_JOIN(a, STR(" FROM "), str_of(k->from), STR(" "), str_of(rest)));
    const char *statement = str_z(a, buf_str(&b));
    buf_release(&b);
    return statement;
}

static void *place(const struct record_column *c, void *record)
{
    return (char *)record + c->at;
}

void record_take(const struct record_kind *k, const struct sql_value *row, void *out)
{
    for (const struct record_column *c = k->columns; c->type; c++, row++) {
        bool null = row->type == SQL_NULL;
        bool number = row->type == SQL_INT;
        check(null || c->type == RECORD_FLAG || number == (c->type != RECORD_TEXT));
        if (c->type == RECORD_TEXT)
            *(struct str *)place(c, out) = row->s;
        else if (c->type == RECORD_FLAG)
            *(bool *)place(c, out) =
                number ? row->i != 0 : !null && str_eq(row->s, str_of(c->words[true]));
        else
            *(int64_t *)place(c, out) = row->i;
    }
}

/* --- Redis --- */

struct str record_value(const struct redis_reply *hash, const char *field)
{
    for (size_t i = 0; hash->type == REDIS_ARRAY && i + 1 < hash->count; i += 2)
        if (str_eq(hash->items[i]->str, str_of(field)))
            return hash->items[i + 1]->str;
    return STR_NULL;
}

static bool read_value(const struct record_column *c, struct str value, void *out)
{
    if (c->type == RECORD_TEXT) {
        *(struct str *)out = value;
        return true;
    }
    if (c->type == RECORD_FLAG) {
        *(bool *)out = str_eq(value, str_of(c->words[true]));
        return *(bool *)out || str_eq(value, str_of(c->words[false]));
    }
    int64_t number, unit = c->type == RECORD_TIME ? 1000 : 1;
    if (!str_to_i64(value, &number) || number < 0 || number > INT64_MAX / unit)
        return false;
    *(int64_t *)out = number * unit;
    return true;
}

bool record_read(const struct record_kind *k, const struct redis_reply *hash, void *out)
{
    for (const struct record_column *c = k->columns; c->type; c++) {
        struct str value = c->field ? record_value(hash, c->field) : STR_NULL;
        if (c->field && (!value.p || !read_value(c, value, place(c, out))))
            return false;
    }
    return true;
}

static struct str written(struct arena *a, const struct record_column *c, const void *at)
{
    switch (c->type) {
    case RECORD_TEXT:
        return *(const struct str *)at;
    case RECORD_FLAG:
        return str_of(c->words[*(const bool *)at]);
    case RECORD_TIME:
        return str_int(a, *(const int64_t *)at / 1000);
    default:
        return str_int(a, *(const int64_t *)at);
    }
}

static size_t column_count(const struct record_kind *k)
{
    size_t n = 0;
    while (k->columns[n].type)
        n++;
    return n;
}

struct script_list record_write(struct arena *a, const struct record_kind *k, const void *record)
{
    struct str *list = ARENA_ARRAY(a, struct str, 2 * column_count(k));
    size_t n = 0;
    for (const struct record_column *c = k->columns; c->type; c++) {
        if (!c->field)
            continue;
        list[n++] = str_of(c->field);
        list[n++] = written(a, c, (const char *)record + c->at);
    }
    return (struct script_list){list, n};
}

void record_copy(struct arena *a, const struct record_kind *k, const void *record, void *out)
{
    memcpy(out, record, k->size);
    for (const struct record_column *c = k->columns; c->type; c++) {
        struct str *text = place(c, out);
        if (c->type == RECORD_TEXT && text->p)
            *text = str_dup(a, *text);
    }
}
