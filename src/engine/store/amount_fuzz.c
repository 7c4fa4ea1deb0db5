/* Whatever is read as an amount is in its bounds and reads the same when it is written again. */
#include "engine/store/amount.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    int64_t cents, again = -1;
    if (amount_cents(str_from((const char *)data, size), &cents)) {
        check(cents >= 0 && cents <= AMOUNT_CENTS_MAX);
        check(amount_cents(amount_decimal(&a, cents), &again) && again == cents);
    }
    arena_release(&a);
    return 0;
}
