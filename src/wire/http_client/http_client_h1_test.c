/* Misbehaving servers on plain connections. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"
#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_client_test_peer.h"

#define SIZED "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\nhello"
#define CHUNKED                                                                                    \
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
#define TO_END "HTTP/1.1 200 OK\r\n\r\nhello"

struct fixture {
    struct peer peer;
    struct http_client *client;
};

static void fixture_open(struct fixture *f, struct task *t, struct http_client_options o)
{
    peer_open(&f->peer, task_loop(t));
    f->client = http_client_new(task_loop(t), &o);
}

static void fixture_close(struct fixture *f, struct task *t)
{
    is_int((int64_t)f->client->in_flight, 0, "no call is left");
    http_client_free(f->client);
    peer_close(t, &f->peer);
}

struct test {
    void (*fn)(struct task *t, struct fixture *f);
    struct http_client_options options;
};

static void with_fixture(struct task *t, void *arg)
{
    const struct test *test = arg;
    struct fixture f;
    fixture_open(&f, t, test->options);
    test->fn(t, &f);
    fixture_close(&f, t);
}

/* Runs fn with a fixture; the rest are options of its client. */
#define RUN(fn, real_time, ...) tap_task(with_fixture, &(struct test){fn, {__VA_ARGS__}}, real_time)

static int call(struct fixture *f, struct task *t, const char *path, struct str body,
                struct http_response *r)
{
    struct http_call c = {.url = peer_url(t, &f->peer, path), .body = body};
    return http_call(t, f->client, &c, r);
}

static int post(struct fixture *f, struct task *t, const char *path)
{
    struct http_response r;
    int err = call(f, t, path, STR("x"), &r);
    return !err && !str_eq(r.body, STR("hello")) ? ERR_NOT_FOUND : err;
}

static void let_settle(struct task *t)
{
    check(task_sleep(t, 20) == 0);
}

/* Sockets of this process connected to a port. */
static int connected_to(int port)
{
    int found = 0;
    for (int fd = 0; fd < 200; fd++) {
        struct sockaddr_in a = {.sin_family = 0};
        socklen_t n = sizeof a;
        found += getpeername(fd, (struct sockaddr *)&a, &n) == 0 && ntohs(a.sin_port) == port;
    }
    return found;
}

/* --- replies --- */

/* A reply that is cut off after each of its bytes is never taken for a whole one. */
static void test_cut(struct task *t, void *arg)
{
    struct str reply = str_of(arg);
    struct fixture f;
    fixture_open(&f, t, (struct http_client_options){.connect_ms = 0});
    size_t wrong = 0;
    for (size_t n = 0; n < reply.n; n++) {
        struct task_scope s = task_scope(t);
        f.peer.raw = str_from(reply.p, n);
        wrong += post(&f, t, "/raw") != ERR_UNCERTAIN;
        task_scope_end(t, s);
    }
    is_int((int64_t)wrong, 0, "a reply cut at each of its %zu bytes is uncertain", reply.n);
    f.peer.raw = reply;
    is_int(post(&f, t, "/raw"), 0, "the whole of it is a reply");
    is_int((int64_t)f.peer.requests, (int64_t)reply.n + 1, "none was sent twice");
    let_settle(t);
    is_int((int64_t)f.peer.open, 0, "no connection is left");
    fixture_close(&f, t);
}

static void test_trickle(struct task *t, struct fixture *f)
{
    static const struct str replies[] = {STR(SIZED), STR(CHUNKED), STR(TO_END)};
    f->peer.raw_step = 1;
    for (size_t i = 0; i < 3; i++) {
        f->peer.raw = replies[i];
        is_int(post(f, t, "/raw"), 0, "reply %zu, byte by byte", i);
    }
    let_settle(t);
    is_int((int64_t)f->peer.open, 0, "no connection is left");
}

