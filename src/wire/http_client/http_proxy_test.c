#include "wire/http_client/http_proxy.h"

#include <stdlib.h>

#include "tests/tap.h"

static struct arena arena;

/* --- how it is written --- */

static void reads_as(const char *url, const char *variable, const char *name, const char *port,
                     const char *login)
{
    struct http_proxy p;
    struct http_proxy_choice c = {url, variable};
    const char *problem = http_proxy_parse(&arena, &c, &p);
    ok(!problem, "%s is taken: %s", url, problem ? problem : "");
    if (problem)
        return;
    is_str(str_of(p.name), str_of(name), "its name");
    is_str(str_of(p.port), str_of(port), "its port");
    if (login)
        is_str(p.login, str_of(login), "its login");
    else
        ok(!p.login.p, "no login");
}

static void refuses(const char *url, const char *variable, const char *words)
{
    struct http_proxy p;
    struct http_proxy_choice c = {url, variable};
    const char *problem = http_proxy_parse(&arena, &c, &p);
    ok(problem && strstr(problem, words), "%s is refused: %s", url, problem ? problem : "no");
    ok(!problem || !strstr(problem, "secret"), "without a secret in it");
}

static void test_urls(void)
{
    reads_as("http://10.0.0.1:3128", NULL, "10.0.0.1", "3128", NULL);
    reads_as("HTTP://Proxy.Example:08080/", NULL, "proxy.example", "8080", NULL);
    reads_as("http://[::1]:3128", NULL, "[::1]", "3128", NULL);
    reads_as("http://me:secret@p:1", NULL, "p", "1", "me:secret");
    reads_as("http://me:@p:1", NULL, "p", "1", "me:");
    reads_as("http://:pass@p:1", NULL, "p", "1", ":pass");
    reads_as("http://a:b:c@p:1", NULL, "p", "1", "a:b:c");
    reads_as("http://m%40e:p%3a%2F%25%20s@p:1", NULL, "p", "1", "m@e:p:/% s");
    reads_as("http://m\303\274:x@p:1", NULL, "p", "1", "m\303\274:x");
    reads_as("p.example:3128", "HTTPS_PROXY", "p.example", "3128", NULL);
    reads_as("me:x@p.example:3128/", "HTTPS_PROXY", "p.example", "3128", "me:x");

    refuses("p.example:3128", NULL, "only HTTP proxies");
    refuses("https://me:secret@p:1", NULL, "only HTTP proxies");
    refuses("socks5://me:secret@p:1", "HTTPS_PROXY", "only HTTP proxies");
    refuses("http://secret", NULL, "port is missing");
    refuses("http://me:secret", NULL, "host or port cannot be read"); /* "@host" forgotten */
    refuses("http://p:", NULL, "port is missing");
    refuses("http://p:0", NULL, "host or port cannot be read");
    refuses("http://p:65536", NULL, "host or port cannot be read");
    refuses("http://p:1x", NULL, "host or port cannot be read");
    refuses("http://", NULL, "host cannot be read");
    refuses("http://:3128", NULL, "host cannot be read");
    refuses("http://me:secret@:3128", NULL, "host cannot be read");
    refuses("http://::1:3128", NULL, "host cannot be read");
    refuses("http://[::1:3128", NULL, "host cannot be read");
    refuses("http://[::x]:3128", NULL, "host or port cannot be read");
    refuses("http://p:1/secret", NULL, "nothing may follow");
    refuses("http://p:1?x", NULL, "host or port cannot be read");
    refuses("http://p:1#x", NULL, "host or port cannot be read");
    refuses("http://p q:1", NULL, "host or port cannot be read");
    refuses("http://me@p:1", NULL, "needs a password");
    refuses("http://me:se@cret@p:1", NULL, "%40");
    refuses("http://me:se/secret@p:1", NULL, "%2F");
    refuses("http://me:secret%4@p:1", NULL, "%25");
    refuses("http://me:secret%00@p:1", NULL, "%25");
    refuses("http://me:secret%ff@p:1", NULL, "UTF-8");
    refuses("http://m%3Ae:secret@p:1", NULL, "a colon in it");
    ok(!http_proxy_problem(&arena, "none"), "a setting may be none");
    ok(!http_proxy_problem(&arena, "http://p:1"), "or a proxy");
    ok(http_proxy_problem(&arena, "direct"), "but nothing else");
}

/* --- exceptions --- */

static void excepts(const char *list, const char *name, const char *port, bool is)
{
    ok(http_proxy_excepted(str_of(list), name, port) == is, "\"%s\" %s %s:%s", list,
       is ? "excepts" : "does not except", name, port);
}

