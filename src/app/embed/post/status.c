/* The queue, as admins see it: its first jobs, with the titles of their posts. */
#include "app/embed/post/posts_private.h"
#include "app/embed/post/routes.h"

#define SHOWN 100

struct task_row {
    struct str job, title;
    int64_t id, uid, priority, tries, since_ms;
};

static const struct api_field task_fields[] = {
    {"postId", API_INT, .about = "of the post", API_AT(struct task_row, id)},
    {"title", API_TEXT, .optional = true, .most = POST_TITLE_CHARS_MAX,
     .about = "null: the post is deleted, and its vectors are to go",
     API_AT(struct task_row, title)},
    {"uid", API_INT, .about = "of its owner", API_AT(struct task_row, uid)},
    {"priority", API_INT, .about = "0 or 1 comes first", API_AT(struct task_row, priority)},
    {"tries", API_INT, .about = "begun so far, since it was queued",
     API_AT(struct task_row, tries)},
    {"addTime", API_TIME, .about = "when it was queued", API_AT(struct task_row, since_ms)},
    API_END,
};
static const struct api_field data_fields[] = {
    {"queueLength", API_INT, .about = "posts that wait, those that are tried again later included"},
    {"processingCount", API_INT, .about = "posts in work, on all nodes"},
    {"queueTasks", API_OBJECTS, .most = SHOWN, .about = "the first that wait, in their order",
     .fields = task_fields},
    {"processingTasks", API_OBJECTS, .most = SHOWN, .about = "in work", .fields = task_fields},
    API_END,
};
const struct api_field post_queue_reply[] = {
    {"data", API_OBJECT, .about = "the queue", .fields = data_fields}, API_END};

/* Titles by the ids of jobs; those of deleted posts stay null. */
static int read_titles(struct task *t, struct api_call *c, struct task_row *rows, size_t count)
{
    struct sql_rows r;
    size_t n = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, n);
    for (size_t i = 0; i < n; i++)
        v[i] = sql_int(rows[i < count ? i : count - 1].id);
    int err = sql_argv(t, c->node->sql,
                       sql_marks(task_arena(t),
                                 "SELECT id, title FROM tb_post WHERE deleted IS NULL AND id IN",
                                 count, ""),
                       n, v, &r);
    for (size_t i = 0; !err && i < r.count; i++)
        for (size_t k = 0; k < count; k++)
            if (sql_row(&r, i)[0].i == rows[k].id)
                rows[k].title = sql_row(&r, i)[1].s;
    return err;
}

static int put_tasks(struct task *t, struct api_call *c, struct json_writer *w, const char *name,
                     bool working)
{
    struct jobs_entry *list = NULL;
    size_t count = 0, known = 0;
    int err = jobs_list(t, c->node->jobs, POST_QUEUE, working, SHOWN, &list, &count);
    if (err)
        return err;
    struct task_row *rows = ARENA_ARRAY(task_arena(t), struct task_row, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct task_row x = {.uid = list[i].uid,
                             .priority = list[i].priority,
                             .tries = list[i].tries,
                             .since_ms = list[i].since_ms};
        if (str_to_i64(list[i].id, &x.id))
            rows[known++] = x;
    }
    if (known && read_titles(t, c, rows, known)) {
        if (task_canceled(t))
            return ERR_CANCELED;
        c->degraded = true; /* without titles */
    }
    api_put_list(t, w, name, task_fields, rows, known);
    return 0;
}

int post_queue_status(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct jobs *j = c->node->jobs;
    struct jobs_look look = {.name = NULL};
    int err = api_be_admin(t, c);
    for (size_t i = 0; !err && i < jobs_count(j); i++) {
        err = jobs_look(t, j, i, &look);
        if (!err && str_eq(str_of(look.name), STR(POST_QUEUE)))
            break;
    }
    if (err)
        return err;
    jw_put_object(w, "data");
    jw_put_int(w, "queueLength", look.waiting + look.delayed + look.held);
    jw_put_int(w, "processingCount", look.working);
    err = put_tasks(t, c, w, "queueTasks", false);
    if (!err)
        err = put_tasks(t, c, w, "processingTasks", true);
    jw_end_object(w);
    return err;
}
