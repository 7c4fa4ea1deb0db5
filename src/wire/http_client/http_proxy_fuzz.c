#include "wire/http_client/http_proxy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_url(struct arena *a, const char *url, bool setting)
{
    struct http_proxy p;
    struct http_proxy_choice c = {url, setting ? NULL : "https_proxy"};
    const char *problem = http_proxy_parse(a, &c, &p);
    if (problem)
        return;
    /* Safe in messages and as an address. */
    struct str name = str_of(p.name);
    int64_t port;
    check(name.n > 0 && name.n < HTTP_NAME_BYTES);
    for (size_t i = 0; i < name.n; i++)
        check(name.p[i] > ' ' && name.p[i] < 0x7f && !memchr("/?#@", name.p[i], 4));
    check(str_to_i64(str_of(p.port), &port) && port > 0 && port <= 65535);
    check(!p.login.p || memchr(p.login.p, ':', p.login.n));
    check(!setting || str_ieq(str_from(url, 7), STR("http://")));
}

/* A proxy's URL as a setting and as a variable, and a list of exceptions. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"api.example.com", "10.1.2.3", "[2001:db8::1]"};
    struct arena a;
    arena_init(&a);
    char *copy = malloc(size + 1); /* of its own, so that reading past the end is seen */
    check(copy);
    memcpy(copy, size ? (const char *)data : "", size);
    for (size_t i = 0; i < 3; i++) {
        bool has = http_proxy_excepted(str_from(copy, size), names[i], "443");
        check(!has || size > 0);
    }
    copy[size] = '\0';
    check_url(&a, copy, true);
    check_url(&a, copy, false);
    free(copy);
    arena_release(&a);
    return 0;
}
