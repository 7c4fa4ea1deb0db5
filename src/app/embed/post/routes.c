#include "app/embed/post/routes.h"

#include "app/embed/post/posts_private.h"
#include "engine/api/limit.h"
#include "engine/api/run.h"
#include "engine/setup/config.h"
#include "engine/store/amount.h"

#define BODY_BYTES_MAX  (4 * 1024 * 1024)
#define BATCH_BYTES_MAX (64 * 1024)
#define ID_CHARS_MAX    19

/* --- who asks, for what --- */

struct post_caller post_caller_of(const struct api_call *c)
{
    return (struct post_caller){.uid = api_uid(c), .admin = c->admin};
}

int post_id_of_path(struct task *t, const struct api_call *c, int64_t *id)
{
    return str_to_i64(http_param(c->x, "post_id"), id) && *id > 0 ? 0 : post_none(t);
}

/* After ERR_NOT_FOUND as a user: 0 if the caller is an admin besides. */
static int be_admin(struct task *t, struct api_call *c)
{
    int err = c->admin ? ERR_FORBIDDEN : api_be_admin(t, c);
    return err == ERR_FORBIDDEN ? post_none(t) : err;
}

int post_of_path(struct task *t, struct api_call *c, struct post *out)
{
    int64_t id;
    int err = post_id_of_path(t, c, &id);
    if (err)
        return err;
    err = post_get(t, c->node->posts, post_caller_of(c), id, out);
    if (err != ERR_NOT_FOUND)
        return err;
    err = be_admin(t, c);
    return err ? err : post_get(t, c->node->posts, post_caller_of(c), id, out);
}

/* --- what is shown --- */

#define AT(member) API_AT(struct post, member)
#define STATUS_FIELDS                                                                              \
    {"id", API_INT, AT(id), .about = "of the post"},                                               \
        {"rag_status", API_TEXT, AT(status), .choices = POST_STATUSES,                             \
         .about = "completed: it is found by meaning; so is an empty one, which has nothing"},     \
        {"rag_error", API_TEXT, .optional = true, .most = 1000,                                    \
         .about = "why it failed, or what it waits for; for its owner and admins"},                \
        {"reason_code", API_TEXT, .optional = true, .choices = EMBED_REASONS,                      \
         .about = "the same, by a word"},                                                          \
    {                                                                                              \
        "progress", API_OBJECT, .about = "of the embedding", .fields = progress_fields             \
    }
static const struct api_field progress_fields[] = {
    {"done", API_INT, .about = "chunks that have been embedded and stored"},
    {"total", API_INT, .about = "chunks that there are; 0: not known yet"},
    API_END,
};
#define POST_FIELDS                                                                                \
    {"title", API_TEXT, AT(title), .most = POST_TITLE_CHARS_MAX, .about = "of the post"},          \
        {"hide", API_BOOL, AT(hide), .about = "its owner and admins see it alone"},                \
        {"mine", API_BOOL, AT(mine), .about = "it is the caller's"},                               \
        {"uid", API_INT, .optional = true, .about = "of its owner; for admins"},                   \
        {"version", API_INT, AT(version), .about = "counts the changes by its owner"},             \
        {"created_at", API_TIME, AT(created_ms), .about = "when it was made"},                     \
        {"changed_at", API_TIME, AT(changed_ms), .about = "when its owner changed it last"},       \
        STATUS_FIELDS
static const struct api_field listed_fields[] = {POST_FIELDS, API_END};
static const struct api_field post_fields[] = {
    POST_FIELDS,
    {"content", API_TEXT, .most = POST_CONTENT_CHARS_MAX, .about = "Markdown"},
    API_END,
};

void post_put_status(struct json_writer *w, const struct post_caller *who, const struct post *x)
{
    bool tells = x->mine || who->admin;
    jw_put_str(w, "rag_error", tells ? x->error : STR_NULL);
    jw_put_str(w, "reason_code", tells ? x->reason : STR_NULL);
    jw_put_object(w, "progress");
    jw_put_int(w, "done", x->chunks_done);
    jw_put_int(w, "total", x->chunks);
    jw_end_object(w);
}

static void put_post(struct task *t, struct api_call *c, struct json_writer *w,
                     const struct post *x)
{
    struct post_caller who = post_caller_of(c);
    jw_object(w);
    api_put_fields(t, w, listed_fields, x);
    api_put_known(w, "uid", who.admin, x->uid);
    post_put_status(w, &who, x);
    if (x->content.p)
        jw_put_str(w, "content", x->content);
    jw_end_object(w);
}

static int show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct post x;
    int err = post_of_path(t, c, &x);
    if (err)
        return err;
    jw_key(w, STR("post"));
    put_post(t, c, w, &x);
    return 0;
}

