/* Calls by HTTP/1.1 over plain connections and the same over TLS: both behave alike. */
#include "wire/http_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tap.h"
#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_client_test_front.h"

struct fixture {
    struct peer peer;
    struct front front;
    struct http_client *client;
};

static bool over_tls;

static void fixture_open(struct fixture *f, struct task *t, struct http_client_options o)
{
    peer_open(&f->peer, task_loop(t));
    if (over_tls) {
        front_open_for_peer(&f->front, task_loop(t), &f->peer);
        o.ca_file = f->front.ca_file;
    }
    f->client = http_client_new(task_loop(t), &o);
}

static void fixture_close(struct fixture *f, struct task *t)
{
    is_int((int64_t)f->client->in_flight, 0, "no call is left");
    http_client_free(f->client);
    if (over_tls)
        front_close(t, &f->front);
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
    check(task_sleep(t, 1) == 0); /* making certificates has taken time */
    test->fn(t, &f);
    fixture_close(&f, t);
}

/* Runs fn with a fixture; the rest are options of its client. */
#define RUN(fn, real_time, ...) tap_task(with_fixture, &(struct test){fn, {__VA_ARGS__}}, real_time)

static int call_path(struct fixture *f, struct task *t, const char *path, struct http_response *r)
{
    struct http_call call = {.url = peer_url(t, &f->peer, path)};
    return http_call(t, f->client, &call, r);
}

static int post(struct fixture *f, struct task *t, const char *path, struct str body,
                struct http_response *r)
{
    struct http_call call = {.url = peer_url(t, &f->peer, path), .body = body};
    return http_call(t, f->client, &call, r);
}

static bool last_has(struct fixture *f, const char *text)
{
    return str_find(buf_str(&f->peer.last), str_of(text)) >= 0;
}

/* --- one call --- */

static void test_requests(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(call_path(f, t, "/ok", &r), 0, "GET");
    is_int(r.status, 200, "its status");
    is_int(r.http_version, 11, "its version");
    is_int(r.retry_after_ms, -1, "no Retry-After");
    is_str(r.body, STR("hello"), "its body");
    is_int(r.body.p[r.body.n], '\0', "the body ends with NUL");
    is_str(r.content_type, STR("text/plain"), "its type");
    ok(last_has(f, "GET /ok HTTP/1.1\r\n"), "no body means GET");
    ok(!last_has(f, "Accept-Encoding"), "no compression is asked for");
    ok(last_has(f, "User-Agent: millrace/"), "it names itself");

    is_int(post(f, t, "/echo", str_from("a\0b", 3), &r), 0, "POST");
    is_str(r.body, str_from("a\0b", 3), "all bytes of the body come back");
    ok(last_has(f, "POST /echo HTTP/1.1\r\n"), "a body means POST");
    ok(!last_has(f, "Content-Type"), "no type is made up");
    is_int(post(f, t, "/echo", STR(""), &r), 0, "POST of nothing");
    ok(last_has(f, "POST /echo") && last_has(f, "Content-Length: 0"), "has a length");

    char *large = memset(arena_alloc(task_arena(t), 3 << 20), 'x', 3 << 20);
    is_int(post(f, t, "/echo", str_from(large, 3 << 20), &r), 0, "POST of 3 MB");
    ok(str_eq(r.body, str_from(large, 3 << 20)), "comes back whole");
    ok(!last_has(f, "Expect:"), "without waiting for 100 Continue");
}

static void test_methods_and_headers(struct task *t, struct fixture *f)
{
    struct http_response r;
    struct str headers[] = {STR("Authorization: Bearer secret"), STR("content-type: a/b"),
                            STR("X-Empty:"), STR("User-Agent: else")};
    struct http_call call = {.method = "PUT",
                             .url = peer_url(t, &f->peer, "/echo"),
                             .headers = headers,
                             .header_count = 4,
                             .body = STR("{}")};
    is_int(http_call(t, f->client, &call, &r), 0, "PUT with headers");
    ok(last_has(f, "PUT /echo HTTP/1.1\r\n"), "the method is sent");
    ok(last_has(f, "\r\nAuthorization: Bearer secret\r\n"), "a header is sent");
    ok(last_has(f, "\r\ncontent-type: a/b\r\n"), "the type is sent");
    ok(last_has(f, "\r\nX-Empty:\r\n"), "an empty header is sent");
    ok(last_has(f, "\r\nUser-Agent: else\r\n") && !last_has(f, "millrace/"),
       "a caller may name itself");
    ok(last_has(f, "Content-Length: 2\r\n"), "the body has a length");

    call = (struct http_call){.method = "DELETE", .url = peer_url(t, &f->peer, "/ok")};
    is_int(http_call(t, f->client, &call, &r), 0, "DELETE");
    ok(last_has(f, "DELETE /ok HTTP/1.1\r\n"), "the method is sent");
    ok(!last_has(f, "secret") && !last_has(f, "a/b") && !last_has(f, "Content-Length"),
       "and nothing of the call before");
    call = (struct http_call){.method = "POST", .url = peer_url(t, &f->peer, "/ok")};
    is_int(http_call(t, f->client, &call, &r), 0, "POST without a body");
    ok(last_has(f, "POST /ok") && last_has(f, "Content-Length: 0"), "has a length");
}

