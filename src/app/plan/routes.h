/* routes.h -- what the application plan serves. */
#ifndef APP_PLAN_ROUTES_H
#define APP_PLAN_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route plan_routes[];
#endif
