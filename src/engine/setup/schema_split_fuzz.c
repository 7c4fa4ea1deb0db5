#include <stdlib.h>

#include "base/err.h"
#include "engine/setup/schema_split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Every step gets nearer to the end, statements are never empty of bytes outside the file, and a
 * refusal changes nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = check_memory(malloc(n + 1));
    memcpy(copy, data, n);
    struct str rest = str_from(copy, n), one = STR(";");
    while (one.p) {
        struct str before = rest;
        if (schema_split(&rest, &one) != 0) {
            check(rest.p == before.p && rest.n == before.n);
            break;
        }
        check(rest.p >= before.p && rest.p + rest.n == copy + n);
        check(!one.p || (rest.n < before.n && one.p >= before.p && one.p + one.n < rest.p));
    }
    free(copy);
    return 0;
}
