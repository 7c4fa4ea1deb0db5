/* Calls over HTTP/2, plain and over TLS. */
#include <signal.h>

#include "tests/tap.h"
#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_client_test_h2.h"
#include "wire/http_client/http_client_test_front.h"

/* --- the fixture --- */

struct fixture {
    struct h2_server server;
    struct front front;
    struct http_client *client;
};

static bool over_tls;

static void fixture_open_with(struct fixture *f, struct task *t, struct http_client_options o)
{
    h2_server_open(&f->server, task_loop(t));
    o.plain_h2 = true;
    if (over_tls) {
        front_open(&f->front, task_loop(t), f->server.port, "h2");
        o.ca_file = f->front.ca_file;
    }
    f->client = http_client_new(task_loop(t), &o);
}

static void fixture_open(struct fixture *f, struct task *t)
{
    fixture_open_with(f, t, (struct http_client_options){.connect_ms = 0});
}

static void fixture_close(struct fixture *f, struct task *t)
{
    is_int((int64_t)f->client->in_flight, 0, "no call is left");
    http_client_free(f->client);
    if (over_tls)
        front_close(t, &f->front);
    h2_server_close(t, &f->server);
}

struct test {
    void (*fn)(struct task *t, struct fixture *f);
};

static void with_fixture(struct task *t, void *arg)
{
    const struct test *test = arg;
    struct fixture f = {.client = NULL};
    fixture_open(&f, t);
    test->fn(t, &f);
    fixture_close(&f, t);
}

#define RUN(fn, real_time) tap_task(with_fixture, &(struct test){fn}, real_time)

static int call_with(struct fixture *f, struct task *t, const char *path, struct http_call c,
                     struct http_response *r)
{
    c.url = arena_printf(task_arena(t), "%s://127.0.0.1:%d%s", over_tls ? "https" : "http",
                         over_tls ? f->front.port : f->server.port, path);
    return http_call(t, f->client, &c, r);
}

static int post(struct fixture *f, struct task *t, const char *path, struct str body,
                struct http_response *r)
{
    return call_with(f, t, path, (struct http_call){.body = body}, r);
}

static int get(struct fixture *f, struct task *t, const char *path, struct http_response *r)
{
    return call_with(f, t, path, (struct http_call){.method = "GET"}, r);
}

/* --- replies --- */

static void test_replies(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "a call is answered");
    is_int(r.http_version, 20, "by HTTP/2");
    is_int(r.status, 200, "with its status");
    is_str(r.body, STR("hello"), "its body");
    is_str(r.content_type, STR("a/b"), "its type");
    is_int(r.retry_after_ms, 7000, "and when to come again");
    struct str type = STR("Content-Type: application/json");
    struct http_call c = {.body = STR("{}"), .headers = &type, .header_count = 1};
    is_int(call_with(f, t, "/echo", c, &r), 0, "a header");
    is_str(r.content_type, STR("application/json"), "is sent as it is");
    is_str(r.body, STR("{}"), "and so is a body");
    is_int(post(f, t, "/hint", STR("x"), &r), 0, "an interim reply");
    is_int(r.status, 429, "is passed over");
    is_int(r.retry_after_ms, 7000, "with its headers");
    is_int(get(f, t, "/big", &r), 0, "a long reply");
    is_int((int64_t)r.body.n, 300000, "comes whole");
    is_int((int64_t)f->server.accepted, 1, "all over one connection");
}

/* A window smaller than the body: the rest is sent as the server reads. */
static int make_body(struct task *t, void *arg, struct str *out)
{
    struct buf *b = arg;
    (void)t;
    buf_clear(b);
    for (int i = 0; i < 20000; i++)
        buf_printf(b, "%d,", i);
    *out = buf_str(b);
    return 0;
}

static void spoil(struct task *t, void *arg)
{
    struct buf *b = arg;
    check(task_sleep(t, 0) == 0);
    memset(b->p, 'x', b->cap); /* body_fn's memory may be reused after the wait */
}

