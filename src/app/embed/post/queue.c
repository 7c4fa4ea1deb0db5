/* Posts get a place in the queue: by a write, by hand, many at once. */
#include <inttypes.h>
#include <stdio.h>

#include "app/embed/post/posts_private.h"
#include "engine/jobs/pay.h"
#include "engine/people/admin_log.h"
#include "engine/runs/promise.h"
#include "engine/setup/config.h"

#define AGAIN_PAGE 500 /* posts of one transaction */
#define ARGS_MAX   8
/* It has ended, and has a text: one that was completed without vectors is blank. */
#define IDLE                                                                                       \
    " AND deleted IS NULL AND content <> ''"                                                       \
    " AND (rag_status = 'failed' OR (rag_status = 'completed' AND space > 0))"

/* --- turns --- */

int post_turn_take(struct task *t, struct sql *c, struct post_turn *x)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "INSERT INTO post_turn (post) VALUES (?)", sql_int(x->id));
    if (err)
        return err;
    x->position = (int64_t)r.insert_id;
    x->paid_as[0] = 0;
    if (x->cents)
        snprintf(x->paid_as, sizeof x->paid_as, "%" PRId64 ".%" PRId64, x->id, x->position);
    return 0;
}

int post_turn_reserve(struct task *t, struct sql *c, const struct post_turn *x)
{
    struct str job = str_int(task_arena(t), x->id);
    return x->cents ? job_reserve(t, c, POST_QUEUE, job, x->uid, x->cents)
                    : job_free(t, c, POST_QUEUE, job);
}

int post_turn_push(struct task *t, struct posts *p, const struct post_turn *list, size_t count)
{
    struct job_push *jobs = ARENA_ARRAY(task_arena(t), struct job_push, count + 1);
    for (size_t i = 0; i < count; i++)
        jobs[i] = (struct job_push){.id = str_int(task_arena(t), list[i].id),
                                    .uid = list[i].uid,
                                    .version = list[i].position,
                                    .priority = list[i].priority,
                                    .order = list[i].position};
    int err = count ? jobs_push(t, p->node->jobs, POST_QUEUE, jobs, count, NULL) : 0;
    return err == ERR_CANCELED ? err : 0; /* jobs_refill_role finds the rows */
}

int post_queue_room(struct task *t, struct posts *p, int64_t *room)
{
    int64_t length = 0, most = p->node->config->embedding_queue_max;
    *room = most;
    int err = jobs_length(t, p->node->jobs, POST_QUEUE, &length);
    if (err)
        return err == ERR_CANCELED ? err : 0;
    *room = length < most ? most - length : 0;
    if (*room == 0)
        return task_fail(t, ERR_BUSY, "%" PRId64 " posts wait to be embedded: try again later",
                         length);
    return 0;
}

int64_t post_price_cents(const struct posts *p)
{
    return p->node->config->embedding_post_price * 100;
}

int post_promise(struct task *t, struct posts *p, const struct promise *x)
{
    bool repeated;
    struct promise promise = *x;
    promise.what = "post";
    return x->cents ? promise_make(t, p->node->runs, &promise, &repeated)
                    : sql_tx(t, p->node->sql, x->write, x->arg);
}

/* --- one, by hand --- */

struct embedding_wish {
    struct posts *posts;
    struct post_caller who;
    const struct admin_deed *by;
    int64_t price; /* that was promised; 0: nothing was, or it costs nothing */
    struct post_turn turn;
    bool idle; /* it is in work already */
    bool dear; /* it costs something, and that was not promised */
};

static int note(struct task *t, struct sql *c, const struct admin_deed *by, int64_t uid,
                struct str target, int64_t posts)
{
    if (!by)
        return 0;
    struct admin_deed d = *by;
    d.user_uid = uid;
    d.target = target;
    d.after = str_printf(task_arena(t), "{\"posts\":%" PRId64 "}", posts);
    return admin_audit_add(t, c, &d);
}

/* The work that is promised already keeps its price, and the id of its payment. */
static int queue_open(struct task *t, struct sql *c, const struct post_turn *x)
{
    return sql_on(t, c, NULL,
                  "UPDATE tb_post SET position = ?, priority = LEAST(priority, ?),"
                  " rag_status = 'pending', rag_error = NULL, reason = NULL,"
                  " queued_at = UTC_TIMESTAMP(3) WHERE id = ?",
                  sql_int(x->position), sql_int(x->priority), sql_int(x->id));
}