/* The server sends a body even to HEAD, so the connection must be closed. */
static void test_head(struct task *t, struct fixture *f)
{
    struct http_response r;
    struct http_call call = {.method = "HEAD", .url = peer_url(t, &f->peer, "/big")};
    is_int(http_call(t, f->client, &call, &r), 0, "HEAD of a large page is within the limit");
    is_int(r.status, 200, "its status");
    is_str(r.body, STR(""), "no body");
    ok(last_has(f, "HEAD /big HTTP/1.1\r\n"), "the method is sent");
}

static void expect_invalid(struct fixture *f, struct task *t, struct http_call call,
                           const char *what)
{
    struct http_response r;
    is_int(http_call(t, f->client, &call, &r), ERR_INVALID, "%s is refused", what);
    ok(!strstr(task_error(t), "secret"), "without telling secrets: %s", task_error(t));
}

static void test_invalid(struct task *t, struct fixture *f)
{
    const char *url = peer_url(t, &f->peer, "/ok");
    static const struct str headers[] = {
        STR("X: a\r\nY: secret"),          STR("X: a\nY: secret"), STR("secret without colon"),
        STR("bad name: secret"),           STR(": secret"),        STR("Content-Length: 7"),
        STR("Transfer-Encoding: chunked"), STR("X: a\0b"),         STR("Expect: 100-continue"),
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        expect_invalid(f, t,
                       (struct http_call){.url = url, .headers = &headers[i], .header_count = 1},
                       arena_printf(task_arena(t), "header %zu", i));
    static const char *const urls[] = {"ftp://127.0.0.1/x",
                                       "file:///etc/passwd",
                                       "http://user:secret@127.0.0.1/",
                                       "127.0.0.1/x",
                                       "",
                                       "http://127.0.0.1:99999/",
                                       "http://127.0.0.1/a b",
                                       "http://b\303\274cher.test/"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        expect_invalid(f, t, (struct http_call){.url = urls[i]}, urls[i]);
    char *long_url = memset(arena_zalloc(task_arena(t), 20001), 'x', 20000);
    memcpy(long_url, url, strlen(url));
    expect_invalid(f, t, (struct http_call){.url = long_url}, "a URL of 20,000 bytes");
    expect_invalid(f, t, (struct http_call){.url = url, .method = "GET /x"},
                   "a method of two words");
    expect_invalid(f, t, (struct http_call){.url = url, .method = ""}, "an empty method");
    is_int((int64_t)f->peer.requests, 0, "nothing was sent");
}

static void test_environment(struct task *t, void *arg)
{
    (void)arg;
    char dir[] = "/tmp/http_client_test.XXXXXX";
    check(mkdtemp(dir));
    char *netrc = arena_printf(task_arena(t), "%s/.netrc", dir);
    FILE *file = fopen(netrc, "w");
    check(file);
    fputs("machine 127.0.0.1 login me password secret\n", file);
    fclose(file);
    setenv("HOME", dir, 1);
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("HTTP_PROXY", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    struct fixture f;
    fixture_open(&f, t, (struct http_client_options){.connect_ms = 0});
    struct http_response r;
    is_int(call_path(&f, t, "/ok", &r), 0, "no proxy of the environment is used for 127.0.0.1");
    ok(!last_has(&f, "Authorization"), "nor .netrc");
    is_int(call_path(&f, t, "/redirect", &r), 0, "a redirect is a reply");
    is_int(r.status, 302, "that is not followed");
    is_str(r.location, STR("/ok"), "but named");
    fixture_close(&f, t);
    unsetenv("http_proxy");
    unsetenv("HTTP_PROXY");
    unsetenv("ALL_PROXY");
    unlink(netrc);
    rmdir(dir);
}

static void test_retry_after(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(call_path(f, t, "/hint", &r), 0, "a reply after an interim one");
    is_int(r.status, 429, "the real status counts");
    is_int(r.retry_after_ms, 7000, "Retry-After in seconds");
    ok(!r.content_type.p, "the interim reply's headers do not count");
    is_int(call_path(f, t, "/retry-date", &r), 0, "a reply with a date");
    ok(r.retry_after_ms > 57000 && r.retry_after_ms <= 60000, "Retry-After as date: %lld ms",
       (long long)r.retry_after_ms);
}

/* --- what goes wrong --- */

static void test_failures(struct task *t, struct fixture *f)
{
    struct http_response r = {.status = 77};
    is_int(post(f, t, "/die", STR("x"), &r), ERR_UNCERTAIN, "closed after the request");
    is_int(call_path(f, t, "/die", &r), ERR_UNCERTAIN, "the same for GET");
    is_int(call_path(f, t, "/half", &r), ERR_UNCERTAIN, "closed within the body");
    is_int(call_path(f, t, "/garbage", &r), ERR_PROTO, "not HTTP");
    is_int(call_path(f, t, "/long-head", &r), ERR_LIMIT, "a head without end");
    is_int((int64_t)f->peer.requests, 5, "as many requests as calls");
    is_int(r.status, 77, "a failed call leaves the response alone");

    int fd = socket(AF_INET, SOCK_STREAM, 0); /* bound, but not listening */
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    check(bind(fd, (struct sockaddr *)&a, n) == 0);
    check(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    struct http_call call = {
        .url = arena_printf(task_arena(t), "http://127.0.0.1:%d/x?key=secret", ntohs(a.sin_port))};
    is_int(http_call(t, f->client, &call, &r), ERR_UNAVAILABLE, "no server listens");
    ok(strstr(task_error(t), "127.0.0.1") && !strstr(task_error(t), "secret"),
       "the message names the host only: %s", task_error(t));
    ok(strstr(task_error(t), ": no connection: Connection refused"), "and the cause");
    close(fd);
}

static int silent_listener(int *port, int fill[], int count)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    check(bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 0) == 0);
    check(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    *port = ntohs(a.sin_port);
    for (int i = 0; i < count;
         i++) { /* the backlog is full: the kernel drops further connections */
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (struct sockaddr *)&a, n);
    }
    return fd;
}

static void test_connect_time(struct task *t, struct fixture *f)
{
    int port, fill[4];
    int fd = silent_listener(&port, fill, 4);
    struct http_call call = {.url = arena_printf(task_arena(t), "http://127.0.0.1:%d/", port)};
    struct http_response r;
    int64_t start_us = loop_now_us(task_loop(t));
    is_int(http_call(t, f->client, &call, &r), ERR_UNAVAILABLE, "no connection in time");
    int64_t ms = (loop_now_us(task_loop(t)) - start_us) / 1000;
    ok(ms >= 200 && ms < 2000, "after the time for it: %lld ms", (long long)ms);
    ok(strstr(task_error(t), ": no connection: no answer in time"), "says so: %s", task_error(t));
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(fd);
}

static void test_limits(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(call_path(f, t, "/big", &r), ERR_LIMIT, "an announced length over the limit");
    is_int(call_path(f, t, "/endless", &r), ERR_LIMIT, "a reply without end");
    struct http_call call = {.url = peer_url(t, &f->peer, "/big"), .reply_bytes_max = 100000};
    is_int(http_call(t, f->client, &call, &r), 0, "a call with a limit of its own");
    is_int((int64_t)r.body.n, 100000, "gets all of it");
    call = (struct http_call){.url = peer_url(t, &f->peer, "/trickle"), .reply_bytes_max = 29};
    is_int(http_call(t, f->client, &call, &r), ERR_LIMIT, "one byte too many");
    call.reply_bytes_max = 30;
    is_int(http_call(t, f->client, &call, &r), 0, "just as many as allowed");
}

/* --- connections --- */

struct burst {
    struct fixture *f;
    const char *path;
    struct str body;
    int64_t deadline_ms;
    size_t good, timeout, canceled, uncertain, other;
};

static void burst_call(struct task *t, void *arg)
{
    struct burst *b = arg;
    struct http_response r;
    if (b->deadline_ms)
        task_deadline(t, b->deadline_ms);
    int err = b->body.p ? post(b->f, t, b->path, b->body, &r) : call_path(b->f, t, b->path, &r);
    size_t *slot = &b->other;
    if (err == 0 && r.status == 200)
        slot = &b->good;
    else if (err == ERR_TIMEOUT)
        slot = &b->timeout;
    else if (err == ERR_CANCELED)
        slot = &b->canceled;
    else if (err == ERR_UNCERTAIN)
        slot = &b->uncertain;
    ++*slot;
}

static void burst_start(struct group *g, struct burst *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(task_go(g, "call", burst_call, b) == 0);
}

static void test_reuse(struct task *t, struct fixture *f)
{
    struct http_response r;
    int failed = 0;
    for (int i = 0; i < 20; i++)
        failed += post(f, t, "/echo", STR("x"), &r) != 0;
    is_int(failed, 0, "20 calls one after the other");
    is_int((int64_t)f->peer.accepted, 1, "take one connection");

    struct burst b = {.f = f, .path = "/slow"};
    crowd(t, 50, burst_call, &b);
    is_int((int64_t)b.good, 50, "50 calls at once");
    is_int((int64_t)f->peer.accepted, 50, "take a connection each");
    crowd(t, 50, burst_call, &b);
    is_int((int64_t)b.good, 100, "and 50 more");
    is_int((int64_t)f->peer.accepted, 50, "take the same ones");
}

static bool socket_is_ours(int fd, int port)
{
    struct sockaddr_in a;
    socklen_t n = sizeof a;
    return getpeername(fd, (struct sockaddr *)&a, &n) == 0 && a.sin_family == AF_INET &&
           ntohs(a.sin_port) == port;
}

static void test_socket(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(call_path(f, t, "/ok", &r), 0, "a call that leaves a connection");
    int found = 0;
    for (int fd = 0; fd < 100; fd++) {
        if (!socket_is_ours(fd, over_tls ? f->front.port : f->peer.port))
            continue;
        found++;
        int ms = 0;
        socklen_t n = sizeof ms;
        check(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &n) == 0);
        ok(ms > 0, "a peer that vanished is noticed after %d ms", ms);
        ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "it is closed on exec");
    }
    is_int(found, 1, "one socket was looked at");
}