static void test_windows(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.server.window = 1000};
    struct http_response r;
    struct buf made, want;
    struct str expected;
    buf_init(&made);
    buf_init(&want);
    check(make_body(t, &want, &expected) == 0);
    fixture_open(&f, t);
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "the connection stands");
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "spoil", spoil, &made) == 0);
    struct http_call c = {.body_fn = make_body, .arg = &made};
    is_int(call_with(&f, t, "/echo", c, &r), 0, "a body of 100 windows");
    ok(str_eq(r.body, expected), "arrives whole");
    check(group_join(t, &g) == 0);
    buf_release(&made);
    buf_release(&want);
    fixture_close(&f, t);
}

static int count_piece(void *arg, struct str piece)
{
    size_t *n = arg;
    *n += piece.n;
    return *n > 100000 ? ERR_NOT_FOUND : 0;
}

static void test_limits(struct task *t, struct fixture *f)
{
    struct http_response r;
    struct http_call c = {.method = "GET", .reply_bytes_max = 1000};
    is_int(call_with(f, t, "/big", c, &r), ERR_LIMIT, "a reply that is too long");
    size_t seen = 0;
    c = (struct http_call){.method = "GET", .on_piece = count_piece, .arg = &seen};
    is_int(call_with(f, t, "/big", c, &r), ERR_NOT_FOUND, "on_piece may stop a reply");
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "the connection goes on");
    is_int((int64_t)f->server.accepted, 1, "as before");
    is_int((int64_t)f->server.busy, 0, "and nothing is left on it");
}

/* --- when the body is made --- */

static int note_time(struct task *t, void *arg, struct str *out)
{
    *(int64_t *)arg = loop_now_ms(task_loop(t));
    *out = STR("x");
    return 0;
}

/* Permits to send are asked for there: not before the connection is ready. */
static void test_body_time(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    int64_t made_ms = 0, start_ms = loop_now_ms(task_loop(t));
    fixture_open(&f, t);
    f.front.delay_ms = 4600;
    struct http_call c = {.body_fn = note_time, .arg = &made_ms};
    is_int(call_with(&f, t, "/echo", c, &r), 0, "a handshake of 4.6 s");
    ok(made_ms - start_ms >= 4600, "the body is made after it: %lld ms",
       (long long)(made_ms - start_ms));
    fixture_close(&f, t);
}

/* --- many --- */

struct many {
    struct fixture f;
    const char *path;
    size_t good, bad;
};

static void one_of_many(struct task *t, void *arg)
{
    struct many *m = arg;
    struct http_response r;
    if (post(&m->f, t, m->path, STR("x"), &r) == 0 && str_eq(r.body, STR("hello")))
        m->good++;
    else
        m->bad++;
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/slow"};
    fixture_open(&m.f, t);
    crowd(t, 250, one_of_many, &m);
    is_int((int64_t)m.good, 250, "250 calls at once");
    is_int((int64_t)m.f.server.accepted, 3, "over three connections of 100");
    is_int((int64_t)m.f.server.busiest, 250, "all at the same time");
    fixture_close(&m.f, t);
}

static void test_crowded(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/slow", .f.server.streams_max = 2};
    fixture_open_with(&m.f, t, (struct http_client_options){.h2_connections_max = 2});
    crowd(t, 20, one_of_many, &m);
    is_int((int64_t)m.good, 20, "20 calls where four find room");
    is_int((int64_t)m.f.server.busiest, 4, "take turns");
    fixture_close(&m.f, t);
}

/* --- what goes wrong --- */

static void test_refused(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(post(f, t, "/refuse-twice", STR("x"), &r), 0, "a refused call is sent again");
    is_int((int64_t)f->server.requests, 3, "until it is taken");
    is_int(post(f, t, "/refuse", STR("x"), &r), ERR_UNAVAILABLE, "but not for ever");
    is_int((int64_t)f->server.requests, 7, "four times in all");
    is_int(post(f, t, "/reset", STR("x"), &r), ERR_UNCERTAIN, "after a reset it is uncertain");
    is_int((int64_t)f->server.requests, 8, "it is not sent again");
}

