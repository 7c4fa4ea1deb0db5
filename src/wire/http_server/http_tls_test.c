/* The server over TLS: what a client of our own sees, and what becomes of clients that stop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/tap.h"
#include "wire/http_server/http_harness.h"
#include "wire/tls.h"
#include "wire/tls/tls_test_certs.h"

#define LARGE_BYTES (3 << 20)
#define FILE_BYTES  300000

static char dir[] = "/tmp/http_tls_test.XXXXXX";
static char *large;
static struct http_files *files;

static char *path_of(const char *file)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    return path;
}

/* --- the server --- */

static int get_hello(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "text/plain", STR("hello"));
}

static int get_large(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "text/plain", str_from(large, LARGE_BYTES));
}

static int post_echo(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str body;
    int err = http_body(t, x, &body);
    return err ? err : http_reply(t, x, 200, "text/plain", body);
}

static int get_cut(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = http_stream_begin(t, x, 200, "text/plain");
    if (!err)
        err = http_stream_write(t, x, STR("some"));
    http_abort(x);
    return err;
}

static int get_file(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply_file(t, x, files, STR("file.txt"));
}

static const struct http_route routes[] = {
    {"GET", "/hello", get_hello, 0},
    {"GET", "/large", get_large, 0},
    {"POST", "/echo", post_echo, LARGE_BYTES},
    {"GET", "/cut", get_cut, 0},
    {"GET", "/file", get_file, 0},
};

struct place {
    struct site site;
    struct tls_server *tls;
    struct tls_context *context; /* of the client; NULL on virtual time */
};

static void open_place(struct task *t, struct place *p, bool h2, struct http_options o)
{
    char problem[TLS_PROBLEM_BYTES] = "", cert[100], key[100];
    snprintf(cert, sizeof cert, "%s", path_of("leaf.crt"));
    snprintf(key, sizeof key, "%s", path_of("leaf.key"));
    p->tls = tls_server_new(&(struct tls_server_options){cert, key, h2}, problem);
    check(p->tls);
    o.tls = p->tls;
    o.http2 = h2;
    p->context = NULL;
    site_open(t, &p->site, o, routes, sizeof routes / sizeof *routes, NULL);
}

static void open_with_client(struct task *t, struct place *p, bool h2)
{
    open_place(t, p, h2, (struct http_options){.behind_tls = false});
    p->context = tls_context_new(&(struct tls_options){.ca_file = path_of("leaf.crt")});
    check(tls_context_ready(t, p->context) == 0);
}

static void close_place(struct task *t, struct place *p)
{
    site_close(t, &p->site);
    tls_server_free(p->tls);
    if (p->context)
        tls_context_free(p->context);
}

/* --- the client --- */

struct secure {
    struct client c;
    struct tls *tls;
};

static enum tls_step shake_hands(struct task *t, struct secure *s)
{
    enum tls_step step;
    while ((step = tls_handshake(s->tls)) == TLS_WAITS) {
        watch_drained(&s->c.watch, tls_wants(s->tls));
        check(watch_wait(t, &s->c.watch, tls_wants(s->tls)) == 0);
    }
    return step;
}

static void open_secure(struct task *t, struct place *p, struct secure *s, bool h2)
{
    client_open(t, &p->site, &s->c);
    s->tls = tls_new(p->context, s->c.watch.fd, &(struct tls_peer){.host = "api.test", .h2 = h2});
}

static void close_secure(struct secure *s)
{
    tls_end(s->tls);
    client_close(&s->c);
}

static void send_secure(struct task *t, struct secure *s, struct str text)
{
    while (text.n > 0) {
        ssize_t n = tls_send(s->tls, text.p, text.n);
        if (n > 0) {
            text = str_skip(text, (size_t)n);
            continue;
        }
        check(errno == EAGAIN);
        watch_drained(&s->c.watch, tls_wants(s->tls));
        check(watch_wait(t, &s->c.watch, tls_wants(s->tls)) == 0);
    }
}

/* Until so many bytes are there, or the end: then false, and errno is 0 if it was a proper one. */
static bool read_secure(struct task *t, struct secure *s, size_t bytes)
{
    while (s->c.in.len < bytes) {
        char *at = buf_reserve(&s->c.in, 20000);
        ssize_t n = tls_recv(s->tls, at, buf_room(&s->c.in));
        if (n > 0) {
            buf_added(&s->c.in, (size_t)n);
        } else if (n == 0 || errno != EAGAIN) {
            errno = n == 0 ? 0 : errno;
            return false;
        } else {
            watch_drained(&s->c.watch, tls_wants(s->tls));
            check(watch_wait(t, &s->c.watch, tls_wants(s->tls)) == 0);
        }
    }
    return true;
}

