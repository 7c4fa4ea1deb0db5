#include "wire/http_client/http_client_test_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"

struct link {
    struct peer *peer;
    struct watch watch;
    struct buf in;
    size_t served;
};

static int say(struct task *t, struct link *c, const char *text)
{
    return watch_write(t, &c->watch, text, strlen(text));
}

static int say_str(struct task *t, struct link *c, const char *status, struct str body)
{
    char *head = arena_printf(task_arena(t),
                              "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n"
                              "Content-Length: %zu\r\n\r\n",
                              status, body.n);
    int err = say(t, c, head);
    return err ? err : watch_write(t, &c->watch, body.p, body.n);
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define PIECE   "6\r\npiece \r\n"

static int hello(struct task *t, struct link *c, struct str body)
{
    (void)body;
    return say_str(t, c, "200 OK", STR("hello"));
}

static int echo(struct task *t, struct link *c, struct str body)
{
    return say_str(t, c, "200 OK", body);
}

static int echo_all(struct task *t, struct link *c, struct str body)
{
    (void)body; /* which ends the request */
    return say_str(t, c, "200 OK", str_dup(task_arena(t), buf_str(&c->peer->last)));
}

static int slow(struct task *t, struct link *c, struct str body)
{
    int err = task_sleep(t, 50);
    return err ? err : hello(t, c, body);
}

static int stall(struct task *t, struct link *c, struct str body)
{
    (void)body;
    char byte;
    size_t got;
    int err = watch_read(t, &c->watch, &byte, 1, &got); /* until the client has gone */
    return err ? err : ERR_CLOSED;
}

static int say_pieces(struct task *t, struct link *c, const char *head)
{
    int err = say(t, c, head);
    for (int i = 0; i < 5 && !err; i++) {
        err = task_sleep(t, 20);
        if (!err)
            err = say(t, c, PIECE);
    }
    return err ? err : say(t, c, "0\r\n\r\n");
}

static int trickle(struct task *t, struct link *c, struct str body)
{
    (void)body;
    return say_pieces(t, c, CHUNKED);
}

static int trickle_404(struct task *t, struct link *c, struct str body)
{
    (void)body;
    return say_pieces(t, c, "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static int big(struct task *t, struct link *c, struct str body)
{
    body = str_from(memset(arena_alloc(task_arena(t), 100000), 'b', 100000), 100000);
    return say_str(t, c, "200 OK", body);
}

static int say_forever(struct task *t, struct link *c, const char *start, const char *more)
{
    int err = say(t, c, start);
    while (!err)
        err = say(t, c, more);
    return err;
}

static int endless(struct task *t, struct link *c, struct str body)
{
    (void)body;
    return say_forever(t, c, CHUNKED, PIECE);
}

static int long_head(struct task *t, struct link *c, struct str body)
{
    (void)body;
    return say_forever(t, c, "HTTP/1.1 200 OK\r\n", "X-More: and more\r\n");
}

static int second_dies(struct task *t, struct link *c, struct str body)
{
    return c->served == 1 ? hello(t, c, body) : ERR_CLOSED;
}

static int retry_date(struct task *t, struct link *c, struct str body)
{
    (void)body;
    char date[TIME_HTTP_BYTES];
    time_http((loop_wall_ms(task_loop(t)) + 60000) * 1000, date);
    const char *head = "HTTP/1.1 429 Slow Down\r\nContent-Length: 0\r\nRetry-After: ";
    return say(t, c, arena_printf(task_arena(t), "%s%s\r\n\r\n", head, date));
}

static int raw(struct task *t, struct link *c, struct str body)
{
    (void)body;
    struct peer *p = c->peer;
    struct str left = p->raw;
    int err = 0;
    while (left.n > 0 && !err) {
        size_t n = p->raw_step && p->raw_step < left.n ? p->raw_step : left.n;
        err = watch_write(t, &c->watch, left.p, n);
        left = str_from(left.p + n, left.n - n);
        if (!err && left.n > 0)
            err = task_sleep(t, 1);
    }
    if (!err && p->raw_late.n > 0 && !(err = task_sleep(t, 5)))
        err = watch_write(t, &c->watch, p->raw_late.p, p->raw_late.n);
    return err || p->raw_stays ? err : ERR_CLOSED;
}

static int leave_soon(struct task *t, struct link *c, struct str body)
{
    int err = hello(t, c, body);
    return err ? err : task_sleep(t, (int64_t)(loop_random(task_loop(t)) % 4));
}

static const struct action {
    const char *path;
    int (*act)(struct task *t, struct link *c, struct str body); /* NULL: say text */
    const char *text;
    bool hang_up;
} actions[] = {
    {"/ok", hello, NULL, false},
    {"/echo", echo, NULL, false},
    {"/echo-all", echo_all, NULL, false},
    {"/slow", slow, NULL, false},
    {"/stall", stall, NULL, false},
    {"/trickle", trickle, NULL, false},
    {"/trickle-404", trickle_404, NULL, false},
    {"/big", big, NULL, false},
    {"/endless", endless, NULL, false},
    {"/long-head", long_head, NULL, false},
    {"/die", NULL, "", true},
    {"/half", NULL, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789", true},
    {"/garbage", NULL, "SSH-2.0-OpenSSH_9.2\r\n", true},
    {"/leave", hello, NULL, true},
    {"/second-dies", second_dies, NULL, false},
    {"/hint", NULL,
     "HTTP/1.1 103 Early Hints\r\nContent-Type: hint\r\n\r\n"
     "HTTP/1.1 429 Slow Down\r\nretry-after:  7 \r\nContent-Length: 0\r\n\r\n",
     false},
    {"/retry-date", retry_date, NULL, false},
    {"/raw", raw, NULL, false},
    {"/leave-soon", leave_soon, NULL, true},
    {"*", NULL, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
     true}, /* HTTP/2's preface */
    {"/redirect", NULL, "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n", false},
};

/* Other than 0: the connection ends. */
static int act(struct task *t, struct link *c, struct str path, struct str body)
{
    const struct action *a = actions;
    while (!str_eq(path, str_of(a->path)))
        check(++a < actions + sizeof actions / sizeof *actions);
    int err = a->act ? a->act(t, c, body) : say(t, c, a->text);
    return a->hang_up && !err ? ERR_CLOSED : err;
}

/* Bytes of the whole request at the front of c->in; 0: not all of it is there. */
static size_t request_bytes(struct link *c, size_t *head_bytes)
{
    struct str in = buf_str(&c->in);
    ptrdiff_t end = str_find(in, STR("\r\n\r\n"));
    if (end < 0)
        return 0;
    *head_bytes = (size_t)end + 4;
    int64_t body_bytes = 0;
    for (struct str lines = str_from(in.p, (size_t)end); lines.p;) {
        struct str value = str_cut(&lines, '\n'), name = str_cut(&value, ':');
        if (value.p && str_ieq(name, STR("content-length")))
            check(str_to_i64(str_trim(str_cut(&value, '\r')), &body_bytes));
    }
    size_t all = *head_bytes + (size_t)body_bytes;
    return all <= in.n ? all : 0;
}

static int read_request(struct task *t, struct link *c, size_t *head_bytes, size_t *all)
{
    while ((*all = request_bytes(c, head_bytes)) == 0) {
        size_t got;
        int err = watch_read(t, &c->watch, buf_reserve(&c->in, 65536), 65536, &got);
        if (err || got == 0)
            return err ? err : ERR_CLOSED;
        buf_added(&c->in, got);
    }
    return 0;
}

static int serve_one(struct task *t, struct link *c)
{
    struct peer *p = c->peer;
    size_t head_bytes = 0, all;
    int err = read_request(t, c, &head_bytes, &all);
    if (err)
        return err;
    p->requests++;
    c->served++;
    buf_clear(&p->last);
    buf_add(&p->last, buf_str(&c->in).p, all);
    struct str request = str_dup(task_arena(t), buf_str(&p->last)), line = request;
    buf_consume(&c->in, all);
    str_cut(&line, ' ');
    if (++p->busy > p->busiest)
        p->busiest = p->busy;
    err = act(t, c, str_cut(&line, ' '), str_from(request.p + head_bytes, all - head_bytes));
    p->busy--;
    return err;
}

static void serve(struct task *t, void *arg)
{
    struct link *c = arg;
    c->peer->open++;
    int err = 0;
    while (!err) {
        struct task_scope s = task_scope(t);
        err = serve_one(t, c);
        task_scope_end(t, s);
    }
    c->peer->open--;
    watch_release(&c->watch);
    close(c->watch.fd);
    buf_release(&c->in);
    free(c);
}

static void accept_all(struct task *t, void *arg)
{
    struct peer *p = arg;
    while (watch_wait(t, &p->watch, WATCH_READ) == 0) {
        int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            watch_drained(&p->watch, WATCH_READ);
            continue;
        }
        int on = 1;
        check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
        struct link *c = calloc(1, sizeof *c);
        check(c);
        c->peer = p;
        buf_init(&c->in);
        watch_init(&c->watch, task_loop(t), fd);
        p->accepted++;
        check(task_go(&p->group, "peer connection", serve, c) == 0);
    }
}

static void start(struct peer *p, struct loop *l, struct sockaddr *a, socklen_t n)
{
    *p = (struct peer){.fd = socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    check(p->fd >= 0 && bind(p->fd, a, n) == 0 && listen(p->fd, 4096) == 0);
    check(getsockname(p->fd, a, &n) == 0);
    buf_init(&p->last);
    group_init(&p->group, l);
    watch_init(&p->watch, l, p->fd);
    check(task_go(&p->group, "peer", accept_all, p) == 0);
}

void peer_open(struct peer *p, struct loop *l)
{
    struct sockaddr_in a = {.sin_family = AF_INET}; /* every address, for tests with many hosts */
    start(p, l, (struct sockaddr *)&a, sizeof a);
    p->port = ntohs(a.sin_port);
}

void peer_open_ipv6(struct peer *p, struct loop *l)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    start(p, l, (struct sockaddr *)&a, sizeof a);
    p->port = ntohs(a.sin6_port);
}

void peer_close(struct task *t, struct peer *p)
{
    group_cancel(&p->group);
    check(group_join(t, &p->group) == 0);
    watch_release(&p->watch);
    close(p->fd);
    buf_release(&p->last);
}

const char *peer_url(struct task *t, const struct peer *p, const char *path)
{
    if (p->front_port)
        return arena_printf(task_arena(t), "https://127.0.0.1:%d%s", p->front_port, path);
    return arena_printf(task_arena(t), "http://127.0.0.1:%d%s", p->port, path);
}

void crowd(struct task *t, size_t count, task_fn *fn, void *arg)
{
    struct group g;
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < count; i++)
        check(task_go(&g, "one of many", fn, arg) == 0);
    check(group_join(t, &g) == 0);
}
