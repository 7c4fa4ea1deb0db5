#include "wire/sql/sql_url.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap.h"
#include "wire/sql.h"

static struct arena a;

static void takes_unix(void)
{
    struct sql_url u;
    ok(!sql_url_parse(&a, "unix:/run/m.sock?user=mill&database=race", &u), "a unix socket");
    is_str(str_of(u.socket), STR("/run/m.sock"), "its path");
    is_str(str_of(u.user), STR("mill"), "its user");
    is_str(str_of(u.database), STR("race"), "its database");
    ok(u.place_count == 0 && u.password[0] == '\0', "no host, no password");
    ok(!sql_url_parse(&a, "unix:/s?database=%C3%A9t%C3%A9&user=a%26b", &u), "options in any order");
    is_str(str_of(u.user), STR("a&b"), "a decoded user");
    is_str(str_of(u.database), STR("été"), "a decoded database");
}

static void takes_tcp(void)
{
    struct sql_url u;
    ok(!sql_url_parse(&a, "mysql://u:p@db.example/race", &u), "host and database");
    ok(u.place_count == 1 && u.places[0].port == 3306 && !u.socket && u.tls == SQL_TLS_OFF,
       "port 3306 and no TLS of itself");
    is_str(str_of(u.places[0].host), STR("db.example"), "its host");
    ok(!sql_url_parse(&a, "mariadb://me%40home:p%3A%2F%3F%40%25w@[::1]:3307/x", &u),
       "an IPv6 address and a difficult login");
    is_str(str_of(u.places[0].host), STR("::1"), "without brackets");
    is_str(str_of(u.user), STR("me@home"), "decoded user");
    is_str(str_of(u.password), STR("p:/?@%w"), "decoded password");
    is_int(u.places[0].port, 3307, "its port");
    ok(!sql_url_parse(&a, "mysql://u@h", &u), "neither password nor database");
    ok(u.password[0] == '\0' && u.database[0] == '\0', "are empty");
    ok(!sql_url_parse(&a, "mysql://u:a:b@h", &u), "a colon in the password");
    is_str(str_of(u.password), STR("a:b"), "is part of it");
    ok(!sql_url_parse(&a, "mysql://u@h/d?tls=verify&ca=/etc/ca.pem", &u), "TLS");
    ok(u.tls == SQL_TLS_VERIFY && strcmp(u.ca_file, "/etc/ca.pem") == 0, "with an authority");
}

static void takes_lists(void)
{
    struct sql_url u;
    ok(!sql_url_parse(&a, "mysql://u:p,w@db1,[fd00::2]:3307,db1:3308/race?tls=on", &u),
       "a list of hosts, a comma in the password");
    is_int((int64_t)u.place_count, 3, "three of them");
    is_str(str_of(u.password), STR("p,w"), "the password");
    is_str(str_of(u.places[0].host), STR("db1"), "the first");
    is_str(str_of(u.places[1].host), STR("fd00::2"), "the second, without brackets");
    ok(u.places[0].port == 3306 && u.places[1].port == 3307 && u.places[2].port == 3308,
       "each with its port");
    ok(u.tls == SQL_TLS_ON && strcmp(u.database, "race") == 0, "and what is said of all");
    const char *url = "mysql://u@h0";
    for (int i = 1; i < SQL_PLACES_MAX; i++)
        url = arena_printf(&a, "%s,h%d", url, i);
    ok(!sql_url_parse(&a, url, &u) && u.place_count == SQL_PLACES_MAX, "as many as there may be");
    is_str(str_of(sql_url_problem(&a, arena_printf(&a, "%s,more", url))),
           STR("more than 16 hosts are named"), "one more");
}

struct refusal {
    const char *url, *why;
};

#define BRACKETS "an IPv6 address is written in brackets, as in mysql://user@[::1]:3306/database"
#define NO_USER  "the user is missing, as in mysql://user:password@host/database"
#define LOGIN    "in the login, @ is written as %40, / as %2F and ? as %3F"
#define PERCENT  "% must be followed by two hex digits, and be UTF-8 (write % itself as %25)"
#define UNIX     "unix: needs an absolute path, as in unix:/run/mysqld/mysqld.sock?user=millrace"
#define OPTIONS  "behind the ? stand tls=value and ca=value, joined by &"

