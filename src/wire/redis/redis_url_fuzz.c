/* For every URL: either a message or a place to connect to. */
#include <stdlib.h>

#include "wire/redis/redis_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    arena_init(&a);
    struct redis_url u;
    const char *url = str_z(&a, str_from((const char *)data, n));
    if (!redis_url_parse(&a, url, &u)) {
        check(u.path ? u.address_count == 0 && u.path[0] == '/' : u.address_count > 0);
        for (size_t i = 0; i < u.address_count; i++)
            check(u.addresses[i].host[0] && u.addresses[i].port[0]);
        check(u.address_count <= 1 || u.db == 0);
        check(!u.user.p || u.password.n > 0);
        check(u.db >= 0);
    }
    arena_release(&a);
    return 0;
}
