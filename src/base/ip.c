#include "base/ip.h"

#include <arpa/inet.h>

#include "base/check.h"

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

bool ip_is_v4(const struct ip *a)
{
    return memcmp(a->bytes, v4_prefix, sizeof v4_prefix) == 0;
}

bool ip_parse(struct str s, struct ip *out)
{
    char text[IP_TEXT_BYTES];
    if (s.n == 0 || s.n >= sizeof text || memchr(s.p, '\0', s.n))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (inet_pton(AF_INET6, text, out->bytes) == 1)
        return true;
    memcpy(out->bytes, v4_prefix, sizeof v4_prefix);
    return inet_pton(AF_INET, text, out->bytes + sizeof v4_prefix) == 1;
}

bool ip_is_loopback(const struct ip *a)
{
    static const struct ip v6 = {.bytes = {[IP_BITS / 8 - 1] = 1}};
    return ip_is_v4(a) ? a->bytes[sizeof v4_prefix] == 127 : ip_eq(a, &v6);
}

bool ip_is_public(const struct ip *a)
{
    static const char *const not_public[] = {
        "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",    "2001::/23",
        "2001:db8::/32", "2002::/16",       "3fff::/20",
    };
    struct ip_net n;
    int most;
    if (!ip_is_v4(a) && a->bytes[0] >> 5 != 1) /* 2000::/3 alone is given out */
        return false;
    for (size_t i = 0; i < sizeof not_public / sizeof *not_public; i++)
        if (ip_net_parse(str_of(not_public[i]), &n, &most) == IP_NET_FINE && ip_net_has(&n, a))
            return false;
    return true;
}

struct str ip_text(struct arena *a, const struct ip *ip)
{
    char text[IP_TEXT_BYTES];
    const char *p = ip_is_v4(ip)
                        ? inet_ntop(AF_INET, ip->bytes + sizeof v4_prefix, text, sizeof text)
                        : inet_ntop(AF_INET6, ip->bytes, text, sizeof text);
    check(p);
    return str_dup(a, str_of(p));
}

struct ip ip_cut(struct ip a, int64_t bits)
{
    for (int64_t i = bits; i < IP_BITS; i++)
        a.bytes[i / 8] = (uint8_t)(a.bytes[i / 8] & ~(0x80 >> i % 8));
    return a;
}

bool ip_eq(const struct ip *a, const struct ip *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

enum ip_net_verdict ip_net_parse(struct str s, struct ip_net *out, int *bits_max)
{
    struct str bits = s, address = str_cut(&bits, '/');
    out->bits = IP_BITS;
    if (!ip_parse(address, &out->ip))
        return IP_NET_NO_ADDRESS;
    *bits_max = memchr(address.p, ':', address.n) ? IP_BITS : IP_V4_BITS;
    if (!bits.p)
        return IP_NET_FINE;
    if (!str_to_i64(bits, &out->bits) || out->bits < 0 || out->bits > *bits_max)
        return IP_NET_BITS_WRONG;
    out->bits += IP_BITS - *bits_max;
    return IP_NET_FINE;
}

bool ip_net_has(const struct ip_net *n, const struct ip *a)
{
    struct ip cut = ip_cut(*a, n->bits), net = ip_cut(n->ip, n->bits);
    return ip_eq(&cut, &net);
}
