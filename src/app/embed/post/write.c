/* Posts are written, changed and deleted: a transaction, then the push. */
#include <inttypes.h>

#include "app/embed/post/posts_private.h"
#include "base/sha256.h"
#include "engine/runs/promise.h"
#include "engine/setup/config.h"

#define ID_BITS      52 /* a number of JSON in any language */
#define CREATE_TRIES 5
#define TEXT(s)      ((s).p ? (s) : STR(""))

struct writing {
    struct posts *posts;
    const struct post_wish *wish;
    int64_t price; /* that was promised; 0: nothing was, or it costs nothing */
    bool dear;     /* it costs something, and that was not promised */
    struct post_turn turn;
    bool queued, tags; /* what is left to do after the commit */
    struct post was;   /* of a change */
    bool open;         /* it was queued, or in work */
    struct post now;
    char asked[SHA256_HEX_BYTES]; /* digest of the wish: tells a repeat from another one */
    int64_t repeated;             /* id of the post that the same request has made; 0: none */
};

/* The caller does it again, with a promise. */
static int costs(struct task *t, struct writing *w)
{
    w->dear = post_price_cents(w->posts) && !w->price;
    return w->dear ? task_fail(t, ERR_FUNDS, "it costs something") : 0;
}

static int write_row(struct task *t, struct writing *w,
                     int (*body)(struct task *t, struct sql *c, void *arg),
                     int (*repeats)(struct task *t, struct sql *c, void *arg, bool *repeated))
{
    struct posts *p = w->posts;
    struct promise promise = {.uid = w->wish->uid, .repeats = repeats, .write = body, .arg = w};
    int err = post_promise(t, p, &promise);
    if (err && w->dear) {
        w->price = promise.cents = post_price_cents(p);
        err = post_promise(t, p, &promise);
    }
    if (!err && w->queued)
        err = post_turn_push(t, p, &w->turn, 1);
    if (!err && w->tags)
        post_tag_soon(p, w->turn.id);
    return err;
}

static int refuse_length(struct task *t, const struct posts *p, struct str content)
{
    int64_t most = p->node->config->embedding_content_chars, count = 0;
    for (size_t i = 0; i < content.n; i++)
        count += ((unsigned char)content.p[i] & 0xc0) != 0x80;
    return count <= most ? 0
                         : task_fail(t, ERR_INVALID,
                                     "must have at most %" PRId64 " characters, and has %" PRId64,
                                     most, count);
}

/* --- repeats --- */

static void digest(const struct post_wish *x, char out[SHA256_HEX_BYTES])
{
    struct buf b;
    struct json_writer j;
    buf_init(&b);
    jw_init(&j, &b);
    jw_array(&j);
    jw_str(&j, TEXT(x->title));
    jw_str(&j, TEXT(x->content));
    jw_bool(&j, x->hide);
    jw_end_array(&j);
    sha256_hex(buf_str(&b), out);
    buf_release(&b);
}

#define REPEATED "SELECT id, asked FROM tb_post WHERE uid = ? AND request_id = ?"

/* c NULL: on any connection. */
static int find_repeated(struct task *t, struct writing *w, struct sql *c)
{
    const struct post_wish *x = w->wish;
    struct sql_rows r;
    struct sql_value uid = sql_int(x->uid), request = sql_text(x->request_id);
    w->repeated = 0;
    if (!x->request_id.p)
        return 0;
    int err = c ? sql_on(t, c, &r, REPEATED, uid, request)
                : sql_call(t, w->posts->node->sql, &r, REPEATED, uid, request);
    if (err || r.count == 0)
        return err;
    if (!str_eq(r.cells[1].s, str_of(w->asked)))
        return task_fail(t, ERR_CONFLICT,
                         "request_id %.*s has made another post: title, content or hide differ",
                         STR_ARG(x->request_id));
    w->repeated = r.cells[0].i;
    return 0;
}

static int repeats(struct task *t, struct sql *c, void *arg, bool *repeated)
{
    struct writing *w = arg;
    w->queued = false;
    int err = find_repeated(t, w, c);
    *repeated = !err && w->repeated;
    return err;
}

/* --- new ones --- */

static int check_count(struct task *t, struct sql *c, const struct writing *w)
{
    struct sql_rows r;
    int64_t most = w->posts->node->config->embedding_posts_max;
    int err = sql_on(t, c, &r, "SELECT COUNT(*) FROM tb_post WHERE uid = ? AND deleted IS NULL",
                     sql_int(w->wish->uid));
    if (!err && r.cells[0].i >= most)
        err = task_fail(t, ERR_CONFLICT, "you have %" PRId64 " posts: delete some of them first",
                        most);
    return err;
}

