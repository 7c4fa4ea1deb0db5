#include "wire/redis.h"

#include <stdlib.h>

#include "base/log.h"
#include "wire/redis/redis_private.h"

#define CONNECT_MS  2000
#define COMMAND_MS  5000
#define WAITING_MAX 100000

/* Labels are built in the handle's arena: metric() may keep what it is given. */
static void count_with(struct redis *r, struct metrics *all)
{
    struct redis_metrics *m = &r->metrics;
    const char *name = arena_printf(&r->arena, "name=\"%s\"", r->name);
    m->up = metric(all, METRIC_GAUGE, "millrace_redis_up", name, "1 while Redis can be used.");
    m->waiting = metric(all, METRIC_GAUGE, "millrace_redis_waiting", name,
                        "Commands whose reply has not come yet.");
    m->commands = metric(all, METRIC_COUNTER, "millrace_redis_commands_total", name,
                         "Commands sent to Redis.");
    m->writes = metric(all, METRIC_COUNTER, "millrace_redis_writes_total", name,
                       "System calls that carried them.");
    m->reconnects = metric(all, METRIC_COUNTER, "millrace_redis_reconnects_total", name,
                           "Connections made after the first.");
    static const int counted[] = {ERR_CANCELED,    ERR_TIMEOUT,   ERR_LIMIT,  ERR_BUSY,
                                  ERR_UNAVAILABLE, ERR_UNCERTAIN, ERR_REFUSED};
    for (size_t i = 0; i < sizeof(counted) / sizeof(*counted); i++) {
        const char *labels = arena_printf(&r->arena, "%s,code=\"%s\"", name, err_name(counted[i]));
        m->errors[-counted[i]] = metric(all, METRIC_COUNTER, "millrace_redis_errors_total", labels,
                                        "Calls that failed, by reason.");
    }
}

static void copy_options(struct redis *r, const struct redis_options *o)
{
    struct arena *a = &r->arena;
    check(redis_url_parse(a, arena_strdup(a, o->url), &r->url) == NULL);
    if (!r->url.password.p && o->password)
        r->url.password = str_of(arena_strdup(a, o->password));
    r->name = arena_strdup(a, o->name ? o->name : "redis");
    r->silent = o->quiet;
    r->connect_ms = o->connect_ms ? o->connect_ms : CONNECT_MS;
    r->command_ms = o->command_ms ? o->command_ms : COMMAND_MS;
    r->waiting_max = o->waiting_max ? o->waiting_max : WAITING_MAX;
}

struct redis *redis_open(struct group *g, const struct redis_options *o)
{
    struct redis *r = check_memory(calloc(1, sizeof(*r)));
    r->loop = g->loop;
    r->opened_ms = loop_now_ms(g->loop);
    arena_init(&r->arena);
    buf_init(&r->in);
    buf_init(&r->out);
    waitq_init(&r->first);
    list_init(&r->scripts);
    copy_options(r, o);
    if (r->url.tls)
        r->tls_context = tls_context_new(&(struct tls_options){.ca_file = r->url.ca_file});
    count_with(r, o->metrics);
    if (task_go(g, "redis", redis_link_run, r)) {
        redis_free(r);
        return NULL;
    }
    return r;
}

void redis_close(struct redis *r)
{
    check(!r->closing);
    r->closing = true;
    if (r->ended)
        redis_free(r);
    else if (r->link)
        task_cancel(r->link);
}

void redis_free(struct redis *r)
{
    if (r->tls_context)
        tls_context_free(r->tls_context);
    free(r->queue.ring);
    buf_release(&r->in);
    buf_release(&r->out);
    arena_release(&r->arena);
    free(r);
}

bool redis_is_cluster(const struct redis *r)
{
    return r->cluster;
}

bool redis_up(const struct redis *r)
{
    return r->state == REDIS_UP;
}

uint64_t redis_epoch(const struct redis *r)
{
    return r->epoch;
}

struct str redis_run_id(const struct redis *r)
{
    return redis_up(r) ? str_of(r->run_id) : STR("");
}

void redis_enter(struct redis *r)
{
    r->users++;
}

int redis_leave(struct redis *r, int err)
{
    if (err && r->metrics.errors[-err])
        metric_add(r->metrics.errors[-err], 1);
    /* The link task of a closed handle frees it after its last user has left. */
    if (--r->users == 0 && r->state == REDIS_CLOSED && r->link)
        task_wake(r->link);
    return err;
}

static int wait_for_first(struct task *t, struct redis *r)
{
    int64_t left = r->opened_ms + r->connect_ms - loop_now_ms(r->loop);
    if (left <= 0)
        return 0;
    int64_t old = task_deadline(t, left);
    int err = 0;
    while (!err && r->epoch == 0 && r->state != REDIS_CLOSED)
        err = waitq_wait(t, &r->first);
    task_deadline_restore(t, old);
    return err == ERR_TIMEOUT ? 0 : err; /* the caller finds that it is down */
}

