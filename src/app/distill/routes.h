/* routes.h -- runs over the relevant papers of other runs. */
#ifndef APP_DISTILL_ROUTES_H
#define APP_DISTILL_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route distill_routes[]; /* ends with a method of NULL */
#endif
