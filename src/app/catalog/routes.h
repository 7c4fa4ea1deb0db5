/* routes.h -- what there is to choose from, and what a choice would cost. */
#ifndef APP_CATALOG_ROUTES_H
#define APP_CATALOG_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route catalog_routes[]; /* ends with a method of NULL */
#endif
