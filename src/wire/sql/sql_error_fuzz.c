#include <string.h>

#include "wire/sql/sql_error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* No byte of any value stays in the text; any text of a server is accepted. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    arena_init(&a);
    char *value = str_z(&a, str_from((const char *)data, n));
    const char *text = arena_printf(&a, "Duplicate entry '%s' for key 'k'", value);
    check(strcmp(sql_error_text(&a, text), "Duplicate entry '…' for key 'k'") == 0);
    check(strlen(sql_error_text(&a, value)) <= 5 * strlen(value));
    (void)sql_reads_only(value);
    arena_release(&a);
    return 0;
}