/* A reply with a body of so many bytes is taken out. */
static bool replied(struct task *t, struct secure *s, const char *body, size_t n)
{
    ptrdiff_t end;
    while ((end = str_find(buf_str(&s->c.in), STR("\r\n\r\n"))) < 0)
        if (!read_secure(t, s, s->c.in.len + 1))
            return false;
    size_t all = (size_t)end + 4 + n;
    if (!read_secure(t, s, all))
        return false;
    const char *in = buf_str(&s->c.in).p;
    bool same = memcmp(in, "HTTP/1.1 200", 12) == 0 && memcmp(in + end + 4, body, n) == 0;
    buf_consume(&s->c.in, all);
    return same;
}

/* --- */

static void test_exchanges(struct task *t, void *arg)
{
    (void)arg;
    struct place p;
    struct secure s;
    open_with_client(t, &p, false);
    open_secure(t, &p, &s, true);
    is_int(shake_hands(t, &s), TLS_DONE, "handshake %s", tls_problem(s.tls));
    ok(!tls_is_h2(s.tls), "a server without HTTP/2 does not choose it");
    send_secure(t, &s, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
    ok(replied(t, &s, "hello", 5), "a reply");
    send_secure(t, &s, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /hello HTTP/1.1\r\nHost: x"));
    ok(replied(t, &s, "hello", 5), "pipelined: the first");
    send_secure(t, &s, STR("\r\n\r\n"));
    ok(replied(t, &s, "hello", 5), "and the second, whose head comes in pieces");
    send_secure(t, &s, STR("GET /large HTTP/1.1\r\nHost: x\r\n\r\n"));
    check(task_sleep(t, 20) == 0); /* the sockets are full */
    ok(replied(t, &s, large, LARGE_BYTES), "3 MB");
    const char *head = arena_printf(
        task_arena(t), "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", LARGE_BYTES);
    send_secure(t, &s, str_of(head));
    send_secure(t, &s, str_from(large, LARGE_BYTES));
    ok(replied(t, &s, large, LARGE_BYTES), "3 MB there and back");
    send_secure(t, &s, STR("GET /file HTTP/1.1\r\nHost: x\r\n\r\n"));
    ok(replied(t, &s, large, FILE_BYTES), "a file");
    send_secure(t, &s, STR("GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    ok(replied(t, &s, "hello", 5), "the last");
    ok(!read_secure(t, &s, 1) && errno == 0, "then the end, which TLS vouches for");
    close_secure(&s);
    close_place(t, &p);
}

static void test_cut(struct task *t, void *arg)
{
    (void)arg;
    struct place p;
    struct secure s;
    open_with_client(t, &p, false);
    open_secure(t, &p, &s, false);
    check(shake_hands(t, &s) == TLS_DONE);
    send_secure(t, &s, STR("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n"));
    ok(!read_secure(t, &s, 100000) && errno == ECONNRESET, "a cut is no end");
    close_secure(&s);
    close_place(t, &p);
}

static void test_http2(struct task *t, void *arg)
{
    (void)arg;
    struct place p;
    struct secure s;
    open_with_client(t, &p, true);
    open_secure(t, &p, &s, true);
    check(shake_hands(t, &s) == TLS_DONE);
    ok(tls_is_h2(s.tls), "HTTP/2 by ALPN");
    send_secure(t, &s, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
    ok(read_secure(t, &s, 9) && buf_str(&s.c.in).p[3] == 4, "settings come");
    close_secure(&s);

    open_secure(t, &p, &s, false);
    check(shake_hands(t, &s) == TLS_DONE);
    send_secure(t, &s, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
    ok(read_secure(t, &s, 12) && memcmp(buf_str(&s.c.in).p, "HTTP/1.1 505", 12) == 0,
       "a preface after ALPN has chosen HTTP/1.1 is no request");
    close_secure(&s);
    close_place(t, &p);
}

static void test_no_tls(struct task *t, void *arg)
{
    (void)arg;
    struct place p;
    struct client c;
    open_place(t, &p, true, (struct http_options){.behind_tls = false});
    client_open(t, &p.site, &c);
    client_send(t, &c, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
    struct reply r = client_reply(t, &c);
    ok(r.status == 400 && reply_has(&r, "https"), "plain HTTP is told what this port is");
    ok(client_at_end(t, &c), "and the connection ends");
    client_close(&c);
    client_open(t, &p.site, &c);
    client_send(t, &c, STR("\x16\x03\x01\x00\x05hello"));
    (void)client_read(t, &c); /* an alert */
    ok(client_at_end(t, &c), "a broken handshake ends the connection");
    client_close(&c);
    check(task_sleep(t, 2000) == 0);
    is_int((int64_t)http_server_connections(p.site.server), 0, "no connection is left");
    close_place(t, &p);
}

/* The first record of a handshake that never ends. */
#define HELLO_BEGINS STR("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")

static void test_stops(struct task *t, void *arg)
{
    (void)arg;
    struct place p;
    struct client silent, half, leaves;
    open_place(t, &p, true, (struct http_options){.behind_tls = false});
    int64_t began_ms = loop_now_ms(task_loop(t));
    client_open(t, &p.site, &silent);
    client_open(t, &p.site, &half);
    client_open(t, &p.site, &leaves);
    client_send(t, &half, HELLO_BEGINS);
    client_send(t, &leaves, HELLO_BEGINS);
    check(task_sleep(t, 100) == 0);
    is_int((int64_t)http_server_connections(p.site.server), 3, "three are in their handshake");
    client_close(&leaves);
    check(task_sleep(t, 100) == 0);
    is_int((int64_t)http_server_connections(p.site.server), 2, "one that leaves is gone at once");
    ok(client_at_end(t, &silent) && client_at_end(t, &half), "the others are ended");
    is_int(loop_now_ms(task_loop(t)) - began_ms, http_limits_default.header_ms, "in time");
    client_close(&silent);
    client_close(&half);
    check(task_sleep(t, 10) == 0);
    is_int((int64_t)http_server_connections(p.site.server), 0, "no connection is left");
    close_place(t, &p);
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct place p;
    struct client one, two;
    struct http_options o = {.limits = http_limits_default};
    o.limits.connections_max = 1;
    open_place(t, &p, false, o);
    client_open(t, &p.site, &one);
    check(task_sleep(t, 10) == 0);
    client_open(t, &p.site, &two);
    ok(client_at_end(t, &two), "one too many is closed: a handshake would cost more");
    client_close(&one);
    client_close(&two);
    close_place(t, &p);
}

static void test_delay(struct task *t, void *arg)
{
    (void)arg;
    struct place p;
    struct client c;
    struct http_options o = {.limits = http_limits_default, .tls_delay_ms = 15000};
    open_place(t, &p, false, o);
    client_open(t, &p.site, &c);
    client_send(t, &c, STR("\x16\x03\x01\x00\x05hello"));
    int64_t began_ms = loop_now_ms(task_loop(t));
    (void)client_read(t, &c);
    is_int(loop_now_ms(task_loop(t)) - began_ms, 15000, "a slow handshake answers late");
    client_close(&c);
    close_place(t, &p);
}

static void make_files(void)
{
    check(mkdtemp(dir));
    struct test_cert leaf = test_cert_make(
        &(struct test_cert_spec){.name = "api.test", .san = "DNS:api.test", .authority = true});
    test_cert_save(&leaf, path_of("leaf.crt"));
    test_key_save(&leaf, path_of("leaf.key"));
    test_cert_free(&leaf);
    large = malloc(LARGE_BYTES);
    check(large);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)(i * 2654435761u >> 20);
    FILE *f = fopen(path_of("file.txt"), "w");
    check(f && fwrite(large, 1, FILE_BYTES, f) == FILE_BYTES && fclose(f) == 0);
    files = http_files_new(dir);
    check(files);
}

int main(void)
{
    make_files();
    tap_task(test_exchanges, NULL, true);
    tap_task(test_cut, NULL, true);
    tap_task(test_http2, NULL, true);
    tap_task(test_no_tls, NULL, false);
    tap_task(test_stops, NULL, false);
    tap_task(test_many, NULL, false);
    tap_task(test_delay, NULL, false);
    http_files_free(files);
    free(large);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", dir);
    check(system(command) == 0);
    return tap_done();
}
