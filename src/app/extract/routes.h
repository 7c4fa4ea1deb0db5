#ifndef APP_EXTRACT_ROUTES_H
#define APP_EXTRACT_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route extract_routes[];
#endif
