/* type.h -- the kinds of items: a row each. A further type is a row in type.c and a table in a
 * migration, with the columns of table titles. */
#ifndef APP_POOL_TYPE_H
#define APP_POOL_TYPE_H

#include "base/str.h"

struct pool_type {
    const char *name;   /* "titles": in paths, and of the keys in Redis */
    const char *table;  /* of MySQL */
    const char *column; /* of its text */
    int64_t chars_max;  /* of a text; what the column takes */
};

extern const struct pool_type pool_types[];
extern const size_t pool_type_count;
#define POOL_TYPE_NAME_CHARS 32

const struct pool_type *pool_type_find(struct str name); /* NULL: there is none */

/* A statement about the items of a type: $table and $text stand for its names. In a. */
const char *pool_sql(struct arena *a, const struct pool_type *type, const char *statement);
#endif
