/* A job, from its row to its end (post.h). Each step looks whether the row is still at the position
 * of the job; vectors are stored between two such looks, and what could go wrong there is told at
 * overtaken(). */
#include "app/embed/post/posts_private.h"
#include "corpus/prose/markdown.h"
#include "corpus/prose/split.h"
#include "engine/ai/ai.h"
#include "engine/jobs/pay.h"

struct working {
    struct posts *posts;
    const struct job *job;
    bool final; /* nothing is left to do, or a later position has its own job */
    struct post_turn turn;
    struct str title, content, plain;
    bool hide, deleted;
    int64_t version, content_version, worded, kept;
    struct str paid_as;
    struct str *chunks;
    size_t chunk_count;
    int64_t space;
};

static int after(struct task *t, const struct working *w, const char *step)
{
    return w->posts->dies ? w->posts->dies(t, step) : 0;
}

/* --- the row --- */

#define OF_THIS  " WHERE id = ? AND position = ? AND rag_status IN " POST_OPEN
#define ARGS_MAX 5

static int read_row(struct task *t, struct working *w)
{
    struct sql_rows r;
    int err = sql_call(t, w->posts->node->sql, &r,
                       "SELECT id, title, content, hide, deleted IS NOT NULL, version,"
                       " content_version, worded, kept, cents, paid_as, space FROM tb_post"
                       " WHERE job = ? AND position = ? AND rag_status IN " POST_OPEN,
                       sql_text(w->job->id), sql_int(w->job->version));
    if (err)
        return err;
    w->final = r.count == 0;
    if (w->final)
        return 0;
    const struct sql_value *v = r.cells;
    w->turn = (struct post_turn){
        .id = v[0].i, .uid = w->job->uid, .position = w->job->version, .cents = v[9].i};
    w->title = v[1].s;
    w->content = v[2].s;
    w->hide = v[3].i != 0;
    w->deleted = v[4].i != 0;
    w->version = v[5].i;
    w->content_version = v[6].i;
    w->worded = v[7].i;
    w->kept = v[8].i;
    w->paid_as = v[10].s;
    w->space = v[11].i;
    return 0;
}

/* Changes the row at the position that is worked on; statement ends with OF_THIS. w->final: there
 * is no such row any more. What was so before is not counted as affected. */
static int change(struct task *t, struct working *w, const char *statement,
                  const struct sql_value *args, size_t count)
{
    struct sql_pool *sql = w->posts->node->sql;
    struct sql_value v[ARGS_MAX + 2], id = sql_int(w->turn.id), at = sql_int(w->turn.position);
    struct sql_rows r;
    check(count <= ARGS_MAX);
    memcpy(v, args, count * sizeof *v);
    v[count] = id;
    v[count + 1] = at;
    int err = sql_argv(t, sql, statement, count + 2, v, &r);
    if (err || r.affected)
        return err;
    err = sql_call(t, sql, &r, "SELECT 1 FROM tb_post" OF_THIS, id, at);
    w->final = !err && r.count == 0;
    return err;
}
#define CHANGE(t, w, statement, ...)                                                               \
    change((t), (w), statement OF_THIS, (const struct sql_value[]){__VA_ARGS__},                   \
           sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value))

/* What it waits for is for the user to see: it loses no try. */
static int say_it_waits(struct task *t, struct working *w, int err, const char *reason)
{
    struct str why = str_dup(task_arena(t), str_of(task_error(t)));
    if (CHANGE(t, w, "UPDATE tb_post SET waits = LEFT(?, 1000), waits_code = ?", sql_text(why),
               sql_text(str_of(reason))) == ERR_CANCELED)
        return ERR_CANCELED;
    return task_fail(t, err, "%.*s", STR_ARG(why));
}

/* --- points that go --- */

static int leave_body(struct task *t, struct sql *c, void *arg)
{
    struct working *w = arg;
    struct sql_rows r;
    uint64_t owner = (uint64_t)w->turn.id;
    struct sql_value id = sql_int(w->turn.id), at = sql_int(w->turn.position);
    int err = w->deleted
                  ? sql_on(t, c, &r, "DELETE FROM tb_post WHERE id = ? AND position = ?", id, at)
                  : sql_on(t, c, &r,
                           "UPDATE tb_post SET rag_status = 'completed', rag_error = NULL,"
                           " reason = NULL, waits = NULL, waits_code = NULL, space = 0,"
                           " worded = 0, tags_due = 0" OF_THIS,
                           id, at);
    if (!err && r.affected)
        err = w->posts->words_drop(t, c, COLLECTION_POSTS, &owner, 1);
    return err ? err : job_free(t, c, POST_QUEUE, w->job->id);
}

