/* limits.h -- what a user may start yet, and what was started. */
#ifndef APP_ACCOUNT_LIMITS_H
#define APP_ACCOUNT_LIMITS_H

#include "engine/api/api.h"

extern const struct api_field account_limits_reply[];
api_handler account_limits;
#endif