/* What a page tells its user before something is refused. */
static void put_terms(struct task *t, const struct node *n, struct json_writer *w)
{
    jw_put_int(w, "content_chars_max", n->config->embedding_content_chars);
    jw_put_str(w, "price", amount_decimal(task_arena(t), post_price_cents(n->posts)));
    jw_put_bool(w, "service", n->posts->service);
    jw_put_bool(w, "simulated", n->simulated_embedding);
}

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str cursor = api_text(c, "cursor");
    int64_t below = INT64_MAX, limit = 20;
    struct post_page page;
    if (cursor.p && (!str_to_i64(cursor, &below) || below < 1))
        return api_refuse(t, c, "cursor", "is no cursor of this list");
    (void)api_int(c, "limit", &limit);
    int err = post_list(t, c->node->posts, post_caller_of(c), str_eq(api_text(c, "of"), STR("all")),
                        below, limit, &page);
    if (err)
        return err;
    jw_put_array(w, "posts");
    for (size_t i = 0; i < page.count; i++)
        put_post(t, c, w, &page.list[i]);
    jw_end_array(w);
    jw_key(w, STR("next"));
    jw_str(w, page.next ? str_int(task_arena(t), page.next) : STR_NULL);
    put_terms(t, c->node, w);
    return 0;
}

/* --- what owners do --- */

static int answer(struct task *t, struct api_call *c, struct json_writer *w, int err,
                  const struct post *x)
{
    if (err == ERR_INVALID)
        return api_refuse(t, c, "content", "%s", arena_strdup(task_arena(t), task_error(t)));
    if (err)
        return err;
    jw_key(w, STR("post"));
    put_post(t, c, w, x);
    return 0;
}

static void read_wish(const struct api_call *c, struct post_wish *x)
{
    x->uid = c->session.uid;
    x->title = api_text(c, "title");
    x->content = api_text(c, "content");
    x->has_hide = api_bool(c, "hide", &x->hide);
}

static int create(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct post_wish wish = {.uid = 0};
    struct post x;
    read_wish(c, &wish);
    int err = api_request_id(t, c, &wish.request_id);
    return err ? err : answer(t, c, w, post_create(t, c->node->posts, &wish, &x), &x);
}

static int change(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct post_wish wish = {.uid = 0};
    struct post x;
    int err = post_id_of_path(t, c, &wish.id);
    if (err)
        return err;
    read_wish(c, &wish);
    (void)api_int(c, "version", &wish.version);
    return answer(t, c, w, post_change(t, c->node->posts, &wish, &x), &x);
}

static int delete (struct task *t, struct api_call *c, struct json_writer *w)
{
    struct post_wish wish = {.uid = c->session.uid};
    int err = post_id_of_path(t, c, &wish.id);
    (void)w;
    (void)api_int(c, "version", &wish.version);
    return err ? err : post_delete(t, c->node->posts, &wish);
}

/* --- queueing --- */

/* Counted before it is queued, and given back if that fails. */
static int embed_own(struct task *t, struct api_call *c, int64_t id)
{
    struct limit_taken taken;
    int err = api_limit_take(t, c, LIMIT_EMBEDDING, 1, &taken);
    if (err)
        return err;
    err = post_embed(t, c->node->posts, post_caller_of(c), id, NULL);
    if (err && err != ERR_UNCERTAIN)
        limit_return(t, c->node->limits, &taken);
    return err;
}

static int embed(struct task *t, struct api_call *c, struct json_writer *w)
{
    int64_t id;
    int err = post_id_of_path(t, c, &id);
    if (!err)
        err = c->admin ? ERR_NOT_FOUND : embed_own(t, c, id);
    if (err == ERR_NOT_FOUND && !c->admin)
        err = be_admin(t, c) ? post_none(t) : ERR_NOT_FOUND;
    if (err == ERR_NOT_FOUND && c->admin) {
        struct admin_deed by = api_deed(c);
        err = post_embed(t, c->node->posts, post_caller_of(c), id, &by);
    }
    if (!err)
        jw_put_bool(w, "queued", true);
    return err;
}

static int read_ids(struct task *t, struct api_call *c, struct post_batch *out)
{
    const struct json *list = c->body ? json_get(c->body, "ids") : NULL;
    if (!list)
        return 0;
    if (api_text(c, "which").p)
        return api_refuse(t, c, "which", "cannot be given with ids");
    if (list->type != JSON_ARRAY || list->count == 0)
        return api_refuse(t, c, "ids", "must be a list of ids");
    int64_t *ids = ARENA_ARRAY(task_arena(t), int64_t, list->count);
    json_each (id, list)
        if (!json_int(id, &ids[out->count++]))
            return api_refuse(t, c, "ids", "must be numbers");
    out->which = POST_IDS;
    out->ids = ids;
    return 0;
}

static int embed_batch(struct task *t, struct api_call *c, struct json_writer *w)
{
    bool failed = c->body && str_eq(api_text(c, "which"), STR("failed"));
    struct post_batch batch = {.which = failed ? POST_FAILED : POST_ALL};
    int64_t queued = 0, refused = 0;
    int err = api_be_admin(t, c);
    if (!err)
        err = read_ids(t, c, &batch);
    if (err)
        return err;
    struct admin_deed by = api_deed(c);
    err = post_embed_batch(t, c->node->posts, &batch, &by, &queued, &refused);
    if (err)
        return err;
    jw_put_int(w, "queued", queued);
    jw_put_int(w, "refused", refused);
    return 0;
}

