/* The server as a whole: drain, limits on connections, addresses, cancelling. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/tap.h"
#include "wire/http_server/http_exchange.h"
#include "wire/http_server/http_harness.h"

#ifdef HAVE_VALGRIND
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

static int hello(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "text/plain", http_peer(x));
}

static int slow(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = task_sleep(t, 5000);
    return err ? err : http_reply(t, x, 200, "text/plain", STR("slow"));
}

static int events(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = sse_begin(t, x);
    while (!err && !http_draining(x))
        err = task_sleep(t, 100);
    return err;
}

struct memory {
    const char *at; /* where the first request got its own */
    int same;       /* requests that got it there */
};

static int remembering(struct task *t, struct http_exchange *x, void *ctx)
{
    struct memory *m = ctx;
    const char *at = arena_alloc(task_arena(t), 100);
    m->at = m->at ? m->at : at;
    m->same += m->at == at;
    return http_reply(t, x, 200, "text/plain", STR("ok"));
}

static const struct http_route routes[] = {
    {"GET", "/", hello, 0},        {"GET", "/slow", slow, 0},
    {"GET", "/events", events, 0}, {"GET", "/memory", remembering, 0},
    {"POST", "/", hello, 10},
};
#define COUNT     (sizeof(routes) / sizeof(routes[0]))
#define HOST      "Host: h\r\n"
#define GET(path) STR("GET " path " HTTP/1.1\r\n" HOST "\r\n")

static struct http_options with(size_t connections_max)
{
    struct http_options o = {.limits = http_limits_default};
    o.limits.connections_max = connections_max;
    return o;
}

static void draining(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client idle, fresh, busy, stream, last;
    site_open(t, &s, with(100), routes, COUNT, NULL);
    client_open(t, &s, &idle);
    client_send(t, &idle, GET("/"));
    is_int(client_reply(t, &idle).status, 200, "one is served and idle");
    client_open(t, &s, &fresh);
    client_open(t, &s, &busy);
    client_send(t, &busy, GET("/slow"));
    client_open(t, &s, &stream);
    client_send(t, &stream, GET("/events"));
    client_open(t, &s, &last);
    client_send(t, &last, GET("/"));
    (void)client_reply(t, &last);
    check(task_sleep(t, 1000) == 0);
    is_int((int64_t)http_server_connections(s.server), 5, "five connections");
    is_int(site_metric(&s, "millrace_http_connections"), 5, "the gauge agrees");

    client_send(t, &last, GET("/"));
    http_server_drain(s.server);
    is_int(client_reply(t, &last).status, 200, "a request that crosses the drain is answered");
    int64_t began = loop_now_ms(task_loop(t));
    ok(client_at_end(t, &idle), "the idle one ends");
    ok(loop_now_ms(task_loop(t)) - began < 1000, "soon");
    ok(!client_reply(t, &stream).cut, "the stream comes to its end");
    client_send(t, &fresh, GET("/"));
    struct reply r = client_reply(t, &fresh);
    ok(r.status == 200 && str_eq(reply_header(&r, "connection"), STR("close")),
       "one that was not served yet gets its answer");
    is_int(s.result, 1, "the server waits for the busy one");
    r = client_reply(t, &busy);
    ok(r.status == 200 && str_eq(reply_header(&r, "connection"), STR("close")), "which finishes");
    struct client *all[] = {&idle, &fresh, &busy, &stream, &last};
    for (int i = 0; i < 5; i++)
        client_close(all[i]);
    check(task_sleep(t, 1) == 0);
    is_int(s.result, 0, "then it is over");
    site_close(t, &s);
}

/* A request may cross the drain on the wire: it is still answered. */
static void drain_meets_request(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    site_open(t, &s, with(100), routes, COUNT, NULL);
    client_open(t, &s, &c);
    client_send(t, &c, GET("/"));
    is_int(client_reply(t, &c).status, 200, "served before the drain");
    http_server_drain(s.server);
    check(task_sleep(t, 100) == 0);
    client_send(t, &c, GET("/"));
    struct reply r = client_reply(t, &c);
    ok(r.status == 200 && str_eq(reply_header(&r, "connection"), STR("close")),
       "and once more just after it, for the last time");
    ok(client_at_end(t, &c), "then the connection ends");
    client_close(&c);
    site_close(t, &s);
}

