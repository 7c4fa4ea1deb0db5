/* api_private.h -- what the files of the API share. */
#ifndef ENGINE_API_API_PRIVATE_H
#define ENGINE_API_API_PRIVATE_H

#include "base/buf.h"
#include "engine/api/api.h"

/* "journals[3]", "must have 1 to 64 characters". */
struct api_problem {
    const char *field, *message;
};

/* Values against a list of fields (NULL: an empty one). 0, or ERR_INVALID with *p in a. body is an
 * object, or NULL for none. */
MUST_CHECK int api_check_body(struct arena *a, const struct api_field *fields,
                              const struct json *body, struct api_problem *p);
/* raw: what follows the "?", which can be decoded as a whole; p == NULL: nothing does. The values,
 * decoded, lie in a. */
MUST_CHECK int api_check_query(struct arena *a, const struct api_field *fields, struct str raw,
                               const struct api_value **out, size_t *count, struct api_problem *p);
/* What is wrong with a parameter of the path; NULL: nothing. */
const char *api_check_path(struct arena *a, struct str value);
bool api_check_bool(struct str word, bool *out); /* of a parameter */
/* Stops the process when the table makes no sense. */
void api_check_route(const struct api_route *r);

const struct api_field *api_field_find(const struct api_field *fields, struct str name);

/* In the audit log, for routes that have a name there; err is what the caller gets. */
void api_note_refusal(struct task *t, const struct api_call *c, int err);

/* The whole of /openapi.json. */
void api_openapi(struct buf *out, const struct api_table *table);
#endif
