/* template_store.h -- templates as users have them: ready ones of the program, and their own.
 *
 * Owns tables extraction_template and extraction_template_version. A ready template (template.h)
 * has a word for an id, version 1, and cannot be changed; a page copies it. An own one has an
 * own_id. Each change writes a new version; the last TEMPLATE_VERSIONS_KEPT of them can be read. A
 * task does not depend on any of this: it freezes name and fields when it is submitted.
 *
 * Everything here is in MySQL alone. An id of another user is ERR_NOT_FOUND. */
#ifndef APP_EXTRACT_TEMPLATE_STORE_H
#define APP_EXTRACT_TEMPLATE_STORE_H

#include "base/str.h"

struct sql_pool;
struct task;

#define TEMPLATES_MAX          200 /* of one user */
#define TEMPLATE_NAME_CHARS    200
#define TEMPLATE_ID_CHARS      64
#define TEMPLATE_VERSIONS_KEPT 100
#define TEMPLATE_FIELDS_BYTES  (256 * 1024) /* of the JSON of all fields */
#define TEMPLATE_LANGUAGES     "en|zh"      /* of ready ones */

struct stored_template {
    struct str id, name;
    int64_t version, field_count;
    bool ready;
    int64_t changed_ms; /* 0 of a ready one */
    struct str fields;  /* JSON array, as extract_template_read takes it; p == NULL in lists */
};

/* The ready ones first, then the user's own, the last changed first. language, "zh" or anything
 * else for English: of ready ones. In the task's arena. */
MUST_CHECK int template_store_list(struct task *t, struct sql_pool *sql, int64_t uid,
                                   struct str language, struct stored_template **out,
                                   size_t *count);
/* version 0: the newest. ERR_NOT_FOUND: the user has no such template, or no such version of it is
 * kept. A ready one needs no MySQL. */
MUST_CHECK int template_store_get(struct task *t, struct sql_pool *sql, int64_t uid, struct str id,
                                  int64_t version, struct str language,
                                  struct stored_template *out);

/* name, fields and field_count have been checked. Sets id and version. ERR_CONFLICT: there are
 * TEMPLATES_MAX. */
MUST_CHECK int template_store_add(struct task *t, struct sql_pool *sql, int64_t uid,
                                  struct stored_template *x);
/* x->version: that the caller has seen; then the new one. ERR_CONFLICT: it is not the newest, or
 * the template is a ready one. ERR_NOT_FOUND. */
MUST_CHECK int template_store_change(struct task *t, struct sql_pool *sql, int64_t uid,
                                     struct stored_template *x);
/* ERR_NOT_FOUND; ERR_CONFLICT: it is a ready one. */
MUST_CHECK int template_store_delete(struct task *t, struct sql_pool *sql, int64_t uid,
                                     struct str id);
#endif
