/* ip.h -- IP addresses and networks as bytes.
 *
 * IPv4 addresses are the same as IPv6 addresses that carry them (::ffff:1.2.3.4). */
#ifndef BASE_IP_H
#define BASE_IP_H

#include "base/str.h"

#define IP_BITS       128
#define IP_V4_BITS    32
#define IP_TEXT_BYTES 46 /* with the NUL */

struct ip {
    uint8_t bytes[IP_BITS / 8];
};

struct ip_net {
    struct ip ip;
    int64_t bits; /* of IP_BITS, for IPv4, too */
};

/* "1.2.3.4" or "2001:db8::1", no brackets, no zone. */
bool ip_parse(struct str s, struct ip *out);
bool ip_is_v4(const struct ip *a);
bool ip_is_loopback(const struct ip *a); /* 127.0.0.0/8, ::1 */
/* Of the public internet: not a private, shared, link-local, loopback, multicast, documentation or
 * reserved one (RFC 6890), nor an IPv6 one that carries an IPv4 address through a gateway. */
bool ip_is_public(const struct ip *a);
struct str ip_text(struct arena *a, const struct ip *ip); /* the shortest spelling */
struct ip ip_cut(struct ip a, int64_t bits);              /* leaves the first bits only */
bool ip_eq(const struct ip *a, const struct ip *b);

/* "10.0.0.0/8"; an address alone is a network of one. *bits_max: what may stand behind the slash.
 * IP_NET_BITS_WRONG: an address, and no such number behind its slash. */
enum ip_net_verdict { IP_NET_FINE, IP_NET_NO_ADDRESS, IP_NET_BITS_WRONG };
enum ip_net_verdict ip_net_parse(struct str s, struct ip_net *out, int *bits_max);
bool ip_net_has(const struct ip_net *n, const struct ip *a);
#endif
