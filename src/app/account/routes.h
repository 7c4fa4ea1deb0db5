/* routes.h -- accounts: register, log in and out, sessions, passwords, the account itself. */
#ifndef APP_ACCOUNT_ROUTES_H
#define APP_ACCOUNT_ROUTES_H

#include "engine/api/api.h"

extern const struct api_route account_routes[]; /* ends with a method of NULL */
#endif
