#include <stdlib.h>

#include "wire/http_client/http_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An accepted URL is safe as a host's key, a Host header and a request line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1); /* of its own, so that reading past the end is seen */
    check(copy);
    memcpy(copy, size ? (const char *)data : "", size);
    struct http_url u;
    if (http_url_split(str_from(copy, size), &u)) {
        struct str name = str_of(u.name);
        int64_t port;
        check(name.n > 0 && name.n < HTTP_NAME_BYTES);
        for (size_t i = 0; i < name.n; i++)
            check(name.p[i] > ' ' && !memchr("/?#@", name.p[i], 4));
        check(str_to_i64(str_of(u.port), &port) && port > 0 && port <= 65535);
        check(u.target.p >= copy && u.target.p + u.target.n <= copy + size);
        check(u.target.n == 0 || u.target.p[0] == '/' || u.target.p[0] == '?');
        for (size_t i = 0; i < u.target.n; i++)
            check(u.target.p[i] > ' ' && u.target.p[i] < 0x7f && u.target.p[i] != '#');
    }
    free(copy);
    return 0;
}