static void test_junk(struct task *t, struct fixture *f)
{
    static const struct str junk[] = {
        STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n"),
        STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"),
        STR("HTTP/1.1 200 OK\r\n folded: x\r\n\r\n"),
        STR("HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
        STR("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        STR("HTTP/3 200\r\n\r\n"),
    };
    f->peer.raw_stays = true;
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        f->peer.raw = junk[i];
        is_int(post(f, t, "/raw"), ERR_PROTO, "junk %zu: %s", i, task_error(t));
        is_int(post(f, t, "/ok"), 0, "the next call is not disturbed");
    }
    is_int((int64_t)f->peer.accepted, 1 + sizeof junk / sizeof *junk, "each costs its connection");
    let_settle(t);
    is_int((int64_t)f->peer.open, 1, "that is closed");
}

/* What comes after a reply is never taken for the reply to the next call. */
static void test_too_much(struct task *t, struct fixture *f)
{
    f->peer.raw_stays = true;
    f->peer.raw = STR(SIZED "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad");
    is_int(post(f, t, "/raw"), 0, "a reply with another behind it");
    is_int(post(f, t, "/ok"), 0, "the next call has its own");
    is_int((int64_t)f->peer.accepted, 2, "over another connection");

    f->peer.raw = STR(SIZED);
    f->peer.raw_late = STR("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad");
    is_int(post(f, t, "/raw"), 0, "a reply, and another while the connection idles");
    let_settle(t);
    is_int(post(f, t, "/ok"), 0, "the next call has its own");
    is_int((int64_t)f->peer.accepted, 3, "over another connection");
    is_int(post(f, t, "/ok"), 0, "which is in order");
    is_int((int64_t)f->peer.accepted, 3, "and used again");

    f->peer.raw_late = STR_NULL;
    f->peer.raw = STR("HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n");
    struct http_response r;
    is_int(call(f, t, "/raw", STR("x"), &r), 0, "a 204 that speaks of a body");
    is_int(post(f, t, "/ok"), 0, "the next call has its own reply");
    is_int((int64_t)f->peer.accepted, 4, "over another connection");
    f->peer.raw = STR("HTTP/1.1 204 No\r\n\r\n");
    is_int(call(f, t, "/raw", STR("x"), &r), 0, "a 204 that does not");
    is_int(post(f, t, "/ok"), 0, "leaves its connection");
    is_int((int64_t)f->peer.accepted, 4, "in use");
}

/* A server for what the peer does not do: one connection, then act. */
struct server {
    int fd, port;
    struct watch watch;
    struct group group;
    int (*act)(struct task *t, struct server *s, struct watch *w);
    size_t accepted;
};

static void serve(struct task *t, void *arg)
{
    struct server *s = arg;
    while (s->fd >= 0 && watch_wait(t, &s->watch, WATCH_READ) == 0) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0) {
            watch_drained(&s->watch, WATCH_READ);
            continue;
        }
        s->accepted++;
        struct watch w;
        watch_init(&w, task_loop(t), fd);
        (void)s->act(t, s, &w);
        watch_release(&w);
        close(fd);
    }
}

static void server_stop_listening(struct server *s)
{
    watch_release(&s->watch);
    close(s->fd);
    s->fd = -1;
}

