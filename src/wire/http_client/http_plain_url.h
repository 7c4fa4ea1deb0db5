/* http_plain_url.h -- splits http:// URLs; refuses ambiguous ones. */
#ifndef WIRE_HTTP_PLAIN_URL_H
#define WIRE_HTTP_PLAIN_URL_H

#include "base/str.h"

#define HTTP_NAME_BYTES 256
#define HTTP_PORT_BYTES 6

struct http_plain_url {
    char name[HTTP_NAME_BYTES]; /* in lower case; an IPv6 address in its brackets */
    char port[HTTP_PORT_BYTES];
    struct str target; /* path and query, a part of the URL; the path may be missing */
};

/* Whether it is one, valid or not. */
bool http_plain_url_is(const char *url);
/* False: no host, a user or password, an invalid port or character. */
bool http_plain_url_split(struct str url, struct http_plain_url *out);
#endif
