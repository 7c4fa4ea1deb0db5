/* A change of title or hide reaches points and words.
 *
 *   1. The write sets tags_due in its transaction.
 *   2. A node claims the post (tagging: until when), so that of two changes the earlier one cannot
 *      be told last; a node that cannot leaves it to the one that can.
 *   3. It reads the row, tells the store of points, and then writes the words and resets tags_due,
 *      if the version is still the one that it has read. If not, it does so once more.
 * A node that dies in between leaves tags_due: posts_tags_role does it when the claim is over. */
#include "app/embed/post/posts_private.h"

#include <stdlib.h>

#include "base/log.h"
#include "corpus/prose/markdown.h"

#define CLAIM_S    "10"
#define ROUNDS_MAX 5 /* of one that is changed all the time */
#define PAGE_MAX   200
#define TAG_MS     8000 /* less than a claim */

struct tagging {
    struct posts *posts;
    int64_t id, version;
    struct str title, content;
    bool hide;
    bool worded; /* it has words */
    bool done;
};

static int claim(struct task *t, struct tagging *x, bool *mine)
{
    struct sql_rows r;
    int err = sql_call(t, x->posts->node->sql, &r,
                       "UPDATE tb_post SET tagging = UTC_TIMESTAMP(3) + INTERVAL " CLAIM_S " SECOND"
                       " WHERE id = ? AND tags_due = 1"
                       " AND (tagging IS NULL OR tagging < UTC_TIMESTAMP(3))",
                       sql_int(x->id));
    *mine = !err && r.affected;
    return err;
}

static int read_row(struct task *t, struct tagging *x)
{
    struct sql_rows r;
    int err = sql_call(t, x->posts->node->sql, &r,
                       "SELECT version, title, content, hide, worded FROM tb_post WHERE id = ?"
                       " AND deleted IS NULL",
                       sql_int(x->id));
    x->done = !err && r.count == 0;
    if (err || x->done)
        return err;
    x->version = r.cells[0].i;
    x->title = r.cells[1].s;
    x->content = r.cells[2].s;
    x->hide = r.cells[3].i != 0;
    x->worded = r.cells[4].i != 0;
    return 0;
}

static int finish_body(struct task *t, struct sql *c, void *arg)
{
    struct tagging *x = arg;
    struct sql_rows r;
    struct words_text text = {
        .owner = (uint64_t)x->id, .tags = post_tags(x->hide), .title = x->title};
    int err =
        sql_on(t, c, &r, "SELECT version FROM tb_post WHERE id = ? FOR UPDATE", sql_int(x->id));
    if (err || r.count == 0 || r.cells[0].i != x->version)
        return err;
    x->done = true;
    if (x->worded) {
        text.text = markdown_plain(task_arena(t), x->content);
        err = x->posts->words_put(t, c, COLLECTION_POSTS, &text, 1);
    }
    if (err)
        return err;
    return sql_on(t, c, NULL, "UPDATE tb_post SET tags_due = 0, tagging = NULL WHERE id = ?",
                  sql_int(x->id));
}

static int tag_once(struct task *t, struct tagging *x)
{
    struct posts *p = x->posts;
    int err = read_row(t, x);
    if (err || x->done)
        return err;
    err = p->tag(t, p->node->collections, COLLECTION_POSTS, (uint64_t)x->id, post_tags(x->hide),
                 x->title);
    if (!err && p->dies)
        err = p->dies(t, "tag");
    return err ? err : sql_tx(t, p->node->sql, finish_body, x);
}

int post_tag(struct task *t, struct posts *p, int64_t id)
{
    struct tagging x = {.posts = p, .id = id};
    bool mine = false;
    int64_t old = task_deadline(t, TAG_MS);
    int err = claim(t, &x, &mine);
    for (int i = 0; !err && mine && !x.done && i < ROUNDS_MAX; i++) {
        struct task_scope scope = task_scope(t);
        err = tag_once(t, &x);
        task_scope_end(t, scope);
    }
    task_deadline_restore(t, old);
    if (!err && x.done)
        metric_add(p->retagged, 1);
    return err;
}

/* --- in the background --- */

struct soon {
    struct posts *posts;
    int64_t id;
};

static void tag_task(struct task *t, void *arg)
{
    struct soon *s = arg;
    if (post_tag(t, s->posts, s->id))
        log_debug("posts", "vectors of post %lld have a former title or visibility for now: %s",
                  (long long)s->id, task_error(t));
    s->posts->tag_tasks--;
    free(s);
}

void post_tag_soon(struct posts *p, int64_t id)
{
    if (p->tag_tasks >= POST_TAG_TASKS_MAX)
        return;
    struct soon *s = check_memory(malloc(sizeof *s));
    *s = (struct soon){p, id};
    p->tag_tasks++;
    if (task_go(p->node->group, "post-tag", tag_task, s)) {
        p->tag_tasks--;
        free(s);
    }
}

int posts_tags_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct posts *p = arg;
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT id FROM tb_post WHERE tags_due = 1"
                       " AND (tagging IS NULL OR tagging < UTC_TIMESTAMP(3)) LIMIT ?",
                       sql_int(PAGE_MAX));
    if (err)
        return err;
    for (size_t i = 0; !err && i < r.count; i++) {
        err = post_tag(t, p, r.cells[i].i);
        if (!err)
            err = role_keep(t, turn);
    }
    return err ? err : r.count == PAGE_MAX ? ROLE_MORE : 0;
}