static int listen_here(int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 0) == 0);
    check(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void server_open(struct server *s, struct task *t,
                        int (*act)(struct task *t, struct server *s, struct watch *w))
{
    *s = (struct server){.act = act};
    s->fd = listen_here(&s->port);
    int small = 65536; /* buffers that are soon full */
    check(setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    check(setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    check(fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0);
    watch_init(&s->watch, task_loop(t), s->fd);
    group_init(&s->group, task_loop(t));
    check(task_go(&s->group, "server", serve, s) == 0);
}

static void server_close(struct server *s, struct task *t)
{
    group_cancel(&s->group);
    check(group_join(t, &s->group) == 0);
    if (s->fd >= 0)
        server_stop_listening(s);
}

static int read_some(struct task *t, struct watch *w)
{
    char some[4096];
    size_t got;
    int err = watch_read(t, w, some, sizeof some, &got);
    return !err && got == 0 ? ERR_CLOSED : err;
}

static int say(struct task *t, struct watch *w, const char *text)
{
    return watch_write(t, w, text, strlen(text));
}

/* Answers at once, and reads no more than it must. */
static int refuse_early(struct task *t, struct server *s, struct watch *w)
{
    (void)s;
    int err = read_some(t, w);
    if (!err)
        err = say(t, w, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!");
    return err ? err : task_sleep(t, 100);
}

/* Sends back what it reads, while it reads it. */
static int echo_at_once(struct task *t, struct server *s, struct watch *w)
{
    (void)s;
    char some[65536];
    size_t got;
    int err = say(t, w, "HTTP/1.1 200 OK\r\nContent-Length: 25165824\r\n\r\n");
    while (!err && !(err = watch_read(t, w, some, sizeof some, &got)) && got > 0)
        err = watch_write(t, w, some, got);
    return err;
}

static int post_to(struct task *t, struct http_client *c, int port, size_t n,
                   struct http_response *r)
{
    struct http_call call = {.url = arena_printf(task_arena(t), "http://127.0.0.1:%d/", port),
                             .body = str_from(arena_zalloc(task_arena(t), n), n)};
    return http_call(t, c, &call, r);
}

static void test_early_reply(struct task *t, void *arg)
{
    (void)arg;
    struct http_client_options o = {.reply_bytes_max = 30 << 20};
    struct http_client *c = http_client_new(task_loop(t), &o);
    struct server s;
    struct http_response r;
    task_deadline(t, 10000);
    server_open(&s, t, refuse_early);
    is_int(post_to(t, c, s.port, 12 << 20, &r), 0, "a reply before the request was read");
    is_int(r.status, 413, "is the reply");
    is_str(r.body, STR("no!"), "with its body");
    is_int(post_to(t, c, s.port, 12 << 20, &r), 0, "the next call");
    is_int((int64_t)s.accepted, 2, "takes another connection");
    server_close(&s, t);

    server_open(&s, t, echo_at_once);
    is_int(post_to(t, c, s.port, 24 << 20, &r), 0, "a reply while the request is sent");
    is_int((int64_t)r.body.n, 24 << 20, "is read meanwhile");
    server_close(&s, t);
    http_client_free(c);
}

/* --- connections --- */

/* The server closes about when the connection is used again: some of the calls may be lost, but
 * none may reach it twice. */
static void test_close_at_reuse(struct task *t, struct fixture *f)
{
    size_t good = 0, uncertain = 0, other = 0, calls = 300;
    for (size_t i = 0; i < calls; i++) {
        struct task_scope s = task_scope(t);
        int err = post(f, t, "/leave-soon");
        ++*(err == 0 ? &good : err == ERR_UNCERTAIN ? &uncertain : &other);
        check(task_sleep(t, (int64_t)(loop_random(task_loop(t)) % 4)) == 0);
        task_scope_end(t, s);
    }
    is_int((int64_t)other, 0, "%zu calls are good, %zu uncertain", good, uncertain);
    ok(f->peer.requests >= good && f->peer.requests <= calls, "%zu of %zu reached the server",
       f->peer.requests, calls);
}

/* A connection that the server has closed is given back without waiting for its next use. */
static void test_closed_while_idle(struct task *t, struct fixture *f)
{
    is_int(post(f, t, "/ok"), 0, "a call");
    is_int(connected_to(f->peer.port), 1, "leaves a connection");
    is_int(post(f, t, "/leave-soon"), 0, "one after which the server closes");
    for (int i = 0; i < 250 && connected_to(f->peer.port) > 0; i++)
        check(task_sleep(t, 20) == 0);
    is_int(connected_to(f->peer.port), 0, "leaves none");
}

/* A first reply, then the listener closes, and the second request's connection ends. */
static int die_for_good(struct task *t, struct server *s, struct watch *w)
{
    int err = read_some(t, w);
    if (!err)
        err = say(t, w, SIZED);
    server_stop_listening(s);
    return err ? err : read_some(t, w);
}

static void test_repeated_in_vain(struct task *t, void *arg)
{
    (void)arg;
    struct http_client *c = http_client_new(task_loop(t), &(struct http_client_options){0});
    struct server s;
    server_open(&s, t, die_for_good);
    struct http_call call = {.url = arena_printf(task_arena(t), "http://127.0.0.1:%d/", s.port)};
    struct http_response r;
    is_int(http_call(t, c, &call, &r), 0, "a GET");
    is_int(http_call(t, c, &call, &r), ERR_UNCERTAIN,
           "one that was sent and could not be repeated may have been handled");
    is_int(http_call(t, c, &call, &r), ERR_UNAVAILABLE, "the next was surely not sent");
    http_client_free(c);
    server_close(&s, t);
}

struct queue {
    struct fixture *f;
    const char *path;
    size_t good, begun;
    size_t order[1000]; /* in which calls ended */
};

static void queued_call(struct task *t, void *arg)
{
    struct queue *q = arg;
    size_t place = q->begun++;
    if (post(q->f, t, q->path) == 0)
        q->order[q->good++] = place;
}

static void test_queue(struct task *t, struct fixture *f)
{
    struct queue *q = ARENA_NEW(task_arena(t), struct queue);
    *q = (struct queue){.f = f, .path = "/ok"};
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 1000; i++)
        check(task_go(&g, "call", queued_call, q) == 0);
    check(group_join(t, &g) == 0);
    is_int((int64_t)q->good, 1000, "1,000 calls at once with 10 connections allowed");
    is_int((int64_t)f->peer.requests, 1000, "as many requests");
    is_int((int64_t)f->peer.accepted, 10, "take 10 connections");
    size_t late = 0;
    for (size_t i = 0; i < q->good; i++)
        late += q->order[i] > i + 10 || q->order[i] + 10 < i;
    is_int((int64_t)late, 0, "first come, first served");
}

static void test_ipv6(struct task *t, void *arg)
{
    (void)arg;
    struct peer p;
    peer_open_ipv6(&p, task_loop(t));
    struct http_client *c = http_client_new(task_loop(t), &(struct http_client_options){0});
    struct http_call call = {.url = arena_printf(task_arena(t), "http://[::1]:%d/ok", p.port)};
    struct http_response r;
    is_int(http_call(t, c, &call, &r), 0, "an IPv6 address");
    ok(str_find(buf_str(&p.last), str_printf(task_arena(t), "\r\nHost: [::1]:%d\r\n", p.port)) > 0,
       "keeps its brackets");
    call.url = arena_printf(task_arena(t), "http://localhost:%d/ok", p.port);
    is_int(http_call(t, c, &call, &r), 0, "a second address, without a server at the first");
    call.url = arena_printf(task_arena(t), "http://127.0.0.1:%d/ok", p.port);
    is_int(http_call(t, c, &call, &r), ERR_UNAVAILABLE, "no server: %s", task_error(t));
    http_client_free(c);
    peer_close(t, &p);
}

/* --- ending early --- */

static int never_read(struct task *t, struct server *s, struct watch *w)
{
    (void)s, (void)w;
    return task_sleep(t, 60000);
}

struct one {
    struct http_client *client;
    struct http_call call;
    int64_t deadline_ms;
    int err;
};

static void run_one(struct task *t, void *arg)
{
    struct one *o = arg;
    struct http_response r;
    if (o->deadline_ms)
        task_deadline(t, o->deadline_ms);
    o->err = http_call(t, o->client, &o->call, &r);
}

/* Ends one call by a cancellation or a deadline. */
static int end_after(struct task *t, int64_t ms, struct http_client *c, struct http_call call,
                     bool by_cancel)
{
    struct one o = {.client = c, .call = call, .deadline_ms = by_cancel ? 0 : ms};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "call", run_one, &o) == 0);
    if (by_cancel) {
        check(task_sleep(t, ms) == 0);
        group_cancel(&g);
    }
    check(group_join(t, &g) == 0);
    return o.err;
}

static int end_early(struct task *t, struct http_client *c, struct http_call call, bool by_cancel)
{
    return end_after(t, 30, c, call, by_cancel);
}

static void test_stages(struct task *t, struct fixture *f)
{
    struct server deaf;
    server_open(&deaf, t, never_read);
    is_int(post(f, t, "/ok"), 0, "a call that leaves a connection");
    char *large = arena_zalloc(task_arena(t), 20 << 20);
    const char *slow = arena_printf(task_arena(t), "http://127.0.0.1:%d/", deaf.port);
    f->peer.raw = STR("HTTP/1.1 200 OK\r\nContent-Le");
    f->peer.raw_stays = true;
    struct http_call calls[] = {
        {.url = slow, .body = str_from(large, 20 << 20)},
        {.url = peer_url(t, &f->peer, "/stall"), .body = STR("x")},
        {.url = peer_url(t, &f->peer, "/raw"), .body = STR("x")},
        {.url = peer_url(t, &f->peer, "/trickle"), .body = STR("x")},
    };
    static const char *const names[] = {"sending", "waiting", "reading the head",
                                        "reading the body"};
    for (int i = 0; i < 8; i++) {
        bool by_cancel = i % 2;
        is_int(end_early(t, f->client, calls[i / 2], by_cancel),
               by_cancel ? ERR_CANCELED : ERR_TIMEOUT, "ended while %s", names[i / 2]);
        let_settle(t);
        is_int(connected_to(i < 2 ? deaf.port : f->peer.port), 0, "no connection is left");
        is_int(post(f, t, "/ok"), 0, "the next call works");
        if (i < 2) { /* the deaf server serves one at a time */
            server_close(&deaf, t);
            server_open(&deaf, t, never_read);
            calls[0].url = arena_printf(task_arena(t), "http://127.0.0.1:%d/", deaf.port);
        }
    }
    server_close(&deaf, t);
}

/* Waiting for a connection to be free, and for one to be made. */
static void test_stages_before(struct task *t, struct fixture *f)
{
    struct one hog = {.client = f->client, .call = {.url = peer_url(t, &f->peer, "/stall")}};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "hog", run_one, &hog) == 0);
    let_settle(t);
    struct http_call c = {.url = peer_url(t, &f->peer, "/ok"), .body = STR("x")};
    is_int(end_early(t, f->client, c, false), ERR_TIMEOUT, "a deadline while queued");
    is_int(end_early(t, f->client, c, true), ERR_CANCELED, "cancelled while queued");
    is_int((int64_t)f->peer.requests, 1, "neither was sent");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    is_int(post(f, t, "/ok"), 0, "the place is free again");

    int port, fill[4], fd = listen_here(&port);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < 4; i++) { /* the backlog is full: the kernel drops further connections */
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (struct sockaddr *)&a, sizeof a);
    }
    int fds = dup(fd);
    close(fds);
    c.url = arena_printf(task_arena(t), "http://127.0.0.1:%d/", port);
    is_int(end_early(t, f->client, c, false), ERR_TIMEOUT, "a deadline while connecting");
    is_int(end_early(t, f->client, c, true), ERR_CANCELED, "cancelled while connecting");
    is_int(dup(fd), fds, "no socket is left");
    close(fds);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(fd);
}

