/* Queues of jobs: how they do; to stop one, to try its failures again, or to drop them. */
#include "engine/jobs/jobs.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"

#define NAME_CHARS_MAX 32

static void put_queue(struct json_writer *w, const struct jobs_look *l, int64_t failures)
{
    jw_object(w);
    jw_put_str(w, "name", str_of(l->name));
    jw_put_int(w, "waiting", l->waiting);
    jw_put_int(w, "delayed", l->delayed);
    jw_put_int(w, "held", l->held);
    jw_put_int(w, "working", l->working);
    jw_put_int(w, "oldest_seconds", l->oldest_ms / 1000);
    jw_put_int(w, "done", l->done);
    jw_put_int(w, "failed", l->failed);
    api_put_known(w, "failures", failures >= 0, failures);
    jw_put_bool(w, "paused", l->paused);
    jw_put_bool(w, "filled", l->refilled);
    jw_end_object(w);
}

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct jobs *j = c->node->jobs;
    struct jobs_look looks[JOBS_QUEUES_MAX];
    for (size_t i = 0; i < jobs_count(j); i++) {
        int err = jobs_look(t, j, i, &looks[i]);
        if (err)
            return err;
    }
    jw_put_array(w, "queues");
    for (size_t i = 0; i < jobs_count(j); i++) {
        int64_t failures;
        bool known = !jobs_failures(t, j, i, &failures);
        c->degraded |= !known;
        put_queue(w, &looks[i], known ? failures : -1);
    }
    jw_end_array(w);
    return 0;
}

static int set_paused(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = admin_deed_of(c);
    struct str queue = http_param(c->x, "queue");
    int err = jobs_pause(t, c->node->jobs, queue, c->route->option, &d);
    if (err)
        return err;
    jw_put_str(w, "name", queue);
    jw_put_bool(w, "paused", c->route->option);
    return 0;
}

enum { RETRY, DROP };

/* As many as there are; each batch is a transaction, and noted in it. */
static int change_failures(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = admin_deed_of(c);
    struct str queue = http_param(c->x, "queue");
    int64_t all = 0, some = 0;
    int err;
    do {
        err = c->route->option == RETRY ? jobs_retry_failed(t, c->node->jobs, queue, &d, &some)
                                        : jobs_drop_failed(t, c->node->jobs, queue, &d, &some);
        if (!err)
            all += some;
    } while (!err && some == JOBS_BATCH);
    if (err)
        return err;
    jw_put_str(w, "name", queue);
    jw_put_int(w, "jobs", all);
    return 0;
}

/* --- the table --- */

#define NAME "name", API_TEXT, .most = NAME_CHARS_MAX, .about = "of the queue"
#define COUNT(name, about_)                                                                        \
    {                                                                                              \
        name, API_INT, .about = about_                                                             \
    }

static const struct api_field queue_fields[] = {
    {NAME},
    COUNT("waiting", "jobs that wait to be taken"),
    COUNT("delayed", "jobs that are tried again later"),
    COUNT("held", "jobs whose user lacks permission or money now"),
    COUNT("working", "jobs in work, over all nodes"),
    COUNT("oldest_seconds", "age of the oldest that waits; 0: none does"),
    COUNT("done", "jobs done since the queue was first filled"),
    COUNT("failed", "jobs given up, likewise"),
    {"failures", API_INT, .optional = true, .about = "that can be retried; null: not known"},
    {"paused", API_BOOL, .about = "nothing is taken"},
    {"filled", API_BOOL,
     .about = "false: Redis was restarted, and the queue is being filled from MySQL"},
    API_END,
};
static const struct api_field list_reply[] = {
    {"queues", API_OBJECTS, .about = "all of them", .fields = queue_fields},
    API_END,
};
static const struct api_field reason_body[] = {{ADMIN_REASON_FIELD}, API_END};
static const struct api_field paused_reply[] = {
    {NAME}, {"paused", API_BOOL, .about = "from now on, on all nodes"}, API_END};
static const struct api_field jobs_reply[] = {
    {NAME}, COUNT("jobs", "that were retried, or dropped"), API_END};

const struct api_route admin_queues_routes[] = {
    {"GET", "/api/admin/queues", API_ADMIN, list, "Queues of jobs", .reply = list_reply},
    {"POST", "/api/admin/queues/:queue/pause", API_ADMIN, set_paused,
     "Stop a queue: jobs in work are finished", .body = reason_body, .reply = paused_reply,
     .audit = "queue.pause", .option = true},
    {"POST", "/api/admin/queues/:queue/resume", API_ADMIN, set_paused, "Let a queue go on",
     .body = reason_body, .reply = paused_reply, .audit = "queue.resume", .option = false},
    {"POST", "/api/admin/queues/:queue/retry", API_ADMIN, change_failures,
     "Try the failures of a queue again", .body = reason_body, .reply = jobs_reply,
     .audit = "queue.retry", .option = RETRY},
    {"POST", "/api/admin/queues/:queue/drop", API_ADMIN, change_failures,
     "Drop the failures of a queue", .body = reason_body, .reply = jobs_reply,
     .audit = "queue.drop", .option = DROP},
    {.method = NULL},
};
