#include <stdlib.h>

#include "engine/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A fine name folds to a form that is short, valid and folds to itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = check_memory(malloc(n ? n : 1)); /* of exactly this size: reading on is seen */
    memcpy(copy, data, n);
    struct str name = str_from(copy, n);
    (void)user_password_problem(name);
    if (!user_name_problem(name)) {
        struct arena a;
        arena_init(&a);
        struct str folded = user_name_folded(&a, name);
        check(folded.n > 0 && folded.n <= 255 && str_utf8_valid(folded));
        check(!memchr(folded.p, '\0', folded.n) && !memchr(folded.p, '\'', folded.n));
        check(str_eq(user_name_folded(&a, folded), folded));
        arena_release(&a);
    }
    free(copy);
    return 0;
}
