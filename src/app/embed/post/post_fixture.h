/* post_fixture.h -- what the tests of posts have in common: real stores, a node, and a made-up
 * store of points that can be slow, away, or die after a step. */
#ifndef APP_EMBED_POST_POST_FIXTURE_H
#define APP_EMBED_POST_POST_FIXTURE_H

#include <unistd.h>

#include "app/embed/post/posts_private.h"
#include "corpus/prose/markdown.h"
#include "engine/jobs/pay.h"
#include "engine/runs/reserve.h"
#include "engine/store/keys.h"
#include "tests/node.h"

#define OWNERS_MAX 64

struct world {
    struct group links, tasks;
    struct node node;
    struct runs runs;
    struct posts *posts;
};
static struct world world;
static struct world *const w = &world;
static int64_t uid;

/* --- points --- */

struct owner {
    uint64_t owner, version;
    uint32_t flags;
    char title[40];
    char text[200]; /* of the first chunk */
    size_t chunks;
};
static struct owner owners[OWNERS_MAX];
static size_t owner_count;
static int asked, tags;       /* calls */
static int service;           /* error of the service, or 0 */
static int64_t thinks_ms;     /* before it stores */
static const char *dies_once; /* the step after which the node dies */
static int deaths;
static int64_t space_now = 1;
static bool building;
static int64_t completed_space;
static void (*while_put)(struct task *t); /* called once, before points are stored */

static inline struct owner *owner_of(int64_t id)
{
    for (size_t i = 0; i < owner_count; i++)
        if (owners[i].owner == (uint64_t)id)
            return &owners[i];
    return NULL;
}

static inline void drop_owner(uint64_t id)
{
    struct owner *o = owner_of((int64_t)id);
    if (o)
        *o = owners[--owner_count];
}

static inline int made_up_put(struct task *t, struct collections *c, enum collection which,
                              const struct collection_document *docs, size_t count,
                              const bool *asks, struct collection_outcome *outcomes, int64_t *space)
{
    (void)c;
    (void)asks;
    check(which == COLLECTION_POSTS && count == 1 && docs->chunk_count > 0);
    asked++;
    int err = thinks_ms ? task_sleep(t, thinks_ms) : 0;
    if (err)
        return err;
    if (service)
        return task_fail(t, service, "the embedding service cannot be reached");
    void (*fn)(struct task *) = while_put;
    while_put = NULL;
    if (fn)
        fn(t);
    drop_owner(docs->owner);
    check(owner_count < OWNERS_MAX);
    struct owner *o = &owners[owner_count++];
    *o = (struct owner){.owner = docs->owner,
                        .version = docs->version,
                        .flags = docs->tags.flags,
                        .chunks = docs->chunk_count};
    snprintf(o->title, sizeof o->title, "%.*s", STR_ARG(docs->title));
    snprintf(o->text, sizeof o->text, "%.*s", STR_ARG(docs->chunks[0]));
    outcomes[0].err = 0;
    *space = space_now;
    return 0;
}

static inline int made_up_drop(struct task *t, struct collections *c, enum collection which,
                               const uint64_t *ids, size_t count)
{
    (void)c;
    check(which == COLLECTION_POSTS && count == 1);
    if (service)
        return task_fail(t, service, "the store cannot be reached");
    drop_owner(ids[0]);
    return 0;
}

static inline int made_up_tag(struct task *t, struct collections *c, enum collection which,
                              uint64_t id, struct point_tags x, struct str title)
{
    struct owner *o = owner_of((int64_t)id);
    (void)c;
    check(which == COLLECTION_POSTS);
    tags++;
    if (service)
        return task_fail(t, service, "the store cannot be reached");
    if (o) {
        o->flags = x.flags;
        snprintf(o->title, sizeof o->title, "%.*s", STR_ARG(title));
    }
    return 0;
}

static inline int64_t made_up_space(const struct collections *c, enum collection which, bool *is)
{
    (void)c;
    (void)which;
    *is = building;
    return space_now;
}

static inline int made_up_complete(struct task *t, struct collections *c, enum collection which,
                                   int64_t space)
{
    (void)t;
    (void)c;
    (void)which;
    completed_space = space;
    building = false;
    return 0;
}

