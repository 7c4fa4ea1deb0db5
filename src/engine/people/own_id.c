#include "engine/people/own_id.h"

#include <inttypes.h>

#include "base/sha256.h"
#include "loop/task.h"

struct str own_id_rest(struct str id, int64_t uid)
{
    char digits[STR_INT_BYTES];
    struct str own = str_digits(digits, uid);
    bool is = str_starts(id, own) && id.n > own.n && id.p[own.n] == '-';
    return is ? str_skip(id, own.n + 1) : STR_NULL;
}

bool own_id_is(struct str id, int64_t uid)
{
    struct str random = own_id_rest(id, uid);
    return random.p && hex_is(random, OWN_ID_RANDOM_CHARS);
}

struct str own_id_new(struct task *t, int64_t uid)
{
    char random[OWN_ID_RANDOM_CHARS + 1];
    loop_token(task_loop(t), random, sizeof random);
    return str_printf(task_arena(t), "%" PRId64 "-%s", uid, random);
}