static void test_too_late(struct task *t, struct fixture *f)
{
    is_int(post(f, t, "/ok"), 0, "a call that leaves a connection");
    int64_t old = task_deadline(t, 0);
    is_int(post(f, t, "/ok"), ERR_TIMEOUT, "a call after the deadline");
    task_deadline_restore(t, old);
    let_settle(t);
    is_int((int64_t)f->peer.requests, 1, "is not sent");
}

static int swallow_slowly(void *arg, struct str piece)
{
    *(size_t *)arg += piece.n;
    usleep(2000);
    return 0;
}

/* In a process of its own: on this loop it would have to wait. */
static pid_t start_flood(int listener)
{
    static char piece[65536];
    static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
    pid_t pid = fork();
    check(pid >= 0);
    while (pid == 0) {
        int fd = accept(listener, NULL, NULL), much = 4 << 20;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &much, sizeof much);
        ssize_t n = read(fd, piece, sizeof piece);
        if (n > 0)
            n = write(fd, head, sizeof head - 1);
        while (n > 0)
            n = write(fd, piece, sizeof piece);
        close(fd);
    }
    return pid;
}

/* A server that is always ready must not keep a call from its deadline, nor other tasks waiting. */
static void test_flood(struct task *t, struct fixture *f)
{
    int port, listener = listen_here(&port);
    pid_t pid = start_flood(listener);
    size_t bytes = 0;
    struct http_call c = {.url = arena_printf(task_arena(t), "http://127.0.0.1:%d/", port),
                          .on_piece = swallow_slowly,
                          .arg = &bytes};
    is_int(end_after(t, 200, f->client, c, false), ERR_TIMEOUT,
           "a reply without end meets the deadline");
    is_int(end_after(t, 200, f->client, c, true), ERR_CANCELED, "or is cancelled");
    ok(bytes > 0, "%zu bytes came meanwhile", bytes);
    kill(pid, SIGKILL);
    check(waitpid(pid, NULL, 0) == pid);
    close(listener);
}

