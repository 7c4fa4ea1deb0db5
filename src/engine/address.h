/* address.h -- whose address a request comes from, when proxies stand in between.
 *
 * trusted_proxies is a list of addresses and networks ("127.0.0.1, 10.0.0.0/8, ::1, unix"). From a peer
 * that is in it, X-Forwarded-For is read from its end: the last address that is not in the list is
 * the client's. From anybody else the header means nothing. */
#ifndef ENGINE_ADDRESS_H
#define ENGINE_ADDRESS_H

#include "base/str.h"

#define ADDRESS_PROXIES_MAX 64

struct address_list;
/* What is wrong with the text, in a; NULL: nothing. "" is an empty list. */
const char *address_list_problem(struct arena *a, const char *text);
struct address_list *address_list_new(struct arena *a, const char *text); /* must be fine */

/* peer as http_peer gives it; forwarded: the header, p == NULL if there is none. The result is an address
 * in its shortest spelling, or "unix"; in a. */
struct str address_of_client(struct arena *a, const struct address_list *trusted, struct str peer,
                             struct str forwarded);
#endif