static void test_connection_limit(struct task *t, struct fixture *f)
{
    struct burst b = {.f = f, .path = "/slow"};
    crowd(t, 14, burst_call, &b);
    is_int((int64_t)b.good, 14, "14 calls with 3 connections allowed");
    is_int((int64_t)f->peer.accepted, 3, "take 3 connections");
    is_int((int64_t)f->peer.busiest, 3, "that are used at the same time");
}

static void test_many_connections(struct task *t, struct fixture *f)
{
    struct burst b = {.f = f, .path = "/slow", .body = STR("x")};
    crowd(t, 1000, burst_call, &b);
    is_int((int64_t)b.good, 1000, "1,000 calls with 600 connections allowed");
    is_int((int64_t)f->peer.accepted, 600, "take 600 connections");
}

/* An idle connection is closed: noticed before anything is sent. */
static void test_stale_connection(struct task *t, struct fixture *f)
{
    struct http_response r;
    for (int i = 0; i < 3; i++) {
        is_int(post(f, t, "/leave", STR("x"), &r), 0, "a call over a fresh connection");
        check(task_sleep(t, 20) == 0);
    }
    is_int((int64_t)f->peer.requests, 3, "none was repeated");
}

/* The connection is closed after the request was read: it may have been done. */
static void test_dying_connection(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(post(f, t, "/second-dies", STR("1"), &r), 0, "first POST of a connection");
    is_int(post(f, t, "/second-dies", STR("2"), &r), ERR_UNCERTAIN, "second POST");
    ok(strstr(task_error(t), "://127.0.0.1:") && strstr(task_error(t), "lost"), "says why: %s",
       task_error(t));
    is_int((int64_t)f->peer.requests, 2, "was sent once only");
    struct http_call call = {.method = "POST", .url = peer_url(t, &f->peer, "/second-dies")};
    is_int(http_call(t, f->client, &call, &r), 0, "first POST without a body");
    is_int(http_call(t, f->client, &call, &r), ERR_UNCERTAIN, "second POST without a body");
    is_int((int64_t)f->peer.requests, 4, "was sent once only");
    is_int(call_path(f, t, "/second-dies", &r), 0, "first GET of a connection");
    is_int(call_path(f, t, "/second-dies", &r), 0, "second GET is repeated on a fresh one");
    is_int((int64_t)f->peer.requests, 7, "as it may be");
}

