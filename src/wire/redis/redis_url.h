/* redis_url.h -- address and login of a Redis. */
#ifndef WIRE_REDIS_URL_H
#define WIRE_REDIS_URL_H

#include "base/str.h"

struct redis_url {
    const char *path;          /* of the unix socket; NULL: TCP */
    const char *host, *port;   /* "::1" without brackets */
    struct str user, password; /* decoded; STR_NULL: none */
    int64_t db;
    bool tls;
    const char *ca_file; /* of TLS; NULL: the system's */
};

/* NULL, or what is wrong with it, in a or constant. Never shows the password. Strings of *out
 * live in a. */
const char *redis_url_parse(struct arena *a, const char *url, struct redis_url *out);
#endif
