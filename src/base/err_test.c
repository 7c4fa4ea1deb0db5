#include "base/err.h"

#include "tests/tap.h"

int main(void)
{
    is_str(str_of(err_name(0)), STR("ok"), "success has a name");
    is_str(str_of(err_name(ERR_TIMEOUT)), STR("timeout"), "timeout");
    is_str(str_of(err_name(ERR_NOT_FOUND)), STR("not_found"), "not_found");
    is_str(str_of(err_name(ERR_INTERNAL)), STR("internal"), "internal");
    bool named = true, distinct = true;
    for (int a = 0; a >= ERR_LAST; a--) {
        named &= err_name(a) && *err_name(a);
        for (int b = a - 1; b >= ERR_LAST; b--)
            distinct &= strcmp(err_name(a), err_name(b)) != 0;
    }
    ok(named, "every code has a name");
    ok(distinct, "no two codes share one");
    is_str(str_of(err_name(1)), STR("internal"), "a positive number is a programming error");
    is_str(str_of(err_name(ERR_LAST - 1)), STR("internal"), "so is an unknown code");
    return tap_done();
}
