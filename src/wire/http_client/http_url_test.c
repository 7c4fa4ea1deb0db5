#include "wire/http_client/http_url.h"

#include "tests/tap.h"

static void splits(const char *url, const char *name, const char *port, const char *target)
{
    struct http_url u;
    ok(http_url_split(str_of(url), &u), "%s is taken", url);
    is_str(str_of(u.name), str_of(name), "its name");
    is_str(str_of(u.port), str_of(port), "its port");
    is_str(u.target, str_of(target), "its target");
}

static void refuses(const char *url)
{
    struct http_url u;
    ok(!http_url_split(str_of(url), &u), "\"%s\" is refused", url);
}

int main(void)
{
    splits("http://a", "a", "80", "");
    splits("http://a/", "a", "80", "/");
    splits("HTTP://Api.Example.COM:8080/A/b?c=d", "api.example.com", "8080", "/A/b?c=d");
    splits("http://a?q=1/2", "a", "80", "?q=1/2");
    splits("http://a:/x", "a", "80", "/x");
    splits("http://a:00081/x", "a", "81", "/x");
    splits("http://a/x?y#z?w", "a", "80", "/x?y");
    splits("http://a#z", "a", "80", "");
    splits("http://127.0.0.1:65535/x@y:z", "127.0.0.1", "65535", "/x@y:z");
    splits("http://[2001:DB8::1]:90/", "[2001:db8::1]", "90", "/");
    splits("https://a", "a", "443", "");
    splits("HTTPS://A:/x?y", "a", "443", "/x?y");
    splits("https://a:80/", "a", "80", "/");

    static const char *const wrong[] = {
        "",
        "http:",
        "http://",
        "http:///x",
        "http:/a/x",
        "https:///a",
        "https:/a/",
        "httpss://a/",
        "ftp://a/",
        "a/x",
        "http://:80/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:99999999999999/",
        "http://a:8x/",
        "http://a:-1/",
        "http://a:80:80/",
        "http://user@a/",
        "http://user:secret@a/",
        "http://a@b/",
        "http://a b/",
        "http://a/b c",
        "http://a/b\r\nX: y",
        "http://a\\b/",
        "http://a%00b/",
        "http://b\303\274cher.test/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[127.0.0.1]/",
        "http://[fe80::1%25eth0]/",
        "http://[]/",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuses(wrong[i]);
    char name[400] = "http://";
    memset(name + 7, 'x', 255);
    struct http_url u;
    ok(http_url_split(str_of(name), &u), "a name of 255 bytes is taken");
    name[7 + 255] = 'x';
    refuses(name);
    ok(http_url_split(STR("https://a"), &u) && u.tls, "https is over TLS");
    ok(http_url_split(STR("http://a"), &u) && !u.tls, "http is not");
    return tap_done();
}