static void test_leaving(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(post(f, t, "/leave-before", STR("x"), &r), 0,
           "a server that leaves before a call was handled: another connection");
    is_int((int64_t)f->server.accepted, 2, "is opened");
    is_int(post(f, t, "/leave-after", STR("x"), &r), 0, "the last call of a connection");
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "and the next");
    is_int((int64_t)f->server.accepted, 3, "are on two");
    is_int((int64_t)f->server.requests, 4, "and nothing is sent twice that was handled");
}

/* As servers do after so many requests: what a connection leaves out is for the next one, however
 * often. */
static void test_leaving_always(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/ok", .f.server.single = true};
    fixture_open(&m.f, t);
    crowd(t, 20, one_of_many, &m);
    is_int((int64_t)m.good, 20, "20 calls, one to a connection");
    is_int((int64_t)m.f.server.accepted, 20, "over 20 connections");
    is_int((int64_t)m.f.server.requests, 20, "each was handled once");
    fixture_close(&m.f, t);
}

static void test_lost(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(get(f, t, "/cut-once", &r), 0, "a GET whose connection is lost is sent again");
    is_int((int64_t)f->server.requests, 2, "once");
    is_int(post(f, t, "/cut", STR("x"), &r), ERR_UNCERTAIN, "a POST is not");
    is_int((int64_t)f->server.requests, 3, "it may have been handled");
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "the next call has a new connection");
}

struct stalled {
    struct fixture *f;
    int64_t ms; /* its deadline; 0: none */
    int err;
};

static void stall(struct task *t, void *arg)
{
    struct stalled *s = arg;
    struct http_response r;
    if (s->ms)
        task_deadline(t, s->ms);
    s->err = post(s->f, t, "/stall", STR("x"), &r);
}

static void test_given_up(struct task *t, struct fixture *f)
{
    struct http_response r;
    int64_t old = task_deadline(t, 100);
    is_int(post(f, t, "/stall", STR("x"), &r), ERR_TIMEOUT, "a deadline ends a call");
    task_deadline_restore(t, old);
    struct stalled s = {.f = f};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "stall", stall, &s) == 0);
    while (f->server.requests < 2)
        check(task_sleep(t, 1) == 0);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    is_int(s.err, ERR_CANCELED, "and so does a cancellation");
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "others go on");
    is_int((int64_t)f->server.closed, 3, "the server has heard of both");
    is_int((int64_t)f->server.accepted, 1, "over the same connection");
}

/* A server that does not read: calls wait in memory; those given up there are freed. */
static void send_much(struct task *t, void *arg)
{
    struct stalled *s = arg;
    struct http_response r;
    if (s->ms)
        task_deadline(t, s->ms);
    char *body = arena_alloc(task_arena(t), 1 << 20);
    memset(body, 'x', 1 << 20);
    s->err = post(s->f, t, "/stall", str_from(body, 1 << 20), &r);
}

static void test_not_begun(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/slow", .f.server.window = 100 << 20};
    struct http_response r;
    fixture_open(&m.f, t);
    is_int(post(&m.f, t, "/ok", STR("x"), &r), 0, "the connection stands");
    struct h2_server_conn *c = list_entry(m.f.server.conns.next, struct h2_server_conn, link);
    poller_set(&c->wire.poller, 0);
    struct stalled s = {.f = &m.f};
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 40; i++)
        check(task_go(&g, "much", send_much, &s) == 0);
    check(task_sleep(t, 50) == 0);
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    is_int(s.err, ERR_CANCELED, "calls to a server that does not read are given up");
    poller_set(&c->wire.poller, WATCH_READ);
    is_int(post(&m.f, t, "/ok", STR("x"), &r), 0, "it reads again");
    crowd(t, 100, one_of_many, &m);
    is_int((int64_t)m.good, 100, "and has 100 places");
    is_int((int64_t)m.f.server.accepted, 1, "on the same connection");
    fixture_close(&m.f, t);
}

/* --- unwell servers --- */

static int post_within(struct fixture *f, struct task *t, const char *path, int64_t ms)
{
    struct http_response r;
    int64_t old = task_deadline(t, ms);
    int err = post(f, t, path, STR("x"), &r);
    task_deadline_restore(t, old);
    return err;
}

