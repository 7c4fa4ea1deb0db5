/* routes.h -- what pools serve. */
#ifndef APP_POOL_ROUTES_H
#define APP_POOL_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route pool_routes[];
extern const struct api_route admin_pool_routes[];

/* The ":type" and ":group" of the path. */
struct pool_id;
MUST_CHECK int pool_of_path(struct task *t, struct api_call *c, struct pool_id *out);
#endif