/* A job whose post is to have no points never fails: it is tried until it is done. */
static int leave(struct task *t, struct working *w)
{
    struct posts *p = w->posts;
    uint64_t owner = (uint64_t)w->turn.id;
    int err = p->drop(t, p->node->collections, COLLECTION_POSTS, &owner, 1);
    if (!err)
        err = after(t, w, "drop");
    if (!err)
        err = sql_tx(t, p->node->sql, leave_body, w);
    if (!err) {
        metric_add(p->dropped, 1);
        return JOB_WRITTEN;
    }
    return err == ERR_CANCELED ? err : say_it_waits(t, w, ERR_UNAVAILABLE, EMBED_SERVICE_DOWN);
}

/* --- chunks, and words --- */

static void cut(struct task *t, struct working *w)
{
    struct arena *a = task_arena(t);
    struct split s;
    struct split_chunk c;
    struct split_limits limits = {.tokens_max = POST_CHUNK_TOKENS,
                                  .overlap_tokens = POST_OVERLAP_TOKENS};
    size_t n = 0;
    w->plain = markdown_plain(a, w->content);
    for (split_init(&s, w->plain, limits); split_next(&s, &c);)
        w->chunk_count++;
    w->chunks = ARENA_ARRAY(a, struct str, w->chunk_count + 1);
    for (split_init(&s, w->plain, limits); split_next(&s, &c);)
        w->chunks[n++] = str_from(w->plain.p + c.begin, c.end - c.begin);
}

static int begin(struct task *t, struct working *w)
{
    return CHANGE(t, w,
                  "UPDATE tb_post SET begun = position, rag_status = 'processing',"
                  " rag_error = NULL, reason = NULL, chunks = ?,"
                  " chunks_done = IF(kept = position, chunks, 0)",
                  sql_int((int64_t)w->chunk_count));
}

static int words_body(struct task *t, struct sql *c, void *arg)
{
    struct working *w = arg;
    struct sql_rows r;
    struct words_text text = {.owner = (uint64_t)w->turn.id,
                              .tags = post_tags(w->hide),
                              .title = w->title,
                              .text = w->plain};
    int err = sql_on(t, c, &r, "SELECT 1 FROM tb_post" OF_THIS " FOR UPDATE", sql_int(w->turn.id),
                     sql_int(w->turn.position));
    w->final = !err && r.count == 0;
    if (err || w->final)
        return err;
    err = w->posts->words_put(t, c, COLLECTION_POSTS, &text, 1);
    if (err)
        return err;
    return sql_on(t, c, NULL,
                  "UPDATE tb_post SET worded = ?, tags_due = IF(version = ?, tags_due, 1)"
                  " WHERE id = ?",
                  sql_int(w->content_version), sql_int(w->version), sql_int(w->turn.id));
}

/* Its words do not wait for the embedding service. */
static int write_words(struct task *t, struct working *w)
{
    if (w->worded == w->content_version)
        return 0;
    int err = sql_tx(t, w->posts->node->sql, words_body, w);
    return err ? err : after(t, w, "words");
}

/* --- vectors --- */

static int queue_again(struct task *t, struct sql *c, void *arg)
{
    struct working *w = arg;
    struct post_turn *x = &w->turn;
    int err = post_turn_take(t, c, x);
    if (err)
        return err;
    return sql_on(t, c, NULL,
                  "UPDATE tb_post SET position = ?, rag_status = 'pending',"
                  " queued_at = UTC_TIMESTAMP(3) WHERE id = ?",
                  sql_int(x->position), sql_int(x->id));
}

/* Another node has done the same job meanwhile: vectors are alike, title and hide may be not. */
static int same_again(struct task *t, struct working *w)
{
    int err = sql_call(t, w->posts->node->sql, NULL,
                       "UPDATE tb_post SET tags_due = 1 WHERE id = ? AND version <> ?",
                       sql_int(w->turn.id), sql_int(w->version));
    return err ? err : JOB_WRITTEN;
}

/* Vectors were stored, and the row is not at their position any more. Mostly its later job has not
 * begun: it waits for the end of this one, and then puts its own in place of these. But if this
 * node stood still for longer than its lease, that job may have stored its own before: then the
 * post is embedded once more, or its points removed once more. */
static int overtaken(struct task *t, struct working *w)
{
    struct posts *p = w->posts;
    uint64_t owner = (uint64_t)w->turn.id;
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT begun, position, priority, rag_status IN " POST_OPEN
                       " FROM tb_post WHERE id = ?",
                       sql_int(w->turn.id));
    if (err)
        return err;
    if (r.count == 0) {
        err = p->drop(t, p->node->collections, COLLECTION_POSTS, &owner, 1);
        return err ? err : JOB_WRITTEN;
    }
    bool open = r.cells[3].i != 0;
    if (r.cells[1].i == w->job->version)
        return same_again(t, w);
    if (r.cells[0].i <= w->job->version && open)
        return JOB_WRITTEN;
    metric_add(p->overtaken, 1);
    w->turn.priority = r.cells[2].i;
    w->turn.cents = 0;
    err = sql_tx(t, p->node->sql, queue_again, w);
    if (!err)
        err = post_turn_push(t, p, &w->turn, 1);
    return err ? err : JOB_WRITTEN;
}