static void test_swallowed(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.server.swallows = true};
    fixture_open(&f, t);
    struct stalled s = {.f = &f, .ms = 2000};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "stall", stall, &s) == 0);
    is_int(post_within(&f, t, "/ok", 100), ERR_TIMEOUT, "a connection that swallows");
    is_int((int64_t)f.server.accepted, 1, "is kept after one time-out");
    is_int(post_within(&f, t, "/ok", 100), ERR_TIMEOUT, "after two in a row it is closed");
    check(group_join(t, &g) == 0);
    is_int(s.err, ERR_UNCERTAIN, "its other call may have been handled");
    f.server.swallows = false;
    is_int(post_within(&f, t, "/ok", 1000), 0, "the next call");
    is_int((int64_t)f.server.accepted, 2, "has a new connection");
    fixture_close(&f, t);
}

/* Replies between time-outs, in time or late, show that the connection works. */
static void test_slow(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/slow"};
    struct fixture *f = &m.f;
    fixture_open(f, t);
    for (int i = 0; i < 3; i++) {
        is_int(post_within(f, t, "/stall", 50), ERR_TIMEOUT, "a time-out");
        is_int(post_within(f, t, "/ok", 1000), 0, "and a reply");
    }
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "reply", one_of_many, &m) == 0);
    check(task_go(&g, "reply", one_of_many, &m) == 0);
    struct stalled s[2] = {{.f = f, .ms = 80}, {.f = f, .ms = 80}};
    for (int i = 0; i < 2; i++)
        check(task_go(&g, "stall", stall, &s[i]) == 0);
    check(group_join(t, &g) == 0);
    ok(s[0].err == ERR_TIMEOUT && s[1].err == ERR_TIMEOUT, "two at once, among replies");
    is_int((int64_t)m.good, 2, "which come");
    is_int(post_within(f, t, "/ok", 1000), 0, "the next call");
    is_int((int64_t)f->server.accepted, 1, "all over one connection");
    fixture_close(f, t);
}

/* What has not left for a server that does not read was surely not handled: it is sent again. */
static void test_swallowed_unsent(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.server.window = 100 << 20};
    struct http_response r;
    fixture_open(&f, t);
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "the connection stands");
    struct h2_server_conn *c = list_entry(f.server.conns.next, struct h2_server_conn, link);
    poller_set(&c->wire.poller, 0);
    struct stalled s = {.f = &f, .ms = 200};
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 40; i++)
        check(task_go(&g, "much", send_much, &s) == 0);
    check(task_sleep(t, 50) == 0);
    is_int(post_within(&f, t, "/ok", 2000), 0, "a call that waited in memory is answered");
    is_int((int64_t)f.server.accepted, 2, "over a new connection");
    check(group_join(t, &g) == 0);
    is_int(s.err, ERR_TIMEOUT, "the others had no time left");
    fixture_close(&f, t);
}

/* A server that has replied in HTTP/2 and then falls silent is not taken for one of HTTP/1.1. */
static void test_mute(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(post(f, t, "/leave-after", STR("x"), &r), 0, "a reply in HTTP/2");
    f->server.mute = true;
    is_int(post_within(f, t, "/ok", 20000), ERR_UNAVAILABLE, "no settings: nothing was sent");
    f->server.mute = false;
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "the next connection");
    is_int(r.http_version, 20, "speaks HTTP/2 again");
}

static void test_goaway_at_once(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.server.leaves = true};
    struct http_response r;
    fixture_open(&f, t);
    int64_t until_ms = loop_now_ms(task_loop(t)) + 3000;
    int err = ERR_UNAVAILABLE;
    for (int i = 0; i < 100 && err && loop_now_ms(task_loop(t)) < until_ms; i++)
        err = post(&f, t, "/ok", STR("x"), &r);
    is_int(err, ERR_UNAVAILABLE, "each connection begins with GOAWAY: nothing was handled");
    is_int((int64_t)f.server.requests, 0, "nothing at all");
    ok(f.server.accepted >= 4 && f.server.accepted <= 12, "few are opened in three seconds: %zu",
       f.server.accepted);
    f.server.leaves = false;
    is_int(post(&f, t, "/leave-after", STR("x"), &r), 0, "a reply");
    size_t before = f.server.accepted;
    is_int(post_within(&f, t, "/ok", 500), 0, "ends the backoff");
    is_int((int64_t)f.server.accepted, (int64_t)before + 1, "the next connection opens at once");
    fixture_close(&f, t);
}

