#include "wire/http_client/http_proxy.h"

#include <stdlib.h>

#include "base/ip.h"
#include "wire/http_server/http_uri.h"

#define NONE "none"

/* --- which one --- */

/* Of the first variable that is not empty; NULL: none is. */
static const char *variable(const char *const names[2], const char **found)
{
    for (int i = 0; i < 2 && names[i]; i++) {
        const char *value = getenv(names[i]);
        *found = names[i];
        if (value && *value)
            return value;
    }
    return NULL;
}

/* A service as URLs name it: an address with or without brackets, a name with or without the dot
 * of the root. */
struct service {
    struct str name, port;
    bool is_ip;
    struct ip ip;
};

static struct str without_last_dot(struct str name)
{
    return str_from(name.p, name.n - (name.n > 0 && name.p[name.n - 1] == '.'));
}

static struct service service_of(const char *name, const char *port)
{
    struct service s = {.name = without_last_dot(str_of(name)), .port = str_of(port)};
    struct str inside = s.name;
    if (str_starts(inside, STR("[")) && str_ends(inside, STR("]")))
        inside = str_from(inside.p + 1, inside.n - 2);
    s.is_ip = ip_parse(inside, &s.ip);
    return s;
}

bool http_proxy_choose(const char *setting, bool tls, const char *name, const char *port,
                       struct http_proxy_choice *out)
{
    static const char *const of_https[2] = {"https_proxy", "HTTPS_PROXY"};
    static const char *const of_http[2] = {"http_proxy", NULL};
    static const char *const of_none[2] = {"no_proxy", "NO_PROXY"};
    struct service s = service_of(name, port);
    const char *ignored;
    *out = (struct http_proxy_choice){.url = setting};
    if (setting && strcmp(setting, NONE) == 0)
        return false;
    if (!setting || !*setting) {
        if (http_name_is_local(s.name) || (s.is_ip && ip_is_loopback(&s.ip)))
            return false;
        out->url = variable(tls ? of_https : of_http, &out->variable);
    }
    const char *excepted = variable(of_none, &ignored);
    return out->url && !(excepted && http_proxy_excepted(str_of(excepted), name, port));
}

/* --- which services go without --- */

static bool has_ip(const struct service *s, struct str entry, bool *is_net)
{
    struct ip_net net;
    int ignored;
    *is_net = ip_net_parse(entry, &net, &ignored) == IP_NET_FINE;
    return *is_net && s->is_ip && ip_net_has(&net, &s->ip);
}

/* The name itself, or one below it. */
static bool has_name(const struct service *s, struct str entry)
{
    if (str_starts(entry, STR("*.")))
        entry = str_skip(entry, 1);
    if (str_starts(entry, STR(".")))
        entry = str_skip(entry, 1);
    entry = without_last_dot(entry);
    if (s->is_ip || entry.n == 0 || entry.n > s->name.n)
        return false;
    size_t above = s->name.n - entry.n;
    return str_ieq(str_skip(s->name, above), entry) && (above == 0 || s->name.p[above - 1] == '.');
}

static bool entry_has(const struct service *s, struct str entry)
{
    struct str host, port;
    int64_t number, asked;
    bool is_net;
    if (str_eq(entry, STR("*")))
        return true;
    bool has = has_ip(s, entry, &is_net); /* before ports: IPv6 without brackets has colons */
    if (is_net)
        return has;
    if (!http_uri_host(entry, &host, &port))
        return false;
    if (port.p && (!str_to_i64(port, &number) || !str_to_i64(s->port, &asked) || number != asked))
        return false;
    return has_ip(s, host, &is_net) || (!is_net && has_name(s, host));
}

bool http_proxy_excepted(struct str list, const char *name, const char *port)
{
    struct service s = service_of(name, port);
    while (list.p) {
        struct str blanks = str_cut(&list, ',');
        while (blanks.p) {
            struct str entry = str_trim(str_cut(&blanks, ' '));
            if (entry.n > 0 && entry_has(&s, entry))
                return true;
        }
    }
    return false;
}

/* --- how it is written --- */

#define EXPECTED "http://host:port or http://user:password@host:port"
#define ENCODING "in user and password write @ as %40, / as %2F, : as %3A, % as %25, all in UTF-8"

static const char *parse_login(struct arena *a, struct str login, struct http_proxy *out)
{
    struct str password = login, user = str_cut(&password, ':');
    if (!password.p)
        return "a user needs a password, as in http://user:password@host:port";
    if (memchr(login.p, '@', login.n) || !http_uri_decode(a, user, false, &user) ||
        !http_uri_decode(a, password, false, &password))
        return ENCODING;
    if (memchr(user.p, ':', user.n))
        return "a user with a colon in it cannot be sent to a proxy";
    out->login = STR_JOIN(a, user, STR(":"), password);
    return NULL;
}

static const char *parse_place(struct arena *a, struct str place, struct http_proxy *out)
{
    struct str host, port;
    struct http_url url;
    if (!http_uri_host(place, &host, &port) || host.n == 0)
        return "its host cannot be read; expected is " EXPECTED;
    if (!port.p || port.n == 0)
        return "its port is missing; expected is " EXPECTED;
    if (memchr(place.p, '#', place.n) ||
        !http_url_split(STR_JOIN(a, STR("http://"), place), &url) || url.target.n > 0)
        return "its host or port cannot be read; expected is " EXPECTED;
    memcpy(out->name, url.name, sizeof out->name);
    memcpy(out->port, url.port, sizeof out->port);
    return NULL;
}

const char *http_proxy_parse(struct arena *a, const struct http_proxy_choice *c,
                             struct http_proxy *out)
{
    struct str url = str_of(c->url), scheme = STR("http://");
    out->login = STR_NULL;
    if (url.n >= scheme.n && str_ieq(str_from(url.p, scheme.n), scheme))
        url = str_skip(url, scheme.n);
    else if (!c->variable || str_find(url, STR("://")) >= 0)
        return "only HTTP proxies can be used; expected is " EXPECTED;
    struct str behind = url, place = str_cut(&behind, '/');
    if (behind.p && behind.n > 0)
        return memchr(behind.p, '@', behind.n)
                   ? ENCODING
                   : "nothing may follow the port; expected is " EXPECTED;
    const char *at = place.n ? memrchr(place.p, '@', place.n) : NULL;
    const char *problem = NULL;
    if (at) {
        size_t n = (size_t)(at - place.p);
        problem = parse_login(a, str_from(place.p, n), out);
        place = str_skip(place, n + 1);
    }
    return problem ? problem : parse_place(a, place, out);
}

const char *http_proxy_problem(struct arena *a, const char *setting)
{
    struct http_proxy ignored;
    struct http_proxy_choice c = {.url = setting};
    return strcmp(setting, NONE) == 0 ? NULL : http_proxy_parse(a, &c, &ignored);
}
