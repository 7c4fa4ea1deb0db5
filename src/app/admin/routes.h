/* routes.h -- what admins see and do. Each file has its handlers and, at its end, its table. */
#ifndef APP_ADMIN_ROUTES_H
#define APP_ADMIN_ROUTES_H

#include "engine/api/api.h"

/* Each ends with a method of NULL. */
extern const struct api_route admin_session_routes[];
extern const struct api_route admin_admins_routes[];
extern const struct api_route admin_users_routes[];
extern const struct api_route admin_money_routes[];
extern const struct api_route admin_runs_routes[];
extern const struct api_route admin_switches_routes[];
extern const struct api_route admin_keys_routes[];
extern const struct api_route admin_audit_routes[];
extern const struct api_route admin_nodes_routes[];
extern const struct api_route admin_overview_routes[];
extern const struct api_route admin_queues_routes[];

/* Rows of the table of applications. */
#define ADMIN_APPLICATIONS                                                                         \
    {"admin", admin_session_routes}, {"admin admins", admin_admins_routes},                        \
        {"admin users", admin_users_routes}, {"admin money", admin_money_routes},                  \
        {"admin runs", admin_runs_routes}, {"admin switches", admin_switches_routes},              \
        {"admin keys", admin_keys_routes}, {"admin nodes", admin_nodes_routes},                    \
        {"admin overview", admin_overview_routes}, {"admin queues", admin_queues_routes},          \
    {                                                                                              \
        "admin audit log", admin_audit_routes                                                      \
    }
#endif
