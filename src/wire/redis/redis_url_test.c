#include "wire/redis/redis_url.h"

#include "tests/tap.h"
#include "wire/redis.h"

static void takes(struct arena *a, const char *url, const char *path, const char *host,
                  const char *port, struct str user, struct str password, int64_t db)
{
    struct redis_url u;
    const char *problem = redis_url_parse(a, url, &u);
    if (!ok(!problem, "%s is taken (%s)", url, problem ? problem : "fine"))
        return;
    is_str(str_of(u.path), str_of(path), "  its path");
    is_int((int64_t)u.address_count, !path, "  its addresses");
    is_str(str_of(path ? NULL : u.addresses[0].host), str_of(host), "  its host");
    is_str(str_of(path ? NULL : u.addresses[0].port), str_of(port), "  its port");
    is_str(u.user, user, "  its user");
    is_str(u.password, password, "  its password");
    is_int(u.db, db, "  its database");
}

static void refuses(struct arena *a, const char *url, const char *why)
{
    const char *problem = redis_url_problem(a, url);
    is_str(str_of(problem), str_of(why), "\"%s\" is refused", url ? url : "(null)");
}

static void good(struct arena *a)
{
    struct str none = STR_NULL;
    takes(a, "unix:/run/r.sock", "/run/r.sock", NULL, NULL, none, none, 0);
    takes(a, "redis://h", NULL, "h", "6379", none, none, 0);
    takes(a, "redis://h/", NULL, "h", "6379", none, none, 0);
    takes(a, "redis://10.0.0.1:7000/3", NULL, "10.0.0.1", "7000", none, none, 3);
    takes(a, "redis://:pw@h", NULL, "h", "6379", none, STR("pw"), 0);
    takes(a, "redis://me:p:w@h:1", NULL, "h", "1", STR("me"), STR("p:w"), 0);
    takes(a, "redis://a%40b:%25%2f%3A@h", NULL, "h", "6379", STR("a@b"), STR("%/:"), 0);
    takes(a, "redis://[::1]", NULL, "::1", "6379", none, none, 0);
    takes(a, "redis://[fe80::2]:65535/15", NULL, "fe80::2", "65535", none, none, 15);
    takes(a, "rediss://:pw@h/2", NULL, "h", "6379", none, STR("pw"), 2);
    takes(a, "rediss://h:1/2?ca=/etc/my%20ca.pem", NULL, "h", "1", none, none, 2);
    struct redis_url u;
    ok(!redis_url_parse(a, "redis://h", &u) && !u.tls && !u.ca_file, "redis:// is plain");
    ok(!redis_url_parse(a, "rediss://h", &u) && u.tls && !u.ca_file, "rediss:// is TLS");
    ok(!redis_url_parse(a, "rediss://h?ca=/etc/my%20ca.pem", &u) && u.tls, "with a CA file");
    is_str(str_of(u.ca_file), STR("/etc/my ca.pem"), "decoded");
}

static void several(struct arena *a)
{
    struct redis_url u;
    ok(!redis_url_parse(a, "rediss://:p%40@a:1,[::1]:2,c?ca=/x", &u) && u.tls, "several addresses");
    is_int((int64_t)u.address_count, 3, "three");
    is_str(str_of(u.addresses[0].host), STR("a"), "the first");
    is_str(str_of(u.addresses[1].host), STR("::1"), "the second");
    is_str(str_of(u.addresses[1].port), STR("2"), "its port");
    is_str(str_of(u.addresses[2].host), STR("c"), "the third");
    is_str(str_of(u.addresses[2].port), STR("6379"), "its port");
    is_str(u.password, STR("p@"), "one login for all of them");

    char url[400] = "redis://h";
    for (int i = 1; i < REDIS_ADDRESSES_MAX; i++)
        strcat(url, ",h");
    ok(!redis_url_problem(a, url), "32 addresses are taken");
    strcat(url, ",h");
    is_str(str_of(redis_url_problem(a, url)), STR("the Redis URL has more than 32 addresses"),
           "33 are too many");
}

#define IN_BRACKETS "an IPv6 address is written in brackets, as in redis://[::1]:6379"
#define NEEDS_PASSWORD                                                                             \
    "a login needs a password, as in redis://user:password@host or redis://:password@host"
