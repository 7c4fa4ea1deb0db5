#include "wire/redis/redis_url.h"

#include <sys/un.h>

#include "wire/http_server/http_uri.h"
#include "wire/redis.h"

#define DB_MAX        1000000
#define UNIX_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

static const char *parse_unix(struct arena *a, struct str path, struct redis_url *out)
{
    if (path.n == 0 || path.p[0] != '/')
        return "unix: needs an absolute path, as in unix:/run/redis.sock";
    if (path.n > UNIX_PATH_MAX)
        return arena_printf(a, "the socket path is longer than %zu bytes", UNIX_PATH_MAX);
    out->path = str_z(a, path);
    return NULL;
}

/* %40 for @ and so on. False: a % without two hex digits. */
static bool decode(struct arena *a, struct str s, struct str *out)
{
    char *to = arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        int byte = http_uri_byte(s, &i, false);
        if (byte < 0)
            return false;
        to[n++] = (char)byte;
    }
    *out = str_from(to, n);
    return true;
}

/* "user:password" or ":password", the part before @. */
static const char *parse_login(struct arena *a, struct str login, struct redis_url *out)
{
    struct str password = login;
    struct str user = str_cut(&password, ':');
    if (!password.p || password.n == 0)
        return "a login needs a password, as in redis://user:password@host or "
               "redis://:password@host";
    if (!decode(a, user, &out->user) || !decode(a, password, &out->password))
        return "in the login, % must be followed by two hex digits (write % itself as %25)";
    if (user.n == 0)
        out->user = STR_NULL;
    return NULL;
}

static const char *parse_db(struct str db, struct redis_url *out)
{
    if (db.p && db.n > 0 && (!str_to_i64(db, &out->db) || out->db < 0 || out->db > DB_MAX))
        return "the database, behind the last /, is not a number from 0 to 1000000";
    return NULL;
}

static const char *parse_port(struct arena *a, struct str port, struct redis_address *out)
{
    int64_t n = 6379;
    /* Not quoted: where "@host" was forgotten, this is the password. */
    if (port.p && (!str_to_i64(port, &n) || n < 1 || n > 65535))
        return "the port is not a number from 1 to 65535";
    out->port = arena_printf(a, "%d", (int)n);
    return NULL;
}

static const char *parse_address(struct arena *a, struct str s, struct redis_address *out)
{
    struct str host, port;
    if (!http_uri_host(s, &host, &port))
        return "an IPv6 address is written in brackets, as in redis://[::1]:6379";
    if (host.n == 0)
        return "redis:// needs a host, as in redis://127.0.0.1:6379";
    out->host = str_z(a, host);
    return parse_port(a, port, out);
}

static const char *parse_addresses(struct arena *a, struct str all, struct redis_url *out)
{
    struct redis_address *list = ARENA_ARRAY(a, struct redis_address, REDIS_ADDRESSES_MAX);
    const char *problem = NULL;
    size_t n = 0;
    while (!problem && all.p && n < REDIS_ADDRESSES_MAX)
        problem = parse_address(a, str_cut(&all, ','), &list[n++]);
    out->addresses = list;
    out->address_count = n;
    if (!problem && all.p)
        return arena_printf(a, "the Redis URL has more than %d addresses", REDIS_ADDRESSES_MAX);
    return problem;
}

/* "ca=/path", behind the ?. */
static const char *parse_options(struct arena *a, struct str options, struct redis_url *out)
{
    struct str path;
    if (!out->tls)
        return "a redis:// URL takes no ?options";
    if (!str_starts(options, STR("ca=")))
        return "a rediss:// URL takes one option, ?ca=/path/of/ca.pem";
    if (!decode(a, str_skip(options, 3), &path))
        return "in ca, % must be followed by two hex digits (write % itself as %25)";
    if (path.n == 0 || path.p[0] != '/' || memchr(path.p, '\0', path.n))
        return "ca needs an absolute path";
    out->ca_file = str_z(a, path);
    return NULL;
}

static const char *parse_tcp(struct arena *a, struct str s, struct redis_url *out)
{
    struct str options = s;
    s = str_cut(&options, '?');
    const char *wrong = options.p ? parse_options(a, options, out) : NULL;
    if (wrong)
        return wrong;
    struct str db = s;
    struct str place = str_cut(&db, '/');
    struct str rest = place;
    struct str login = str_cut(&rest, '@');
    if (!rest.p) {
        rest = place;
        login = STR_NULL;
    }
    if ((rest.n && memchr(rest.p, '@', rest.n)) || (db.n && memchr(db.p, '@', db.n)))
        return "in the login, @ is written as %40 and / as %2F";
    const char *problem = login.p ? parse_login(a, login, out) : NULL;
    if (!problem)
        problem = parse_addresses(a, rest, out);
    if (!problem)
        problem = parse_db(db, out);
    if (!problem && out->address_count > 1 && out->db)
        return "several addresses are those of a Redis Cluster, which has no databases";
    return problem;
}

const char *redis_url_parse(struct arena *a, const char *url, struct redis_url *out)
{
    *out = (struct redis_url){.db = 0};
    struct str s = str_of(url);
    if (s.n == 0)
        return "the Redis URL is empty";
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 127)
            return "the Redis URL contains a space or a control character";
    out->tls = str_starts(s, STR("rediss://"));
    if (out->tls)
        return parse_tcp(a, str_skip(s, 9), out);
    if (str_starts(s, STR("unix:")))
        return parse_unix(a, str_skip(s, 5), out);
    if (str_starts(s, STR("redis://")))
        return parse_tcp(a, str_skip(s, 8), out);
    return "a Redis URL begins with redis://, rediss:// (TLS) or unix:/";
}

const char *redis_url_problem(struct arena *a, const char *url)
{
    struct redis_url ignored;
    return redis_url_parse(a, url, &ignored);
}
