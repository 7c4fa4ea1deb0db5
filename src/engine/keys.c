#include "engine/keys.h"

const struct str key_tags = {"sys:tags:info", 13};
const struct str key_journals = {"sys:journals:info", 17};
const struct str key_prices = {"sys:journals:price", 18};
const struct str key_catalog_lock = {"sys:lock:catalog", 16};

/* Names of journals and tags come from outside: they are copied byte for byte, not printed. */
static struct str join(struct arena *a, size_t count, const struct str *parts)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += parts[i].n;
    char *p = arena_alloc(a, n + 1), *end = p;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].n)
            memcpy(end, parts[i].p, parts[i].n);
        end += parts[i].n;
    }
    *end = '\0';
    return str_from(p, n);
}
#define JOIN(a, ...)                                                                               \
    join((a), sizeof((struct str[]){__VA_ARGS__}) / sizeof(struct str),                            \
         (const struct str[]){__VA_ARGS__})

struct str key_tag_journals(struct arena *a, struct str tag)
{
    return JOIN(a, STR("sys:tag_journals:"), tag);
}

struct str key_year_numbers(struct arena *a, struct str journal)
{
    return JOIN(a, STR("contentlist_year_number:"), journal);
}

struct str key_block(struct arena *a, struct str journal, int64_t year)
{
    return JOIN(a, STR("meta:"), journal, str_printf(a, ":%lld", (long long)year));
}

/* A cluster places a key by what it has in braces, or else by all of it. So these two are where
 * the block is that they belong to, and one script may touch all three. */
struct str key_block_lock(struct arena *a, struct str journal, int64_t year)
{
    return JOIN(a, STR("sys:lock:{"), key_block(a, journal, year), STR("}"));
}

struct str key_block_aside(struct arena *a, struct str journal, int64_t year, struct str token)
{
    return JOIN(a, STR("sys:aside:{"), key_block(a, journal, year), STR("}:"), token);
}