static const struct refusal refusals[] = {
    {"", "the SQL URL is empty"},
    {"mysql://u@h/a b", "the SQL URL contains a space or a control character"},
    {"mysql://u@h/a\n", "the SQL URL contains a space or a control character"},
    {"postgres://u@h/a", "a SQL URL begins with mysql://, mariadb:// or unix:/"},
    {"unix:", UNIX},
    {"unix:run/m.sock?user=a", UNIX},
    {"unix:/s", "the user is missing, as in unix:/run/mysqld/mysqld.sock?user=millrace"},
    {"unix:/s?user=", "behind the ? stand user=value and database=value, joined by &"},
    {"unix:/s?user=a&password=s3cret",
     "behind the ? stand user=value and database=value, joined by &"},
    {"unix:/s?user=a&user=b", "user is given twice"},
    {"mysql://", NO_USER},
    {"mysql://host/db", NO_USER},
    {"mysql://:s3cret@host/db", NO_USER},
    {"mysql://u:s3cret@/db", "the host is missing, as in mysql://user:password@host/database"},
    {"mysql://u:s3cret@h:0/db", "the port is not a number from 1 to 65535"},
    {"mysql://u:s3cret@h:65536/db", "the port is not a number from 1 to 65535"},
    {"mysql://u:s3cret@h,/db", "the host is missing, as in mysql://user:password@host/database"},
    {"mysql://u@,h/db", "the host is missing, as in mysql://user:password@host/database"},
    {"mysql://u@a:1,b:x/db", "the port is not a number from 1 to 65535"},
    {"mysql://u@a,b,A:3306/db", "a host is named twice with the same port"},
    {"mysql://u@a,::1/db", BRACKETS},
    {"mysql://u@h:s3cret/db", "the port is not a number from 1 to 65535"},
    {"mysql://u:s3cret@::1/db", BRACKETS},
    {"mysql://u:s3cret@[::1/db", BRACKETS},
    {"mysql://u:s3cret@[::1]3306/db", BRACKETS},
    {"mysql://u:s3@cret@h/db", LOGIN},
    {"mysql://u:s3/cret@h/db", LOGIN},
    {"mysql://u:s3?cret@h/db", LOGIN},
    {"mysql://u@h/a/b", LOGIN},
    {"mysql://u:s3%cret@h/db", PERCENT},
    {"mysql://u:s3cret%2@h/db", PERCENT},
    {"mysql://u:s3cret%00@h/db", PERCENT},
    {"mysql://u@h/d?tls=maybe", "tls is off, on or verify"},
    {"mysql://u@h/d?tls=on&ca=/c", "ca is for tls=verify only"},
    {"mysql://u@h/d?tls=verify&ca=c", "ca needs an absolute path"},
    {"mysql://u@h/d?s3cret", OPTIONS},
    {"mysql://u@h/d?", OPTIONS},
};

static void refuses(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        is_str(str_of(sql_url_problem(&a, refusals[i].url)), str_of(refusals[i].why), "%s",
               refusals[i].url[0] ? refusals[i].url : "nothing");
}

/* Each with one byte more than is allowed, and without. */
static void limits(void)
{
    char part[5000], url[6000];
    memset(part, 'x', sizeof part);
    snprintf(url, sizeof url, "unix:/%.107s?user=a", part);
    is_str(str_of(sql_url_problem(&a, url)), STR("the socket path is longer than 107 bytes"),
           "a long path");
    snprintf(url, sizeof url, "unix:/%.106s?user=a", part);
    ok(!sql_url_problem(&a, url), "the longest path");
    snprintf(url, sizeof url, "mysql://u@%.256s/a", part);
    is_str(str_of(sql_url_problem(&a, url)), STR("the host is longer than 255 bytes"),
           "a long host");
    snprintf(url, sizeof url, "mysql://u:%.257s@h/a", part);
    is_str(str_of(sql_url_problem(&a, url)), STR("the password is longer than 256 bytes"),
           "a long password");
    snprintf(url, sizeof url, "mysql://%.129s@h/a", part);
    is_str(str_of(sql_url_problem(&a, url)), STR("the user is longer than 128 bytes"),
           "a long user");
    snprintf(url, sizeof url, "mysql://u@h/%.257s", part);
    is_str(str_of(sql_url_problem(&a, url)), STR("the database is longer than 256 bytes"),
           "a long database");
}

int main(void)
{
    arena_init(&a);
    takes_unix();
    takes_tcp();
    takes_lists();
    refuses();
    limits();
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const char *why = sql_url_problem(&a, refusals[i].url);
        if (strstr(refusals[i].url, "s3") && (strstr(why, "s3") || strstr(why, "cret")))
            ok(false, "a secret is shown: %s", why);
    }
    arena_release(&a);
    return tap_done();
}
