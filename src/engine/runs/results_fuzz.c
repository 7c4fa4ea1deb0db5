/* Cursors of results: whatever is taken for one is written the same way again. */
#include <stdlib.h>

#include "engine/runs/results_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = check_memory(malloc(size ? size : 1)); /* of exactly this size: shows overreads */
    memcpy(copy, data, size);
    struct str text = str_from(copy, size);
    struct arena a;
    arena_init(&a);
    for (enum results_kind kind = RESULTS_HIT; kind <= RESULTS_ALL; kind++) {
        struct results_place p;
        if (results_cursor_read(text, kind, &p))
            check(str_eq(results_cursor(&a, kind, &p), text));
    }
    arena_release(&a);
    free(copy);
    return 0;
}
