#include "wire/sql/sql_url.h"

#include <sys/un.h>

#include "wire/http_server/http_uri.h"
#include "wire/sql.h"

#define UNIX_PATH_MAX      (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define HOST_BYTES_MAX     255
#define USER_BYTES_MAX     128
#define PASSWORD_BYTES_MAX 256
#define DATABASE_BYTES_MAX 256 /* 64 characters */
#define PORT_DEFAULT       3306

static const char *const bad_percent =
    "% must be followed by two hex digits, and be UTF-8 (write % itself as %25)";

/* Decodes raw into *out. NULL, or what is wrong. */
static const char *decode(struct arena *a, struct str raw, const char *name, size_t bytes_max,
                          const char **out)
{
    struct str s;
    if (!http_uri_decode(a, raw, false, &s))
        return bad_percent;
    if (s.n > bytes_max)
        return arena_printf(a, "the %s is longer than %zu bytes", name, bytes_max);
    *out = str_z(a, s);
    return NULL;
}

static const char *set_user(struct arena *a, struct str v, struct sql_url *out)
{
    return decode(a, v, "user", USER_BYTES_MAX, &out->user);
}

static const char *set_database(struct arena *a, struct str v, struct sql_url *out)
{
    return decode(a, v, "database", DATABASE_BYTES_MAX, &out->database);
}

static const char *set_tls(struct arena *a, struct str v, struct sql_url *out)
{
    (void)a;
    if (str_eq(v, STR("off")))
        out->tls = SQL_TLS_OFF;
    else if (str_eq(v, STR("on")))
        out->tls = SQL_TLS_ON;
    else if (str_eq(v, STR("verify")))
        out->tls = SQL_TLS_VERIFY;
    else
        return "tls is off, on or verify";
    return NULL;
}

static const char *set_ca(struct arena *a, struct str v, struct sql_url *out)
{
    const char *problem = decode(a, v, "path of ca", 4096, &out->ca_file);
    return problem ? problem : out->ca_file[0] != '/' ? "ca needs an absolute path" : NULL;
}

struct option {
    const char *name;
    const char *(*set)(struct arena *a, struct str value, struct sql_url *out);
};

static const struct option unix_options[] = {{"user", set_user}, {"database", set_database}, {0}};
static const struct option tcp_options[] = {{"tls", set_tls}, {"ca", set_ca}, {0}};

static const struct option *find_option(const struct option *o, struct str name)
{
    while (o->name && !str_eq(name, str_of(o->name)))
        o++;
    return o->name ? o : NULL;
}

/* The part after the question mark. Never shown: it may be a secret. */
static const char *parse_options(struct arena *a, struct str s, const struct option *known,
                                 struct sql_url *out)
{
    unsigned int seen = 0;
    while (s.p) {
        struct str value = str_cut(&s, '&');
        struct str name = str_cut(&value, '=');
        const struct option *o = find_option(known, name);
        if (!o || !value.p || value.n == 0)
            return arena_printf(a, "behind the ? stand %s=value and %s=value, joined by &",
                                known[0].name, known[1].name);
        unsigned int bit = 1u << (o - known);
        if (seen & bit)
            return arena_printf(a, "%s is given twice", o->name);
        seen |= bit;
        const char *problem = o->set(a, value, out);
        if (problem)
            return problem;
    }
    return NULL;
}

static const char *parse_unix(struct arena *a, struct str s, struct sql_url *out)
{
    struct str options = s;
    struct str path = str_cut(&options, '?');
    if (path.n == 0 || path.p[0] != '/')
        return "unix: needs an absolute path, as in unix:/run/mysqld/mysqld.sock?user=millrace";
    if (path.n > UNIX_PATH_MAX)
        return arena_printf(a, "the socket path is longer than %zu bytes", UNIX_PATH_MAX);
    out->socket = str_z(a, path);
    const char *problem = parse_options(a, options, unix_options, out);
    if (!problem && !out->user[0])
        problem = "the user is missing, as in unix:/run/mysqld/mysqld.sock?user=millrace";
    return problem;
}

