/* The connection. The link task connects, reads, reconnects with backoff; a second one writes. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "loop/backoff.h"
#include "loop/net.h"
#include "wire/redis/redis_map.h"

#define BACKOFF                                                                                    \
    {                                                                                              \
        .ms = 50, .ms_max = 2000                                                                   \
    }
/* After a refused login, or where a cluster is: it takes an operator. */
#define REFUSED_RETRY_MS 5000
/* A connection lost sooner than this does not reset the backoff. */
#define LASTED_MS 1000
/* Calls that waited all of command_ms end with ERR_TIMEOUT before the connection is closed. */
#define QUIET_GRACE_MS 100
#define READ_BYTES     65536
#define IDLE_BYTES     (4 * 1024 * 1024) /* kept by an empty buffer */
#define NO_CLUSTER     "a Redis Cluster, which millrace cannot use yet: name a single one"

#define KEEPALIVE_IDLE_S     60
#define KEEPALIVE_INTERVAL_S 10
#define KEEPALIVE_COUNT      3

void redis_trouble(struct redis *r, enum log_level level, const char *fmt, ...)
{
    char text[sizeof(r->problem)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (strcmp(text, r->problem) == 0)
        return;
    memcpy(r->problem, text, sizeof(text));
    if (!r->silent)
        log_line(level, "redis", "%s: %s%s", r->name, text,
                 level == LOG_INFO ? "" : "; calls fail until it is connected");
}

/* Reader and writer both see the end of the connection and return. */
static void cut(struct redis *r)
{
    shutdown(r->watch.fd, SHUT_RDWR);
}

static void on_quiet(void *arg)
{
    struct redis *r = arg;
    int64_t due_ms = r->quiet_since_ms + r->command_ms + QUIET_GRACE_MS;
    if (r->waiting == 0)
        return;
    if (due_ms > loop_now_ms(r->loop)) {
        timer_set(&r->quiet, due_ms);
        return;
    }
    redis_trouble(r, LOG_WARN, "closed the connection: no answer for %lld ms",
                  (long long)r->command_ms);
    cut(r);
}

void redis_link_expects_answer(struct redis *r)
{
    r->quiet_since_ms = loop_now_ms(r->loop);
    if (r->quiet.pos == 0) /* else it is set, and sets itself again if it fires too early */
        timer_set(&r->quiet, r->quiet_since_ms + r->command_ms + QUIET_GRACE_MS);
}

void redis_link_has_output(struct redis *r)
{
    if (r->writer)
        task_wake(r->writer);
    r->writer = NULL;
}

/* Writes r->out until it is empty. */
static int flush(struct task *t, struct redis *r)
{
    while (r->out.len > 0) {
        int err = watch_wait(t, &r->watch, WATCH_WRITE);
        if (err)
            return err;
        struct str s = buf_str(&r->out);
        ssize_t n =
            r->tls ? tls_task_send(t, r->tls, s) : send(r->watch.fd, s.p, s.n, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            watch_drained(&r->watch, WATCH_WRITE);
        else if (n < 0 && errno != EINTR)
            return task_fail(t, ERR_CLOSED, "%s", strerror(errno));
        if (n <= 0)
            continue;
        metric_add(r->metrics.writes, 1);
        r->written += (uint64_t)n;
        buf_consume(&r->out, (size_t)n);
    }
    buf_shrink(&r->out, IDLE_BYTES);
    return 0;
}

static void write_commands(struct task *t, void *arg)
{
    struct redis *r = arg;
    for (;;) {
        if (flush(t, r))
            break;
        r->writer = t;
        if (task_wait(t))
            break;
    }
    r->writer = NULL;
    cut(r); /* else the reader waits for replies to commands that were never sent */
}

/* At least one byte more in r->in. */
static int read_some(struct task *t, struct redis *r)
{
    size_t got;
    char *at = buf_reserve(&r->in, READ_BYTES);
    size_t room = buf_room(&r->in);
    int err = r->tls ? tls_task_read(t, r->tls, &r->watch, at, room, &got)
                     : watch_read(t, &r->watch, at, room, &got);
    if (err)
        return err;
    if (got == 0)
        return ERR_CLOSED;
    buf_added(&r->in, got);
    r->quiet_since_ms = loop_now_ms(r->loop);
    return 0;
}

/* Leaves a server that cannot serve now; the handshake then waits until it can. Replies to
 * commands that were sent already are still taken. */
static void notice_state(struct redis *r, const char *p)
{
    if (*p != '-' || r->state != REDIS_UP || r->front)
        return; /* in a cluster the call goes elsewhere, or is tried again */
    struct str words = str_from(p + 1, r->scan.pos - 3);
    /* A hanging script or a full disk ends without a reconnect. */
    if (!redis_says_leave(words))
        return;
    r->cluster = redis_says_cluster(words);
    if (r->cluster)
        redis_trouble(r, LOG_ERROR,
                      "closed the connection: the server is part of " NO_CLUSTER " (%.*s)",
                      STR_ARG(words));
    else
        redis_trouble(r, LOG_WARN, "closed the connection: the server says: %.*s", STR_ARG(words));
    r->state = REDIS_LEAVING;
}

/* Hands out every reply that is complete. */
static int take_replies(struct redis *r)
{
    for (;;) {
        struct str in = buf_str(&r->in);
        int got = redis_scan(&r->scan, in);
        if (got != 1)
            return got;
        notice_state(r, in.p);
        int err = redis_queue_answer(r, in.p);
        if (err)
            return err;
        buf_consume(&r->in, r->scan.pos);
        redis_scan_init(&r->scan);
        if (r->state == REDIS_LEAVING && r->waiting == 0)
            return ERR_CLOSED;
    }
}

static int read_replies(struct task *t, struct redis *r)
{
    for (;;) {
        int err = read_some(t, r);
        if (!err)
            err = take_replies(r);
        buf_shrink(&r->in, IDLE_BYTES);
        /* A flood of replies must not keep the other tasks from running. */
        if (!err && (r->watch.ready & WATCH_READ))
            err = task_yield(t);
        if (err)
            return err;
    }
}

static void keep_alive(int fd)
{
    int idle_s = KEEPALIVE_IDLE_S, interval_s = KEEPALIVE_INTERVAL_S, count = KEEPALIVE_COUNT;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static void hang_up(struct task *t, struct redis *r)
{
    if (r->tls)
        tls_task_end(t, r->tls);
    r->tls = NULL;
    watch_release(&r->watch);
    close(r->watch.fd);
}

static int secure(struct task *t, struct redis *r)
{
    struct tls_peer peer = {.host = r->url.addresses[r->address].host};
    return tls_task_connect(t, r->tls_context, &peer, &r->watch, &r->tls);
}

static int dial(struct task *t, struct redis *r)
{
    const struct redis_address *at = &r->url.addresses[r->address];
    int fd;
    int err = r->tls_context ? tls_context_ready(t, r->tls_context) : 0;
    if (err)
        return err;
    err = r->url.path ? net_connect_unix(t, r->url.path, &fd)
                      : net_connect_tcp(t, at->host, at->port, &fd);
    if (err)
        return err;
    if (!r->url.path)
        keep_alive(fd); /* net_connect_tcp has turned it and TCP_NODELAY on */
    watch_init(&r->watch, r->loop, fd);
    buf_clear(&r->in);
    buf_clear(&r->out);
    redis_scan_init(&r->scan);
    err = r->tls_context ? secure(t, r) : 0;
    if (err)
        hang_up(t, r);
    return err;
}

static void say(struct redis *r, size_t argc, const struct str *argv)
{
    struct redis_command c = {.argc = argc, .argv = argv};
    size_t bytes = redis_encoded_bytes(&c);
    redis_encode(&c, buf_reserve(&r->out, bytes));
    buf_added(&r->out, bytes);
}

static int hear(struct task *t, struct redis *r, const char *to, const struct redis_reply **out)
{
    int got;
    while ((got = redis_scan(&r->scan, buf_str(&r->in))) == 0) {
        int err = read_some(t, r);
        if (err)
            return err == ERR_CLOSED ? task_fail(t, err, "it hung up before answering %s", to)
                                     : err;
    }
    if (got < 0)
        return task_fail(t, got, "what answers %s there does not speak Redis", to);
    *out = redis_build(task_arena(t), &r->scan, buf_str(&r->in).p);
    buf_consume(&r->in, r->scan.pos);
    redis_scan_init(&r->scan);
    if ((*out)->type != REDIS_ERROR)
        return 0;
    return task_fail(t, redis_says_not_now((*out)->str) ? ERR_UNAVAILABLE : ERR_REFUSED,
                     "it refused %s: %s", to, (*out)->str.p);
}

/* "run_id" of "…\r\nrun_id:6f3c…\r\n…"; STR_NULL when it has no such line. */
static struct str info_field(struct str info, struct str name)
{
    while (info.p) {
        struct str value = str_cut(&info, '\n');
        if (str_ends(value, STR("\r")))
            value.n--;
        struct str field = str_cut(&value, ':');
        if (value.p && str_eq(field, name))
            return value;
    }
    return STR_NULL;
}

static int check_server(struct task *t, struct redis *r, const struct redis_reply *info)
{
    struct str run_id = info_field(info->str, STR("run_id"));
    if (info->type != REDIS_STRING || run_id.n != sizeof(r->run_id) - 1)
        return task_fail(t, ERR_PROTO, "its INFO has no run_id");
    if (str_eq(info_field(info->str, STR("loading")), STR("1")))
        return task_fail(t, ERR_UNAVAILABLE, "it is still loading its data");
    bool cluster = str_eq(info_field(info->str, STR("cluster_enabled")), STR("1"));
    /* In a cluster a replica says where its master is. */
    if (!r->front && str_eq(info_field(info->str, STR("role")), STR("slave")))
        return task_fail(t, ERR_UNAVAILABLE, "it is a read-only replica");
    r->cluster = cluster && !r->front;
    if (r->cluster)
        return task_fail(t, ERR_REFUSED, "it is " NO_CLUSTER);
    if (!cluster && (r->front || r->url.address_count > 1))
        return task_fail(t, ERR_REFUSED, "it is a single Redis, and no part of a cluster");
    memcpy(r->run_id, run_id.p, run_id.n);
    return 0;
}

/* Logs in, selects the database and checks the server's role, in one round trip. */
static int shake_hands(struct task *t, struct redis *r)
{
    const struct redis_url *u = &r->url;
    if (u->user.p)
        say(r, 3, (struct str[]){STR("AUTH"), u->user, u->password});
    else if (u->password.p)
        say(r, 2, (struct str[]){STR("AUTH"), u->password});
    char db[STR_INT_BYTES];
    if (u->db)
        say(r, 2, (struct str[]){STR("SELECT"), str_digits(db, u->db)});
    say(r, 1, (struct str[]){STR("INFO")});

    const struct redis_reply *reply;
    int err = flush(t, r);
    if (!err && u->password.p)
        err = hear(t, r, "AUTH", &reply);
    if (!err && u->db)
        err = hear(t, r, "SELECT", &reply);
    if (!err)
        err = hear(t, r, "INFO", &reply);
    return err ? err : check_server(t, r, reply);
}

/* On success the connection is ready for commands; else there is none. */
static int connect_once(struct task *t, struct redis *r)
{
    struct task_scope scope = task_scope(t);
    task_deadline(t, r->connect_ms);
    r->cluster = false;
    int err = dial(t, r);
    if (!err) {
        err = shake_hands(t, r);
        if (err)
            hang_up(t, r);
    }
    if (err && r->url.address_count > 1)
        r->address = (r->address + 1) % r->url.address_count;
    task_scope_end(t, scope);
    return err;
}

static void come_up(struct redis *r)
{
    r->queued = r->written = 0;
    r->state = REDIS_UP;
    r->problem[0] = '\0';
    if (r->epoch > 0)
        metric_add(r->metrics.reconnects, 1);
    if (r->front) {
        r->epoch = ++r->front->map->connections;
        redis_map_changed(r->front->map);
    } else {
        r->epoch++;
        metric_set(r->metrics.up, 1);
    }
    if (!r->silent)
        log_info("redis", "%s: connected, run id %s", r->name, r->run_id);
    waitq_wake_all(&r->first);
}

static void go_down(struct redis *r, int err)
{
    if (err == ERR_PROTO)
        redis_trouble(r, LOG_ERROR, "closed the connection: the server broke the protocol");
    else if (err == ERR_CANCELED)
        redis_trouble(r, LOG_INFO, "closed");
    else if (r->problem[0] == '\0')
        redis_trouble(r, LOG_WARN, "lost the connection");
    r->state = REDIS_DOWN;
    if (r->front)
        redis_map_changed(r->front->map);
    else
        metric_set(r->metrics.up, 0);
    timer_clear(&r->quiet);
    redis_queue_fail_all(r);
}

/* From the first command to the loss of the connection. */
static void serve(struct task *t, struct redis *r)
{
    struct group writers;
    group_init(&writers, r->loop);
    int64_t since_ms = loop_now_ms(r->loop);
    come_up(r);
    int err = task_go(&writers, "redis-writer", write_commands, r);
    if (!err)
        err = read_replies(t, r);
    go_down(r, err);
    group_cancel(&writers);
    int joined = group_join(t, &writers);
    (void)joined; /* an error means t was cancelled; the group is empty either way */
    hang_up(t, r);
    if (loop_now_ms(r->loop) - since_ms >= LASTED_MS)
        r->backoff = (struct backoff)BACKOFF;
}

static void explain(struct task *t, struct redis *r, int err)
{
    if (err == ERR_TIMEOUT)
        redis_trouble(r, LOG_WARN, "not reachable: no connection within %lld ms",
                      (long long)r->connect_ms);
    else if (err != ERR_CANCELED)
        redis_trouble(r, err == ERR_REFUSED || err == ERR_PROTO ? LOG_ERROR : LOG_WARN,
                      "not reachable: %s", task_error(t));
}

void redis_retire(struct task *t, struct redis *r)
{
    r->state = REDIS_CLOSED;
    snprintf(r->problem, sizeof(r->problem), "closed");
    waitq_wake_all(&r->first);
    while (r->users > 0)
        task_wait_always(t);
    r->link = NULL;
    r->ended = true;
    if (r->closing)
        redis_free(r);
}

void redis_link_run(struct task *t, void *arg)
{
    struct redis *r = arg;
    r->link = t;
    r->backoff = (struct backoff)BACKOFF;
    timer_init(&r->quiet, r->loop, on_quiet, r);
    snprintf(r->problem, sizeof(r->problem), "not connected yet");
    while (!r->closing && !task_canceled(t)) {
        int err = connect_once(t, r);
        if (err)
            explain(t, r, err);
        else
            serve(t, r);
        struct backoff refused = {.ms = REFUSED_RETRY_MS};
        if (backoff_wait(t, err == ERR_REFUSED || r->cluster ? &refused : &r->backoff))
            break;
    }
    redis_retire(t, r);
}