/* The client remembers where the last call went. */
static void test_same_url(struct task *t, struct fixture *f)
{
    static const char *const paths[] = {"/ok", "/ok", "/ok#part", "/echo", "/ok", "/ok"};
    struct http_response r;
    int right = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        bool echo = strcmp(paths[i], "/echo") == 0;
        int err = call(f, t, paths[i], STR("x"), &r);
        struct str wanted = echo ? STR("POST /echo HTTP/1.1\r\n") : STR("POST /ok HTTP/1.1\r\n");
        right += !err && str_starts(buf_str(&f->peer.last), wanted);
    }
    is_int(right, sizeof paths / sizeof *paths, "every call goes where it says");

    for (int i = 0; i < HOSTS_MAX; i++) {
        struct http_call c = {.url = arena_printf(task_arena(t), "http://127.0.%d.%d:%d/ok",
                                                  i / 200 + 1, i % 200 + 1, f->peer.port)};
        check(http_call(t, f->client, &c, &r) == 0);
    }
    ok(f->client->last.host, "the host of the last call is remembered");
    httpc_host_free(f->client->last.host);
    ok(!f->client->last.host, "one that is forgotten is not remembered so, either");
    is_int(call(f, t, "/ok", STR("x"), &r), 0, "and is found anew");
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(test_same_url, true);
    tap_task(test_cut, SIZED, true);
    tap_task(test_cut, CHUNKED, true);
    RUN(test_trickle, true);
    RUN(test_junk, true);
    RUN(test_too_much, true);
    tap_task(test_early_reply, NULL, true);
    RUN(test_close_at_reuse, true);
    RUN(test_closed_while_idle, true);
    tap_task(test_repeated_in_vain, NULL, true);
    RUN(test_queue, true, .h1_connections_max = 10);
    tap_task(test_ipv6, NULL, true);
    RUN(test_stages, true, .h1_connections_max = 1);
    RUN(test_stages_before, true, .h1_connections_max = 1);
    RUN(test_too_late, true);
    RUN(test_flood, true, .reply_bytes_max = 100 << 20);
    return tap_done();
}
