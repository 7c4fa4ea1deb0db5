/* routes.h -- screening: a user's runs. */
#ifndef APP_SCREEN_ROUTES_H
#define APP_SCREEN_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route screen_routes[]; /* ends with a method of NULL */
#endif