static int queue_ended(struct task *t, struct sql *c, const struct post_turn *x)
{
    int err = sql_on(t, c, NULL,
                     "UPDATE tb_post SET position = ?, priority = ?, rag_status = 'pending',"
                     " rag_error = NULL, reason = NULL, waits = NULL, waits_code = NULL,"
                     " cents = ?, paid_as = ?, chunks_done = 0, queued_at = UTC_TIMESTAMP(3)"
                     " WHERE id = ?",
                     sql_int(x->position), sql_int(x->priority), sql_int(x->cents),
                     sql_text(*x->paid_as ? str_of(x->paid_as) : STR_NULL), sql_int(x->id));
    return err ? err : post_turn_reserve(t, c, x);
}

static bool is_open(struct str status)
{
    return str_eq(status, STR("pending")) || str_eq(status, STR("processing"));
}

static int embed_body(struct task *t, struct sql *c, void *arg)
{
    struct embedding_wish *w = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT uid, rag_status, content, waits_code FROM tb_post WHERE id = ?"
                     " AND deleted IS NULL AND (uid = ? OR ?) FOR UPDATE",
                     sql_int(w->turn.id), sql_int(w->who.uid), sql_int(w->who.admin));
    if (!err && r.count == 0)
        err = post_none(t);
    if (err)
        return err;
    const struct sql_value *cell = r.cells;
    bool open = is_open(cell[1].s);
    if (post_blank(cell[2].s))
        return task_fail(t, ERR_CONFLICT, "the post is empty: there is nothing to embed");
    w->idle = str_eq(cell[1].s, STR("processing")) && !cell[3].s.p;
    w->dear = !open && !w->who.admin && post_price_cents(w->posts) && !w->price;
    w->turn.uid = cell[0].i;
    w->turn.cents = open || w->who.admin ? 0 : w->price;
    if (w->dear)
        return task_fail(t, ERR_FUNDS, "it costs something");
    if (!w->idle)
        err = post_turn_take(t, c, &w->turn);
    if (!err && !w->idle)
        err = open ? queue_open(t, c, &w->turn) : queue_ended(t, c, &w->turn);
    if (!err)
        err = note(t, c, w->by, w->turn.uid, str_int(task_arena(t), w->turn.id), 1);
    return err;
}

int post_embed(struct task *t, struct posts *p, struct post_caller who, int64_t id,
               const struct admin_deed *by)
{
    struct embedding_wish w = {
        .posts = p, .who = who, .by = by, .turn = {.id = id, .priority = POST_BY_HAND}};
    struct promise promise = {.uid = who.uid, .write = embed_body, .arg = &w};
    int64_t room;
    int err = post_queue_room(t, p, &room);
    if (!err)
        err = post_promise(t, p, &promise);
    if (err && w.dear) {
        w.price = promise.cents = post_price_cents(p);
        err = post_promise(t, p, &promise);
    }
    return err || w.idle ? err : post_turn_push(t, p, &w.turn, 1);
}

/* --- many --- */

struct page {
    struct post_again *again;
    size_t limit;
    struct post_turn *turns;
    size_t count;
    int64_t last;
};

/* The rows of the page are locked: nothing else gives them a place meanwhile. */
static int find(struct task *t, struct sql *c, const struct page *g, struct sql_rows *out)
{
    const struct post_again *x = g->again;
    struct sql_value v[ARGS_MAX + 2];
    size_t n = 0;
    check(x->value_count <= ARGS_MAX);
    v[n++] = sql_int(x->after);
    for (size_t i = 0; i < x->value_count; i++)
        v[n++] = x->values[i];
    v[n++] = sql_int((int64_t)g->limit);
    return sql_on_argv(t, c,
                       arena_printf(task_arena(t),
                                    "SELECT number, id, uid FROM tb_post WHERE number > ?" IDLE
                                    "%s ORDER BY number LIMIT ? FOR UPDATE",
                                    x->condition),
                       n, v, out);
}

static int place(struct task *t, struct sql *c, struct page *g, const struct sql_value *ids)
{
    size_t n = sql_padded(g->count);
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, n + 2);
    struct sql_rows r;
    v[0] = sql_int(POST_BATCH);
    memcpy(v + 2, ids, n * sizeof *ids);
    int err = sql_on_argv(t, c,
                          sql_marks(task_arena(t),
                                    "INSERT INTO post_turn (post) SELECT id FROM tb_post"
                                    " WHERE id IN",
                                    g->count, " ORDER BY number"),
                          n, ids, &r);
    if (err)
        return err;
    v[1] = sql_int((int64_t)r.insert_id);
    return sql_on_argv(t, c,
                       sql_marks(task_arena(t),
                                 "UPDATE tb_post p JOIN post_turn q ON q.post = p.id"
                                 " SET p.position = q.turn, p.priority = ?,"
                                 " p.rag_status = 'pending', p.rag_error = NULL, p.reason = NULL,"
                                 " p.waits = NULL, p.waits_code = NULL, p.cents = 0,"
                                 " p.paid_as = NULL, p.chunks_done = 0,"
                                 " p.queued_at = UTC_TIMESTAMP(3)"
                                 " WHERE q.turn >= ? AND p.id IN",
                                 g->count, ""),
                       n + 2, v, NULL);
}

