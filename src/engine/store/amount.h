/* amount.h -- money as people write it: "240.00" is 24000 cents. Code has cents only. */
#ifndef ENGINE_STORE_AMOUNT_H
#define ENGINE_STORE_AMOUNT_H

#include "base/str.h"

#define AMOUNT_CENTS_MAX 99999999999 /* 999,999,999.99 */

/* False: not an amount with at most two decimals, from 0 to AMOUNT_CENTS_MAX; no exponents, signs
 * or spaces. */
bool amount_cents(struct str decimal, int64_t *cents);
struct str amount_decimal(struct arena *a, int64_t cents);
#endif
