/* redis_url.h -- addresses and login of a Redis. */
#ifndef WIRE_REDIS_URL_H
#define WIRE_REDIS_URL_H

#include "base/str.h"

#define REDIS_ADDRESSES_MAX 32

struct redis_address {
    const char *host, *port; /* "::1" without brackets */
};

struct redis_url {
    const char *path; /* of the unix socket; NULL: TCP */
    /* Several, "redis://a:1,b:2": nodes of a Redis Cluster. */
    size_t address_count;
    const struct redis_address *addresses;
    struct str user, password; /* decoded; STR_NULL: none */
    int64_t db;
    bool tls;
    const char *ca_file; /* of TLS; NULL: the system's */
};

/* NULL, or what is wrong with it, in a or constant. Never shows the password. Strings of *out
 * live in a. */
const char *redis_url_parse(struct arena *a, const char *url, struct redis_url *out);
#endif
