/* routes.h -- what the search serves. */
#ifndef APP_EMBED_SEARCH_ROUTES_H
#define APP_EMBED_SEARCH_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route search_routes[];
#endif