static int read_places(struct task *t, struct sql *c, struct page *g, const struct sql_value *ids)
{
    struct sql_rows r;
    int err = sql_on_argv(
        t, c,
        sql_marks(task_arena(t), "SELECT id, uid, position FROM tb_post WHERE id IN", g->count, ""),
        sql_padded(g->count), ids, &r);
    if (err)
        return err;
    check(r.count == g->count);
    g->turns = ARENA_ARRAY(task_arena(t), struct post_turn, g->count);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        g->turns[i] = (struct post_turn){
            .id = cell[0].i, .uid = cell[1].i, .position = cell[2].i, .priority = POST_BATCH};
    }
    return 0;
}

static int page_body(struct task *t, struct sql *c, void *arg)
{
    struct page *g = arg;
    struct sql_rows r;
    int err = find(t, c, g, &r);
    if (err)
        return err;
    g->count = r.count;
    if (r.count == 0)
        return 0;
    g->last = sql_row(&r, r.count - 1)[0].i;
    size_t n = sql_padded(r.count);
    struct sql_value *ids = ARENA_ARRAY(task_arena(t), struct sql_value, n);
    for (size_t i = 0; i < n; i++)
        ids[i] = sql_row(&r, i < r.count ? i : r.count - 1)[1];
    err = place(t, c, g, ids);
    if (!err)
        err = read_places(t, c, g, ids);
    return err ? err : note(t, c, g->again->by, 0, STR_NULL, (int64_t)g->count);
}

static int again_page(struct task *t, struct posts *p, struct post_again *x)
{
    struct page g = {.again = x, .limit = x->limit < AGAIN_PAGE ? (size_t)x->limit : AGAIN_PAGE};
    int err = sql_tx(t, p->node->sql, page_body, &g);
    if (err)
        return err;
    x->after = g.count < g.limit ? -1 : g.last;
    x->limit -= (int64_t)g.count;
    x->queued += (int64_t)g.count;
    return post_turn_push(t, p, g.turns, g.count);
}

int post_again(struct task *t, struct posts *p, struct post_again *x)
{
    int err = 0;
    while (!err && x->after >= 0 && x->limit > 0) {
        struct task_scope scope = task_scope(t);
        err = again_page(t, p, x);
        task_scope_end(t, scope);
    }
    return err;
}

/* How many there are that a batch would have queued, and did not. */
static int count_left(struct task *t, struct posts *p, const struct post_again *x, int64_t *left)
{
    struct sql_value v[ARGS_MAX + 1];
    struct sql_rows r;
    v[0] = sql_int(x->after);
    for (size_t i = 0; i < x->value_count; i++)
        v[i + 1] = x->values[i];
    int err = sql_argv(t, p->node->sql,
                       arena_printf(task_arena(t),
                                    "SELECT COUNT(*) FROM tb_post WHERE number > ?" IDLE "%s",
                                    x->condition),
                       x->value_count + 1, v, &r);
    *left = err ? 0 : r.cells[0].i;
    return err;
}

/* Some of the ids at a time; or all of them, when there are none. */
static int batch_some(struct task *t, struct posts *p, const struct post_batch *b, size_t first,
                      struct post_again *x, int64_t *refused)
{
    struct sql_value v[ARGS_MAX];
    int64_t left = 0;
    x->after = 0;
    x->values = v;
    if (b->which == POST_IDS) {
        x->value_count = ARGS_MAX;
        for (size_t i = 0; i < ARGS_MAX; i++)
            v[i] = sql_int(b->ids[first + i < b->count ? first + i : b->count - 1]);
    }
    int err = post_again(t, p, x);
    if (!err && x->after >= 0)
        err = count_left(t, p, x, &left);
    *refused += left;
    return err;
}

int post_embed_batch(struct task *t, struct posts *p, const struct post_batch *b,
                     const struct admin_deed *by, int64_t *queued, int64_t *refused)
{
    struct post_again x = {.condition = b->which == POST_IDS      ? " AND id IN (?,?,?,?,?,?,?,?)"
                                        : b->which == POST_FAILED ? " AND rag_status = 'failed'"
                                                                  : "",
                           .by = by};
    *refused = 0;
    int err = post_queue_room(t, p, &x.limit);
    if (!err && b->which != POST_IDS)
        err = batch_some(t, p, b, 0, &x, refused);
    for (size_t i = 0; !err && b->which == POST_IDS && i < b->count; i += ARGS_MAX)
        err = batch_some(t, p, b, i, &x, refused);
    *queued = x.queued;
    return err;
}
