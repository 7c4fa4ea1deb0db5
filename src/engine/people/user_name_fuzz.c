#include <stdlib.h>

#include "engine/people/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A fine name folds to a form that is short, valid and folds to itself. What names begin with has
 * nothing that means something else to LIKE. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = check_memory(malloc(n ? n : 1)); /* of exactly this size: reading on is seen */
    memcpy(copy, data, n);
    struct str name = str_from(copy, n);
    (void)user_password_problem(name);
    struct arena a;
    struct str prefix = STR_NULL;
    arena_init(&a);
    bool begins = user_name_prefix(&a, name, &prefix);
    check(!begins || (!memchr(prefix.p, '%', prefix.n) && !memchr(prefix.p, '!', prefix.n)));
    if (!user_name_problem(name)) {
        struct str folded = user_name_folded(&a, name);
        check(begins && str_eq(prefix, folded));
        check(folded.n > 0 && folded.n <= 255 && str_utf8_valid(folded));
        check(!memchr(folded.p, '\0', folded.n) && !memchr(folded.p, '\'', folded.n));
        check(str_eq(user_name_folded(&a, folded), folded));
    }
    arena_release(&a);
    free(copy);
    return 0;
}