#define NEEDS_HOST  "redis:// needs a host, as in redis://127.0.0.1:6379"
#define BAD_PORT    "the port is not a number from 1 to 65535"
#define BAD_DB      "the database, behind the last /, is not a number from 0 to 1000000"
#define BAD_PERCENT "in the login, % must be followed by two hex digits (write % itself as %25)"
#define BAD_SCHEME  "a Redis URL begins with redis://, rediss:// (TLS) or unix:/"
#define ONE_OPTION  "a rediss:// URL takes one option, ?ca=/path/of/ca.pem"
#define BAD_CA      "ca needs an absolute path"
#define BAD_PATH    "unix: needs an absolute path, as in unix:/run/redis.sock"
#define BAD_BYTE    "the Redis URL contains a space or a control character"
#define BAD_AT      "in the login, @ is written as %40 and / as %2F"

static void bad(struct arena *a)
{
    refuses(a, NULL, "the Redis URL is empty");
    refuses(a, "", "the Redis URL is empty");
    refuses(a, "rediss://", NEEDS_HOST);
    refuses(a, "rediss://h?", ONE_OPTION);
    refuses(a, "rediss://h?cert=/x", ONE_OPTION);
    refuses(a, "rediss://h?ca=", BAD_CA);
    refuses(a, "rediss://h?ca=ca.pem", BAD_CA);
    refuses(a, "rediss://h?ca=/a%00b", BAD_CA);
    refuses(a, "rediss://h?ca=/a%zz",
            "in ca, % must be followed by two hex digits (write % itself as %25)");
    refuses(a, "http://h", BAD_SCHEME);
    refuses(a, "localhost:6379", BAD_SCHEME);
    refuses(a, "unix:", BAD_PATH);
    refuses(a, "unix:run/r.sock", BAD_PATH);
    refuses(a, "redis://", NEEDS_HOST);
    refuses(a, "redis://:pw@", NEEDS_HOST);
    refuses(a, "redis:///3", NEEDS_HOST);
    refuses(a, "redis://[]:1", NEEDS_HOST);
    refuses(a, "redis://a,", NEEDS_HOST);
    refuses(a, "redis://,a", NEEDS_HOST);
    refuses(a, "redis://a,b/1",
            "several addresses are those of a Redis Cluster, which has no databases");
    refuses(a, "redis://a,b:x", BAD_PORT);
    refuses(a, "redis://h:", BAD_PORT);
    refuses(a, "redis://h:0", BAD_PORT);
    refuses(a, "redis://h:65536", BAD_PORT);
    refuses(a, "redis://user:password", BAD_PORT);
    refuses(a, "redis://h/x", BAD_DB);
    refuses(a, "redis://h/-1", BAD_DB);
    refuses(a, "redis://h/1000001", BAD_DB);
    refuses(a, "redis://h/1/2", BAD_DB);
    refuses(a, "redis://h?ca=/x", "a redis:// URL takes no ?options");
    refuses(a, "redis://me@h", NEEDS_PASSWORD);
    refuses(a, "redis://me:@h", NEEDS_PASSWORD);
    refuses(a, "redis://me:p%4@h", BAD_PERCENT);
    refuses(a, "redis://me:%zz@h", BAD_PERCENT);
    refuses(a, "redis://me:p@q@h", BAD_AT);
    refuses(a, "redis://me:p/q@h", BAD_AT);
    refuses(a, "redis://::1", IN_BRACKETS);
    refuses(a, "redis://[::1", IN_BRACKETS);
    refuses(a, "redis://[::1]6379", IN_BRACKETS);
    refuses(a, "redis://h /1", BAD_BYTE);
    refuses(a, "redis://h\t", BAD_BYTE);
}

static void long_path(struct arena *a)
{
    char url[200] = "unix:/";
    memset(url + 6, 'x', 107);
    refuses(a, url, "the socket path is longer than 107 bytes");
    url[5 + 107] = '\0';
    ok(!redis_url_problem(a, url), "a path of 107 bytes is fine");
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    good(&a);
    several(&a);
    bad(&a);
    long_path(&a);
    arena_release(&a);
    return tap_done();
}
