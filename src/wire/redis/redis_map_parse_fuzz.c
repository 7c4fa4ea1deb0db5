/* Whatever a node answers about slots is refused, or names slots and addresses that exist. */
#include "wire/redis/redis_map_parse.h"
#include "wire/redis/redis_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_address(const struct redis_address *a)
{
    int64_t port;
    check(a->host[0] && strlen(a->host) <= REDIS_HOST_MAX);
    check(str_to_i64(str_of(a->port), &port) && port >= 1 && port <= 65535);
}

static void read_slots(struct arena *a, struct str in)
{
    struct redis_scan s;
    struct redis_range *ranges;
    size_t count;
    redis_scan_init(&s);
    if (redis_scan(&s, in) != 1)
        return;
    if (!redis_slots_parse(a, redis_build(a, &s, in.p), "asked", &ranges, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        check(ranges[i].first <= ranges[i].last && ranges[i].last < REDIS_SLOTS);
        check_address(&ranges[i].master);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct redis_redirect r;
    struct str in = str_from((const char *)data, n);
    arena_init(&a);
    if (redis_redirect_parse(&a, in, "asked", &r)) {
        check(r.slot < REDIS_SLOTS);
        check_address(&r.to);
    }
    check(redis_cluster_epoch(in) >= -1);
    read_slots(&a, in);
    arena_release(&a);
    return 0;
}