static void drain_without_request(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    site_open(t, &s, with(100), routes, COUNT, NULL);
    client_open(t, &s, &c);
    check(task_sleep(t, 1) == 0);
    http_server_drain(s.server);
    int64_t began = loop_now_ms(task_loop(t));
    ok(client_at_end(t, &c), "a connection that asks nothing ends");
    is_int(loop_now_ms(task_loop(t)) - began, http_limits_default.header_ms, "after a grace");
    client_close(&c);
    check(task_sleep(t, 1) == 0);
    is_int(s.result, 0, "and does not hold up the drain");
    site_close(t, &s);
}

static void too_many(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client first, second, third;
    site_open(t, &s, with(2), routes, COUNT, NULL);
    client_open(t, &s, &first);
    client_open(t, &s, &second);
    client_send(t, &second, GET("/"));
    is_int(client_reply(t, &second).status, 200, "two connections are allowed");
    client_open(t, &s, &third);
    client_send(t, &third, GET("/"));
    struct reply r = client_reply(t, &third);
    ok(r.status == 503 && reply_has(&r, "too_many_connections"), "a third is told no");
    ok(str_eq(reply_header(&r, "connection"), STR("close")) &&
           str_eq(reply_header(&r, "retry-after"), STR("1")) && client_at_end(t, &third),
       "and to come back later");
    is_int(site_metric(&s, "millrace_http_refused_total{reason=\"too_many_connections\""), 1,
           "counted");
    client_close(&third);
    client_close(&first);
    check(task_sleep(t, 10) == 0);
    is_int(ask(t, &s, GET("/")).status, 200, "when one has left there is room");
    client_close(&second);
    site_close(t, &s);
}

static int no_delay(struct task *t, struct site *s)
{
    struct client c;
    client_open(t, s, &c);
    client_send(t, &c, GET("/"));
    check(client_reply(t, &c).status == 200);
    int on = -1;
    socklen_t n = sizeof(on);
    struct http_conn *conn = list_entry(s->server->conns.prev, struct http_conn, link);
    check(getsockopt(conn->watch.fd, IPPROTO_TCP, TCP_NODELAY, &on, &n) == 0);
    client_close(&c);
    return on;
}

static void over_tcp(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open_tcp(t, &s, with(100), routes, COUNT, NULL);
    is_str(ask(t, &s, GET("/")).body, STR("127.0.0.1"), "the peer's address");
    is_int(no_delay(t, &s), 1, "small replies are not held back");

    /* The client goes on sending unread bytes: without lingering a reset would discard the
     * reply. */
    struct client c;
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "POST / HTTP/1.1\r\n" HOST "Content-Length: 3000000\r\n\r\n%03000000d", 1);
    client_open(t, &s, &c);
    client_send(t, &c, buf_str(&b));
    check(task_sleep(t, 200) == 0);
    is_int(client_reply(t, &c).status, 413, "a reply in the middle of an upload arrives");
    client_close(&c);
    client_open(t, &s, &c);
    client_send(t, &c, STR("GET / HTTP/1.1\nHost: h\n\n"));
    check(task_sleep(t, 50) == 0);
    client_send(t, &c, buf_str(&b));
    is_int(client_reply(t, &c).status, 400, "and one to a bad request");
    client_close(&c);
    buf_release(&b);
    site_close(t, &s);
}

static void lingering_ends(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    site_open(t, &s, with(100), routes, COUNT, NULL);
    client_open(t, &s, &c);
    client_send(t, &c, STR("GET / HTTP/1.1\n"));
    is_int(client_reply(t, &c).status, 400, "refused");
    is_int((int64_t)http_server_connections(s.server), 1, "it is listened to for a while");
    check(task_sleep(t, 1100) == 0);
    is_int((int64_t)http_server_connections(s.server), 0, "but not for long");
    client_close(&c);
    site_close(t, &s);
}

static void scopes(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    struct memory m = {0};
    site_open(t, &s, with(100), routes, COUNT, &m);
    client_open(t, &s, &c);
    for (int i = 1; i <= 3; i++) {
        client_send(t, &c, GET("/memory"));
        (void)client_reply(t, &c);
        is_int(m.same, i, "the memory of a request ends with it");
    }
    client_close(&c);
    site_close(t, &s);
}

static void canceling(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client idle, busy;
    site_open(t, &s, with(100), routes, COUNT, NULL);
    client_open(t, &s, &idle);
    client_open(t, &s, &busy);
    client_send(t, &busy, GET("/slow"));
    check(task_sleep(t, 100) == 0);
    int64_t began = loop_now_ms(task_loop(t));
    site_close(t, &s);
    is_int(s.result, ERR_CANCELED, "cancelled");
    is_int(loop_now_ms(task_loop(t)) - began, 0, "at once");
    ok(client_at_end(t, &busy) && client_at_end(t, &idle), "with all connections");
    client_close(&idle);
    client_close(&busy);
}