/* Words are a table, for they are written in the transaction of the caller. */
static inline int made_up_words(struct task *t, struct sql *c, enum collection which,
                                const struct words_text *x, size_t count)
{
    (void)which;
    check(count == 1);
    return sql_on(
        t, c, NULL, "REPLACE INTO made_up_words (owner, title, text, flags) VALUES (?, ?, ?, ?)",
        sql_int((int64_t)x->owner), sql_text(x->title), sql_text(x->text), sql_int(x->tags.flags));
}

static inline int made_up_words_drop(struct task *t, struct sql *c, enum collection which,
                                     const uint64_t *ids, size_t count)
{
    (void)which;
    check(count == 1);
    return sql_on(t, c, NULL, "DELETE FROM made_up_words WHERE owner = ?", sql_int((int64_t)*ids));
}

/* As a node that is killed, and another that goes on: nothing is told, the job is taken again. */
static inline int die(struct task *t, const char *after)
{
    if (!dies_once || strcmp(dies_once, after) != 0)
        return 0;
    deaths++;
    dies_once = NULL;
    return task_fail(t, ERR_CANCELED, "the node dies");
}

/* --- the world --- */

static inline void sql_do(struct task *t, const char *statement)
{
    int err = sql_call(t, w->node.sql, NULL, statement);
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
}

static inline int64_t sql_number(struct task *t, const char *statement, int64_t value)
{
    struct sql_rows r;
    int err = sql_call(t, w->node.sql, &r, statement, sql_int(value));
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
    return r.count ? r.cells[0].i : -1;
}

static inline int64_t add_user(struct task *t, int64_t cents)
{
    return node_user(t, w->node.sql, cents);
}

static inline void made_up_store(struct posts *p)
{
    p->service = true;
    p->put = made_up_put;
    p->drop = made_up_drop;
    p->tag = made_up_tag;
    p->space = made_up_space;
    p->complete = made_up_complete;
    p->words_put = made_up_words;
    p->words_drop = made_up_words_drop;
    p->dies = die;
    p->kind.backoff_ms = 20;
    p->kind.calls_ai = false; /* what claims do is tested with them */
}

static inline struct test_node world_node(void)
{
    return (struct test_node){&w->node, &w->links, &w->tasks, &w->runs};
}

static inline void make_words(struct task *t)
{
    check(sql_call(t, w->node.sql, NULL,
                   "CREATE TABLE IF NOT EXISTS made_up_words (owner BIGINT PRIMARY KEY, title TEXT,"
                   " text MEDIUMTEXT, flags INT) DEFAULT CHARSET=utf8mb4") == 0);
}

static inline void open_world(struct task *t)
{
    struct test_node x = world_node();
    node_open(t, &x);
    make_words(t);
    w->node.posts = w->posts = posts_new(&w->node);
    made_up_store(w->posts);
    node_trust(t, &x);
}

static inline void close_world(struct task *t)
{
    struct test_node x = world_node();
    node_end(t, &x);
    posts_free(w->posts);
    node_release(t, &x);
}

/* --- what tests do --- */

static inline void begin_with(struct task *t, int64_t cents, int64_t price)
{
    config.embedding_post_price = price;
    config.embedding_posts_max = 1000;
    config.embedding_queue_max = 1000;
    config.embedding_content_chars = 20000;
    open_world(t);
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    sql_do(t, "DELETE FROM tb_post");
    sql_do(t, "DELETE FROM job_reserve");
    sql_do(t, "DELETE FROM made_up_words");
    uid = add_user(t, cents);
    owner_count = 0;
    asked = tags = service = deaths = 0;
    thinks_ms = 0;
    dies_once = NULL;
    while_put = NULL;
    space_now = 1;
    building = false;
    completed_space = 0;
}

static inline void begin(struct task *t)
{
    begin_with(t, 0, 0);
}

static inline void fill(struct task *t)
{
    struct role_turn turn = {.locked = false};
    check(jobs_refill_role(t, w->node.jobs, &turn) == 0);
}

static inline void go(struct task *t)
{
    check(task_go(&w->tasks, "jobs", jobs_task, w->node.jobs) == 0);
    role_in(&w->tasks, jobs_keep_role, w->node.jobs, 50);
    fill(t);
}

