/* http_uri.h -- percent-encoding, paths and queries of request targets.
 *
 * What is decoded is valid UTF-8 without NUL, or refused: handlers pass it on to stores and into
 * JSON. */
#ifndef WIRE_HTTP_URI_H
#define WIRE_HTTP_URI_H

#include "base/arena.h"
#include "base/str.h"

/* The next decoded byte of raw at *i, which advances. -1: invalid. */
int http_uri_byte(struct str raw, size_t *i, bool plus);

/* Splits "host", "host:port" or "[::1]:port"; *port has p == NULL where there is none. False: an
 * IPv6 address that is not in brackets, or brackets that do not match. */
bool http_uri_host(struct str s, struct str *host, struct str *port);

/* Decodes %XX, and '+' as a space if plus is set. *out borrows raw when there is nothing to decode,
 * else it lies in a. False, *out unchanged: a '%' without two hex digits, a NUL, not UTF-8. */
bool http_uri_decode(struct arena *a, struct str raw, bool plus, struct str *out);

/* A decoded path that can be read in one way only: it starts with '/', and has neither control
 * characters nor segments "." and "..". */
bool http_path_valid(struct str path);

/* The nth value (from 0) of name in a raw query, decoded. "?a" gives a the value "". A part
 * that cannot be decoded is skipped. False: there is none. */
bool http_query_find(struct arena *a, struct str query, struct str name, size_t nth,
                     struct str *out);
#endif
