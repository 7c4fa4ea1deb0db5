/* http_url.h -- splits http:// and https:// URLs; refuses ambiguous ones. */
#ifndef WIRE_HTTP_URL_H
#define WIRE_HTTP_URL_H

#include "base/str.h"

#define HTTP_NAME_BYTES 256
#define HTTP_PORT_BYTES 6

struct http_url {
    bool tls;                   /* https */
    char name[HTTP_NAME_BYTES]; /* in lower case; an IPv6 address in its brackets */
    char port[HTTP_PORT_BYTES];
    struct str target; /* path and query, a part of the URL; the path may be missing */
};

/* False: another scheme, no host, a user or password, an invalid port or character. */
bool http_url_split(struct str url, struct http_url *out);
/* localhost, or a name below it: this machine, without a lookup (RFC 6761). */
bool http_name_is_local(struct str name);
#endif
