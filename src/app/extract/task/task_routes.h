/* task_routes.h -- handlers of the routes of tasks, and what they take and answer; routes.c has the
 * table. */
#ifndef APP_EXTRACT_TASK_TASK_ROUTES_H
#define APP_EXTRACT_TASK_TASK_ROUTES_H

#include "engine/api/api.h"

#define TASK_BODY_BYTES_MAX (4 * 1024 * 1024) /* ten thousand ids or DOIs */

api_handler extraction_estimate, extraction_submit, extractions_show, extraction_status;
api_handler extraction_cancel, extraction_retry, extraction_row_retry;
api_handler extraction_events; /* task_events.c */
extern const struct api_field extraction_estimate_body[], extraction_estimate_reply[];
extern const struct api_field extraction_submit_body[], extraction_submit_reply[];
extern const struct api_field extractions_query[], extractions_reply[];
extern const struct api_field extraction_fields[], extraction_status_reply[];

/* The place that a path names; 0: none, and no row has it. */
int64_t extraction_place(const struct api_call *c);

struct extract_task;
/* Members of the object that w is in, as extraction_fields says; of a task with its counts. */
void extraction_put(struct task *t, struct json_writer *w, const struct extract_task *x);
/* The same as extraction_status_reply says. */
void extraction_put_status(struct json_writer *w, const struct extract_task *x);
#endif
