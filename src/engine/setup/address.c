#include "engine/setup/address.h"

#include "base/check.h"
#include "base/ip.h"

#define SUBJECT_BITS 64

struct address_list {
    bool unix_too;
    size_t count;
    struct ip_net networks[ADDRESS_PROXIES_MAX];
};

/* --- the list --- */

static const char *parse_network(struct arena *a, struct str s, struct ip_net *out)
{
    int most;
    switch (ip_net_parse(s, out, &most)) {
    case IP_NET_NO_ADDRESS:
        return arena_printf(a, "\"%.*s\" is no IP address or network, nor \"unix\"", STR_ARG(s));
    case IP_NET_BITS_WRONG:
        return arena_printf(a, "\"%.*s\": after the slash a number from 0 to %d is expected",
                            STR_ARG(s), most);
    case IP_NET_FINE:
        break;
    }
    struct ip cut = ip_cut(out->ip, out->bits);
    return ip_eq(&cut, &out->ip)
               ? NULL
               : arena_printf(a, "\"%.*s\": the address has bits beyond those of the network",
                              STR_ARG(s));
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

static bool has(const struct address_list *l, const struct ip *a)
{
    for (size_t i = 0; i < l->count; i++)
        if (ip_net_has(&l->networks[i], a))
            return true;
    return false;
}

bool address_list_has(const struct address_list *l, struct str address)
{
    struct ip at;
    return ip_parse(address, &at) && has(l, &at);
}

/* --- the client --- */

/* "1.2.3.4", "1.2.3.4:567", "::1", "[::1]", "[::1]:567" */
static bool parse_element(struct str s, struct ip *out)
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
    return ip_parse(s, out);
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
    struct ip at;
    if (!forwarded.p) /* it is in its shortest spelling already */
        return str_dup(a, peer);
    bool known = ip_parse(peer, &at);
    bool believed = known ? has(trusted, &at) : trusted->unix_too && str_eq(peer, STR("unix"));
    for (int i = 0; believed && forwarded.p && i < ADDRESS_FORWARDED_MAX; i++) {
        struct ip next;
        if (!parse_element(cut_last(&forwarded), &next))
            break;
        at = next;
        known = true;
        believed = has(trusted, &at);
    }
    return known ? ip_text(a, &at) : str_dup(a, peer);
}

struct str address_subject(struct arena *a, struct str address)
{
    struct ip at;
    if (!ip_parse(address, &at))
        return STR("unix");
    if (ip_is_v4(&at))
        return ip_text(a, &at);
    at = ip_cut(at, SUBJECT_BITS);
    return str_printf(a, "%s/%d", ip_text(a, &at).p, SUBJECT_BITS);
}

bool address_loopback(struct str address)
{
    struct ip at;
    return !ip_parse(address, &at) || ip_is_loopback(&at);
}