/* Whether count commands of together so many bytes may be queued now. */
static int admit(struct task *t, struct redis *r, size_t count, size_t bytes)
{
    if (task_canceled(t))
        return ERR_CANCELED;
    if (task_time_left_ms(t) == 0)
        return ERR_TIMEOUT;
    if (r->epoch == 0) {
        int err = wait_for_first(t, r);
        if (err)
            return err;
    }
    if (r->state != REDIS_UP)
        return task_fail(t, ERR_UNAVAILABLE, "redis %s is down: %s", r->name, r->problem);
    if (bytes > REDIS_COMMAND_BYTES_MAX)
        return task_fail(t, ERR_LIMIT, "a Redis command of %zu bytes is over the limit of %d",
                         bytes, REDIS_COMMAND_BYTES_MAX);
    if (r->waiting + count > r->waiting_max || r->out.len + bytes > REDIS_UNSENT_BYTES_MAX)
        return task_fail(t, ERR_BUSY, "%zu commands wait for redis %s already", r->waiting,
                         r->name);
    return 0;
}

/* The command is in r->out: waits for what w asks for. */
static int await(struct task *t, struct redis *r, struct redis_wait *w)
{
    redis_link_has_output(r);
    int64_t old = task_deadline(t, r->command_ms);
    int err = 0;
    while (!w->done && !err)
        err = task_wait(t);
    task_deadline_restore(t, old);
    if (w->done) {
        err = w->err;
        if (err)
            task_fail(t, err, "redis %s: %s", r->name, r->problem);
        return err;
    }
    redis_queue_abandon(r, w);
    if (err == ERR_TIMEOUT)
        task_fail(t, err, "redis %s did not answer in time", r->name);
    return err;
}

int redis_ask(struct task *t, struct redis *r, const struct redis_command *c,
              const struct redis_reply **out)
{
    size_t bytes = redis_encoded_bytes(c);
    int err = admit(t, r, 1, bytes);
    if (err)
        return err;
    redis_encode(c, buf_reserve(&r->out, bytes));
    buf_added(&r->out, bytes);
    struct redis_wait w = {.task = t, .replies = out};
    redis_queue_put(r, &w, 1, bytes, bytes);
    return await(t, r, &w);
}

bool redis_says_cluster(struct str words)
{
    return str_starts(words, STR("MOVED ")) || str_starts(words, STR("ASK ")) ||
           str_starts(words, STR("CROSSSLOT ")) || str_starts(words, STR("CLUSTERDOWN ")) ||
           str_starts(words, STR("TRYAGAIN "));
}

bool redis_says_leave(struct str words)
{
    return redis_says_cluster(words) || str_starts(words, STR("LOADING ")) ||
           str_starts(words, STR("MASTERDOWN ")) || str_starts(words, STR("READONLY "));
}

/* MISCONF: it cannot write to its disk. OOM: its memory is full. In both states it still reads. */
bool redis_says_not_now(struct str words)
{
    return redis_says_leave(words) || str_starts(words, STR("BUSY ")) ||
           str_starts(words, STR("MISCONF ")) || str_starts(words, STR("OOM "));
}

int redis_verdict(struct task *t, const struct redis_reply *reply, const struct redis_reply **out)
{
    if (reply->type == REDIS_ERROR)
        return task_fail(t, redis_says_not_now(reply->str) ? ERR_UNAVAILABLE : ERR_REFUSED, "%s",
                         reply->str.p);
    if (out)
        *out = reply;
    return 0;
}

int redis_argv(struct task *t, struct redis *r, struct str key, size_t argc, const struct str *argv,
               const struct redis_reply **out)
{
    (void)key; /* one server: all keys are its */
    const struct redis_reply *reply;
    redis_enter(r);
    int err = redis_ask(t, r, &(struct redis_command){.argc = argc, .argv = argv}, &reply);
    return redis_leave(r, err ? err : redis_verdict(t, reply, out));
}

void redis_batch_init(struct redis_batch *b, struct task *t, struct redis *r)
{
    *b = (struct redis_batch){.task = t, .redis = r};
}

static char *batch_room(struct redis_batch *b, size_t bytes)
{
    if (b->cap - b->len < bytes) {
        size_t cap = 2 * b->cap + bytes;
        b->bytes = arena_grow(task_arena(b->task), b->bytes, b->len, cap);
        b->cap = cap;
    }
    return b->bytes + b->len;
}

void redis_batch_argv(struct redis_batch *b, struct str key, size_t argc, const struct str *argv)
{
    (void)key;
    struct redis_command c = {.argc = argc, .argv = argv};
    size_t bytes = redis_encoded_bytes(&c);
    if (b->err || b->len + bytes > REDIS_COMMAND_BYTES_MAX) {
        b->err = ERR_LIMIT;
        return;
    }
    redis_encode(&c, batch_room(b, bytes));
    b->len += bytes;
    if (b->count++ == 0)
        b->first_len = bytes;
}

static int batch_ask(struct redis_batch *b, const struct redis_reply **replies)
{
    struct redis *r = b->redis;
    if (b->err)
        return task_fail(b->task, b->err, "a Redis batch is over the limit of %d bytes",
                         REDIS_COMMAND_BYTES_MAX);
    if (b->count == 0)
        return 0;
    int err = admit(b->task, r, b->count, b->len);
    if (err)
        return err;
    buf_add(&r->out, b->bytes, b->len);
    struct redis_wait w = {.task = b->task, .replies = replies};
    redis_queue_put(r, &w, b->count, b->len, b->first_len);
    return await(b->task, r, &w);
}

int redis_batch_run(struct redis_batch *b, const struct redis_reply *const **replies)
{
    struct redis *r = b->redis;
    const struct redis_reply **all = arena_alloc(task_arena(b->task), b->count * sizeof(*all));
    redis_enter(r);
    int err = batch_ask(b, all);
    redis_batch_init(b, b->task, r);
    if (!err)
        *replies = all;
    return redis_leave(r, err);
}
