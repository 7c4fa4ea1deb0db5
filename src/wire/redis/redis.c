#include "wire/redis.h"

#include <stdlib.h>

#include "base/log.h"
#include "wire/redis/redis_map.h"

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
    if (r->map) {
        static const char help[] =
            "Answers of nodes of the cluster that a call was sent again for.";
        m->moved = metric(all, METRIC_COUNTER, "millrace_redis_redirects_total",
                          arena_printf(&r->arena, "%s,kind=\"moved\"", name), help);
        m->asked = metric(all, METRIC_COUNTER, "millrace_redis_redirects_total",
                          arena_printf(&r->arena, "%s,kind=\"ask\"", name), help);
        m->told_later = metric(all, METRIC_COUNTER, "millrace_redis_redirects_total",
                               arena_printf(&r->arena, "%s,kind=\"later\"", name), help);
    }
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

static struct redis *make(struct loop *l)
{
    struct redis *r = check_memory(calloc(1, sizeof(*r)));
    r->loop = l;
    r->opened_ms = loop_now_ms(l);
    arena_init(&r->arena);
    buf_init(&r->in);
    buf_init(&r->out);
    waitq_init(&r->first);
    list_init(&r->scripts);
    return r;
}

static struct redis *start(struct redis *r, struct group *g)
{
    if (r->url.tls && !r->map)
        r->tls_context = tls_context_new(&(struct tls_options){.ca_file = r->url.ca_file});
    if (!task_go(g, "redis", r->map ? redis_map_run : redis_link_run, r))
        return r;
    redis_free(r);
    return NULL;
}

struct redis *redis_open(struct group *g, const struct redis_options *o)
{
    struct redis *r = make(g->loop);
    copy_options(r, o);
    if (o->cluster)
        r->map = redis_map_new(r, g);
    count_with(r, o->metrics);
    return start(r, g);
}

struct redis *redis_open_member(struct redis *front, struct group *g,
                                const struct redis_address *at)
{
    struct redis *r = make(front->loop);
    struct arena *a = &r->arena;
    struct redis_address *copy = ARENA_NEW(a, struct redis_address);
    *copy = (struct redis_address){arena_strdup(a, at->host), arena_strdup(a, at->port)};
    r->url = (struct redis_url){.address_count = 1,
                                .addresses = copy,
                                .tls = front->url.tls,
                                .ca_file = front->url.ca_file ? arena_strdup(a, front->url.ca_file)
                                                              : NULL};
    if (front->url.user.p)
        r->url.user = str_dup(a, front->url.user);
    if (front->url.password.p)
        r->url.password = str_dup(a, front->url.password);
    bool v6 = strchr(at->host, ':');
    r->name = arena_printf(a, "%s %s%s%s:%s", front->name, v6 ? "[" : "", at->host, v6 ? "]" : "",
                           at->port);
    r->silent = front->silent;
    r->connect_ms = front->connect_ms;
    r->command_ms = front->command_ms;
    r->waiting_max = front->waiting_max;
    r->metrics = front->metrics;
    r->front = front;
    return start(r, g);
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
    if (r->map)
        redis_map_free(r->map);
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
    return r->cluster || r->map;
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
    return redis_up(r) ? str_of(r->map ? r->map->run_id : r->run_id) : STR("");
}

/* The connection that the key's commands go over; NULL: there is none. */
static const struct redis *at_key(const struct redis *r, struct str key)
{
    return r->map ? redis_map_owner(r->map, key) : r;
}

bool redis_up_at(const struct redis *r, struct str key)
{
    const struct redis *at = at_key(r, key);
    return at && redis_up(at);
}

uint64_t redis_epoch_at(const struct redis *r, struct str key)
{
    const struct redis *at = at_key(r, key);
    return at ? at->epoch : 0;
}

struct str redis_run_id_at(const struct redis *r, struct str key)
{
    const struct redis *at = at_key(r, key);
    return at ? redis_run_id(at) : STR("");
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

int redis_wait_for_first(struct task *t, struct redis *r)
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

int redis_admit(struct task *t, struct redis *r, size_t count, size_t bytes)
{
    if (task_canceled(t))
        return ERR_CANCELED;
    if (task_time_left_ms(t) == 0)
        return ERR_TIMEOUT;
    if (r->epoch == 0) {
        int err = redis_wait_for_first(t, r);
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

int redis_await(struct task *t, struct redis *r, struct redis_wait *w)
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

int redis_ask(struct task *t, struct redis *r, bool asking, const struct redis_command *c,
              const struct redis_reply **out)
{
    static const char ask[] = "*1\r\n$6\r\nASKING\r\n";
    const struct redis_reply *both[2];
    size_t bytes = redis_encoded_bytes(c), before = asking ? sizeof(ask) - 1 : 0;
    size_t count = asking ? 2 : 1;
    int err = redis_admit(t, r, count, before + bytes);
    if (err)
        return err;
    if (asking)
        buf_add(&r->out, ask, before);
    redis_encode(c, buf_reserve(&r->out, bytes));
    buf_added(&r->out, bytes);
    struct redis_wait w = {.task = t, .replies = asking ? both : out};
    redis_queue_put(r, &w, count, before + bytes, before + bytes);
    err = redis_await(t, r, &w);
    if (!err && asking)
        *out = both[1];
    return err;
}

bool redis_says_cluster(struct str words)
{
    return str_starts(words, STR("MOVED ")) || str_starts(words, STR("ASK ")) ||
           str_starts(words, STR("CLUSTERDOWN ")) || str_starts(words, STR("TRYAGAIN "));
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

static int ask_once(struct task *t, struct redis *server, bool asking, void *call,
                    const struct redis_reply **out)
{
    return redis_ask(t, server, asking, call, out);
}

int redis_argv(struct task *t, struct redis *r, struct str key, size_t argc, const struct str *argv,
               const struct redis_reply **out)
{
    struct redis_command c = {.argc = argc, .argv = argv};
    const struct redis_reply *reply;
    redis_enter(r);
    int err = r->map ? redis_cluster_ask(t, r, key, ask_once, &c, &reply)
                     : redis_ask(t, r, false, &c, &reply);
    return redis_leave(r, err ? err : redis_verdict(t, reply, out));
}
