#include "app/pool/type.h"

#include "base/buf.h"

const struct pool_type pool_types[] = {
    {"titles", "titles", "title", .chars_max = 1000},
    {"contents", "contents", "content", .chars_max = 16000},
};
const size_t pool_type_count = sizeof pool_types / sizeof *pool_types;

const struct pool_type *pool_type_find(struct str name)
{
    for (size_t i = 0; i < pool_type_count; i++)
        if (str_eq(name, str_of(pool_types[i].name)))
            return &pool_types[i];
    return NULL;
}

const char *pool_sql(struct arena *a, const struct pool_type *type, const char *statement)
{
    struct buf b;
    struct str rest = str_of(statement);
    buf_init(&b);
    buf_add_str(&b, str_cut(&rest, '$'));
    while (rest.p) {
        bool table = str_starts(rest, STR("table")), text = str_starts(rest, STR("text"));
        buf_add_str(&b, str_of(table ? type->table : text ? type->column : "$"));
        rest = str_skip(rest, table ? 5 : text ? 4 : 0); /* else it is a path in JSON */
        buf_add_str(&b, str_cut(&rest, '$'));
    }
    const char *z = str_z(a, buf_str(&b));
    buf_release(&b);
    return z;
}
