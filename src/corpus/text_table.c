#include "corpus/text_table.h"

#include <stdlib.h>

#include "base/ascii.h"

/* All rows begin with their name, so one comparison serves the four tables. */
static int by_name(const void *key, const void *row)
{
    const struct str *wanted = key, *name = row;
    return str_compare(*wanted, *name);
}

#define FIND(what, name)                                                                           \
    bsearch(&(name), text_##what##_table, text_##what##_count, sizeof(text_##what##_table[0]),     \
            by_name)

const struct text_command *text_command_find(struct str name)
{
    const struct text_command *found = FIND(command, name);
    if (found || !str_starts(name, STR("text")) || name.n == 4)
        return found;
    struct str rest = str_skip(name, 4);
    return FIND(command, rest);
}

const struct text_entity *text_entity_find(struct str name)
{
    return FIND(entity, name);
}

const struct text_accent *text_accent_find(char name)
{
    struct str wanted = str_from(&name, 1);
    return FIND(accent, wanted);
}

const struct text_tag *text_tag_find(struct str name)
{
    char lower[TEXT_TAG_BYTES_MAX];
    if (name.n > sizeof(lower))
        return NULL;
    for (size_t i = 0; i < name.n; i++)
        lower[i] = ascii_lower(name.p[i]);
    struct str wanted = str_from(lower, name.n);
    return FIND(tag, wanted);
}
