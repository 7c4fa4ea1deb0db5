/* Any bytes become valid UTF-8 of bounded length, and UTF-8 becomes itself. */
#include "corpus/charset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str bytes = str_from(size ? (const char *)data : "", size);
    struct charset_text first, second;
    check(charset_to_utf8(&a, bytes, &first) == 0);
    check(first.utf8.p && str_utf8_valid(first.utf8) && first.utf8.n <= 3 * size);
    check(first.repaired == 0 || first.first_repaired < size);
    if (!first.bom && str_utf8_valid(bytes))
        check(first.utf8.p == bytes.p && first.utf8.n == size && first.repaired == 0);
    check(charset_to_utf8(&a, first.utf8, &second) == 0);
    check(second.charset == CHARSET_UTF8 && second.repaired == 0);
    arena_release(&a);
    return 0;
}
