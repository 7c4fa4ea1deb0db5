/* Any input gives valid UTF-8 of bounded length, with single spaces and none at the ends. */
#include "corpus/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str got = text_plain(&a, str_from(size ? (const char *)data : "", size));
    check(got.p && str_utf8_valid(got));
    check(got.n <= TEXT_GROWTH_MAX * size);
    check(str_find(got, STR("  ")) < 0);
    check(got.n == 0 || (got.p[0] != ' ' && got.p[got.n - 1] != ' '));
    for (size_t i = 0; i < got.n; i++)
        check((unsigned char)got.p[i] >= ' ' && got.p[i] != 127);
    arena_release(&a);
    return 0;
}
