/* posts_private.h -- what the files of posts know of each other.
 *
 *   posts.c   what a node holds; the kind of its jobs
 *   read.c    rows, as users, admins and searches see them
 *   write.c   posts are written, changed and deleted
 *   queue.c   posts get a place in the queue: by a write, by hand, many at once
 *   work.c    a job, from its row to its end
 *   tags.c    title and hide reach points and words
 *   space.c   posts whose vectors are of a former model are embedded again */
#ifndef APP_EMBED_POST_POSTS_PRIVATE_H
#define APP_EMBED_POST_POSTS_PRIVATE_H

#include "app/embed/post/post.h"
#include "engine/search/collection.h"
#include "engine/search/words.h"
#include "engine/setup/node.h"
#include "wire/sql.h"

#define POST_TAG_TASKS_MAX 4 /* of a node, after writes; the role does what is left */
#define POST_OPEN          "('pending', 'processing')"
#define POST_PAID_BYTES    48

struct promise;

struct posts {
    struct node *node;
    struct job_kind kind;
    size_t tag_tasks;
    int64_t *embedded, *chunks, *dropped, *overtaken, *retagged;
    int64_t swept_ms; /* when old turns were removed */
    /* For tests: other collections and words, and a node that dies after a step (other than 0). */
    bool service; /* there is an embedding service */
    int (*put)(struct task *t, struct collections *c, enum collection which,
               const struct collection_document *docs, size_t count, const bool *asks,
               struct collection_outcome *outcomes, int64_t *space);
    int (*drop)(struct task *t, struct collections *c, enum collection which,
                const uint64_t *owners, size_t count);
    int (*tag)(struct task *t, struct collections *c, enum collection which, uint64_t owner,
               struct point_tags tags, struct str title);
    int64_t (*space)(const struct collections *c, enum collection which, bool *building);
    int (*complete)(struct task *t, struct collections *c, enum collection which, int64_t space);
    int (*words_put)(struct task *t, struct sql *c, enum collection which,
                     const struct words_text *texts, size_t count);
    int (*words_drop)(struct task *t, struct sql *c, enum collection which, const uint64_t *owners,
                      size_t count);
    int (*dies)(struct task *t, const char *after);
};

struct point_tags post_tags(bool hide);
bool post_blank(struct str content); /* there is nothing to embed */

/* --- read.c --- */

/* post_get, in a transaction. */
MUST_CHECK int post_get_on(struct task *t, struct sql *c, struct post_caller who, int64_t id,
                           struct post *out);

/* --- queue.c --- */

/* What a post gets when it is queued. */
struct post_turn {
    int64_t id, uid, position, priority;
    int64_t cents;
    char paid_as[POST_PAID_BYTES]; /* "": nothing is paid */
};
/* In the transaction that queues it: its place, which is later than all others. */
MUST_CHECK int post_turn_take(struct task *t, struct sql *c, struct post_turn *x);
/* What its work costs is reserved, or what was reserved is free. */
MUST_CHECK int post_turn_reserve(struct task *t, struct sql *c, const struct post_turn *x);
/* After the commit. Only ERR_CANCELED. */
MUST_CHECK int post_turn_push(struct task *t, struct posts *p, const struct post_turn *list,
                              size_t count);
/* ERR_BUSY: the queue is full; Redis away: it counts as not full. */
MUST_CHECK int post_queue_room(struct task *t, struct posts *p, int64_t *room);
/* write in a transaction; if it costs something, one that also looks at the user's money, as
 * promise_make. `what` need not be set. */
MUST_CHECK int post_promise(struct task *t, struct posts *p, const struct promise *x);
int64_t post_price_cents(const struct posts *p);

/* Posts that a condition finds are queued again at the lowest priority, for nothing: those with a
 * number above *after, at most limit. *after is advanced, to -1 at the end. Values are those of
 * condition, which begins with " AND " and may use its columns. */
struct post_again {
    const char *condition;
    const struct sql_value *values;
    size_t value_count;
    int64_t after, limit;
    const struct admin_deed *by; /* noted; NULL: no admin */
    int64_t queued;
};
MUST_CHECK int post_again(struct task *t, struct posts *p, struct post_again *x);

/* --- tags.c --- */

/* Brings points and words of a post up to date, if they are behind and no other node does. */
MUST_CHECK int post_tag(struct task *t, struct posts *p, int64_t id);
/* The same in the background. */
void post_tag_soon(struct posts *p, int64_t id);

/* --- work.c --- */

extern const struct job_rows post_job_rows;
job_fn post_work;
#endif
