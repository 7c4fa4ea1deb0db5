#include "wire/http_client/http_url.h"

#include <arpa/inet.h>

#include "base/ascii.h"

static const bool is_name[256] = {
    ['-'] = 1, ['.'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1,
    ['_'] = 1, ['~'] = 1, ['a' ... 'z'] = 1,
};

/* Bytes of the scheme; 0: another one. */
static size_t take_scheme(struct str s, bool *tls)
{
    static const struct str schemes[] = {STR("http://"), STR("https://")};
    for (size_t i = 0; i < 2; i++) {
        *tls = i == 1;
        if (s.n >= schemes[i].n && str_ieq(str_from(s.p, schemes[i].n), schemes[i]))
            return schemes[i].n;
    }
    return 0;
}

/* A name, or an IPv6 address in brackets; returns the bytes of it, 0 if there is none. */
static size_t take_name(struct str s, char out[HTTP_NAME_BYTES])
{
    size_t n = 0;
    bool bracket = s.n > 0 && s.p[0] == '[';
    if (bracket) {
        const char *end = memchr(s.p, ']', s.n);
        n = end ? (size_t)(end - s.p) + 1 : 0;
    } else {
        while (n < s.n && is_name[(unsigned char)s.p[n]])
            n++;
    }
    if (n == 0 || n >= HTTP_NAME_BYTES)
        return 0;
    for (size_t i = 0; i < n; i++)
        out[i] = ascii_lower(s.p[i]);
    out[n] = '\0';
    if (!bracket)
        return n;
    struct in6_addr ignored;
    out[n - 1] = '\0';
    bool valid = inet_pton(AF_INET6, out + 1, &ignored) == 1;
    out[n - 1] = ']';
    return valid ? n : 0;
}

/* "" and ":" mean the scheme's own. Always the shortest spelling, for it becomes a part of the
 * host's key. */
static bool take_port(struct str s, bool tls, char out[HTTP_PORT_BYTES])
{
    int64_t port = tls ? 443 : 80;
    if (s.n > 0 && s.p[0] != ':')
        return false;
    if (s.n > 1 && (!ascii_is_digit(s.p[1]) || !str_to_i64(str_skip(s, 1), &port)))
        return false;
    if (port < 1 || port > 65535)
        return false;
    char space[STR_INT_BYTES];
    struct str digits = str_digits(space, port);
    memcpy(out, digits.p, digits.n);
    out[digits.n] = '\0';
    return true;
}

bool http_url_split(struct str url, struct http_url *out)
{
    for (size_t i = 0; i < url.n; i++) {
        if (url.p[i] <= ' ' || url.p[i] >= 0x7f)
            return false;
    }
    size_t at = take_scheme(url, &out->tls);
    if (at == 0)
        return false;
    struct str rest = str_from(url.p + at, url.n - at);
    size_t n = take_name(rest, out->name);
    if (n == 0)
        return false;
    rest = str_from(rest.p + n, rest.n - n);
    n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        n++;
    if (!take_port(str_from(rest.p, n), out->tls, out->port))
        return false;
    rest = str_from(rest.p + n, rest.n - n);
    out->target = str_cut(&rest, '#');
    return true;
}

bool http_name_is_local(struct str name)
{
    struct str top = STR("localhost");
    if (name.n < top.n || !str_ieq(str_skip(name, name.n - top.n), top))
        return false;
    return name.n == top.n || name.p[name.n - top.n - 1] == '.';
}