static int create_body(struct task *t, struct sql *c, void *arg)
{
    struct writing *w = arg;
    const struct post_wish *x = w->wish;
    struct post_turn *turn = &w->turn;
    struct sql_rows r;
    bool repeated;
    int err = repeats(t, c, w, &repeated);
    if (err || repeated)
        return err;
    w->queued = !post_blank(TEXT(x->content));
    err = check_count(t, c, w);
    if (!err && w->queued)
        err = costs(t, w);
    turn->cents = w->price;
    if (!err && w->queued)
        err = post_turn_take(t, c, turn);
    if (!err)
        err = sql_on(t, c, &r,
                     "INSERT INTO tb_post (id, job, uid, title, content, hide, rag_status,"
                     " position, priority, cents, paid_as, request_id, asked, queued_at,"
                     " created_at, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                     " UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
                     sql_int(turn->id), sql_text(str_int(task_arena(t), turn->id)), sql_int(x->uid),
                     sql_text(TEXT(x->title)), sql_text(TEXT(x->content)), sql_int(x->hide),
                     sql_text(w->queued ? STR("pending") : STR("completed")),
                     sql_int(turn->position), sql_int(turn->priority), sql_int(turn->cents),
                     sql_text(*turn->paid_as ? str_of(turn->paid_as) : STR_NULL),
                     sql_text(x->request_id),
                     sql_text(x->request_id.p ? str_of(w->asked) : STR_NULL));
    if (err)
        return err;
    w->now.number = (int64_t)r.insert_id;
    return turn->cents ? post_turn_reserve(t, c, turn) : 0;
}

static int64_t random_id(struct task *t)
{
    uint64_t bits = 0;
    while (bits == 0) {
        loop_secret(task_loop(t), &bits, sizeof bits);
        bits >>= 64 - ID_BITS;
    }
    return (int64_t)bits;
}

static int check_new(struct task *t, struct posts *p, const struct post_wish *x)
{
    int64_t room;
    int err = refuse_length(t, p, TEXT(x->content));
    return err || post_blank(TEXT(x->content)) ? err : post_queue_room(t, p, &room);
}

static int create(struct task *t, struct posts *p, const struct post_wish *x, struct post *out)
{
    int64_t now_ms = loop_wall_ms(task_loop(t));
    struct writing w = {.posts = p,
                        .wish = x,
                        .turn = {.id = random_id(t), .uid = x->uid, .priority = POST_WRITTEN}};
    if (x->request_id.p)
        digest(x, w.asked);
    int err = find_repeated(t, &w, NULL);
    if (!err && !w.repeated)
        err = check_new(t, p, x);
    if (!err && !w.repeated)
        err = write_row(t, &w, create_body, repeats);
    if (err)
        return err;
    if (w.repeated)
        return post_get(t, p, (struct post_caller){.uid = x->uid}, w.repeated, out);
    *out = (struct post){.number = w.now.number,
                         .id = w.turn.id,
                         .uid = x->uid,
                         .title = TEXT(x->title),
                         .content = TEXT(x->content),
                         .hide = x->hide,
                         .version = 1,
                         .status = w.queued ? STR("pending") : STR("completed"),
                         .created_ms = now_ms,
                         .changed_ms = now_ms,
                         .mine = true};
    return 0;
}

/* A row was there already: its id is another post's, or the same request came twice at once. */
int post_create(struct task *t, struct posts *p, const struct post_wish *x, struct post *out)
{
    for (int i = 0; i < CREATE_TRIES; i++) {
        int err = create(t, p, x, out);
        if (err != ERR_EXISTS)
            return err;
    }
    return task_fail(t, ERR_INTERNAL, "no id is free");
}

/* --- changes --- */

static int lock_row(struct task *t, struct sql *c, struct writing *w)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT number, title, content, hide, version, rag_status, position, cents"
                     " FROM tb_post WHERE id = ? AND uid = ? AND deleted IS NULL FOR UPDATE",
                     sql_int(w->wish->id), sql_int(w->wish->uid));
    if (err)
        return err;
    if (r.count == 0)
        return post_none(t);
    const struct sql_value *cell = r.cells;
    w->was = (struct post){.number = cell[0].i,
                           .title = cell[1].s,
                           .content = cell[2].s,
                           .hide = cell[3].i != 0,
                           .version = cell[4].i,
                           .status = cell[5].s};
    w->open = !str_eq(w->was.status, STR("completed")) && !str_eq(w->was.status, STR("failed"));
    w->turn.position = cell[6].i;
    w->turn.cents = w->open ? cell[7].i : 0;
    if (w->wish->version && w->wish->version != w->was.version)
        return task_fail(t, ERR_CONFLICT,
                         "the post was changed meanwhile: it is version %" PRId64 " by now",
                         w->was.version);
    return 0;
}

