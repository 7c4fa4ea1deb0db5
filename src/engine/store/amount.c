/* Amounts as people write them. */
#include "engine/store/amount.h"

#define WHOLE_DIGITS_MAX 9

static bool all_digits(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

bool amount_cents(struct str decimal, int64_t *cents)
{
    struct str rest = decimal;
    if (!rest.p)
        return false;
    struct str whole = str_cut(&rest, '.');
    if (!all_digits(whole) || whole.n > WHOLE_DIGITS_MAX || (whole.n > 1 && whole.p[0] == '0'))
        return false;
    if (rest.p && (!all_digits(rest) || rest.n > 2))
        return false;
    int64_t sum, part = 0;
    if (!str_to_i64(whole, &sum) || (rest.p && !str_to_i64(rest, &part)))
        return false;
    *cents = sum * 100 + (rest.p && rest.n == 1 ? part * 10 : part);
    return true;
}

struct str amount_decimal(struct arena *a, int64_t cents)
{
    uint64_t size = cents < 0 ? -(uint64_t)cents : (uint64_t)cents;
    return str_printf(a, "%s%llu.%02llu", cents < 0 ? "-" : "", (unsigned long long)(size / 100),
                      (unsigned long long)(size % 100));
}
