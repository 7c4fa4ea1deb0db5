#include "engine/keys.h"

const struct str key_tags = {"sys:tags:info", 13};
const struct str key_journals = {"sys:journals:info", 17};
const struct str key_prices = {"sys:journals:price", 18};
const struct str key_catalog_lock = {"sys:lock:catalog", 16};
const struct str key_billing = {"sys:billing", 11};
const struct str key_expiry = {"sys:expiry", 10};
const struct str key_attempts = {"sys:attempts", 12};
const struct str key_cache_run = {"sys:cache_run", 13};

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

struct str key_user_info(struct arena *a, int64_t uid)
{
    return str_printf(a, "user:%lld:info", (long long)uid);
}

struct str key_user_sessions(struct arena *a, int64_t uid)
{
    return str_printf(a, "user:%lld:session", (long long)uid);
}

struct str key_session(struct arena *a, struct str sid)
{
    return JOIN(a, STR("session:"), sid);
}

struct str key_history(struct arena *a, int64_t uid)
{
    return str_printf(a, "user:%lld:history", (long long)uid);
}

struct str key_admin_info(struct arena *a, int64_t uid)
{
    return str_printf(a, "admin:%lld:info", (long long)uid);
}

struct str key_admin_sessions(struct arena *a, int64_t uid)
{
    return str_printf(a, "admin:%lld:session", (long long)uid);
}

struct str key_admin_session(struct arena *a, struct str sid)
{
    return JOIN(a, STR("admin:session:"), sid);
}

struct str key_attempts_of(struct arena *a, const char *realm, const char *what, struct str who)
{
    return JOIN(a, STR("sys:attempts:"), str_of(realm), STR(":"), str_of(what), STR(":"), who);
}

struct str key_balance(struct arena *a, int64_t uid)
{
    return str_printf(a, "user:%lld:balance", (long long)uid);
}

struct str key_ledger(struct arena *a, int64_t uid)
{
    return str_printf(a, "user:%lld:ledger", (long long)uid);
}

struct str key_billing_queue(struct arena *a, int64_t uid)
{
    return str_printf(a, "billing_queue:%lld", (long long)uid);
}

struct str key_deductions(struct arena *a, int64_t uid)
{
    return str_printf(a, "user:%lld:deductions", (long long)uid);
}
