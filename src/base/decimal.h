/* decimal.h -- short decimal numbers as doubles, without strtod and printf. */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#define DECIMAL_POWERS 22 /* of ten, which are exact as doubles */

/* digits * 10^scale, correctly rounded. Up to 2^53 and 10^22 are exact, so one operation on them
 * rounds correctly. False: they are not, and there is strtod. */
static inline bool decimal_exact(uint64_t digits, int64_t scale, double *out)
{
    static const double powers[DECIMAL_POWERS + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double d = (double)digits;
    if (digits > (uint64_t)1 << 53 || scale < -DECIMAL_POWERS || scale > DECIMAL_POWERS)
        return false;
    *out = scale < 0 ? d / powers[-scale] : d * powers[scale];
    return true;
}
#endif
