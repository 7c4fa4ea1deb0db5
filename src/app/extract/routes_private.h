/* routes_private.h -- handlers of routes, and what they take and answer; routes.c has the table. */
#ifndef APP_EXTRACT_ROUTES_PRIVATE_H
#define APP_EXTRACT_ROUTES_PRIVATE_H

#include "engine/api/api.h"

/* --- template_routes.c --- */

#define TEMPLATE_BODY_BYTES_MAX (512 * 1024)
api_handler templates_show, template_show, template_post, template_put, template_remove;
extern const struct api_field templates_query[], templates_reply[], template_query[];
extern const struct api_field template_reply[], template_post_body[], template_put_body[];
extern const struct api_field template_stored_reply[], template_field_fields[];

/* --- document_routes.c --- */

api_handler documents_show, document_show, document_post, document_text_show, document_remove;
extern const struct api_field documents_query[], documents_reply[], document_reply[];
extern const struct api_field document_post_query[], document_post_reply[];
#endif
