#include <stdlib.h>

#include "wire/sql/sql_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Every URL is either complete or refused with a message. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    arena_init(&a);
    char *url = str_z(&a, str_from((const char *)data, n));
    struct sql_url out;
    const char *problem = sql_url_parse(&a, url, &out);
    if (problem) {
        check(problem[0]);
    } else {
        check(out.user[0] && out.password && out.database);
        check(out.socket ? out.place_count == 0 : out.place_count > 0);
        for (size_t i = 0; i < out.place_count; i++)
            check(out.places[i].host[0] && out.places[i].port);
    }
    arena_release(&a);
    return 0;
}
