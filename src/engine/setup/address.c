#include "engine/setup/address.h"

#include <arpa/inet.h>

#include "base/check.h"

#define BITS         128
#define V4_BITS      32
#define SUBJECT_BITS 64
#define TEXT_MAX     INET6_ADDRSTRLEN

/* IPv4 is written as IPv6. */
struct address {
    uint8_t bytes[BITS / 8];
};

struct network {
    struct address address;
    int64_t bits;
};

struct address_list {
    bool unix_too;
    size_t count;
    struct network networks[ADDRESS_PROXIES_MAX];
};

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static bool is_v4(const struct address *a)
{
    return memcmp(a->bytes, v4_prefix, sizeof v4_prefix) == 0;
}

static bool parse(struct str s, struct address *out)
{
    char text[TEXT_MAX];
    if (s.n == 0 || s.n >= sizeof text || memchr(s.p, '\0', s.n))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (inet_pton(AF_INET6, text, out->bytes) == 1)
        return true;
    memcpy(out->bytes, v4_prefix, sizeof v4_prefix);
    return inet_pton(AF_INET, text, out->bytes + sizeof v4_prefix) == 1;
}

static struct str show(struct arena *a, const struct address *at)
{
    char text[TEXT_MAX];
    const char *p = is_v4(at) ? inet_ntop(AF_INET, at->bytes + sizeof v4_prefix, text, sizeof text)
                              : inet_ntop(AF_INET6, at->bytes, text, sizeof text);
    check(p);
    return str_dup(a, str_of(p));
}

/* Leaves the first bits only. */
static struct address cut(struct address a, int64_t bits)
{
    for (int64_t i = bits; i < BITS; i++)
        a.bytes[i / 8] = (uint8_t)(a.bytes[i / 8] & ~(0x80 >> i % 8));
    return a;
}

static bool same(struct address a, struct address b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

/* --- the list --- */

static const char *parse_network(struct arena *a, struct str s, struct network *out)
{
    struct str rest = s, name = str_cut(&rest, '/');
    struct network n = {.bits = BITS};
    if (!parse(name, &n.address))
        return arena_printf(a, "\"%.*s\" is no IP address or network, nor \"unix\"", STR_ARG(s));
    int64_t all = memchr(name.p, ':', name.n) ? BITS : V4_BITS;
    if (rest.p && (!str_to_i64(rest, &n.bits) || n.bits < 0 || n.bits > all))
        return arena_printf(a, "\"%.*s\": after the slash a number from 0 to %lld is expected",
                            STR_ARG(s), (long long)all);
    if (rest.p && all == V4_BITS)
        n.bits += BITS - V4_BITS;
    if (!same(n.address, cut(n.address, n.bits)))
        return arena_printf(a, "\"%.*s\": the address has bits beyond those of the network",
                            STR_ARG(s));
    *out = n;
    return NULL;
}

static const char *parse_list(struct arena *a, const char *text, struct address_list *out)
{
    struct str rest = str_trim(str_of(text));
    if (rest.n == 0)
        return NULL;
    while (rest.p) {
        struct str s = str_trim(str_cut(&rest, ','));
        if (str_eq(s, STR("unix"))) {
            out->unix_too = true;
            continue;
        }
        if (out->count == ADDRESS_PROXIES_MAX)
            return arena_printf(a, "has more than %d addresses and networks", ADDRESS_PROXIES_MAX);
        const char *problem = parse_network(a, s, &out->networks[out->count]);
        if (problem)
            return problem;
        out->count++;
    }
    return NULL;
}

const char *address_list_problem(struct arena *a, const char *text)
{
    struct address_list unused = {0};
    return parse_list(a, text, &unused);
}

struct address_list *address_list_new(struct arena *a, const char *text)
{
    struct address_list *l = ARENA_NEW(a, struct address_list);
    check(!parse_list(a, text, l));
    return l;
}

static bool has(const struct address_list *l, const struct address *a)
{
    for (size_t i = 0; i < l->count; i++)
        if (same(cut(*a, l->networks[i].bits), l->networks[i].address))
            return true;
    return false;
}

/* --- the client --- */

/* "1.2.3.4", "1.2.3.4:567", "::1", "[::1]", "[::1]:567" */
static bool parse_element(struct str s, struct address *out)
{
    struct str rest = s, port;
    if (s.n && s.p[0] == '[') {
        rest = str_from(s.p + 1, s.n - 1);
        struct str inside = str_cut(&rest, ']');
        if (!rest.p || !memchr(inside.p, ':', inside.n))
            return false;
        s = inside;
        port = rest;
        if (port.n && port.p[0] != ':')
            return false;
        port = port.n ? str_from(port.p + 1, port.n - 1) : STR_NULL;
    } else {
        struct str host = str_cut(&rest, ':');
        port = rest.p && !memchr(rest.p, ':', rest.n) ? rest : STR_NULL;
        s = port.p ? host : s;
    }
    int64_t number;
    if (port.p && (!str_to_i64(port, &number) || number < 0 || number > 65535))
        return false;
    return parse(s, out);
}

/* Cuts the part behind the last comma off *rest; p == NULL after the first. */
static struct str cut_last(struct str *rest)
{
    const char *comma = rest->n ? memrchr(rest->p, ',', rest->n) : NULL;
    struct str last = *rest;
    if (comma)
        last = str_from(comma + 1, rest->n - (size_t)(comma + 1 - rest->p));
    *rest = comma ? str_from(rest->p, (size_t)(comma - rest->p)) : STR_NULL;
    return str_trim(last);
}

struct str address_of_client(struct arena *a, const struct address_list *trusted, struct str peer,
                             struct str forwarded)
{
    struct address at;
    bool known = parse(peer, &at);
    bool believed = known ? has(trusted, &at) : trusted->unix_too && str_eq(peer, STR("unix"));
    for (int i = 0; believed && forwarded.p && i < ADDRESS_FORWARDED_MAX; i++) {
        struct address next;
        if (!parse_element(cut_last(&forwarded), &next))
            break;
        at = next;
        known = true;
        believed = has(trusted, &at);
    }
    return known ? show(a, &at) : str_dup(a, peer);
}

struct str address_subject(struct arena *a, struct str address)
{
    struct address at;
    if (!parse(address, &at))
        return STR("unix");
    if (is_v4(&at))
        return show(a, &at);
    at = cut(at, SUBJECT_BITS);
    return str_printf(a, "%s/%d", show(a, &at).p, SUBJECT_BITS);
}

bool address_loopback(struct str address)
{
    static const struct address v6 = {.bytes = {[BITS / 8 - 1] = 1}};
    struct address at;
    if (!parse(address, &at))
        return true;
    return is_v4(&at) ? at.bytes[sizeof v4_prefix] == 127 : memcmp(&at, &v6, sizeof at) == 0;
}