static void test_exceptions(void)
{
    excepts("", "a.example", "443", false);
    excepts(" , ,", "a.example", "443", false);
    excepts("*", "a.example", "443", true);
    excepts("x, *", "[::1]", "443", true);
    excepts("a.example", "a.example", "443", true);
    excepts("A.Example", "a.example", "443", true);
    excepts("a.example.", "a.example", "443", true);
    excepts("a.example", "a.example.", "443", true);
    excepts("a.example", "b.a.example", "443", true);
    excepts("a.example", "ba.example", "443", false);
    excepts("a.example", "example", "443", false);
    excepts(".example", "a.example", "443", true);
    excepts(".example", "example", "443", true);
    excepts("*.example", "a.b.example", "443", true);
    excepts("*.example", "aexample", "443", false);
    excepts(".", "a.example", "443", false);
    excepts("*.", "a.example", "443", false);
    excepts("x y,a.example", "a.example", "443", true);
    excepts("x a.example,y", "a.example", "443", true);
    excepts("x,\ta.example", "a.example", "443", true);
    excepts("a.example:443", "a.example", "443", true);
    excepts("a.example:0443", "a.example", "443", true);
    excepts("a.example:444", "a.example", "443", false);
    excepts(".example:443", "a.example", "443", true);
    excepts("a.example:", "a.example", "443", false);
    excepts("a.example:x", "a.example", "443", false);
    excepts("10.0.0.1", "10.0.0.1", "80", true);
    excepts("10.0.0.1", "10.0.0.12", "80", false);
    excepts("0.0.1", "10.0.0.1", "80", false); /* no name's end */
    excepts("10.0.0.1:80", "10.0.0.1", "80", true);
    excepts("10.0.0.1:81", "10.0.0.1", "80", false);
    excepts("10.0.0.0/8", "10.9.8.7", "80", true);
    excepts("10.0.0.0/8", "11.9.8.7", "80", false);
    excepts("10.0.0.0/8:80", "10.9.8.7", "80", true);
    excepts("10.0.0.0/8:81", "10.9.8.7", "80", false);
    excepts("10.0.0.0/33", "10.0.0.0", "80", false);
    excepts("10.0.0.0/8", "10.a.example", "80", false); /* names are not looked up */
    excepts("2001:db8::1", "[2001:db8:0::1]", "80", true);
    excepts("[2001:db8::1]", "[2001:db8::1]", "80", true);
    excepts("[2001:db8::1]:80", "[2001:db8::1]", "80", true);
    excepts("[2001:db8::1]:81", "[2001:db8::1]", "80", false);
    excepts("2001:db8::/32", "[2001:db8:ffff::1]", "80", true);
    excepts("2001:db8::/32", "[2001:db9::1]", "80", false);
    excepts("::ffff:10.0.0.0/104", "10.1.1.1", "80", true);
    excepts("a:b:c,[::1,a.example", "a.example", "80", true);
}

/* --- which one --- */

static void chooses(const char *setting, bool tls, const char *name, const char *url,
                    const char *variable)
{
    struct http_proxy_choice c;
    bool found = http_proxy_choose(setting, tls, name, tls ? "443" : "80", &c);
    ok(found == (url != NULL), "%s%s: %s", tls ? "https://" : "http://", name,
       url ? url : "directly");
    if (!found || !url)
        return;
    is_str(str_of(c.url), str_of(url), "this one");
    ok(variable ? c.variable && strcmp(c.variable, variable) == 0 : !c.variable, "of %s",
       variable ? variable : "the setting");
}

static void test_choice(void)
{
    static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY",
                                        "all_proxy",   "ALL_PROXY",   "no_proxy",   "NO_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    chooses(NULL, true, "a.example", NULL, NULL);
    chooses("http://s:1", true, "a.example", "http://s:1", NULL);
    setenv("HTTP_PROXY", "http://cgi:1", 1);
    setenv("ALL_PROXY", "http://all:1", 1);
    chooses(NULL, true, "a.example", NULL, NULL);
    chooses(NULL, false, "a.example", NULL, NULL);
    setenv("HTTPS_PROXY", "http://upper:1", 1);
    chooses("", true, "a.example", "http://upper:1", "HTTPS_PROXY");
    chooses(NULL, false, "a.example", NULL, NULL);
    setenv("https_proxy", "http://lower:1", 1);
    chooses(NULL, true, "a.example", "http://lower:1", "https_proxy");
    setenv("https_proxy", "", 1);
    chooses(NULL, true, "a.example", "http://upper:1", "HTTPS_PROXY");
    setenv("http_proxy", "http://plain:1", 1);
    chooses(NULL, false, "a.example", "http://plain:1", "http_proxy");
    chooses("http://s:1", false, "a.example", "http://s:1", NULL);
    chooses("none", true, "a.example", NULL, NULL);

    static const char *const here[] = {"localhost",         "localhost.",  "api.localhost",
                                       "127.0.0.1",         "127.200.0.1", "[::1]",
                                       "[::ffff:127.0.0.1]"};
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
        chooses(NULL, true, here[i], NULL, NULL);
        chooses("http://s:1", true, here[i], "http://s:1", NULL);
    }
    chooses(NULL, true, "notlocalhost", "http://upper:1", "HTTPS_PROXY");
    chooses(NULL, true, "localhost.example", "http://upper:1", "HTTPS_PROXY");
    setenv("NO_PROXY", "example", 1);
    chooses(NULL, true, "a.example", NULL, NULL);
    chooses("http://s:1", true, "a.example", NULL, NULL);
    chooses("http://s:1", true, "b.test", "http://s:1", NULL);
    setenv("no_proxy", "test:443", 1);
    chooses(NULL, true, "a.example", "http://upper:1", "HTTPS_PROXY");
    chooses(NULL, true, "b.test", NULL, NULL);
}

int main(void)
{
    arena_init(&arena);
    test_urls();
    test_exceptions();
    test_choice();
    arena_release(&arena);
    return tap_done();
}