static int put(struct task *t, struct working *w)
{
    struct posts *p = w->posts;
    struct collection_outcome outcome = {.err = 0};
    struct collection_document d = {.owner = (uint64_t)w->turn.id,
                                    .version = (uint64_t)w->content_version,
                                    .tags = post_tags(w->hide),
                                    .title = w->title,
                                    .chunks = w->chunks,
                                    .chunk_count = w->chunk_count};
    int err =
        p->put(t, p->node->collections, COLLECTION_POSTS, &d, 1, w->job->asks, &outcome, &w->space);
    if (!err && outcome.err)
        err = task_fail(t, outcome.err, "%s", outcome.why ? outcome.why : "it cannot be embedded");
    if (!err)
        err = after(t, w, "put");
    err = ai_job_error(t, w->posts->node->embedding_ai, err);
    if (err && err != ERR_CANCELED)
        job_reason(w->job, embed_reason(err));
    if (err == ERR_UNAVAILABLE)
        return say_it_waits(t, w, err, EMBED_SERVICE_DOWN);
    return err ? embed_job_error(t, err) : 0;
}

/* Title or hide that were changed meanwhile have been written over by what was read before. */
static int keep(struct task *t, struct working *w)
{
    int err = CHANGE(t, w,
                     "UPDATE tb_post SET kept = position, space = ?, chunks_done = chunks,"
                     " tags_due = IF(version = ?, tags_due, 1), waits = NULL, waits_code = NULL",
                     sql_int(w->space), sql_int(w->version));
    if (err || w->final)
        return err;
    metric_add(w->posts->chunks, (int64_t)w->chunk_count);
    return after(t, w, "keep");
}

static int embed(struct task *t, struct working *w)
{
    if (w->chunk_count > POINTS_CHANGE_MAX) {
        job_reason(w->job, EMBED_TOO_LONG);
        return task_fail(t, ERR_INVALID, "it has %zu chunks, and at most %d can be stored",
                         w->chunk_count, POINTS_CHANGE_MAX);
    }
    int err = job_ask_begin(t, w->job);
    if (!err)
        err = put(t, w);
    job_ask_end(w->job);
    if (!err)
        err = keep(t, w);
    return err || !w->final ? err : overtaken(t, w);
}

/* --- the whole --- */

/* Paid as the work of this position, once. A payment that is not certain is made certain by another
 * try, which does not count. */
static int pay(struct task *t, struct working *w)
{
    struct job paid = *w->job;
    if (w->turn.cents == 0 || !w->paid_as.p)
        return 0;
    paid.id = w->paid_as;
    int err = job_pay(t, w->posts->node->ledger, POST_QUEUE, &paid, w->turn.cents);
    if (err == ERR_FUNDS || err == ERR_RATE || !err || !err_may_pass(err))
        return err ? err : after(t, w, "pay");
    const char *why = arena_strdup(task_arena(t), task_error(t));
    return task_fail(t, ERR_UNAVAILABLE, "%s", why);
}

/* It goes on when there is a service: then nodes start anew, and look at all rows. */
static int without_service(struct task *t, struct working *w)
{
    int err = CHANGE(t, w, "UPDATE tb_post SET rag_status = 'pending', waits = ?, waits_code = ?",
                     sql_text(STR(EMBED_NO_SERVICE_TEXT)), sql_text(STR(EMBED_NO_SERVICE)));
    return err ? err : JOB_WRITTEN;
}

static int work(struct task *t, struct working *w)
{
    cut(t, w);
    int err = begin(t, w);
    if (err || w->final)
        return err ? err : JOB_WRITTEN;
    if (w->chunk_count == 0)
        return leave(t, w);
    err = write_words(t, w);
    if (err || w->final)
        return err ? err : JOB_WRITTEN;
    if (!w->posts->service)
        return without_service(t, w);
    if (w->kept != w->job->version)
        err = embed(t, w);
    if (!err)
        err = pay(t, w);
    if (!err)
        metric_add(w->posts->embedded, 1);
    return err;
}

int post_work(struct task *t, void *arg, const struct job *j)
{
    struct working w = {.posts = arg, .job = j};
    int err = read_row(t, &w);
    if (err || w.final)
        return err ? err : JOB_WRITTEN;
    if (!w.deleted)
        return work(t, &w);
    err = begin(t, &w);
    return err || w.final ? (err ? err : JOB_WRITTEN) : leave(t, &w);
}
