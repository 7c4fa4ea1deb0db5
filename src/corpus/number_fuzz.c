/* Any text: what is read is finite, stands in the text, and is among its numbers. */
#include <math.h>

#include "corpus/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_from(size ? (const char *)data : "", size), rest = text;
    double v;
    while (number_read(rest, &v, &rest)) {
        check(isfinite(v));
        check(rest.p + rest.n == text.p + text.n && rest.n < text.n);
    }
    if (number_read(text, &v, &rest))
        check(number_in(text, v));
    number_in(text, 0.5);
    return 0;
}
