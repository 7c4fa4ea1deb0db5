/* post.h -- rows of posts, as search and the application of posts read them.
 *
 * The table tb_post is the application's (src/app/post), which alone writes it. */
#ifndef ENGINE_SEARCH_POST_H
#define ENGINE_SEARCH_POST_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct sql_pool;
struct task;

struct post_row {
    int64_t id, uid;           /* its number; its owner */
    int64_t version;           /* of the content: points of another version are stale */
    struct str title, content; /* Markdown */
    bool hide;                 /* its owner and admins see it alone */
    int64_t changed_ms;
};

/* Those of these ids that are there and not deleted, in the order of ids; rows has room for count,
 * *found of them are filled. In the task's arena. */
MUST_CHECK int post_rows(struct task *t, struct sql_pool *sql, const int64_t *ids, size_t count,
                         struct post_row *rows, size_t *found);
/* The ids of a user's hidden posts, ascending: exceptions of a filter (point_filter.unless). At
 * most POINTS_OWNERS_MAX, the newest. */
MUST_CHECK int post_hidden_of(struct task *t, struct sql_pool *sql, int64_t uid, uint64_t **ids,
                              size_t *count);
#endif
