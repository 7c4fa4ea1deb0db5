/* post.h -- posts: texts of users, in Markdown, that are found by meaning and by words (EMB-1,
 * EMB-2).
 *
 * Owns the tables tb_post and post_turn. Ids are random numbers. A hidden post of another user is
 * ERR_NOT_FOUND, and so is one that is deleted.
 *
 * A row is a post and the promise of its job (queue "embedding", engine/jobs/jobs.h), whose version
 * is the row's position: every change that wants work gives the row a new one.
 *
 *   1. A write (write.c) is one transaction: the row, pending, at a new position, and what the job
 *      will cost. Then the job is pushed; what Redis has not heard of jobs_refill_role finds.
 *   2. The job (work.c) makes plain text of the content, writes its words, cuts it into chunks, and
 *      has them embedded and stored (collection_put). The row says that its vectors are kept; the
 *      next try does not ask again.
 *   3. It is paid, if it costs something; the engine completes the row.
 *   A post that is emptied is queued, too, and one that is deleted before all others: the job
 *   removes points and words, and then the row if it is deleted. To users that is gone at once.
 *   4. A change of title or hide alone embeds nothing. The row says that points and words are
 *      behind (tags_due); they are brought up to date at once, or by posts_tags_role (tags.c).
 *   5. When vectors are to be of another space, posts_space_role has the posts embedded again, at
 *      the lowest priority (space.c). So it has posts whose points are not what their rows say.
 *
 * Always true, whatever dies when:
 *   - the vectors of a completed row are those of its last content, once its job and all earlier
 *     ones have ended. A job that was overtaken (its node stood still, another one has worked on a
 *     later position) finds that after it has stored vectors, and queues the post once more;
 *   - points of a post that is gone are removed by the job that finds it gone;
 *   - a post is paid at most once for each time it was queued, and only after its vectors were
 *     kept;
 *   - tags of points follow the row: one node at a time writes those of a post, for as long as
 *     tagging says, and tags_due is reset only for the version that was written. Until then a
 *     search finds a post by its old title, and looks at the row's hide itself.
 * When the embedding service is away, or money or permission is lacking, posts wait, say so, and
 * lose no try. Without such a service they stay pending, are found by their words, and go on when
 * there is one. */
#ifndef APP_EMBED_POST_POST_H
#define APP_EMBED_POST_POST_H

#include <stdbool.h>

#include "app/embed/error.h"
#include "app/embed/extent.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/jobs/jobs.h"
#include "engine/store/role.h"

struct admin_deed;
struct node;
struct posts;
struct sql_pool;
struct task;

#define POST_QUEUE             "embedding"
#define POST_TITLE_CHARS_MAX   500
#define POST_CONTENT_CHARS_MAX 400000 /* of the setting: their chunks fit a collection_put */
#define POST_PAGE_MAX          100
#define POST_CHUNK_TOKENS      500 /* of the plain text: a part of the points */
#define POST_OVERLAP_TOKENS    100
#define POST_BATCH_IDS_MAX     1000
#define POST_TAGS_EACH_MS      500
#define POST_SPACE_EACH_MS     2000

enum post_priority { POST_DROP = 0, POST_BY_HAND = 1, POST_WRITTEN = 5, POST_BATCH = 10 };

#define POST_STATUSES "pending|processing|completed|failed"

/* Borrows n, whose jobs, ledger, runs, collections and config it uses; adds the queue. */
struct posts *posts_new(struct node *n);
void posts_free(struct posts *p);

/* --- for searches --- */

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
/* How many can be found, of those that are open and of those that are hidden. */
MUST_CHECK int post_extent(struct task *t, struct sql_pool *sql, struct embed_extent *open,
                           struct embed_extent *hidden);
/* Of a user's hidden ones. */
MUST_CHECK int post_extent_hidden(struct task *t, struct sql_pool *sql, int64_t uid,
                                  struct embed_extent *out);

/* --- posts, as users and admins see them --- */

/* Who asks. */
struct post_caller {
    int64_t uid; /* 0: an admin, */
    bool admin;  /* who sees all of them */
};

struct post {
    int64_t number, id, uid;
    struct str title, content; /* content.p == NULL in lists */
    bool hide;
    int64_t version;
    struct str status;           /* of POST_STATUSES */
    struct str error, reason;    /* p == NULL: none; reason: of EMBED_REASONS */
    int64_t chunks, chunks_done; /* of the embedding */
    int64_t created_ms, changed_ms;
    bool mine;
};

int post_none(struct task *t); /* ERR_NOT_FOUND, with its text */
MUST_CHECK int post_get(struct task *t, struct posts *p, struct post_caller who, int64_t id,
                        struct post *out);
/* Those of these ids that the caller may see, in any order, without content; list has room for
 * count. */
MUST_CHECK int post_some(struct task *t, struct posts *p, struct post_caller who,
                         const int64_t *ids, size_t count, struct post *list, size_t *found);
/* How many there are, but for deleted ones. */
struct post_counts {
    int64_t pending, processing, completed, failed;
};
MUST_CHECK int post_count(struct task *t, struct sql_pool *sql, struct post_counts *out);
struct post_page {
    struct post *list; /* the newest first */
    size_t count;
    int64_t next; /* number to go on below; 0: nothing more */
};
/* all: not only the caller's own, but all that are visible. */
MUST_CHECK int post_list(struct task *t, struct posts *p, struct post_caller who, bool all,
                         int64_t below, int64_t limit, struct post_page *out);

/* --- writing: what owners do. *out as post_get has it --- */

struct post_wish {
    int64_t uid, id;
    struct str title, content; /* p == NULL: as it is; of a new one: empty */
    bool has_hide, hide;
    int64_t version;       /* that it was made from; 0: any */
    struct str request_id; /* of a new one, ledger_request_id_fine; p == NULL: none */
};
/* ERR_CONFLICT: the user has too many, or the version is another by now. ERR_BUSY: the queue is
 * full. ERR_FUNDS, ERR_FORBIDDEN, where posts cost something: as promise_make.
 * A repeat of a request_id changes nothing, and has the post as it is now; ERR_CONFLICT: the
 * request_id has made another one. It counts for as long as its post is not deleted. */
MUST_CHECK int post_create(struct task *t, struct posts *p, const struct post_wish *w,
                           struct post *out);
MUST_CHECK int post_change(struct task *t, struct posts *p, const struct post_wish *w,
                           struct post *out);
MUST_CHECK int post_delete(struct task *t, struct posts *p, const struct post_wish *w);

/* --- queueing --- */

/* By its owner, or an admin: by.action, then, is noted. ERR_CONFLICT: it is empty. */
MUST_CHECK int post_embed(struct task *t, struct posts *p, struct post_caller who, int64_t id,
                          const struct admin_deed *by);
enum post_which { POST_IDS, POST_ALL, POST_FAILED };
struct post_batch {
    enum post_which which;
    const int64_t *ids;
    size_t count;
};
/* Those of them that are neither queued nor in work, nor empty. *refused: as many as did not fit
 * into the queue. */
MUST_CHECK int post_embed_batch(struct task *t, struct posts *p, const struct post_batch *b,
                                const struct admin_deed *by, int64_t *queued, int64_t *refused);

/* --- background roles; arg: a struct posts. With a lock --- */

role_fn posts_tags_role;  /* every POST_TAGS_EACH_MS */
role_fn posts_space_role; /* every POST_SPACE_EACH_MS */
#endif