static void test_many_hosts(struct task *t, struct fixture *f)
{
    int failed = 0;
    for (int i = 0; i < 300; i++) {
        struct task_scope s = task_scope(t);
        struct http_call call = {.url = arena_printf(task_arena(t), "http://127.0.%d.%d:%d/ok",
                                                     i / 200, i % 200 + 1, f->peer.port)};
        struct http_response r;
        failed += http_call(t, f->client, &call, &r) != 0;
        task_scope_end(t, s);
    }
    is_int(failed, 0, "300 hosts one after the other");
    check(task_sleep(t, 20) == 0);
    ok(f->peer.open <= 256, "the oldest are forgotten: %zu connections", f->peer.open);
}

/* On virtual time. */
static void test_idle(struct task *t, struct fixture *f)
{
    struct burst b = {.f = f, .path = "/slow"};
    crowd(t, 300, burst_call, &b);
    is_int((int64_t)f->peer.open, 300, "connections are kept");
    check(task_sleep(t, 25000) == 0);
    crowd(t, 100, burst_call, &b);
    check(task_sleep(t, 20000) == 0);
    ok(f->peer.open >= 100 && f->peer.open < 300, "unused ones are closed: %zu are left",
       f->peer.open);
    check(task_sleep(t, 30000) == 0);
    is_int((int64_t)f->peer.open, 0, "later the others");
    crowd(t, 3, burst_call, &b);
    is_int((int64_t)b.good, 403, "and opened again");
}

