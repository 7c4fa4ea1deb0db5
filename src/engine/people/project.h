/* project.h -- a user's folders of work.
 *
 * Owns table project. Everybody has one to begin with: it is made when it is first asked for, and
 * its name is empty, so that pages can say it in the reader's language. */
#ifndef ENGINE_PEOPLE_PROJECT_H
#define ENGINE_PEOPLE_PROJECT_H

#include "base/str.h"

struct sql_pool;
struct task;

struct project {
    struct str id, name;
    int64_t created_ms, changed_ms;
};

/* The project of this id, if it is the user's; the user's oldest one if id.p == NULL, which is made
 * if there is none. ERR_NOT_FOUND. */
MUST_CHECK int project_get(struct task *t, struct sql_pool *sql, int64_t uid, struct str id,
                           struct project *out);
#endif
