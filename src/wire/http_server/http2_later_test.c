/* Replies that are known now and due later. */
#include "base/log.h"
#include "tests/tap.h"
#include "wire/http_server/http2_harness.h"

#define DELAY_MS    1000
#define BODY_BYTES  100000
#define MANY        300
#define WINDOW_TINY 1000

struct seen {
    int sent, lost;
    size_t tasks; /* when the last of them left */
    struct loop *loop;
};

static void on_done(void *arg, int err)
{
    struct seen *seen = arg;
    *(err ? &seen->lost : &seen->sent) += 1;
    seen->tasks = loop_task_count(seen->loop);
}

static int later(struct task *t, struct http_exchange *x, void *ctx)
{
    return http_reply_later(t, x, DELAY_MS, 200, "application/json", STR("{\"a\":1}"), on_done,
                            ctx);
}

static int large(struct task *t, struct http_exchange *x, void *ctx)
{
    char *p = arena_alloc(task_arena(t), BODY_BYTES);
    memset(p, 'L', BODY_BYTES);
    return http_reply_later(t, x, DELAY_MS, 200, "text/plain", str_from(p, BODY_BYTES), on_done,
                            ctx);
}

static const struct http_route routes[] = {
    {"GET", "/", later, 0},
    {"GET", "/large", large, 0},
};

static void open_both(struct task *t, struct site *s, struct h2 *h, struct seen *seen,
                      uint32_t window)
{
    *seen = (struct seen){.loop = task_loop(t)};
    site_open(t, s, (struct http_options){.http2 = true}, routes,
              sizeof(routes) / sizeof(routes[0]), seen);
    h2_open(t, s, h, (struct h2_settings){window});
}

static void close_both(struct task *t, struct site *s, struct h2 *h)
{
    h2_close(h);
    site_close(t, s);
}

static void whole_ones(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    struct seen seen;
    static struct call calls[MANY];
    open_both(t, &s, &h, &seen, 0);
    size_t tasks = loop_task_count(task_loop(t));
    int64_t began_ms = loop_now_ms(task_loop(t));
    for (size_t i = 0; i < MANY; i++) {
        calls[i] = (struct call){.path = "/"};
        h2_begin(&h, &calls[i]);
    }
    h2_await(t, &h, calls, MANY);
    is_int(loop_now_ms(task_loop(t)) - began_ms, DELAY_MS, "replies come when they are due");
    int right = 0;
    for (size_t i = 0; i < MANY; i++) {
        right += calls[i].status == 200 && calls[i].ended &&
                 str_eq(buf_str(&calls[i].reply), STR("{\"a\":1}"));
        if (i > 0)
            call_release(&calls[i]);
    }
    is_int(right, MANY, "all of them");
    ok(seen.sent == MANY && seen.lost == 0, "each is told once");
    ok(seen.tasks <= tasks + 1, "none has a task meanwhile: %zu", seen.tasks - tasks);
    is_str(call_field(&calls[0], "cache-control"), STR("no-store"), "the head is that of others");
    is_str(call_field(&calls[0], "content-length"), STR("7"), "with its length");
    ok(call_field(&calls[0], "date").p, "and the time");
    call_release(&calls[0]);

    struct call c = {.method = "HEAD", .path = "/"};
    h2_call(t, &h, &c);
    ok(c.status == 200 && c.ended && c.reply.len == 0, "HEAD");
    is_int(seen.sent, MANY + 1, "is told, too");
    call_release(&c);
    close_both(t, &s, &h);
}

static void slow_readers(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    struct seen seen;
    open_both(t, &s, &h, &seen, WINDOW_TINY);
    struct call c = {.path = "/large"};
    h2_call(t, &h, &c);
    ok(c.status == 200 && c.ended && c.reply.len == BODY_BYTES, "through a small window");
    call_release(&c);

    c = (struct call){.path = "/large", .deaf = true};
    h2_call(t, &h, &c);
    ok(!c.ended && c.error == NGHTTP2_INTERNAL_ERROR && c.reply.len == WINDOW_TINY,
       "a client that does not read is disconnected");
    call_release(&c);
    is_int(seen.sent, 2, "both were told");
    close_both(t, &s, &h);
}

static void lost_ones(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    struct seen seen;
    open_both(t, &s, &h, &seen, 0);
    struct call calls[3] = {{.path = "/"}, {.path = "/"}, {.path = "/"}};
    for (int i = 0; i < 3; i++)
        h2_begin(&h, &calls[i]);
    h2_say(t, &h);
    check(task_sleep(t, DELAY_MS / 2) == 0);
    check(nghttp2_submit_rst_stream(h.session, NGHTTP2_FLAG_NONE, calls[1].id, NGHTTP2_CANCEL) ==
          0);
    h2_await(t, &h, calls, 3);
    ok(seen.lost == 1 && calls[1].status == 0, "one that is given up while it waits is told");
    ok(seen.sent == 2 && calls[0].status == 200 && calls[2].status == 200, "others are not");
    for (int i = 0; i < 3; i++)
        call_release(&calls[i]);

    struct call last = {.path = "/"};
    h2_begin(&h, &last);
    h2_say(t, &h);
    check(task_sleep(t, DELAY_MS / 2) == 0);
    h2_close(&h);
    check(task_sleep(t, 1) == 0);
    is_int(seen.lost, 2, "so is one whose connection ends");
    call_release(&last);
    site_close(t, &s);
}

static void end_of_server(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    struct seen seen;
    open_both(t, &s, &h, &seen, 0);
    struct call c = {.path = "/"};
    h2_begin(&h, &c);
    h2_say(t, &h);
    check(task_sleep(t, DELAY_MS / 2) == 0);
    http_server_drain(s.server);
    h2_await(t, &h, &c, 1);
    ok(h.goaway && c.status == 200, "a drain waits for those that are due");
    call_release(&c);
    close_both(t, &s, &h);

    open_both(t, &s, &h, &seen, 0);
    c = (struct call){.path = "/"};
    h2_begin(&h, &c);
    h2_say(t, &h);
    check(task_sleep(t, DELAY_MS / 2) == 0);
    site_close(t, &s);
    is_int(seen.lost, 1, "a server that is cancelled does not");
    call_release(&c);
    h2_close(&h);
}

static void http1(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct h2 h;
    struct seen seen;
    open_both(t, &s, &h, &seen, 0);
    struct client c;
    client_open(t, &s, &c);
    int64_t began_ms = loop_now_ms(task_loop(t));
    client_send(t, &c, STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    struct str reply = client_read(t, &c);
    ok(str_starts(reply, STR("HTTP/1.1 200")) && str_ends(reply, STR("{\"a\":1}")), "HTTP/1.1");
    is_int(loop_now_ms(task_loop(t)) - began_ms, DELAY_MS, "waits as well");
    is_int(seen.sent, 1, "and is told");
    client_close(&c);
    close_both(t, &s, &h);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    tap_task(whole_ones, NULL, false);
    tap_task(slow_readers, NULL, false);
    tap_task(lost_ones, NULL, false);
    tap_task(end_of_server, NULL, false);
    tap_task(http1, NULL, false);
    return tap_done();
}