static void test_full(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.server.full = true};
    fixture_open(&f, t);
    is_int(post_within(&f, t, "/ok", 3000), ERR_TIMEOUT, "a server that takes no calls at all");
    ok(f.server.accepted >= 2 && f.server.accepted <= 8, "few connections in three seconds: %zu",
       f.server.accepted);
    fixture_close(&f, t);
}

static void test_begun_and_refused(struct task *t, struct fixture *f)
{
    is_int(post_within(f, t, "/leave-begun", 3000), ERR_UNAVAILABLE,
           "replies that begin, and are then said not to come");
    ok(f->server.accepted >= 2 && f->server.accepted <= 8, "few connections: %zu",
       f->server.accepted);
}

/* A server that answers, and wants fewer connections. */
static void test_calm(struct task *t, struct fixture *f)
{
    struct http_response r;
    int64_t start_ms = loop_now_ms(task_loop(t));
    int good = 0;
    while (loop_now_ms(task_loop(t)) - start_ms < 3000)
        good += post(f, t, "/calm", STR("x"), &r) == 0;
    ok(good >= 4 && f->server.accepted <= 15, "ENHANCE_YOUR_CALM: %zu connections in 3 s, %d calls",
       f->server.accepted, good);
}

/* A certificate that is never accepted: calls fail at once, but connect seldom. */
static void test_connects_after_failures(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct front other;
    struct http_response r;
    front_open(&other, task_loop(t), 1, NULL);
    fixture_open(&f, t);
    http_client_free(f.client);
    f.client =
        http_client_new(task_loop(t), &(struct http_client_options){.ca_file = other.ca_file});
    int refused = 0;
    for (int i = 0; i < 200; i++) {
        refused += post(&f, t, "/ok", STR("x"), &r) == ERR_UNAVAILABLE &&
                   strstr(task_error(t), ": TLS: its certificate");
        check(task_sleep(t, 10) == 0);
    }
    is_int(refused, 200, "200 calls in two seconds say why");
    ok(f.front.accepted >= 5 && f.front.accepted <= 11, "%zu have connected", f.front.accepted);
    front_close(t, &other);
    fixture_close(&f, t);
}

/* --- silence --- */

#define PING_MS      1000
#define PING_WAIT_MS 500

static const struct http_client_options quick = {.ping_ms = PING_MS, .ping_wait_ms = PING_WAIT_MS};

/* A slow server answers a PING: its calls go on. */
static void test_ping_answered(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    fixture_open_with(&f, t, quick);
    is_int(post_within(&f, t, "/stall", 10 * PING_MS), ERR_TIMEOUT, "a call that takes long");
    is_int(post_within(&f, t, "/ok", 1000), 0, "another");
    is_int((int64_t)f.server.accepted, 1, "over the same connection");
    fixture_close(&f, t);
}

/* A connection that leads nowhere: closed after a PING, and the next call has another. */
static void test_black_hole(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f = {.client = NULL};
    struct http_response r;
    fixture_open_with(&f, t, quick);
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "the connection stands");
    check(task_sleep(t, 10 * PING_MS) == 0);
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "and is not disturbed while it idles");
    is_int((int64_t)f.server.accepted, 1, "for so long");
    struct h2_server_conn *c = list_entry(f.server.conns.next, struct h2_server_conn, link);
    poller_set(&c->wire.poller, 0); /* reads nothing from now on */
    int64_t start_ms = loop_now_ms(task_loop(t));
    is_int(post(&f, t, "/ok", STR("x"), &r), ERR_UNCERTAIN, "a call into a black hole");
    int64_t ms = loop_now_ms(task_loop(t)) - start_ms;
    ok(ms >= PING_MS + PING_WAIT_MS && ms < PING_MS + PING_WAIT_MS + 100, "is given up: %lld ms",
       (long long)ms);
    poller_set(&c->wire.poller, 0);
    is_int(post(&f, t, "/ok", STR("x"), &r), 0, "the next call");
    is_int((int64_t)f.server.accepted, 2, "has a new connection");
    fixture_close(&f, t);
}

