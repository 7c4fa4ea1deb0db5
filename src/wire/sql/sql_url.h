/* sql_url.h -- address and login of the database. */
#ifndef WIRE_SQL_URL_H
#define WIRE_SQL_URL_H

#include "base/str.h"

enum sql_tls {
    SQL_TLS_OFF,
    SQL_TLS_ON,     /* encrypted; the certificate is not checked */
    SQL_TLS_VERIFY, /* and the certificate must be for the host, from a known authority */
};

#define SQL_PLACES_MAX 16 /* hosts of one URL */

struct sql_place {
    const char *host; /* "::1" without brackets */
    unsigned int port;
};

struct sql_url {
    const char *socket; /* path; NULL: TCP */
    struct sql_place places[SQL_PLACES_MAX];
    size_t place_count; /* 0 with a socket, else at least 1; no two are the same */
    const char *user, *password, *database; /* decoded; "" when there is none */
    enum sql_tls tls;
    const char *ca_file; /* NULL: the system's */
};

/* NULL, or what is wrong with it, in a or constant. Never shows the password. Strings of *out
 * live in a. */
const char *sql_url_parse(struct arena *a, const char *url, struct sql_url *out);
#endif