/* "user:password" or "user", the part before @. */
static const char *parse_login(struct arena *a, struct str login, struct sql_url *out)
{
    struct str password = login;
    struct str user = str_cut(&password, ':');
    if (user.n == 0)
        return "the user is missing, as in mysql://user:password@host/database";
    const char *problem = set_user(a, user, out);
    if (!problem && password.p)
        problem = decode(a, password, "password", PASSWORD_BYTES_MAX, &out->password);
    return problem;
}

static const char *parse_port(struct str port, struct sql_place *out)
{
    int64_t n = PORT_DEFAULT;
    /* Not quoted: where "@host" was forgotten, this is the password. */
    if (port.p && (!str_to_i64(port, &n) || n < 1 || n > 65535))
        return "the port is not a number from 1 to 65535";
    out->port = (unsigned int)n;
    return NULL;
}

static const char *parse_host(struct arena *a, struct str s, struct sql_place *out)
{
    struct str host, port;
    if (!http_uri_host(s, &host, &port))
        return "an IPv6 address is written in brackets, as in mysql://user@[::1]:3306/database";
    if (host.n == 0)
        return "the host is missing, as in mysql://user:password@host/database";
    if (host.n > HOST_BYTES_MAX)
        return arena_printf(a, "the host is longer than %d bytes", HOST_BYTES_MAX);
    out->host = str_z(a, host);
    return parse_port(port, out);
}

static bool is_listed(const struct sql_url *u, const struct sql_place *place)
{
    for (size_t i = 0; i < u->place_count; i++)
        if (u->places[i].port == place->port &&
            str_ieq(str_of(u->places[i].host), str_of(place->host)))
            return true;
    return false;
}

/* "host", or "host:port,host,…". */
static const char *parse_hosts(struct arena *a, struct str s, struct sql_url *out)
{
    do {
        struct sql_place place;
        const char *problem = parse_host(a, str_cut(&s, ','), &place);
        if (problem)
            return problem;
        if (out->place_count == SQL_PLACES_MAX)
            return arena_printf(a, "more than %d hosts are named", SQL_PLACES_MAX);
        if (is_listed(out, &place))
            return "a host is named twice with the same port";
        out->places[out->place_count++] = place;
    } while (s.p);
    return NULL;
}

static bool has(struct str s, char c)
{
    return s.n > 0 && memchr(s.p, c, s.n) != NULL;
}

static const char *parse_tcp(struct arena *a, struct str s, struct sql_url *out)
{
    struct str options = s;
    struct str place = str_cut(&options, '?');
    struct str database = place;
    place = str_cut(&database, '/');
    struct str host = place;
    struct str login = str_cut(&host, '@');
    if (has(host, '@') || has(database, '@') || has(database, '/') || has(options, '@'))
        return "in the login, @ is written as %40, / as %2F and ? as %3F";
    if (!host.p)
        return "the user is missing, as in mysql://user:password@host/database";
    const char *problem = parse_login(a, login, out);
    if (!problem)
        problem = parse_hosts(a, host, out);
    if (!problem && database.p)
        problem = set_database(a, database, out);
    if (!problem)
        problem = parse_options(a, options, tcp_options, out);
    if (!problem && out->ca_file && out->tls != SQL_TLS_VERIFY)
        problem = "ca is for tls=verify only";
    return problem;
}

const char *sql_url_parse(struct arena *a, const char *url, struct sql_url *out)
{
    *out = (struct sql_url){.user = "", .password = "", .database = ""};
    struct str s = str_of(url);
    if (s.n == 0)
        return "the SQL URL is empty";
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 127)
            return "the SQL URL contains a space or a control character";
    if (str_starts(s, STR("unix:")))
        return parse_unix(a, str_skip(s, 5), out);
    if (str_starts(s, STR("mysql://")))
        return parse_tcp(a, str_skip(s, 8), out);
    if (str_starts(s, STR("mariadb://")))
        return parse_tcp(a, str_skip(s, 10), out);
    return "a SQL URL begins with mysql://, mariadb:// or unix:/";
}

const char *sql_url_problem(struct arena *a, const char *url)
{
    struct sql_url ignored;
    return sql_url_parse(a, url, &ignored);
}
