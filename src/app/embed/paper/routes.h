/* routes.h -- what admins see of embedding, and ask for. */
#ifndef APP_EMBED_PAPER_ROUTES_H
#define APP_EMBED_PAPER_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route admin_embedding_routes[];
#endif
