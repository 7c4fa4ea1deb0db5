/* http_field.h -- header names and values. Pure; malformed counts as absent, except where a
 * function says otherwise. */
#ifndef WIRE_HTTP_FIELD_H
#define WIRE_HTTP_FIELD_H

#include <stdint.h>

#include "base/str.h"

/* A header name or method; never empty. */
bool http_token_valid(struct str s);
size_t http_token_bytes(struct str s); /* at its beginning */

/* The value of a header: all but control characters. Bytes above ASCII are passed on. */
bool http_value_valid(struct str s);
bool http_one_line(struct str s); /* no CR, LF or NUL, which would end the header */

/* Connection: whether the comma-separated list has the token, in any case. */
bool http_list_has(struct str list, struct str token);

/* Host: a name or IPv4 address, or an IPv6 address in brackets; then perhaps a port. */
bool http_host_valid(struct str host);

/* Cookie: the value of the first cookie of that name; p == NULL if none. */
struct str http_cookie_find(struct str cookies, struct str name);

/* Accept-Encoding: how much the client wants each coding, in thousandths; 0: not at all. Identity
 * has 1, the least there is, unless it is named: any coding the client takes goes before it. */
enum http_coding { HTTP_BROTLI, HTTP_GZIP, HTTP_IDENTITY, HTTP_CODINGS };
struct http_weights {
    int of[HTTP_CODINGS];
};
struct http_weights http_weights_parse(struct str accept_encoding);

/* If-None-Match: "*", or a list with this tag in it. Weak comparison. */
bool http_etag_matches(struct str list, struct str etag);

/* "Sun, 06 Nov 1994 08:49:37 GMT", the one form that is still sent. */
bool http_date_parse(struct str date, int64_t *seconds);

/* Content-Length: digits without a leading zero, few enough not to overflow. */
bool http_length_parse(struct str value, uint64_t *out);

/* Range over size bytes. Several ranges at once are not served: only attacks use them. */
enum http_range { HTTP_RANGE_NONE, HTTP_RANGE_OK, HTTP_RANGE_UNSATISFIABLE };
enum http_range http_range_parse(struct str range, uint64_t size, uint64_t *first, uint64_t *count);
#endif