/* --- the table --- */

#define TITLE                                                                                      \
    "title", API_TEXT, .optional = true, .most = POST_TITLE_CHARS_MAX, .about = "of the post"
#define CONTENT                                                                                    \
    "content", API_TEXT, .optional = true, .most = POST_CONTENT_CHARS_MAX,                         \
                         .about = "Markdown; embedding.content_chars may allow less"
#define HIDE                                                                                       \
    "hide", API_BOOL, .optional = true,                                                            \
                      .about = "its owner and admins see it alone; false if absent"
#define MADE_FROM                                                                                  \
    "version", API_INT, .optional = true, .least = 1, .most = INT64_MAX,                           \
                        .about = "that the change was made from: 409 if it is another by now"

static const struct api_field create_body[] = {
    {TITLE}, {CONTENT}, {HIDE}, {API_REQUEST_ID_FIELD}, API_END};
static const struct api_field change_body[] = {
    {TITLE},
    {CONTENT},
    {"hide", API_BOOL, .optional = true, .about = "what is absent stays as it is"},
    {MADE_FROM},
    API_END,
};
static const struct api_field delete_query[] = {{MADE_FROM}, API_END};
static const struct api_field list_query[] = {
    {"of", API_TEXT, .optional = true, .choices = "own|all",
     .about = "all: all that the caller may see; own if absent, and for admins all"},
    {"limit", API_INT, .optional = true, .least = 1, .most = POST_PAGE_MAX,
     .about = "of one page; 20 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = ID_CHARS_MAX,
     .about = "next of the page before"},
    API_END,
};
static const struct api_field post_reply[] = {
    {"post", API_OBJECT, .about = "as it is now", .fields = post_fields}, API_END};
static const struct api_field list_reply[] = {
    {"posts", API_OBJECTS, .most = POST_PAGE_MAX, .about = "the newest first",
     .fields = listed_fields},
    {"next", API_TEXT, .optional = true, .most = ID_CHARS_MAX,
     .about = "cursor of the next page; null: there is none"},
    {"content_chars_max", API_INT, .about = "characters that a post may have"},
    {"price", API_MONEY, .about = "of embedding a post, for each new content"},
    {"service", API_BOOL, .about = "there is an embedding service; else posts wait for one"},
    {"simulated", API_BOOL, .about = "it is the simulated one, whose vectors mean little"},
    API_END,
};
static const struct api_field embed_reply[] = {
    {"queued", API_BOOL, .about = "it waits, or is in work"}, API_END};
static const struct api_field batch_body[] = {
    {"ids", API_ANY, .optional = true, .most = POST_BATCH_IDS_MAX, .item_most = ID_CHARS_MAX,
     .about = "of posts; those that there are not are passed over"},
    {"which", API_TEXT, .optional = true, .choices = "all|failed",
     .about = "instead of ids; all if both are absent"},
    API_END,
};
static const struct api_field batch_reply[] = {
    {"queued", API_INT, .about = "posts; without those that are queued or in work, or empty"},
    {"refused", API_INT, .about = "posts that did not fit into the queue"},
    API_END,
};

const struct api_route post_routes[] = {
    {"GET", "/api/posts", API_EITHER, list, "Posts, without their content", .query = list_query,
     .reply = list_reply},
    {"POST", "/api/posts", API_USER, create, "Write a post", .body = create_body,
     .reply = post_reply, .status = 201, .body_bytes_max = BODY_BYTES_MAX},
    {"GET", "/api/posts/events", API_EITHER, post_events_all,
     "How far the embedding of your posts is, as server-sent events", .media = "text/event-stream"},
    {"GET", "/api/posts/:post_id", API_EITHER, show, "One post", .reply = post_reply},
    {"PUT", "/api/posts/:post_id", API_USER, change, "Change a post", .body = change_body,
     .reply = post_reply, .body_bytes_max = BODY_BYTES_MAX},
    {"DELETE", "/api/posts/:post_id", API_USER, delete, "Delete a post", .query = delete_query,
     .reply = NULL},
    {"GET", "/api/posts/:post_id/events", API_EITHER, post_events,
     "How far the embedding of a post is, as server-sent events", .media = "text/event-stream"},
    {"POST", "/api/post/:post_id/embed", API_EITHER, embed,
     "Have a post embedded again, before others", .reply = embed_reply, .audit = "post.embed"},
    {"POST", "/api/post/embed/batch", API_EITHER, embed_batch,
     "Have many posts embedded again, after all others", .body = batch_body, .reply = batch_reply,
     .body_bytes_max = BATCH_BYTES_MAX, .audit = "post.embed_batch"},
    {"GET", "/api/embedding/queue/status", API_EITHER, post_queue_status,
     "The queue of posts that are to be embedded; for admins", .reply = post_queue_reply},
    {.method = NULL},
};
