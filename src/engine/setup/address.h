/* address.h -- the client's address of a request that came through proxies.
 *
 * trusted_proxies is a list of addresses and networks ("127.0.0.1, 10.0.0.0/8, ::1, unix"). From a
 * peer that is in it, X-Forwarded-For is read from its end: the last address that is not in the
 * list is the client's. From any other peer the header is ignored.
 *
 * IPv4 addresses are the same as IPv6 addresses that carry them (::ffff:1.2.3.4). */
#ifndef ENGINE_SETUP_ADDRESS_H
#define ENGINE_SETUP_ADDRESS_H

#include "base/str.h"

#define ADDRESS_PROXIES_MAX   64
#define ADDRESS_FORWARDED_MAX 32 /* elements of X-Forwarded-For that are looked at */

struct address_list;
/* What is wrong with the text, in a; NULL: nothing. "" is an empty list. */
const char *address_list_problem(struct arena *a, const char *text);
struct address_list *address_list_new(struct arena *a, const char *text); /* must be fine */

/* "10.0.0.1", "::1". */
bool address_list_has(const struct address_list *l, struct str address);

/* peer as http_peer gives it; forwarded: the header, p == NULL if there is none. Its elements may
 * have ports. An element that is no address ends the walk: the address behind it counts, or the
 * peer. The result is an address in its shortest spelling, or "unix"; in a. */
struct str address_of_client(struct arena *a, const struct address_list *trusted, struct str peer,
                             struct str forwarded);
/* What rate limits count by: "2001:db8:1:2::/64" for IPv6, where one client has a whole /64, the
 * address itself for IPv4; "unix" for anything else. In a. */
struct str address_subject(struct arena *a, struct str address);
/* From this machine: 127.0.0.0/8, ::1, or no address at all ("unix"). */
bool address_loopback(struct str address);
#endif
