/* result_routes.h -- handlers of the routes of a task's rows, and what they take and answer;
 * routes.c has the table. */
#ifndef APP_EXTRACT_RESULT_ROUTES_H
#define APP_EXTRACT_RESULT_ROUTES_H

#include "engine/api/api.h"

#define EDIT_BODY_BYTES_MAX (1024 * 1024)

api_handler extraction_show, extraction_row, extraction_file, extraction_edit, extraction_edits;
api_handler extraction_text;
extern const struct api_field extraction_query[], extraction_reply[], extraction_file_query[];
extern const struct api_field extraction_row_reply[];
extern const struct api_field extraction_edit_body[], extraction_edit_reply[];
extern const struct api_field extraction_edits_query[], extraction_edits_reply[];
#endif
