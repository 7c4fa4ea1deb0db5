/* Posts whose vectors are of a former model, or of none that there is, are embedded again, at the
 * lowest priority and for nothing, OPEN_MAX at a time. When no post has vectors of another space
 * than the one that is built, that becomes the active one (collection.h). Posts that wait for
 * something for longer than PATIENCE do not hold it up: theirs follow. */
#include "app/embed/post/posts_private.h"

#define OPEN_MAX    500
#define PATIENCE    "1 HOUR"
#define TURNS_KEPT  1000
#define TURNS_PAGE  5000
#define SWEEP_MS    60000
#define OTHER_SPACE " AND space > 0 AND space <> ?"

static int count_open(struct task *t, struct posts *p, int64_t *count)
{
    struct sql_rows r;
    int err =
        sql_call(t, p->node->sql, &r,
                 "SELECT COUNT(*) FROM tb_post WHERE rag_status IN " POST_OPEN " AND priority >= ?",
                 sql_int(POST_BATCH));
    *count = err ? 0 : r.cells[0].i;
    return err;
}

/* *ended: some that are not queued. *left: these, or some on their way. */
static int look_left(struct task *t, struct posts *p, int64_t space, bool *ended, bool *left)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT COALESCE(MAX(rag_status = 'completed'), 0),"
                       " COALESCE(MAX(rag_status = 'completed'"
                       " OR queued_at > UTC_TIMESTAMP(3) - INTERVAL " PATIENCE "), 0)"
                       " FROM tb_post WHERE deleted IS NULL AND rag_status <> 'failed'"
                       " AND content <> ''" OTHER_SPACE,
                       sql_int(space));
    *ended = !err && r.cells[0].i;
    *left = err || r.cells[1].i;
    return err;
}

static int follow(struct task *t, struct posts *p)
{
    bool building = false, ended = false, left = true;
    int64_t space = p->space(p->node->collections, COLLECTION_POSTS, &building), open = 0;
    struct sql_value now = sql_int(space);
    struct post_again x = {.condition = OTHER_SPACE, .values = &now, .value_count = 1};
    if (space == 0 || !p->service)
        return 0;
    int err = look_left(t, p, space, &ended, &left);
    if (!err && ended)
        err = count_open(t, p, &open);
    x.limit = open < OPEN_MAX ? OPEN_MAX - open : 0;
    if (!err && ended)
        err = post_again(t, p, &x);
    if (!err && building && !left)
        err = p->complete(t, p->node->collections, COLLECTION_POSTS, space);
    return err;
}

/* The last ones stay: a server that starts anew counts on from them. */
static int sweep_turns(struct task *t, struct posts *p)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r, "SELECT COALESCE(MAX(turn), 0) FROM post_turn");
    if (err)
        return err;
    err = sql_call(t, p->node->sql, &r, "DELETE FROM post_turn WHERE turn <= ? LIMIT ?",
                   sql_int(r.cells[0].i - TURNS_KEPT), sql_int(TURNS_PAGE));
    return err ? err : r.affected == TURNS_PAGE ? ROLE_MORE : 0;
}

int posts_space_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct posts *p = arg;
    int64_t now_ms = loop_now_ms(task_loop(t));
    (void)turn;
    int err = follow(t, p);
    if (err || now_ms - p->swept_ms < SWEEP_MS)
        return err;
    err = sweep_turns(t, p);
    if (!err)
        p->swept_ms = now_ms;
    return err;
}