/* Title and hide; the job of a content that is not changed stays as it is. */
static int write_head(struct task *t, struct sql *c, struct writing *w, bool changed)
{
    w->tags = changed && w->turn.position > 0; /* else it has no points */
    return sql_on(t, c, NULL,
                  "UPDATE tb_post SET title = ?, hide = ?, version = ?,"
                  " tags_due = IF(?, 1, tags_due), changed_at = UTC_TIMESTAMP(3) WHERE id = ?",
                  sql_text(w->now.title), sql_int(w->now.hide), sql_int(w->now.version),
                  sql_int(w->tags), sql_int(w->turn.id));
}

/* A new content is queued, and one that is empty now, so that its points go; but not one that was
 * never queued. */
static int write_content(struct task *t, struct sql *c, struct writing *w)
{
    struct post_turn *turn = &w->turn;
    bool blank = post_blank(w->now.content), reserved = turn->cents > 0;
    int err = blank ? 0 : costs(t, w);
    w->queued = !blank || turn->position > 0;
    turn->priority = POST_WRITTEN;
    turn->cents = blank ? 0 : w->price;
    if (!err && w->queued)
        err = post_turn_take(t, c, turn);
    if (!err && (turn->cents || reserved))
        err = post_turn_reserve(t, c, turn);
    w->now.status = w->queued ? STR("pending") : STR("completed");
    if (err)
        return err;
    return sql_on(t, c, NULL,
                  "UPDATE tb_post SET content = ?, content_version = ?, rag_status = ?,"
                  " rag_error = NULL, reason = NULL, waits = NULL, waits_code = NULL, cents = ?,"
                  " paid_as = ?, chunks = 0, chunks_done = 0, position = ?,"
                  " priority = IF(? AND priority < ?, priority, ?),"
                  " queued_at = UTC_TIMESTAMP(3) WHERE id = ?",
                  sql_text(w->now.content), sql_int(w->now.version), sql_text(w->now.status),
                  sql_int(turn->cents), sql_text(*turn->paid_as ? str_of(turn->paid_as) : STR_NULL),
                  sql_int(turn->position), sql_int(w->open), sql_int(turn->priority),
                  sql_int(turn->priority), sql_int(turn->id));
}

static int change_row(struct task *t, struct sql *c, struct writing *w)
{
    const struct post_wish *x = w->wish;
    w->queued = w->tags = w->dear = false;
    int err = lock_row(t, c, w);
    if (err)
        return err;
    const struct post *was = &w->was;
    w->now = (struct post){.title = x->title.p ? x->title : was->title,
                           .content = x->content.p ? x->content : was->content,
                           .hide = x->has_hide ? x->hide : was->hide,
                           .version = was->version + 1};
    bool head = !str_eq(w->now.title, was->title) || w->now.hide != was->hide;
    bool content = !str_eq(w->now.content, was->content);
    if (!head && !content)
        return 0;
    err = write_head(t, c, w, head);
    return err || !content ? err : write_content(t, c, w);
}

/* The answer is read before the commit: after it no error may say that nothing was done. */
static int change_body(struct task *t, struct sql *c, void *arg)
{
    struct writing *w = arg;
    int err = change_row(t, c, w);
    return err ? err
               : post_get_on(t, c, (struct post_caller){.uid = w->wish->uid}, w->turn.id, &w->now);
}

int post_change(struct task *t, struct posts *p, const struct post_wish *x, struct post *out)
{
    struct writing w = {.posts = p, .wish = x, .turn = {.id = x->id, .uid = x->uid}};
    int64_t room;
    int err = refuse_length(t, p, TEXT(x->content));
    if (!err && x->content.p && !post_blank(x->content))
        err = post_queue_room(t, p, &room);
    if (!err)
        err = write_row(t, &w, change_body, NULL);
    if (!err)
        *out = w.now;
    return err;
}

/* --- deletion --- */

static int delete_body(struct task *t, struct sql *c, void *arg)
{
    struct writing *w = arg;
    struct post_turn *turn = &w->turn;
    int err = lock_row(t, c, w);
    bool reserved = turn->cents > 0;
    turn->cents = 0;
    turn->priority = POST_DROP;
    if (!err && reserved)
        err = post_turn_reserve(t, c, turn);
    if (!err)
        err = post_turn_take(t, c, turn);
    w->queued = true;
    if (err)
        return err;
    return sql_on(t, c, NULL,
                  "UPDATE tb_post SET deleted = UTC_TIMESTAMP(3), title = '', content = '',"
                  " version = version + 1, rag_status = 'pending', rag_error = NULL,"
                  " reason = NULL, waits = NULL, waits_code = NULL, cents = 0, paid_as = NULL,"
                  " tags_due = 0, request_id = NULL, asked = NULL, position = ?, priority = ?,"
                  " queued_at = UTC_TIMESTAMP(3) WHERE id = ?",
                  sql_int(turn->position), sql_int(turn->priority), sql_int(turn->id));
}

int post_delete(struct task *t, struct posts *p, const struct post_wish *x)
{
    struct writing w = {.posts = p, .wish = x, .turn = {.id = x->id, .uid = x->uid}};
    return write_row(t, &w, delete_body, NULL);
}