/* With the times that a node has. */
static void test_black_hole_defaults(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "the connection stands");
    struct h2_server_conn *c = list_entry(f->server.conns.next, struct h2_server_conn, link);
    poller_set(&c->wire.poller, 0);
    int64_t start_ms = loop_now_ms(task_loop(t));
    is_int(get(f, t, "/ok", &r), 0, "a GET into a black hole is answered over another connection");
    int64_t ms = loop_now_ms(task_loop(t)) - start_ms;
    ok(ms >= 10000 && ms <= 16000, "within 16 s: %lld ms", (long long)ms);
}

/* --- HTTP/1.1, no server, idle --- */

static void test_h1(struct task *t, void *arg)
{
    (void)arg;
    struct peer p;
    peer_open(&p, task_loop(t));
    struct http_client *c =
        http_client_new(task_loop(t), &(struct http_client_options){.plain_h2 = true});
    struct http_response r;
    for (int i = 0; i < 3; i++) {
        struct http_call call = {.url = peer_url(t, &p, "/ok"), .body = STR("x")};
        is_int(http_call(t, c, &call, &r), 0, "a server of HTTP/1.1 is called");
        is_int(r.http_version, 11, "by HTTP/1.1");
    }
    is_int((int64_t)p.accepted, 2, "it was asked once");
    http_client_free(c);
    peer_close(t, &p);
}

/* Without a server all waiting calls fail at once, not one after the other. */
static void test_no_server(struct task *t, void *arg)
{
    (void)arg;
    struct many m = {.path = "/ok"};
    fixture_open(&m.f, t);
    h2_server_close(t, &m.f.server);
    int64_t began_ms = loop_now_ms(task_loop(t));
    crowd(t, 100, one_of_many, &m);
    is_int((int64_t)m.bad, 100, "without a server no call succeeds");
    ok(loop_now_ms(task_loop(t)) - began_ms < 1000, "and no call waits");
    http_client_free(m.f.client);
}

static void test_idle(struct task *t, struct fixture *f)
{
    struct http_response r;
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "a connection");
    ok(!list_empty(&f->server.conns), "is kept");
    check(task_sleep(t, 60000) == 0);
    ok(list_empty(&f->server.conns), "and closed when unused for long");
    is_int(post(f, t, "/ok", STR("x"), &r), 0, "another call has a new one");
    is_int((int64_t)f->server.accepted, 2, "the second");
}

static void run_all(void)
{
    RUN(test_replies, true);
    tap_task(test_windows, NULL, true);
    RUN(test_limits, true);
    tap_task(test_many, NULL, false);
    tap_task(test_crowded, NULL, false);
    RUN(test_refused, true);
    RUN(test_leaving, true);
    tap_task(test_leaving_always, NULL, true);
    RUN(test_lost, true);
    RUN(test_given_up, true);
    tap_task(test_not_begun, NULL, true);
    tap_task(test_swallowed, NULL, false);
    tap_task(test_slow, NULL, false);
    tap_task(test_swallowed_unsent, NULL, false);
    RUN(test_mute, false);
    tap_task(test_goaway_at_once, NULL, false);
    RUN(test_begun_and_refused, false);
    tap_task(test_full, NULL, false);
    RUN(test_calm, false);
    tap_task(test_ping_answered, NULL, false);
    tap_task(test_black_hole, NULL, false);
    RUN(test_black_hole_defaults, false);
    if (over_tls) {
        tap_task(test_body_time, NULL, false);
        tap_task(test_connects_after_failures, NULL, false);
    }
    if (!over_tls) {
        tap_task(test_h1, NULL, true);
        tap_task(test_no_server, NULL, true);
    }
    RUN(test_idle, false);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    run_all();
    over_tls = true;
    run_all();
    return tap_done();
}
