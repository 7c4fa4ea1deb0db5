/* date.h -- dates as papers write them, to ISO: "2020-05-17", or "2020-05" and "2020" where the day
 * or the month is not given.
 *
 * Understood are 2020-05-17, 2020/5/17, 2020.5.17, 20200517, 17 May 2020, May 17th, 2020, May 2020,
 * 05/2020, 17.5.2020, 17/5/2020 and 5/17/2020, 2020年5月17日, weekdays and a time behind an ISO date
 * aside. A day that no calendar has, and 3/4/2020, which has two meanings, are no dates. */
#ifndef APP_EXTRACT_FIELDS_DATE_H
#define APP_EXTRACT_FIELDS_DATE_H

#include "base/str.h"

/* In a. False: it is no date, or *ambiguous. */
bool date_read(struct arena *a, struct str text, struct str *iso, bool *ambiguous);
/* Whether it is what date_read gives. */
bool date_is_iso(struct str text);
#endif
