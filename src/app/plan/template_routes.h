/* template_routes.h -- what templates serve. */
#ifndef APP_PLAN_TEMPLATE_ROUTES_H
#define APP_PLAN_TEMPLATE_ROUTES_H

#include "engine/api/api.h"

/* Of users: a row in routes.c. */
api_handler plan_templates_show;
extern const struct api_field plan_templates_query[], plan_templates_reply[];

extern const struct api_route admin_template_routes[];

/* A variable of a template, in requests and replies alike. */
extern const struct api_field plan_variable_fields[];
#endif