static inline int64_t write_post(struct task *t, const char *title, const char *content)
{
    struct post_wish wish = {.uid = uid, .title = str_of(title), .content = str_of(content)};
    struct post x;
    int err = post_create(t, w->posts, &wish, &x);
    if (err)
        printf("# post_create: %s %s\n", err_name(err), task_error(t));
    return err ? err : x.id;
}

static inline int change_post(struct task *t, int64_t id, const char *title, const char *content,
                              int hide)
{
    struct post_wish wish = {.uid = uid,
                             .id = id,
                             .title = str_of(title),
                             .content = str_of(content),
                             .has_hide = hide >= 0,
                             .hide = hide > 0};
    struct post x;
    return post_change(t, w->posts, &wish, &x);
}

static inline int delete_post(struct task *t, int64_t id)
{
    return post_delete(t, w->posts, &(struct post_wish){.uid = uid, .id = id});
}

static inline struct post look_at(struct task *t, int64_t id)
{
    struct post x = {.status = STR("(none)")};
    struct post_caller who = {.uid = uid};
    (void)!post_get(t, w->posts, who, id, &x);
    return x;
}

static inline bool comes_to(struct task *t, int64_t id, const char *status)
{
    for (int i = 0; i < 2000 && !str_eq(look_at(t, id).status, str_of(status)); i++)
        pause_ms(t, 5);
    struct post x = look_at(t, id);
    bool does = str_eq(x.status, str_of(status));
    if (!does)
        printf("# it is %.*s: %.*s\n", STR_ARG(x.status), STR_ARG(x.error));
    return does;
}

static inline bool await_asked(struct task *t, int count)
{
    for (int i = 0; i < 2000 && asked < count; i++)
        pause_ms(t, 5);
    return asked >= count;
}

/* No post is queued or in work, and no row of a deleted one is left. */
static inline bool comes_to_rest(struct task *t)
{
    const char *left = "SELECT COUNT(*) FROM tb_post WHERE rag_status IN " POST_OPEN
                       " OR deleted IS NOT NULL OR tags_due = 1 OR 0 = ?";
    for (int i = 0; i < 3000 && sql_number(t, left, 1); i++)
        pause_ms(t, 5);
    return sql_number(t, left, 1) == 0;
}

/* Points and words of each completed post are those of its row, and there are no others. */
static inline bool all_agree(struct task *t)
{
    struct sql_rows r;
    size_t with = 0;
    bool agree = true;
    check(sql_call(t, w->node.sql, &r,
                   "SELECT p.id, p.title, p.content, p.hide, p.content_version, p.space,"
                   " COALESCE(x.title, ''), COALESCE(x.flags, -1) FROM tb_post p"
                   " LEFT JOIN made_up_words x ON x.owner = p.id WHERE rag_status = 'completed'"
                   " AND p.chunks > 0") == 0);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *v = sql_row(&r, i);
        const struct owner *o = owner_of(v[0].i);
        struct str plain = markdown_plain(task_arena(t), v[2].s);
        bool same = o && str_eq(str_of(o->text), plain) && str_eq(str_of(o->title), v[1].s) &&
                    o->flags == (v[3].i ? POINT_HIDDEN : 0) && o->version == (uint64_t)v[4].i &&
                    v[5].i == space_now;
        bool words = str_eq(v[6].s, v[1].s) && v[7].i == (v[3].i ? POINT_HIDDEN : 0);
        if (!same || !words)
            printf(
                "# post '%.*s' '%.*s' version %lld: points %s '%s' '%s' version %lld, words %d\n",
                STR_ARG(v[1].s), STR_ARG(v[2].s), (long long)v[4].i, o ? "" : "(none)",
                o ? o->title : "", o ? o->text : "", o ? (long long)o->version : -1, words);
        agree &= same && words;
        with++;
    }
    if (with != owner_count)
        printf("# %zu posts, %zu have points\n", with, owner_count);
    int64_t lost = sql_number(t,
                              "SELECT COUNT(*) FROM made_up_words x LEFT JOIN tb_post p"
                              " ON p.id = x.owner AND p.worded > 0 WHERE p.id IS NULL AND 1 = ?",
                              1);
    return agree && with == owner_count && lost == 0;
}
#endif
