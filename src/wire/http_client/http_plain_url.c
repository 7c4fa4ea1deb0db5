#include "wire/http_client/http_plain_url.h"

#include <arpa/inet.h>
#include <strings.h>

#include "base/ascii.h"

#define SCHEME "http://"

static const bool is_name[256] = {
    ['-'] = 1, ['.'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1,
    ['_'] = 1, ['~'] = 1, ['a' ... 'z'] = 1,
};

bool http_plain_url_is(const char *url)
{
    return strncasecmp(url, SCHEME, 5) == 0; /* up to the colon */
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

/* "" and ":" mean 80. Always the shortest spelling, for it becomes a part of the host's key. */
static bool take_port(struct str s, char out[HTTP_PORT_BYTES])
{
    unsigned port = 0;
    if (s.n > 0 && s.p[0] != ':')
        return false;
    for (size_t i = 1; i < s.n; i++) {
        if (!ascii_is_digit(s.p[i]) || port > 65535)
            return false;
        port = port * 10 + (unsigned)(s.p[i] - '0');
    }
    if (s.n <= 1)
        port = 80;
    if (port == 0 || port > 65535)
        return false;
    size_t n = 0;
    for (unsigned rest = port; rest > 0; rest /= 10)
        n++;
    out[n] = '\0';
    for (; port > 0; port /= 10)
        out[--n] = (char)('0' + port % 10);
    return true;
}

bool http_plain_url_split(struct str url, struct http_plain_url *out)
{
    for (size_t i = 0; i < url.n; i++) {
        if (url.p[i] <= ' ' || url.p[i] >= 0x7f)
            return false;
    }
    size_t at = sizeof SCHEME - 1;
    if (url.n < at || strncasecmp(url.p, SCHEME, at) != 0)
        return false;
    struct str rest = str_from(url.p + at, url.n - at);
    size_t n = take_name(rest, out->name);
    if (n == 0)
        return false;
    rest = str_from(rest.p + n, rest.n - n);
    n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        n++;
    if (!take_port(str_from(rest.p, n), out->port))
        return false;
    rest = str_from(rest.p + n, rest.n - n);
    out->target = str_cut(&rest, '#');
    return true;
}