static void broken_socket(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    site_open_tcp(t, &s, with(100), routes, COUNT, NULL);
    client_open(t, &s, &c);
    check(task_sleep(t, 100) == 0);
    check(shutdown(s.fd, SHUT_RDWR) == 0);
    int64_t began = loop_now_ms(task_loop(t));
    ok(client_at_end(t, &c), "a socket that cannot accept ends all connections");
    check(task_sleep(t, 1) == 0);
    is_int(s.result, ERR_IO, "and the server");
    ok(loop_now_ms(task_loop(t)) - began <= 1, "at once");
    client_close(&c);
    site_close(t, &s);
}

static void out_of_files(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct client c;
    struct buf log;
    site_open(t, &s, with(100), routes, COUNT, NULL);
    is_int(ask(t, &s, GET("/")).status, 200, "it works");
    check(task_sleep(t, 10) == 0);
    buf_init(&log);
    log_capture(&log);
    client_open(t, &s, &c);
    int last = dup(0);
    struct rlimit old, none;
    check(last >= 0 && getrlimit(RLIMIT_NOFILE, &old) == 0);
    close(last);
    none = (struct rlimit){(rlim_t)last, old.rlim_max};
    check(setrlimit(RLIMIT_NOFILE, &none) == 0);
    client_send(t, &c, GET("/"));
    check(task_sleep(t, 1000) == 0);
    check(setrlimit(RLIMIT_NOFILE, &old) == 0);
    log_capture(NULL);
    struct str text = buf_str(&log);
    ptrdiff_t at = str_find(text, STR("cannot accept connections"));
    ok(at > 0 && str_find(str_from(text.p + at + 1, text.n - (size_t)at - 1),
                          STR("cannot accept connections")) < 0,
       "no file to be had: logged once");
    int64_t began = loop_now_ms(task_loop(t));
    is_int(client_reply(t, &c).status, 200, "served when there is one again");
    ok(loop_now_ms(task_loop(t)) - began <= 100, "within the time of one backoff");
    client_close(&c);
    buf_release(&log);
    site_close(t, &s);
}

/* No kit, no chunk of the arena: only a stack. */
static bool holds_nothing(const struct http_conn *c)
{
    return !c->kit && !task_arena(c->task)->head && !task_arena(c->task)->spare;
}

static int holding_nothing(const struct site *s)
{
    int n = 0;
    list_each (it, &s->server->conns)
        n += holds_nothing(list_entry(it, struct http_conn, link));
    return n;
}

static void many(struct task *t, void *arg)
{
    (void)arg;
    enum { CLIENTS = 200 };
    static struct client c[CLIENTS];
    struct site s;
    site_open(t, &s, with(1000), routes, COUNT, NULL);
    int good = 0, at_once = 0;
    for (int i = 0; i < CLIENTS; i++)
        client_open(t, &s, &c[i]);
    for (int before = 0, now; before < CLIENTS; before = now) {
        check(task_yield(t) == 0);
        now = (int)http_server_connections(s.server);
        at_once = now - before > at_once ? now - before : at_once;
    }
    is_int(at_once, 64, "many connections are not taken all at once");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CLIENTS; i++)
            client_send(t, &c[i], GET("/"));
        for (int i = 0; i < CLIENTS; i++)
            good += client_reply(t, &c[i]).status == 200;
        check(task_sleep(t, 3000) == 0);
        is_int(holding_nothing(&s), CLIENTS, "idle ones hold no memory");
    }
    is_int(good, 3 * CLIENTS, "many connections, again after a rest");
    for (int i = 0; i < CLIENTS; i++)
        client_close(&c[i]);
    site_close(t, &s);
}

int main(void)
{
    tap_task(draining, NULL, false);
    tap_task(drain_meets_request, NULL, false);
    tap_task(drain_without_request, NULL, false);
    tap_task(too_many, NULL, false);
    tap_task(over_tcp, NULL, true);
    tap_task(lingering_ends, NULL, false);
    tap_task(scopes, NULL, false);
    tap_task(canceling, NULL, false);
    tap_task(broken_socket, NULL, false);
    if (!RUNNING_ON_VALGRIND) /* there a connection over the limit is accepted, then closed */
        tap_task(out_of_files, NULL, false);
    tap_task(many, NULL, false);
    return tap_done();
}
