#include "wire/http_client/http_client_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct http_reply_head h;
    http_reply_head_init(&h);
    struct str rest = {(const char *)data, size};
    while (rest.p)
        http_reply_head_line(&h, &a, str_cut(&rest, '\n'), 1767225600000);
    check(h.retry_after_ms >= -1);
    check(h.status >= 0 && h.status <= 999);
    arena_release(&a);
    return 0;
}