/* --- ending early --- */

static void test_deadline(struct task *t, struct fixture *f)
{
    struct burst b = {.f = f, .path = "/stall", .body = STR("x"), .deadline_ms = 100};
    int64_t start_us = loop_now_us(task_loop(t));
    crowd(t, 20, burst_call, &b); /* 15 of them do not even begin */
    int64_t ms = (loop_now_us(task_loop(t)) - start_us) / 1000;
    is_int((int64_t)b.timeout, 20, "the deadline ends a call");
    ok(ms >= 90 && ms < 1000, "at once: %lld ms", (long long)ms);
    check(task_sleep(t, 20) == 0);
    is_int((int64_t)f->peer.open, 0, "and its connection");
    is_int((int64_t)f->peer.requests, 5, "those that waited were not sent");
    struct http_response r;
    is_int(call_path(f, t, "/ok", &r), 0, "the next call works");
}

static void test_cancel(struct task *t, struct fixture *f)
{
    struct burst b = {.f = f, .path = "/stall"};
    struct group g;
    group_init(&g, task_loop(t));
    burst_start(&g, &b, 20);
    check(task_sleep(t, 50) == 0);
    is_int((int64_t)f->client->in_flight, 20, "20 calls are under way");
    int64_t start_us = loop_now_us(task_loop(t));
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    int64_t ms = (loop_now_us(task_loop(t)) - start_us) / 1000;
    is_int((int64_t)b.canceled, 20, "all are cancelled");
    ok(ms < 500, "at once: %lld ms", (long long)ms);
    is_int((int64_t)f->client->in_flight, 0, "none is under way");
}

/* --- in pieces --- */

struct pieces {
    struct loop *loop;
    size_t count, bytes;
    int64_t first_us, last_us;
    size_t stop_after;
};

static int take_piece(void *arg, struct str piece)
{
    struct pieces *p = arg;
    p->last_us = loop_now_us(p->loop);
    if (p->count++ == 0)
        p->first_us = p->last_us;
    p->bytes += piece.n;
    return p->stop_after && p->count == p->stop_after ? ERR_CONFLICT : 0;
}

