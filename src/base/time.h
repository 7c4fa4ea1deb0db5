/* time.h -- the operating system's clocks. Only loop and log read them: everything else asks
 * the loop, so that tests can drive time. */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include "base/str.h"

int64_t time_mono_us(void);
int64_t time_wall_us(void); /* since 1970, UTC */

/* Times outside the years 1970 to 9999 are shown as the nearest one inside. */
#define TIME_ISO_BYTES 25 /* "2026-01-31T12:00:00.000Z" and NUL */
void time_iso(int64_t wall_us, char out[TIME_ISO_BYTES]);
/* Parses what time_iso writes; also without ".000", and "2026-01-31", the start of that day.
 * False: it is something else. */
bool time_from_iso(struct str text, int64_t *wall_us);
#define TIME_HTTP_BYTES 30 /* "Sun, 06 Nov 1994 08:49:37 GMT" and NUL */
void time_http(int64_t wall_us, char out[TIME_HTTP_BYTES]);
#endif
