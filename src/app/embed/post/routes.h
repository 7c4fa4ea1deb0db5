/* routes.h -- what posts serve. */
#ifndef APP_EMBED_POST_ROUTES_H
#define APP_EMBED_POST_ROUTES_H

#include "app/embed/post/post.h"
#include "engine/api/api.h"

extern const struct api_route post_routes[];

/* ":post_id" of the path. ERR_NOT_FOUND: it is no id. */
MUST_CHECK int post_id_of_path(struct task *t, const struct api_call *c, int64_t *id);
/* A post as the caller may see it. A browser with sessions of both kinds is the admin's, if the
 * user may not see it. */
MUST_CHECK int post_of_path(struct task *t, struct api_call *c, struct post *out);
struct post_caller post_caller_of(const struct api_call *c);

/* Members of rag_status, as lists and events have them. */
void post_put_status(struct json_writer *w, const struct post_caller *who, const struct post *x);

/* --- events.c, status.c --- */

api_handler post_events;     /* of one post */
api_handler post_events_all; /* of all that are the caller's */
api_handler post_queue_status;
extern const struct api_field post_queue_reply[];
#endif
