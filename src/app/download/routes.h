/* routes.h -- results of a run as files. */
#ifndef APP_DOWNLOAD_ROUTES_H
#define APP_DOWNLOAD_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route download_routes[]; /* ends with a method of NULL */
#endif
