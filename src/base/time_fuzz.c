/* What is read as a time is written as it was. */
#include "base/check.h"
#include "base/time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char again[TIME_ISO_BYTES];
    int64_t us;
    if (!time_from_iso(str_from((const char *)data, size), &us))
        return 0;
    time_iso(us, again);
    check(memcmp(again, data, size < sizeof "2026-01-31T12:00:00" ? size : 19) == 0);
    return 0;
}
