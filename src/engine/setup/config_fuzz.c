/* Input: the text of a file, then, after a NUL, one environment variable per line. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "engine/setup/config.h"

#define VARIABLES_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str rest = {(const char *)data, size};
    struct str text = str_cut(&rest, '\0');
    char *env[VARIABLES_MAX + 1] = {0};
    for (size_t i = 0; i < VARIABLES_MAX && rest.p; i++)
        env[i] = str_z(&a, str_cut(&rest, '\n'));

    struct config c, again;
    const char *why = NULL;
    struct buf b;
    buf_init(&b);
    if (config_parse(&a, "config.json", text, env, &c, &why) == 0) {
        config_show(&c, &b);
        buf_clear(&b);
        config_write(&c, &b); /* what was taken once is taken again */
        check(config_parse(&a, "copy", buf_str(&b), NULL, &again, &why) == 0);
    } else {
        check(why && *why);
    }
    buf_release(&b);
    arena_release(&a);
    return 0;
}