static void test_pieces(struct task *t, struct fixture *f)
{
    struct pieces p = {.loop = task_loop(t)};
    struct http_call call = {
        .url = peer_url(t, &f->peer, "/trickle"), .on_piece = take_piece, .arg = &p};
    struct http_response r;
    is_int(http_call(t, f->client, &call, &r), 0, "a reply in pieces");
    is_int((int64_t)p.bytes, 30, "all of it");
    ok(p.count >= 2 && p.last_us - p.first_us > 20000, "as they come: %zu over %lld us", p.count,
       (long long)(p.last_us - p.first_us));
    is_str(r.body, STR(""), "none is collected");

    p = (struct pieces){.loop = task_loop(t)};
    call.url = peer_url(t, &f->peer, "/trickle-404");
    is_int(http_call(t, f->client, &call, &r), 0, "an error reply");
    is_str(r.body, STR("piece piece piece piece piece "), "is collected");
    is_int((int64_t)p.count, 0, "not given in pieces");

    p = (struct pieces){.loop = task_loop(t), .stop_after = 2};
    call.url = peer_url(t, &f->peer, "/endless");
    is_int(http_call(t, f->client, &call, &r), ERR_CONFLICT, "the taker can stop it");
    is_int((int64_t)p.count, 2, "and hears no more");
    p = (struct pieces){.loop = task_loop(t)};
    call.reply_bytes_max = 1000;
    is_int(http_call(t, f->client, &call, &r), ERR_LIMIT, "the limit counts for pieces too");
    p = (struct pieces){.loop = task_loop(t)};
    call.url = peer_url(t, &f->peer, "/big");
    call.reply_bytes_max = 50000;
    is_int(http_call(t, f->client, &call, &r), ERR_LIMIT, "a reply that says it is too long");
    is_int((int64_t)p.count, 0, "is refused before its first piece");
}

/* --- metrics --- */

static bool shows(struct metrics *m, const char *line)
{
    struct buf out;
    buf_init(&out);
    metrics_render(m, &out);
    bool found = str_find(buf_str(&out), str_of(line)) >= 0;
    buf_release(&out);
    return found;
}

static void test_metrics(struct task *t, void *arg)
{
    (void)arg;
    struct metrics *m = metrics_open(-1, 1, 0);
    struct fixture f;
    fixture_open(&f, t, (struct http_client_options){.metrics = m});
    struct http_response r;
    is_int(call_path(&f, t, "/ok", &r), 0, "a call");
    is_int(call_path(&f, t, "/ok", &r), 0, "a call");
    is_int(call_path(&f, t, "/hint", &r), 0, "a call");
    is_int(call_path(&f, t, "/die", &r), ERR_UNCERTAIN, "a call");
    ok(shows(m, "millrace_http_client_calls_total{result=\"2xx\",node=\"0\"} 2\n"), "2xx");
    ok(shows(m, "millrace_http_client_calls_total{result=\"4xx\",node=\"0\"} 1\n"), "4xx");
    ok(shows(m, "millrace_http_client_calls_total{result=\"uncertain\",node=\"0\"} 1\n"), "errors");
    ok(shows(m, "millrace_http_client_in_flight{node=\"0\"} 0\n"), "in flight: none");
    ok(shows(m, "millrace_http_client_seconds_count{node=\"0\"} 4\n"), "durations");
    struct burst b = {.f = &f, .path = "/stall"};
    struct group g;
    group_init(&g, task_loop(t));
    burst_start(&g, &b, 3);
    check(task_sleep(t, 20) == 0);
    ok(shows(m, "millrace_http_client_in_flight{node=\"0\"} 3\n"), "in flight: three");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    ok(shows(m, "millrace_http_client_calls_total{result=\"canceled\",node=\"0\"} 3\n"),
       "canceled");
    fixture_close(&f, t);
    metrics_close(m);
}

static void run_all(void)
{
    RUN(test_requests, true);
    RUN(test_methods_and_headers, true, .reply_bytes_max = 10);
    RUN(test_head, true, .reply_bytes_max = 10);
    RUN(test_invalid, true);
    tap_task(test_environment, NULL, true);
    RUN(test_retry_after, true);
    RUN(test_failures, true);
    RUN(test_connect_time, true, .connect_ms = 200);
    RUN(test_limits, true, .reply_bytes_max = 99999);
    RUN(test_reuse, true);
    RUN(test_socket, true);
    RUN(test_connection_limit, true, .h1_connections_max = 3);
    RUN(test_many_connections, true, .h1_connections_max = 600);
    RUN(test_stale_connection, true);
    RUN(test_dying_connection, true);
    if (!over_tls)
        RUN(test_many_hosts, true);
    RUN(test_idle, false);
    RUN(test_deadline, true, .h1_connections_max = 5);
    RUN(test_cancel, true, .h1_connections_max = 5);
    RUN(test_pieces, true);
    tap_task(test_metrics, NULL, true);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    check(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    check(setrlimit(RLIMIT_NOFILE, &files) == 0);
    run_all();
    over_tls = true;
    run_all();
    return tap_done();
}
